"""The judged pairs, their posts and customers, and today's evidence and instructions.

Everything below `DATA` is derived and can be deleted. Reserved posts never leave `posts()`.
"""

import gzip
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JUDGED = ROOT / "crates/compiling/data"
FOLDERS = ("judged", "kept_apart", "checked")
FOCI = ("SALES", "COMPETITOR", "CRISIS")
# Folder of the corpus and of the reserved ids; see README.md.
CORPUS = Path(os.environ.get("CORPUS", "corpus"))
RESERVED = Path(os.environ.get("RESERVED", "reserved_ids.txt"))
DATA = Path(os.environ.get("DATA", "/tmp/relevance-reader"))
FILES = (("reddit_top_2013.jsonl.gz", ""), ("hackernews_2015_2016.jsonl.gz", "hn_"))


def posts():
    """Yields every post of the corpus that is not reserved: id, title, text."""
    reserved = set(RESERVED.read_text().split())
    for file, prefix in FILES:
        with gzip.open(CORPUS / file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                id = f"{prefix}{row['id']}"
                if id not in reserved and str(row["id"]) not in reserved:
                    yield id, row.get("title") or "", row.get("text") or ""


def labels():
    """Returns (customer, focus, post id, label, posts of the feed) of every judged pair."""
    rows = []
    for folder in FOLDERS:
        for line in (JUDGED / folder / "labels.tsv").read_text().splitlines():
            customer, focus, post, label, weight = line.split("\t")
            rows.append((customer, focus, post, int(label), float(weight)))
    return rows


def customers():
    """Returns name, rivals and folder of every customer, by id."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((JUDGED / folder / "customers").glob("*.json")):
            card = json.loads(file.read_text())
            found[card["id"]] = {**card, "folder": folder}
    return found


def _run(example, *arguments):
    command = ["cargo", "run", "-q", "-p", "compiling", "--example", example, "--", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def prepare():
    """Writes the judged posts, evidence and instructions to `DATA`."""
    DATA.mkdir(parents=True, exist_ok=True)
    wanted, judged = {}, {}
    for folder in FOLDERS:
        lines = (JUDGED / folder / "labels.tsv").read_text().splitlines()
        judged[folder] = {line.split("\t")[2] for line in lines}
    for id, title, text in posts():
        if any(id in ids for ids in judged.values()):
            wanted[id] = {"id": id, "source": "", "channel": "", "title": title, "text": text}
    (DATA / "posts.json").write_text(json.dumps(wanted))
    plans, evidence, names = {}, {}, None
    for folder in FOLDERS:
        file = DATA / f"{folder}.jsonl"
        rows = [wanted[id] for id in sorted(judged[folder]) if id in wanted]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        for line in _run("plans", JUDGED / folder / "customers").splitlines():
            customer, focus, instructions = line.split(" ", 2)
            plans[f"{customer} {focus}"] = json.loads(instructions)
        lines = iter(_run("evidence", JUDGED / folder / "customers", file).splitlines())
        names = json.loads(next(lines))
        pairs = {tuple(row[:3]) for row in labels()}
        for line in lines:
            customer, focus, post, values = json.loads(line)
            if (customer, focus, post) in pairs:
                evidence[f"{customer} {focus} {post}"] = values
    (DATA / "plans.json").write_text(json.dumps(plans))
    (DATA / "evidence.json").write_text(json.dumps({"names": names, "rows": evidence}))


if __name__ == "__main__":
    prepare()
