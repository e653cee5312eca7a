"""The report of a run in the terminal: what one decides by, or everything, with the sentences that explain it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.cli.messages import foreign
from keval.errors import RunError
from keval.files import read_kept
from keval.records.formats import counted, interval, number, signed
from keval.seams import registry
from keval_analysis.claims import UnverifiedClaim
from keval_analysis.findings.summary import Summary
from keval_report import words
from keval_report.blocks import PROPERTIES, Block, grouped, property_rows
from keval_report.cautions import cautions
from keval_report.claims import EXPLORATORY, WORSE, Level
from keval_report.contexts import revision_lines, sharing_lines
from keval_report.contrasts import all_blocks, part_noun
from keval_report.effects import effect_lines
from keval_report.gates import gate_lines, unmet_lines
from keval_report.means import mean_lines
from keval_report.origin import decided_on, origin_label, replay_sentences
from keval_report.parts import part_lines
from keval_report.reviews import anchor_lines, claim_lines, judging_lines, review_lines
from keval_report.routing import routing_texts
from keval_report.run_claims import DIFFERS_BY_AGENT, DOES_MORE, PRIMARY_WOULD, Difference
from keval_report.sentences import findings
from keval_report.terminal.console import print_sections
from keval_report.totals import compliance_lines, loss_texts, remedy, total_lines
from keval_report.use import activation_sentences, activation_texts, tool_lines
from keval_report.words import LABEL, fitted, flowed, folded, labelled, one_line

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
) -> None:
    """Print the report of a run in the console's width; `run` is its directory, and `questions` how many it asked.

    `under_way` says that missing trials and scores are still being made. `claims` are those that judges could not
    verify.
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
        fitted((Text(one_line(sentence)) for sentence in said), width),
        # The characters of a plot are not ASCII.
        effect_lines(found, width, plot=not console.options.ascii_only),
        () if compared else fitted(mean_lines(summary, width), width),
        _property_lines(summary, width) if explained else (),
        fitted(explanation_lines(summary, claims, width, run), width) if explained else (),
    ]
    print_sections(sections, console)
    console.print()
    ending = (
        *(() if explained else _properties(summary)),
        *total_lines(summary, width),
        *(Text(line, "dim") for line in labelled("runs", chosen, width)),
        *(() if explained else map(Text, labelled("texts", [*activation_texts(summary)], width))),
        *map(Text, labelled("routing", [*routing_texts(summary, *([None] if explained else []))], width)),
        *(Text(line, "red") for line in labelled("lost", lost, width)),
        *(() if explained else claim_lines(claims, width, run, level)),
        *(Text(line) for name, told in part_lines(summary) for line in labelled(name, [*map(one_line, told)], width)),
        *gate_lines(summary.gates, width, level, decided_on(summary.replay)),
        *unmet_lines(summary.unmet, level),
        *_next(summary, found, run, width, under_way=under_way, explained=explained),
    )
    print_sections([fitted(ending, width)], console)


_MOST_RUNS = 200
"""Runs that are looked at, the latest ones."""


def _count_alike(run: Path) -> int:
    """Return how many of the latest runs beside this one have its config and questions, and scores; itself included.

    Whoever keeps the best of them keeps what chance made best.
    """
    ours = _asked(run)
    if ours is None:
        return 0
    latest = sorted((path.parent for path in run.parent.glob("*/manifest.json")), reverse=True)[:_MOST_RUNS]
    # The run itself may be older than the latest ones.
    return sum(_asked(other) == ours for other in {run, *latest})


def _asked(run: Path) -> tuple[Any, ...] | None:
    """Return what decides what a run finds; `None` of one that is replayed, has no score, or cannot be read."""
    try:
        manifest = orjson.loads(read_kept(run / "manifest.json"))
        if manifest["replay"] or not (run / "scores.jsonl").stat().st_size:
            return None
        return manifest["config"], manifest["dataset"]["sha256"], manifest["dataset"]["samples"]
    # Manifests of others may have anything in them, and this is only a hint.
    except (OSError, RunError, ValueError, LookupError, TypeError):
        return None


