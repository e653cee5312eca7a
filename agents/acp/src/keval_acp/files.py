"""The files of a trial, as an agent reads and writes them by way of keval."""

from __future__ import annotations

from pathlib import Path

from acp.exceptions import RequestError


def read_text(root: Path, path: str, line: int | None, limit: int | None) -> str:
    """Return a file's text: at most `limit` lines from `line` on, which counts from 1.

    Raises:
        RequestError: there is no such file in the folder.
    """
    file = _confined(root, path)
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    last = None if limit is None else first + limit
    return "".join(text.splitlines(keepends=True)[first:last])


def write_text(root: Path, path: str, content: str) -> None:
    """Write a file, and the folders that it is in.

    Raises:
        RequestError: it is not in the folder, or cannot be written.
    """
    file = _confined(root, path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error


def confined_folder(root: Path, path: str | None) -> Path:
    """Return a folder to run a command in. Raises RequestError: there is none in the trial's folder."""
    folder = _confined(root, path or str(root))
    if not folder.is_dir():
        raise _refusal(str(path), "it is no folder")
    return folder


def _confined(root: Path, path: str) -> Path:
    """Return where a path leads, symbolic links followed. Raises RequestError: that is outside of the folder."""
    real = (root / path).resolve()
    if not real.is_relative_to(root):
        raise _refusal(path, f"it is outside of {root}, the only folder of this trial")
    return real


def _refusal(path: str, why: str) -> RequestError:
    return RequestError.invalid_params({"path": path, "details": f"{path}: {why}"})
