"""Lists of trials, and the answers to one sample side by side, in the terminal."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
import orjson
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from keval.cli.console import safe
from keval.errors import RunError, suggestion
from keval.records.formats import counted, time_span
from keval.records.manifest import ReplayEntry
from keval.records.scores import Score, ScoreLine, Scorer
from keval.records.trial import Sample, Trial
from keval.store.run import Run
from keval.store.serialization import score_line, to_plain, trial_line
from keval_analysis.claims import UnverifiedClaim
from keval_analysis.scorer_names import named_scorers
from keval_report.origin import replay_label
from keval_report.transcripts import Bands, call_lines, claims, read_pieces, verdict, whose
from keval_report.words import picked


def describe_failed(trials: Iterable[Trial], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the failed trials as plain data: which they are, their failure, and how many attempts failed before it."""
    for trial in islice(_failed(trials), limit):
        yield {
            "trial": trial.id,
            "sample": trial.sample.id,
            **picked(trial, "agent", "condition", "repetition"),
            "failure": attrs.asdict(trial.failure) if trial.failure else None,
            "attempts_before": len(trial.attempts),
        }


def print_failed(trials: Iterable[Trial], limit: int | None, console: Console) -> None:
    """Print the failed trials, each with its message."""
    shown = 0
    for trial in islice(_failed(trials), limit):
        shown += 1
        assert trial.failure is not None  # noqa: S101 - only failed trials are listed
        console.print(safe(trial.id, "bold"), soft_wrap=True)
        tried = f" after {len(trial.attempts)} attempts that were given up" if trial.attempts else ""
        kind = f"  {trial.failure.stage}: {trial.failure.kind}{tried}: "
        console.print(Text.assemble((kind, "red"), safe(trial.failure.message)))
    console.print(_count(shown, "failed trials", limit))


def print_claims(claims: Sequence[UnverifiedClaim], console: Console) -> None:
    """Print claims that judges could not verify, each with the trial whose answer makes it."""
    for claim in claims:
        console.print(safe(claim.trial, "bold"), soft_wrap=True)
        console.print(Text.assemble((f"  {claim.judge}: ", "yellow"), safe(claim.text)))
    console.print(counted(len(claims), "unverified claim"))


