"""Verdicts: today's evidence with further columns."""

import numpy as np

from features import bounds
from measure import logistic

RIDGE = {"SALES": 33.0, "COMPETITOR": 150.0, "CRISIS": 100.0}  # `layers::strength`
LACKS_OFFER = -0.8
RIDGE_OF_LIKENESS = 60.0
RIDGE_OF_POST = {"SALES": 600.0, "COMPETITOR": 2_000.0, "CRISIS": 800.0}


def weights(rows):
    return np.minimum(rows["posts"], 50) ** 0.3


def may_train(rows):
    """Rows that a layer which ships may learn from: the licence of Hacker News posts is unclear."""
    return ~np.char.startswith(rows["post"], "hn_")


def train_rows(rows, fold, of):
    """Rows of other folds whose posts are not in this fold either."""
    test = set(rows["post"][fold == of])
    return may_train(rows) & (fold != of) & ~np.array([post in test for post in rows["post"]])


def layer(rows, x, ridge, limits, train):
    """Fits bias and weights to some rows; the ridge is over columns of equal scale."""
    x, y, weight = x[train], rows["label"][train] > 0, weights(rows)[train]
    mean = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight)) + 1e-6
    found = logistic((x - mean) / scale, y, weight, ridge, limits)
    return found[0] - (found[1:] * mean / scale).sum(), found[1:] / scale


class Verdict:
    """Today's verdict, fitted again with `extra` columns beside the evidence."""

    def __init__(self, focus, rows, extra, ridge):
        names = rows["names"]
        self.rows = rows
        self.x = np.hstack([rows["evidence"], extra])
        self.ridge = np.concatenate([np.full(len(names), RIDGE[focus]), ridge])
        self.limits = bounds(focus, names) + [(None, None)] * extra.shape[1]
        self.fixed = {names.index("lacks_offer"): LACKS_OFFER} if focus == "SALES" else {}

    def fit(self, train):
        bias, found = layer(self.rows, self.x, self.ridge, self.limits, train)
        for at, weight in self.fixed.items():
            found[at] = weight
        return bias, found

    def unseen(self, fold):
        """Returns the sum of each row, by a verdict that has seen neither its customer nor its post."""
        out = np.zeros(len(self.x))
        for of in np.unique(fold):
            bias, found = self.fit(train_rows(self.rows, fold, of))
            out[fold == of] = bias + self.x[fold == of] @ found
        return out
