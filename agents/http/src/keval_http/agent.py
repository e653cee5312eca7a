"""The `http` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

import attrs
import jmespath
from jmespath.exceptions import JMESPathError

from keval import Sample, Transcript
from keval.plugin import Context, TrialError
from keval_clients import check_headers
from keval_http.templates import EXAMPLE, JSON, Template, json_problem

if TYPE_CHECKING:
    from keval_http.caller import Caller
    from keval_http.conversation import HttpConversation


def _is_path(record: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    try:
        if value is not None:
            jmespath.compile(value)
    except JMESPathError as error:
        told = " ".join(str(error).split())
        raise ValueError(f"{attribute.name!r} must be a JMESPath, such as data.answer: {told}") from error


@attrs.frozen
class UsagePaths:
    """Where a reply has the tokens that it took, as JMESPaths."""

    input_tokens: str | None = attrs.field(default=None, validator=_is_path)
    output_tokens: str | None = attrs.field(default=None, validator=_is_path)
    cached_tokens: str | None = attrs.field(default=None, validator=_is_path)
    reasoning_tokens: str | None = attrs.field(default=None, validator=_is_path)


@attrs.define
class Http:
    """Sends each message of the user to an endpoint.

    `url` and `body` are templates. A `body` that is a mapping is sent as JSON. `answer` is where the reply has its
    text, as a JMESPath; without one, the whole reply is the answer. With `events: sse` the reply is a stream of events,
    and the answer is what all of them have there. `session` is where a reply has the key by which later messages of the
    trial belong to it; without one, keval draws a key.

    With `probe`, keval looks before the run whether the endpoint is there.
    """

    flag_option: ClassVar[str] = "url"

    url: str
    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, validator=check_headers)
    body: str | Mapping[str, Any] = attrs.field(factory=lambda: {"question": "{{ question }}"})
    answer: str | None = attrs.field(default=None, validator=_is_path)
    events: Literal["sse"] | None = None
    session: str | None = attrs.field(default=None, validator=_is_path)
    usage: UsagePaths | None = None
    probe: bool = True
    _caller: Caller | None = attrs.field(default=None, init=False, repr=False, eq=False)
    url_template: Template = attrs.field(init=False, repr=False, eq=False)
    body_template: Template | None = attrs.field(init=False, repr=False, eq=False)
    """The body; `None` for GET, which has none."""
    content_type: str = attrs.field(init=False, repr=False, eq=False)
    usage_paths: Mapping[str, str] = attrs.field(init=False, repr=False, eq=False)
    """A path for each kind of token that replies tell."""

    def __attrs_post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"} or not urlsplit(self.url).hostname:
            raise ValueError(f"'url' must begin with http:// or https:// and a host; got {self.url!r:.60}")
        given = {name.lower(): value for name, value in self.headers.items()}
        self.content_type = given.get("content-type", JSON).partition(";")[0].strip().lower()
        self.url_template, body = _compiled("url", self.url), _compiled("body", self.body)
        if self.method == "GET" and not self.url_template.names:
            raise ValueError("'url' must have the question for GET, such as …/ask?q={{ question | urlencode }}")
        # A mapping is JSON whatever the question is; a text is only if its template escapes it.
        if isinstance(self.body, str) and self.content_type == JSON:
            _check_json(body)
        if self.session is not None and "session" not in self.url_template.names | body.names:
            raise ValueError("'session' must be used by a template, such as `session: \"{{ session }}\"` in the body")
        told = {} if self.usage is None else attrs.asdict(self.usage, filter=lambda _, path: path is not None)
        self.body_template, self.usage_paths = None if self.method == "GET" else body, told

    @property
    def names(self) -> frozenset[str]:
        """What of a trial the templates use."""
        return self.url_template.names | (self.body_template.names if self.body_template else frozenset())

    async def prepare(self) -> None:
        """Import the HTTP client, beside the event loop, and look whether the endpoint is there."""
        await asyncio.to_thread(import_module, "keval_http.caller")
        if self.probe:
            await self._ready().probe()

    def servers_refusal(self) -> str | None:
        """Say why the endpoint cannot be given MCP servers; see `keval.plugin.RefusesServers`."""
        if "servers" in self.names:
            return None
        return (
            'no template hands them over; add `servers: "{{ servers }}"` to the body, under the name that the endpoint'
            " expects, or leave the agent out of conditions with servers"
        )

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        async with self.open(attrs.evolve(context, history=sample.history), sample) as conversation:
            for text in sample.asked:
                await conversation.ask(text)
            return conversation.transcript()

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.aclose()

    @asynccontextmanager
    async def open(self, context: Context, sample: Sample | None = None) -> AsyncIterator[HttpConversation]:
        """Open a conversation; see `keval.plugin.ConversationalAgent`."""
        from keval_http.conversation import HttpConversation

        self._check_handed_over(context, sample)
        about = {"id": sample.id, "metadata": sample.metadata} if sample is not None else {"id": "", "metadata": {}}
        context.builder.leave_calls_to_tap(context.servers)
        yield HttpConversation(self, self._ready(), context, about)

    def _check_handed_over(self, context: Context, sample: Sample | None) -> None:
        """Raise TrialError if the trial has something that no template hands over."""
        names = self.names
        if context.servers and (refusal := self.servers_refusal()) is not None:
            raise TrialError(refusal, kind="servers_unsupported")
        if unreachable := [server.name for server in context.servers if server.url is None]:
            raise TrialError(
                f"the server {unreachable[0]!r} has no URL by which an endpoint could reach it; leave out `tap: false`",
                kind="servers_unsupported",
            )
        if context.history and not names & {"history", "messages"}:
            problem = "no template hands over what was said earlier; add `messages` or `history` to the body"
            raise TrialError(problem, kind="history_unsupported")
        if sample is not None and sample.turns and not names & {"history", "messages", "session"}:
            problem = "the endpoint cannot know the earlier turns; add `session`, `messages` or `history` to the body"
            raise TrialError(problem, kind="turns_unsupported")

    def _ready(self) -> Caller:
        if self._caller is None:
            from keval_http.caller import Caller  # imports an HTTP client, which checking a config need not

            self._caller = Caller.to(self.url, {"content-type": JSON, **self.headers})
        return self._caller


def _compiled(field: str, value: Any) -> Template:
    try:
        return Template.of(value)
    except ValueError as error:
        raise ValueError(f"{field!r} must be made of valid templates: {error}") from error


def _check_json(body: Template) -> None:
    """Raise ValueError if a body that is a text is no JSON once it is rendered with quotes and line ends."""
    try:
        text = body.render(EXAMPLE)
    except ValueError:
        return  # it needs metadata, which samples have
    if problem := json_problem(text):
        raise ValueError(
            f"'body' must render to JSON, and does not for a question with quotes and line ends: {problem}; write"
            " {{ question | tojson }} without quotes around it, or give the body as a mapping"
        )
