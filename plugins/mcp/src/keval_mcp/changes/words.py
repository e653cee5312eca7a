"""Words: a text made unreadable, with the same length and the same shape, in a way that can be undone.

Every word, number and date becomes another one, the same wherever it stands, so that an id that a model reads in one
result and passes to the next call is translated back to the server's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

# Schemes of URLs, and the letters T and Z in times of ISO 8601, stay, so that URLs and times can still be read as such.
# Digits beside letters are part of a word.
_TOKEN = re.compile(
    r"(?P<kept>\b[a-z][a-z0-9+.-]*(?=://)|(?<=\d-\d\d)T(?=\d\d:\d\d)|(?<=\d)Z\b)"
    r"|(?P<hex>(?<![^\W_])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,}|(?<=#)(?:[0-9a-f]{6}|[0-9A-F]{6}))(?![^\W_]))"
    r"|(?P<date>(?<!\d)\d{4}-(?:\d{2}-\d{2}|0[1-9]|1[0-2])(?![\d-]))"
    r"|(?P<time>(?<!\d)\d{2}:\d{2}(?::\d{2})?(?!\d))"
    r"|(?P<number>(?<![^\W_])\d+(?=Z\b|[\W_]|$))"
    r"|(?P<word>[^\W_]+)"
)
_CHUNK = re.compile(r"\S+")
_EDGES = ".,;:!?()[]{}<>\"'`"
_TELLING = 4
"""Digits from which a number is translated back wherever a call has it; a shorter one may be the model's own."""
_SHORTEST = 3
_LONGEST = 200
"""Letters from which, and up to which, a word or a whole value is translated back."""
# How often another word is drawn where one is taken already; of short words there are few.
_DRAWS = 40
_MOST_CHOICES = 1000


