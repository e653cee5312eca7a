"""The page of a trial: what was answered, how it was scored and why, and all that happened, step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote, urlencode

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keval import Failure, Run, RunError, Transcript, Trial
from keval.records.end_state import Artifact
from keval.records.trial import Attempt, TrialKey
from keval_analysis.neighbours import beside
from keval_analysis.timeline import timelines
from keval_replay.recording import traffic_of
from keval_report.words import one_line, show_command
from keval_viewer.page import Page, raw_url, rendered, run_route
from keval_viewer.pages.sample import by_arm
from keval_viewer.scores import judge_remarks, pieces_of, shown_scores, spans_of
from keval_viewer.tracks import HEIGHT, Track, lane_name, track_of

_LARGEST_TEXT = 1_000_000
_TEXTS = ("text/", "application/json")


@attrs.frozen
class _Attempt:
    """An attempt as it is shown; `prefix` begins the ids of its steps."""

    number: int
    prefix: str
    track: Track
    transcript: Transcript
    failure: Failure | None
    counted: bool


def _trial(request: Request, run: Run) -> Response:
    key = _key_of(request, run)
    trial, lines = run.trial(key.id), run.scores_of(key.id)
    of_sample, arm = by_arm(run, key.sample), (key.agent, key.condition)
    scores = shown_scores(run, lines, trial.output)
    attempts, problem = _attempts(run, trial)
    told = trial.transcript or Transcript()
    # What was said in earlier trials of the same conversation.
    carried = [each for each in told.messages if each.turn < told.carried and each.role != "tool"]
    # The score whose marks are shown: the one that is asked for, if it has any.
    wanted = request.query_params.get("read")
    chosen = next((score for score in scores if score.key == wanted and score.marks), None)
    return rendered(
        request,
        "trial.html",
        run=run,
        trial=trial,
        beside=beside(run, key),
        arms=[each for each in of_sample if each.repetition == key.repetition],
        repetitions=[each for each in of_sample if (each.agent, each.condition) == arm],
        attempt=attempts[-1],
        discarded=attempts[:-1],
        scores=scores,
        chosen=chosen,
        pieces=pieces_of(trial.output, chosen.marks if chosen else ()),
        spans=spans_of(trial.output, chosen.marks if chosen else ()),
        told=judge_remarks(lines),
        earlier=[*trial.sample.history, *carried],
        simulated=trial.model in run.manifest.simulated,
        problem=problem,
        sent=_text(lambda: run.kept_request(trial.transcript)),
        artifacts={
            each.sha256: f"{raw_url(run, 'artifacts', trial.id)}?{urlencode({'sha256': each.sha256})}"
            for each in _artifacts(trial)
        },
        contents=_contents(run, trial),
        command=show_command(run.path, trial.id),
        HEIGHT=HEIGHT,
        lane_name=lane_name,
    )


def _record(request: Request, run: Run) -> Response:
    return Response(run.trial_line(_key_of(request, run).id), media_type="application/json")


def _sent(request: Request, run: Run) -> Response:
    body = run.kept_request(run.trial(_key_of(request, run).id).transcript)
    if body is None:
        raise HTTPException(404)
    return Response(body, media_type="application/json")


def _artifact(request: Request, run: Run) -> Response:
    """Hand an artifact of a trial over as a file to be saved: what an agent wrote is never a page of this server."""
    trial, wanted = run.trial(_key_of(request, run).id), request.query_params.get("sha256")
    found = next((each for each in _artifacts(trial) if each.sha256 == wanted), None)
    if found is None or found.sha256 is None or not run.has_blob(found.sha256):
        raise HTTPException(404)
    name = quote(one_line(found.path.rpartition("/")[2]).encode("utf-8", "replace"), safe="")
    headers = {"content-disposition": f"attachment; filename*=utf-8''{name}"}
    return Response(run.blob(found.sha256), media_type="application/octet-stream", headers=headers)


def _artifacts(trial: Trial) -> list[Artifact]:
    """Return the artifacts that were kept of a trial."""
    end = trial.transcript.end_state if trial.transcript else None
    return [each for each in (end.artifacts if end else ()) if each.sha256 is not None]


def _contents(run: Run, trial: Trial) -> dict[str, str]:
    """Return the content of the artifacts that are texts and not large, by their SHA-256."""
    texts = [
        each.sha256
        for each in _artifacts(trial)
        if each.sha256 and each.size <= _LARGEST_TEXT and each.media_type.startswith(_TEXTS)
    ]

    def kept(sha256: str) -> bytes | None:
        # A damaged run may name anything as the digest of a blob, which `has_blob` refuses.
        return run.blob(sha256) if run.has_blob(sha256) else None

    return {sha256: text for sha256 in texts if (text := _text(partial(kept, sha256))) is not None}


def _text(read: Callable[[], bytes | None]) -> str | None:
    """Return what is read of a run as a text, or what is wrong with it; `None` if the run does not keep it."""
    try:
        body = read()
    except RunError as error:
        return str(error)
    return None if body is None else body.decode("utf-8", "replace")


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
    attempts: list[_Attempt] = []
    ended: list[Attempt | Trial] = [*trial.attempts, trial]
    for line, each in zip(drawn, ended, strict=True):
        prefix = "" if each is trial else f"attempt-{line.attempt}-"
        shown, counted = each.transcript or Transcript(), isinstance(each, Trial) or each.counted
        attempts.append(_Attempt(line.attempt, prefix, track_of(line), shown, each.failure, counted))
    return attempts, problem


PAGE = Page(
    routes=(
        run_route("/trials/{trial:path}", _trial),
        run_route("/raw/trials/{trial:path}", _record),
        run_route("/raw/requests/{trial:path}", _sent),
        run_route("/raw/artifacts/{trial:path}", _artifact),
    )
)
