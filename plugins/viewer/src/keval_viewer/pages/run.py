"""The page of a run: the parts of its report, each fetched by itself; while it runs, how far it has come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from markupsafe import escape
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from keval import Run
from keval_report.report import Report
from keval_viewer.live import Draw, Seen, Sent, event_stream
from keval_viewer.page import RUN, Page, rendered, run_of, run_route, viewer_of
from keval_viewer.report_page import FRAGMENTS, answers, names_of
from keval_viewer.runs import read_ahead

_FIRST = ("header", "findings", "gates", "effects")
"""Parts that need nothing but the summary, which the page comes with. Its script fetches the questions at once, and
each of the others when it is opened."""
_LIVE = ("progress", "arms", "troubles", "effects", "flight")
"""Parts of a page of a run that is running, in their order."""
_PATIENCE = 0.2
"""Seconds for which the page of a running run waits for its parts, which are sent when they come."""
_AGAIN = 2.0
"""Seconds between two looks whether a run that ended was taken up again."""


async def _run(request: Request) -> Response:
    # This is a coroutine, so all that reads files goes to a thread.
    run = await run_in_threadpool(run_of, request)
    if await run_in_threadpool(lambda: run.is_locked):
        parts = await viewer_of(request).following.first(run, _draw(request), _PATIENCE)
        return await run_in_threadpool(rendered, request, "run_live.html", run=run, parts=parts, order=_LIVE)
    return await run_in_threadpool(_finished, request, run)


def _finished(request: Request, run: Run) -> Response:
    """Render the page of a run that nothing is written to."""
    report = viewer_of(request).runs.report(run)
    names = names_of(report)
    done = sum(arm.trials for arm in report.summary.trials)
    return rendered(
        request,
        "run.html",
        run=run,
        parts={name: FRAGMENTS[name](report) for name in _FIRST},
        names=names,
        folds=[name for name in names if name not in (*_FIRST, "questions")],
        done=done,
        is_whole=done == run.manifest.trials and not any(arm.missing for arm in report.summary.arms),
    )


def _part(request: Request, run: Run) -> Response:
    name = request.path_params["part"]
    if name not in FRAGMENTS:
        raise HTTPException(404)
    runs = viewer_of(request).runs
    report = runs.report(run)
    # The questions of a large run take a second to draw.
    html = runs.derived(run, f"part {name}", lambda _: FRAGMENTS[name](report).encode("utf-8", "replace"))
    if name == "questions" and (late := runs.late_changes(run, report)):
        told = escape(f"{', '.join(late)} changed after the run ended")
        html = f'<p class="lost caution">caution: {told}</p>'.encode() + html
    return HTMLResponse(html, background=BackgroundTask(read_ahead, run) if name == "questions" else None)


def _answers(request: Request, run: Run) -> Response:
    """Answer with the answers of all arms to one question, and where there is more about it."""
    report = viewer_of(request).runs.report(run)
    wanted = request.path_params["sample"]
    index = next((place for place, each in enumerate(report.outline.questions) if each.id == wanted), None)
    if index is None:
        raise HTTPException(404)
    return rendered(request, "run_answers.html", run=run, sample=wanted, answers=answers(report, index))


async def _events(request: Request) -> Response:
    run = await run_in_threadpool(run_of, request)
    if await run_in_threadpool(lambda: run.is_locked):
        return event_stream(viewer_of(request).following.events(run, _draw(request)))
    # The page may show the run as it was before the connection was lost.
    return event_stream(_change(run, was_running="running" in request.query_params))


async def _change(run: Run, *, was_running: bool) -> AsyncGenerator[Sent, None]:
    """Yield one event: that the run has ended, or as soon as something writes to it again."""
    while True:
        if was_running or await run_in_threadpool(lambda: run.is_locked):
            yield Sent("ended" if was_running else "begun", {})
            return
        await asyncio.sleep(_AGAIN)


def _draw(request: Request) -> Draw:
    """Return what draws the parts of the page of a running run."""
    macros = viewer_of(request).environment.get_template("run_parts.html").module

    def draw(seen: Seen) -> Mapping[str, str]:
        drawn = {name: str(getattr(macros, name)(seen)) for name in _LIVE if name != "effects"}
        return {**drawn, "effects": str(FRAGMENTS["effects"](Report(seen.run, seen.summary)))}

    return draw


PAGE = Page(
    routes=(
        Route(RUN, _run),
        Route(f"{RUN}/events", _events),
        run_route("/parts/{part}", _part),
        run_route("/answers/{sample:path}", _answers),
    ),
    tab="Summary",
)
