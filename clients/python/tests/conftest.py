"""Runs the product that the tests use: `earshot dev --demo`, with data of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from earshot_client import Earshot

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 120


class Product(NamedTuple):
    url: str
    key: str
    client: Earshot


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    binary = os.environ.get("EARSHOT_BIN", str(ROOT / "target/debug/earshot"))
    # Without these variables `earshot dev` starts a private server.
    inherited = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "AMQP_URL")}
    environment = {**inherited, "EARSHOT_LOG__FILTER": "warn", "EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE": "100000"}
    with tempfile.TemporaryDirectory() as home, open(Path(home, "log"), "w+") as log:
        listen = ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]
        command = [binary, "dev", "--demo", "--data-dir", f"{home}/data", *listen]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        timer = threading.Timer(START_SECONDS, child.kill)
        timer.start()
        try:
            assert child.stdout is not None
            ready = child.stdout.readline()
            assert ready.startswith("earshot ready"), Path(home, "log").read_text()
            told = dict(word.split("=", 1) for word in ready.split()[2:])
            yield Product(told["api"], told["key"], Earshot(told["api"], told["key"]))
        finally:
            timer.cancel()
            child.terminate()
            child.wait(60)


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    status: int
    body: object = {}
    headers: dict[str, str] = {}


class Server(NamedTuple):
    url: str
    received: list[Received]


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts a server that gives these answers, one after the other, and the last one from then on."""
    servers: list[ThreadingHTTPServer] = []

    def start(*answers: Answer) -> Server:
        received: list[Received] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                received.append(Received(self.command, self.path, headers, body))
                answer = answers[min(len(received), len(answers)) - 1]
                content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Server(f"http://127.0.0.1:{server.server_port}", received)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
