"""record.py HEAD PAIRS: judges the posts in PAIRS for its customers, and adds what the crate `reader` must find as well.

PAIRS is `crates/reader/tests/pairs.json`: invented posts, customers, and a row per pair.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

from data import FOCI
from features import sources
from likeness import Likeness
from vectors import DIMENSIONS, Reader

HEADER = 40


def parts(file):
    body = Path(file).read_bytes()[HEADER:]
    while body:
        (length,) = struct.unpack_from("<I", body)
        yield body[4 : 4 + length]
        body = body[4 + length :]


def main(head, file):
    given = json.loads(Path(file).read_text())
    names, layers = sources()[1], np.frombuffer(list(parts(head))[3], "<f4").astype(float)
    posts = {str(at): (post["title"], post["text"]) for at, post in enumerate(given["posts"])}
    likeness = Likeness(Reader(), posts, {str(at): (one["brief"], one["offers"]) for at, one in enumerate(given["customers"])})
    random, rows = np.random.default_rng(1), []
    for at, customer in enumerate(given["customers"]):
        columns, of_likeness = likeness.columns(np.full(len(posts), str(at)), np.array(list(posts)))
        size = 1 + len(names) + len(of_likeness) + DIMENSIONS
        layer = layers[size * FOCI.index(customer["focus"]) :][:size]
        for post, like in zip(posts, columns):
            # A few numbers at random: their sum must not hide the rest.
            evidence = np.where(random.random(len(names)) < 0.1, random.random(len(names)).round(2), 0.0)
            about = likeness.about(customer["focus"], post, customer["names"])
            total = layer @ np.concatenate([[1.0], evidence, like, about])
            rows.append({"customer": at, "post": int(post), "evidence": evidence.tolist(),
                         "likeness": like.round(4).tolist(), "logit": round(total, 3)})
    lines = [json.dumps(row) for row in rows]
    tail = '"pairs": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    text = json.dumps({"posts": given["posts"], "customers": given["customers"]}, indent=1, ensure_ascii=False)
    Path(file).write_text(text.removesuffix("\n}") + ",\n " + tail)


if __name__ == "__main__":
    main(*sys.argv[1:])
