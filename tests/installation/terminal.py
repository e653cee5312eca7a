"""A terminal for tests: bash in tmux, which types keys and shows its screen as a person sees it."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

PROMPT = "newcomer$ "


@attrs.define
class Terminal:
    """A terminal that has begun; `socket` names its tmux. `seconds` says how long what was waited for took."""

    socket: str
    environ: Mapping[str, str]
    seconds: dict[str, float] = attrs.field(factory=dict)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, environ: Mapping[str, str]) -> Iterator[Terminal]:
        """Open a terminal in a folder, of 100 columns."""
        terminal = cls(f"keval-{uuid.uuid4().hex[:8]}", {**environ, "TERM": "xterm-256color"})
        shell = f"PS1={shlex.quote(PROMPT)} exec bash --norc"
        terminal._tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "50", "-c", str(folder), shell)
        try:
            yield terminal
        finally:
            terminal._tmux("kill-server")

    def type(self, line: str, *, until: str, within: float = 120) -> str:
        """Type a line and Enter, wait until the screen shows a text after it, and return what is new on it.

        `until` is a regular expression. Raises AssertionError: it is not there in time.
        """
        before = len(self.screen())
        begun = time.monotonic()
        self._tmux("send-keys", "-l", "--", line)
        self._tmux("send-keys", "Enter")
        while True:
            new = self.screen()[before:]
            if re.search(until, new, re.MULTILINE):
                self.seconds[line or until] = time.monotonic() - begun
                return new
            assert not new.endswith(f"\n{PROMPT.strip()}"), f"{until!r} was not shown:\n{new}"
            assert time.monotonic() - begun < within, f"{until!r} was not shown:\n{new}"
            time.sleep(0.1)

    def run(self, command: str, *, within: float = 300) -> str:
        """Type a command, and return what it prints until the next prompt."""
        return self.type(command, until=rf"^{re.escape(PROMPT.strip())}\s*\Z", within=within)

    def screen(self) -> str:
        """All that was printed; a line that was wrapped is one."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip()

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout
