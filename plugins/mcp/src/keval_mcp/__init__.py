"""MCP servers as keval contexts: stdio, streamable HTTP and SSE, behind a tap that records every call.

A bundle (a package that ships a server of its own) builds on the same classes: it constructs one and delegates to
its `start(label, facts=…)`. Importing this package imports no MCP SDK.
"""

from keval_mcp.facts import Facts
from keval_mcp.providers import Http, Sse, Stdio

__all__ = ["Facts", "Http", "Sse", "Stdio"]
