"""A conversation with an endpoint: messages rendered and sent, replies read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import orjson

from keval import Transcript, Usage
from keval.plugin import Context, TrialError
from keval_clients import Reply as HttpReply
from keval_http.caller import Caller
from keval_http.events import event_data
from keval_http.replies import Reply, bad_reply
from keval_http.templates import JSON, json_problem

if TYPE_CHECKING:
    from keval_http import Http

_DONE = "[DONE]"
"""The data of an event with which many streams end, after OpenAI's."""


@attrs.define
class HttpConversation:
    """Sends one request for each message. `about` is what templates may know of the sample."""

    _options: Http
    _caller: Caller
    _context: Context
    _about: Mapping[str, Any]
    _said: list[dict[str, str]] = attrs.field(init=False)
    _session: object = attrs.field(init=False)
    _usages: list[Usage] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._said = [{"role": message.role, "content": message.text} for message in self._context.history]
        self._session = uuid4().hex if self._options.session is None else None

    async def ask(self, text: str) -> None:
        """Send a message; see `keval.plugin.Conversation`."""
        builder, form = self._context.builder, self._options
        if self._usages and self._session is None:
            problem = f"the reply before had no session at {form.session!r}, so that this message would begin another"
            raise TrialError(problem, kind="bad_answer")
        with builder.turn(text):
            question = self._with_instructions(text)
            url, body = self._request(question)
            response = await self._caller.send(form.method, url, body, self._context.max_reply_bytes)
            reply = Reply(form)
            if form.events == "sse":
                await self._read_events(response, reply)
            else:
                reply.take(await response.text())
            builder.said(reply.answer)
        self._session = self._session if reply.session is None else reply.session
        self._usages.append(reply.usage)
        self._said += [{"role": "user", "content": question}, {"role": "assistant", "content": reply.answer}]

    def transcript(self) -> Transcript:
        """Return the transcript, with the tokens that the replies told, if they are to be told."""
        transcript = self._context.builder.transcript()
        if not self._options.usage_paths:
            return transcript
        # Summed from the first on: every count of `Usage()` is unknown, and so would the sum be.
        return attrs.evolve(transcript, usage=sum(self._usages[1:], self._usages[0]))

    def _with_instructions(self, text: str) -> str:
        """Put the system prompt before the first message, unless a template has a place for it."""
        begins = len(self._said) == len(self._context.history)
        if not begins or not self._context.instructions or self._options.names & {"instructions", "messages"}:
            return text
        return f"{self._context.instructions}\n\n{text}"

    def _request(self, question: str) -> tuple[str, bytes | None]:
        """Render the URL and the body of a request. Raises TrialError: kind `bad_request`."""
        instructions = self._context.instructions
        system = [{"role": "system", "content": instructions}] if instructions else []
        values = {
            "question": question,
            "instructions": instructions,
            "history": self._said,
            "messages": [*system, *self._said, {"role": "user", "content": question}],
            "session": self._session,
            "servers": [{"name": server.name, "url": server.url} for server in self._context.servers],
            **self._about,
        }
        try:
            return str(self._options.url_template.render(values)), self._body(values)
        except ValueError as error:
            raise TrialError(str(error), kind="bad_request") from error

    def _body(self, values: Mapping[str, Any]) -> bytes | None:
        """Render the body. Raises ValueError: the template fails, or what it renders is no JSON."""
        if self._options.body_template is None:
            return None
        body = self._options.body_template.render(values)
        if not isinstance(body, str):
            return orjson.dumps(body)
        if self._options.content_type == JSON and (problem := json_problem(body)):
            raise ValueError(f"the body is no JSON: {problem}; it is {body!r:.200}")
        return body.encode()

    async def _read_events(self, response: HttpReply, reply: Reply) -> None:
        """Read the events of a stream up to its end, and report each piece of the answer."""
        if response.content_type != "text/event-stream":
            raise bad_reply(f"{response.content_type} in place of events", await response.text())
        async with aclosing(response.pieces()) as pieces:
            async for event in event_data(pieces):
                data = event.decode("utf-8", "replace")
                if data == _DONE:
                    return
                piece = reply.take(data)
                if self._context.streams:
                    self._context.builder.streamed(piece)
