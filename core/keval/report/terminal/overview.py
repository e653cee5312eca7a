"""The report of a run in the terminal, with its headline."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.analysis.unverified_claims import UnverifiedClaim
from keval.findings.effects import SURE, Interaction
from keval.findings.summary import Summary
from keval.records.manifest import ReplayEntry
from keval.report.averages import average_lines, mean_lines
from keval.report.blocks import PROPERTIES, Block, property_rows
from keval.report.claims import PRIMARY_WOULD, WORSE, interim_words
from keval.report.contrasts import all_blocks
from keval.report.effects import effect_lines
from keval.report.gates import gate_lines, unmet_lines
from keval.report.reviews import claim_lines, judging_lines, review_lines
from keval.report.terminal.console import print_sections, safe
from keval.report.terminal.messages import foreign
from keval.report.terminal.tools import sharing_lines, tool_lines
from keval.report.totals import (
    compliance_lines,
    missing_lines,
    remark_sentences,
    total_lines,
    trial_lines,
    unscored_lines,
)
from keval.report.words import counted, display_names, flowed, folded, joined, one_line, padded, run_name, signed
from keval.seams import registry

_DUST = 1e-12
"""A variance below this is rounding."""


def print_report(
    summary: Summary,
    console: Console,
    run: Path,
    *,
    questions: int | None,
    under_way: bool,
    claims: Sequence[UnverifiedClaim] = (),
) -> None:
    """Print the report of a run in the console's width; `run` is its directory, and `questions` how many it asked.

    `under_way` says that missing trials and scores are still being made. `claims` are those that judges could not
    verify.
    """
    width = console.width
    found = all_blocks(summary)
    plot = not console.options.ascii_only
    compared = any(effect.difference is not None for effect in summary.effects)
    sections = [
        headline(summary, questions, width),
        effect_lines(found, width, plot=plot),
        iter(()) if compared else mean_lines(summary, width),
        _property_lines(summary, width),
        replay_lines(summary.replay, width),
        _folded(_remarks(summary, run, claims, width, under_way=under_way), width),
        (
            *total_lines(summary, width),
            *gate_lines(summary.gates, width, decided_on(summary.replay)),
            *unmet_lines(summary.unmet, width),
            *_hints(found, run, width),
        ),
    ]
    print_sections(sections, console)


def _hints(found: Sequence[Block], run: Path, width: int) -> Iterator[Text]:
    """Yield the commands that show more of the run."""
    name = run_name(run)
    claims = [claim for block in found for claim in block.claims]
    commands = [["keval", "report", name, "--html", "report.html"]]
    if any(command.name == "view" for command in registry.components("keval.commands")):
        commands.append(["keval", "view", "--run", name])
    if claims:
        worst = next((claim for claim in claims if WORSE.holds(claim)), claims[0])
        commands.insert(0, ["keval", "show", name, "--worst", worst.effect.metric])
    lines = flowed([foreign(shlex.join(command)) for command in commands], width - 7, gap=" | ")
    yield from (Text(f"{'more' if row == 0 else '':<7}{line}", "dim") for row, line in enumerate(lines))


def _remarks(
    summary: Summary, run: Path, claims: Sequence[UnverifiedClaim], width: int, *, under_way: bool
) -> Iterator[Text]:
    yield from _interim(summary)
    yield from _interactions(summary)
    yield from _primary(summary)
    yield from _advice(summary)
    yield from _neutral(summary)
    yield from unscored_lines(summary)
    yield from missing_lines(summary, run, under_way=under_way)
    yield from tool_lines(summary)
    yield from compliance_lines(summary)
    yield from _per_protocol(summary)
    yield from map(safe, judging_lines(summary))
    yield from claim_lines(claims, width)
    yield from map(safe, review_lines(summary))
    yield from map(safe, average_lines(summary))
    yield from sharing_lines(summary)
    yield from (safe(told, "yellow") for told in remark_sentences(summary))
    yield from trial_lines(summary, under_way=under_way)


def _folded(lines: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines, those that are too long on several, further in."""
    for line in lines:
        text = line.plain
        indent = len(text) - len(text.lstrip())
        kept = [text] if line.cell_len <= width else folded(text, width, indent=indent)
        yield from (Text(part, line.style) for part in kept)


