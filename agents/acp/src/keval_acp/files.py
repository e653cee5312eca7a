"""The files of a trial, as an agent reads and writes them by way of keval."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acp.exceptions import RequestError

from keval_programs import LedOutError, Tree, TrialFolder

_MOST_BYTES = 64 * 2**20
"""Bytes of a file that an agent is told."""


def read_text(folder: TrialFolder, path: str, line: int | None, limit: int | None) -> str:
    """Return a file's text: at most `limit` lines from `line` on, which counts from 1.

    Raises:
        RequestError: there is no such file in the folder.
    """
    with _confined(folder, path) as (tree, within):
        text = tree.read(within, _MOST_BYTES).decode("utf-8", "replace")
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    last = None if limit is None else first + limit
    return "".join(text.splitlines(keepends=True)[first:last])


def write_text(folder: TrialFolder, path: str, content: str) -> None:
    """Write a file, and the folders that it is in.

    Raises:
        RequestError: it is not in the folder, or cannot be written.
    """
    with _confined(folder, path) as (tree, within):
        tree.overwrite(within, content.encode("utf-8", "replace"))


def confined_folder(folder: TrialFolder, path: str | None) -> Path:
    """Return a folder to run a command in. Raises RequestError: there is none in the trial's folder."""
    with _confined(folder, path or "") as (tree, within):
        with tree.followed(within) as found:
            if not stat.S_ISDIR(found.status.st_mode):
                raise NotADirectoryError(0, "it is no folder")
        return Path(tree.path or "", tree.led(within))


@contextmanager
def _confined(folder: TrialFolder, path: str) -> Iterator[tuple[Tree, str]]:
    """Yield the folder of a trial that a path is in, and the rest of the path. Raises RequestError, also for OSError.

    Symbolic links are followed in the folder, and not out of it.
    """
    whole = os.path.join(folder.work, path)
    for base in (folder.work, folder.home, folder.own):
        if whole == str(base) or whole.startswith(f"{base}/"):
            break
    else:
        raise _refusal(path, f"it is outside of {folder.work}, the folder of this trial")
    try:
        with Tree.at(base) as tree:
            yield tree, whole.removeprefix(str(base)).strip("/")
    except LedOutError as error:
        raise _refusal(path, f"it is outside of {folder.work}, the folder of this trial") from error
    except FileNotFoundError as error:  # an agent that is about to write a file asks what is there
        missing = RequestError.resource_not_found(path)
        missing.data = {"uri": path, "details": f"{path}: {error.strerror}"}
        raise missing from error
    except (OSError, ValueError) as error:  # a NUL in the path
        raise _refusal(path, getattr(error, "strerror", None) or str(error)) from error


def _refusal(path: str, why: str) -> RequestError:
    return RequestError.invalid_params({"path": path, "details": f"{path}: {why}"})
