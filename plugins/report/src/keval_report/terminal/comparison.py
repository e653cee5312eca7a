"""Comparisons of runs and arms, and differences between two runs, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.messages import foreign
from keval.records.formats import counted, number, signed
from keval.store.serialization import dump, to_plain
from keval_analysis.comparison import ArmComparison, Comparison, RunArms, SampleChange
from keval_analysis.composition import Difference
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.summary import Summary
from keval_replay.run_diff import Change, DifferentItem, RunDiff
from keval_report.blocks import Block, block_of, blocks, claims_of
from keval_report.claims import Level
from keval_report.contexts import SHORT, diff_lines
from keval_report.effects import effect_lines
from keval_report.means import mean_lines
from keval_report.origin import replay_label
from keval_report.terminal.console import print_sections
from keval_report.terminal.overview import headline
from keval_report.words import changed_parts, changed_words, display_names, fitted, folded, one_line, padded

_MOST = 10
"""Samples that are listed as better, and as worse."""
_DIFFS = 5
"""Diffs that are shown there."""


def describe_run(summary: Summary) -> dict[str, Any]:
    """Describe the arms and effects of one run as plain data."""
    return {
        "runs": [_run(summary)],
        "scorers": to_plain(summary.scorers),
        "arms": [{"run": summary.run, **to_plain(arm)} for arm in summary.arms],
        "agents": [],
        "effects": to_plain(summary.effects),
        "interactions": to_plain(summary.interactions),
        "differences": [],
        "changes": [],
    }


def describe_comparisons(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Describe comparisons of several runs with one run as plain data; that one is the first of `runs`."""
    first = comparisons[0].runs[1]
    runs = [first, *(each.runs[0] for each in comparisons)]
    scorers = {entry.scorer: entry for each in comparisons for entry in each.scorers}
    pairs = [(each, {"run": each.runs[0].run, "against": first.run}) for each in comparisons]
    return {
        "runs": [_run(run) for run in runs],
        "scorers": [to_plain(entry) for entry in scorers.values()],
        "arms": [{"run": run.run, **to_plain(arm)} for run in runs for arm in run.arms],
        "effects": [to_plain(effect) for each in comparisons for effect in each.effects],
        "agents": [
            {"run": each.runs[0].run, "agent": agent, "against": {"run": first.run, "agent": other}}
            for each in comparisons
            for agent, other in each.agents.items()
        ],
        "interactions": [],
        "differences": [{**sides, **to_plain(found)} for each, sides in pairs for found in each.differences],
        "changes": [
            {**sides, **to_plain(change), "difference": change.difference}
            for each, sides in pairs
            for change in each.changes
        ],
    }


def print_arms(summary: Summary, console: Console, *, questions: int | None, level: Level = "first") -> None:
    """Print the effects and the means of one run, and nothing else."""
    width, plot = console.width, not console.options.ascii_only
    effects = effect_lines(blocks(summary, level), width, plot=plot)
    sections = (headline(summary, questions, width), effects, mean_lines(summary, width))
    print_sections([fitted(section, width) for section in sections], console)


def print_comparisons(comparisons: Sequence[Comparison], console: Console, level: Level = "first") -> None:
    """Print what each run differs in from the one that all are compared with, and what that makes."""
    width = console.width
    for position, each in enumerate(comparisons):
        if position:
            console.print()
        sections = [
            _differences(each, width, level),
            effect_lines([comparison_block(each, level)], width, plot=not console.options.ascii_only),
            _changes(each, width),
        ]
        print_sections([fitted(section, width) for section in sections], console)


def _run(of: Summary | RunArms) -> dict[str, Any]:
    replay = to_plain(of.replay) if of.replay else None
    return {"run": of.run, "evaluation": of.evaluation, "simulated": list(of.simulated), "replay": replay}


def _differences(found: Comparison, width: int, level: Level) -> Iterator[Text]:
    """Yield the two runs, and what differs besides their answers."""
    now, before = found.runs
    yield Text(f"{one_line(now.run)} against {one_line(before.run)}", "bold")
    marks = []
    for what, tested, graded_only in (("MODEL", "a model", False), ("JUDGE", "the answers", True)):
        if simulated := [run.run for run in found.runs if run.simulated and run.graded_only == graded_only]:
            marks.append(f"SIMULATED {what} in {', '.join(simulated)}: the figures test keval, not {tested}")
    marks += [one_line(f"{run.run}: {replay_label(run.replay)}") for run in found.runs if run.replay is not None]
    yield from (Text(told, "bold yellow") for told in marks)
    if others := [f"{agent} with {other}" for agent, other in found.agents.items() if agent != other]:
        told = one_line(f"agents of other names are compared, question by question: {', '.join(others)}")
        yield Text(told, "yellow")
    yield from difference_lines(found.differences, width, SHORT if level == "first" else None, ": --explain")


