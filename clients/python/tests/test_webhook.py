"""Webhook verification, by the public vector of Standard Webhooks."""

from __future__ import annotations

import pytest

from earshot_client import WebhookError, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
BODY = b'{"test": 2432232314}'
TIME = 1614265330
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(TIME),
    "webhook-signature": SIGNATURE,
}


def test_known_signature_is_accepted() -> None:
    event: object = verify_webhook(SECRET, HEADERS, BODY, now=TIME)
    assert event == {"test": 2432232314}
    several = {**HEADERS, "webhook-signature": f"v2,x v1,{'A' * 44} {SIGNATURE}"}
    assert verify_webhook([OTHER, SECRET], several, BODY, now=TIME)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": "v1,"},
        {"webhook-signature": ""},
        {"webhook-signature": SIGNATURE.replace("v1,", "v2,")},
        {"webhook-signature": "v1,\xe9é\udcff"},
        {"Webhook-Id": "msg_other"},
        {"webhook-timestamp": str(TIME + 1)},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "9" * 400},
    ],
)
def test_changed_header_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(WebhookError):
        verify_webhook(SECRET, {**HEADERS, **change}, BODY, now=TIME)


@pytest.mark.parametrize("missing", list(HEADERS))
def test_missing_header_is_refused(missing: str) -> None:
    with pytest.raises(WebhookError, match="missing"):
        verify_webhook(SECRET, {name: value for name, value in HEADERS.items() if name != missing}, BODY, now=TIME)


def test_changed_body_and_other_secret_are_refused() -> None:
    for secret, body in ((SECRET, BODY + b" "), (OTHER, BODY)):
        with pytest.raises(WebhookError, match="no signature"):
            verify_webhook(secret, HEADERS, body, now=TIME)


def test_age_is_bounded_in_both_directions() -> None:
    for now in (TIME - 300, TIME + 300):
        assert verify_webhook(SECRET, HEADERS, BODY, now=now)
    for now in (TIME - 301, TIME + 301):
        with pytest.raises(WebhookError, match="300 s"):
            verify_webhook(SECRET, HEADERS, BODY, now=now)
    assert verify_webhook(SECRET, HEADERS, BODY, now=TIME + 301, tolerance_seconds=400)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAEC", SECRET[6:], "whsec_ä", "whsec_" + "A" * 400, []])
def test_malformed_secret_is_a_mistake_of_the_caller(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(secret, HEADERS, BODY, now=TIME)