def _next(
    summary: Summary, found: Sequence[Block], run: Path, width: int, *, under_way: bool, explained: bool
) -> Iterator[Text]:
    """Yield the command to go on with, and those that show more."""
    name, claims = words.run_name(run), [claim for block in found for claim in block.claims]
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
    # The viewer is another package, which may not be installed.
    if any(command.name == "view" for command in registry.components("keval.commands")):
        yield from _command("", "in the browser", ["keval", "view", "--run", name], width)


def _command(label: str, why: str, command: Sequence[str], width: int) -> Iterator[Text]:
    """Yield a command with what it is for, if there is room for that."""
    told = foreign(shlex.join(command))
    whole = f"{why}: {told}"
    lines = labelled(label, [whole if cell_len(whole) + LABEL <= width else told], width)
    yield from (Text(line, "dim") for line in lines)


def _properties(summary: Summary) -> Iterator[Text]:
    """Yield the values that metrics give agents whatever they answer, in one line."""
    rows = [*property_rows(summary)]
    agents = dict.fromkeys(agent for _, agent, _, _ in rows)
    values = {(name, agent): value for name, agent, value, _ in rows}
    names = dict.fromkeys(name for name, _, _, _ in rows)
    parts = [f"{name} {', '.join(values.get((name, agent), '–') for agent in agents)}" for name in names]
    if parts:
        told = f"{PROPERTIES} ({', '.join(agents)}): {'; '.join(parts)}"
        yield Text(told, "dim")


def _property_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield what metrics say of agents whatever they answer, and how they come to it, a line for each agent."""
    rows = [*property_rows(summary)]
    yield from [Text(PROPERTIES, "bold")] if rows else []
    for name, whose, value, derivation in rows:
        told = f"{name}, {whose}: {value}{f' ({derivation})' if derivation else ''}"
        yield from map(Text, folded(told, width, indent=2))


def headline(summary: Summary, questions: int | None, width: int) -> Iterator[Text]:
    """Yield what was run: evaluation, questions × repetitions, agents, conditions; if it was simulated or replayed."""
    arms = len(summary.trials)
    parts = [one_line(summary.evaluation)]
    if questions and arms:
        # Questions may have unlike numbers of recorded answers.
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
    if summary.note:
        parts.append(one_line(f"note: {summary.note}"))
    for position, line in enumerate(flowed(parts, width)):
        text = Text(line)
        if position == 0:
            text.stylize("bold", 0, len(parts[0]))
        text.highlight_regex(r"SIMULATED (MODEL|JUDGE)|REPLAY\b|PLAY\b", "bold yellow")
        yield text


_DUST = 1e-12
"""A variance below this is rounding."""


def explanation_lines(summary: Summary, claims: Sequence[UnverifiedClaim], width: int, run: Path) -> Iterator[Text]:
    """Yield the lines, each as long as it is; `claims` are those that judges could not verify."""
    yield from _interactions(summary)
    power = summary.family_power
    if power is not None and PRIMARY_WOULD.holds(summary):
        seen = (number(100 * each, 0) for each in (power.power, power.primary_power))
        yield Text(PRIMARY_WOULD.says.format(power.comparisons, *seen), "dim")
    yield from _advice(summary)
    yield from _neutral(summary)
    yield from tool_lines(summary)
    yield from map(safe, activation_sentences(summary))
    yield from compliance_lines(summary)
    yield from _per_protocol(summary)
    yield from map(safe, judging_lines(summary))
    yield from map(safe, anchor_lines(summary))
    yield from claim_lines(claims, width, run)
    yield from map(safe, review_lines(summary))
    yield from sharing_lines(summary)
    yield from revision_lines(summary)


def _interactions(summary: Summary) -> Iterator[Text]:
    """Yield for which agent a condition does more than for another, where that is sure."""
    names = words.display_names(entry.scorer for entry in summary.scorers)
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    told: dict[str, list[str]] = {}
    for found in summary.interactions:
        about = Difference(found, scales[found.scorer].better, summary.unfinished)
        first = ((found.difference or 0.0) > 0) == (about.better == "higher")
        more, less = (found.agent, found.against_agent) if first else (found.against_agent, found.agent)
        ends = (found.ci_low, found.ci_high) if first else (found.ci_high, found.ci_low)
        apart = [None if each is None else each if first else -each for each in (found.difference or 0.0, *ends)]
        by = f"{names[found.scorer]} by {words.with_interval(*apart)} (n={found.n})"
        if DOES_MORE.holds(about):
            heading = DOES_MORE.says.format(condition=found.condition, more=more, less=less)
        elif DIFFERS_BY_AGENT.holds(about):
            heading = DIFFERS_BY_AGENT.says.format(condition=found.condition)
            by += f": {found.agent} {signed(found.effect)}, {found.against_agent} {signed(found.against_effect)}"
        else:
            continue
        told.setdefault(f"{EXPLORATORY.says}: {heading}", []).append(by)
    for heading, metrics in told.items():
        yield safe(f"{heading}: {'; '.join(metrics)}")


def _advice(summary: Summary) -> Iterator[Text]:
    """Yield the advice that most metrics have, on what would make the intervals narrower, with the first's reason."""
    names = words.display_names(entry.scorer for entry in summary.scorers)
    known = [e for e in summary.variance if max(e.question or 0.0, e.repetition or 0.0, e.judging or 0.0) > _DUST]
    # What to do stands before the colon; the share behind it differs from metric to metric.
    for advice, count in Counter(entry.advice.partition(":")[0] for entry in known).most_common(1):
        first = next(entry for entry in known if entry.advice.partition(":")[0] == advice)
        whose = f" ({names[first.scorer]}; the same advice for {count} of {len(known)} metrics)"
        yield safe(f"{first.advice.removesuffix('.')}{whose if len(known) > 1 else ''}.")


