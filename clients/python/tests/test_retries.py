"""Retries and errors, against a small server. The waits are recorded, not waited for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from earshot_client import (
    ApiError,
    Earshot,
    EarshotError,
    RateLimitError,
    ServiceError,
    UnexpectedResponseError,
    UnreachableError,
)

from .conftest import Answer, Server

Serve = Callable[..., Server]
NAME = "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d"
OK = Answer(200, {"name": NAME})


def busy(status: int, after: str) -> Answer:
    return Answer(status, {"code": status, "message": "later"}, {"Retry-After": after})


def client(server: Server, waits: list[float], retries: int = 4) -> Earshot:
    return Earshot(server.url, "esk_test", retries=retries, sleep=waits.append)


def test_read_waits_as_long_as_the_service_says(serve: Serve) -> None:
    server, waits = serve(busy(429, "7"), busy(503, "3"), OK), list[float]()
    assert client(server, waits).get_namespace(NAME)["name"] == NAME
    assert waits == [7, 3]


def test_base_may_end_in_the_version_and_key_in_a_line_break(serve: Serve) -> None:
    server = serve(OK, OK, OK)
    for end in ("/", "/v1", "/v1/"):
        assert Earshot(server.url + end, "esk_test\n").get_namespace(NAME)["name"] == NAME
    for request in server.received:
        assert (request.path, request.headers["authorization"]) == (f"/v1/{NAME}", "Bearer esk_test")


def test_proxies_of_the_environment_are_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(OK)
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("all_proxy", server.url)
    assert Earshot("http://earshot.test", "esk_test").get_namespace(NAME)["name"] == NAME
    assert server.received[0].path == f"http://earshot.test/v1/{NAME}"
    monkeypatch.setenv("all_proxy", "socks5h://127.0.0.1:1")
    with pytest.raises(ValueError, match="socks5h"):
        Earshot("http://earshot.test", "esk_test")
    monkeypatch.setenv("no_proxy", "earshot.test")
    Earshot("http://earshot.test", "esk_test")


def test_read_backs_off_without_retry_after(serve: Serve) -> None:
    server, waits = serve(Answer(503), Answer(503, headers={"Retry-After": "soon"}), OK), list[float]()
    client(server, waits).get_namespace(NAME)
    assert 0.125 <= waits[0] <= 0.25 <= waits[1] <= 0.5


def test_create_is_repeated_with_the_same_idempotency_key(serve: Serve) -> None:
    server, waits = serve(busy(503, "1"), OK), list[float]()
    client(server, waits).create_namespace({"nickname": "n"})
    first, second = (request.headers["idempotency-key"] for request in server.received)
    assert first == second and len(first) >= 32


def test_update_is_repeated_after_429_alone(serve: Serve) -> None:
    server, waits = serve(busy(429, "2"), busy(503, "2"), OK), list[float]()
    with pytest.raises(ServiceError):
        client(server, waits).update_namespace(NAME, {"nickname": "n"})
    assert waits == [2] and len(server.received) == 2


def test_tries_end(serve: Serve) -> None:
    server, waits = serve(busy(429, "1")), list[float]()
    with pytest.raises(RateLimitError) as error:
        client(server, waits, retries=2).get_namespace(NAME)
    assert error.value.retry_after == 1 and len(server.received) == 3


@pytest.mark.parametrize("answer", [busy(429, "3600"), Answer(500), Answer(404)])
def test_hopeless_request_is_not_repeated(serve: Serve, answer: Answer) -> None:
    server, waits = serve(answer), list[float]()
    with pytest.raises(ApiError):
        client(server, waits).get_namespace(NAME)
    assert waits == [] and len(server.received) == 1


def test_unreachable_service_is_tried_again() -> None:
    waits: list[float] = []
    # Nothing listens on port 1.
    with pytest.raises(UnreachableError):
        Earshot("http://127.0.0.1:1", "esk_test", sleep=waits.append, retries=2).get_namespace(NAME)
    assert len(waits) == 2


def test_redirect_is_not_followed(serve: Serve) -> None:
    other = serve(OK)
    server = serve(Answer(302, headers={"Location": other.url}))
    with pytest.raises(ApiError) as error:
        client(server, []).get_namespace(NAME)
    assert error.value.status == 302 and other.received == []


def test_error_page_of_a_proxy_is_shown(serve: Serve) -> None:
    for body in (b"<h1>Bad gateway</h1>", b"[1]", b'{"message": "x", "details": [3]}', b'\xff{"a'):
        with pytest.raises(ServiceError):
            client(serve(Answer(502, body)), []).get_namespace(NAME)


def test_answer_of_another_server_is_an_error(serve: Serve) -> None:
    with pytest.raises(UnexpectedResponseError):
        client(serve(Answer(200, b"<html>")), []).get_namespace(NAME)
    with pytest.raises(UnexpectedResponseError):
        next(client(serve(Answer(200, {"items": []})), []).list_namespaces())


@pytest.mark.parametrize("name", ["", "namespaces/../x", f"{NAME}?a", f"{NAME}/managers/-", f"{NAME}\n", "namespaces/-"])
def test_malformed_name_is_refused_before_anything_is_sent(serve: Serve, name: str) -> None:
    server = serve(OK)
    with pytest.raises(ValueError, match="namespaces/…"):
        client(server, []).get_namespace(name)
    assert server.received == []


@pytest.mark.parametrize("url", ["", "earshot.example.com", "file:///etc/passwd", "http://a?b"])
def test_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="`url`"):
        Earshot(url, "esk_test")


def test_all_errors_have_one_base() -> None:
    assert issubclass(ApiError, EarshotError) and issubclass(UnreachableError, EarshotError)
