"""A server with every tool, resource and prompt that the official conformance suite asks a server for, by its names.

As a script it serves over stdio; `listen` serves streamable HTTP in sessions.
"""

from __future__ import annotations

import base64
import socket
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.types import (
    AudioContent,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer("conforming", version="1", instructions="Read before you write.")
watched: set[str] = set()


def shown(uri: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type="text/plain", text=text))


@server.tool()
def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> Any:
    """Show a dot."""
    return Image(data=DOT, format="png")


@server.tool(structured_output=False)
def test_audio_content() -> Any:
    """Play silence."""
    return AudioContent(data=SILENCE, mime_type="audio/wav")


@server.tool(structured_output=False)
def test_embedded_resource() -> Any:
    """Hand over a text."""
    return shown("test://embedded-resource", "This is an embedded resource content.")


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Say, show and hand over."""
    said = TextContent(text="Multiple content types test:")
    return [said, Image(data=DOT, format="png"), shown("test://mixed-content-resource", '{"test": "data"}')]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log while it works."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", step, related_request_id=ctx.request_id)
    return "done"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell how far it is."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
    return "done"


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    asked = [SamplingMessage(role="user", content=TextContent(text=prompt))]
    answer = await ctx.session.create_message(asked, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {answer.content.text if isinstance(answer.content, TextContent) else answer.content}"


class Response(BaseModel):
    response: str = Field(description="What the user says")


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit(message, Response)
    return f"User response: {answer.model_dump_json()}"


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask the user with a form that has defaults."""
    answer = await ctx.elicit("Who are you?", Defaults)
    return f"Elicitation completed: {answer.model_dump_json()}"


class Choices(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["option1", "option2", "option3"]})  # noqa: N815 - the suite's
    titledSingle: str = Field(  # noqa: N815
        json_schema_extra={"oneOf": [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]}
    )
    legacyEnum: str = Field(  # noqa: N815
        json_schema_extra={"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    )
    untitledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"type": "string", "enum": ["option1", "option2", "option3"]}}
    )
    titledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]}}
    )


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask the user to choose."""
    answer = await ctx.elicit("What do you choose?", Choices)
    return f"Elicitation completed: {answer.model_dump_json()}"


@server.tool()
async def client_folders(ctx: Context) -> list[str]:
    """Name the folders of the client."""
    return [f"{root.name} {root.uri}" for root in (await ctx.session.list_roots()).roots]


@server.tool()
def client_capabilities(ctx: Context) -> list[str]:
    """Name what the client says that it can do."""
    about = ctx.session.client_params
    return sorted(about.capabilities.model_dump(exclude_none=True)) if about else []


@server.tool()
async def change_watched(ctx: Context) -> str:
    """Tell those who watch that the watched resource has changed."""
    for uri in watched:
        await ctx.session.send_resource_updated(uri)
    await ctx.session.send_prompt_list_changed()
    return f"told of {len(watched)}"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return DOT


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    return f'{{"id": "{id}", "templateTest": true, "data": "Data for ID: {id}"}}'


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    return "Watched."


@server.prompt()
def test_simple_prompt() -> str:
    """Begin simply."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Begin with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 - the suite's
    """Begin with a text at hand."""
    return [UserMessage(shown(resourceUri, "Embedded resource content for testing.")), UserMessage("Please read it.")]


@server.prompt()
def test_prompt_with_image() -> list[Message]:
    """Begin with a picture."""
    picture = ImageContent(data=base64.b64encode(DOT).decode(), mime_type="image/png")
    return [UserMessage(picture), UserMessage("Please look at it.")]


async def complete(context: Any, params: CompleteRequestParams) -> CompleteResult:
    return CompleteResult(completion=Completion(values=[f"{params.argument.value}!"], total=1, has_more=False))


async def set_level(context: Any, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


async def subscribe(context: Any, params: SubscribeRequestParams) -> EmptyResult:
    watched.add(str(params.uri))
    return EmptyResult()


async def unsubscribe(context: Any, params: UnsubscribeRequestParams) -> EmptyResult:
    watched.discard(str(params.uri))
    return EmptyResult()


# MCPServer has no public way to add these.
server._lowlevel_server.add_request_handler("completion/complete", CompleteRequestParams, complete)
server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
server._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
server._lowlevel_server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)


def listen(listener: socket.socket) -> None:
    """Serve over streamable HTTP."""
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    server.run("stdio")
