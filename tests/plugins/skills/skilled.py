"""A server made with the SDK that has a tool, a note, a prompt and, by the extension for them (SEP-2640), skills.

It serves those in the folder of its first argument over stdio, one on each page of the list.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import RequestParams, ToolAnnotations

ROOT = Path(sys.argv[1])
NOTE = "The form fields are read by the clerk, who then files the form."


class Params(RequestParams):
    cursor: str | None = None
    uri: str | None = None


def entry(folder: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    contents = {f"skill://{path.relative_to(ROOT).as_posix()}": path.read_bytes() for path in files}
    front = (folder / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1]
    return {
        "uri": f"skill://{folder.name}/SKILL.md",
        "frontmatter": yaml.safe_load(front),
        "resources": [
            {"uri": uri, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
            for uri, content in contents.items()
        ],
    }


def served() -> list[Path]:
    return sorted(path.parent for path in ROOT.glob("*/SKILL.md"))


async def skills_list(ctx: Any, params: Params) -> dict[str, Any]:
    folders, number = served(), int(params.cursor or 0)
    more = {"nextCursor": str(number + 1)} if number + 1 < len(folders) else {}
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"skills": [entry(each) for each in folders[number : number + 1]], **cached, **more}


class Skills(Extension):
    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> Sequence[MethodBinding]:
        return [MethodBinding("skills/list", Params, skills_list)]


server = MCPServer("clerk", extensions=[Skills()])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def who_files(form: str) -> str:
    """Say who files a form."""
    return f"The registrar files the form {form}."


@server.resource("note://clerk")
def note() -> str:
    """A note of the clerk."""
    return NOTE


@server.prompt()
def ask_the_clerk() -> str:
    """Ask."""
    return NOTE


for path in sorted(path for path in ROOT.rglob("*") if path.is_file()):
    read = path.read_text
    if path.suffix == ".bin":
        read = path.read_bytes  # type: ignore[assignment]
    server.add_resource(FunctionResource(uri=f"skill://{path.relative_to(ROOT).as_posix()}", name=path.name, fn=read))

if __name__ == "__main__":
    server.run("stdio")
