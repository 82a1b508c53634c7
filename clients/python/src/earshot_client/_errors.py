"""Errors that calls raise. Each is an `EarshotError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Optional

from .types import ErrorDetail

_MAX_SHOWN = 300


class EarshotError(Exception):
    """Base class of all errors of this package."""


class UnreachableError(EarshotError):
    """There was no response, or it was incomplete."""


class UnexpectedResponseError(EarshotError):
    """A successful response is not what the API describes: often another server answered."""


class ApiError(EarshotError):
    """The service answered with an error."""

    def __init__(
        self,
        status: int,
        message: str,
        details: list[ErrorDetail],
        request_id: Optional[str],
        retry_after: Optional[int],
    ) -> None:
        fields = "".join(f"; {detail['field']}: {detail['issue']}" for detail in details)
        super().__init__(f"{status} {message}{fields}")
        self.status = status
        self.message = message
        self.details = details
        """The fields that failed. Future versions of the service may add issues."""
        self.request_id = request_id
        """The id to name when you ask the operators about this request."""
        self.retry_after = retry_after
        """Seconds to wait, if the service said so."""

    def has_issue(self, field: str, issue: Optional[str] = None) -> bool:
        """Returns whether `field` failed, for the reason `issue` if that is given."""
        return any(d["field"] == field and issue in (None, d["issue"]) for d in self.details)


class InvalidRequestError(ApiError):
    """400: `details` names the fields."""


class AuthenticationError(ApiError):
    """401: the key is missing, wrong, revoked or expired."""


class PermissionDeniedError(ApiError):
    """403: the key may not do this."""


class NotFoundError(ApiError):
    """404: the resource does not exist."""


class RateLimitError(ApiError):
    """429: `retry_after` says how long to wait."""


class ServiceError(ApiError):
    """5xx: the service failed, or a dependency is away."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    429: RateLimitError,
}


def api_error(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    details: list[ErrorDetail] = []
    try:
        parsed = json.loads(body)
        message = str(parsed["message"])
        details = [{"field": str(d["field"]), "issue": d["issue"]} for d in parsed.get("details", [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        # For example the error page of a proxy.
        message = body[:_MAX_SHOWN].decode("utf-8", "replace").strip() or "without a message"
    after = headers.get("retry-after", "")
    # A proxy may send a date, which is not a number of seconds.
    retry_after = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else None
    kind = _BY_STATUS.get(status, ServiceError if status >= 500 else ApiError)
    return kind(status, message, details, headers.get("x-request-id"), retry_after)