def _neutral(summary: Summary) -> Iterator[Text]:
    """Yield how many scores of each metric are neutral in each arm."""
    names = words.display_names(entry.scorer for entry in summary.scorers)
    told: list[str] = []
    whole: list[str] = []
    for name, entries in grouped(summary.arms, lambda entry: names[entry.scorer]).items():
        counts = [(entry.neutral, entry.scored + entry.neutral + entry.unscored) for entry in entries]
        if not any(neutral for neutral, _ in counts):
            continue
        if all(neutral == of for neutral, of in counts):
            whole.append(name)
        elif len(totals := {of for _, of in counts}) == 1:
            told.append(f"{name} {', '.join(str(neutral) for neutral, _ in counts)} of {totals.pop()}")
        else:
            told.append(f"{name} {', '.join(f'{neutral} of {of}' for neutral, of in counts)}")
    of_arms = bool(told)
    told += [f"all of {', '.join(whole)}"] if whole else []
    if told:
        use = "included in" if summary.neutral == "count" else "excluded from"
        labels = dict.fromkeys(f"{entry.agent} {entry.condition}" for entry in summary.arms)
        where = f" ({', '.join(labels)})" if of_arms and len(labels) > 1 else ""
        yield safe(f"neutral scores (nothing to judge), {use} the means{where}: {'; '.join(told)}", "dim")


def _per_protocol(summary: Summary) -> Iterator[Text]:
    """Yield the effects among the trials that complied, beside those of all trials."""
    names = words.display_names(entry.scorer for entry in summary.scorers)
    several = len({entry.agent for entry in summary.trials}) > 1
    told: dict[str, list[str]] = {}
    for effect in summary.effects:
        found = effect.per_protocol
        if effect.kind != "condition" or found is None or found.difference is None or effect.difference is None:
            continue
        whose = f" ({effect.agent})" if several else ""
        ends = interval(found.ci_low, found.ci_high, signs=True)
        complied = f"{names[effect.scorer]}{whose} {signed(found.difference)} {ends} n={found.n}"
        told.setdefault(effect.condition, []).append(f"{complied} in place of {signed(effect.difference)}")
    for condition, metrics in told.items():
        every = f"{condition}: the rows above include all trials (intention to treat). With only the trials that used"
        biased = "(per protocol; biased, because these trials are not a random sample)"
        yield safe(f"{every} tools as required {biased}: {'; '.join(metrics)}", "yellow")
