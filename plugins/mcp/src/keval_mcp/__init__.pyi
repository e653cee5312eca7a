"""MCP servers for keval: contexts over stdio, streamable HTTP and SSE, and the tap that records every call.

A bundle (a package that ships a server of its own) builds on the same classes: it constructs one and delegates to
its `start(label, facts=…)`. Importing this package imports no MCP SDK.

A call of an agent goes through `tap`, its `passage` and the `changes` of the context to the `server`, and its result
comes back the same way. `proxy` puts these together for a condition; `loop` is for agents that run tools themselves.
"""

from keval_mcp.changes.words import Words as Words
from keval_mcp.loop import (
    Call as Call,
    Chat as Chat,
    Reply as Reply,
    Result as Result,
    Tool as Tool,
    ToolLoop as ToolLoop,
    open_conversation as open_conversation,
    text_of as text_of,
)
from keval_mcp.providers import (
    Http as Http,
    ProxiedServer as ProxiedServer,
    Sse as Sse,
    Stdio as Stdio,
    planned_sharing as planned_sharing,
)
from keval_mcp.server.skills import (
    ServedSkill as ServedSkill,
    SkillCatalogue as SkillCatalogue,
    open_skills as open_skills,
)
from keval_mcp.text_log import FollowedTexts as FollowedTexts
from keval_mcp.tool_results import (
    MOST_NESTED as MOST_NESTED,
    Media as Media,
    ToolResult as ToolResult,
    is_too_deep as is_too_deep,
)
