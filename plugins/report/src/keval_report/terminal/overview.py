"""The report of a run in the terminal: what one decides by, or everything, with the sentences that explain it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_sections
from keval.cli.messages import foreign
from keval.errors import RunError
from keval.files import read_kept
from keval.records.formats import counted
from keval.seams import registry
from keval_analysis.claims import UnverifiedClaim
from keval_analysis.findings.summary import Summary
from keval_report.activation import activation_texts
from keval_report.averages import mean_lines
from keval_report.blocks import PROPERTIES, Block, property_rows
from keval_report.cautions import cautions
from keval_report.claims import WORSE
from keval_report.contrasts import all_blocks, part_noun
from keval_report.effects import effect_lines
from keval_report.gates import gate_lines, unmet_lines
from keval_report.origin import decided_on, origin_label, replay_sentences
from keval_report.parts import part_lines
from keval_report.sentences import findings
from keval_report.statement import Level
from keval_report.terminal.explanations import explanation_lines
from keval_report.terminal.tables import print_tables
from keval_report.totals import loss_texts, remedy, total_lines
from keval_report.words import LABEL, flowed, folded, labelled, one_line, padded, run_name

_MOST_KINDS = 3
"""Kinds of failures that a first report names; the command beside them lists all."""


_OF_SCORES = ("score", "effect")
"""Kinds of gates that are about the scores of a metric."""


def print_report(
    summary: Summary,
    console: Console,
    run: Path,
    *,
    questions: int | None,
    under_way: bool,
    level: Level = "first",
    claims: Sequence[UnverifiedClaim] = (),
    tables: bool = False,
) -> None:
    """Print the report of a run in the console's width; `run` is its directory, and `questions` how many it asked.

    `under_way` says that missing trials and scores are still being made. `claims` are those that judges could not
    verify; `tables` asks for tables of all figures as well.
    """
    width = console.width
    found = all_blocks(summary, level)
    told = cautions(summary, found, under_way=under_way)
    compared = any(effect.difference is not None for effect in summary.effects)
    explained = level == "explained"
    said = (*[*replay_sentences(summary.replay)][:1], *findings(summary)) if explained else ()
    alike = _count_alike(run)
    chosen = [f"{alike} of this config are here: one that is chosen by its result shows chance"] if alike > 1 else []
    lost = loss_texts(summary, run, under_way=under_way, most=None if explained else _MOST_KINDS)
    sections: list[Iterable[Text]] = [
        (*headline(summary, questions, width), *(Text(line, "yellow") for line in labelled("caution", told, width))),
        (Text(line) for sentence in said for line in folded(one_line(sentence), width)),
        effect_lines(found, width, plot=not console.options.ascii_only),
        () if compared else mean_lines(summary, width),
        _property_lines(summary, width) if explained else (),
        _folded(explanation_lines(summary, claims, width), width) if explained else (),
    ]
    print_sections(sections, console)
    if tables:
        print_tables(summary, console)
    console.print()
    ending = (
        *(() if explained else _properties(summary, width)),
        *total_lines(summary, width),
        *(Text(line, "dim") for line in labelled("runs", chosen, width)),
        *(() if explained else map(Text, labelled("texts", [*activation_texts(summary)], width))),
        *(Text(line, "red") for line in labelled("lost", lost, width)),
        *(Text(line) for name, told in part_lines(summary) for line in labelled(name, [*map(one_line, told)], width)),
        *gate_lines(summary.gates, width, level, decided_on(summary.replay)),
        *unmet_lines(summary.unmet, width, level),
        *_next(summary, found, run, width, under_way=under_way, explained=explained),
    )
    print_sections([ending], console)


_MOST_RUNS = 200
"""Runs that are looked at, the latest ones."""


def _count_alike(run: Path) -> int:
    """Return how many of the latest runs beside this one have its config and questions, itself included.

    Whoever keeps the best of them keeps what chance made best.
    """
    ours = _asked(run)
    if ours is None:
        return 0
    latest = sorted((path.parent for path in run.parent.glob("*/manifest.json")), reverse=True)[:_MOST_RUNS]
    return sum(other == run or _asked(other) == ours for other in {run, *latest})


def _asked(run: Path) -> tuple[Any, ...] | None:
    """Return what decides what a run finds; `None` of one that is replayed, or cannot be read."""
    try:
        manifest = orjson.loads(read_kept(run / "manifest.json"))
        if manifest["replay"]:
            return None
        return manifest["config"], manifest["dataset"]["sha256"], manifest["dataset"]["samples"]
    except (OSError, RunError, ValueError, LookupError, TypeError):
        return None


def _next(
    summary: Summary, found: Sequence[Block], run: Path, width: int, *, under_way: bool, explained: bool
) -> Iterator[Text]:
    """Yield the command to go on with, and those that show more."""
    name, claims = run_name(run), [claim for block in found for claim in block.claims]
    worse = [claim.effect for claim in claims if WORSE.holds(claim)]
    metrics = [effect.metric for effect in worse if effect.family != "exploratory"]
    metrics += [gate.metric or "" for gate in summary.gates if gate.verdict == "failed" and gate.kind in _OF_SCORES]
    metrics += [*summary.primary, *(claim.effect.metric for claim in claims)]
    properties = {each.scorer for each in summary.properties}
    metrics += [arm.metric for arm in summary.arms if arm.n and arm.scorer not in properties]
    if not under_way and (lacking := remedy(summary, run)):
        yield from _command("next", lacking.does, lacking.command, width)
    elif metric := next(filter(None, metrics), None):
        yield from _command("next", "the lowest scores", ["keval", "show", name, "--worst", metric], width)
    if not explained:
        yield from _command("more", "all that was found", ["keval", "report", name, "--explain"], width)
        return
    yield from _command("more", "a page", ["keval", "report", name, "--html", "report.html"], width)
    if any(command.name == "view" for command in registry.components("keval.commands")):
        yield from _command("", "in the browser", ["keval", "view", "--run", name], width)


def _command(label: str, why: str, command: Sequence[str], width: int) -> Iterator[Text]:
    """Yield a command with what it is for, if there is room for that."""
    told = foreign(shlex.join(command))
    whole = f"{why}: {told}"
    lines = labelled(label, [whole if cell_len(whole) + LABEL <= width else told], width)
    yield from (Text(line, "dim") for line in lines)


def _folded(lines: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines, those that are too long on several, further in."""
    for line in lines:
        text = line.plain
        indent = len(text) - len(text.lstrip())
        kept = [text] if line.cell_len <= width else folded(text, width, indent=indent)
        yield from (Text(part, line.style) for part in kept)