def difference_lines(
    differences: Sequence[Difference], width: int, most: int | None = None, more: str = ""
) -> Iterator[Text]:
    """Yield what else differs between two runs; what changed alike shares a row. See `diff_lines` for long texts."""
    if not differences:
        yield Text("nothing else differs: neither dataset, models, prompts, tools nor versions")
        return
    yield Text("other differences, before → now:")
    labels: dict[tuple[str, Sequence[str]], list[str]] = {}
    for each in differences:
        told = "" if each.diff else changed_words(each.before, each.now)
        labels.setdefault((told, each.diff), []).append(one_line(each.what))
    rows = {key: _joined(names) for key, names in labels.items()}
    column = min(max((cell_len(name) for (_, diff), name in rows.items() if not diff), default=0), width // 2 - 4)
    unshown = [name for (_, diff), name in rows.items() if diff][_DIFFS if most is not None else len(rows) :]
    for (told, diff), name in rows.items():
        if name in unshown:
            continue
        if diff:
            yield from map(Text, folded(name, width, indent=2))
            yield from diff_lines(diff, width, indent=4, most=most, more=more)
            continue
        fits = cell_len(name) <= column
        lines = list(folded(told, width - column - 4, hanging=0))
        if not fits:
            yield Text(f"  {name}")
        for row, line in enumerate(lines):
            yield Text(f"  {padded(name if fits and row == 0 else '', column)}  {line}")
    if unshown:
        yield from map(Text, folded(f"and {_joined(unshown)}{more}", width, indent=2))


def _joined(names: Sequence[str]) -> str:
    """Return names with the words once that all of them begin and end with: `prompt of a, b`."""
    words = [name.split() for name in names]
    fewest = min(map(len, words)) - 1
    begin, end = (
        next((at for at in range(fewest) if len({each[::step][at] for each in words}) > 1), fewest) for step in (1, -1)
    )
    end = min(end, fewest - begin)
    middle = ", ".join(" ".join(each[begin : len(each) - end]) for each in words)
    return " ".join([*words[0][:begin], middle, *words[0][len(words[0]) - end :]])


def arm_block(found: ArmComparison) -> Block:
    """Return the block of the effects between two arms, without a title."""
    arm, against = found.arm, found.against
    means = {arm.run.manifest.run: found.means[0]}
    means[against.run.manifest.run] = (*means.get(against.run.manifest.run, ()), *found.means[1])
    return block_of("", claims_of(found.effects, found.scorers, means, lambda effect: effect.agent))


def comparison_block(found: Comparison, level: Level = "explained", against: str = "") -> Block:
    """Return the block of the effects between two runs; `against` is what to call the other one in place of its id."""
    now, before = found.runs
    agents = [agent if agent == other else f"{agent} against {other}" for agent, other in found.agents.items()]
    names = dict(zip(found.agents, agents, strict=True))
    conditions = {effect.condition for effect in found.effects}

    def label(effect: Effect) -> str:
        parts = [names[effect.agent]] if len(agents) > 1 or len(conditions) == 1 else []
        return " ".join([*parts, effect.condition] if len(conditions) > 1 else parts)

    claims = claims_of(found.effects, found.scorers, {now.run: now.arms, before.run: before.arms}, label)
    alone = [next(iter(of)) for of in (agents, conditions) if len(of) == 1]
    if agents == [*found.agents]:
        arms = f"{', '.join(alone)}: every arm" if len(alone) == 1 else " ".join(alone) or "every arm"
        title = f"{arms} against the same of {against or before.run}"
    else:
        title = f"{agents[0] if len(agents) == 1 else 'agents against others'} of {against or before.run}"
        title += f", {next(iter(conditions))}" if len(conditions) == 1 else ""
    about: Literal["agent", "arm", "condition"] = "agent"
    if len(conditions) > 1:
        about = "arm" if len(agents) > 1 else "condition"
    return attrs.evolve(block_of(one_line(title), claims, level), about=about)


def _changes(found: Comparison, width: int) -> Iterator[Text]:
    """Yield the samples that got worse, the largest loss first, and those that got better, the largest gain first."""
    scales = {entry.scorer: entry.scale for entry in found.scorers}
    names = display_names(scales)

    def gained(change: SampleChange) -> bool:
        return (change.difference > 0) == (scales[change.metric, change.judge].better == "higher")

    def is_endless(change: SampleChange) -> bool:
        return math.isinf(scales[change.metric, change.judge].high)

    # Changes on scales without an end cannot be ranked with others.
    worse = sorted((change for change in found.changes if not gained(change)), key=is_endless)
    better = sorted((change for change in reversed(found.changes) if gained(change)), key=is_endless)
    shown = [*worse[:_MOST], *better[:_MOST]]
    if not shown:
        yield Text("no sample changed")
        return
    cells = {
        id(change): (
            one_line(change.sample),
            one_line(f"{change.agent} {change.condition}"),
            names[change.metric, change.judge],
            f"{number(change.before)} → {number(change.now)}",
            signed(change.difference),
        )
        for change in shown
    }
    widths = [max(cell_len(row[column]) for row in cells.values()) for column in range(5)]
    columns = [0, 1, 2, 3, 4]
    if 2 * len(columns) + sum(widths) > width:
        columns.remove(3)  # names need the room more than the means, whose difference is told
    for column in (2, 0, 1):  # what is cut first, if the lines are too long
        excess = 2 * len(columns) + sum(widths[shown] for shown in columns) - width
        widths[column] = max(min(widths[column], 14), widths[column] - max(0, excess))
    for heading, group, style in (("got worse", worse, "red"), ("got better", better, "green")):
        if group:
            more = f", the {_MOST} most" if len(group) > _MOST else ""
            yield Text.assemble((heading, style), f" ({counted(len(group), 'score')} of samples{more})")
        for change in group[:_MOST]:
            row = cells[id(change)]
            parts = (padded(row[column], widths[column], right=column == 4) for column in columns)
            line = Text(f"  {'  '.join(parts)}")
            line.truncate(width, overflow="ellipsis")
            yield line


_LISTED = 8
"""Changes of one item, and of the runs' manifests, that are listed."""
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
    sections = [_head(found, width), _made(found, width), *(_item(item, found, width) for item in found.items)]
    if found.unlisted:
        told = f"{found.unlisted:,} more samples and trials differ; --limit lists more, --json all of them"
        sections.append(Text(line, "dim") for line in folded(told, width))
    print_sections(sections, console)


def _head(found: RunDiff, width: int) -> Iterator[Text]:
    before, now = one_line(found.before), one_line(found.now)
    yield from (Text(line, "bold") for line in folded(f"{before} → {now}", width))
    yield Text.assemble("these runs are ", ("equal", "green") if found.equal else ("different", "bold red"))
    yield Text(f"manifest  {counted(len(found.manifest), 'difference') if found.manifest else 'the same'}")
    for name, tally in (("samples", found.samples), ("trials", found.trials), ("scores", found.scores)):
        apart = ((tally.only_before, before), (tally.only_now, now))
        counts = [(tally.different, "different"), *((count, f"only in {run}") for count, run in apart)]
        told = [f"{tally.equal:,} equal", *(f"{count:,} {what}" for count, what in counts if count)]
        yield Text(f"{name:<8}  {', '.join(told)}")


def _made(found: RunDiff, width: int) -> Iterator[Text]:
    if found.manifest:
        yield Text("the runs' manifests", "bold")
        yield from _change_lines(found.manifest, width)
    if found.versions:
        told = ", ".join(f"{change.path} {_value(change)}" for change in found.versions[:_LISTED])
        more = f", and {len(found.versions) - _LISTED} more" if len(found.versions) > _LISTED else ""
        lines = folded(f"versions that differ, which is not counted: {told}{more}", width)
        yield from (Text(line, "dim") for line in lines)


def _item(item: DifferentItem, found: RunDiff, width: int) -> Iterator[Text]:
    yield Text.assemble(f"{item.kind} ", (one_line(item.id), "bold"))
    if item.only_in is not None:
        name = found.now if item.only_in == "now" else found.before
        yield from map(Text, folded(f"only in {one_line(name)}", width, indent=2))
    yield from _change_lines(item.changes, width)


def _change_lines(changes: Sequence[Change], width: int) -> Iterator[Text]:
    # What else differs in a trial that failed now follows from that.
    most = 1 if changes and changes[0].path == "failure" and changes[0].before is None else _LISTED
    for change in changes[:most]:
        path, told, message = one_line(change.path.removeprefix("transcript.")), change, ""
        # The whole failure would be long, and its message is shown below.
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