@attrs.define
class Words:
    """The words of one trial, and what became of them.

    `key` is what they are drawn by. `known` are words that the agent has from elsewhere, as from its question: no other
    word becomes one of them, so that what it says in them is its own.
    """

    key: bytes
    known: set[str] = attrs.field(factory=set)
    _there: dict[str, str] = attrs.field(factory=dict, init=False)
    _back: dict[str, str] = attrs.field(factory=dict, init=False)
    _numbers: dict[str, dict[str, str]] = attrs.field(factory=dict, init=False)  # what became one, by its key
    # The server's own words that calls have given it, which an error may repeat (`hide`).
    _told: set[str] = attrs.field(factory=set, init=False)

    def learn(self, text: str) -> None:
        """Note words that the agent knows; no other word becomes one of them from now on."""
        self.known.update(token.lower() for _, token, _ in _tokens(text))

    def scramble(self, text: str, name: str = "") -> str:
        """Return an unreadable text of the same length. `name` is the key under which a whole value stands, if any."""
        pieces, end, before = [], 0, name
        for kind, token, start in _tokens(text):
            gap = text[end:start]
            pieces.append(gap)
            scrambled = self._scrambled(kind, token)
            if kind == "number":
                # In "page_id: 12" or "page 12" the word right before a number names it, as a key does.
                near = before if len(gap.strip()) <= 2 and len(gap) <= 3 else name
                self._numbers.setdefault(scrambled, {}).setdefault(_plain(near), token)
            pieces.append(scrambled)
            end, before = start + len(token), token
        made = "".join((*pieces, text[end:]))
        for original, scrambled in self._wholes(text, made):
            telling = 2 <= len(scrambled) <= _LONGEST and not scrambled.isdigit()
            if telling and scrambled.lower() not in self.known:
                self._back.setdefault(scrambled, original)
        return made

    def number(self, value: float, name: str = "") -> float:
        """Return a number of the same digits, sign and decimals. `name` is the key under which it stands."""
        text = repr(value)
        digits, e, power = text.partition("e")
        made = re.sub(r"\d+", lambda found: self._scrambled("number", found[0]), digits) + e + power
        self._numbers.setdefault(made.lstrip("-"), {}).setdefault(_plain(name), text.lstrip("-"))
        try:
            return type(value)(made)
        except ValueError:  # infinity, or no number
            return value

    def picks(self, value: Any, choices: Sequence[Any]) -> Iterator[Any]:
        """Yield choices for a value, from one that is drawn for it on; the value itself is none, nor is every choice.

        At most 1,000 are looked at.
        """
        first = int.from_bytes(self._draw("choice", repr(value), 0)[:8], "big")
        for number in range(min(len(choices), _MOST_CHOICES)):
            if (choice := choices[(first + number) % len(choices)]) != value:
                yield choice

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with the server's own words in place of those that a result gave for them."""
        return {name: self._restored(value, name) for name, value in arguments.items()}

    def hide(self, text: str) -> str:
        """Return a text in which the server's own words that a call gave it are scrambled again; all others stay."""
        return _replaced(
            text, lambda kind, token: self._scrambled(kind, token) if token.lower() in self._told else token
        )

    def _restored(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self._restored(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._restored(item, name) for item in value]
        if isinstance(value, str):
            return self._restored_text(value, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = repr(value)
            found = self._own_number(text.lstrip("-"), name)
            return value if found is None else type(value)(("-" if text.startswith("-") else "") + found)
        return value

    def _restored_text(self, text: str, name: str) -> str:
        if (whole := self._back.get(text)) is not None:
            self._told.update(token.lower() for _, token, _ in _tokens(whole))
            return whole

        def own(kind: str, token: str) -> str:
            if kind == "number":
                return self._own_number(token, name) or token
            if (found := self._back.get(token.lower())) is not None and len(token) >= _SHORTEST:
                self._told.add(found)
                return _like(token, found)
            # The agent has said it, so no later word may become it.
            self.known.add(token.lower())
            return token

        return _replaced(text, own)

    def _own_number(self, text: str, name: str) -> str | None:
        """Return the number that became this one: a long one, or one that stood under a key like the argument's."""
        found = self._numbers.get(text, {})
        near = next((original for key, original in found.items() if _alike(key, _plain(name))), None)
        if near is None and sum(map(str.isdigit, text)) >= _TELLING:
            return next(iter(found.values()), None)
        return near

    def _scrambled(self, kind: str, token: str) -> str:
        if kind == "kept":
            return token
        # Some letters become two in lower case, such as "İ", and the length must stay.
        word = token.lower() if len(token.lower()) == len(token) else token
        if word not in self._there:
            made = word
            for number in range(_DRAWS):
                made = _DRAWN[kind](word, self._draw(kind, word, number))
                if made != word and made not in self.known and made not in self._back:
                    # One number stands for several, so the way back goes by the keys beside them (`_numbers`).
                    if kind != "number":
                        self._back[made] = word
                    break
            self._there[word] = made
        return _like(token, self._there[word])

    def _draw(self, kind: str, word: str, number: int) -> bytes:
        """Return 64 bytes that depend on nothing but the key, the word and the number."""
        return hashlib.blake2b(f"{kind}\0{number}\0{word}".encode("utf-8", "replace"), key=self.key).digest()

    @staticmethod
    def _wholes(text: str, made: str) -> Iterator[tuple[str, str]]:
        """Yield what an agent may pass on as one value: the whole text, and each of its words with its hyphens."""
        yield text, made
        for found in _CHUNK.finditer(made):
            inner = found[0].strip(_EDGES)
            if len(inner) >= _SHORTEST:
                start = found.start() + found[0].index(inner)
                yield text[start : start + len(inner)], inner


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    for found in _TOKEN.finditer(text):
        yield found.lastgroup or "word", found[0], found.start()


def _replaced(text: str, replace: Callable[[str, str], str]) -> str:
    return _TOKEN.sub(lambda found: replace(found.lastgroup or "word", found[0]), text)


def _letters(word: str, drawn: bytes) -> str:
    """Return other letters for letters and other digits for digits; a letter that is not ASCII stays in its script."""
    made = []
    for position, letter in enumerate(word):
        number = drawn[position % len(drawn)] + position // len(drawn) * 7
        if letter.isdigit():
            made.append(str(number % 10) if letter.isascii() else letter)
        elif letter.isascii():
            made.append(chr(ord("a") + number % 26))
        else:
            # Scripts lie in blocks of Unicode, so most characters nearby are of the same one.
            near = (chr(ord(letter) & ~0x3F | (number + step) & 0x3F) for step in range(64))
            made.append(next((each for each in near if each.isalpha() and each.lower() == each), letter))
    return "".join(made)


def _digits(word: str, drawn: bytes) -> str:
    made = [str(drawn[position % len(drawn)] % 10) for position in range(len(word))]
    if len(word) > 1:  # as a number is written: without a leading zero, or with those that it had
        zeros = len(word) - len(word.lstrip("0"))
        made[:zeros] = "0" * zeros
        if zeros < len(word):
            made[zeros] = str(drawn[zeros % len(drawn)] % 9 + 1)
    return "".join(made)


def _date(word: str, drawn: bytes) -> str:
    """Return another day, or month, that the calendar has."""
    return f"{1950 + drawn[0] % 100:04}-{drawn[1] % 12 + 1:02}-{drawn[2] % 28 + 1:02}"[: len(word)]


def _time(word: str, drawn: bytes) -> str:
    made = f"{drawn[0] % 24:02}:{drawn[1] % 60:02}:{drawn[2] % 60:02}"
    return made[: len(word)]


def _hex(word: str, drawn: bytes) -> str:
    """Return other hexadecimal digits; hyphens, and the version and variant of a UUID, stay."""
    made = [
        letter if letter == "-" else str(each % 10) if letter.isdigit() else "abcdef"[each % 6]
        for letter, each in zip(word, drawn * (len(word) // len(drawn) + 1), strict=False)
    ]
    if "-" in word:
        made[14], made[19] = word[14], word[19]
    return "".join(made)


_DRAWN = {"word": _letters, "hex": _hex, "number": _digits, "date": _date, "time": _time}


def _like(token: str, made: str) -> str:
    """Return a word in the case of another one of its length."""
    if len(token) != len(made) or token == token.lower():
        return made
    return "".join(
        letter.upper() if shape.isupper() and len(letter.upper()) == 1 else letter
        for shape, letter in zip(token, made, strict=True)
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _alike(key: str, name: str) -> bool:
    """Return whether an argument is named like the key of a value: `id` and `page_id` are alike."""
    return len(key) > 1 and len(name) > 1 and (key in name or name in key)
