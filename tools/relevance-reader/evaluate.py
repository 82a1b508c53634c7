"""Prints the figures of today's verdict and of the reader, on customers that neither has seen."""

import argparse
import json

import numpy as np

from features import rows
from heads import RIDGE_OF_LIKENESS, RIDGE_OF_POST, Verdict
from likeness import HERE, columns, of_judged
from measure import GOALS, figures, folds, platt
from vectors import Reader


def show(name, focus, found, total, scores):
    one = [figures(found, score, total, GOALS[focus]) for score in scores]
    mean = {key: np.nanmean([figure[key] for figure in one]) for key in one[0]}
    spread = np.nanstd([figure["P@R"] for figure in one])
    cells = " | ".join(f"{value:.3f}" for value in mean.values())
    print(f"| {focus} | {name} | {cells} | {spread:.3f} |", flush=True)


def probability(sums, found):
    offset, factor = platt(sums, found)
    return 1 / (1 + np.exp(-offset - factor * sums))


def not_sold(seed):
    """The phrases for what each customer does not sell; those of another one by chance, with a seed above 0."""
    written = json.loads((HERE / "not_sold.json").read_text())
    others = np.random.default_rng(seed - 1).permutation(list(written)) if seed else list(written)
    return {customer: written[other] for customer, other in zip(written, others)}


def band(found, today, both, low):
    """Probabilities where the reader judges only posts with a score of `low` or more, and how many of the feed these are."""
    today, both = probability(today, found), probability(both, found)
    inside = today >= low
    return np.where(inside, both, today), found["posts"][inside].sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--focus", nargs="*", default=list(GOALS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pages", action="store_true", help="offers from the pages alone, not from offers.json")
    parser.add_argument("--not-sold", type=int, metavar="SEED", help="also not_sold.json; with a SEED above 0, of another customer")
    parser.add_argument("--band", nargs="*", type=float, default=[], help="lowest scores of today that the reader judges")
    parser.add_argument("--groups", action="store_true", help="also each group of columns alone and left out")
    arguments = parser.parse_args()
    reader = Reader()
    print("| Focus | Verdict | AP | precision at the goal's recall | mean AP | mean precision | mean recall | deviation |")
    print("|---|---|---|---|---|---|---|---|")
    for focus in arguments.focus:
        found, total = rows(focus)
        likeness = of_judged(reader, found["post"], hand=not arguments.pages)
        if arguments.not_sold is not None:
            likeness.not_sold = not_sold(arguments.not_sold)
        fold = [folds(found["customer"], 5, seed) for seed in range(arguments.seeds)]
        like, names, about = columns(likeness, focus, found)
        group = np.array([name.split(".")[0] for name in names])

        def scores(kept, post):
            x = np.hstack([like[:, kept], about] if post else [like[:, kept]])
            ridge = np.full(x.shape[1], RIDGE_OF_LIKENESS)
            ridge[kept.sum() :] = RIDGE_OF_POST[focus]
            verdict = Verdict(focus, found, x, ridge)
            return [verdict.unseen(one) for one in fold]

        every = np.ones(len(names), bool)
        today, both = scores(~every, False), scores(every, True)
        show("today", focus, found, total, today)
        show("with likeness", focus, found, total, scores(every, False))
        show("with the post's vector", focus, found, total, scores(~every, True))
        show("with both", focus, found, total, both)
        for low in arguments.band:
            found_low, judged = zip(*(band(found, *pair, low) for pair in zip(today, both)))
            per_customer = np.mean(judged) / len(total)
            show(f"both from {low}, {per_customer:.0f} posts of the feed per customer", focus, found, total, found_low)
        for name in np.unique(group) if arguments.groups else ():
            show(f"{name} alone", focus, found, total, scores(group == name, False))
            show(f"both, without {name}", focus, found, total, scores(group != name, True))


if __name__ == "__main__":
    main()
