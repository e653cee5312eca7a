"""What differs between two runs, for people: counts, then what they were made of, then item by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.analysis.run_diff import Change, DifferentItem, RunDiff, Tally
from keval.report.console import print_sections, safe
from keval.report.figures import counted
from keval.report.lines import changed_parts, folded, one_line
from keval.report.terminal import foreign
from keval.store.converter import to_plain
from keval.store.lines import dump

_MOST = 8
"""Changes of one item, and of what the runs were made of, that are listed."""
_LONGEST = 200
"""Characters that are shown of a value, before and now."""
_MOST_LINES = 30
"""Lines that are shown of a value that has several."""


def describe_diff(found: RunDiff) -> dict[str, Any]:
    """Describe what differs as plain data."""
    return {"equal": found.equal, **to_plain(found)}


def print_diff(found: RunDiff, console: Console) -> None:
    """Print what differs between two runs, was → is; of long texts, the words that differ."""
    width = console.width
    sections = [
        _head(found, width),
        _made(found, width),
        *(_item(item, found, width) for item in found.items),
        _rest(found, width),
    ]
    print_sections(sections, console)


def _head(found: RunDiff, width: int) -> Iterator[Text]:
    yield from (Text(line, "bold") for line in folded(f"{one_line(found.before)} → {one_line(found.now)}", width))
    verdict = ("equal", "green") if found.equal else ("different", "bold red")
    yield Text.assemble("these runs are ", verdict)
    yield Text(f"made of  {counted(len(found.manifest), 'difference') if found.manifest else 'the same'}")
    for name, tally in (("samples", found.samples), ("trials", found.trials), ("scores", found.scores)):
        yield Text(f"{name:<7}  {_tally(tally, found)}")


def _tally(tally: Tally, found: RunDiff) -> str:
    parts = [f"{tally.equal:,} equal"]
    parts += [f"{tally.different:,} different"] if tally.different else []
    parts += [f"{tally.only_before:,} only in {one_line(found.before)}"] if tally.only_before else []
    parts += [f"{tally.only_now:,} only in {one_line(found.now)}"] if tally.only_now else []
    return ", ".join(parts)


def _made(found: RunDiff, width: int) -> Iterator[Text]:
    if found.manifest:
        yield Text("what the runs were made of", "bold")
        yield from _changes(found.manifest, width)
    if found.versions:
        told = ", ".join(f"{change.path} {_value(change)}" for change in found.versions[:_MOST])
        more = f", and {len(found.versions) - _MOST} more" if len(found.versions) > _MOST else ""
        yield from (
            Text(line, "dim") for line in folded(f"versions that differ, which is not counted: {told}{more}", width)
        )


def _item(item: DifferentItem, found: RunDiff, width: int) -> Iterator[Text]:
    yield Text.assemble(f"{item.kind} ", (one_line(item.id), "bold"))
    if item.only_in is not None:
        name = found.now if item.only_in == "now" else found.before
        yield from map(Text, folded(f"only in {one_line(name)}", width, indent=2))
    yield from _changes(item.changes, width)


def _changes(changes: Sequence[Change], width: int) -> Iterator[Text]:
    # What else differs in a trial that failed now follows from that.
    most = 1 if changes and changes[0].path == "failure" and changes[0].before is None else _MOST
    for change in changes[:most]:
        path, told, message = one_line(change.path.removeprefix("transcript.")), change, ""
        if change.path.endswith("failure") and isinstance(change.now, Mapping):  # it failed, and did not before
            told = attrs.evolve(change, now=f"{change.now['stage']}: {change.now['kind']}")
            message = str(change.now["message"])
        yield from map(Text, folded(f"{path}: {_value(told)}", width, indent=2))
        yield from _block(message, width)
    if len(changes) > most:
        yield Text(f"  and {counted(len(changes) - most, 'other difference')}; --json lists all", "dim")


def _block(text: str, width: int) -> Iterator[Text]:
    """Yield a text line by line as it stands: the message of a miss holds a diff."""
    lines = foreign(text).splitlines()
    for line in lines[:_MOST_LINES]:
        shown = Text(f"    {line}")
        shown.truncate(max(width, cell_len("    …")), overflow="ellipsis")
        yield shown
    if len(lines) > _MOST_LINES:
        yield Text(f"    … {counted(len(lines) - _MOST_LINES, 'line')} more", "dim")


def _value(change: Change) -> str:
    before, now = _told(change.before), _told(change.now)
    if change.only_in is not None:
        before, now = (before, "absent") if change.only_in == "before" else ("absent", now)
    elif before.split() == now.split():  # only spaces differ
        before, now = (dump(value).decode() for value in (change.before, change.now))
    return " → ".join(map(_cut, changed_parts(before, now)))


def _told(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) and value else dump(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _rest(found: RunDiff, width: int) -> Iterator[Text]:
    if found.unlisted:
        told = f"{found.unlisted:,} more samples and trials differ; --limit lists more, --json all of them"
        yield from (Text.assemble(safe(line, "dim")) for line in folded(told, width))
