"""The client: one method for each operation of the API, under the operation's name."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Optional, cast

from . import types as t
from ._errors import UnexpectedResponseError
from ._http import Query, Transport

_NAMESPACE = "namespaces/*"
_MANAGER = "namespaces/*/managers/*"
_SCAN = "namespaces/*/managers/*/scans/*"
_CONNECTION = "namespaces/*/connections/*"
_DELIVERY = "namespaces/*/connections/*/deliveries/*"
_REPLAY = "namespaces/*/connections/*/replays/*"
_PAGE_SIZE = 100


class Earshot:
    """A client with an address and a key. Threads may share one.

    Resources are identified by their `name`, such as `namespaces/…/managers/…`. `list_…` methods are iterators that read
    page after page as they go. Reads, and creates (which carry an `Idempotency-Key`), are repeated up to `retries` times
    after 429, 503 and lost connections; everything else only after 429. Waits are those of `Retry-After`, at least an
    exponential backoff with jitter. With `test_mode` the service does everything for real and takes it back.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        retries: int = 4,
        timeout: float = 60.0,
        test_mode: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = Transport(url, key, retries, timeout, test_mode, sleep)

    # Keys

    def get_caller(self) -> t.Caller:
        return cast(t.Caller, self._transport.call("GET", "caller"))

    # Namespaces

    def list_namespaces(
        self, *, filter: Optional[str] = None, order_by: Optional[str] = None, page_size: int = _PAGE_SIZE
    ) -> Iterator[t.Namespace]:
        return self._list("namespaces", filter, order_by, page_size)

    def create_namespace(self, body: t.CreateNamespace, *, idempotency_key: Optional[str] = None) -> t.Namespace:
        return cast(t.Namespace, self._create("namespaces", body, idempotency_key))

    def get_namespace(self, name: str) -> t.Namespace:
        return cast(t.Namespace, self._get(_path(_NAMESPACE, name)))

    def update_namespace(
        self, name: str, body: t.UpdateNamespace, *, update_mask: Optional[str] = None
    ) -> t.Namespace:
        return cast(t.Namespace, self._update(_path(_NAMESPACE, name), body, update_mask))

    def delete_namespace(self, name: str, *, force: bool = False) -> None:
        self._delete(_path(_NAMESPACE, name), force)

    def get_namespace_stats(
        self, name: str, *, start_time: str, end_time: Optional[str] = None, interval: Optional[t.Interval] = None
    ) -> t.Stats:
        return self._stats(_path(_NAMESPACE, name), start_time, end_time, interval)

    def list_audit_events(
        self,
        namespace: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.AuditEvent]:
        """Lists the audit events of a Namespace; `namespaces/-` lists those of the whole account.

        Needs a key of role `OWNER`.
        """
        return self._list(_path(_NAMESPACE, namespace, any_last=True) + "/auditEvents", filter, order_by, page_size)

    # Managers

    def list_managers(
        self,
        namespace: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.Manager]:
        return self._list(_path(_NAMESPACE, namespace) + "/managers", filter, order_by, page_size)

    def create_manager(
        self, namespace: str, body: t.CreateManager, *, idempotency_key: Optional[str] = None
    ) -> t.Manager:
        return cast(t.Manager, self._create(_path(_NAMESPACE, namespace) + "/managers", body, idempotency_key))

    def get_manager(self, name: str) -> t.Manager:
        return cast(t.Manager, self._get(_path(_MANAGER, name)))

    def update_manager(self, name: str, body: t.UpdateManager, *, update_mask: Optional[str] = None) -> t.Manager:
        return cast(t.Manager, self._update(_path(_MANAGER, name), body, update_mask))

    def delete_manager(self, name: str) -> None:
        self._delete(_path(_MANAGER, name))

    def apply_manager(self, name: str) -> t.Manager:
        return cast(t.Manager, self._act(_path(_MANAGER, name), "apply"))

    def preview_manager(self, name: str, body: t.Preview) -> t.PreviewResults:
        return cast(t.PreviewResults, self._act(_path(_MANAGER, name), "preview", body))

    def preview_manager_draft(self, namespace: str, body: t.PreviewDraft) -> t.PreviewResults:
        return cast(t.PreviewResults, self._act(_path(_NAMESPACE, namespace) + "/managers", "preview", body))

    def backfill_manager(self, name: str, body: Optional[t.CreateBackfill] = None) -> t.Backfill:
        return cast(t.Backfill, self._act(_path(_MANAGER, name), "backfill", body))

    def get_manager_feeds(self, name: str) -> t.FeedList:
        return cast(t.FeedList, self._get(_path(_MANAGER, name) + "/feeds"))

    def get_manager_stats(
        self, name: str, *, start_time: str, end_time: Optional[str] = None, interval: Optional[t.Interval] = None
    ) -> t.Stats:
        return self._stats(_path(_MANAGER, name), start_time, end_time, interval)

    # Scans

    def list_scans(
        self,
        manager: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.Scan]:
        """Lists a Manager's Scans; `namespaces/…/managers/-` lists those of all Managers of the Namespace."""
        return self._list(_path(_MANAGER, manager, any_last=True) + "/scans", filter, order_by, page_size)

    def new_scans(self, manager: str, after: Optional[str] = None) -> Iterator[t.Scan]:
        """Lists the Scans of one Manager that are newer than `after`, oldest first, up to the newest.

        `after` is the `createTime` of the last Scan that you handled, exactly as it was written; None begins with the
        first. Store it with what you made of the Scan, and nothing is lost or repeated.
        """
        path = _path(_MANAGER, manager) + "/scans"
        newer = None if after is None else f'createTime > "{_quoted(after)}"'
        return self._list(path, newer, "createTime asc", _PAGE_SIZE)

    def get_scan(self, name: str) -> t.Scan:
        return cast(t.Scan, self._get(_path(_SCAN, name)))

    def update_scan(self, name: str, body: t.UpdateScan, *, update_mask: Optional[str] = None) -> t.Scan:
        return cast(t.Scan, self._update(_path(_SCAN, name), body, update_mask))

    # Connections

    def list_connections(
        self,
        namespace: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.Connection]:
        return self._list(_path(_NAMESPACE, namespace) + "/connections", filter, order_by, page_size)

    def create_connection(
        self, namespace: str, body: t.CreateConnection, *, idempotency_key: Optional[str] = None
    ) -> t.Connection:
        path = _path(_NAMESPACE, namespace) + "/connections"
        return cast(t.Connection, self._create(path, body, idempotency_key))

    def get_connection(self, name: str) -> t.Connection:
        return cast(t.Connection, self._get(_path(_CONNECTION, name)))

    def update_connection(
        self, name: str, body: t.UpdateConnection, *, update_mask: Optional[str] = None
    ) -> t.Connection:
        return cast(t.Connection, self._update(_path(_CONNECTION, name), body, update_mask))

    def delete_connection(self, name: str, *, force: bool = False) -> None:
        self._delete(_path(_CONNECTION, name), force)

    def enable_connection(self, name: str) -> t.Connection:
        return cast(t.Connection, self._act(_path(_CONNECTION, name), "enable"))

    def test_connection(self, name: str) -> t.TestResult:
        return cast(t.TestResult, self._act(_path(_CONNECTION, name), "test"))

    def get_connection_stats(
        self, name: str, *, start_time: str, end_time: Optional[str] = None, interval: Optional[t.Interval] = None
    ) -> t.Stats:
        return self._stats(_path(_CONNECTION, name), start_time, end_time, interval)

    # Deliveries

    def list_deliveries(
        self,
        connection: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.Delivery]:
        """Lists a Connection's deliveries; `namespaces/…/connections/-` lists those of all Connections."""
        path = _path(_CONNECTION, connection, any_last=True) + "/deliveries"
        return self._list(path, filter, order_by, page_size)

    def get_delivery(self, name: str) -> t.DeliveryWithAttempts:
        return cast(t.DeliveryWithAttempts, self._get(_path(_DELIVERY, name)))

    def retry_delivery(self, name: str) -> t.Delivery:
        return cast(t.Delivery, self._act(_path(_DELIVERY, name), "retry"))

    def replay_deliveries(self, connection: str, body: t.CreateReplay) -> t.Replay:
        return cast(t.Replay, self._act(_path(_CONNECTION, connection), "replay", body))

    def list_replays(
        self,
        connection: str,
        *,
        filter: Optional[str] = None,
        order_by: Optional[str] = None,
        page_size: int = _PAGE_SIZE,
    ) -> Iterator[t.Replay]:
        return self._list(_path(_CONNECTION, connection) + "/replays", filter, order_by, page_size)

    def get_replay(self, name: str) -> t.Replay:
        return cast(t.Replay, self._get(_path(_REPLAY, name)))

    def cancel_replay(self, name: str) -> None:
        self._delete(_path(_REPLAY, name))

    # What the methods above share

    def _get(self, path: str, query: Optional[Query] = None) -> Any:
        return self._transport.call("GET", path, query)

    def _list(
        self, path: str, filter: Optional[str], order_by: Optional[str], page_size: int
    ) -> Iterator[Any]:
        # The last word of the path is the key of the items.
        items_key = path.rsplit("/", 1)[-1]
        query: dict[str, Any] = {"filter": filter, "orderBy": order_by, "pageSize": page_size}

        def items() -> Iterator[Any]:
            while True:
                page = self._get(path, query)
                if not isinstance(page, dict) or not isinstance(page.get(items_key), list):
                    raise UnexpectedResponseError(f"the response is not a list of {items_key}")
                yield from page[items_key]
                if not page.get("nextPageToken"):
                    return
                query["pageToken"] = page["nextPageToken"]

        return items()

    def _create(self, path: str, body: object, idempotency_key: Optional[str]) -> Any:
        return self._transport.call("POST", path, None, body, idempotency_key or uuid.uuid4().hex)

    def _update(self, path: str, body: object, update_mask: Optional[str]) -> Any:
        return self._transport.call("PATCH", path, {"updateMask": update_mask}, body)

    def _delete(self, path: str, force: bool = False) -> None:
        self._transport.call("DELETE", path, {"force": "true" if force else None})

    def _act(self, path: str, verb: str, body: Optional[object] = None) -> Any:
        return self._transport.call("POST", f"{path}:{verb}", None, {} if body is None else body)

    def _stats(
        self, path: str, start_time: str, end_time: Optional[str], interval: Optional[t.Interval]
    ) -> t.Stats:
        query = {"startTime": start_time, "endTime": end_time, "interval": interval}
        return cast(t.Stats, self._get(path + "/stats", query))


def _path(pattern: str, name: str, any_last: bool = False) -> str:
    """Returns `name` if it has the form of `pattern`, so that it cannot lead to another path."""
    form = pattern.replace("*", "[0-9a-z]+")
    if any_last:
        form = form[: -len("[0-9a-z]+")] + "(-|[0-9a-z]+)"
    if not re.fullmatch(form, name):
        raise ValueError(f"a name must look like `{pattern.replace('*', '…')}` (got `{name}`)")
    return name


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
