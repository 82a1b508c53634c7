"""Scores of judged pairs, by verdicts and scales that have not seen the customer."""

import numpy as np

from features import rows
from heads import RIDGE_OF_LIKENESS, RIDGE_OF_POST, Verdict
from likeness import columns, of_judged
from measure import MAX_WEIGHT, folds, platt


def logit(score):
    score = np.clip(score, 1e-6, 1 - 1e-6)
    return np.log(score / (1 - score))


def probability(logits):
    return 1 / (1 + np.exp(-np.clip(logits, -35, 35)))


class Pairs:
    """The candidates of a focus, each with a label, a weight, and scores by words alone and with the reader."""

    def __init__(self, reader, focus, seeds=3):
        self.found, self.total = rows(focus)
        self.customer, self.posts = self.found["customer"], self.found["posts"]
        self.relevant = self.found["label"] > 0
        self.weight = np.minimum(self.posts, MAX_WEIGHT)
        read = of_judged(reader, self.found["post"])
        self.likeness, _, about = columns(read, focus, self.found)
        self.vector = np.stack([read.whole[read.at[post]] for post in self.found["post"]])
        nothing = np.zeros((len(about), 0))
        ridge = [RIDGE_OF_LIKENESS] * self.likeness.shape[1] + [RIDGE_OF_POST[focus]] * about.shape[1]
        words = Verdict(focus, self.found, nothing, np.zeros(0))
        both = Verdict(focus, self.found, np.hstack([self.likeness, about]), np.array(ridge))
        self.folds = [folds(self.customer, 5, seed) for seed in range(seeds)]
        self.words = [self.scaled(words.unseen(fold), fold) for fold in self.folds]
        self.both = [self.scaled(both.unseen(fold), fold) for fold in self.folds]

    def scaled(self, sums, fold):
        """Probabilities, scaled by the customers of other folds."""
        out = np.zeros(len(sums))
        for of in np.unique(fold):
            train = {name: self.found[name][fold != of] for name in ("label", "posts")}
            offset, factor = platt(sums[fold != of], train)
            out[fold == of] = probability(offset + factor * sums[fold == of])
        return out

    def at_recall(self, goal, kept):
        """Figures where `kept(threshold)` first reaches the recall, or of all that it keeps if it never does."""
        count = sum(self.total.values())
        low, high, best = 0.0, 1.0, kept(0.0)
        for _ in range(40 if self.relevant[best].sum() >= goal * count else 0):
            middle = (low + high) / 2
            mask = kept(middle)
            if self.relevant[mask].sum() >= goal * count:
                low, best = middle, mask
            else:
                high = middle
        return self.figures(best)

    def figures(self, kept):
        """Precision and recall; means over customers of precision and F1; customers with a precision below .2."""
        right = self.weight * self.relevant
        precisions, scores = [], []
        for customer, count in self.total.items():
            of = kept & (self.customer == customer)
            precision = right[of].sum() / self.weight[of].sum() if of.any() else 0.0
            recall = self.relevant[of].sum() / max(count, 1)
            if of.sum() >= 5:
                precisions.append(precision)
            if count >= 5:
                scores.append(2 * precision * recall / max(precision + recall, 1e-9))
        return np.array([
            right[kept].sum() / self.weight[kept].sum(), self.relevant[kept].sum() / sum(self.total.values()),
            np.mean(precisions), np.mean(scores), (np.array(precisions) < 0.2).sum(),
        ])
