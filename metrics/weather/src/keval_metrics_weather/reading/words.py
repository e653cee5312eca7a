"""Words: a text read once into lower-case, accent-free words that know where they stand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import attrs

__all__ = ["Text", "fold", "read", "word_set"]

# Every repeat in this package's patterns is bounded, so that no text takes more than linear time to read.
# A token is a word or a mark: full stops and commas only where no word goes on, dashes only between spaces.
_TOKEN = re.compile(
    r"([^\W_]{1,64}(?:'[^\W_]{1,64})?"
    r"|[!?;\n|:()—.,–-](?:(?<![.,–-])|(?<=[.,])(?!\w)(?<!\bst\.)|(?<= [–-])(?= )))"
)
_COMPOSABLE = re.compile(r"[^\W_][\u0300-\u036f]{1,8}")
_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "\xa0": " ", "\u202f": " ", "\u2009": " "}
)
_TYPOGRAPHY |= str.maketrans({"º": "°", "˚": "°", "⁰": "°", "〜": "–"})
_UNUSUAL = re.compile(f"[\u0300-\u036f{''.join(map(chr, _TYPOGRAPHY))}]")
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


@attrs.frozen(eq=False)
class Text:
    """A text as its reader sees it.

    `plain` is `original` in lower case with simple apostrophes and spaces, of the same length. `words` holds words and
    punctuation marks in order, accents folded and contractions spelled out (`won't` is `will not`), `starts` their
    offsets, `index` the places of each word, and `said` all words as a set. In a `caseless` text, all in capitals or in
    lower case, capitals tell nothing. Letters were `joined` with their combining accents: the offset after each such
    letter, and how many characters it took more.
    """

    original: str
    plain: str
    words: Sequence[str]
    starts: Sequence[int]
    index: Mapping[str, Sequence[int]]
    said: frozenset[str]
    caseless: bool
    joined: Sequence[tuple[int, int]] = ()

    def as_given(self, offset: int) -> int:
        """Return where an offset of `original` stands in the text as it was given."""
        return offset + sum(more for end, more in self.joined if end <= offset)

    def word_at(self, place: int) -> str:
        """Return the word at a place, or an empty text beyond either end."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def start_of(self, place: int) -> int:
        """Return the offset of the word at a place, or the text's end beyond the last."""
        return self.starts[place] if place < len(self.starts) else len(self.plain)

    def end_of(self, place: int) -> int:
        """Return the offset after the word at a place."""
        found = _TOKEN.match(self.plain, self.starts[place])
        return found.end() if found else self.starts[place] + len(self.words[place])

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


def _composed(text: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """Join letters with their combining accents, piece by piece: normalising a whole text can take quadratic time.

    Returns the text, and `Text.joined`.
    """
    joined: list[tuple[int, int]] = []
    fewer = 0

    def compose(found: re.Match[str]) -> str:
        nonlocal fewer
        letter = unicodedata.normalize("NFC", found.group())
        if more := len(found.group()) - len(letter):
            fewer += more
            joined.append((found.end() - fewer, more))
        return letter

    return _COMPOSABLE.sub(compose, text), joined


def _lowered(text: str) -> str:
    """Return a text in lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    return lowered


def _spelled_out(tokens: list[str], starts: list[int]) -> tuple[list[str], list[int]]:
    """Return words and their offsets with two words for each contraction, both at its offset."""
    words: list[str] = []
    offsets: list[int] = []
    done = 0
    for place, token in enumerate(tokens):
        if "'" in token or token in _APOSTROPHE_LEFT_OUT:
            parts = _contracted(token)
            words += (*tokens[done:place], *parts)
            offsets += (*starts[done:place], *([starts[place]] * len(parts)))
            done = place + 1
    return words + tokens[done:], offsets + starts[done:]


def _contracted(token: str) -> tuple[str, ...]:
    if token in _APOSTROPHE_LEFT_OUT:
        return (_APOSTROPHE_LEFT_OUT[token], "not")
    stem, _, ending = token.partition("'")
    if ending == "t" and stem.endswith("n"):
        stem = stem[:-1] if stem != "won" else stem
        return (_NOT.get(stem, stem), "not")
    if ending == "s":
        return (stem,)
    return (stem, _SPELLED_OUT.get(ending, ending))


@lru_cache(maxsize=256)
def read(text: str | None) -> Text:
    """Read a text into words; `None` reads as an empty text."""
    original = text or ""
    joined: Sequence[tuple[int, int]] = ()
    unusual = not original.isascii() and bool(_UNUSUAL.search(original))
    if unusual:
        original, joined = _composed(original)
    plain = _lowered(original).translate(_TYPOGRAPHY) if unusual else _lowered(original)
    # Splitting gives, in turn, what lies between tokens and the tokens; a loop over matches takes twice as long.
    pieces = _TOKEN.split(plain)
    words = pieces[1::2]
    starts = list(accumulate(map(len, pieces)))[:-1:2]
    if not "".join(words).isascii():
        words = list(map(fold, words))
    if "'" in plain or not _APOSTROPHE_LEFT_OUT.keys().isdisjoint(words):
        words, starts = _spelled_out(words, starts)
    index: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        if word in index:
            index[word].append(place)
        else:
            index[word] = [place]
    caseless = original.islower() or original.isupper()
    return Text(original, plain, words, starts, index, frozenset(index), caseless, joined)
