"""The services' own word on a configuration: `--check-config`, with secrets in another folder."""

import os
import pathlib
import subprocess
import tempfile
import tomllib

SERVICES = ("api-gateway", "manager-compiler", "scanner", "webhook-dispatcher")
AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUSqLYpHJtUX1lMryB70tCD2ZqOiEwCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTI3MDgzMzQ5WhgPMjEyNjExMDMwODMzNDla
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1fp7DTa6
D3Yiya1eW6natUAX/VlmN+j6brBXZv0UyS5MYKu2YYsOCqaWmLZ2iLkr5CcQEYvD
i3R77+nccVuLKaNTMFEwHQYDVR0OBBYEFINTH9mKSwkWSquEfoTXK2HdO/IoMB8G
A1UdIwQYMBaAFINTH9mKSwkWSquEfoTXK2HdO/IoMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgIgakI2rHaLdXK54RYnkjL94b/86qorrf6MCmm/Kx
D/UCIQCtS3ZabY4uAZkgabq6T8Ovra0dJ4fkEQOLe7HP+47mgw==
-----END CERTIFICATE-----
"""
SAMPLES = {
    "authority": AUTHORITY,
    "database": "postgres://earshot:x@database.internal/earshot",
    "bus": "amqps://earshot:x@rabbitmq.internal/earshot",
    "proxy": "http://proxy.internal:3128",
    "keys": "2026-11:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}


def refused(root, service, configuration, folder, files, environment=None):
    """What is wrong with the text of a TOML file that names `files`, each like a sample, in `folder`."""
    tomllib.loads(configuration)
    own = {key: value for key, value in os.environ.items() if not key.startswith("EARSHOT_")}
    with tempfile.TemporaryDirectory() as home:
        for name, sample in files.items():
            path = pathlib.Path(home, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(SAMPLES.get(sample, "x"), encoding="utf-8")
        path = pathlib.Path(home, "earshot.toml")
        path.write_text(configuration.replace(folder, home), encoding="utf-8")
        given = {key: str(value).replace(folder, home) for key, value in (environment or {}).items()}
        words = [root / "target/debug" / service, "--config", path, "--check-config"]
        result = subprocess.run(words, env=own | given, capture_output=True, text=True, check=False)
    if result.returncode:
        yield f"{service} refuses its configuration: {result.stderr.strip()}"
