"""Folds of whole customers, the linear base of today, and the figures."""

import numpy as np
from scipy.optimize import minimize

GOALS = {"SALES": 0.65, "COMPETITOR": 0.80, "CRISIS": 0.65}
MAX_WEIGHT = 10.0  # as in `tools/train/src/natural.rs`
RIDGE_OF_SCALE = 0.01  # `layers::CALIBRATION_RIDGE`


def folds(customers, count, seed):
    """Returns the fold of each row; a customer is in one fold, and large ones are spread."""
    names, sizes = np.unique(customers, return_counts=True)
    random = np.random.default_rng(seed)
    order = np.argsort(-sizes + random.random(len(sizes)) * sizes.mean())
    of = {}
    for start in range(0, len(order), count):
        part = order[start : start + count]
        for fold, at in zip(random.permutation(count), part):
            of[names[at]] = fold
    return np.array([of[name] for name in customers])


def logistic(x, y, weight, ridge, bounds=None):
    """Fits bias and weights; `ridge` is per sum of weights, as `solve::ridge` has it."""
    x1 = np.hstack([np.ones((len(x), 1)), x])
    strength = np.concatenate([[0.0], np.broadcast_to(ridge, x.shape[1]).astype(float)])

    def loss(w):
        z = x1 @ w
        value = (weight * (np.logaddexp(0, z) - y * z)).sum() + 0.5 * (strength * w * w).sum()
        slope = x1.T @ (weight * (1 / (1 + np.exp(-np.clip(z, -35, 35))) - y)) + strength * w
        return value, slope

    limits = None if bounds is None else [(None, None), *bounds]
    return minimize(loss, np.zeros(x1.shape[1]), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 500}).x


def platt(sums, rows):
    """Returns offset and factor that turn sums of unseen customers into logits of probabilities."""
    weight = np.minimum(rows["posts"], MAX_WEIGHT)
    return logistic(sums[:, None], rows["label"] > 0, weight, RIDGE_OF_SCALE)


def figures(rows, score, total, goal):
    """AP and precision at the goal's recall by weight, each with the mean over customers.

    `total` is the number of relevant posts per customer, found as candidates or not.
    """
    weight = np.minimum(rows["posts"], MAX_WEIGHT)
    relevant = rows["label"] > 0
    all_relevant = sum(total.values())

    def curve(index, count):
        order = index[np.argsort(-score[index], kind="stable")]
        right = relevant[order]
        precision = np.cumsum(weight[order] * right) / np.maximum(np.cumsum(weight[order]), 1e-9)
        return order, precision, np.cumsum(right) / max(count, 1)

    order, precision, recall = curve(np.arange(len(score)), all_relevant)
    ap = precision[relevant[order]].sum() / all_relevant
    at = np.searchsorted(recall, goal)
    reached = at < len(order)
    threshold = score[order[at]] if reached else -np.inf
    aps, precisions, recalls = [], [], []
    for customer, count in total.items():
        index = np.flatnonzero(rows["customer"] == customer)
        if count >= 5:
            o, p, r = curve(index, count)
            aps.append(p[relevant[o]].sum() / count)
        kept = index[score[index] >= threshold]
        if len(kept) >= 5:
            precisions.append((weight[kept] * relevant[kept]).sum() / weight[kept].sum())
        if count >= 5:
            recalls.append(relevant[kept].sum() / count)
    return {
        "AP": ap, "P@R": precision[at] if reached else np.nan, "mean AP": np.mean(aps),
        "mean P": np.mean(precisions), "mean R": np.mean(recalls),
    }
