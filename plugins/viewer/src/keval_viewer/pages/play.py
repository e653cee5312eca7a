"""The pages of a play, and its actions: each is a form, which a script sends without leaving the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import attrs
import orjson
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from keval import KevalError, Sample
from keval.errors import ConfigError
from keval_viewer.live import event_stream
from keval_viewer.page import Page, rendered
from keval_viewer.play import Edit, PlayError, QuestionInput
from keval_viewer.play.records import EditableCondition
from keval_viewer.play_page.session import PlaySession
from keval_viewer.report_page.arms import word_diff

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
    edited = ((each.label, _edited(each, session.originals[each.label])) for each in play.conditions)
    try:
        standings = session.standings(request.query_params.get("against"))
    except PlayError as error:
        raise HTTPException(404, str(error)) from error
    return rendered(
        request,
        "play.html",
        session=session,
        latest=session.latest,
        standings=standings,
        edited={label: told for label, told in edited if told},
        samples=_listed(request),
    )


async def _samples(request: Request) -> Response:
    return rendered(request, "play_samples.html", play=_session(request).play, samples=_listed(request))


async def _question(request: Request) -> Response:
    session = _session(request)
    number = request.path_params["number"]
    row = session.found(number, request.path_params["question"])
    if row is None:
        raise HTTPException(404)
    return rendered(request, "play_question.html", row=row, number=number, session=session)


async def _condition(request: Request) -> Response:
    session, label = _session(request), request.path_params["condition"]
    try:
        text = session.play.condition_yaml(label)
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error
    return rendered(request, "play_condition.html", label=label, yaml=text, session=session)


async def _events(request: Request) -> Response:
    told = request.headers.get("last-event-id", "")
    after = request.query_params.get("from", "0")
    start = int(told) + 1 if told.isdecimal() else int(after) if after.isdecimal() else 0
    return event_stream(_session(request).events(start))


def _listed(request: Request) -> tuple[str, Sequence[Sample], int]:
    """Return what was searched for, the first samples that have all of its words, and how many samples there are."""
    search, samples = request.query_params.get("search", ""), _session(request).play.samples

    def is_found(sample: Sample) -> bool:
        text = " ".join((sample.id, *sample.asked, *map(str, sample.metadata.values()))).casefold()
        return all(word in text for word in search.casefold().split())

    return search, [*islice(filter(is_found, samples), _MOST_SAMPLES)], len(samples)


def _edited(condition: EditableCondition, original: EditableCondition) -> _Edited | None:
    """Return what differs from how a condition was, or `None` if nothing does."""
    before = {tool.name: tool.description for tool in original.tools}
    changed = [tool for tool in condition.tools if tool.description != before.get(tool.name)]
    tools = {tool.name: word_diff(before.get(tool.name), tool.description) for tool in changed}
    is_same = condition.system_prompt == original.system_prompt
    prompt = [] if is_same else word_diff(original.system_prompt, condition.system_prompt)
    return None if is_same and not tools else _Edited(prompt, tools)


def _field(form: FormData, name: str) -> str:
    """Return a field of a form; browsers end its lines with CRLF."""
    value = form.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def _question_of(form: FormData) -> QuestionInput:
    """Return what a form asks; its facts are JSON. Raises PlayError."""
    if sample := _field(form, "sample"):
        return QuestionInput(sample=sample)
    text = _field(form, "text").strip()
    if not text:
        raise PlayError("there is no question; write one, or choose a sample")
    try:
        facts = orjson.loads(_field(form, "facts").strip() or "{}")
    except orjson.JSONDecodeError as error:
        raise PlayError(f"the facts are no JSON: {error}") from error
    if not isinstance(facts, dict):
        raise PlayError('the facts are not a mapping; write {"name": …}')
    return QuestionInput(text, answer=_field(form, "answer").strip() or None, facts=facts)


def _edit_of(session: PlaySession, form: FormData) -> Edit:
    """Return what a form changes: fields that are as before change nothing."""
    models = {name.removeprefix("model."): _field(form, name).strip() for name in form if name.startswith("model.")}
    known = {column.agent: column.model for column in session.play.columns}
    models = {agent: model for agent, model in models.items() if model and model != known.get(agent)}
    label = _field(form, "condition")
    if not label:
        return Edit(models=models)
    condition = next((each for each in session.play.conditions if each.label == label), None)
    if condition is None:
        raise PlayError(f"there is no condition {label!r}")
    prompt = _field(form, "system_prompt")
    # A prompt in a config often ends with a line break, which a person does not see.
    is_same = prompt.rstrip() == condition.system_prompt.rstrip()
    described = {tool.name: tool.description for tool in condition.tools}
    descriptions = {tool: _field(form, f"tool.{tool}") for tool in described if f"tool.{tool}" in form}
    return Edit(
        models=models,
        condition=label,
        name=_field(form, "name").strip() or None,
        system_prompt=None if is_same else prompt,
        descriptions={tool: text for tool, text in descriptions.items() if text.strip() != described[tool].strip()},
    )


async def _do(action: str, session: PlaySession, form: FormData) -> None:
    match action:
        case "ask":
            await session.ask(_question_of(form))
        case "again":
            await session.ask_again(_field(form, "column"))
        case "stop":
            await session.stop()
        case "new":
            await session.new_conversation()
        case "switch":
            kind, _, rest = _field(form, "switch").partition(" ")
            state, _, label = rest.partition(" ")
            session.switch(kind, label, on=state == "on")
        case "edit":
            edit = _edit_of(session, form)
            if not (edit.models or edit.name or edit.system_prompt is not None or edit.descriptions):
                raise PlayError("nothing was changed; edit a prompt, a description or a model first")
            await session.edit(edit, again="again" in form)
        case _:
            raise HTTPException(404)


async def _act(request: Request) -> Response:
    # `fetch` accepts anything; a browser that sends the form by itself wants HTML to show.
    is_scripted = "text/html" not in request.headers.get("accept", "")
    try:
        async with request.form() as form:
            await _do(request.path_params["action"], _session(request), form)
    except KevalError as error:
        if is_scripted:
            return PlainTextResponse(str(error), 409)
        raise HTTPException(409, str(error)) from error
    return Response(status_code=204) if is_scripted else RedirectResponse("/", 303)


async def _keep(request: Request) -> Response:
    session = _session(request)
    async with request.form() as form:
        path, answer = _field(form, "path").strip(), _field(form, "answer").strip()
        try:
            kept = session.play.keep_sample(
                _field(form, "question"),
                _inside(Path(path), session) if path else None,
                answer=answer or None,
                looked_up="looked_up" in form,
            )
        except KevalError as error:
            raise HTTPException(409, str(error)) from error
    return rendered(request, "play_kept.html", kept=kept, session=session)


def _inside(path: Path, session: PlaySession) -> Path:
    """Return a path as it is, if it is in the config's folder or the current one. Raises PlayError."""
    folders = [Path(session.play.evaluation.source.name).parent.resolve(), Path.cwd()]
    for folder in folders:
        with suppress(OSError, RuntimeError, ValueError):  # of a loop of links, or of a NUL
            if (folder / path).resolve().is_relative_to(folder):
                return folder / path
    raise PlayError(f"{path} is in neither {folders[0]} nor {folders[1]}; name a file there")


PAGE = Page(
    routes=(
        Route("/", _play),
        Route("/play/events", _events),
        Route("/play/samples", _samples),
        Route("/play/questions/{number:int}/{question:path}", _question),
        Route("/play/conditions/{condition:path}", _condition),
        # Before the actions, as the first route that fits answers.
        Route("/play/keep", _keep, methods=["POST"]),
        Route("/play/{action}", _act, methods=["POST"]),
    )
)
