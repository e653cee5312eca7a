"""Redaction: secrets are replaced in all that is printed and written, in every form in which they turn up."""

from __future__ import annotations

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import attrs
import orjson

MARK = "[secret]"
"""What stands in place of a secret."""
SHORTEST = 6
"""Shorter values are not replaced, because they occur in ordinary text."""

_LONG = 16
"""Characters from which a line of a secret, or a segment of a URL's path, is a secret of its own."""

_HANDLES = {"id", "trial", "sample", "agent", "model", "condition", "metric", "judge", "digest"}
"""Keys at the top of a line by which trials and scores are found again. Labels and models are not secret."""
_WORDS = {"role", "stage", "server"}
"""Keys of records whose values are keval's own words, or labels."""
_FOREIGN = {"arguments", "details", "facts", "metadata"}
"""Keys of records whose values are mappings of others, with keys that may hold a secret, too."""

T = TypeVar("T", str, bytes)


@attrs.define(eq=False)
class Redactor:
    """Replaces the secrets that it has learned by `[secret]`.

    `replaced` counts the lines in which each secret was found, by the name that it was learned under.
    """

    replaced: Counter[str] = attrs.field(factory=Counter, init=False)
    _found: set[str] = attrs.field(factory=set, init=False)
    _names: dict[str, str] = attrs.field(factory=dict, init=False)
    _forms: tuple[tuple[str, bytes, str], ...] = attrs.field(default=(), init=False)
    _in_text: tuple[str, ...] = attrs.field(default=(), init=False)
    _in_lines: tuple[bytes, ...] = attrs.field(default=(), init=False)
    _in_content: tuple[bytes, ...] = attrs.field(default=(), init=False)

    def learn(self, secrets: Iterable[tuple[str, str]]) -> None:
        """Replace these secrets from now on: pairs of a name and a value. Values that are too short are left out."""
        for name, value in secrets:
            for part in _parts(value):
                for form in _forms(part):
                    self._names.setdefault(form, name)
        # Longest first, so that a secret that contains another one is replaced completely.
        forms = sorted(self._names, key=len, reverse=True)
        self._forms = tuple((form, _bytes(form), self._names[form]) for form in forms)
        self._in_text = _shortest(forms)
        self._in_content = _shortest(map(_bytes, forms))
        # As orjson escapes them: a line is searched before it is parsed.
        self._in_lines = _shortest(orjson.dumps(_encodable(form))[1:-1] for form in forms)

    @property
    def knows_any(self) -> bool:
        """Whether there is anything to replace."""
        return bool(self._forms)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where secrets stand in a text, first to last; what is replaced already is none."""
        if not any(needle in text for needle in self._in_text):
            return []
        found: list[tuple[int, int]] = []
        start = 0
        for piece in text.split(MARK):
            found += ((start + begin, start + end) for form in self._forms for begin, end in _found(piece, form[0]))
            start += len(piece) + len(MARK)
        return _merged(sorted(found))

    def text(self, text: str) -> str:
        """Return a text with its secrets replaced."""
        return self._hidden(text, self._in_text, MARK, 0)

    def content(self, content: bytes) -> bytes:
        """Return content of any kind with its secrets replaced."""
        return self._hidden(content, self._in_content, MARK.encode(), 1)

    def data(self, value: Any) -> Any:
        """Return plain data with the secrets in its texts and keys replaced."""
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def line(self, line: bytes) -> bytes:
        """Return a record as a line of JSON with its secrets replaced; its keys, ids, labels and models stay."""
        if not self.finds_in_json(line):
            return line
        record = orjson.loads(line)
        # A set for each line: `replaced` counts lines, and not how often a secret stands in one.
        self._found.clear()
        told = {key: item if key in _HANDLES else self._record(key, item) for key, item in record.items()}
        self.replaced.update(self._found)
        return orjson.dumps(told)

    def lines(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Return several lines with their secrets replaced; to find none in all of them at once takes less time."""
        return [self.line(line) for line in lines] if self.finds_in_json(b"\n".join(lines)) else lines

    def finds_in_json(self, line: bytes) -> bool:
        """Return whether a text or key of data that was written as JSON holds a secret."""
        # A loop and not any(): it runs for every line of a run.
        for needle in self._in_lines:  # noqa: SIM110
            if needle in line:
                return True
        return False

    def _record(self, key: str, value: Any) -> Any:
        if key in _WORDS:
            return value
        if key in _FOREIGN or isinstance(value, str):
            return self.data(value)
        if isinstance(value, dict):
            return {name: self._record(name, item) for name, item in value.items()}
        return [self._record("", item) for item in value] if isinstance(value, list) else value

    def _hidden(self, text: T, needles: Iterable[T], mark: T, kind: int) -> T:
        """Replace every form, and leave what is replaced already: a secret may be part of the mark."""
        # As in `finds_in_json`: nearly every text is searched and left as it is.
        for needle in needles:
            if needle in text:
                break
        else:
            return text
        # Joined only at the end: a form that is replaced later must not be found in a mark or across one.
        pieces = text.split(mark)
        for form in self._forms:
            parted = [part for piece in pieces for part in piece.split(form[kind])]  # type: ignore[arg-type]
            if len(parted) > len(pieces):
                self._found.add(form[2])
            pieces = parted
        return mark.join(pieces)


