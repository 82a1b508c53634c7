"""What vectors say about a pair of customer and post: 20 numbers, which `crates/reader/src/likeness.rs` computes as well.

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
HEAT = 0.05
NONE = -0.3
CATEGORIES = (HERE / "categories.txt").read_text().split("\n")[:-1]


def of_judged(reader, ids, hand=True):
    """Reads judged posts and all customers. `hand` takes the offers from offers.json where it has the customer."""
    posts = {id: (post["title"], post["text"]) for id in dict.fromkeys(ids) for post in [sources()[0][id]]}
    written = json.loads((HERE / "offers.json").read_text()) if hand else {}
    sold = {id: (texts.brief(parts), written.get(id) or texts.offers(parts)) for id, parts in texts.pages().items()}
    return Likeness(reader, posts, sold)


class Likeness:
    def __init__(self, reader, posts, sold):
        """Reads posts (title and text by id); `sold` has brief and offers of each customer."""
        self.vectors = reader
        self.sold = sold
        self.not_sold = {}  # phrases for further goods that offers of a customer compete with
        # Kinds of goods by themselves, then as each question.
        self.categories = [reader(asked(CATEGORIES, form)) for form in ("{}", *QUESTIONS)]
        self.at = {id: at for at, id in enumerate(posts)}
        self.words = [texts.sentences(title, text) for title, text in posts.values()]
        read = reader.read(self.words)
        self.whole = np.stack([vectors[0] for vectors in read])
        self.parts = [vectors[1:] for vectors in read]
        self.words = [words[: len(vectors)] for words, vectors in zip(self.words, self.parts)]

    def columns(self, customers, posts):
        """Returns a row per pair, and the names of the columns."""
        found, names = None, None
        for customer in np.unique(customers):
            index = np.flatnonzero(customers == customer)
            values = self.of_customer(customer, [self.at[post] for post in posts[index]])
            names = list(values)
            found = np.zeros((len(posts), len(names))) if found is None else found
            found[index] = np.column_stack(list(values.values()))
        return found, names

    def of_customer(self, customer, at):
        text, names = self.sold[customer]
        brief = self.vectors([text])[0]
        offers = [self.vectors(asked(names, form)) for form in ("{}", *QUESTIONS)]
        categories = self.categories
        if not_sold := self.not_sold.get(customer):
            own = [self.vectors(asked(not_sold, form)) for form in ("{}", *QUESTIONS)]
            categories = [np.vstack(pair) for pair in zip(categories, own)]
        is_other = (categories[0] @ offers[0].T).max(1) < NEAR
        others = [vectors[is_other] for vectors in categories]
        out = {}
        for view, x in (("title", np.stack([self.parts[post][0] for post in at])), ("whole", self.whole[at])):
            like = (x @ offers[0].T).max(1)
            for number in range(1, len(offers)):
                question = (x @ offers[number].T).max(1)
                out[f"questions.{view}{number}"] = question
                out[f"questions.{view}{number}.contrast"] = question - (x @ others[number].T).max(1)
                out[f"questions.{view}{number}.lift"] = question - like
        sentences = [self.of_sentences(post, brief, offers[0], others[0]) for post in at]
        return out | {name: np.array([row[name] for row in sentences]) for name in sentences[0]}

    def of_sentences(self, post, brief, offers, others):
        x = self.parts[post]
        like, other = x @ offers.T, x @ others.T
        need = np.array([bool(NEED.search(text)) for text in self.words[post]])
        out = {"sentences.brief": (x @ brief).max(), "sentences.need": need.mean()}
        for name, kept in (("any", np.ones(len(x), bool)), ("needed", need)):
            some = kept.any()
            out[f"sentences.{name}.like"] = like[kept].max() if some else 0.0
            out[f"sentences.{name}.contrast"] = (like[kept].max(1) - other[kept].max(1)).max() if some else NONE
            out[f"sentences.{name}.share"] = share(like[kept], other[kept]).max() if some else 0.0
        return out

    def about(self, focus, post, names):
        """Vector of what decides beyond the customer: SALES the whole post, else the mean of the sentences with a name."""
        at = self.at[post]
        if focus == "SALES":
            return self.whole[at]
        pattern = texts.pattern(names)
        named = [vector for vector, text in zip(self.parts[at], self.words[at]) if pattern.search(text)]
        return np.mean(named or [self.whole[at]], axis=0)


def asked(names, form):
    return [form.format(name) for name in names]


def columns(likeness, focus, found):
    """Returns likeness and what decides beyond the customer, of judged pairs; and the names of the former."""
    plans = sources()[3]
    pairs = list(zip(found["customer"], found["post"]))
    names = {customer: watched(focus, plans[f"{customer} {focus}"]) for customer in np.unique(found["customer"])}
    about = np.stack([likeness.about(focus, post, names[customer]) for customer, post in pairs])
    return *likeness.columns(found["customer"], found["post"]), about


def watched(focus, plan):
    kind = "OWN" if focus == "CRISIS" else "WATCHED"
    return [text for name in plan["names"] if name["kind"] == kind for text in (name["text"], *name.get("aliases", []))]


def share(like, other):
    """The best offers' share of a softmax over offers and other goods."""
    mine = np.exp(np.sort(like, axis=1)[:, -3:] / HEAT).sum(1)
    return mine / (mine + np.exp(other / HEAT).sum(1))