def _interactions(summary: Summary) -> Iterator[Text]:
    """Yield for which agent a condition does more than for another, where that is sure."""
    names = display_names(entry.scorer for entry in summary.scorers)
    lower = {entry.scorer for entry in summary.scorers if entry.scale.better == "lower"}
    told: dict[str, list[str]] = {}
    for found in summary.interactions:
        if found.difference is None or found.p_adjusted is None or found.p_adjusted > SURE:
            continue
        first = (found.difference > 0) != (found.scorer in lower)
        agents = (found.agent, found.against_agent) if first else (found.against_agent, found.agent)
        heading = f"{found.condition} does more for {agents[0]} than for {agents[1]}"
        told.setdefault(heading, []).append(f"{names[found.scorer]} by {_apart(found, turned=not first)}")
    for heading, metrics in told.items():
        yield safe(f"{heading}: {'; '.join(metrics)}")


def _apart(found: Interaction, *, turned: bool) -> str:
    sign = -1.0 if turned else 1.0
    text = signed(sign * (found.difference or 0.0))
    if found.ci_low is not None and found.ci_high is not None:
        low, high = sorted((sign * found.ci_low, sign * found.ci_high))
        text += f" [{signed(low)}, {signed(high)}]"
    return f"{text} (n={found.n})"


def _advice(summary: Summary) -> Iterator[Text]:
    """Yield the advice that most metrics have, on what would make the intervals narrower, with the first's reason."""
    names = display_names(entry.scorer for entry in summary.scorers)
    known = [
        entry
        for entry in summary.variance
        if max(entry.question or 0.0, entry.repetition or 0.0, entry.judging or 0.0) > _DUST
    ]
    for advice, count in Counter(entry.advice.partition(":")[0] for entry in known).most_common(1):
        first = next(entry for entry in known if entry.advice.partition(":")[0] == advice)
        whose = (
            f" ({names[first.scorer]}; the same advice for {count} of {len(known)} metrics)" if len(known) > 1 else ""
        )
        yield safe(f"{first.advice.removesuffix('.')}{whose}.")


def _interim(summary: Summary) -> Iterator[Text]:
    """Yield how far an unfinished run has come, which is why it has no verdicts."""
    if summary.unfinished and summary.effects:
        yield Text(f"{interim_words(summary)}: intervals without verdicts, as trials or scores are yet to be made.")


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


def _primary(summary: Summary) -> Iterator[Text]:
    """Yield what it would bring to name a primary metric."""
    power = summary.family_power
    if power is not None and PRIMARY_WOULD.holds(summary):
        yield Text(PRIMARY_WOULD.says.format(power.comparisons, 100 * power.power, 100 * power.primary_power), "dim")


def _neutral(summary: Summary) -> Iterator[Text]:
    """Yield how many scores of each metric are neutral in each arm."""
    names = display_names(entry.scorer for entry in summary.scorers)
    counts: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for entry in summary.arms:
        by_arm = counts.setdefault(names[entry.scorer], {})
        before, of = by_arm.get((entry.agent, entry.condition), (0, 0))
        made = entry.scored + entry.neutral + entry.unscored
        by_arm[entry.agent, entry.condition] = (before + entry.neutral, of + made)
    told: list[str] = []
    whole: list[str] = []
    for name, arms in counts.items():
        if not any(neutral for neutral, _ in arms.values()):
            continue
        if all(neutral == of for neutral, of in arms.values()):
            whole.append(name)
        elif len(totals := {of for _, of in arms.values()}) == 1:
            told.append(f"{name} {', '.join(str(neutral) for neutral, _ in arms.values())} of {totals.pop()}")
        else:
            told.append(f"{name} {', '.join(f'{neutral} of {of}' for neutral, of in arms.values())}")
    of_arms = bool(told)
    told += [f"all of {', '.join(whole)}"] if whole else []
    if told:
        use = "included in" if summary.neutral == "count" else "excluded from"
        labels = dict.fromkeys(f"{entry.agent} {entry.condition}" for entry in summary.arms)
        where = f" ({', '.join(labels)})" if of_arms and len(labels) > 1 else ""
        yield safe(f"neutral scores (nothing to judge), {use} the means{where}: {'; '.join(told)}", "dim")


