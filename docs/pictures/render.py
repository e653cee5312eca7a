"""Draws the pictures of the documentation: what keval prints in a real run, as SVG without anything from elsewhere.

    uv run python docs/pictures/render.py

Run it again when the output of a command changes. Models are simulated or replayed, so the figures stay the same.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

__all__ = ["draw", "main", "printed"]

ROOT = Path(__file__).parents[2]
WIDTH = 100
PICTURES = {
    "context-ab": ("run", "examples/context-ab/context-ab.yaml"),
    "real-model": (
        *("run", "examples/real-model/real-model.yaml"),
        *("--replay", "examples/real-model/recording"),
    ),
    # Four of the 14 metrics, which fit one table.
    "weather": (
        "run",
        "examples/weather/weather.yaml",
        *("--metric", "weather/accuracy", "--metric", "weather/action_planning"),
        *("--metric", "weather/ambiguity_handling", "--metric", "weather/task_completion"),
    ),
}

_FONTS = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)
"""Rich's own are at an address; without them a browser takes its monospaced font, stretched to the same width."""

_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def printed(arguments: Sequence[str], folder: Path) -> str:
    """Run keval on a config of `folder` and return what it writes to a terminal's standard output.

    It runs in a folder of its own, so that it names its run without a path.

    Raises CalledProcessError when it does not exit with 0.
    """
    # Nothing of the user's own settings: neither another model nor other colours.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("KEVAL_", "NO_COLOR"))}
    environ |= {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    given = [str(folder / argument) if (folder / argument).exists() else argument for argument in arguments]
    with tempfile.TemporaryDirectory() as elsewhere:
        command = [sys.executable, "-m", "keval", *given]
        done = subprocess.run(command, cwd=elsewhere, env=environ, capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def draw(name: str, arguments: Sequence[str], output: str) -> str:
    """Return a picture of a terminal in which this command has printed `output`; `name` keeps its ids apart."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold"), shlex.join(["keval", *arguments]), "\n"))
    console.print(Text.from_ansi(output.rstrip("\n")))
    svg = console.export_svg(title="keval", unique_id=f"keval-{name}")
    return _COMMENT.sub("", _FONTS.sub("", svg))


def main() -> None:
    for name, arguments in PICTURES.items():
        path = Path(__file__).with_name(f"{name}.svg")
        path.write_text(draw(name, arguments, printed(arguments, ROOT)), encoding="utf-8")


if __name__ == "__main__":
    main()
