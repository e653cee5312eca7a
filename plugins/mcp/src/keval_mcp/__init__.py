"""MCP servers for keval: contexts over stdio, streamable HTTP and SSE, and the tap that records every call.

A bundle (a package that ships a server of its own) builds on the same classes: it constructs one and delegates to
its `start(label, facts=…)`. Importing this package imports no MCP SDK.

A call of an agent goes through `tap`, its `passage` and the `changes` of the context to the `server`, and its result
comes back the same way. `proxy` puts these together for a condition; `loop` is for agents that run tools themselves.
"""

from keval.plugin import ServerProxy
from keval_mcp.facts import Facts
from keval_mcp.providers import Http, Sse, Stdio, planned_sharing
from keval_mcp.server.options import Accept, Auth

__all__ = ["Accept", "Auth", "Facts", "Http", "Sse", "Stdio", "planned_sharing", "server_proxy"]


def server_proxy() -> ServerProxy:
    """Return what connects to MCP servers and stands between them and the agents."""
    from keval_mcp.proxy import McpProxy  # the MCP SDK takes 0.4 s to import

    return McpProxy()
