"""Words: a text read once into lower-case, accent-free words that know where they stand."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

import attrs

__all__ = ["Text", "fold", "read", "word_set"]

# Every repeat in this package's patterns is bounded, so that no text takes more than linear time to read.
_TOKEN = re.compile(r"[^\W_]{1,64}(?:'[^\W_]{1,64})?|[!?;\n|:()—]|(?:(?<!\bst)\.|,)(?!\w)|(?<= )[-–](?= )")
_COMBINING = re.compile(r"[\u0300-\u036f]")
_COMPOSABLE = re.compile(r"[^\W_][\u0300-\u036f]{1,8}")
_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "\xa0": " ", "\u202f": " ", "\u2009": " "}
)
_TYPOGRAPHY |= str.maketrans({"º": "°", "˚": "°", "⁰": "°", "〜": "–"})
_TYPOGRAPHIC = re.compile(f"[{''.join(map(chr, _TYPOGRAPHY))}]")
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th"})
_SPELLED_OUT = {"ll": "will", "ve": "have", "re": "are", "m": "am", "d": "would"}
_NOT = {"won": "will", "ca": "can", "sha": "shall"}
_APOSTROPHE_LEFT_OUT = {
    "cannot": "can",
    "cant": "can",
    "couldnt": "could",
    "didnt": "did",
    "doesnt": "does",
    "dont": "do",
    "isnt": "is",
    "shouldnt": "should",
    "wont": "will",
    "wouldnt": "would",
}
_SEAMS = frozenset({".", "!", "?", ";", ",", "\n", "|", "—", "and", "but", "while", "whereas", "however"})


@attrs.frozen(eq=False)
class Text:
    """A text as its reader sees it.

    `plain` is `original` in lower case with simple apostrophes and spaces, of the same length. `words` holds words and
    punctuation marks in order, accents folded and contractions spelled out (`won't` is `will not`), `starts` their
    offsets, `index` the places of each word, `said` all words as a set, and `seams` the offsets at which clauses end.
    """

    original: str
    plain: str
    words: Sequence[str]
    starts: Sequence[int]
    index: Mapping[str, Sequence[int]]
    said: frozenset[str]
    seams: Sequence[int]

    def clause(self, offset: int) -> int:
        """Return the number of the clause that an offset lies in."""
        return bisect_right(self.seams, offset)

    def word_at(self, place: int) -> str:
        """Return the word at a place, or an empty text beyond either end."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def capitalised(self, place: int) -> bool:
        """Say whether a word is written like a name; scripts without case always are."""
        if place and self.starts[place] == self.starts[place - 1]:
            return False  # the second part of a contraction such as I'm
        first = self.original[self.starts[place]]
        return first.isalpha() and not first.islower()

    def written(self, place: int) -> str:
        """Return a word as the text spells it."""
        found = _TOKEN.match(self.original, self.starts[place])
        return found.group().removesuffix("'s").removesuffix("’s") if found else self.words[place]


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


def fold(word: str) -> str:
    """Return a lower-case word without accents: `łódź` becomes `lodz`."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.translate(_LETTERS))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _composed(text: str) -> str:
    """Join letters with their combining accents, piece by piece: normalising a whole text can take quadratic time."""
    if text.isascii() or not _COMBINING.search(text):
        return text
    return _COMPOSABLE.sub(lambda found: unicodedata.normalize("NFC", found.group()), text)


def _plain(text: str) -> str:
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    return lowered.translate(_TYPOGRAPHY) if _TYPOGRAPHIC.search(lowered) else lowered


def _spelled_out(token: str) -> tuple[str, ...]:
    stem, _, ending = token.partition("'")
    if ending == "t" and stem.endswith("n"):
        stem = stem[:-1] if stem != "won" else stem
        return (_NOT.get(stem, stem), "not")
    if ending == "s":
        return (stem,)
    return (stem, _SPELLED_OUT.get(ending, ending))


@lru_cache(maxsize=64)
def read(text: str | None) -> Text:
    """Read a text into words; `None` reads as an empty text."""
    original = _composed(text or "")
    plain = _plain(original)
    words: list[str] = []
    starts: list[int] = []
    index: dict[str, list[int]] = {}
    seams: list[int] = []
    for found in _TOKEN.finditer(plain):
        token, start = found.group(), found.start()
        if not token.isascii():
            token = fold(token)
        if "'" in token:
            parts: tuple[str, ...] = _spelled_out(token)
        elif token in _APOSTROPHE_LEFT_OUT:
            parts = (_APOSTROPHE_LEFT_OUT[token], "not")
        else:
            parts = (token,)
        for word in parts:
            places = index.get(word)
            if places is None:
                index[word] = [len(words)]
            else:
                places.append(len(words))
            words.append(word)
            starts.append(start)
        if token in _SEAMS:
            seams.append(start)
    return Text(original, plain, words, starts, index, frozenset(index), seams)
