"""A server that lists a tool for each capability of its client, beside `echo`; a call may have it ask its client.

In the folder CHOOSY it notes in `begun` with which client each session began, and finds the names of more in `more`.
With the argument `modern` it speaks nothing but the revision 2026-07-28.
"""

from __future__ import annotations

import json
import os
import queue
import sys
from pathlib import Path

from tests.stdio_server import RefusedError, answer_each, text

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

FOLDER = Path(os.environ.get("CHOOSY", os.devnull))
MODERN = "modern" in sys.argv
VERSION, CLIENT = "2026-07-28", "io.modelcontextprotocol/clientCapabilities"

client: dict[str, Any] = {}
answers: queue.Queue[dict[str, Any]] = queue.Queue()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    able = (params.get("_meta") or {}).get(CLIENT, {}) if MODERN else client
    match method:
        case "initialize" if MODERN:
            raise RefusedError("not spoken here", {"supported": [VERSION], "requested": "?"}, code=-32022)
        case "initialize":
            client.update(params["capabilities"])
            if FOLDER.is_dir():
                with FOLDER.joinpath("begun").open("a") as begun:
                    begun.write(" ".join(sorted(client)) + "\n")
            info = {"name": "choosy", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "server/discover":
            return {"supportedVersions": [VERSION], "capabilities": {"tools": {}}}
        case "tools/list":
            more = FOLDER / "more"
            names = ["echo", *sorted(able), *(more.read_text().split() if more.exists() else ())]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "tools/call":
            said = {"client": able}
            if params.get("arguments"):
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": "q", **params["arguments"]}) + "\n")
                sys.stdout.flush()
                said = answers.get(timeout=10)
            content = text(f"{params['name']} for {json.dumps(said, sort_keys=True)}")
            return {"content": content, **({"resultType": "complete"} if MODERN else {})}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("choosy", answer, begins=False, heard=answers.put)
