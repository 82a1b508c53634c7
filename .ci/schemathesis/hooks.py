"""What openapi.yaml cannot say of values, for schemathesis to make valid ones.

A pattern says how a value looks. Whether a filter names a field of the list, a Connection exists, or a
host is public, no pattern says; without this nearly all that is made would be refused, rightly, and
the tests would see little but refusals.
"""

import itertools
import os
import re

import requests
import schemathesis
from hypothesis import strategies as st

COMPARISONS = st.sampled_from(
    [
        'createTime > "2020-01-01T00:00:00Z"',
        'updateTime <= "2100-01-01T00:00:00.123456+02:00"',
        'name != "x"',
        'NOT name : "zzz"',
        '-name = "\\"quoted\\""',
    ]
)
GROUPS = st.lists(COMPARISONS, min_size=1, max_size=3).map(" OR ".join)
schemathesis.openapi.format("filter", st.lists(GROUPS, max_size=3).map(" AND ".join))

FIELDS = st.sampled_from(["name", "createTime", "updateTime"])
DIRECTIONS = st.sampled_from(["", " asc", " desc"])
schemathesis.openapi.format(
    "order-by",
    st.lists(FIELDS, unique=True, max_size=3).flatmap(
        lambda fields: st.tuples(*[DIRECTIONS.map(lambda way, field=field: field + way) for field in fields])
    ).map(", ".join),
)
# Only the service makes tokens; following nextPageToken is what stateful tests do. An empty one counts as absent.
schemathesis.openapi.format("page-token", st.just(""))
schemathesis.openapi.format("uri", st.from_regex(r"\Ahttps://[a-z]{1,20}\.example\.com/[a-z0-9]{0,20}\Z"))
schemathesis.openapi.format("term", st.from_regex(r"\A[a-z0-9]{1,20}( [a-z0-9]{1,20})?\Z"))
schemathesis.openapi.format("signing-secret", st.integers(4, 10).map(lambda length: "whsec_" + "c2VjcmV0" * length))
schemathesis.openapi.format("feed", st.just("hackernews:newest"))


def first_ids():
    """Ids of the demo's resources: where all but deletion finds something."""
    found = {}

    def first(path, key, *, ids):
        answer = requests.get(
            f"{os.environ['API']}/v1/{path}",
            headers={"Authorization": f"Bearer {os.environ['KEY']}"},
            params={"orderBy": "createTime asc"},
            timeout=10,
        )
        answer.raise_for_status()
        items = answer.json()[key]
        if not items:
            return None
        found[ids] = items[0]["name"].rsplit("/", 1)[1]
        return items[0]["name"]

    namespace = first("namespaces", "namespaces", ids="namespaceId")
    manager = first(f"{namespace}/managers", "managers", ids="managerId")
    first(f"{manager}/scans", "scans", ids="scanId")
    connection = first(f"{namespace}/connections", "connections", ids="connectionId")
    first(f"{connection}/deliveries", "deliveries", ids="deliveryId")
    return found


FIRST = first_ids()
ULID = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Well-formed ids, which nothing has, become those of something. Malformed ones stay."""
    if path_parameters and context.operation.method.lower() != "delete":
        for name, value in path_parameters.items():
            if name in FIRST and isinstance(value, str) and ULID.fullmatch(value):
                path_parameters[name] = FIRST[name]
    return path_parameters


TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ].*")
SPAN = {"startTime": "2026-11-21T01:00:00Z", "endTime": "2026-11-21T02:00:00+00:00"}


@schemathesis.hook
def map_query(context, query):
    """Spans of time have an order and a largest length, and masks name what the body holds."""
    if isinstance(query, dict):
        if "startTime" in query and TIME.fullmatch(str(query["startTime"])):
            query["startTime"] = SPAN["startTime"]
            if TIME.fullmatch(str(query.get("endTime", SPAN["endTime"]))):
                query["endTime"] = SPAN["endTime"]
        query.pop("updateMask", None)
        if context.operation.path.endswith("/auditEvents"):
            # An audit event never changes, so it has no updateTime.
            for name, field in [("filter", "createTime"), ("orderBy", "action")]:
                if isinstance(query.get(name), str):
                    query[name] = query[name].replace("updateTime", field)
    return query


KEYS = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """An Idempotency-Key that came with another body is a conflict, and a deletion in test mode is none."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for name in list(case.headers or {}):
        if name.lower() == "idempotency-key":
            case.headers[name] = f"key-{next(KEYS)}"
        if name.lower() == "x-test" and case.method.lower() == "delete":
            del case.headers[name]
    # So many replays of one Connection may run at a time, and these end when they end.
    if case.path.endswith(":replay"):
        case.headers["x-test"] = "true"
    if isinstance(case.body, dict):
        make_screen_sound(case.body)


def make_screen_sound(body):
    """Which languages there are, what may be muted how, and that text holds no nul, no pattern says."""
    if isinstance(body.get("languages"), list):
        body["languages"] = ["en", "de", "ja", "pt-BR"][: len(body["languages"])]
    if isinstance(body.get("mutes"), list):
        mutes = [mute for mute in body["mutes"] if isinstance(mute, dict)]
        body["mutes"] = [{**mute, "value": f"muted{n}.example"} for n, mute in enumerate(mutes)]
    body.update(without_nul(body))


