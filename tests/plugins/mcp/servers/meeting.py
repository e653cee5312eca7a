"""A server with tools that no model API takes the names of; one of them answers when another one is called."""

import asyncio

from mcp.server.mcpserver import MCPServer

server = MCPServer("meeting", log_level="CRITICAL")
come = asyncio.Event()


@server.tool(name="wait here")
async def wait() -> str:
    """Wait until the other one comes."""
    await come.wait()
    return "met"


@server.tool(name="wait/here")
def arrive() -> str:
    """Come, for whom the other one waits."""
    come.set()
    return "came"


@server.tool(name="x" * 70)
def long() -> str:
    """Have a name that is too long."""
    return "long"


@server.tool(name="x" * 69)
def shorter() -> str:
    """Have a name that is too long, and begins like another one."""
    return "shorter"


server.run("stdio")
