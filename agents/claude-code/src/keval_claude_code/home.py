"""A trial's own directory and environment: Claude Code finds nothing of the user's or of another trial's in them."""

from __future__ import annotations

import json
import math
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
from claude_agent_sdk import project_key_for_directory

from keval import Message
from keval.plugin import TrialError


@attrs.frozen
class Home:
    """The directory, which only the user can read; secrets go into its files, as a command line is public."""

    root: Path

    @property
    def config(self) -> Path:
        """Where Claude Code keeps settings, sessions and memory."""
        return self.root / "config"

    @property
    def work(self) -> Path:
        """The empty directory that Claude Code works in."""
        return self.root / "work"

    @property
    def stderr(self) -> Path:
        """Where Claude Code's own stderr goes."""
        return self.root / "stderr.txt"

    def write(self, name: str, content: str) -> Path:
        """Write a file and return its path."""
        path = self.root / name
        path.write_text(content, encoding="utf-8")
        return path

    def write_json(self, name: str, content: Any) -> Path:
        """Write a JSON file and return its path."""
        return self.write(name, json.dumps(content))


@contextmanager
def open_home() -> Iterator[Home]:
    """Make the directory, and remove it with everything in it."""
    # A process that was killed may be seen for a moment after, and what it wrote last is nobody's.
    with tempfile.TemporaryDirectory(prefix="keval-claude-", ignore_cleanup_errors=True) as path:
        home = Home(Path(path).resolve())
        home.config.mkdir()
        home.work.mkdir()
        yield home


_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT")
"""What any program may need of the user's environment. Everything else stays outside, above all what would send the
model requests elsewhere, such as CLAUDE_CODE_USE_VERTEX."""

_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")

_LOOPBACK = "127.0.0.1,localhost"


def build_environment(
    user: Mapping[str, str], home: Home, *, url: str, key: str, headers: Mapping[str, str], patience: float
) -> dict[str, str]:
    """Return the whole environment of a trial's process.

    `user` is the user's own; `url`, `key` and `headers` are for the model's endpoint; `patience` is how many seconds a
    server may take to come up.
    """
    network = (*_NETWORK, *map(str.lower, _NETWORK))
    passed = {name: user[name] for name in (*_PASSED_ON, *network) if name in user}
    for name in ("NO_PROXY", "no_proxy"):
        # keval's gateway and tap are on loopback, which a proxy elsewhere cannot reach.
        passed[name] = ",".join(filter(None, (passed.get(name), _LOOPBACK)))
    return {
        **passed,
        "HOME": str(home.root),
        "TMPDIR": str(home.root),
        "CLAUDE_CODE_TMPDIR": str(home.root),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in headers.items()),
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
