"""A conversation with an endpoint: messages rendered and sent, replies read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import attrs

from keval import Transcript, Usage
from keval.plugin import Context, TrialError
from keval_clients import Reply as HttpReply, event_data
from keval_http.caller import Caller
from keval_http.message_format import MessageFormat
from keval_http.replies import Reply, bad_reply

_DONE = "[DONE]"
"""The data of an event with which many streams end, after OpenAI's."""


@attrs.define
class HttpConversation:
    """Sends one request for each message. `about` is what templates may know of the sample."""

    _format: MessageFormat
    _caller: Caller
    _context: Context
    _about: Mapping[str, Any]
    _said: list[dict[str, str]] = attrs.field(init=False)
    _session: object = attrs.field(init=False)
    _usages: list[Usage] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._said = [{"role": message.role, "content": message.text} for message in self._context.history]
        self._session = uuid4().hex if self._format.session is None else None

    async def ask(self, text: str) -> None:
        """Send a message; see `keval.plugin.Conversation`."""
        builder, form = self._context.builder, self._format
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
        if not self._format.usage:
            return transcript
        return attrs.evolve(transcript, usage=sum(self._usages[1:], self._usages[0]))

    def _with_instructions(self, text: str) -> str:
        """Put the system prompt before the first message, unless a template has a place for it."""
        begins = len(self._said) == len(self._context.history)
        if not begins or not self._context.instructions or self._format.names & {"instructions", "messages"}:
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
            url, body = self._format.render(values)
        except ValueError as error:
            raise TrialError(str(error), kind="bad_request") from error
        return url, body

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
