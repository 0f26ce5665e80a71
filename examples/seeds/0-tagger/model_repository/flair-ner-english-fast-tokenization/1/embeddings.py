"""Words of a sentence and their vectors of 2148 numbers, three parts side by side as in Flair's fast tagger.

Flair stacks a word vector (100) on two character language models, one read forwards and one backwards (1024 each).
Here each part is counted instead of learned, so that nothing must be downloaded and everybody gets the same numbers:
100 for the look of the word, 1024 for pieces from its beginning and the words before it, 1024 for pieces from its
end and the words after it. A piece falls into a place by its CRC-32.
"""

import functools
import re
import zlib

import numpy as np

LOOKS, PIECES = 100, 1024
WIDTH = LOOKS + 2 * PIECES
WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
LONGEST_PIECE = 5
NEIGHBOURS = 2


def words_of(sentence):
    """[(text, begin, end)] of the words and marks of a sentence; positions count characters."""
    return [(found[0], found.start(), found.end()) for found in WORD.finditer(sentence)]


def sentence_vectors(words):
    """FP32 [T, 2148] for T texts."""
    vectors = np.zeros((len(words), WIDTH), dtype=np.float32)
    padded = [""] * NEIGHBOURS + list(words) + [""] * NEIGHBOURS
    for place, word in enumerate(words):
        looks, front, back = own_places(word)
        vectors[place, looks] = 1
        for distance in range(1, NEIGHBOURS + 1):
            front = (*front, neighbour(padded[place + NEIGHBOURS - distance], distance))
            back = (*back, neighbour(padded[place + NEIGHBOURS + distance], distance))
        vectors[place, [LOOKS + hashed for hashed in front]] = 1
        vectors[place, [LOOKS + PIECES + hashed for hashed in back]] = 1
    return vectors


@functools.lru_cache(maxsize=20000)
def own_places(word):
    """Where a word has ones by itself, in each of the three parts."""
    low, longest = word.lower(), min(len(word), LONGEST_PIECE)
    front = {hashed(f"<{low[:n]}") for n in range(1, longest + 1)} | {hashed(f"={low}")}
    back = {hashed(f"{low[-n:]}>") for n in range(1, longest + 1)} | {hashed(f"={word}")}
    return look(word), tuple(front), tuple(back)


@functools.lru_cache(maxsize=20000)
def neighbour(word, distance):
    return hashed(f"{distance}:{word.lower()}")


def hashed(piece):
    return zlib.crc32(piece.encode()) % PIECES


def look(word):
    """Places among the first 100: what kind of characters, how long, which first and last letter."""
    kinds = [word.istitle(), word.isupper(), word.islower(), word.isdigit(), word.isalnum(), word.isalpha(),
             any(c.isdigit() for c in word), "-" in word, word[:1].isupper(), any(c.isupper() for c in word[1:]),
             len(word) == 1, not word[:1].isalnum()]
    places = [place for place, holds in enumerate(kinds) if holds]
    places.append(20 + min(len(word), 19))
    first, last = (ord(c) - ord("a") for c in (word[:1].lower() or "a", word[-1:].lower() or "a"))
    places += [start + letter for start, letter in ((40, first), (70, last)) if 0 <= letter < 26]
    return tuple(places)
