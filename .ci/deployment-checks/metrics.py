"""Alerts and dashboards against docs/operations: metrics that exist, a runbook and tests for each alert, one of them by its cause."""

import json
import re

import yaml

PREFIXES = ("earshot_", "http_server_", "messaging_", "db_client_")
NAME = re.compile(r"\b(?:%s)[a-z0-9_]+" % "|".join(PREFIXES))
# How a test names the alert whose cause it makes.
CAUSE = re.compile(r'\b(?:watch|of_service)\(\s*"(Earshot\w+)"')
LABELS = re.compile(r"\{[^{}]*\}|\bby\s*\([^()]*\)")


def problems(root):
    reference = (root / "docs/operations/metrics.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| (`[^|]*) \|", reference, re.M)
    known = {name for cell in first_cells for name in re.findall(r"`([a-z0-9_]+)`", cell)}
    runbooks = (root / "docs/operations/runbooks.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ (Earshot\w+)$", runbooks, re.M))

    text = (root / "helm/files/prometheus/earshot.rules.yaml").read_text(encoding="utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    tests = "".join(path.read_text(encoding="utf-8") for path in (root / "deploy/prometheus").glob("*_test.yaml"))
    alerts = set()
    for rule in rules:
        yield from unknown(rule.get("alert") or rule["record"], rule["expr"], known)
        if "alert" in rule:
            alerts.add(rule["alert"])
            yield from unattended(rule, headings, tests)
    yield from uncaused(root, alerts)
    for heading in sorted(headings - alerts):
        yield f"runbooks.md: {heading} is no alert"

    for path in dashboards(root):
        for panel in panels(path):
            where = f"{path.name}: {panel['title']}"
            for target in panel.get("targets", []):
                yield from unknown(where, target["expr"], known)
                for name in set(re.findall(r"\bearshot:[\w:]+", target["expr"])) - recorded:
                    yield f"{where}: nothing records {name}"
            for link in panel.get("links", []):
                alert = re.fullmatch(r"Runbook: (\w+)", link["title"])
                if alert and alert[1] not in alerts:
                    yield f"{where}: {alert[1]} is no alert"


def uncaused(root, alerts):
    caused = {name for path in (root / "crates").rglob("*.rs") for name in CAUSE.findall(path.read_text(encoding="utf-8"))}
    left_out = yaml.safe_load((root / ".ci/deployment-checks/alerts_without_cause.yaml").read_text(encoding="utf-8"))
    for name in sorted(alerts - caused - left_out.keys()):
        yield f"{name}: no test makes its cause, see test_support::Alert"
    for name in sorted((caused & left_out.keys()) | (left_out.keys() - alerts)):
        yield f"alerts_without_cause.yaml: {name} has a test, or is no alert"


def dashboards(root):
    return sorted((root / "helm/files/dashboards").glob("*.json"))


def panels(path):
    return json.loads(path.read_text(encoding="utf-8"))["panels"]


def unknown(where, expression, known):
    # Names of labels may look like names of metrics, `http_response_status_code` say.
    for name in sorted(set(NAME.findall(LABELS.sub(" ", expression)))):
        if name not in known and re.sub(r"_(bucket|sum|count)$", "", name) not in known:
            yield f"{where}: {name} is not in docs/operations/metrics.md"


def unattended(rule, headings, tests):
    name = rule["alert"]
    if name not in headings or not rule["annotations"]["runbook_url"].endswith("#" + name.lower()):
        yield f"{name} has no runbook"
    for case in ("fires", "stays calm"):
        if f"name: {name} {case}" not in tests:
            yield f"{name}: no test of that it {case}"
    if not rule.get("for") or rule["labels"].get("severity") not in ("page", "ticket"):
        yield f"{name} lacks `for`, or a severity of page or ticket"
