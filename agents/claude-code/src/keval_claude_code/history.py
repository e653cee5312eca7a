"""What was said earlier, as a session of Claude Code's that it goes on with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from claude_agent_sdk import project_key_for_directory

from keval import Message
from keval.plugin import TrialError
from keval_claude_code.home import Home

__all__ = ["write_session"]


def write_session(history: Sequence[Message], home: Home, model: str) -> str | None:
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
            "cwd": str(home.work),
            "timestamp": now,
            "message": _spoken(message, entry_id, model),
        }
        lines.append(json.dumps(entry) + "\n")
        parent = entry_id
    folder = home.config / "projects" / project_key_for_directory(home.work)
    folder.mkdir(parents=True)
    (folder / f"{session}.jsonl").write_text("".join(lines), encoding="utf-8")
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
