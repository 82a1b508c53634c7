"""Verification of webhooks, as https://www.standardwebhooks.com describes it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Optional, Union, cast

from ._errors import EarshotError
from .types import WebhookEvent

TOLERANCE_SECONDS = 300


class WebhookError(EarshotError):
    """The request is not a genuine webhook: answer 401 and do nothing else."""


def verify_webhook(
    secrets: Union[str, Sequence[str]],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_seconds: int = TOLERANCE_SECONDS,
    now: Optional[float] = None,
) -> WebhookEvent:
    """Checks the signature and the age of a webhook and returns its event.

    `secrets` are `signingSecrets` of the Connection, one or both; `body` is the request's body, byte for byte. Raises
    `WebhookError` if the request is not genuine, and `ValueError` if a secret is malformed.
    """
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("`secrets` is empty: give the signing secret of the Connection")
    found = {name.lower(): value for name, value in headers.items()}
    try:
        identifier, timestamp = found["webhook-id"], found["webhook-timestamp"]
        signatures = found["webhook-signature"]
    except KeyError as missing:
        raise WebhookError(f"the header {missing} is missing") from None
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        raise WebhookError("`webhook-timestamp` is not a number of seconds")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance_seconds:
        raise WebhookError(f"`webhook-timestamp` is more than {tolerance_seconds} s from now")
    signed = f"{identifier}.{timestamp}.".encode() + body
    # A header as received may hold any bytes; `compare_digest` takes bytes alone then.
    given = [part.encode("utf-8", "replace") for part in signatures.split(" ")]
    expected = [b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise WebhookError("no signature matches")
    try:
        event = json.loads(body)
    except ValueError:
        raise WebhookError("the body is not JSON") from None
    return cast(WebhookEvent, event)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret[len("whsec_") :], validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise ValueError("a signing secret is `whsec_` and the base64 of 24 to 64 bytes")
    return key
