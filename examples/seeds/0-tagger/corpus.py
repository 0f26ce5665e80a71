"""Sentences with named entities to train on, labelled by rules: nobody has read them all.

Real text: the English pages of Debian's package debian-history, and the docstrings of this Python's own library.
A name in it is whatever the lists of names.py and a few patterns say; most of the docstrings have none.
Made text: sentences of our own with places for names, filled from the same lists, cities and countries from tzdata.
The lists are divided first, so that what is kept for checking has names that were never trained on.
"""

import ast
import functools
import html
import random
import re
import sysconfig
from pathlib import Path

import names
from embeddings import words_of

PAGES = ["intro", "leaders", "releases", "detailed", "manifesto"]
ZONES = Path("/usr/share/zoneinfo")
SENTENCE_END = re.compile(r"(?<=[a-z0-9)][.!?]) +(?=[A-Z])")
SHORTEST, LONGEST = 4, 40
INITIAL = re.compile(r"[A-Z]")


# ---- real text


def history(folder):
    """Sentences of the history of Debian; `folder` is where the package was unpacked."""
    found = []
    for page in PAGES:
        text = (folder / f"usr/share/doc/debian-history/docs/{page}.en.html").read_text(errors="replace")
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL):
            found += sentences(html.unescape(re.sub(r"<[^>]+>", "", paragraph)))
    return found


def docstrings(limit):
    """Sentences that explain the modules of Python's library."""
    found = []
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            tree = ast.parse(file.read_text(errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                found += sentences((ast.get_docstring(node) or "").split("\n\n")[0])
    random.Random(1).shuffle(found)
    return found[:limit]


def sentences(text):
    parts = SENTENCE_END.split(" ".join(text.split()))
    return [part for part in parts if SHORTEST <= len(words_of(part)) <= LONGEST]


# ---- labels by rule


def labelled(sentence, lists):
    """(words, tags) of a real sentence: the longest listed name wins, then the patterns of a person and a body."""
    words = [text for text, _, _ in words_of(sentence)]
    tags, place = ["O"] * len(words), 0
    while place < len(words):
        length, kind = name_at(words, place, lists)
        if kind:
            mark(tags, place, length, kind)
        place += length
    return words, tags


def name_at(words, place, lists):
    for length in range(min(5, len(words) - place), 0, -1):
        kind = lists.kind_of.get(tuple(words[place:place + length]))
        if kind:
            return length, kind
    capitals = 0
    while place + capitals < len(words) and words[place + capitals][:1].isupper() and words[place + capitals].isalpha():
        capitals += 1
    if capitals > 1 and words[place + capitals - 1] in names.BODIES and words[place] not in names.NO_NAMES:
        return capitals, "ORG"
    if words[place] in lists.known_firsts:
        end = place + 1
        if words[end:end + 2] and INITIAL.fullmatch(words[end]) and words[end + 1:end + 2] == ["."]:
            end += 2
        if words[end:end + 1] and words[end].istitle() and words[end] not in names.NO_NAMES:
            return end + 1 - place, "PER"
        return 1, "PER"
    return 1, None


def mark(tags, place, length, kind):
    if length == 1:
        tags[place] = f"S-{kind}"
        return
    tags[place:place + length] = [f"B-{kind}", *[f"I-{kind}"] * (length - 2), f"E-{kind}"]


# ---- made text


class Lists:
    """Part of the names: which of them a made sentence may use."""

    def __init__(self, part):
        self.firsts, self.lasts, self.bodies, self.others, self.places = (
            part(found) for found in (names.FIRSTS, names.LASTS, names.ORGANISATIONS, names.OTHERS, places())
        )
        self.known_firsts = set(names.FIRSTS)
        listed = [(places(), "LOC"), (names.ORGANISATIONS, "ORG"), (names.OTHERS, "MISC")]
        self.kind_of = {tuple(text for text, _, _ in words_of(name)): kind for found, kind in listed for name in found}

    def name(self, kind, choice):
        if kind == "PER":
            first, last = choice.choice(self.firsts), choice.choice(self.lasts)
            form = choice.random()
            if form < 0.7:
                return f"{first} {last}"
            return choice.choice([first, last, f"{first} {choice.choice('ABCDEFGHJKLMPRSTW')}. {last}"])
        if kind == "LOC":
            # Persons and places share names: only the words around them tell.
            return choice.choice(self.lasts) if choice.random() < 0.08 else choice.choice(self.places)
        if kind == "ORG":
            made = choice.random() < 0.5
            return f"{choice.choice(self.lasts + self.places)} {choice.choice(names.BODIES)}" if made else choice.choice(self.bodies)
        return choice.choice(self.others)


@functools.lru_cache(maxsize=1)
def places():
    """Cities and countries of tzdata, and some that it does not list."""
    found = set(names.PLACES)
    for line in (ZONES / "zone.tab").read_text().splitlines():
        if not line.startswith("#"):
            zone = line.split("\t")[2]
            if not zone.startswith("Antarctica/"):
                found.add(zone.rsplit("/", 1)[1].replace("_", " "))
    for line in (ZONES / "iso3166.tab").read_text(encoding="utf-8").splitlines():
        name = line.split("\t")[-1]
        if not line.startswith("#") and re.fullmatch(r"[A-Z][\w ]+", name):
            found.add(name)
    return sorted(found)


def made(count, lists, seed):
    """(words, tags) of sentences of our own."""
    choice, found = random.Random(seed), []
    for _ in range(count):
        words, tags = [], []
        for part in re.split(r"(\{[A-Z]+\})", choice.choice(names.SENTENCES)):
            kind = part[1:-1] if part.startswith("{") else None
            text = lists.name(kind, choice) if kind in ("PER", "LOC", "ORG", "MISC") else names.FILLERS[kind](choice) if kind else part
            own = [word for word, _, _ in words_of(text)]
            words += own
            tags += ["O"] * len(own)
            if kind in ("PER", "LOC", "ORG", "MISC"):
                mark(tags, len(tags) - len(own), len(own), kind)
        if choice.random() < 0.15 and words[-1] == ".":
            words, tags = words[:-1], tags[:-1]
        found.append((words, tags))
    return found


def divided(found, every=5):
    """(the names to train with, those kept for the check)."""
    return [n for i, n in enumerate(found) if i % every], [n for i, n in enumerate(found) if i % every == 0]


def corpora(folder):
    """(to train on, {name of a check: sentences}), each a list of (words, tags)."""
    to_train, kept = Lists(lambda found: divided(found)[0]), Lists(lambda found: divided(found)[1])
    real_train, real_kept = divided([labelled(s, to_train) for s in history(folder)])
    plain_train, plain_kept = divided([labelled(s, to_train) for s in docstrings(700)])
    training = real_train * 2 + plain_train + made(1500, to_train, 2)
    random.Random(3).shuffle(training)
    return training, {"real sentences": real_kept + plain_kept, "names never seen": made(300, kept, 4)}
