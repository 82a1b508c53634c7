"""The judged pairs as arrays, with today's evidence."""

import json
import re
from functools import cache

import numpy as np

from data import DATA, ROOT, labels

SIGNS = (ROOT / "tools/train/src/signs.rs").read_text()


def bounds(focus, names):
    """The signs that `signs.rs` fixes."""
    lists = [re.sub(r"\\\n\s*", "", found).split() for found in re.findall(r'"((?:[a-z_]+[\s\\]+)+[a-z_]+)"', SIGNS)]
    at = ("SALES", "COMPETITOR", "CRISIS").index(focus)
    plus, minus = lists[at], lists[3 + at]
    return [
        (0, 0) if name == "lacks_offer" else (0 if name in plus else None, 0 if name in minus else None) for name in names
    ]


@cache
def sources():
    posts = json.loads((DATA / "posts.json").read_text())
    evidence = json.loads((DATA / "evidence.json").read_text())
    plans = json.loads((DATA / "plans.json").read_text())
    return posts, evidence["names"], evidence["rows"], plans


def rows(focus):
    """Returns the candidates of a focus as arrays, and the number of relevant posts per customer."""
    posts, names, evidence, _ = sources()
    found, total = [], {}
    for customer, of, post, label, weight in labels():
        if of != focus or post not in posts:
            continue
        total[customer] = total.get(customer, 0) + (label > 0)
        values = evidence.get(f"{customer} {focus} {post}")
        if values is not None:
            found.append((customer, post, label, weight, values))
    customer, post, label, weight, values = zip(*found)
    return {
        "customer": np.array(customer), "post": np.array(post), "label": np.array(label),
        "posts": np.array(weight), "evidence": np.array(values), "names": names,
    }, total
