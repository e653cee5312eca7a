"""A sandbox that is the user's own: words that stand in front of the program, such as `docker run`."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from keval.errors import PreflightError, suggestion
from keval.seams.contexts import SandboxedCommand

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ENVIRONMENT = "{env}"
_KNOWN = ("env", "home", "root", "workspace")

_THERE = ("/bin/sh", "-c", 'cd "$0" && exec "$@"')
"""Starts a command in a folder, which is entered inside."""

_STAYS_OUTSIDE = frozenset({"PATH", "HOME"})
"""A container has programs of its own, and its image says where; the home of the program has another name here."""


@attrs.frozen
class CommandSandbox:
    """The words in front of the program, as a config has them.

    `{root}`, `{home}` and `{workspace}` in them are the folders of the trial, and a word `{env}` becomes `--env NAME`
    for each variable that the program is to have, except for PATH: their values are in the environment of the command.
    """

    command: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not self.command:
            raise ValueError("'command' must name a program, such as docker")
        for word in self.command:
            for name in _PLACEHOLDER.findall(word):
                if name not in _KNOWN:
                    hint = suggestion(name, _KNOWN, "placeholders")
                    raise ValueError(f"'command' must have known placeholders only, got {{{name}}}{hint}")
            if _ENVIRONMENT in word and word != _ENVIRONMENT:
                raise ValueError(f"'command' must have {{env}} as a word of its own, got {word!r}")


@attrs.frozen
class Prefix:
    """Starts the program by these words in front of it; see `keval.plugin.Sandbox`."""

    words: Sequence[str]

    def describe(self) -> Mapping[str, Any]:
        """Return what the manifest has of it."""
        return {"command": list(self.words)}

    async def prepare(self) -> None:
        """Find the command. Raises PreflightError: it is not there."""
        if shutil.which(self.words[0]) is None:
            raise PreflightError(
                f"the sandbox's command {self.words[0]!r} is not found on PATH; install it, or give its path"
            )

    @asynccontextmanager
    async def command(self, command: SandboxedCommand) -> AsyncIterator[Sequence[str]]:
        """Yield the command with the words before it; what it reaches and reads beside, the words must say."""
        root, work = str(command.root), str(command.work)
        values = {"root": root, "home": str(command.writable[0]), "workspace": work}
        program, *others = self._filled(values, command.env)
        # Found by keval's PATH, as the environment of the process has the program's.
        yield [shutil.which(program) or program, *others, *_THERE, str(command.cwd), *command.words]

    def _filled(self, values: Mapping[str, str], env: Mapping[str, str]) -> Iterator[str]:
        for word in self.words:
            if word == _ENVIRONMENT:
                for name in sorted(env.keys() - _STAYS_OUTSIDE):
                    yield from ("--env", name)
            else:
                yield _PLACEHOLDER.sub(lambda found: values[found[1]], word)


_PATIENCE = 20.0


def problem_of(command: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """Run a command, and return what it says if it fails, or `None` if it does not."""
    try:
        tried = subprocess.run(  # noqa: S603 - a program that keval or the config names
            command, env=env, capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it does not end within {_PATIENCE:g} s"
    told = " ".join(tried.stderr.decode("utf-8", "replace").split())
    return (told or f"it ends with exit code {tried.returncode}") if tried.returncode else None


async def docker_problem() -> str | None:
    """Return what keeps Docker from starting containers here, or `None` if nothing does."""
    if shutil.which("docker") is None:
        return "docker is not installed, which a sandbox {command: [docker, run, …]} needs"
    problem = await asyncio.to_thread(problem_of, ["docker", "version"])
    return f"docker runs no containers: {problem}" if problem else None
