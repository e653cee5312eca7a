"""What a person does on the page of a play. Each action is a form, which a script sends without leaving the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from keval import KevalError
from keval_viewer.page import rendered
from keval_viewer.play import Asked, Edit, EditableCondition, PlayError
from keval_viewer.playing.session import PlaySession

__all__ = ["ROUTES"]


def _text(form: FormData, name: str) -> str:
    """Return a field of a form; browsers end its lines with CRLF."""
    value = form.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


async def _ask(session: PlaySession, form: FormData) -> None:
    answer = _text(form, "answer").strip() or None
    if sample := _text(form, "sample"):
        await session.ask(Asked(sample=sample))
        return
    text = _text(form, "text").strip()
    if not text:
        raise PlayError("there is no question; write one, or choose a sample")
    await session.ask(Asked(text, answer=answer, facts=_facts(_text(form, "facts"))))


def _facts(written: str) -> Mapping[str, Any]:
    """Return the facts that somebody wrote as JSON. Raises PlayError."""
    try:
        facts = orjson.loads(written) if written.strip() else {}
    except orjson.JSONDecodeError as error:
        raise PlayError(f"the facts are no JSON: {error}") from error
    if not isinstance(facts, dict):
        raise PlayError('the facts are not a mapping; write {"name": …}')
    return facts


async def _again(session: PlaySession, form: FormData) -> None:
    await session.ask_again(_text(form, "column"))


async def _stop(session: PlaySession, form: FormData) -> None:
    await session.play.stop(_text(form, "column") or None)


async def _new(session: PlaySession, form: FormData) -> None:
    await session.play.new_conversation()


async def _switch(session: PlaySession, form: FormData) -> None:
    kind, _, rest = _text(form, "switch").partition(" ")
    state, _, label = rest.partition(" ")
    session.switch(kind, label, on=state == "on")


async def _edit(session: PlaySession, form: FormData) -> None:
    edit = _edit_of(session, form)
    if not (edit.models or edit.name or edit.system_prompt is not None or edit.descriptions):
        raise PlayError("nothing was changed; edit a prompt, a description or a model first")
    await session.edit(edit, again="again" in form)


def _edit_of(session: PlaySession, form: FormData) -> Edit:
    """Return what a form changes: fields that are as before change nothing."""
    models = {name.removeprefix("model."): _text(form, name).strip() for name in form if name.startswith("model.")}
    known = {column.agent: column.model for column in session.play.columns}
    models = {agent: model for agent, model in models.items() if model and model != known.get(agent)}
    label = _text(form, "condition")
    if not label:
        return Edit(models=models)
    condition = _condition(session, label)
    prompt = _text(form, "system_prompt")
    # A prompt in a config often ends with a line break, which a person does not see.
    is_same = prompt.rstrip() == condition.system_prompt.rstrip()
    described = {tool.name: tool.description for tool in condition.tools}
    descriptions = {tool: _text(form, f"tool.{tool}") for tool in described if f"tool.{tool}" in form}
    return Edit(
        models=models,
        condition=label,
        name=_text(form, "name").strip() or None,
        system_prompt=None if is_same else prompt,
        descriptions={tool: text for tool, text in descriptions.items() if text.strip() != described[tool].strip()},
    )


def _condition(session: PlaySession, label: str) -> EditableCondition:
    for condition in session.play.conditions:
        if condition.label == label:
            return condition
    raise PlayError(f"there is no condition {label!r}")


_ACTIONS: dict[str, Callable[[PlaySession, FormData], Awaitable[None]]] = {
    "ask": _ask,
    "again": _again,
    "stop": _stop,
    "new": _new,
    "switch": _switch,
    "edit": _edit,
}


async def _act(request: Request) -> Response:
    act = _ACTIONS.get(request.path_params["action"])
    if act is None:
        raise HTTPException(404)
    is_scripted = "text/html" not in request.headers.get("accept", "")
    try:
        async with request.form() as form:
            await act(request.app.state.play, form)
    except KevalError as error:
        if is_scripted:
            return PlainTextResponse(str(error), 409)
        raise HTTPException(409, str(error)) from error
    return Response(status_code=204) if is_scripted else RedirectResponse("/", 303)


async def _keep(request: Request) -> Response:
    session: PlaySession = request.app.state.play
    async with request.form() as form:
        path, answer = _text(form, "path").strip(), _text(form, "answer").strip()
        try:
            kept = session.play.keep_sample(
                _text(form, "question"),
                _inside(Path(path), session) if path else None,
                answer=answer or None,
                looked_up="looked_up" in form,
            )
        except KevalError as error:
            raise HTTPException(409, str(error)) from error
    return rendered(request, "play_kept.html", kept=kept, name=session.play.evaluation.name)


def _inside(path: Path, session: PlaySession) -> Path:
    """Return a path as it is, if it is in the config's folder or the current one. Raises PlayError."""
    folders = [Path(session.play.evaluation.source.name).parent.resolve(), Path.cwd()]
    for folder in folders:
        if (folder / path).resolve().is_relative_to(folder):
            return folder / path
    raise PlayError(f"{path} is in neither {folders[0]} nor {folders[1]}; name a file there")


ROUTES = (
    Route("/play/keep", _keep, methods=["POST"]),
    Route("/play/{action}", _act, methods=["POST"]),
)
