"""The texts that a reader compares: of a post its title and sentences; of a customer what it sells."""

import html
import json
import re
from html.parser import HTMLParser

from data import JUDGED, customers

SENTENCE = re.compile(r"(?<=[.!?])\s+")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)|https?://\S+")
MAX_CHARS = 1_200  # more than the encoder reads


def plain(text):
    return html.unescape(LINK.sub(lambda found: found.group(1) or "", text))


def sentences(title, text):
    """The title and the sentences after it, as far as the encoder may read."""
    found = [f"{title}." if title[-1:].isalnum() else title or "-"]
    for line in re.split(r"\n+", plain(text)):
        found += [" ".join(sentence.split()) for sentence in SENTENCE.split(line) if sentence.strip()]
        if sum(map(len, found)) > MAX_CHARS:
            break
    return found


class Page(HTMLParser):
    """Title, description, headings and first paragraphs of a page."""

    SKIP = {"script", "style", "nav", "footer", "header", "form", "noscript"}

    def __init__(self):
        super().__init__()
        self.open, self.parts, self.hidden = [], [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "meta" and attrs.get("name", attrs.get("property")) in ("description", "og:description"):
            self.parts.append(("description", attrs.get("content") or ""))
        if tag in self.SKIP:
            self.hidden += 1
        if tag in ("title", "h1", "h2", "h3", "h4", "p", "li"):
            self.open.append(tag)
            self.parts.append((tag if not self.hidden else "hidden", ""))

    def handle_endtag(self, tag):
        if tag in self.SKIP:
            self.hidden = max(0, self.hidden - 1)
        if self.open and tag == self.open[-1]:
            self.open.pop()

    def handle_data(self, text):
        if self.open and self.parts:
            kind, before = self.parts[-1]
            self.parts[-1] = (kind, f"{before}{text}")


def pages():
    """Returns the parts of all pages of each customer: (kind, text)."""
    found = {}
    for id, card in customers().items():
        parts = []
        for page in card["pages"]:
            parser = Page()
            parser.feed((JUDGED / card["folder"] / page).read_text())
            parts += [(kind, " ".join(text.split())) for kind, text in parser.parts if text.strip()]
        found[id] = parts
    return found


def brief(parts):
    """What the customer sells, in its own words: titles and descriptions."""
    kept = dict.fromkeys(text for kind, text in parts if kind in ("title", "h1", "description"))
    return " ".join(" ".join(kept).split()[:90])


def offers(parts):
    """Headings and short paragraphs, each on its own."""
    kept = dict.fromkeys(
        text for kind, text in parts if kind in ("title", "h1", "h2", "h3", "h4", "description", "p", "li")
        and 2 <= len(text.split()) <= 40
    )
    return list(kept)[:60]


def pattern(names):
    """Finds whole names; without names it finds nothing."""
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)" if names else r"(?!)", re.I)
