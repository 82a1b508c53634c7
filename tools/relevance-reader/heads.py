"""Scores of pairs by models that have seen neither the customer nor the post."""

import numpy as np

from features import bounds
from measure import logistic

RIDGE = {"SALES": 33.0, "COMPETITOR": 150.0, "CRISIS": 100.0}  # `layers::strength`
LACKS_OFFER = -0.8


def weights(rows):
    return np.minimum(rows["posts"], 50) ** 0.3


def may_train(rows):
    """Rows that a layer which ships may learn from: the licence of Hacker News posts is unclear."""
    return ~np.char.startswith(rows["post"], "hn_")


def train_rows(rows, fold, of):
    """Rows of other folds whose posts are not in this fold either."""
    test = set(rows["post"][fold == of])
    return may_train(rows) & (fold != of) & ~np.array([post in test for post in rows["post"]])


def scaled(x, train, weight):
    mean = np.average(x[train], axis=0, weights=weight[train])
    scale = np.sqrt(np.average((x[train] - mean) ** 2, axis=0, weights=weight[train])) + 1e-6
    return (x - mean) / scale


def linear(focus, rows, fold, extra=None, ridge=None):
    """Today's verdict, fitted again without the fold, with `extra` columns beside the evidence."""
    names = rows["names"]
    x, limits = rows["evidence"], bounds(focus, names)
    strength = np.full(x.shape[1], RIDGE[focus])
    if extra is not None:
        x = np.hstack([x, extra])
        limits = limits + [(None, None)] * extra.shape[1]
        strength = np.concatenate([strength, np.full(extra.shape[1], ridge if ridge is not None else RIDGE[focus])])
    y, w, out = rows["label"] > 0, weights(rows), np.zeros(len(x))
    for of in np.unique(fold):
        train, test = train_rows(rows, fold, of), fold == of
        z = scaled(x, train, w)
        found = logistic(z[train], y[train], w[train], strength, limits)
        out[test] = found[0] + z[test] @ found[1:]
    if focus == "SALES":
        out += LACKS_OFFER * rows["evidence"][:, names.index("lacks_offer")]
    return out


def free(rows, fold, x, ridge):
    """A logistic head over `x` alone."""
    y, w, out = rows["label"] > 0, weights(rows), np.zeros(len(x))
    for of in np.unique(fold):
        train, test = train_rows(rows, fold, of), fold == of
        z = scaled(x, train, w)
        found = logistic(z[train], y[train], w[train], ridge)
        out[test] = found[0] + z[test] @ found[1:]
    return out
