"""Calls the function of a `python` check: `-m keval_checks.called_function FILE FUNCTION`.

It reads a mark and the arguments from its standard input, and writes what is found after that mark.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pickle
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_LONGEST = 100_000
"""Characters of a reason."""


def _call(file: Path, function: str, given: bytes) -> tuple[bool | None, str]:
    """Return whether the check passed, and why; `None` if the function does not say."""
    try:
        spec = spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} cannot be imported")
        sys.path.insert(0, str(file.parent))  # as for `python FILE.py`
        # Registered, as dataclasses and pickle look a module up by its name.
        module = sys.modules[file.stem] = module_from_spec(spec)
        spec.loader.exec_module(module)
        called = getattr(module, function)
        arguments = pickle.loads(given)  # noqa: S301 - keval wrote it to the pipe
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        return None, f"raised {_told(error)} when it was imported"
    try:
        found = called(*arguments)
        if inspect.isawaitable(found):
            found = asyncio.run(_awaited(found))
    except AssertionError as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        return False, str(error) or f"`{line.line}` does not hold ({Path(line.filename).name}:{line.lineno})"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        return None, f"raised {_told(error)}"
    match found:
        case None:
            return True, "no assertion failed"
        case bool():
            return found, f"{function} returned {found}"
        case (bool() as passed, str() as reason):
            return passed, reason
    return None, f"returned {found!r:.60}; return True, False, or one of them and a reason"


async def _awaited(found: object) -> object:
    return await found  # type: ignore[misc]  # it is awaitable


def _told(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


if __name__ == "__main__":
    _file, _function = sys.argv[1:]
    _mark, _, _given = sys.stdin.buffer.read().partition(b"\n")
    # What the function starts must not read on from keval's pipe.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with os.fdopen(os.dup(1), "wb") as _told_to:  # which no program that the function starts inherits
        _passed, _reason = _call(Path(_file), _function, _given)
        # What the function printed stands before the mark.
        sys.stdout.flush()
        _told_to.write(_mark + json.dumps({"passed": _passed, "reason": _reason[:_LONGEST]}).encode() + b"\n")
