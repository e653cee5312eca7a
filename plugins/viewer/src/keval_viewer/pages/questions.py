"""The questions of a dataset that wait for a person: one after the other, with what proves its golden answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from keval.errors import ConfigError
from keval_analysis.question_review import QuestionEntry, QuestionFile
from keval_viewer.page import Page, form_route, position_of, rendered

PLACE = "/questions"


def _show(request: Request) -> Response:
    file, at = _file(request), position_of(request, 0)
    entries = file.questions()
    waiting = [entry for entry in entries if not entry.accepted and not entry.rejected]
    return rendered(
        request,
        "questions.html",
        entry=waiting[at] if at < len(waiting) else None,
        at=at,
        waiting=len(waiting),
        accepted=sum(entry.accepted for entry in entries),
        rejected=sum(entry.rejected for entry in entries),
        dataset=file.dataset.path.name,
    )


def _decide(request: Request, form: Mapping[str, Any]) -> Response:
    """Write what a form says of a question, and go on to the next."""
    file, at = _file(request), position_of(request, 0)
    chosen = next((entry for entry in file.waiting() if entry.id == form.get("id")), None)
    if chosen is None or chosen.version != form.get("version"):
        raise HTTPException(409, "The question was changed or decided on meanwhile, so nothing was saved. Go back.")
    try:
        match form.get("decision"):
            case "accept":
                file.accept([_edited(file, chosen, form)])
            case "reject":
                file.reject([chosen])
            case "save":
                _edited(file, chosen, form)
            case _:
                raise HTTPException(400, "A decision is to accept, to reject or to save.")
    except ConfigError as error:  # an empty text, or somebody else was faster
        raise HTTPException(409, str(error)) from error
    return RedirectResponse(f"{PLACE}?at={at}", 303)


def _edited(file: QuestionFile, entry: QuestionEntry, form: Mapping[str, Any]) -> QuestionEntry:
    """Return a question with the texts of a form, which are written if they are others."""
    question, answer = (str(form.get(name, "")).replace("\r\n", "\n").strip() for name in ("question", "answer"))
    same = question == entry.question.strip() and answer == (entry.answer or "").strip()
    return entry if same else file.edit(entry, question, answer)


def _file(request: Request) -> QuestionFile:
    file: QuestionFile | None = getattr(request.app.state, "questions", None)
    if file is None:
        raise HTTPException(404, "No dataset was named: keval view --questions CONFIG")
    return file


PAGE = Page(routes=(Route(PLACE, _show), form_route(PLACE, _decide)))
