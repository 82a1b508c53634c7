"""One request after the other, until it is answered: retries, redirects, errors."""

from __future__ import annotations

import http.client
import json
import random
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

from ._errors import ApiError, UnexpectedResponseError, UnreachableError, api_error

Query = Mapping[str, Union[str, int, None]]

_FIRST_WAIT_SECONDS = 0.25
_LONGEST_BACKOFF_SECONDS = 20.0
# A longer wait is for the caller to decide.
_LONGEST_TOLD_SECONDS = 90


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, so that the key reaches the configured server alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Transport:
    def __init__(
        self, url: str, key: str, retries: int, timeout: float, test_mode: bool, sleep: Callable[[float], None]
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("`url` must be the address before `/v1`, for example https://earshot.example.com")
        self._base = url.strip().rstrip("/").removesuffix("/v1") + "/v1/"
        # A file or variable with a key often ends in a line break.
        self._headers = {"Authorization": f"Bearer {key.strip()}", "User-Agent": "earshot-client-python"}
        if test_mode:
            self._headers["x-test"] = "true"
        self._retries, self._timeout, self._sleep = retries, timeout, sleep
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if parts.hostname in ("localhost", "127.0.0.1", "::1"):
            # A proxy cannot reach this machine's loopback.
            handlers.append(urllib.request.ProxyHandler({}))
        else:
            handlers.append(urllib.request.ProxyHandler(_proxies(parts.scheme, parts.hostname)))
        self._opener = urllib.request.build_opener(*handlers)

    def call(
        self,
        method: str,
        path: str,
        query: Optional[Query] = None,
        body: Optional[object] = None,
        idempotency_key: Optional[str] = None,
    ) -> Any:
        """Sends a request, and repeats it where that is safe and may help."""
        address = self._base + path
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        if given:
            address += "?" + urllib.parse.urlencode(given)
        headers = dict(self._headers)
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(address, data, headers, method=method)
        repeatable = method == "GET" or idempotency_key is not None
        tries = 0
        while True:
            try:
                return self._once(request)
            except (ApiError, UnreachableError) as error:
                tries += 1
                wait = _wait(error, tries, repeatable)
                if wait is None or tries > self._retries:
                    raise
            self._sleep(wait)

    def _once(self, request: urllib.request.Request) -> Any:
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            with error:
                try:
                    content = error.read()
                except (OSError, http.client.HTTPException):
                    content = b""
                raise api_error(error.code, _lower(error.headers.items()), content) from None
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"cannot reach {self._base}: {error}") from error
        try:
            return json.loads(content)
        except ValueError as error:
            raise UnexpectedResponseError("the response is not JSON") from error


def _proxies(scheme: str, host: str) -> dict[str, str]:
    """Returns the proxies of the environment; urllib alone would pass over `ALL_PROXY`."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return {}
    if "://" not in proxy:
        proxy = "http://" + proxy
    if not proxy.startswith(("http://", "https://")):
        kind = proxy.split("://")[0]
        raise ValueError(f"proxies of the kind `{kind}` are not supported: set {scheme.upper()}_PROXY to an HTTP proxy, or NO_PROXY")
    return {scheme: proxy}


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}


def _wait(error: Union[ApiError, UnreachableError], tries: int, repeatable: bool) -> Optional[float]:
    """Returns how many seconds to wait before the next try, or None if there should be none."""
    # The service refuses with 429 before it does anything, so every request may be repeated after that.
    if not repeatable and not (isinstance(error, ApiError) and error.status == 429):
        return None
    backoff = min(_FIRST_WAIT_SECONDS * 2.0 ** (tries - 1), _LONGEST_BACKOFF_SECONDS) * random.uniform(0.5, 1)
    if isinstance(error, UnreachableError):
        return backoff
    if error.status not in (429, 503) or (error.retry_after or 0) > _LONGEST_TOLD_SECONDS:
        return None
    return max(error.retry_after or 0, backoff)


