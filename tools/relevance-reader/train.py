"""train.py OUT: writes the layer that the crate `reader` judges with, fitted to all judged customers.

File: `earhead1`, SHA-256 of what follows, then four parts, each after its length: version of the encoder, names of the evidence,
forms of the questions (a line each), and numbers (`f32`). The numbers are, for each focus, a bias and the weights of evidence, likeness
and post; then for each form, and before them for the bare names, the vector of each category.
"""

import sys

import numpy as np

import envelope
from data import FOCI
from features import rows
from heads import RIDGE_OF_LIKENESS, RIDGE_OF_POST, Verdict, may_train
from likeness import QUESTIONS, columns, of_judged
from measure import MAX_WEIGHT, folds, platt
from vectors import Reader

SEEDS = 3


def verdict(likeness, focus, found):
    like, _, about = columns(likeness, focus, found)
    ridge = np.concatenate([np.full(like.shape[1], RIDGE_OF_LIKENESS), np.full(about.shape[1], RIDGE_OF_POST[focus])])
    return Verdict(focus, found, np.hstack([like, about]), ridge)


def scale(verdict, found):
    """Offset and factor that turn a sum into the logit of a probability, by Platt's method on sums of unseen customers."""
    may = may_train(found)
    sums = np.concatenate([verdict.unseen(folds(found["customer"], 5, seed))[may] for seed in range(SEEDS)])
    judged = {name: np.tile(found[name][may], SEEDS) for name in ("label", "posts")}
    offset, factor = platt(sums, judged)
    label, weight = judged["label"] > 0, np.minimum(judged["posts"], MAX_WEIGHT)
    score = 1 / (1 + np.exp(-(offset + factor * sums)))
    for start in np.arange(0, 1, 0.1):
        of = (score >= start) & (score < start + 0.1)
        if of.any():
            print(f"  {start:.1f}: {of.sum() // SEEDS} posts, share {np.average(label[of], weights=weight[of]):.2f}")
    return offset, factor


def main(out):
    reader = Reader()
    numbers, names, likeness = [], None, None
    for focus in FOCI:
        found, _ = rows(focus)
        likeness, names = of_judged(reader, found["post"]), found["names"]
        fitted = verdict(likeness, focus, found)
        print(focus)
        offset, factor = scale(fitted, found)
        bias, weights = fitted.fit(may_train(found))
        numbers += [[offset + factor * bias], factor * weights]
    numbers += [vectors.ravel() for vectors in likeness.categories]
    texts = reader.version, "\n".join(names), "\n".join(QUESTIONS)
    envelope.write(out, b"earhead1", [*map(str.encode, texts), np.concatenate(numbers).astype("<f4").tobytes()])


if __name__ == "__main__":
    main(*sys.argv[1:])
