"""What vectors say about a pair of customer and post.

A post has one vector per sentence and one of the whole, all from the same run of the encoder: the mean of its tokens.
A customer has vectors of its brief and of its offers. Being close to an offer is not enough, since a need in a
neighbouring field is close as well. So offers compete with 477 kinds of goods and subjects (`categories.txt`): is an offer
the best explanation of what the post is about?
"""

import json
import re
from pathlib import Path

import numpy as np

import texts
from features import sources

HERE = Path(__file__).parent
NEED = re.compile(
    r"\?|\b(?:look(?:ing)? for|recommend|suggest|advice|need|want|should i|which|best|any(?:one|body)|help|buy|worth|"
    r"alternative|switch|cheap|choose|decide|how (?:do|can|to))", re.I)
QUESTIONS = ("Which {} should I buy?", "I am looking for {}. Any recommendations?")
NEAR = 0.6  # a category this near to an offer is not another good
HEAT, HEAT_OF_RARE = 0.05, 0.6
NONE = -0.3


class Likeness:
    def __init__(self, reader, ids, hand=True):
        """Reads the posts `ids`; `hand` takes the offers from offers.json where it has the customer, and from the pages otherwise."""
        posts = {id: sources()[0][id] for id in dict.fromkeys(ids)}
        self.vectors = reader
        self.pages = texts.pages()
        self.hand = json.loads((HERE / "offers.json").read_text()) if hand else {}
        self.names = (HERE / "categories.txt").read_text().split("\n")[:-1]
        self.categories = reader(self.names)
        self.at = {id: at for at, id in enumerate(posts)}
        self.words = [texts.sentences(post["title"], post["text"]) for post in posts.values()]
        read = reader.read(self.words)
        self.whole = np.stack([vectors[0] for vectors in read])
        self.parts = np.concatenate([vectors[1:] for vectors in read])
        self.starts = np.cumsum([0] + [len(vectors) - 1 for vectors in read])
        self.words = [words[: len(vectors) - 1] for words, vectors in zip(self.words, read)]
        ordinary = [texts.sentences(title, text) for title, text in texts.background()]
        self.ordinary = np.stack([vectors[0] for vectors in reader.read(ordinary)])

    def offers(self, customer):
        return self.hand.get(customer) or texts.offers(self.pages[customer])

    def columns(self, rows, groups=("brief", "offers", "rare", "contrast", "questions", "sentences")):
        """Returns the columns of the groups, by customer so that its vectors are made once."""
        found, names = None, None
        for customer in np.unique(rows["customer"]):
            index = np.flatnonzero(rows["customer"] == customer)
            values = self.of_customer(customer, [self.at[post] for post in rows["post"][index]])
            values = {name: column for name, column in values.items() if name.split(".")[0] in groups}
            names = list(values)
            found = np.zeros((len(rows["post"]), len(names))) if found is None else found
            found[index] = np.column_stack(list(values.values()))
        return found, names

    def of_customer(self, customer, at):
        offers = self.vectors(self.offers(customer))
        brief = self.vectors([texts.brief(self.pages[customer])])[0]
        is_other = (self.categories @ offers.T).max(1) < NEAR
        others = self.categories[is_other]
        rare, rare_others = Rarity(self.ordinary, offers), Rarity(self.ordinary, others)
        asked = [
            (self.vectors([question.format(name) for name in self.offers(customer)]),
             self.vectors([question.format(name) for name in self.names])[is_other])
            for question in QUESTIONS
        ]
        titles = self.parts[self.starts[at]]
        out = {}
        for view, x in (("title", titles), ("whole", self.whole[at])):
            like, other = x @ offers.T, x @ others.T
            like_rare, other_rare = rare(like), rare_others(other)
            out[f"brief.{view}"] = x @ brief
            out[f"offers.{view}"], out[f"offers.{view}3"] = like.max(1), top(like, 3).mean(1)
            out[f"rare.{view}"], out[f"rare.{view}3"] = like_rare.max(1), top(like_rare, 3).mean(1)
            out[f"contrast.{view}"] = like.max(1) - other.max(1)
            out[f"contrast.{view}.share"] = share(like, other, HEAT)
            out[f"contrast.{view}.rare"] = like_rare.max(1) - other_rare.max(1)
            out[f"contrast.{view}.rare_share"] = share(like_rare, other_rare, HEAT_OF_RARE)
            for number, (mine, theirs) in enumerate(asked):
                ask = (x @ mine.T).max(1)
                out[f"questions.{view}{number}"] = ask
                out[f"questions.{view}{number}.contrast"] = ask - (x @ theirs.T).max(1)
                out[f"questions.{view}{number}.lift"] = ask - like.max(1)
        sentences = [self.of_sentences(post, offers, others, rare, rare_others, brief) for post in at]
        out |= {name: np.array([row[name] for row in sentences]) for name in sentences[0]}
        return out

    def of_sentences(self, post, offers, others, rare, rare_others, brief):
        own = slice(self.starts[post], self.starts[post + 1])
        x, words = self.parts[own], self.words[post]
        like, other = x @ offers.T, x @ others.T
        like_rare, other_rare = rare(like), rare_others(other)
        need = np.array([bool(NEED.search(text)) for text in words])
        out = {"sentences.brief": (x @ brief).max(), "sentences.need": need.mean()}
        for name, kept in (("any", np.ones(len(x), bool)), ("needed", need)):
            some = kept.any()
            put = lambda key, value: out.update({f"sentences.{name}.{key}": value})
            put("like", like[kept].max() if some else 0.0)
            put("rare", like_rare[kept].max() if some else 0.0)
            put("contrast", (like[kept].max(1) - other[kept].max(1)).max() if some else NONE)
            put("share", share(like[kept], other[kept], HEAT).max() if some else 0.0)
            put("rare_contrast", (like_rare[kept].max(1) - other_rare[kept].max(1)).max() if some else 10 * NONE)
        return out

    def about(self, focus, rows):
        """Vectors of what decides beyond the customer: SALES the whole post, else the sentences with a name."""
        at = [self.at[post] for post in rows["post"]]
        if focus == "SALES":
            return self.whole[at]
        plans, found = sources()[3], []
        for customer, post in zip(rows["customer"], at):
            names = texts.pattern(watched(focus, plans[f"{customer} {focus}"]))
            own = self.parts[self.starts[post] : self.starts[post + 1]]
            named = [vector for vector, text in zip(own, self.words[post]) if names.search(text)]
            found.append(np.mean(named or [self.whole[post]], axis=0))
        return np.array(found)


def watched(focus, plan):
    kind = "OWN" if focus == "CRISIS" else "WATCHED"
    return [text for name in plan["names"] if name["kind"] == kind for text in (name["text"], *name.get("aliases", []))]


class Rarity:
    """Likeness in standard deviations above what ordinary posts have: some texts are close to everything."""

    def __init__(self, ordinary, vectors):
        like = ordinary @ vectors.T
        self.mean, self.deviation = like.mean(0), like.std(0) + 1e-6

    def __call__(self, like):
        return (like - self.mean) / self.deviation


def top(values, count):
    return np.sort(values, axis=1)[:, -count:]


def share(like, other, heat):
    """The best offers' share of a softmax over offers and other goods."""
    mine, theirs = np.exp(top(like, 3) / heat).sum(1), np.exp(other / heat).sum(1)
    return mine / (mine + theirs)
