"""The server `conforming` with what the conformance suite asks of one that speaks the revision 2026-07-28.

`listen` serves streamable HTTP. What its tools need of a client comes in rounds, which the tools below name.
"""

from __future__ import annotations

from typing import Annotated, Any

from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import Message, Prompt, UserMessage
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from pydantic import Field

from tests.plugins.mcp.servers.conforming import listen, server

__all__ = ["listen"]


def form(field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=f"Your {field}?", requested_schema=schema))


def sample(text: str) -> CreateMessageRequest:
    asked = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=asked, max_tokens=50))


NEEDS: dict[str, list[dict[str, Any]]] = {
    "elicitation": [{"user_name": form("name")}],
    "sampling": [{"capital_question": sample("What is the capital of France?")}],
    "list_roots": [{"client_roots": ListRootsRequest()}],
    "request_state": [{"confirm": form("ok", "boolean")}],
    "tampered_state": [{"confirm": form("ok", "boolean")}],
    "multiple_inputs": [{"user_name": form("name"), "greeting": sample("Greet."), "client_roots": ListRootsRequest()}],
    "multi_round": [{"step1": form("name")}, {"step2": form("color")}],
    "capabilities": [{"sample": sample("Say hello."), "ask": form("name")}],
}
"""What each tool `test_input_required_result_…` needs, round by round."""
STATELESS = ("elicitation", "sampling", "list_roots")
CAPABILITY = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}


def able(context: Context, request: Any) -> bool:
    return getattr(context.client_capabilities, CAPABILITY[request.method], None) is not None


def needing(name: str, rounds: list[dict[str, Any]]) -> Any:
    async def tool(ctx: Context) -> str | InputRequiredResult:
        at, given = int(ctx.request_state or 0), ctx.input_responses or {}
        if rounds[at].keys() <= given.keys():
            at += 1
        if at == len(rounds):
            return f"state-ok: {', '.join(given)}"
        needed = {key: each for key, each in rounds[at].items() if name != "capabilities" or able(ctx, each)}
        return InputRequiredResult(input_requests=needed, request_state=None if name in STATELESS else str(at))

    return tool


for name, rounds in NEEDS.items():
    server.add_tool(needing(name, rounds), name=f"test_input_required_result_{name}", description="Needs input.")


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> list[Message] | InputRequiredResult:
    """Begin with what the user says."""
    if ctx.input_responses:
        return [UserMessage(f"Heed {', '.join(ctx.input_responses)}.")]
    return InputRequiredResult(input_requests={"user_context": form("context")})


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Refuse a client that cannot sample."""
    if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
        needed: Any = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", needed)
    return "It can sample."


@server.tool()
def test_x_mcp_header(region: Annotated[str, Field("none", json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that is a header, too."""
    return region


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """List one tool more, or one less."""
    if any(tool.name == "more" for tool in await server.list_tools()):
        server.remove_tool("more")
    else:
        server.add_tool(lambda: "more", name="more", description="One more.")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Tell that the prompts have changed."""
    server.add_prompt(Prompt.from_function(lambda: "more", name="more", description="One more."))
    await ctx.notify_prompts_changed()
    return "changed"
