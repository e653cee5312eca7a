"""The page of a trial: what was answered, how it was scored and why, and all that happened, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keval import Failure, Message, Run, RunError, Transcript, Trial
from keval.plugin import TrialKey, show_command, time_span, timelines, traffic_of, witnesses
from keval_viewer.neighbours import around
from keval_viewer.page import Page, rendered, run_of, run_route
from keval_viewer.pages.review import answer_form
from keval_viewer.scores import Shown, judge_remarks, pieces_of, shown_scores, spans_of
from keval_viewer.tracks import HEIGHT, Track, lane_name, track_of


@attrs.frozen
class _Attempt:
    """An attempt as it is shown; `prefix` begins the ids of its steps."""

    number: int
    prefix: str
    track: Track
    transcript: Transcript
    failure: Failure | None
    counted: bool = True


def _trial(request: Request) -> Response:
    run = run_of(request)
    key = _key_of(request, run)
    trial, lines = run.trial(key.id), run.scores_of(key.id)
    scores = shown_scores(run, lines, trial.output)
    attempts, problem = _attempts(run, trial)
    chosen = _chosen(scores, request.query_params.get("read"))
    return rendered(
        request,
        "trial.html",
        run=run,
        trial=trial,
        around=around(run, key),
        attempt=attempts[-1],
        discarded=attempts[:-1],
        scores=scores,
        chosen=chosen,
        pieces=pieces_of(trial.output, chosen.marks if chosen else ()),
        spans=spans_of(trial.output, chosen.marks if chosen else ()),
        told=judge_remarks(lines),
        earlier=[*trial.sample.history, *_carried(trial)],
        facts=[*_facts(trial)],
        simulated=trial.model in run.manifest.simulated,
        problem=problem,
        sent=_sent_text(run, trial),
        review=answer_form(request, run, trial),
        command=show_command(run.path, trial.id),
        HEIGHT=HEIGHT,
        lane_name=lane_name,
        time_span=time_span,
    )


def _record(request: Request) -> Response:
    run = run_of(request)
    return Response(run.trial_line(_key_of(request, run).id), media_type="application/json")


def _sent(request: Request) -> Response:
    run = run_of(request)
    body = run.kept_request(run.trial(_key_of(request, run).id).transcript)
    if body is None:
        raise HTTPException(404)
    return Response(body, media_type="application/json")


def _key_of(request: Request, run: Run) -> TrialKey:
    """Return the key of the trial that the URL names. Raises HTTPException: there is none."""
    found = run.known_trials.named(request.path_params["trial"])
    if found is None:
        raise HTTPException(404)
    return found


def _attempts(run: Run, trial: Trial) -> tuple[list[_Attempt], str]:
    """Return all attempts, and what is wrong with the recording, from which times are taken if there is one."""
    problem = ""
    try:
        drawn = timelines(trial, traffic_of(run, trial.id))
    except RunError as error:
        drawn, problem = timelines(trial), str(error)
    *earlier, last = drawn
    attempts = [
        _Attempt(
            line.attempt,
            f"attempt-{line.attempt}-",
            track_of(line),
            attempt.transcript or Transcript(),
            attempt.failure,
            attempt.counted,
        )
        for line, attempt in zip(earlier, trial.attempts, strict=True)
    ]
    shown = _Attempt(last.attempt, "", track_of(last), trial.transcript or Transcript(), trial.failure)
    return [*attempts, shown], problem


def _chosen(scores: Sequence[Shown], wanted: str | None) -> Shown | None:
    """Return the score whose marks are shown: the one that is asked for, if it has any."""
    return next((score for score in scores if score.key == wanted and score.marks), None)


def _sent_text(run: Run, trial: Trial) -> str | None:
    """Return the first model request, indented if it is JSON."""
    try:
        body = run.kept_request(trial.transcript)
    except RunError as error:
        return str(error)
    if body is None:
        return None
    text = body.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def _carried(trial: Trial) -> Iterator[Message]:
    """Yield what was said in earlier trials of the same conversation."""
    transcript = trial.transcript or Transcript()
    yield from (each for each in transcript.messages if each.turn < transcript.carried and each.role != "tool")


def _facts(trial: Trial) -> Iterator[tuple[str, str]]:
    """Yield what is known of a trial's effort, each with its name."""
    transcript = trial.transcript
    if transcript is None:
        return
    if trial.truncated:
        yield "answer", "cut off at a limit of length"
    if transcript.duration is not None:
        yield "time", time_span(transcript.duration)
    if transcript.model_calls is not None:
        yield "model calls", f"{transcript.model_calls:,}"
    if transcript.unlisted_calls:
        yield "tool calls", f"{transcript.unlisted_calls:,}, of which only the number is known"
    elif transcript.tool_calls or transcript.tools:
        yield "tool calls", f"{len(transcript.own_calls):,}"
    usage = transcript.usage
    if usage.input_tokens is not None and usage.output_tokens is not None:
        yield "tokens", f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"
    if told := witnesses(transcript):
        yield "told by keval", told
    if transcript.refusals:
        waited = sum(refusal.waited for refusal in transcript.refusals)
        yield "refused requests", f"{len(transcript.refusals):,}, waited {time_span(waited)}"
    if trial.attempts:
        yield "discarded attempts", f"{len(trial.attempts):,}"
    if trial.complied is False:
        yield "tools", "not used as the condition requires"


PAGE = Page(
    routes=(
        run_route("/trials/{trial:path}", _trial),
        run_route("/raw/trials/{trial:path}", _record),
        run_route("/raw/requests/{trial:path}", _sent),
    )
)
