"""Prints what a threshold for each customer would do, without verdicts; and a limit on the posts that are read."""

import numpy as np

from measure import GOALS, logistic
from unseen import Pairs, logit, probability
from vectors import Reader

FEED = 69_940  # posts
BAND = 0.1  # lowest score that is read
RIDGE = 30.0


def expected(pairs, score, promise):
    """Keeps of each customer the most posts whose mean score is `promise`."""
    kept = np.zeros(len(score), bool)
    for index in customers(pairs):
        order = index[np.argsort(-score[index], kind="stable")]
        mean = np.cumsum(pairs.weight[order] * score[order]) / np.cumsum(pairs.weight[order])
        enough = np.flatnonzero(mean >= promise)
        kept[order[: enough[-1] + 1 if len(enough) else 0]] = True
    return kept


def best(pairs, score, threshold, limit):
    """Keeps of each customer the best posts, at most `limit` of 1,000."""
    kept = np.zeros(len(score), bool)
    for index in customers(pairs):
        order = index[score[index] >= threshold]
        order = order[np.argsort(-score[order], kind="stable")]
        kept[order[np.cumsum(pairs.posts[order]) <= limit * FEED / 1_000]] = True
    return kept


def shifted(pairs, score, fold, number):
    """Scores with a number of the customer as further evidence, learned from other customers."""
    of = np.zeros(len(score))
    for index in customers(pairs):
        of[index] = number(score[index], pairs.posts[index])
    x, out = np.column_stack([logit(score), (of - of.mean()) / of.std()]), np.zeros(len(score))
    for test in np.unique(fold):
        train = fold != test
        found = logistic(x[train], pairs.relevant[train], pairs.weight[train], np.array([0.01, RIDGE]))
        out[~train] = probability(found[0] + x[~train] @ found[1:])
    return out


def informed(pairs, score):
    """Scores with the prior of each customer, known from the labels alone."""
    out = np.zeros(len(score))
    for index in customers(pairs):
        weight = pairs.weight[index]
        shift = np.log((weight * pairs.relevant[index]).sum() + 1) - np.log((weight * score[index]).sum() + 1)
        out[index] = probability(logit(score[index]) + shift)
    return out


def limited(pairs, words, both, limit, random):
    """The reader's scores, where it reads the first posts of each customer, in random order, `limit` of 1,000."""
    out = words.copy()
    for index in customers(pairs):
        order = random.permutation(index[words[index] >= BAND])
        order = order[np.cumsum(pairs.posts[order]) <= limit * FEED / 1_000]
        out[order] = both[order]
    return out


def customers(pairs):
    return [np.flatnonzero(pairs.customer == customer) for customer in np.unique(pairs.customer)]


NUMBERS = {
    "posts with .1 or more": lambda score, posts: np.log(posts[score >= 0.1].sum() + 1),
    "posts with .3 or more": lambda score, posts: np.log(posts[score >= 0.3].sum() + 1),
    "sum of scores": lambda score, posts: np.log((posts * score).sum() + 1),
    "mean score": lambda score, posts: np.average(score, weights=posts),
}


def ways(pairs, goal, score, fold):
    def at(other):
        return pairs.at_recall(goal, lambda threshold: other >= threshold)

    one = at(score)
    yield "one threshold", one
    yield "expected precision", pairs.at_recall(goal, lambda promise: expected(pairs, score, promise))
    for more in (0.0, 0.05):
        enough = expected(pairs, score, one[0] + more)
        figures = pairs.at_recall(goal, lambda threshold: (score >= threshold) & enough)
        yield f"only raised, promise +{more}", figures
        yield f"one threshold at the recall of +{more}", pairs.at_recall(figures[1], lambda threshold: score >= threshold)
    for limit in (1, 2, 5):
        yield f"at most {limit} of 1,000", pairs.at_recall(goal, lambda threshold: best(pairs, score, threshold, limit))
    for name, number in NUMBERS.items():
        yield f"prior by {name}", at(shifted(pairs, score, fold, number))
    yield "prior from the labels", at(informed(pairs, score))


def show(focus, of, table):
    for name in table[0]:
        found = np.array([row[name] for row in table])
        cells = " | ".join(f"{value:.3f}" for value in found.mean(0))
        print(f"| {focus} | {of} | {name} | {cells} | {found[:, 0].std():.3f} |", flush=True)


def main():
    reader = Reader()
    print("| Focus | Scores | Way | precision | recall | mean precision | mean F1 | customers below .2 | deviation |")
    print("|---|---|---|---|---|---|---|---|---|")
    for focus, goal in GOALS.items():
        pairs = Pairs(reader, focus)
        for of, scores in (("words", pairs.words), ("reader", pairs.both)):
            show(focus, of, [dict(ways(pairs, goal, score, fold)) for score, fold in zip(scores, pairs.folds)])
        reads = []
        for seed, (words, both) in enumerate(zip(pairs.words, pairs.both)):
            random = np.random.default_rng(seed)
            scores = {f"reads {limit} of 1,000": limited(pairs, words, both, limit, random) for limit in (1, 2, 5, 1_000)}
            reads.append({name: pairs.at_recall(goal, lambda low: score >= low) for name, score in scores.items()})
        show(focus, "reader", reads)
        candidates = np.array([pairs.posts[i][pairs.words[0][i] >= BAND].sum() for i in customers(pairs)]) * 1_000 / FEED
        print(f"{focus}: candidates of 1,000 posts: median {np.median(candidates):.1f}, mean {candidates.mean():.1f}, "
              f"most {candidates.max():.1f}, more than 5 for {(candidates > 5).sum()} of {len(candidates)}")


if __name__ == "__main__":
    main()
