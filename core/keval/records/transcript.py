"""A transcript: the messages, tool calls and token usage of one attempt at a trial, and what else passed in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from keval.records.end_state import EndState, GivenText
from keval.records.usage import Usage, known_count

_SHA256 = re.compile("[0-9a-f]{64}")

ContentKind: TypeAlias = Literal["image", "audio", "resource_link", "resource", "structured"]


@attrs.frozen
class Content:
    """One piece of a tool's result that is not plain text.

    `sha256` names its bytes in the run's `blobs/`, `size` counts them; both are `None` for a link, which has only its
    `uri`. Structured content is kept as JSON.
    """

    kind: ContentKind
    media_type: str | None = None
    sha256: str | None = None
    size: int | None = None
    uri: str | None = None


@attrs.frozen
class ServerExchange:
    """One request, or notification, between an agent and a server that is no tool call, as the tap saw it.

    `sender` says who sent it. `answered_by` says whose answer `result` or `error` is: the other side's, or that of the
    context's `client` where that, or nobody, declares such a capability; `None` for a notification. `sampled` is what a
    model took that answered. `at` is Unix time in seconds, and `duration` is in seconds.
    """

    server: str
    method: str
    sender: Literal["agent", "server"]
    params: Mapping[str, Any] = attrs.field(factory=dict)
    result: Mapping[str, Any] | None = None
    error: str | None = None
    answered_by: Literal["agent", "server", "policy"] | None = None
    sampled: ModelUsage | None = attrs.field(default=None, metadata={"sparse": True})
    at: float | None = attrs.field(default=None, eq=False)
    duration: float | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Blob:
    """Content that is too large or not text, kept beside the trials under its SHA-256."""

    sha256: str
    media_type: str
    content: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Blob:
        """Return the blob of this content."""
        return cls(hashlib.sha256(content).hexdigest(), media_type, content)


def is_sha256(name: str) -> bool:
    """Return whether a text can be the name of a blob: 64 hexadecimal digits, and no path."""
    return _SHA256.fullmatch(name) is not None


@attrs.frozen
class Citation:
    """A source that a model's API names for a text: a web page or a file, and the passage of it that is `quoted`."""

    title: str = ""
    url: str = attrs.field(default="", metadata={"sparse": True})
    quoted: str = attrs.field(default="", metadata={"sparse": True})


@attrs.frozen
class Message:
    """One message of a conversation. `turn` counts from 0 within a trial.

    `reasoning` is what the model told of its thoughts before the text, in a part of its own or between tags such as
    `<think>`: all of them or, as some vendors have it, a summary. `citations` are the sources of the text, each once.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    turn: int = 0
    reasoning: str = attrs.field(default="", metadata={"sparse": True})
    citations: tuple[Citation, ...] = attrs.field(default=(), metadata={"sparse": True})


@attrs.frozen
class ToolCall:
    """One tool call that the agent asked for, with its result as the server returned it.

    `executions` counts how often a server executed the call: usually 1; more when a framework sent it again; 0 when it
    never reached a server (an unknown tool, arguments that the framework refused); `None` when no tap watched.
    `model_call` is the number of the model call that asked for it, from 1; calls with the same number are parallel.
    `duration` is in seconds. `at` is when it was asked for, in seconds after the transcript's `started`.

    `content` is what the result holds beside text, and `dropped` has the kind of each piece of that which the adapter
    could not pass to the model. `error_kind` tells errors apart: `bad_arguments` do not fit the tool's input schema, a
    `tool_timeout` is no word of the server's, and one that is `injected` is an intervention's. `changed` says what an
    intervention made of the result, which is then not the server's: `scrambled`, `empty` or `fixed`. `tool`
    is the server's name of the tool, if the agent has another. `listing` is the SHA-256 of the list of tools that held
    at the call, if it was not the one before the first trial. `own` is true of a tool of the agent's own, such as a
    shell or an editor, which no server of its context has.
    """

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    result: str | None = None
    error: str | None = None
    duration: float | None = None
    server: str | None = None
    turn: int = 0
    executions: int | None = None
    id: str | None = None
    model_call: int | None = None
    content: tuple[Content, ...] = ()
    dropped: tuple[ContentKind, ...] = ()
    error_kind: str | None = None
    changed: str | None = None
    tool: str | None = None
    listing: str | None = None
    own: bool = False
    at: float | None = attrs.field(default=None, eq=False)


def given_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call but those that are null, which some frameworks send and others leave out."""
    return {name: value for name, value in arguments.items() if value is not None}


