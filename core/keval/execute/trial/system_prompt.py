"""The system prompt of a trial: the condition's own, what its contexts add, and what its servers say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keval.records.servers import McpServer
from keval.seams.interfaces import ShowsServerInstructions

_HEADING = """# MCP Server Instructions

The following MCP servers have provided instructions for how to use their tools and resources:"""
"""The words of Claude Code, which other MCP hosts follow."""


def system_prompt(prompts: Iterable[str], servers: Iterable[McpServer], agent: object) -> str:
    """Join the parts of a system prompt, and add a section for each server that has instructions.

    Servers are left out if the agent's framework shows their instructions to its model itself.
    """
    parts = [*prompts]
    if not (isinstance(agent, ShowsServerInstructions) and agent.shows_server_instructions):
        parts += _sections(servers)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _sections(servers: Iterable[McpServer]) -> Iterator[str]:
    sections = [
        f"## {server.name}\n\n{server.instructions.strip()}"
        for server in servers
        if server.instructions and server.instructions.strip()
    ]
    if sections:
        yield from (_HEADING, *sections)
