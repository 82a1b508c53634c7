"""Prints what verdicts of a customer on what it got would teach: its threshold, an offset, or weights of its own."""

import argparse

import numpy as np

from measure import GOALS
from unseen import Pairs, logit, probability
from vectors import Reader

COUNTS = (10, 20, 30)
ORDERS = 4
SAMPLES = 200
# PRECISE, BALANCED and BROAD, as `crates/matching/src/model.rs`.
THRESHOLDS = {"SALES": (0.37, 0.26, 0.12), "COMPETITOR": (0.6, 0.3, 0.12), "CRISIS": (0.56, 0.38, 0.2)}
MIN_FOR_WEIGHTS = 10


def standard(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-9)


def posterior(prior, logits, good):
    """Mode of a logistic regression whose sums have a normal prior: the factors of the prior's covariance."""
    values = np.zeros(len(good))
    for _ in range(30):
        score = probability(logits + values)
        root = np.sqrt(np.maximum(score * (1 - score), 1e-6))
        right = root * root * values + good - score
        inner = np.eye(len(good)) + root[:, None] * prior * root
        values = prior @ (right - root * np.linalg.solve(inner, root * (prior @ right)))
    return good - probability(logits + values)


def as_built(focus, good):
    """How far `feedback.rs` moves the threshold, without the changed weights of terms."""
    precise, balanced, broad = THRESHOLDS[focus]
    if len(good) < 3:
        return 0.0
    shift = np.clip((len(good) - 2 * good.sum()) / (len(good) + 6) * 0.2, -0.1, 0.2)
    return np.clip(balanced + shift, (balanced + broad) / 2, (balanced + precise) / 2) - balanced


def ways(pairs, focus, scores, words, verdicts, count):
    """Yields the logits after the first verdicts of each customer, by way."""
    first = {customer: said[:count] for customer, said in verdicts.items()}
    good = pairs.relevant.astype(float)
    shift = np.zeros(len(scores))
    for customer, said in first.items():
        shift[pairs.customer == customer] = as_built(focus, good[said])
    yield "threshold, as built", logit(np.clip(scores - shift, 1e-4, 1 - 1e-4))
    evidence = pairs.found["evidence"]
    evidence = standard(evidence[:, evidence.std(0) > 1e-6])
    evidence /= np.sqrt(evidence.shape[1])
    columns = {"offset": (evidence, 0.0), "offset and evidence": (evidence, 1.0)}
    if scores is not words:
        both = standard(np.column_stack([logit(scores), logit(words)])) / np.sqrt(2)
        like = standard(pairs.likeness) / np.sqrt(pairs.likeness.shape[1])
        vector = pairs.vector - pairs.vector.mean(0)
        columns["offset, both scores, evidence and likeness"] = (np.hstack([both, evidence, like]), 0.3)
        columns["offset and post"] = (vector / np.sqrt((vector**2).sum(1).mean()), 2.0)
    for name, (x, variance) in columns.items():
        logits = logit(scores)
        for customer, said in first.items():
            if not len(said):
                continue
            own = np.flatnonzero(pairs.customer == customer)
            weigh = variance if len(said) >= MIN_FOR_WEIGHTS else 0.0
            prior, others = (1 + weigh * x[rows] @ x[said].T for rows in (said, own))
            logits[own] += others @ posterior(prior, logit(scores[said]), good[said])
        yield name, logits


def verdicts_of(pairs, scores, threshold, random, share_of_good):
    """Draws of each customer up to 30 posts that it got, and no more than half of them."""
    found = {}
    for customer in sorted(pairs.total):
        got = random.permutation(np.flatnonzero((pairs.customer == customer) & (scores >= threshold)))
        said = got[random.random(len(got)) < np.where(pairs.relevant[got], share_of_good, 1.0)]
        found[customer] = said[: min(max(COUNTS), len(got) // 2)]
    return found


class Rest:
    """The posts without a verdict."""

    def __init__(self, pairs, verdicts, goal):
        self.goal = goal
        self.kept = np.ones(len(pairs.relevant), bool)
        self.kept[np.concatenate(list(verdicts.values()))] = False
        names = sorted(pairs.total)
        self.total = np.array([pairs.total[name] - pairs.relevant[verdicts[name]].sum() for name in names])
        self.of = np.searchsorted(names, pairs.customer[self.kept])
        self.relevant, self.weight = pairs.relevant[self.kept], pairs.weight[self.kept]

    def at_goal(self, logits, times):
        """Precision at the goal's recall, with each customer some times."""
        times_of = times[self.of]
        order = np.argsort(-logits[self.kept], kind="stable")
        recall = np.cumsum((times_of * self.relevant)[order]) / (times * self.total).sum()
        first = order[: np.searchsorted(recall, self.goal) + 1]
        weight = times_of[first] * self.weight[first]
        return (weight * self.relevant[first]).sum() / weight.sum()

    def at(self, logits, threshold):
        """Precision and recall at the threshold; means over customers."""
        kept = probability(logits[self.kept]) >= threshold
        right = self.weight * self.relevant
        each = [kept & (self.of == customer) for customer in range(len(self.total))]
        precisions = [right[of].sum() / self.weight[of].sum() for of in each if of.sum() >= 5]
        recalls = [self.relevant[of].sum() / count for of, count in zip(each, self.total) if count >= 5]
        return [
            right[kept].sum() / self.weight[kept].sum(), self.relevant[kept].sum() / self.total.sum(),
            np.mean(precisions) if precisions else np.nan, np.mean(recalls),
        ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--good", type=float, default=1.0, help="share of the relevant posts that get their verdict")
    share_of_good = parser.parse_args().good
    reader = Reader()
    print("| Focus | Scores | Verdicts | precision at the goal's recall | against the offset, 95 % over customers "
          "| at the threshold: precision, recall, mean precision, mean recall |")
    print("|---|---|---|---|---|---|")
    for focus, goal in GOALS.items():
        pairs = Pairs(reader, focus)
        threshold = THRESHOLDS[focus][1]
        for of, all_scores in (("words", pairs.words), ("reader", pairs.both)):
            found, samples, at = {}, {}, {}
            for seed, (scores, words) in enumerate(zip(all_scores, pairs.words)):
                for order in range(ORDERS):
                    random = np.random.default_rng(1_000 * seed + order)
                    verdicts = verdicts_of(pairs, scores, threshold, random, share_of_good)
                    rest = Rest(pairs, verdicts, goal)
                    size = len(rest.total)
                    draws = SAMPLES // (ORDERS * len(all_scores))
                    times = [np.ones(size)] + [random.multinomial(size, np.ones(size) / size) for _ in range(draws)]
                    after = [("none", logit(scores))]
                    for count in COUNTS:
                        every = ways(pairs, focus, scores, words, verdicts, count)
                        after += [(f"{count}: {name}", logits) for name, logits in every]
                    for name, logits in after:
                        first, *others = [rest.at_goal(logits, one) for one in times]
                        found.setdefault(name, []).append(first)
                        samples.setdefault(name, []).extend(others)
                        at.setdefault(name, []).append(rest.at(logits, threshold))
            for name, precision in found.items():
                against = np.array(samples[name]) - np.array(samples[f"{name.split(':')[0]}: offset"]) if ":" in name else [0]
                low, high = np.percentile(against, [2.5, 97.5])
                cells = ", ".join(f"{value:.3f}" for value in np.nanmean(at[name], axis=0))
                print(f"| {focus} | {of} | {name} | {np.mean(precision):.3f} | {low:+.3f} to {high:+.3f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
