"""The difference between two contents of a file, in the format of Git, which `git apply` takes."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

import attrs

_SNIFFED = 8000
"""Bytes in which a NUL says that a file is binary, as for Git (buffer_is_binary)."""
_MOST_PAIRS = 1_000_000
"""Pairs of equal lines above which lines are not compared one by one, as that would take too long."""
_MOST_STEPS = 10_000_000
"""Lines and pairs of equal lines that are gone through for one file, which takes a second or two."""
_NO_NEWLINE = "\n\\ No newline at end of file\n"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f"}
_ESCAPES["\r"] = "\\r"


@attrs.frozen
class Version:
    """A file or link at one time; `content` is `None` if it is too large to show, cannot be read, or is no file."""

    mode: int
    content: bytes | None

    @property
    def is_text(self) -> bool:
        """Whether its content can be shown."""
        return self.content is not None and b"\0" not in self.content[:_SNIFFED]

    @property
    def written_mode(self) -> str:
        """Its mode as Git writes it; a link has no permissions."""
        return "120000" if stat.S_ISLNK(self.mode) else f"{self.mode:o}"


def quoted(path: str) -> str:
    """Return a path as it is, or quoted as Git does if it has a character that does not print."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    return f'"{"".join(_ESCAPES.get(each) or (each if each.isprintable() else _octal(each)) for each in path)}"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))


def difference(path: str, old: Version | None, new: Version | None) -> str:
    """Return how a file differs; `None` stands for one that is not there."""
    # Git knows no change of kind: one is taken away, and the other one is new.
    if old is not None and new is not None and stat.S_IFMT(old.mode) != stat.S_IFMT(new.mode):
        return difference(path, old, None) + difference(path, None, new)
    before, after = quoted(f"a/{path}"), quoted(f"b/{path}")
    head = f"diff --git {before} {after}\n"
    if old is None and new is not None:
        head += f"new file mode {new.written_mode}\n"
    elif new is None and old is not None:
        head += f"deleted file mode {old.written_mode}\n"
    elif old is not None and new is not None and old.written_mode != new.written_mode:
        head += f"old mode {old.written_mode}\nnew mode {new.written_mode}\n"
    # Only the mode has changed.
    if old is not None and new is not None and old.content is not None and old.content == new.content:
        return head
    before, after = before if old is not None else "/dev/null", after if new is not None else "/dev/null"
    if not all(version is None or version.is_text for version in (old, new)):
        return f"{head}Binary files {before} and {after} differ\n"
    lines = [_lines(version.content) if version and version.content else [] for version in (old, new)]
    hunks = "".join(_hunks(*lines))
    return f"{head}--- {_named(before)}\n+++ {_named(after)}\n{hunks}" if hunks else head


def _named(path: str) -> str:
    return f"{path}\t" if " " in path else path  # so that the end of a name is seen


def _lines(content: bytes) -> list[str]:
    """Return the lines, each with its end; bytes that are no UTF-8 are shown as escapes."""
    text = content.decode("utf-8", "backslashreplace")
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last + _NO_NEWLINE] if last else lines


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _Matcher(old, new).get_grouped_opcodes():
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[old_from:old_to])
                continue
            yield from (f"-{line}" for line in old[old_from:old_to])
            yield from (f"+{line}" for line in new[new_from:new_to])


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + bool(length)},{length}"


class _Matcher(SequenceMatcher[str]):
    """Finds equal lines in a bounded time: where too many are equal, only what both texts begin and end with.

    Where the search takes too long, what it has found by then stays, and all else is replaced.
    """

    # Of the base class, whose stub does not have them.
    a: Sequence[str]
    b2j: dict[str, list[int]]

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__()  # given texts, it would build an index of all their lines
        self._old, self._new = old, new
        self._steps_left = _MOST_STEPS

    # `get_grouped_opcodes` builds on these blocks, and asks for nothing else.
    def get_matching_blocks(self) -> list[Match]:
        old, new = self._old, self._new
        head = _common(old, new)
        tail = _common(old[head:][::-1], new[head:][::-1])
        old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
        counts = Counter(new_middle)
        blocks = [Match(0, 0, head)] if head else []
        if sum(counts[line] for line in old_middle) <= _MOST_PAIRS:
            self.set_seqs(old_middle, new_middle)
            found = super().get_matching_blocks()[:-1]
            blocks += [Match(head + at, head + to, length) for at, to, length in found]
        if tail:
            blocks.append(Match(len(old) - tail, len(new) - tail, tail))
        return [*blocks, Match(len(old), len(new), 0)]

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        # It is called for each block that is found, and goes through the lines around it and their places again.
        self._steps_left -= sum(1 + len(self.b2j.get(line, ())) for line in self.a[alo:ahi])
        return super().find_longest_match(alo, ahi, blo, bhi) if self._steps_left >= 0 else Match(alo, blo, 0)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines are equal from the beginning on."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(old), len(new)))
