"""The composition: by the Compose specification, and held to what we promise."""

import json
import pathlib
import re
import subprocess
import tempfile

import compose_spec
import yaml

from services import SERVICES, refused

# Images of others, which are confined as far as they bear it.
THEIRS = {"postgres", "rabbitmq", "prometheus", "tempo", "grafana", "otel-collector"}
SECRET = re.compile(r"(PASSWORD|SECRET|TOKEN|KEYS?)$")


def problems(root):
    document = yaml.safe_load((root / "docker-compose.yml").read_text(encoding="utf-8"))
    try:
        compose_spec.PyCompose.from_json(json.dumps(document)).validate()
    except Exception as error:  # the parser raises plain ValueErrors of its own
        yield f"not a Compose file: {error}"
        return
    for name, service in document["services"].items():
        for problem in one_service(root, name, service, document):
            yield f"{name}: {problem}"
    images = [service["image"] for service in document["services"].values() if "build" in service]
    for image in sorted({image for image in images if images.count(image) > 1}):
        yield f"several services build {image}, which fails on some engines"
    yield from broker_definitions(root)
    configuration = (root / "deploy/compose/earshot.toml").read_text(encoding="utf-8")
    for env_file in (None, "demo.env", "observability.env"):
        variables = read_env(root / "deploy/compose" / env_file) if env_file else {}
        for name in SERVICES:
            environment = {
                key: re.sub(r"\$\{(\w+):-(.*)\}", lambda match: variables.get(match[1], match[2]), value)
                for key, value in document["services"][name]["environment"].items()
            }
            files = {"database-url": "database", "bus-url": "bus", "encryption-keys": "keys"}
            yield from refused(root, name, configuration, "/run/earshot", files, environment)


def read_env(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def one_service(root, name, service, document):
    if "build" not in service and not re.search(r":[\w.-]*\d", service["image"]):
        yield f"the image {service['image']} has no fixed tag"
    if name not in THEIRS:
        confined = service.get("read_only") and service.get("cap_drop") == ["ALL"]
        if not confined or "no-new-privileges:true" not in service.get("security_opt", []):
            yield "is not confined"
    for key, value in (service.get("environment") or {}).items():
        if SECRET.search(key) and value:
            yield f"holds a secret in its environment: {key}"
    for other, how in (service.get("depends_on") or {}).items():
        if how["condition"] == "service_healthy" and "healthcheck" not in document["services"][other]:
            yield f"waits for {other} to be healthy, which has no health check"
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            if not (root / source).exists():
                yield f"mounts {source}, which does not exist"
            if "z" not in volume.split(":")[-1].split(","):
                yield f"mounts {source}, which SELinux keeps from it without `z`"
            if source.endswith(".sh") and "eol: lf" not in attribute(root, source):
                yield f"mounts {source}, which has CRLF in a checkout on Windows"
        elif source not in document["volumes"]:
            yield f"mounts the volume {source}, which is not declared"
    # Root's would make the broker's cookie where it is first, and the broker may not read that.
    if name == "rabbitmq" and service["healthcheck"]["test"][:3] != ["CMD", "gosu", "rabbitmq"]:
        yield "has a health check that does not run as the broker's user"
    if "start_interval" in service.get("healthcheck", {}):
        yield "has a start_interval, which engines before 25 refuse"
    for port in service.get("ports", []):
        if not port.startswith("127.0.0.1:"):
            yield f"publishes {port} beyond this machine"


def attribute(root, path):
    return subprocess.run(["git", "check-attr", "eol", path], cwd=root, capture_output=True, text=True, check=True).stdout


def broker_definitions(root):
    """What `init` makes of the definitions for the broker is JSON, and has a user for every permission."""
    with tempfile.TemporaryDirectory() as home:
        for folder in ("postgres", "rabbitmq", "api-gateway", "manager-compiler", "scanner", "webhook-dispatcher", "operator"):
            pathlib.Path(home, folder).mkdir()
        words = ["sh", root / "deploy/compose/init.sh", home, root / "deploy/rabbitmq"]
        subprocess.run(words, check=True, capture_output=True)
        made = json.loads(pathlib.Path(home, "rabbitmq/definitions.json").read_text(encoding="utf-8"))
    users = {user["name"] for user in made["users"]}
    permitted = {permission["user"] for permission in made["permissions"]}
    if users != permitted:
        yield f"deploy/rabbitmq: users {sorted(users ^ permitted)} have no permissions, or permissions no users"
