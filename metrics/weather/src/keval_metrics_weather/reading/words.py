"""Words: a text read once into lower-case, accent-free words, and the keywords and phrases that it says."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import attrs

# Every repeat in this package's patterns is bounded, so that no text takes more than linear time to read.
# A token is a word or a mark: full stops and commas only where no word goes on, dashes only between spaces.
_TOKEN = re.compile(
    r"([^\W_]{1,64}(?:'[^\W_]{1,64}|)"
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
_PADDING = [""] * 16
_NOT = {"won": "will", "ca": "can", "sha": "shall"}
_APOSTROPHE_LEFT_OUT = {f"{verb}nt": verb for verb in ("could", "did", "does", "do", "is", "should", "would")} | {
    "cannot": "can",
    "cant": "can",
    "wont": "will",
}


@attrs.frozen(eq=False)
class Text:
    """A text as its reader sees it.

    `plain` is `original` in lower case with simple apostrophes and spaces, of the same length. `words` holds words and
    punctuation marks in order, accents folded and contractions spelled out (`won't` is `will not`), `starts` and `ends`
    their offsets, `index` the places of each word, and `said` all words as a set. `padded` goes on from `words` with
    empty texts, so that the places shortly before the first word and after the last have one, too. In a `caseless`
    text, all in capitals or in lower case, capitals tell nothing. Letters were `joined` with their combining accents:
    the offset after each such letter, and how many characters it took more.
    """

    original: str
    plain: str
    words: Sequence[str]
    padded: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    index: Mapping[str, Sequence[int]]
    said: frozenset[str]
    caseless: bool
    joined: Sequence[tuple[int, int]] = ()

    def as_given(self, offset: int) -> int:
        """Return where an offset of `original` stands in the text as it was given."""
        return offset + sum(more for end, more in self.joined if end <= offset)

    def places_of(self, words: Set[str]) -> list[int]:
        """Return the places of all these words, in the text's order."""
        return sorted([place for word in self.said & words for place in self.index[word]])

    def start_of(self, place: int) -> int:
        """Return the offset of the word at a place, or the text's end beyond the last."""
        return self.starts[place] if place < len(self.starts) else len(self.plain)

    def capitalised(self, place: int) -> bool:
        """Say whether a word is written like a name; scripts without case always are."""
        start = self.starts[place]
        if place and start == self.starts[place - 1]:
            return False  # the second part of a contraction such as I'm
        first = self.original[start]
        return first.isalpha() and not first.islower()

    def written(self, place: int) -> str:
        """Return a word as the text spells it."""
        found = _TOKEN.match(self.original, self.starts[place])
        return found.group().removesuffix("'s").removesuffix("’s") if found else self.words[place]


@lru_cache(maxsize=1)
def _lists() -> Mapping[str, tuple[str, ...]]:
    """Read the longer lists of words and phrases, which stand in a file of their own, a paragraph each."""
    paragraphs = Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8").split("\n\n")
    named = (" ".join(paragraph.split()).partition(": ") for paragraph in paragraphs)
    return {name: tuple(listed.split(", ")) for name, _, listed in named}


def vocabulary(name: str) -> tuple[str, ...]:
    """Return the words or phrases that vocabulary.txt has under a name."""
    return _lists()[name]


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


def any_of(words: Iterable[str]) -> str:
    """Return a pattern for one of several words."""
    return f"(?:{'|'.join(map(re.escape, sorted(words)))})"


