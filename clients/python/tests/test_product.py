"""The client against the running product."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from earshot_client import AuthenticationError, Earshot, InvalidRequestError, NotFoundError, verify_webhook
from earshot_client.types import CreateManager

from .conftest import ROOT, Answer, Product, Server

MANUAL: CreateManager = {
    "nickname": "mentions",
    "type": "FEED_MANAGER",
    "source": {"type": "FORUM"},
    "instructions": {"require": [["acme"]]},
}
# What is not an operation on resources: documents and feeds for readers.
NO_METHODS = {"getDocs", "getOpenapiJson", "getOpenapiYaml", "getScansAsAtom", "getScansAsJsonFeed"}


@pytest.fixture(scope="module")
def namespace(product: Product) -> str:
    return product.client.create_namespace({"nickname": "tests"})["name"]


def test_client_has_a_method_for_every_operation() -> None:
    description = (ROOT / "crates/api-gateway/openapi.yaml").read_text()
    operations = set(re.findall(r"^      operationId: (\w+)$", description, re.MULTILINE)) - NO_METHODS
    assert len(operations) > 30
    names = {re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name) for name in operations}
    assert names - set(dir(Earshot)) == set()


def test_manager_is_created_updated_and_deleted(product: Product, namespace: str) -> None:
    client = product.client
    created = client.create_manager(namespace, {**MANUAL, "maxScansPerDay": 5})
    assert (created["mode"], created["state"]) == ("MANUAL", "PENDING_APPLY")
    updated = client.update_manager(created["name"], {"enable": False, "maxScansPerDay": None})
    assert updated["enable"] is False
    assert "maxScansPerDay" not in updated
    masked = client.update_manager(created["name"], {"nickname": "new", "enable": True}, update_mask="nickname")
    assert (masked["nickname"], masked["enable"]) == ("new", False)
    assert client.apply_manager(created["name"])["state"] == "PENDING_APPLY"
    assert list(client.new_scans(created["name"], created["createTime"])) == []
    client.delete_manager(created["name"])
    with pytest.raises(NotFoundError) as refused:
        client.get_manager(created["name"])
    assert refused.value.request_id


def test_list_reads_all_pages(product: Product) -> None:
    client = product.client
    name = client.create_namespace({"nickname": "pages"})["name"]
    names = [client.create_manager(name, {**MANUAL, "nickname": f"m{number}"})["name"] for number in range(5)]
    listed = client.list_managers(name, page_size=2, order_by="createTime asc", filter='nickname != "m0"')
    assert [manager["name"] for manager in listed] == names[1:]
    client.delete_namespace(name, force=True)


def test_new_scans_continue_after_the_last_one(product: Product) -> None:
    client = product.client
    demo = next(client.list_namespaces(filter='nickname : "demo"'))["name"]
    manager = next(client.list_managers(demo))["name"]
    # The demo publishes posts all the time; its Manager may have no Scan yet.
    scans: list[str] = []
    for _ in range(600):
        scans = [scan["createTime"] for scan in client.new_scans(manager)]
        if len(scans) >= 2:
            break
        client._transport._sleep(0.1)
    assert scans == sorted(set(scans)) and len(scans) >= 2
    newer = [scan["createTime"] for scan in client.new_scans(manager, scans[0])]
    assert newer[: len(scans) - 1] == scans[1:]


def test_create_with_the_same_idempotency_key_makes_one(product: Product) -> None:
    first, second = (
        product.client.create_namespace({"nickname": "once"}, idempotency_key="tests-once") for _ in range(2)
    )
    assert first == second


def test_test_mode_stores_nothing(product: Product) -> None:
    client = Earshot(product.url, product.key, test_mode=True)
    with pytest.raises(NotFoundError):
        client.get_namespace(client.create_namespace({"nickname": "never"})["name"])


def test_refused_request_names_all_fields(product: Product) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        product.client.create_namespace({"nickname": "", "mutes": [{"type": "TERM", "value": ""}]})
    assert refused.value.status == 400
    assert refused.value.has_issue("nickname", "too_short")
    assert refused.value.has_issue("mutes[0].value")
    assert not refused.value.has_issue("nickname", "too_long")
    assert "nickname: too_short" in str(refused.value)


def test_wrong_key_is_an_authentication_error(product: Product) -> None:
    with pytest.raises(AuthenticationError):
        Earshot(product.url, "esk_wrong").get_caller()


def test_delivery_of_the_product_is_verified(
    product: Product, namespace: str, serve: Callable[..., Server]
) -> None:
    secrets = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"]
    receiver = serve(Answer(204))
    connection = product.client.create_connection(
        namespace,
        {"nickname": "hook", "type": "HTTP_CONNECTION", "url": receiver.url, "signingSecrets": secrets},
    )
    result = product.client.test_connection(connection["name"])
    assert result["ok"], result
    (delivery,) = receiver.received
    for secret in secrets:
        event = verify_webhook(secret, delivery.headers, delivery.body)
        assert event["type"] == "SCAN" and event["post"]["url"]
