"""The table of values in helm/README.md, made of the comments in helm/values.yaml.

    values_table.py          writes it
    values_table.py --check  only compares
"""

import json
import pathlib
import re
import sys

import yaml

HELM = pathlib.Path(__file__).resolve().parents[2] / "helm"
BEGIN, END = "<!-- values: begin -->", "<!-- values: end -->"


def documented(lines):
    """(path, comment) of each key that has a comment directly above."""
    comment, parents = [], []
    for line in lines:
        if match := re.match(r"( *)# ?(.*)", line):
            comment.append(match[2])
        elif match := re.match(r"( *)([A-Za-z][\w-]*):", line):
            indent = len(match[1])
            parents = [(at, key) for at, key in parents if at < indent] + [(indent, match[2])]
            if comment:
                yield [key for _, key in parents], " ".join(comment)
            comment = []
        else:
            comment = []


def row(path, comment, values):
    value = values
    for key in path:
        value = value[key]
    is_section = isinstance(value, dict) and value
    default = "" if is_section else f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")
    if len(default) > 70:
        default = "see values.yaml"
    return f"| `{'.'.join(path)}` | {default} | {comment.replace('|', chr(92) + '|')} |"


def table():
    text = (HELM / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    rows = [row(path, comment, values) for path, comment in documented(text.splitlines())]
    return "\n".join(["| Key | Default | |", "|---|---|---|", *rows])


def main():
    readme = HELM / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if "--check" in sys.argv and wanted != text:
        sys.exit("helm/README.md is not what helm/values.yaml says: run .ci/deployment values")
    readme.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
