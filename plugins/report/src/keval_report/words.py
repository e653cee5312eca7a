"""Names and lines of text, as every report writes them."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from keval.cli.messages import foreign
from keval.records.formats import counted, interval, short_number, signed
from keval.records.manifest import Manifest
from keval.records.scores import Scale, Scorer
from keval.records.transcript import Transcript
from keval.seams.results import mirror_of


def display_names(scorers: Iterable[Scorer]) -> Mapping[Scorer, str]:
    """Return each scorer's name: the last part of the metric's with spaces in place of underscores, or a check's name.

    Two metrics with the same last part keep their full names, and a rubric that several judges grade by has the judge.
    """
    known = list(dict.fromkeys(scorers))
    graded = Counter(metric for metric, _ in known)
    last = {metric: one_line(_name(metric)) or one_line(metric) for metric in graded}
    shared = Counter(last.values())
    names = {}
    for metric, judge in known:
        name = last[metric] if shared[last[metric]] == 1 else one_line(metric)
        names[metric, judge] = f"{name} by {one_line(judge)}" if judge and graded[metric] > 1 else name
    return names


_CHECKS = "verify/"
"""How the names of metrics begin that tell what checks found; the names of checks are people's words."""


def _name(metric: str) -> str:
    """Return what to call a metric besides its vendor."""
    if metric.startswith(_CHECKS):
        return "all checks" if metric == f"{_CHECKS}all" else metric.removeprefix(_CHECKS)
    return metric.rpartition("/")[2].replace("_", " ")


def with_units(name: str, scale: Scale) -> str:
    """Return a metric's name with what its figures are in: `tone (1-5)`, `time (s)`; nothing for one from 0 to 1."""
    usual = (scale.low, scale.high) == (0.0, 1.0) or math.isinf(scale.high)
    between = " to " if scale.low < 0 else "-"
    span = "" if usual else f"{short_number(scale.low)}{between}{short_number(scale.high)}"
    told = " ".join(filter(None, (span, one_line(scale.unit))))
    return f"{name} ({told})" if told and told != name else name


LABEL = 9
"""How wide the labels of a report's last lines are, such as `gates`."""


def one_line(text: str) -> str:
    """Return text of others for a line of a terminal: as `foreign` makes it, on one line."""
    return " ".join(foreign(text).split())


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text that is exactly so many cells wide: filled with spaces, or cut with `…` at its end."""
    lacking = width - cell_len(text)
    if lacking < 0:
        # A wide character at the cut leaves a cell, which this fills with a space.
        return set_cell_size(text, width - 1) + "…"
    return " " * lacking + text if right else text + " " * lacking


_COMMAND = re.compile(r"(?:^|(?<=: ))keval \w+ .*$")
"""A command that ends a text."""


def folded(text: str, width: int, *, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield lines of at most `width` cells, folded at spaces; a longer word is cut.

    A command at the end stays whole, so that it can be copied. The first line begins after `indent` spaces, the others
    after `hanging`, two more unless it says otherwise.
    """
    start = " " * indent
    rest = " " * (indent + 2 if hanging is None else hanging)
    line, begun = start, False
    command = _COMMAND.search(text)
    for word in text.split() if command is None else (*text[: command.start()].split(), command[0]):
        if begun and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line, begun = rest, False
        # By cells, as a wide character takes two of them.
        whole = cell_len(line) + cell_len(word) <= width or (command and word == command[0])
        pieces = [word] if whole else chop_cells(word, max(1, width - len(rest)))
        for piece in pieces[:-1]:
            yield line + piece
            line = rest
        line, begun = (f"{line} " if begun else line) + pieces[-1], True
    if begun:
        yield line


