"""The pages of a play: the question box, the columns, how they stand, and what was asked before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval import Sample
from keval.plugin import ConfigError
from keval_viewer.page import Page, rendered
from keval_viewer.pages import play_actions
from keval_viewer.play import EditableCondition, PlayError
from keval_viewer.playing.session import PlaySession
from keval_viewer.streaming import event_stream
from keval_viewer.wording import word_diff

__all__ = ["PAGE"]

_MOST_SAMPLES = 12
"""Samples that are listed at once; a search finds the others."""


@attrs.frozen
class _Edited:
    """A condition that is not as the config has it: the words of its prompt, and of its tools' descriptions."""

    prompt: Sequence[tuple[str, str]]
    tools: Mapping[str, Sequence[tuple[str, str]]]


def _session(request: Request) -> PlaySession:
    session: PlaySession = request.app.state.play
    return session


async def _play(request: Request) -> Response:
    session = _session(request)
    play = session.play
    # All that was published so far is shown; the page asks for the events from here on.
    await session.progress.reach(play.feed.count)
    edited = ((each.label, _edited(each, session.originals[each.label])) for each in play.conditions)
    try:
        standings = session.standings(request.query_params.get("against"))
    except PlayError as error:
        raise HTTPException(404, str(error)) from error
    return rendered(
        request,
        "play.html",
        play=play,
        session=session,
        latest=session.latest,
        standings=standings,
        edited={label: told for label, told in edited if told},
        samples=_listed(session, request.query_params.get("search", "")),
        **_shared(session),
    )


async def _samples(request: Request) -> Response:
    session = _session(request)
    listed = _listed(session, request.query_params.get("search", ""))
    return rendered(request, "play_samples.html", play=session.play, samples=listed)


async def _question(request: Request) -> Response:
    session = _session(request)
    number = request.path_params["number"]
    row = session.found(number, request.path_params["question"])
    if row is None:
        raise HTTPException(404)
    return rendered(request, "play_question.html", row=row, number=number, session=session, **_shared(session))


async def _condition(request: Request) -> Response:
    session, label = _session(request), request.path_params["condition"]
    try:
        text = session.play.condition_yaml(label)
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error
    return rendered(request, "play_condition.html", label=label, yaml=text, **_shared(session))


async def _events(request: Request) -> Response:
    told = request.headers.get("last-event-id", "")
    after = request.query_params.get("from", "0")
    start = int(told) + 1 if told.isdecimal() else int(after) if after.isdecimal() else 0
    return event_stream(_session(request).events(start))


def _shared(session: PlaySession) -> dict[str, Any]:
    return {"name": session.play.evaluation.name, "dataset": session.play.evaluation.dataset}


def _listed(session: PlaySession, search: str) -> tuple[str, Sequence[Sample], int]:
    """Return what was searched for, the first samples that have all of its words, and how many samples there are."""
    samples, words = session.play.samples, search.casefold().split()
    found = (sample for sample in samples if all(word in _text(sample) for word in words))
    return search, [*islice(found, _MOST_SAMPLES)], len(samples)


def _text(sample: Sample) -> str:
    told = " ".join(str(value) for value in sample.metadata.values())
    return f"{sample.id} {' '.join(sample.asked)} {told}".casefold()


def _edited(condition: EditableCondition, original: EditableCondition) -> _Edited | None:
    """Return what differs from how a condition was, or `None` if nothing does."""
    before = {tool.name: tool.description for tool in original.tools}
    prompt = word_diff(original.system_prompt, condition.system_prompt)
    tools = {
        tool.name: word_diff(before.get(tool.name), tool.description)
        for tool in condition.tools
        if tool.description != before.get(tool.name)
    }
    has_changed = condition.system_prompt != original.system_prompt
    return _Edited(prompt if has_changed else (), tools) if has_changed or tools else None


PAGE = Page(
    routes=(
        Route("/", _play),
        Route("/play/events", _events),
        Route("/play/samples", _samples),
        Route("/play/questions/{number:int}/{question:path}", _question),
        Route("/play/conditions/{condition:path}", _condition),
        *play_actions.ROUTES,
    )
)
