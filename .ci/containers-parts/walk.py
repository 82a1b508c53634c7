"""Walks the composition as its reader does: services are ready, a Manager watches the demo's page, and a post reaches the receiver.

    walk.py PODMAN KEY
"""

import json
import subprocess
import sys
import time
import urllib.request

PODMAN, KEY = sys.argv[1:]
SERVICES = ("api-gateway", "manager-compiler", "scanner", "webhook-dispatcher")
PATIENCE = 180


def podman(*words):
    result = subprocess.run([PODMAN, *words], capture_output=True, text=True, check=False)
    return result.returncode, (result.stdout + result.stderr).strip()


def name(service):
    return f"earshot_{service}_1"


def wait(what, holds):
    """Returns what `holds` returns, as soon as that is true."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        if time.monotonic() > end:
            for service in (*SERVICES, "receiver", "rabbitmq", "postgres"):
                print(f"--- {service}\n{podman('logs', '--tail', '15', name(service))[1]}")
            sys.exit(f"not in {PATIENCE} s: {what}")
        time.sleep(0.5)
    print(f"ok: {what}", flush=True)
    return found


def address(service):
    networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return podman("inspect", name(service), "--format", networks)[1]


def send(url, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as answer:
        return json.loads(answer.read() or "null")


def main():
    # By the health checks of the composition itself: a program of the image, and those of the servers as their users.
    for service in ("postgres", "rabbitmq", *SERVICES):
        wait(f"{service} is healthy", lambda service=service: podman("healthcheck", "run", name(service))[0] == 0)
    for service in SERVICES:
        code, user = podman("inspect", name(service), "--format", "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}}")
        if (code, user) != (0, "65532:65532 true"):
            sys.exit(f"{service} is not confined: {user}")
    api = f"http://{address('api-gateway')}:8080/v1"
    namespace = send(f"{api}/namespaces", {"nickname": "Larkspur"})["name"]
    connection = {"nickname": "receiver", "type": "HTTP_CONNECTION", "url": "http://receiver:8000/", "method": "POST"}
    connection = send(f"{api}/{namespace}/connections", connection)["name"]
    manager = {
        "nickname": "who looks for a backup?",
        "type": "FEED_MANAGER",
        "enable": True,
        "source": {"type": "FORUM"},
        "input": {"type": "STRUCTURED", "urls": ["http://platform-simulator:9099/demo/"], "focus": {"type": "SALES"}},
        "notices": [{"type": "HTTP_REQUEST", "connection": connection}],
    }
    manager = send(f"{api}/{namespace}/managers", manager)["name"]
    wait("the Manager is applied", lambda: send(f"{api}/{manager}")["state"] == "APPLIED")
    post = {
        "platform": "hackernews",
        "author": "pat",
        "title": "Ask HN: Which backup software for a small team?",
        "text": "Eight laptops and a NAS. Looking for encrypted offsite backups, with restores that somebody tests.",
    }
    send(f"http://{address('platform-simulator')}:9099/control/posts", [post])

    def scan():
        scans = send(f"{api}/{manager}/scans")["scans"]
        return next((scan["name"] for scan in scans if scan["post"].get("title") == post["title"]), None)

    found = wait("the post is a Scan", scan)
    wait("the receiver has it", lambda: f"got SCAN {found}" in podman("logs", name("receiver"))[1])


main()
