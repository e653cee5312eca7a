"""The whole environment of a trial's program, and where the program and its files are."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from keval.errors import PreflightError
from keval.processes import search_path

_PASSED_ON = ("LANG", "LC_ALL", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT")
"""What any program may need of the user's environment, beside PATH. Everything else stays outside, above all what would
send model requests elsewhere, and keys."""

_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")

_LOOPBACK = "127.0.0.1,localhost"


def environment(home: Path, named: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program with this home, and with the variables that are `named`."""
    # In both cases: curl, for example, reads `http_proxy` in lower case only.
    network = (*_NETWORK, *map(str.lower, _NETWORK))
    passed = {name: os.environ[name] for name in (*_PASSED_ON, *network) if name in os.environ}
    for name in ("NO_PROXY", "no_proxy"):
        # keval's gateway and tap are on loopback, which a proxy elsewhere cannot reach.
        passed[name] = ",".join(filter(None, (passed.get(name), _LOOPBACK)))
    # Temporary files, too, are then removed with the folder of the trial.
    return {**passed, "PATH": search_path(), "HOME": str(home), "TMPDIR": str(home), **named}


def find_program(name: str, folder: Path) -> str:
    """Return the absolute path of a program: a bare name is searched on the PATH, and a path starts at `folder`.

    Raises:
        PreflightError: there is no such program.
    """
    found = shutil.which(folder / name) if os.path.dirname(name) else shutil.which(name, path=search_path())
    if found is None and (folder / name).is_file():
        raise PreflightError(f"the command {name!r} is a file that cannot be run; make it executable (chmod +x)")
    if found is None:
        where = f"in {folder}" if os.path.dirname(name) else "on PATH"
        raise PreflightError(f"the command {name!r} is not found {where}; install it, or give its path")
    return os.path.abspath(found)


def words(field: str, command: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command, which may be written as one text, as in a shell.

    Raises ValueError: there is none, or a quotation is not closed.
    """
    try:
        found = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise ValueError(f"'{field}' must be written as in a shell: {error}") from error
    if not found:
        raise ValueError(f"'{field}' must name a program")
    return found


def whole_path(argument: str, folder: Path) -> str:
    """Return the whole path of a file that an argument names, and any other argument as it is."""
    named = folder / argument
    try:
        return os.path.abspath(named) if named.is_file() else argument
    except (OSError, ValueError):  # a text that can be no path
        return argument