def _per_protocol(summary: Summary) -> Iterator[Text]:
    """Yield the effects among the trials that complied, beside those of all trials."""
    names = display_names(entry.scorer for entry in summary.scorers)
    several = len({entry.agent for entry in summary.trials}) > 1
    told: dict[str, list[str]] = {}
    for effect in summary.effects:
        found = effect.per_protocol
        if effect.kind != "condition" or found is None or found.difference is None or effect.difference is None:
            continue
        whose = f" ({effect.agent})" if several else ""
        ends = (
            ""
            if found.ci_low is None or found.ci_high is None
            else f" [{signed(found.ci_low)}, {signed(found.ci_high)}]"
        )
        told.setdefault(effect.condition, []).append(
            f"{names[effect.scorer]}{whose} {signed(found.difference)}{ends} n={found.n}"
            f" in place of {signed(effect.difference)}"
        )
    for condition, metrics in told.items():
        yield safe(
            f"{condition}: the rows above include all trials (intention to treat). With only the trials that used tools"
            f" as required (per protocol; biased, because these trials are not a random sample): {'; '.join(metrics)}",
            "yellow",
        )


_MOST = 6
"""Changes that a sentence names; the others are counted."""


def replay_label(replay: ReplayEntry) -> str:
    """Return what stands beside the title of a replayed run."""
    live = f"; {_live(replay)} live" if _live(replay) else ""
    return f"REPLAY: answers recorded {_date(replay)}{live}"


def origin_label(summary: Summary) -> str:
    """Return what stands beside the title of a run that was replayed, or played; empty for any other one."""
    if summary.play:
        return "PLAY: a person asked the questions"
    return "" if summary.replay is None else replay_label(summary.replay)


def replay_sentences(replay: ReplayEntry | None) -> Iterator[str]:
    """Yield from which recording the answers are, which are not, and what changed since; nothing without a replay."""
    if replay is None:
        return
    asked = f"; {_live(replay)} were made live" if _live(replay) else "; no request was sent to a model or server"
    yield f"The answers were replayed from run {replay.run}, recorded on {_date(replay)}{asked}."
    if replay.changes:
        more = len(replay.changes) - _MOST
        named = [*replay.changes[:_MOST], *([counted(more, "other change")] if more > 0 else [])]
        yield f"Changed since: {'; '.join(named).removesuffix('.')}."


def replay_lines(replay: ReplayEntry | None, width: int) -> Iterator[Text]:
    """Yield the sentences as lines of a terminal."""
    for sentence in replay_sentences(replay):
        yield from (Text(line, "yellow") for line in folded(one_line(sentence), width))


def decided_on(replay: ReplayEntry | None) -> str:
    """Return what stands below the verdicts of a replayed run; nothing for another one."""
    return "" if replay is None else f"decided on replayed answers, recorded on {_date(replay)}"


def _date(replay: ReplayEntry) -> str:
    return replay.recorded[:10]


def _live(replay: ReplayEntry) -> str:
    counts = ((replay.live_trials, "trial"), (replay.live_judgements, "judgement"))
    return joined([counted(count, name) for count, name in counts if count])


_SIMULATED = "SIMULATED MODEL: the figures test keval, not a model"
_SIMULATED_JUDGE = "SIMULATED JUDGE: the grades test keval, not the answers"


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
        others[f"and {counted(len(less), 'time')} without one tool"] = None
    parts.append(" → ".join([one_line(summary.baseline), ", ".join(others)]) if others else one_line(summary.baseline))
    judges = {entry.model for entry in summary.judges.values() if entry.simulated}
    if summary.simulated:
        parts.append(_SIMULATED_JUDGE if judges >= {*summary.simulated} else _SIMULATED)
    if origin := origin_label(summary):
        parts.append(one_line(origin))
    for position, line in enumerate(flowed(parts, width)):
        text = Text(line)
        if position == 0:
            text.stylize("bold", 0, len(parts[0]))
        text.highlight_regex(r"SIMULATED (MODEL|JUDGE)|REPLAY\b|PLAY\b", "bold yellow")
        yield text
