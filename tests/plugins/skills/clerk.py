"""A server without the SDK that has a tool and skills: those in the folder of its first argument, one on each page.

`skilled` serves the same with the SDK, whose import takes a second at each start.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.stdio_server import answer_each

EXTENSION = "io.modelcontextprotocol/skills"
FILES = "The registrar files the form {}."


def files(root: Path) -> dict[str, Path]:
    """Return the files of all skills by their addresses."""
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {f"skill://{path.relative_to(root).as_posix()}": path for path in found}


def page(root: Path, cursor: str | None) -> dict[str, Any]:
    """Return the page of the list of skills that `cursor` names."""
    folders, number = sorted(path.parent for path in root.glob("*/SKILL.md")), int(cursor or 0)
    more = {"nextCursor": str(number + 1)} if number + 1 < len(folders) else {}
    return {"skills": [_entry(root, each) for each in folders[number : number + 1]], **more}


def _entry(root: Path, folder: Path) -> dict[str, Any]:
    contents = {uri: path.read_bytes() for uri, path in files(root).items() if folder in path.parents}
    front = (folder / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1]
    return {
        "uri": f"skill://{folder.name}/SKILL.md",
        "frontmatter": yaml.safe_load(front),
        "resources": [
            {"uri": uri, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
            for uri, content in contents.items()
        ],
    }


def main(root: Path) -> None:
    form = {"type": "object", "properties": {"form": {"type": "string"}}, "required": ["form"]}
    hints = {"readOnlyHint": True}
    tool = {"name": "who_files", "description": "Say who files a form.", "inputSchema": form, "annotations": hints}
    able: dict[str, Any] = {"tools": {}, "resources": {}, "extensions": {EXTENSION: {}}}

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                info = {"name": "clerk", "version": "1"}
                return {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}
            case "tools/list":
                return {"tools": [tool]}
            case "tools/call":
                return {"content": [{"type": "text", "text": FILES.format(params["arguments"]["form"])}]}
            case "skills/list":
                return page(root, params.get("cursor"))
            case "resources/read":
                content = files(root)[params["uri"]].read_bytes()
                binary = {"blob": base64.b64encode(content).decode()}
                read = binary if params["uri"].endswith(".bin") else {"text": content.decode()}
                return {"contents": [{"uri": params["uri"], **read}]}
        raise LookupError(method)

    answer_each("clerk", answer, begins=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