def _properties(summary: Summary, width: int) -> Iterator[Text]:
    """Yield the values that metrics give agents whatever they answer, in one line."""
    rows = [*property_rows(summary)]
    agents = dict.fromkeys(agent for _, agent, _, _ in rows)
    values = {(name, agent): value for name, agent, value, _ in rows}
    names = dict.fromkeys(name for name, _, _, _ in rows)
    parts = [f"{name} {', '.join(values.get((name, agent), '–') for agent in agents)}" for name in names]
    if parts:
        told = f"{PROPERTIES} ({', '.join(agents)}): {'; '.join(parts)}"
        yield from (Text(line, "dim") for line in folded(told, width))


def _property_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield what metrics say of agents whatever they answer, a row for each metric and agent."""
    rows = list(property_rows(summary))
    if not rows:
        return
    yield from (Text(line, "bold") for line in folded(PROPERTIES, width, hanging=2))
    metric, agent = (min(max(cell_len(row[column]) for row in rows), width // 3) for column in (0, 1))
    before = ""
    for name, whose, value, derivation in rows:
        begin = f"  {padded(name if name != before else '', metric)}  {padded(whose, agent)}  {value}  "
        told = folded(derivation, max(20, width - cell_len(begin)), hanging=0)
        first = next(told, "")
        yield Text(begin if first else begin.rstrip()).append(first, "dim")
        yield from (Text(f"{' ' * cell_len(begin)}{line}", "dim") for line in told)
        before = name


def headline(summary: Summary, questions: int | None, width: int) -> Iterator[Text]:
    """Yield what was run: evaluation, questions × repetitions, agents, conditions; if it was simulated or replayed."""
    arms = len(summary.trials)
    parts = [one_line(summary.evaluation)]
    if questions and arms:
        often = f" × {summary.planned // (arms * questions)}" if summary.planned % (arms * questions) == 0 else ""
        parts.append(f"{counted(questions, 'question')}{often}")
    parts.append(", ".join(dict.fromkeys(one_line(entry.agent) for entry in summary.trials)))
    less = summary.ablated
    listed = [e.condition for e in summary.trials if e.condition != summary.baseline and e.condition not in less]
    others = dict.fromkeys(map(one_line, listed))
    if less:
        noun = part_noun(contrast for contrast in summary.contrasts if contrast.added)
        others[f"and {counted(len(less), 'time')} without one {noun}"] = None
    parts.append(" → ".join([one_line(summary.baseline), ", ".join(others)]) if others else one_line(summary.baseline))
    judges = {entry.model for entry in summary.judges.values() if entry.simulated}
    if summary.simulated:
        graded_only = judges >= {*summary.simulated}
        what, tested = ("JUDGE: the grades", "the answers") if graded_only else ("MODEL: the figures", "a model")
        parts.append(f"SIMULATED {what} test keval, not {tested}")
    if origin := origin_label(summary):
        parts.append(one_line(origin))
    for position, line in enumerate(flowed(parts, width)):
        text = Text(line)
        if position == 0:
            text.stylize("bold", 0, len(parts[0]))
        text.highlight_regex(r"SIMULATED (MODEL|JUDGE)|REPLAY\b|PLAY\b", "bold yellow")
        yield text
