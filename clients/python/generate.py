"""Writes src/earshot_client/types.py from the API's description; with --check, only compares.

The development requirements provide the generator, datamodel-codegen.
"""

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DESCRIPTION = HERE.parent.parent / "crates/api-gateway/openapi.yaml"
TYPES = HERE / "src/earshot_client/types.py"
OPTIONS = """
    --input-file-type openapi --output-model-type typing.TypedDict --target-python-version 3.10
    --enum-field-as-literal all --no-use-closed-typed-dict --strict-nullable --naming-strategy parent-prefixed
    --use-schema-description --use-field-description --disable-timestamp --use-double-quotes --formatters builtin
"""
HEAD = '''"""Types of the API: resources, bodies of requests, and the webhook.

Generated from crates/api-gateway/openapi.yaml by generate.py. Do not edit.
"""

from __future__ import annotations

import sys
from typing import Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypeAlias
else:
    from typing_extensions import NotRequired, TypeAlias
'''


def generate() -> str:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "types.py")
        program = [sys.executable, "-W", "ignore", "-m", "datamodel_code_generator"]
        subprocess.run(
            [*program, *OPTIONS.split(), "--input", str(DESCRIPTION), "--output", str(output)], check=True
        )
        text = output.read_text()
    # The generator's own imports need Python 3.10.
    body = text[re.search(r"^\w+: TypeAlias", text, re.MULTILINE).start() :]  # type: ignore[union-attr]
    body = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
    return HEAD + "\n" + body.replace("NamespaceFeedNoticeRequestBody", "WebhookEvent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not up to date")
    check: bool = parser.parse_args().check
    new, old = generate(), TYPES.read_text() if TYPES.exists() else ""
    if not check:
        TYPES.write_text(new)
    elif new != old:
        sys.stderr.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "committed", "generated"))
        sys.exit(f"{TYPES} is not up to date: run `.ci/clients generate`")


if __name__ == "__main__":
    main()