def fold(word: str) -> str:
    """Return a lower-case word without accents: `łódź` becomes `lodz`."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.translate(_LETTERS))
    return "".join(c for c in decomposed if not unicodedata.combining(c)) or word  # a lone mark stays one


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


def _spelled_out(tokens: list[str], starts: list[int], ends: list[int]) -> tuple[list[str], list[int], list[int]]:
    """Return tokens with two words for each contraction, both of which begin and end where it does."""
    spans = zip(tokens, starts, ends, strict=True)
    parts = [(part, start, end) for token, start, end in spans for part in _contracted(token)]
    return [part for part, _, _ in parts], [start for _, start, _ in parts], [end for _, _, end in parts]


def _contracted(token: str) -> tuple[str, ...]:
    if token in _APOSTROPHE_LEFT_OUT:
        return (_APOSTROPHE_LEFT_OUT[token], "not")
    stem, contracted, ending = token.partition("'")
    if not contracted:
        return (token,)
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
    bounds = list(accumulate(map(len, pieces)))
    starts, ends = bounds[:-1:2], bounds[1::2]
    if not "".join(words).isascii():
        words = list(map(fold, words))
    said = frozenset(words)
    if "'" in plain or not said.isdisjoint(_APOSTROPHE_LEFT_OUT):
        words, starts, ends = _spelled_out(words, starts, ends)
        said = frozenset(words)
    index: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        index.setdefault(word, []).append(place)
    caseless = original.islower() or original.isupper()
    return Text(original, plain, words, words + _PADDING, starts, ends, index, said, caseless, joined)


class Said(str):
    """What a metric calls a piece of a text, which stands in `text` from offset `start` to `end`.

    It is a string, and equal to one: whoever does not ask where it stands reads it as such.
    """

    __slots__ = ("end", "start", "text")

    text: Text
    start: int
    end: int

    def __new__(cls, name: str, text: Text, start: int, end: int) -> Said:
        found = super().__new__(cls, name)
        found.text, found.start, found.end = text, start, end
        return found

    @classmethod
    def at(cls, text: Text, first: int, last: int, name: str) -> Said:
        """Return a name of the words from one place to another."""
        return cls(name, text, text.starts[first], text.ends[last])

    @classmethod
    def from_offset(cls, text: Text, start: int, name: str) -> Said:
        """Return a name of the word that begins at an offset, or of the rest of the text if it has none from there."""
        place = bisect_left(text.starts, start)
        return cls(name, text, start, text.ends[place] if place < len(text.ends) else len(text.plain))


@lru_cache(maxsize=64)
def _line(text: Text) -> tuple[str, Sequence[int]]:
    """Return the words of a text between single spaces, for patterns of words, and where each begins."""
    return f" {' '.join(text.words)} ", list(accumulate((len(word) + 1 for word in text.words), initial=1))


def matches(text: Text, pattern: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the named group of each match of a pattern of words, and the places of its first and its last word."""
    line, starts = _line(text)
    for found in pattern.finditer(line):
        name = found.lastgroup or ""
        yield name, bisect_right(starts, found.start(name)) - 1, bisect_left(starts, found.end(name)) - 1


def before(text: Text, place: int, count: int) -> str:
    """Return some words before a place, for patterns of words."""
    return f" {' '.join(text.words[max(place - count, 0) : place])} "


def after(text: Text, place: int, count: int) -> str:
    """Return some words after a place, for patterns of words."""
    return f" {' '.join(text.words[place + 1 : place + 1 + count])} "


