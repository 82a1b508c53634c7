"""The chart: every value set of helm/ci is linted, rendered twice, validated strictly, and held to what we promise."""

import math
import re
import tomllib

import helm_python as helm
import kubernetes_validate
import yaml

from services import SERVICES, refused

# The oldest Kubernetes that Chart.yaml names, and the newest that the validator knows.
KUBERNETES = ("1.30", kubernetes_validate.latest_version())
# Custom resources, which Kubernetes itself has no schema for.
CUSTOM = {"ScaledObject", "TriggerAuthentication", "ServiceMonitor", "PrometheusRule", "HTTPRoute", "ExternalSecret"}
SECRETS = "/etc/earshot/secrets"
# Which of these the mounted files are like; others may hold anything.
SECRET_FILES = {
    "database/url": "database",
    "rabbitmq/url": "bus",
    "encryption/keys": "keys",
    "model/api-key": "",
    "reddit/client-secret": "",
    "oidc/client-secret": "",
    "smtp/password": "",
    "proxy/url": "proxy",
    "company-ca/ca.crt": "authority",
    "store/database-url": "database",
    "store/bus-url": "bus",
    "store/encryption-keys": "keys",
}
# What must not be rendered, and a word of the reason.
REFUSED = (
    ({"noSuchValue": True}, "noSuchValue"),
    ({"components": {"scanner": {"replica": 2}}}, "replica"),
    ({"components": {"manager-compiler": {"config": {"compiler": {"model": {"api_key": "x"}}}}}}, "api_key_file"),
    ({"defaults": {"config": {"platforms": [{"name": "x", "kind": "x", "token": "x"}]}}}, "token_file"),
    ({"defaults": {"config": {"outbound": {"proxy": "http://me:secret@proxy.internal"}}}}, "password"),
    ({"ingress": {"enabled": True, "hosts": ["a.example"]}}, "tlsSecretName"),
    ({"ingress": {"enabled": True}, "httpRoute": {"enabled": True}}, "both"),
    ({"evaluation": {"enabled": True}}, "evaluation.password"),
    ({"database": {"existingSecret": ""}}, "database.existingSecret"),
    ({"migrations": {"serviceAccount": {"create": False}}}, "migrations.serviceAccount.name"),
    ({"components": {"scanner": {"terminationGracePeriodSeconds": 8, "preStopSleepSeconds": 5}}}, "terminationGracePeriodSeconds"),
    ({"components": {"scanner": {"autoscaling": {"type": "keda"}}}}, "keda.prometheus.serverAddress"),
)


def problems(root):
    folder = root / "helm"
    chart = helm.Chart.load(str(folder))
    sets = {"defaults": {}}
    # chart-testing knows these names alone.
    for path in sorted((folder / "ci").glob("*-values.yaml")):
        sets[path.stem.removesuffix("-values")] = helm.values_from_yaml(path.read_text(encoding="utf-8")) or {}
    for name, values in sets.items():
        for problem in one_set(root, chart, folder, values, PROMISES.get(name)):
            yield f"{name}: {problem}"
    for values, reason in REFUSED:
        try:
            chart.validate_schema(values)
            render(chart, values)
            yield f"accepts {values}"
        except helm.HelmError as error:
            if reason not in str(error):
                yield f"refuses {values} with another reason: {error}"


def one_set(root, chart, folder, values, promise):
    messages = helm.lint(str(folder), values, namespace="here")["messages"]
    yield from (message["error"] for message in messages if message["severity"] >= 2)
    try:
        chart.validate_schema(values)
        files, again = (render(chart, values) for _ in range(2))
    except helm.HelmError as error:
        yield str(error)
        return
    if files != again:
        yield "two renders differ"
    objects = [obj for path, text in files.items() if not path.endswith(".txt") for obj in yaml.safe_load_all(text) if obj]
    for obj in objects:
        name = f"{obj['kind']}/{obj['metadata']['name']}"
        for problem in [*invalid(obj), *unconfined(obj), *opened(obj)]:
            yield f"{name}: {problem}"
    configurations = {
        obj["metadata"]["name"].removeprefix("release-earshot-"): obj["data"]["earshot.toml"]
        for obj in objects
        if obj["kind"] == "ConfigMap" and "earshot.toml" in obj.get("data", {})
    }
    for obj in objects:
        yield from unmounted(obj, configurations)
    yield from promise(objects) if promise else ()
    for service in SERVICES:
        yield from refused(root, service, configurations[service], SECRETS, SECRET_FILES)


def render(chart, values):
    return chart.render(values, name="release", namespace="here", revision=1, is_install=True, is_upgrade=False)