def describe_unscored(scores: Iterable[ScoreLine], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the scores without a value, as scores.jsonl has them."""
    for line in islice(_unscored(scores), limit):
        yield orjson.loads(score_line(line))


def print_unscored(scores: Iterable[ScoreLine], limit: int | None, console: Console) -> None:
    """Print the scores without a value, each with its reason."""
    shown = 0
    for line in islice(_unscored(scores), limit):
        shown += 1
        reason = f"failed, {line.failure.kind}: {line.failure.message}" if line.failure else line.score.reason
        console.print(Text.assemble(safe(line.trial, "bold"), "  ", safe(whose(line))), soft_wrap=True)
        console.print(safe(f"  {reason}", "red" if line.failure else "dim"))
    console.print(_count(shown, "scores without a value", limit))


def _failed(trials: Iterable[Trial]) -> Iterator[Trial]:
    return (trial for trial in trials if trial.failure is not None)


def _unscored(scores: Iterable[ScoreLine]) -> Iterator[ScoreLine]:
    return (line for line in scores if line.score.value is None)


def _count(shown: int, what: str, limit: int | None) -> Text:
    more = "; there may be more, as --limit says so many" if shown == limit else ""
    return Text(f"{shown or 'no'} {what}{more}.", "dim")


@attrs.frozen
class RankedTrial:
    """A trial with its value by a metric, the mean over judges and their repetitions, and the scores behind it."""

    trial: str
    value: float
    scores: tuple[ScoreLine, ...]


@attrs.frozen
class Worst:
    """The trials with the worst scores by a metric, worst first.

    `scored` counts the trials that have a value; `neutral` and `unscored` count scores that give none.
    """

    metric: str
    judges: tuple[str, ...]
    better: str
    scored: int
    neutral: int
    unscored: int
    trials: tuple[RankedTrial, ...]


def worst_trials(run: Run, name: str, limit: int) -> Worst:
    """Find the `limit` trials that scored worst by a metric, or by a rubric: `name`, or `name@judge` for one judge.

    The vendor may be left out. Neutral scores are, too, unless the run counts them. Trials with the same value stay in
    the order of their scores. The scores are read twice, and only ids and sums are kept.

    Raises RunError: the run has no such metric, or several by that name.
    """
    scorers = named_scorers(run.manifest.scorers, name)
    wanted = {entry.scorer for entry in scorers}
    count_neutral = run.manifest.neutral == "count"
    sums: dict[str, tuple[float, int]] = {}
    neutral = unscored = 0
    for line in run.scores():
        if line.scorer not in wanted:
            continue
        if line.score.value is None:
            unscored += 1
        elif line.score.neutral and not count_neutral:
            neutral += 1
        elif line.judgement is None or line.judgement.model_calls != 0:  # a judge that compares is not asked about some
            total, times = sums.get(line.trial, (0.0, 0))
            sums[line.trial] = total + line.score.value, times + 1
    sign = -1 if scorers[0].scale.better == "lower" else 1
    chosen = heapq.nsmallest(limit, sums, key=lambda trial: sign * sums[trial][0] / sums[trial][1])
    # Read again for the chosen few, as all scores of a large run would take much memory.
    behind: dict[str, list[ScoreLine]] = {trial: [] for trial in chosen}
    for line in run.scores():
        if line.scorer in wanted and line.trial in behind:
            behind[line.trial].append(line)
    judges = tuple(entry.judge for entry in scorers if entry.judge is not None)
    ranked = tuple(RankedTrial(trial, sums[trial][0] / sums[trial][1], tuple(behind[trial])) for trial in chosen)
    return Worst(scorers[0].metric, judges, scorers[0].scale.better, len(sums), neutral, unscored, ranked)


def describe_worst(worst: Worst) -> dict[str, Any]:
    """Describe the worst trials as plain data, with their scores as scores.jsonl has them."""
    ranked = [
        {"trial": each.trial, "value": each.value, "scores": [orjson.loads(score_line(line)) for line in each.scores]}
        for each in worst.trials
    ]
    return {**attrs.asdict(worst, recurse=False), "judges": list(worst.judges), "trials": ranked}


def print_worst(worst: Worst, bands: Bands, console: Console) -> None:
    """Print the worst trials: each with its value, and the reasons of its scores below."""
    named = bands.get(worst.metric, {})
    found = [verdict(Score(each.value), named) for each in worst.trials]
    width = max(map(len, found), default=0)
    for value, each in zip(found, worst.trials, strict=True):
        console.print(Text.assemble((f"{value:<{width}}  ", "bold"), safe(each.trial)), soft_wrap=True)
        for line in each.scores:
            by = f"{whose(line)}, {verdict(line.score, named)}: " if len(each.scores) > 1 else ""
            console.print(safe(f"  {by}{line.score.reason}", "dim"))
    judges = f" by {', '.join(worst.judges)}" if worst.judges else ""
    told = f"{len(worst.trials)} of {worst.scored} trials with a value for {worst.metric}{judges}, worst first"
    left = [f"{count} {what}" for what, count in (("neutral", worst.neutral), ("unscored", worst.unscored)) if count]
    console.print(safe(f"{told}; left out: {' and '.join(left)} scores." if left else f"{told}.", "dim"))


_NARROWEST = 34
"""Columns that an answer needs to be read; with less, arms stand below each other."""
_LONGEST_CALL = 300
"""Characters of a tool call and its result; `--trial` shows all of it."""


@attrs.frozen
class Side:
    """One arm's trial of a sample with its scores; without a trial, it was not run."""

    agent: str
    condition: str
    trial: Trial | None
    scores: tuple[ScoreLine, ...]


@attrs.frozen
class SideBySide:
    """One repetition of a sample in every arm; `repetitions` is how many there are at most.

    `replay` is that of the run, if it was replayed.
    """

    sample: Sample
    repetition: int
    repetitions: int
    sides: tuple[Side, ...]
    replay: ReplayEntry | None


def side_by_side(run: Run, sample: str, repetition: int = 1) -> SideBySide:
    """Collect what every arm answered to a sample. The run is read as a stream, and only this sample is kept.

    Raises RunError: the run has no such sample, or no such repetition of it.
    """
    samples = run.samples
    if sample not in samples.ids:
        known = ", ".join(samples.ids[:5]) + (", …" if len(samples.ids) > 5 else "")
        raise RunError(f"the run has no sample {sample!r}{suggestion(sample, samples.ids) or f'; it has {known}'}")
    trials: dict[tuple[str, str], Trial] = {}
    repetitions = 0
    for trial in run.trials():
        if trial.sample.id == sample:
            repetitions = max(repetitions, trial.repetition)
            if trial.repetition == repetition:
                trials[trial.agent, trial.condition] = trial
    if repetition > max(1, repetitions):
        raise RunError(f"sample {sample!r} has {repetitions} repetitions; choose --repetition 1 to {repetitions}")
    scores: dict[tuple[str, str], list[ScoreLine]] = {}
    for line in run.scores():
        if line.sample == sample and line.repetition == repetition:
            scores.setdefault((line.agent, line.condition), []).append(line)
    order = {entry.scorer: position for position, entry in enumerate(run.manifest.scorers)}
    arms = [(agent, condition) for agent in run.manifest.agents for condition in run.manifest.conditions]
    in_order = {arm: tuple(sorted(scores.get(arm, ()), key=lambda line: order[line.scorer])) for arm in arms}
    sides = tuple(Side(*arm, trials.get(arm), in_order[arm]) for arm in arms)
    return SideBySide(samples.named(sample), repetition, repetitions, sides, run.manifest.replay)


def describe_sides(view: SideBySide) -> dict[str, Any]:
    """Describe the sides as plain data, with trials and scores as the run's files have them."""
    return {
        "sample": to_plain(view.sample),
        **picked(view, "repetition", "repetitions"),
        "replay": to_plain(view.replay) if view.replay else None,
        "arms": [
            {
                **picked(side, "agent", "condition"),
                "trial": orjson.loads(trial_line(side.trial)) if side.trial else None,
                "scores": [orjson.loads(score_line(line)) for line in side.scores],
            }
            for side in view.sides
        ],
    }


def print_sides(view: SideBySide, bands: Bands, console: Console) -> None:
    """Print the sample, and the arms below it in as many columns as the width allows."""
    sample = view.sample
    more = f"  repetition {view.repetition} of {view.repetitions}; --repetition N shows another"
    console.print(Text.assemble(safe(sample.id, "bold"), safe(more if view.repetitions > 1 else "", "dim")))
    if view.replay is not None:
        console.print(safe(replay_label(view.replay), "yellow"))
    for message in sample.history:
        console.print(Text.assemble((f"{message.role} (earlier): ", "dim"), safe(message.text)))
    for asked in sample.asked:
        console.print(Text.assemble(("user: ", "bold cyan"), safe(asked)))
    for answer in sample.answers:
        console.print(Text.assemble(("golden answer: ", "bold cyan"), safe(answer)))
    most = max(1, (console.width + 2) // (_NARROWEST + 2))
    rows = math.ceil(len(view.sides) / most)
    # As many in each row as in the others, rather than few in the last one.
    columns = math.ceil(len(view.sides) / rows)
    # For each scorer, whether any arm has a score that is not neutral.
    judged: dict[Scorer, bool] = {}
    for line in (line for side in view.sides for line in side.scores):
        judged[line.scorer] = judged.get(line.scorer, False) or not line.score.neutral
    for start in range(0, len(view.sides), columns):
        console.print()
        console.print(_table(view.sides[start : start + columns], judged, bands))
    if idle := [name for name, told in judged.items() if not told]:
        names = ", ".join(f"{metric} by {judge}" if judge else metric for metric, judge in idle)
        console.print()
        console.print(safe(f"Neutral in every arm: {names}.", "dim"))


def _table(sides: Sequence[Side], judged: Mapping[Scorer, bool], bands: Bands) -> Table:
    """Return a table with a column for each arm. What answers one question of all arms is in one row."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=True, header_style="bold")
    for side in sides:
        table.add_column(safe(f"{side.agent} {side.condition}", "bold"), ratio=1, overflow="fold")
    for part in (_past, _answer, _calls, _costs):
        _add(table, [[*part(side)] for side in sides])
    for scorer in (scorer for scorer, told in judged.items() if told):
        _add(table, [[*_scores(side, scorer, bands)] for side in sides])
    _add(table, [[*claims(side.scores)] for side in sides])
    return table


def _add(table: Table, cells: Sequence[Sequence[RenderableType]]) -> None:
    """Add a row, unless no arm has anything to say in it."""
    if any(cells):
        table.add_row(*(Group(*cell) for cell in cells))


def _past(side: Side) -> Iterator[Text]:
    """Yield what was said earlier to the agent alone, and the names of the facts that it had of its own."""
    transcript = side.trial.transcript if side.trial else None
    if transcript is None:
        return
    for message in transcript.history or ():
        yield Text.assemble((f"{message.role} (earlier): ", "dim"), safe(message.text))
    if transcript.history == ():
        yield Text("nothing was said earlier", "dim")
    if transcript.facts:
        yield safe(f"facts of its own: {', '.join(transcript.facts)}", "dim")


def _answer(side: Side) -> Iterator[Text]:
    """Yield the answer to each message of the user, or why there is none."""
    if side.trial is None:
        yield Text("not run", "dim")
        return
    if side.trial.failure:
        failure = side.trial.failure
        yield Text.assemble((f"failed ({failure.stage}, {failure.kind}): ", "red"), safe(failure.message))
    elif not side.trial.output:
        yield Text("an empty answer", "dim")
    messages = side.trial.transcript.messages if side.trial.transcript else ()
    turns = len(side.trial.sample.asked)
    for turn in range(turns):
        said = [message.text for message in messages if message.turn == turn and message.role == "assistant"]
        # The last message of a turn is its answer.
        if said and said[-1]:
            yield Text.assemble((f"{turn + 1}: " if turns > 1 else "", "dim"), safe(said[-1]))
    if side.trial.truncated:
        yield Text("cut off at a limit of length", "yellow")


def _calls(side: Side) -> Iterator[Text]:
    for shown in call_lines(side.trial.transcript.tool_calls if side.trial and side.trial.transcript else ()):
        shown.truncate(_LONGEST_CALL, overflow="ellipsis")
        yield shown


def _costs(side: Side) -> Iterator[Text]:
    """Yield time, calls and tokens, as far as they are known, and the attempts that were given up."""
    if side.trial is None:
        return
    for attempt in side.trial.attempts:
        yield Text.assemble(("attempt failed and was repeated: ", "yellow"), safe(attempt.failure.message))
    transcript = side.trial.transcript
    if transcript is None:
        return
    known = [] if transcript.duration is None else [time_span(transcript.duration)]
    if (calls := transcript.model_calls) is not None:
        known.append(f"{calls} model call{'' if calls == 1 else 's'}")
    usage = transcript.usage
    if usage.input_tokens is not None and usage.output_tokens is not None:
        known.append(f"{usage.input_tokens + usage.output_tokens:,} tokens")
    if known:
        yield Text(", ".join(known), "dim")


def _scores(side: Side, scorer: Scorer, bands: Bands) -> Iterator[RenderableType]:
    """Yield a scorer's values, each with its reason set in below it, so that the values are found at a glance."""
    for line in side.scores:
        if line.scorer == scorer:
            found = verdict(line.score, bands.get(line.metric, {}))
            yield safe(f"{whose(line)} ").append(found, "bold")
            if line.score.reason:
                yield Padding(safe(line.score.reason, "dim"), (0, 0, 0, 2))
            if line.judge and side.trial:
                for piece in read_pieces(line.score, side.trial.output):
                    yield Padding(safe(f"read {piece}", "dim"), (0, 0, 0, 2))
