"""A real MCP server over stdio for the contract that all adapters keep."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("sums", log_level="CRITICAL")


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two whole numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def divide(a: int, b: int) -> str:
    """Divide one whole number by another."""
    if b == 0:
        raise ToolError("nothing can be divided by zero")
    return str(a // b)


server.run("stdio")
