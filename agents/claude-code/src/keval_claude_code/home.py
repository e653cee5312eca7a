"""What Claude Code finds in its home and environment: its settings, and the session of what was said before."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from claude_agent_sdk import project_key_for_directory

from keval import Message
from keval.plugin import ModelAccess, TrialError
from keval_programs import Tree, TrialFolder


def variables(folder: TrialFolder, access: ModelAccess, *, patience: float) -> dict[str, str]:
    """Return the variables of Claude Code's environment, beside those that any program gets.

    `patience` is how many seconds a server may take to come up.
    """
    return {
        "CLAUDE_CODE_TMPDIR": str(folder.home),
        "CLAUDE_CONFIG_DIR": str(folder.home),
        "ANTHROPIC_BASE_URL": access.base_url,
        "ANTHROPIC_API_KEY": access.api_key,
        "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in access.headers.items()),
        # keval retries in one place.
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "MCP_TIMEOUT": str(math.ceil(1000 * patience)),
        # Every tool is offered as it is, and called before the answer: no search for tools, no work left behind it.
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH": "1000000",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        # The system prompt begins without a line about the program's version.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


def write_session(history: Sequence[Message], folder: TrialFolder, model: str) -> str | None:
    """Write the file of a session in which `history` was said; return the session's id, or None without any.

    Raises:
        TrialError: somebody else than user and assistant speaks.
    """
    if not history:
        return None
    foreign = sorted({message.role for message in history} - {"user", "assistant"})
    if foreign:
        raise TrialError(
            f"Claude Code takes earlier messages of user and assistant only, and here are some of {', '.join(foreign)};"
            " leave them out of the sample's history",
            kind="history_unsupported",
        )
    session = str(uuid.uuid4())
    now = datetime.now(UTC).isoformat()
    lines: list[str] = []
    parent: str | None = None
    for message in history:
        entry_id = str(uuid.uuid4())
        entry = {
            "type": message.role,
            "uuid": entry_id,
            "parentUuid": parent,
            "sessionId": session,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(folder.work),
            "timestamp": now,
            "message": _spoken(message, entry_id, model),
        }
        lines.append(json.dumps(entry) + "\n")
        parent = entry_id
    with Tree.at(folder.home) as home:
        home.write(f"projects/{project_key_for_directory(folder.work)}/{session}.jsonl", "".join(lines).encode())
    return session


def _spoken(message: Message, entry_id: str, model: str) -> dict[str, object]:
    if message.role == "user":
        return {"role": "user", "content": message.text}
    return {
        "id": f"msg_{entry_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": message.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