def without_nul(value):
    if isinstance(value, str):
        return value.replace("\0", "_")
    if isinstance(value, list):
        return [without_nul(one) for one in value]
    if isinstance(value, dict):
        return {key: without_nul(one) for key, one in value.items()}
    return value



SOURCES = [{"type": kind} for kind in ["FORUM", "MICROBLOG", "NETWORK"]]


@schemathesis.hook
def map_body(context, body):
    """What is well-formed becomes what is sound; what is not stays wrong as it is."""
    if not isinstance(body, dict):
        return body
    # Names and values of headers are HTTP's to judge; how many there are, and of what type, is kept.
    headers = body.get("headers")
    if isinstance(headers, dict) and all(value is None or isinstance(value, str) for value in headers.values()):
        body["headers"] = {f"X-Header-{n}": value and f"value {n}" for n, value in enumerate(headers.values())}
    # A name that is only blanks counts as empty.
    nickname = body.get("nickname")
    if isinstance(nickname, str) and nickname and not nickname.strip():
        body["nickname"] = "blank"
    # That a Connection exists is for tests that make one.
    notices = body.get("notices")
    if isinstance(notices, list) and len(notices) <= 10:
        body["notices"] = [notice for notice in notices if not is_notice(notice)]
    if "startTime" in body and all(TIME.fullmatch(str(body.get(end, SPAN[end]))) for end in SPAN):
        body.update({end: SPAN[end] for end in SPAN if end in body})
    # A Connection cannot become one for e-mail, which alone has addresses of mail and a digest.
    if body.get("format") == "EMAIL":
        body["format"] = "EARSHOT"
    if is_digest(body.get("digest")):
        del body["digest"]
    # A new source may not fit the feeds of instructions that stay.
    if context.operation.method.lower() == "patch" and body.get("source") in SOURCES:
        del body["source"]
    # Exactly one of input and instructions, and these look for something in feeds of the source: schemas
    # that say so make awkward types in generated clients.
    if is_manager(body) and "input" not in body and "instructions" not in body:
        body["instructions"] = {"include": [{"text": "backup", "weight": 1}]}
    if "input" in body and body["input"] is None:
        del body["input"]
    if isinstance(body.get("input"), dict) and has_lists(body.get("instructions")):
        del body["instructions"]
    if isinstance(body.get("instructions"), dict):
        make_sound(body["instructions"])
    if context.operation.path.endswith(":preview"):
        choose_one_subject(body)
    return body


def choose_one_subject(preview):
    """Exactly one of three; the first stays, of the others what is well-formed goes."""
    named = [key for key in ["posts", "recent", "urls"] if key in preview]
    if not named:
        preview["recent"] = 10
    # A Manager that is not compiled yet has no instructions.
    preview.setdefault("instructions", {"include": [{"text": "backup", "weight": 1}]})
    for key in named[1:]:
        value = preview[key]
        if key == "recent":
            good = type(value) is int and 1 <= value <= 100
        else:
            good = isinstance(value, list) and 1 <= len(value) <= 10
            good = good and all(isinstance(url, str) and 1 <= len(url) <= 2048 for url in value)
        if good:
            del preview[key]
    # Only stored posts have pages.
    for end in SPAN:
        if "recent" not in preview and TIME.fullmatch(str(preview.get(end))):
            del preview[end]


ZONE = re.compile(r"[A-Za-z0-9/_+-]{1,64}")


def is_digest(value):
    return (
        isinstance(value, dict)
        and {"period"} <= set(value) <= {"period", "timeZone"}
        and value["period"] in ["HOURLY", "DAILY"]
        and ZONE.fullmatch(str(value.get("timeZone", "UTC")))
    )


def is_manager(body):
    return isinstance(body, dict) and {"type", "source", "nickname"} <= set(body)


def has_lists(instructions):
    """Whether nothing about it is wrong that would be lost with it."""
    kinds = ["include", "names", "require", "exclude", "feeds"]
    return isinstance(instructions, dict) and all(isinstance(instructions.get(kind, []), list) for kind in kinds)


def make_sound(instructions):
    if not any(instructions.get(kind) for kind in ["include", "names", "require", "exclude"]):
        instructions["exclude"] = ["roadrunner"]
    # With a focus, here or in the Manager that is changed, the score is 0 to 1.
    threshold = instructions.get("threshold")
    if isinstance(threshold, (int, float)) and abs(threshold) <= 1_000_000:
        instructions["threshold"] = 0.5
    # Which feeds there are depends on the source.
    feeds = instructions.get("feeds")
    if isinstance(feeds, list) and all(feed == "hackernews:newest" for feed in feeds):
        del instructions["feeds"]


def is_notice(value):
    return (
        isinstance(value, dict)
        and {"type", "connection"} <= set(value) <= {"type", "connection", "filter"}
        and value["type"] == "HTTP_REQUEST"
        and isinstance(value["connection"], str)
        and value["connection"].startswith("namespaces/")
        and is_filter(value.get("filter", ""))
    )


def is_filter(value):
    starts = ("createTime", "updateTime", "name", "NOT name", "-name")
    return value == "" or isinstance(value, str) and len(value) <= 2_048 and value.startswith(starts)
