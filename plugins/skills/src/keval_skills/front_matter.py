"""The front matter of a Markdown file: YAML between two lines `---`, in front of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import attrs
import yaml

_FRONT = re.compile(r"---[ \t]*(\r\n|\n|\r)(?P<yaml>.*?)^---[ \t]*(?:\r\n|\n|\r|\Z)", re.DOTALL | re.MULTILINE)


@attrs.frozen
class FrontMatter:
    """A file's front matter and what comes after it.

    `head` is the front matter with both of its lines `---`. `values` are its entries, in which every scalar is a text,
    and `lines` the line of each in the file, from 1. `spans` say where in `head` the entries are.
    """

    head: str
    body: str
    values: Mapping[str, Any]
    lines: Mapping[str, int]
    spans: Mapping[str, tuple[int, int]]

    @classmethod
    def read(cls, text: str) -> FrontMatter:
        """Read a file's front matter.

        Raises:
            FrontMatterError: it has none, or one that is no mapping in YAML.
        """
        found = _FRONT.match(text)
        if found is None:
            raise FrontMatterError(1, "there is no front matter; begin with `---`, `name:`, `description:` and `---`")
        offset = found.start("yaml")
        try:
            # In the base schema each scalar is a text, as in the published validator: `version: 1.0` stays as it is.
            node = yaml.compose(found["yaml"], yaml.BaseLoader)
            values = yaml.load(found["yaml"], yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 2 if error.problem_mark else 2
            told = f"the front matter is no YAML: {error.problem}; put a text with `: ` or `#` into quotation marks"
            raise FrontMatterError(line, told) from error
        except (yaml.YAMLError, RecursionError) as error:
            raise FrontMatterError(2, f"the front matter is no YAML: {str(error).splitlines()[0]}") from error
        if not isinstance(node, yaml.MappingNode):
            raise FrontMatterError(2, "the front matter is no mapping; write `name:` and `description:`")
        lines: dict[str, int] = {}
        spans: dict[str, tuple[int, int]] = {}
        for key, value in node.value:
            # Marks count from 0, and do not count the line `---` before the YAML.
            name, line = str(key.value), key.start_mark.line + 2
            if name in lines:
                raise FrontMatterError(line, f"{name!r} stands in line {lines[name]}, too; keep one")
            lines[name] = line
            spans[name] = (offset + key.start_mark.index, offset + value.end_mark.index)
        return cls(found[0], text[found.end() :], values, lines, spans)


def with_entry(head: str, name: str, text: str) -> str:
    """Return a front matter with this text as the value of one of its entries, which it need not have."""
    # JSON is YAML, and quotes whatever the text has in it.
    entry = f"{name}: {json.dumps(text, ensure_ascii=False)}"
    if not head:
        return f"---\n{entry}\n---\n"
    spans = FrontMatter.read(head).spans
    if name not in spans:
        start = min(begin for begin, _ in spans.values())
        return f"{head[:start]}{entry}\n{head[start:]}"
    start, end = spans[name]
    # A block scalar (`|`, `>`) has its last line's end in its span.
    newline = "\n" if head[start:end].endswith("\n") else ""
    return f"{head[:start]}{entry}{newline}{head[end:]}"


def without_entries(head: str, names: Collection[str]) -> str:
    """Return a front matter without some of its entries."""
    spans = FrontMatter.read(head).spans
    for start, end in sorted((spans[name] for name in names if name in spans), reverse=True):
        head = head[:start] + head[end:].removeprefix("\n")
    return head


class FrontMatterError(ValueError):
    """What is wrong with a front matter, and in which line of the file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


def head_length(text: str) -> int:
    """Return how many characters of a text are its front matter; 0 if it has none, but perhaps begins with a rule."""
    try:
        return len(FrontMatter.read(text).head)
    except FrontMatterError:
        return 0