@attrs.frozen
class Refusal:
    """A model request that was refused or broke off, and was sent again after `waited` seconds.

    `status` is the HTTP status; `None` if there was no response. `message` is what came in its place.
    """

    status: int | None
    message: str
    waited: float


@attrs.frozen
class DeniedRequest:
    """A request of the agent's program that keval's proxy did not pass on: its method and path, why, and how often."""

    request: str
    reason: str
    count: int = 1


@attrs.frozen
class ModelUsage:
    """The tokens that one model took, by its `provider/name`."""

    model: str
    usage: Usage


@attrs.frozen
class Transcript:
    """What happened in a trial: messages, tool calls, tokens and time.

    `duration` is the wall time of all turns in seconds, and `turn_durations` that of each turn, from the question to
    the final answer. `tools` are the names of the tools that the model was offered; `None` when the adapter cannot
    tell. `unlisted_calls` counts calls of the last turn that are not in `tool_calls`, for recorded answers that have
    only a number; `None` when it is unknown whether there were any. `refusals` are model requests that were repeated
    below the agent; the waits between them are in no duration.

    `instructions` is the system prompt as rendered for the trial; `None` where it is unknown, or the transcript is of
    an attempt that was repeated with the same one. `started` is when the first turn began, as Unix time in seconds.
    `replies` is when the model answered each of its calls, in seconds after that, without the waits.
    `exchanges` is what passed between agent and servers beside tool calls. `request` is the SHA-256 of the first model
    request as it was sent, which is in the run's `blobs/`. `carried` is how many first turns earlier trials of the same
    conversation told, as in a play: their messages and tool calls are here again; all else but `turn_durations` is not.
    `truncated` says that a limit of length ended the final answer before the model did.

    `tool_calls_by` and `model_calls_by` say who told of the calls: the agent, or in its place the tap, or the proxy in
    front of its model. Of an agent's own tools only the agent can tell.

    `history` and `facts` are there if the agent has a past of its own, as recorded answers may say, and contexts of
    facts: what was said earlier, in place of the sample's history, and facts that replace the sample's by their names.

    `texts` are the instructions and skills that contexts gave, and `end_state` is what was left of a trial with a
    workspace or with checks.

    `protocols` has, by server, the revision of MCP in which the agent spoke with the tap; in memory none is spoken.

    `usage_by_model` is there if the agent's program asked several models, and `denied` if it asked the proxy for
    something that is not passed on.

    `scores` is what whoever recorded the answer says of it, by name: a number, or `{value, reason}`.
    """

    messages: tuple[Message, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model_calls: int | None = attrs.field(default=None, converter=known_count)
    duration: float | None = None
    turn_durations: tuple[float, ...] = ()
    tools: tuple[str, ...] | None = None
    unlisted_calls: int | None = 0
    refusals: tuple[Refusal, ...] = ()
    exchanges: tuple[ServerExchange, ...] = ()
    request: str | None = attrs.field(default=None, eq=False)
    instructions: str | None = attrs.field(default=None, eq=False)
    started: float | None = attrs.field(default=None, eq=False)
    replies: tuple[float, ...] = attrs.field(default=(), eq=False)
    carried: int = 0
    history: tuple[Message, ...] | None = None
    facts: Mapping[str, Any] | None = None
    truncated: bool = False
    # `sparse` fields are left out of a line while they have their default: most trials have none of them.
    texts: tuple[GivenText, ...] = attrs.field(default=(), metadata={"sparse": True})
    end_state: EndState | None = attrs.field(default=None, metadata={"sparse": True})
    usage_by_model: tuple[ModelUsage, ...] = attrs.field(default=(), metadata={"sparse": True})
    denied: tuple[DeniedRequest, ...] = attrs.field(default=(), metadata={"sparse": True})
    protocols: Mapping[str, str] = attrs.field(factory=dict, metadata={"sparse": True})
    scores: Mapping[str, Any] = attrs.field(factory=dict, metadata={"sparse": True})
    tool_calls_by: Literal["agent", "tap"] = "agent"
    model_calls_by: Literal["agent", "proxy"] = "agent"

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the turns that no earlier trial told of."""
        return tuple(call for call in self.tool_calls if call.turn >= self.carried)

    @property
    def output(self) -> str:
        """The agent's final answer: the assistant's last message of the last turn, or an empty text.

        A message before the last tool call is not an answer.
        """
        last = max([message.turn for message in self.messages], default=0)
        for message in reversed(self.messages):
            if message.turn != last or message.role == "tool":
                return ""
            if message.role == "assistant" and message.text:
                return message.text
        return ""
