"""Becomes a server's program, in exactly the directory and environment that a file names.

Claude Code starts this script in the server's place, as it would start a server in its own directory and hand it its
own environment, with the model's key in it.
"""

from __future__ import annotations

import json
import os
import sys


def main(path: str) -> None:
    """Become the program that the JSON file at `path` describes."""
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    if spec["stderr"] is not None:
        os.dup2(os.open(spec["stderr"], os.O_WRONLY), sys.stderr.fileno())
    try:
        os.chdir(spec["cwd"])
        os.execvpe(spec["command"], [spec["command"], *spec["args"]], spec["env"])  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"{spec['command']} cannot be started: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
