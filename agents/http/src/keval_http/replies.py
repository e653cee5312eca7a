"""Replies of an endpoint: the answer in them, the session and the tokens; and the error for what is no reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import jmespath
from jmespath.exceptions import JMESPathError

from keval import Usage
from keval.plugin import TrialError
from keval_clients import read_json

if TYPE_CHECKING:
    from keval_http import Http

_SHOWN = 200
"""Characters that are shown of a reply."""


@attrs.define
class Reply:
    """What an endpoint replied to one message, as far as it was read, by the agent's options."""

    _options: Http
    _pieces: list[str] = attrs.field(factory=list, init=False)
    session: object = None
    _told: dict[str, Any] = attrs.field(factory=dict, init=False)

    @property
    def usage(self) -> Usage:
        """The tokens that it took; of events, the last that tells a count says it."""
        return Usage(**self._told)

    def take(self, text: str) -> str:
        """Read the reply, or one of its events, and return the piece of the answer in it. Raises TrialError."""
        form = self._options
        data = _data(text) if form.answer or form.session or form.usage_paths else None
        for name, path in form.usage_paths.items():
            if (count := _found(path, data)) is not None:
                self._told[name] = count
        if form.session is not None and (session := _found(form.session, data)) is not None:
            self.session = session
        piece = text if form.answer is None else _found(form.answer, data)
        if piece is None and form.events == "sse":
            return ""  # an event of another kind
        if not isinstance(piece, str):
            what = "nothing" if piece is None else f"{type(piece).__name__} in place of a text"
            raise TrialError(f"the reply has {what} at {form.answer!r}: {shown(text)}", kind="bad_answer")
        self._pieces.append(piece)
        return piece

    @property
    def answer(self) -> str:
        """All pieces of the answer so far."""
        return "".join(self._pieces)


def _data(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise bad_reply("something that is no JSON", text) from error


def _found(path: str, data: Any) -> Any:
    try:
        return jmespath.search(path, data)
    except JMESPathError as error:  # a function of the path was given something that it does not take
        raise TrialError(f"{path!r} cannot be applied to the reply: {error}", kind="bad_answer") from error


def bad_reply(what: str, text: str) -> TrialError:
    """Return the error for a reply that is none; another attempt may get another one."""
    return TrialError(f"the endpoint answered with {what}: {shown(text)}", kind="bad_reply", retryable=True)


def shown(text: str) -> str:
    """Return the beginning of what an endpoint said, on one line."""
    said = " ".join(text.split())
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