def said(text: Text, hits: Iterable[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return the keywords of hits, each once and in their order, as they stand where the text says them first."""
    firsts: dict[str, tuple[int, int]] = {}
    for first, last, keyword in hits:
        if keyword not in firsts:
            firsts[keyword] = (first, last)
    return tuple([Said.at(text, first, last, keyword) for keyword, (first, last) in firsts.items()])


_SENTENCE_ENDS = frozenset({".", "!", "?", ";", "\n", "|", ":", "(", ")", "—", "-", "–"})
_BREAKS = _SENTENCE_ENDS | {"but", "however", "though", "although", "because", "since", "so", "then", "yet"}
NEGATORS = word_set("no not never without neither nor zero hardly unlikely leave skip")
_LISTING = frozenset({"no", "without", "neither", "nor"})
_AFFIRMING_AFTER_NOT = frozenset({"forget", "hesitate", "only", "just", "miss", "doubt"})
_SUBJECTS = frozenset({"you", "i", "we", "it", "there", "they", "the", "bring", "take", "wear", "expect"})
_JOINING = frozenset({"and", "or", "nor"})
_HEDGES = frozenset(
    {"if", "unless", "chance", "chances", "possibility", "probability", "risk", "might", "may", "could", "can", "case"}
    | {"possible", "possibly", "potential", "maybe", "perhaps", "whether"}
)
_DENIALS = frozenset({"unlikely", "unnecessary", "none", "free", "stopped", "ended"})
_DENYING = NEGATORS | _DENIALS
_REACH = 8
# "rain is not expected", "rain looks unlikely"
_DENIED_AFTER = re.compile(
    r" (?:(?:is|are|will|be|looks|seems|has|have|currently|today|:) ){0,2}"
    rf"(?:{any_of(_DENIALS)}|not (?:{any_of(_DENIALS)}|expected|likely|forecast|forecasted|needed|necessary|required)) "
)
_HEDGED = re.compile(rf" {any_of(_HEDGES)} (?:(?!{any_of((*_BREAKS, ','))} )\S{{1,64}} ){{0,3}}$")
Hit: TypeAlias = tuple[int, int, str]
"""The places of a keyword's first and last word, and the keyword; a plain tuple, as an answer has dozens."""


def _forms(word: str) -> set[str]:
    """Return a word with its regular inflections: `recommend` with `recommends`, `recommending`, `recommendation`."""
    forms = {word, word + "s"}
    if len(word) < 4 or not word.isascii():
        return forms
    stem = word[:-1] if word.endswith("e") else word
    forms |= {stem + ending for ending in ("es", "ed", "ing", "ion", "ions", "ation", "ations")}
    if word.endswith("y"):
        forms |= {word[:-1] + "ies", word[:-1] + "ied"}
    return forms


@lru_cache(maxsize=64)
def roots(word: str) -> tuple[str, ...]:
    """Return a word and what it may be an inflection of, for `find`: `museums` and `museum`, `hiking` and `hike`."""
    found = {word: None}
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            found[word.removesuffix(ending) + instead] = None
    return tuple(found)


@lru_cache(maxsize=256)
def _lexicon(
    keywords: tuple[str, ...],
) -> tuple[frozenset[str], Mapping[str, Sequence[tuple[str, int, Sequence[str]]]]]:
    """Return the words to look keywords up by, and for each the keywords, its place in them and all their words.

    A phrase is looked up by its longest word, which is the rarest as a rule: "mentioned" rather than "you".
    """
    entries: dict[str, list[tuple[str, int, Sequence[str]]]] = {}
    for keyword in keywords:
        words = read(keyword).words
        if len(words) == 1:
            for form in _forms(words[0]):
                entries.setdefault(form, []).append((keyword, 0, ()))
        elif words:
            rarest = max(words, key=len)
            entries.setdefault(rarest, []).append((keyword, words.index(rarest), words))
    return frozenset(entries), entries


def find(text: Text, keywords: tuple[str, ...]) -> list[Hit]:
    """Return every place where a text says one of the keywords, in the text's order.

    A keyword of one word is found in its inflections too; a phrase is found as it stands.
    """
    known, entries = _lexicon(keywords)
    hits: list[Hit] = []
    for word in text.said & known:
        for keyword, offset, phrase in entries[word]:
            for place in text.index[word]:
                if not phrase:
                    hits.append((place, place, keyword))
                elif text.words[max(place - offset, 0) : place - offset + len(phrase)] == phrase:
                    hits.append((place - offset, place - offset + len(phrase) - 1, keyword))
    hits.sort()
    return hits


@lru_cache(maxsize=64)
def affirmed(text: Text, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keywords that a text says without denying them, each once, in the text's order."""
    hits = find(text, keywords)
    return said(text, [hit for hit in hits if not denied(text, hit)]) if hits else ()


def denied(text: Text, hit: Hit) -> bool:
    """Say whether a keyword is negated: "no rain", "won't need an umbrella", "rain is not expected"."""
    if text.said.isdisjoint(_DENYING):
        return False  # most texts deny nothing at all, which their set of words tells at once
    first, last, _ = hit
    return _denied_before(text, first) or _denied_after(text, last)


def _denied_before(text: Text, first: int) -> bool:
    words = text.words
    comma = False
    absent = False
    for at in range(first - 1, max(first - _REACH, 0) - 1, -1):
        word = words[at]
        if word in _BREAKS:
            break
        if word == ",":
            between = words[at + 1 : first]
            if between and (len(between) > 2 or between[-1] not in _JOINING):
                break  # what follows the comma is no list such as "no snow, sleet or rain"
            comma = True
        elif word == "and" and words[at + 1] in _SUBJECTS:
            break
        elif word in NEGATORS:
            following = words[at + 1]
            if following in _AFFIRMING_AFTER_NOT:
                return False
            if following == "," or (comma and word not in _LISTING):
                break
            if absent:
                return False  # "don't go out without an umbrella" asks for one
            if word != "without":
                return True
            absent = True
    return absent


def _denied_after(text: Text, last: int) -> bool:
    return _DENIED_AFTER.match(after(text, last, 3)) is not None


def hedged(text: Text, hit: Hit) -> bool:
    """Say whether a keyword is only held possible: "if it rains", "a 20 % chance of rain"."""
    return not text.said.isdisjoint(_HEDGES) and _HEDGED.search(before(text, hit[0], 4)) is not None