def _parts(value: str) -> Iterator[str]:
    """Yield what is secret in a value: all of it, the long lines of it, and the telling parts of a URL."""
    found = [value, value.strip()]
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        # A line of a PEM file may be quoted alone. Its first and last line are the same in all keys.
        found += [line for line in lines if len(line) >= _LONG and not line.startswith("-----")]
    if "://" in value:
        found += _of_url(value.strip())
    yield from (part for part in found if len(part) >= SHORTEST)


def _of_url(value: str) -> Iterator[str]:
    try:
        url = urlsplit(value)
        # Errors name the address of a server without its user and query.
        if (url.username or url.query) and len(url.path) > 1:
            yield f"{url.netloc.rpartition('@')[2]}{url.path}"
        password = url.password or ""
    except ValueError:
        return
    yield from (password, unquote(password))
    yield from (part for _, part in parse_qsl(url.query))
    yield from (part for part in url.path.split("/") if len(part) >= _LONG)


def _forms(value: str) -> Iterator[str]:
    """Yield a secret as it is, in JSON, in JSON within JSON, as Python shows it, in URLs, in HTML and in base64."""
    yield from (value, _encodable(value))
    for ascii_only in (False, True):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield from (once, json.dumps(once)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1])
    raw = _bytes(value)
    yield from (repr(value)[1:-1], ascii(value)[1:-1], repr(raw)[2:-1], html.escape(value))
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        # RFC 3986, section 2.1: the digits of an escape may be upper or lower case.
        yield from (quoted, re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted))
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[str]:
    """Yield what stands in base64 for these bytes, alone and as part of more: each of three positions has its own.

    RFC 4648, sections 4 and 5: a character holds six bits, so the first and last may hold bits of the neighbours.
    """
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield from (whole, whole.rstrip("="))
        for before, shared in ((0, 0), (1, 2), (2, 3)):
            text = encode(b"\0" * before + raw).decode()
            yield text[shared : (before + len(raw)) * 8 // 6]


def _shortest(needles: Iterable[T]) -> tuple[T, ...]:
    """Leave out what contains another one: to know whether anything is there, the shorter ones are enough."""
    kept: list[T] = []
    for needle in sorted(set(needles), key=len):
        if not any(other in needle for other in kept):
            kept.append(needle)
    return tuple(kept)


def _found(text: str, part: str) -> Iterator[tuple[int, int]]:
    begin = text.find(part)
    while begin >= 0:
        yield begin, begin + len(part)
        begin = text.find(part, begin + 1)


def _merged(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join places that overlap; they are given in order."""
    merged: list[tuple[int, int]] = []
    for begin, end in places:
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _bytes(text: str) -> bytes:
    """Encode a text; a byte of the environment that is not UTF-8 is a lone surrogate."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
