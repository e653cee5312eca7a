"""The command of a stdio server, found before anything is started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from keval.plugin import PreflightError

__all__ = ["find_command"]


def find_command(label: str, command: str, env: Mapping[str, str], cwd: Path | None) -> str:
    """Return the absolute path of a server's executable.

    A bare name is searched on the server's PATH. When keval runs in a virtual environment its scripts come first, as
    if that were active, so that `python` has what is installed with keval. A path starts at `cwd`.

    Raises:
        PreflightError: there is no such executable, or `cwd` is no folder.
    """
    if cwd is not None and not cwd.is_dir():
        raise PreflightError(f"server '{label}': cwd '{cwd}' is not a folder; correct it or leave it out")
    if os.path.dirname(command):
        found = shutil.which((cwd or Path()) / command)
    else:
        path = env.get("PATH", os.environ.get("PATH", os.defpath))
        if sys.prefix != sys.base_prefix:
            path = os.path.dirname(sys.executable) + os.pathsep + path
        found = shutil.which(command, path=path)
    if found is None:
        raise PreflightError(f"server '{label}': command '{command}' not found; install it or give its path")
    return os.path.abspath(found)