def fitted(lines: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines; one that is too long is folded at spaces, further in from its second line on."""
    for line in lines:
        text = line.plain
        indent = len(text) - len(text.lstrip())
        # A line that is folded keeps its own style, and loses those of its parts.
        kept = [line] if line.cell_len <= width else folded(text, width, indent=indent)
        yield from (Text(part, line.style) if isinstance(part, str) else part for part in kept)


def flowed(parts: Iterable[str], width: int) -> Iterator[str]:
    """Yield lines of as many parts as fit, with a gap between; a part that is longer than a line is folded."""
    line, gap = "", "   "
    for part in parts:
        if line and cell_len(line) + len(gap) + cell_len(part) > width:
            yield from folded(line, width) if cell_len(line) > width else [line]
            line = part
        else:
            line = f"{line}{gap}{part}" if line else part
    if line:
        yield from folded(line, width) if cell_len(line) > width else [line]


def labelled(label: str, texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield lines of texts that are set in, with a label before the first; nothing without a text."""
    for number, text in enumerate(texts):
        begin = f"{label if number == 0 else '':<{LABEL}}"
        lines = folded(text, width - LABEL, hanging=2)
        yield from (f"{begin if row == 0 else ' ' * LABEL}{line}" for row, line in enumerate(lines))


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Return a difference with its interval, as far as it is known."""
    return f"{signed(value)} {interval(low, high, signs=True)}".rstrip()


def shortened(parts: Sequence[str], most: int, noun: str = "") -> list[str]:
    """Return the first parts, and then how many more there are."""
    left = len(parts) - most
    told = counted(left, f"more {noun}") if noun else f"{left} more"
    return [*parts[:most], told] if left > 0 else [*parts]


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Join parts as a sentence does: `a, b and c`."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


_AROUND = 5
"""Words that are shown around what differs in long texts."""


def changed_words(before: str, now: str) -> str:
    """Return how something was and is, on one line: `before → now`, as `changed_parts` has them."""
    return " → ".join(changed_parts(before, now))


def changed_parts(before: str, now: str) -> tuple[str, str]:
    """Return how something was and is, each on one line. Of long texts, the words that differ, and a few around."""
    was, is_now = one_line(before).split(), one_line(now).split()
    shorter = min(len(was), len(is_now))
    begin = next((at for at in range(shorter) if was[at] != is_now[at]), shorter)
    end = next((at for at in range(shorter - begin) if was[-1 - at] != is_now[-1 - at]), shorter - begin)
    first, last = max(0, begin - _AROUND), max(0, end - _AROUND)
    if first + last <= _AROUND:
        return " ".join(was), " ".join(is_now)

    def part(words: Sequence[str]) -> str:
        return " ".join([*(["…"] if first else []), *words[first : len(words) - last], *(["…"] if last else [])])

    return part(was), part(is_now)


def rubric_name(metric: str) -> str:
    """Return a rubric's name as reports show it."""
    return one_line(metric.replace("_", " "))


def run_place(run: Path) -> str:
    """Return where a run is: its path, or its URL if it is mirrored."""
    mirror = mirror_of(run.parent.parent)
    return str(run) if mirror is None else mirror.url(run)


def picked(record: object, *names: str) -> dict[str, Any]:
    """Return fields of a record by their names."""
    return {name: getattr(record, name) for name in names}


def run_name(run: Path) -> str:
    """Return what commands call a run: its id if it is in `results`, where they look by themselves, else its place."""
    return run.name if run.parent.parent == Path("results") else run_place(run)


def run_title(manifest: Manifest, beside: Manifest | None = None) -> str:
    """Return what headlines call a run: its note, or when it began; its evaluation, too, without one of it `beside`."""
    note = f"“{manifest.note}”" if manifest.note else ""
    name = "" if beside and beside.evaluation == manifest.evaluation else f"{manifest.evaluation} "
    return one_line(name + (note or (manifest.started or manifest.run)[:19].replace("T", " ")))


def show_command(run: Path, trial: str) -> str:
    """Return the command that shows a trial in the terminal."""
    return shlex.join(["keval", "show", run_name(run), "--trial", trial])


def witnesses(transcript: Transcript) -> str | None:
    """Return who told of a trial's calls in the agent's place; `None` where the agent told of all."""
    told = ["tool calls as the tap recorded them"] if transcript.tool_calls_by == "tap" else []
    told += ["model calls and tokens as the proxy counted them"] if transcript.model_calls_by == "proxy" else []
    return "; ".join(told) or None


def way_words(way: str) -> str:
    """Return how a text is given: `by AGENTS.md`, `in the system prompt`."""
    return f"in the {way}" if way == "system prompt" else f"by {way}"
