"""The files of a trial, as an agent reads and writes them by way of keval."""

from __future__ import annotations

from pathlib import Path

from acp.exceptions import RequestError

from keval_programs import TrialFolder


def read_text(folder: TrialFolder, path: str, line: int | None, limit: int | None) -> str:
    """Return a file's text: at most `limit` lines from `line` on, which counts from 1.

    Raises:
        RequestError: there is no such file in the folder.
    """
    file = _confined(folder, path)
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:  # an agent that is about to write a file asks what is there
        missing = RequestError.resource_not_found(path)
        missing.data = {"uri": path, "details": f"{path}: {error.strerror}"}
        raise missing from error
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
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
    file = _confined(folder, path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error


def confined_folder(folder: TrialFolder, path: str | None) -> Path:
    """Return a folder to run a command in. Raises RequestError: there is none in the trial's folder."""
    real = _confined(folder, path or "")
    if not real.is_dir():
        raise _refusal(path or "", "it is no folder")
    return real


def _confined(folder: TrialFolder, path: str) -> Path:
    """Return where a path leads, symbolic links followed. Raises RequestError: that is outside of the folder."""
    try:
        real = (folder.work / path).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # too long, no path at all, or links in a circle
        raise _refusal(path, str(error)) from error
    if not real.is_relative_to(folder.root) and not real.is_relative_to(folder.work):
        raise _refusal(path, f"it is outside of {folder.work}, the folder of this trial")
    return real


def _refusal(path: str, why: str) -> RequestError:
    return RequestError.invalid_params({"path": path, "details": f"{path}: {why}"})
