"""The code of a server that works in a workspace: whether an agent in a sandbox could put its own in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from keval.seams.contexts import WORKSPACE

_LAUNCHERS = re.compile(
    r"(python|pypy|node|deno|bunx?|ruby|perl|php|sh|bash|dash|zsh|java|tsx|ts-node|uvx?|npx|npm|pnpm|yarn|pipx|env)"
    r"[\d.]*(\.exe)?"
)
"""Programs that run the code that their arguments name."""
_INTERPRETERS = frozenset({"python", "pypy", "node", "ruby", "perl", "php", "sh", "bash", "dash", "zsh"})
"""Launchers whose first argument that is no option is a file of code, whatever its name."""
_CODE = (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".pl", ".php", ".jar")
_SEARCHED = re.compile(r"(PYTHON|NODE_|CLASS|LD_LIBRARY_)?PATH|LD_PRELOAD|NODE_OPTIONS|RUBYLIB|PERL5LIB")
"""Variables that name places of code."""


def code_in_workspace(server: object) -> str | None:
    """Return what of a server that keval starts, by its options, is code in the workspace; `None` if nothing is.

    Such a server runs outside of the sandbox, and the agent could change what it runs.
    """
    command, cwd = getattr(server, "command", None), getattr(server, "cwd", None)
    if not isinstance(command, str) or not getattr(server, "tap", True):
        return None
    env: Mapping[str, str] = getattr(server, "env", {})
    return next(_found(command, getattr(server, "args", ()), env, is_there=WORKSPACE in str(cwd)), None)


def _found(command: str, args: tuple[str, ...], env: Mapping[str, str], *, is_there: bool) -> Iterator[str]:
    def lies_there(word: str) -> bool:
        return WORKSPACE in word or (is_there and not word.startswith(("/", "-")))

    if "/" in command and lies_there(command):
        yield command
    yield from (f"{name}={value}" for name, value in env.items() if _SEARCHED.fullmatch(name) and WORKSPACE in value)
    launcher = _LAUNCHERS.fullmatch(PurePosixPath(command).name)
    if launcher is None:
        return
    for number, word in enumerate(args):
        if word in ("-m", "-c") and launcher[1] in ("python", "pypy") and is_there:
            if not {"-P", "-I", "-Im", "-Pm"} & {*args[:number]}:  # it imports from its folder first
                yield word
            return
        is_script = not word.startswith("-") and not any(each and each[0] != "-" for each in args[:number])
        if lies_there(word) and (word.endswith(_CODE) or (is_script and launcher[1] in _INTERPRETERS)):
            yield word
