"""Client of the REST API of Earshot, and verification of its webhooks."""

from . import types
from ._client import Earshot
from ._errors import (
    ApiError,
    AuthenticationError,
    EarshotError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServiceError,
    UnexpectedResponseError,
    UnreachableError,
)
from ._webhook import WebhookError, verify_webhook

__all__ = [
    "ApiError",
    "AuthenticationError",
    "Earshot",
    "EarshotError",
    "InvalidRequestError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceError",
    "UnexpectedResponseError",
    "UnreachableError",
    "WebhookError",
    "types",
    "verify_webhook",
]
