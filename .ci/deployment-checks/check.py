"""All checks of what Earshot is deployed with; prints what is wrong, and ends with 1 where anything is."""

import pathlib
import subprocess
import sys
import tempfile
import tomllib

import yaml

import chart
import compose
import metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(name, *words, cwd=ROOT):
    """Problems of a program that tells by its exit code."""
    result = subprocess.run([name, *words], cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode:
        yield f"{name} {words[0]}: {(result.stdout + result.stderr).strip()}"


def values_table():
    return command(sys.executable, ".ci/deployment-checks/values_table.py", "--check")


def dockerfile():
    yield from command("hadolint", "--no-color", "--failure-threshold", "warning", "deploy/Dockerfile")
    lines = [line.split() for line in (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").splitlines()]
    copied = {source for word, *rest in filter(None, lines) if word == "COPY" and "--from" not in rest[0] for source in rest[:-1]}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    for source in sorted(copied):
        # Let in itself, below a folder that is, or with something below it that is.
        path = f"{source.rstrip('/')}/"
        if not any(path.startswith(f"{one}/") or f"{one}/".startswith(path) for one in let_in):
            yield f"copies {source}, which .dockerignore keeps out"
    # Cargo reads it, and a build without it is another one.
    if ".cargo" not in copied:
        yield "does not copy .cargo, which has the settings of the build"
    build = tomllib.loads((ROOT / ".cargo/config.toml").read_text(encoding="utf-8"))["env"]
    for target in ("GNU", "MUSL"):
        # Of 64 KiB, as a power of two. jemalloc aborts on a kernel with larger pages than it was built for.
        if build.get(f"AARCH64_UNKNOWN_LINUX_{target}_JEMALLOC_SYS_WITH_LG_PAGE") != "16":
            yield f".cargo/config.toml: jemalloc for arm64 ({target}) does not support pages of 64 KiB"


def queries():
    """Dashboards' queries, as PromQL has them."""
    panels = {f"{path.stem}:{panel['id']}": panel for path in metrics.dashboards(ROOT) for panel in metrics.panels(path)}
    records = [
        {"record": f"panel:{name}:{target['refId']}", "expr": target["expr"].replace("$__rate_interval", "5m")}
        for name, panel in panels.items()
        for target in panel.get("targets", [])
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}, file)
        file.flush()
        yield from command("promtool", "check", "rules", file.name)


def rules():
    folder = ROOT / "deploy/prometheus"
    yield from command("promtool", "check", "rules", "earshot.rules.yaml", cwd=folder)
    for test in sorted(folder.glob("*_test.yaml")):
        yield from command("promtool", "test", "rules", test.name, cwd=folder)


CHECKS = {
    "chart: renders, validates, is confined; services accept its configuration": chart.problems,
    "chart: table of values": values_table,
    "one version everywhere": chart.version_problems,
    "composition": compose.problems,
    "Dockerfile, by hadolint": dockerfile,
    "alerts, by promtool": rules,
    "dashboards' queries, by promtool": queries,
    "queries name metrics that are documented; alerts have runbooks and tests": metrics.problems,
}


def main():
    failed = False
    for name, check in CHECKS.items():
        found = list(check(ROOT) if check.__code__.co_argcount else check())
        print(f"{'FAILED' if found else 'ok'}  {name}")
        for problem in found:
            failed = True
            print(f"    {problem}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