def invalid(obj):
    if obj["kind"] in CUSTOM:
        return
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(obj, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield f"Kubernetes {version}: {error}"


def unmounted(obj, configurations):
    """Files of Secrets that a configuration names and its pod does not have."""
    name = obj["metadata"]["name"].removeprefix("release-earshot-")
    name = "migrate" if name.startswith("migrate") else name
    if obj["kind"] not in ("Deployment", "Job") or name not in configurations:
        return
    pod = obj["spec"]["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {mount["mountPath"] for container in pod["containers"] for mount in container["volumeMounts"] if mount["name"] in volumes}
    for named in sorted(set(re.findall(rf'"({SECRETS}/[^/"]+)/', configurations[name])) - mounts):
        yield f"{obj['kind']}/{name}: reads {named}, which is not mounted"


def pods(objects):
    """(name, spec) of each pod, hooks and tests too."""
    for obj in objects:
        template = obj if obj["kind"] == "Pod" else obj.get("spec", {}).get("template", {})
        if isinstance(template, dict) and "containers" in template.get("spec", {}):
            yield f"{obj['kind']}/{obj['metadata']['name']}", template["spec"]


def opened(obj):
    """A rule of a NetworkPolicy opens all ports where it names none."""
    if obj["kind"] == "NetworkPolicy":
        for rule in obj["spec"]["egress"]:
            if not rule.get("ports"):
                yield f"opens all ports of {rule.get('to', 'everything')}"


def volumes_kept(objects):
    """With another policy the kubelet gives each file to the group at each start, and RabbitMQ refuses a cookie that others can read."""
    claims = [obj for obj in objects if obj["kind"] == "StatefulSet"]
    for obj in claims:
        if obj["spec"]["template"]["spec"]["securityContext"].get("fsGroupChangePolicy") != "OnRootMismatch":
            yield f"StatefulSet/{obj['metadata']['name']}: changes the owners of its files at each start"
    if len(claims) != 2:
        yield f"has {len(claims)} evaluation servers"


def ids_assigned(objects):
    """What `restricted-v2` of OpenShift wants: no id of our own, and DNS on its pods' port."""
    for name, pod in pods(objects):
        for security in [pod["securityContext"], *(container["securityContext"] for container in pod["containers"])]:
            for field in {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"} & security.keys():
                yield f"{name}: sets {field}"
    for obj in objects:
        if obj["kind"] == "NetworkPolicy" and obj["spec"]["egress"]:
            open_ports = {(port["port"], port["protocol"]) for rule in obj["spec"]["egress"] for port in rule["ports"]}
            if not {(5353, "UDP"), (5353, "TCP")} <= open_ports:
                yield f"{obj['metadata']['name']}: cannot ask DNS on port 5353"


def from_csi(objects):
    """The CSI driver makes a Secret when a pod mounts its volume, and deletes it with the last: each pod that reads one mounts it."""
    for name, pod in pods(objects):
        volumes = pod.get("volumes", [])
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
        if any("secret" in volume for volume in volumes) and not any("csi" in volume and volume["name"] in mounted for volume in volumes):
            yield f"{name}: reads a Secret that it does not make the CSI driver make"


def on_openshift(objects):
    yield from ids_assigned(objects)
    yield from from_csi(objects)


def evaluated_on_openshift(objects):
    yield from ids_assigned(objects)
    yield from volumes_kept(objects)


def by_proxy(objects):
    for obj in objects:
        if obj["kind"] == "NetworkPolicy":
            if any("ipBlock" in peer for rule in obj["spec"]["egress"] for peer in rule.get("to", [])):
                yield f"{obj['metadata']['name']}: reaches the internet past the proxy"


def signs_in_and_mails(objects):
    """The gateway reaches the internet for the provider, and the dispatcher the port of the mail server."""
    web = {80, 443}
    wanted = {"api-gateway": web, "manager-compiler": web, "scanner": web, "webhook-dispatcher": web | {2525}}
    for obj in objects:
        if obj["kind"] == "NetworkPolicy":
            rules = [rule for rule in obj["spec"]["egress"] if any("ipBlock" in peer for peer in rule.get("to", []))]
            ports = {port["port"] for rule in rules for port in rule["ports"]}
            if ports != wanted.get(obj["metadata"]["name"].removeprefix("release-earshot-"), set()):
                yield f"{obj['metadata']['name']}: reaches the ports {sorted(ports)} of the internet"


def without_secrets(objects):
    """Secrets are files, and all accounts exist before."""
    for name, pod in pods(objects):
        if any("secret" in volume for volume in pod.get("volumes", [])):
            yield f"{name}: mounts a Secret"
        if pod["serviceAccountName"] not in ("earshot", "release-earshot-helm-test"):
            yield f"{name}: has the account {pod['serviceAccountName']}"
    made = {obj["metadata"]["name"] for obj in objects if obj["kind"] in ("Secret", "ServiceAccount")}
    if made != {"release-earshot-helm-test"}:
        yield f"makes {sorted(made)}"


def by_an_operator(objects):
    """What makes a hook's Secret is a hook of lesser weight, and keeps the Secret when Helm creates it again. Other pods wait."""
    makers = {obj["spec"]["target"]["name"]: obj for obj in objects if obj["kind"] == "ExternalSecret"}
    for obj in objects:
        for name, pod in pods([obj]):
            for secret in {volume["secret"]["secretName"] for volume in pod.get("volumes", []) if "secret" in volume}:
                if secret not in makers:
                    yield f"{name}: nothing makes the Secret {secret}"
                elif hook_weight(obj) < math.inf and hook_weight(obj) <= hook_weight(makers[secret]):
                    yield f"{name}: waits for the Secret {secret}, which is asked for after it"
    for secret, maker in makers.items():
        if hook_weight(maker) < math.inf and maker["spec"]["target"].get("creationPolicy") != "Orphan":
            yield f"the Secret {secret} is gone during each upgrade"


def hook_weight(obj):
    """The weight of a hook before installations and upgrades. All else comes after."""
    annotations = obj["metadata"].get("annotations", {})
    events = set(annotations.get("helm.sh/hook", "").split(","))
    return int(annotations.get("helm.sh/hook-weight", 0)) if {"pre-install", "pre-upgrade"} <= events else math.inf


def listens_on_ipv6(objects):
    for obj in objects:
        text = obj.get("data", {}).get("earshot.toml", "") if obj["kind"] == "ConfigMap" else ""
        for address in re.findall(r'^listen = "(.*):\d+"$', text, re.M):
            if address != "[::]":
                yield f"{obj['metadata']['name']}: listens on {address}"


def on_ipv6(objects):
    yield from listens_on_ipv6(objects)
    for obj in objects:
        if obj["kind"] == "NetworkPolicy":
            blocks = {peer["ipBlock"]["cidr"] for rule in obj["spec"]["egress"] for peer in rule.get("to", []) if "ipBlock" in peer}
            if blocks and "64:ff9b::/96" not in blocks:
                yield f"{obj['metadata']['name']}: cannot reach IPv4 servers by NAT64"


def on_both(objects):
    yield from listens_on_ipv6(objects)
    for obj in objects:
        if obj["kind"] == "Service" and obj["metadata"]["name"] == "release-earshot-api-gateway" and obj["spec"].get("ipFamilies") != ["IPv6", "IPv4"]:
            yield "the API's Service does not have both families"


# What the set of values of this name is there for.
PROMISES = {
    "openshift": on_openshift,
    "openshift-evaluation": evaluated_on_openshift,
    "evaluation": volumes_kept,
    "csi-files": without_secrets,
    "external-secrets": by_an_operator,
    "ipv6": on_ipv6,
    "dual-stack": on_both,
    "proxy": by_proxy,
    "sign-in-and-mail": signs_in_and_mails,
}


# Not checkov of PyPI: it takes 290 MB, and all that version 3.3.30 says of these renders is meant so: no namespace, no CPU limit, no
# digest, IfNotPresent, hooks without probes, ids that OpenShift assigns, and the evaluation's passwords in variables. Nor kubeconform
# and kube-score, which Debian does not have: kubernetes_validate knows the schemas of the first, and the pods' part of the second's
# advice is below.
def unconfined(obj):
    """The `restricted` profile of Kubernetes, and a read-only root."""
    spec = obj if obj["kind"] == "Pod" else obj.get("spec", {}).get("template", {})
    pod = spec.get("spec") if isinstance(spec, dict) else None
    if not pod or "containers" not in pod:
        return
    security = pod.get("securityContext", {})
    if not security.get("runAsNonRoot") or security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "the pod may run as root, or without a seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield "the pod gets a token of the API server"
    for container in pod["containers"]:
        own = container.get("securityContext", {})
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        if own != wanted:
            yield f"container {container['name']} is not confined"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"container {container['name']} has no memory limit"


def version_problems(root):
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    version = manifest["workspace"]["package"]["version"]
    meta = yaml.safe_load((root / "helm/Chart.yaml").read_text(encoding="utf-8"))
    for key in ("version", "appVersion"):
        if meta[key] != version:
            yield f"helm/Chart.yaml: {key} is {meta[key]}, Cargo.toml has {version}"
    composition = (root / "docker-compose.yml").read_text(encoding="utf-8")
    for tag in set(re.findall(r"image: earshot(?:-demo)?:(\S+)", composition)) - {version}:
        yield f"docker-compose.yml: the image's tag is {tag}, Cargo.toml has {version}"
    if f"## {version}" not in (root / "helm/UPGRADING.md").read_text(encoding="utf-8"):
        yield f"helm/UPGRADING.md has no section {version}"
