"""MCP servers for keval: contexts over stdio, streamable HTTP and SSE, and the tap that records every call.

A bundle (a package that ships a server of its own) builds on the same classes: it constructs one and delegates to
its `start(label, facts=…)`. Importing this package imports no MCP SDK.

A call of an agent goes through `tap`, its `passage` and the `changes` of the context to the `server`, and its result
comes back the same way. `proxy` puts these together for a condition; `loop` is for agents that run tools themselves.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_mcp.changes.words": "Words",
        "keval_mcp.loop": "Call Chat ToolLoop Reply Result Tool open_conversation text_of",
        "keval_mcp.providers": "Http ProxiedServer Sse Stdio planned_sharing",
        "keval_mcp.server.skills": "ServedSkill SkillCatalogue open_skills",
        "keval_mcp.text_log": "FollowedTexts",
        "keval_mcp.tool_results": "MOST_NESTED Media ToolResult is_too_deep",
    },
)
