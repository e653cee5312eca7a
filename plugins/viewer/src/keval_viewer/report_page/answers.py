"""The answers to one question, side by side: what each arm said and did, how it was scored, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
from markupsafe import Markup

from keval import Message, ScoreLine, ToolCall, Trial
from keval.plugin import OutlineQuestion, Report, counted, named_band, number
from keval_viewer.report_page.rendering import render


@attrs.frozen
class _Verdict:
    """A score as it is shown."""

    name: str
    value: str
    band: str
    reason: str
    failure: str


@attrs.frozen
class _Claim:
    judge: str
    text: str


@attrs.frozen
class _Answer:
    """A trial as it is shown."""

    trial: Trial
    facts: str
    verdicts: Sequence[_Verdict]
    claims: Sequence[_Claim]
    rejected: Sequence[_Claim]
    calls: Sequence[ToolCall]
    turns: Sequence[tuple[Sequence[Message], Sequence[ToolCall], Sequence[Message]]]


def lines_of(report: Report, questions: Iterable[OutlineQuestion]) -> dict[str, list[ScoreLine]]:
    """Read the scores of these questions, by trial. Raises RunError."""
    wanted = {question.id for question in questions}
    found: dict[str, list[ScoreLine]] = {}
    for line in report.run.scores():
        if line.sample in wanted:
            found.setdefault(line.trial, []).append(line)
    return found


def answers(report: Report, question: OutlineQuestion, scores: Mapping[str, Sequence[ScoreLine]]) -> Markup:
    """Render the answers of all arms to a question. `scores` are by trial; those of other trials are ignored.

    Raises RunError.
    """
    trials = [report.run.trial(name) for name in question.trials]
    by_arm: dict[tuple[str, str], list[_Answer]] = {}
    for trial in sorted(trials, key=lambda trial: trial.repetition):
        shown = _answer(report, trial, scores.get(trial.id, ()))
        by_arm.setdefault((trial.agent, trial.condition), []).append(shown)
    arms = [(arm, by_arm[arm]) for arm in report.arms if arm in by_arm]
    index = next(number for number, other in enumerate(report.outline.questions) if other.id == question.id)
    return render(
        "answers.html",
        sample=trials[0].sample,
        arms=arms,
        means=[*_means(report, index, [arm for arm, _ in arms])],
    )


def _means(report: Report, index: int, arms: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a row of the table of scores: the metric, and the mean of each arm over its repetitions."""
    values = report.outline.values
    for scorer, name in report.names.items():
        row = [values.get(arm, {}).get(scorer, {}).get(index) for arm in arms]
        if any(value is not None for value in row):
            unit = report.scales[scorer].unit
            yield f"{name} ({unit})" if unit else name, [number(value) for value in row]


def _answer(report: Report, trial: Trial, lines: Sequence[ScoreLine]) -> _Answer:
    transcript = trial.transcript
    messages = transcript.messages if transcript else ()
    calls = transcript.tool_calls if transcript else ()
    turns = []
    for turn in range(len(trial.sample.asked)):
        said = [message for message in messages if message.turn == turn and message.role != "tool"]
        asked = [call for call in calls if call.turn == turn]
        if said or asked:
            turns.append((said[:1], asked, said[1:]))
    judgements = {(line.judge, line.judgement): None for line in lines if line.judgement}
    return _Answer(
        trial=trial,
        facts=" · ".join(_facts(trial)),
        verdicts=[_verdict(report, line) for line in lines],
        claims=[_Claim(judge or "", text) for judge, told in judgements for text in told.unverified_claims or ()],
        rejected=[_Claim(judge or "", text) for judge, told in judgements for text in told.rejected],
        calls=calls,
        # A question and its answer are shown already.
        turns=turns if calls or len(messages) > 2 else (),
    )


def _verdict(report: Report, line: ScoreLine) -> _Verdict:
    name = report.names.get(line.scorer, line.metric)
    if line.judgement and line.judgement.repetition > 1:
        name = f"{name}, {line.judgement.repetition}"
    value, scale = line.score.value, report.scales.get(line.scorer)
    if value is None:
        shown, band = "unscored", ""
    else:
        shown = number(value)
        band = "neutral" if line.score.neutral else (named_band(scale.bands, value) or "") if scale else ""
    failure = f"{line.failure.kind}: {line.failure.message}" if line.failure else ""
    return _Verdict(name, shown, band, line.score.reason, failure)


def _facts(trial: Trial) -> Iterator[str]:
    """Yield what is known of a trial's effort."""
    transcript = trial.transcript
    if transcript is None:
        return
    if transcript.model_calls is not None:
        yield counted(transcript.model_calls, "model call")
    if transcript.unlisted_calls:
        yield f"{transcript.unlisted_calls} tool calls, of which only the number is known"
    elif transcript.tool_calls or transcript.tools:
        yield counted(len(transcript.own_calls), "tool call")
    if transcript.duration is not None:
        yield f"{transcript.duration:.1f} s"
    usage = transcript.usage
    if usage.input_tokens is not None and usage.output_tokens is not None:
        yield f"{usage.input_tokens + usage.output_tokens:,} tokens"
    if trial.complied is False:
        yield "did not use tools as its condition requires"
