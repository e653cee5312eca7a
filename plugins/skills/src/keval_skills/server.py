"""The MCP server of the tool `read_skill`: `python -m keval_skills.server ORIGIN FOLDER`, over stdin and stdout."""

import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from keval_skills.front_matter import head_length
from keval_skills.tree import SKILL_FILE


def build_server(folder: Path, origin: str = "") -> MCPServer:
    """Build the server for the skills in a folder, each in a folder of its name, that another server serves."""
    source = f" (from the MCP server {origin!r})" if origin else ""
    names = sorted(each.name for each in folder.iterdir())
    server = MCPServer("keval-skills", log_level="WARNING")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_skill(
        name: Annotated[str, Field(description="Name of the skill", json_schema_extra={"enum": names})],
        file: Annotated[str | None, Field(description="Another file of the skill, by its path")] = None,
    ) -> str:
        """Read the instructions of a skill, or another file that belongs to it."""
        if name not in names:
            raise ToolError(f"there is no skill {name!r}; skills: {', '.join(names)}")
        files = _files(folder / name)
        if file is None or file == SKILL_FILE:
            text = (folder / name / SKILL_FILE).read_text(encoding="utf-8")
            more = f"\n\nOther files of this skill: {', '.join(files)}" if files else ""
            return f"Skill {name}{source}\n\n{text[head_length(text) :].strip()}{more}"
        if file not in files:
            raise ToolError(f"the skill {name!r} has no file {file!r}; files: {', '.join(files) or 'none'}")
        try:
            return (folder / name / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ToolError(f"{file!r} is no text, and cannot be read with this tool") from None

    return server


def _files(skill: Path) -> list[str]:
    """Return the files of a skill besides SKILL.md; a link leads to one of them."""
    found = (path.relative_to(skill).as_posix() for path in skill.rglob("*") if path.is_file())
    return sorted(name for name in found if name != SKILL_FILE)


if __name__ == "__main__":
    build_server(Path(sys.argv[2]), sys.argv[1]).run(transport="stdio")
