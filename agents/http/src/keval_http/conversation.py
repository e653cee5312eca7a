"""A conversation with an endpoint: messages rendered and sent, replies read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import jmespath
from aiohttp import ClientResponse
from jmespath.exceptions import JMESPathError

from keval import Transcript, Usage
from keval.plugin import Context, TrialError
from keval_clients import read_json
from keval_clients.client import event_data
from keval_http.caller import Caller, bad_reply, shown

if TYPE_CHECKING:
    from keval_http.agent import Http

_DONE = "[DONE]"
"""The data of an event with which many streams end, after OpenAI's."""


@attrs.define
class HttpConversation:
    """Sends one request for each message. `about` is what templates may know of the sample."""

    _agent: Http
    _caller: Caller
    _context: Context
    _about: Mapping[str, Any]
    _said: list[dict[str, str]] = attrs.field(init=False)
    _session: object = attrs.field(init=False)
    _usages: list[Usage] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._said = [{"role": message.role, "content": message.text} for message in self._context.history]
        self._session = uuid4().hex if self._agent.session is None else None

    async def ask(self, text: str) -> None:
        """Send a message; see `keval.plugin.Conversation`."""
        builder, agent = self._context.builder, self._agent
        with builder.turn(text):
            question = self._with_instructions(text)
            url, body = self._request(question)
            async with self._caller.send(agent.method, url, body) as response:
                reply = Reply(agent)
                if agent.events == "sse":
                    await self._read_events(response, reply)
                else:
                    reply.take(await response.text(errors="replace"))
            builder.said(reply.answer)
        self._session = reply.session if agent.session is not None else self._session
        self._usages.append(reply.usage)
        self._said += [{"role": "user", "content": question}, {"role": "assistant", "content": reply.answer}]

    def transcript(self) -> Transcript:
        """Return the transcript, with the tokens that the replies told, if they are to be told."""
        transcript = self._context.builder.transcript()
        if self._agent.usage is None:
            return transcript
        return attrs.evolve(transcript, usage=sum(self._usages[1:], self._usages[0]))

    def _with_instructions(self, text: str) -> str:
        """Put the system prompt before the first message, unless a template has a place for it."""
        begins = len(self._said) == len(self._context.history)
        if not begins or not self._context.instructions or self._agent.names & {"instructions", "messages"}:
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
            url, body = self._agent.rendered(values)
        except ValueError as error:
            raise TrialError(str(error), kind="bad_request") from error
        return url, body

    async def _read_events(self, response: ClientResponse, reply: Reply) -> None:
        """Read the events of a stream up to its end, and report each piece of the answer."""
        if response.content_type != "text/event-stream":
            raise bad_reply(f"{response.content_type} in place of events", await response.text(errors="replace"))
        async for event in event_data(response.content.iter_any()):
            data = event.decode("utf-8", "replace")
            if data == _DONE:
                return
            piece = reply.take(data)
            if self._context.streams:
                self._context.builder.streamed(piece)


@attrs.define
class Reply:
    """What an endpoint replied to one message, as far as it was read."""

    _agent: Http
    answer: str = ""
    session: object = None
    usage: Usage = attrs.field(factory=Usage)

    def take(self, text: str) -> str:
        """Read the reply, or one of its events, and return the piece of the answer in it. Raises TrialError."""
        agent = self._agent
        usage = {} if agent.usage is None else {k: v for k, v in attrs.asdict(agent.usage).items() if v is not None}
        data = self._data(text) if agent.answer or agent.session or usage else None
        for name, path in usage.items():
            if isinstance(count := _found(path, data), int) and not isinstance(count, bool):
                self.usage = attrs.evolve(self.usage, **{name: count})
        if agent.session is not None and (session := _found(agent.session, data)) is not None:
            self.session = session
        piece = text if agent.answer is None else _found(agent.answer, data)
        if piece is None and agent.events == "sse":
            return ""  # an event of another kind
        if not isinstance(piece, str):
            what = "nothing" if piece is None else f"{type(piece).__name__} in place of a text"
            raise TrialError(f"the reply has {what} at {agent.answer!r}: {shown(text)}", kind="bad_answer")
        self.answer += piece
        return piece

    def _data(self, text: str) -> Any:
        try:
            return read_json(text)
        except ValueError as error:
            raise bad_reply("something that is no JSON", text) from error


def _found(path: str, data: Any) -> Any:
    try:
        return jmespath.search(path, data)
    except JMESPathError as error:  # a function of the path was given something that it does not take
        raise TrialError(f"{path!r} cannot be applied to the reply: {error}", kind="bad_answer") from error
