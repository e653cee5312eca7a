"""The dataset format JSON: a list of records, alone or as the one list of a mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any

import attrs
import orjson

from keval.errors import ConfigError, Problem
from keval.seams.infrastructure import DatasetRequest, RawRecord
from keval_formats import agent_skills

_BETWEEN = re.compile(r"[\s,:]*")
_decoded = JSONDecoder().raw_decode


@attrs.frozen
class Json:
    """A list of records, alone or as the one list of a mapping; the list `evals` is that of a skill's `evals.json`."""

    encoding: str = "utf-8-sig"

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield each item of the list."""
        try:
            text = request.path.read_text(encoding=self.encoding)
            orjson.loads(text)
        except LookupError as error:
            raise ConfigError([Problem(str(request.path), f"the dataset cannot be read: {error}")]) from error
        except orjson.JSONDecodeError as error:
            place = f"{request.path}:{error.lineno}:{error.colno}"
            told = "; for one object a line, name the file .jsonl" if "end of file" not in error.msg else ""
            raise ConfigError([Problem(place, f"not valid JSON: {error.msg}{told}")]) from error
        start, is_of_skill = self._start(text, request)
        line, seen = 1, 0
        for item, at in _items(text, start):
            line, seen = line + text.count("\n", seen, at), at
            try:
                is_case = is_of_skill and isinstance(item, dict)
                yield RawRecord(agent_skills.record(item, request.path) if is_case else item, line)
            except ValueError as error:
                yield Problem(f"{request.path}:{line}", str(error))

    def _start(self, text: str, request: DatasetRequest) -> tuple[int, bool]:
        """Return where the list begins, and whether it is that of a skill. Raises ConfigError: there is not one."""
        start = _after(text, 0)
        lists: dict[str, int] = {}
        if text[start] == "[":
            return start, False
        if text[start] == "{":
            at = _after(text, start + 1)
            while text[at] != "}":
                key, at = _decoded(text, at)
                begin = _after(text, at)
                value, end = _decoded(text, begin)
                lists |= {key: begin} if isinstance(value, list) else {}
                at = _after(text, end)
        if agent_skills.WORD in lists:
            return lists[agent_skills.WORD], True
        if len(lists) == 1:
            return next(iter(lists.values())), False
        found = f"the lists {', '.join(lists)}" if lists else "no list"
        told = f"expected a list of records, or a mapping with one such list; it has {found}"
        raise ConfigError([Problem(str(request.path), told)])


def _items(text: str, at: int) -> Iterator[tuple[Any, int]]:
    """Yield the items of the list that begins there, each with its place."""
    at = _after(text, at + 1)
    while text[at] != "]":
        item, end = _decoded(text, at)
        yield item, at
        at = _after(text, end)


def _after(text: str, at: int) -> int:
    """Return where the next item begins."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at
