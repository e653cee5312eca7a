"""A server made with the SDK that has a tool, a note, a prompt and, by the extension for them (SEP-2640), skills.

It serves those in the folder of its first argument over stdio, one on each page of the list.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import RequestParams, ToolAnnotations

from tests.plugins.skills.clerk import EXTENSION, FILES, files, page

ROOT = Path(sys.argv[1])
NOTE = "The form fields are read by the clerk, who then files the form."


class Params(RequestParams):
    cursor: str | None = None
    uri: str | None = None


async def skills_list(ctx: Any, params: Params) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **page(ROOT, params.cursor)}


class Skills(Extension):
    identifier = EXTENSION

    def methods(self) -> Sequence[MethodBinding]:
        return [MethodBinding("skills/list", Params, skills_list)]


server = MCPServer("clerk", extensions=[Skills()])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def who_files(form: str) -> str:
    """Say who files a form."""
    return FILES.format(form)


@server.resource("note://clerk")
def note() -> str:
    """A note of the clerk."""
    return NOTE


@server.prompt()
def ask_the_clerk() -> str:
    """Ask."""
    return NOTE


for uri, path in files(ROOT).items():
    read = path.read_text
    if path.suffix == ".bin":
        read = path.read_bytes  # type: ignore[assignment]
    server.add_resource(FunctionResource(uri=uri, name=path.name, fn=read))

if __name__ == "__main__":
    server.run("stdio")
