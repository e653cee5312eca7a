"""Agents that need no model: one does a sample's `solution:`, and the other one does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from cattrs import Converter, transform_error

from keval import Sample, Transcript
from keval.plugin import Context, Conventions, TrialError
from keval_checks.left_files import check_path
from keval_checks.program import command_of, run_program
from keval_programs import Tree, open_folder

NOTHING = "(nothing)"
_DONE = "(done)"


@attrs.frozen
class SolutionCall:
    """A call of a tool; `server` is needed only where several servers have a tool of this name."""

    tool: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    server: str | None = None


@attrs.frozen
class Solution:
    """What solves a sample: files that are written, then calls of tools, then a command, and an answer."""

    files: Mapping[str, str] = attrs.field(factory=dict)
    calls: tuple[SolutionCall, ...] = ()
    command: str | tuple[str, ...] | None = None
    answer: str | None = None

    @classmethod
    def read(cls, given: Any) -> Solution:
        """Read what a sample has under `solution`. Raises ValueError: it is none."""
        if isinstance(given, str | list):
            given = {"command": given}
        if not isinstance(given, Mapping) or not given:
            raise ValueError("'solution' must be a command, or a mapping of files, calls, command and answer")
        try:
            solution = _converter.structure(given, cls)
        except Exception as error:
            told = "; ".join(transform_error(error, path="solution"))
            raise ValueError(f"'solution' cannot be read: {told}") from error
        for path in solution.files:
            check_path("solution.files", path)
        if solution.command is not None:
            command_of("solution.command", solution.command)
        return solution


_converter = Converter(forbid_extra_keys=True)


# cattrs would make a text of any value.
@_converter.register_structure_hook
def _text(given: Any, _: type) -> str:
    if not isinstance(given, str):
        raise TypeError(f"expected a text, got {given!r:.60}")
    return given


@_converter.register_structure_hook
def _command(given: Any, _: Any) -> str | tuple[str, ...] | None:
    return given if given is None or isinstance(given, str) else tuple(_text(word, str) for word in given)


@attrs.frozen
class SolutionAgent:
    """Does the `solution` of each sample, and answers with its answer, or else with the golden one."""

    def conventions(self) -> Conventions:
        """Return that it works in a folder, in which it finds nothing by itself."""
        return Conventions(sandboxed=True)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Solve the sample; see `keval.plugin.Agent`. Raises TrialError: it has no solution, or that does not work."""
        try:
            solution = Solution.read(sample.solution)
        except ValueError as error:
            raise TrialError(str(error), kind="no_solution") from error
        context.builder.leave_calls_to_tap(context.servers)
        for number, text in enumerate(sample.asked):
            with context.builder.turn(text):
                if number == 0:
                    await _solve(solution, context)
                context.builder.said(solution.answer or sample.answer or _DONE)
        return context.builder.transcript()


@attrs.frozen
class NothingAgent:
    """Does nothing, and says so; no check should pass for that."""

    def conventions(self) -> Conventions:
        """Return that it works in a folder, in which it finds nothing by itself."""
        return Conventions(sandboxed=True)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Answer without an answer; see `keval.plugin.Agent`."""
        for text in sample.asked:
            with context.builder.turn(text):
                context.builder.said(NOTHING)
        return context.builder.transcript()


async def _solve(solution: Solution, context: Context) -> None:
    folder = context.workspace.folder if context.workspace is not None else None
    if folder is None and (solution.files or solution.command is not None):
        raise TrialError("the solution has files or a command, and the sample has no workspace", kind="solution")
    if folder is not None:
        await asyncio.to_thread(_write, solution.files, folder)
    for call in solution.calls:
        await _call(call, context)
    if folder is None or solution.command is None:
        return
    sandbox = context.workspace.sandbox if context.workspace is not None else None
    command = command_of("solution.command", solution.command)
    async with open_folder() as own:
        ended = await run_program(command, folder, own, None, sandbox=sandbox)
    if ended.code != 0:
        if ended.limit is not None:
            raise TrialError(ended.limit, kind="solution")
        said = f"; its output ends:\n{ended.kept.strip()}" if ended.kept else ""
        raise TrialError(f"the solution's command ended with exit code {ended.code}{said}", kind="solution")


def _write(files: Mapping[str, str], folder: Path) -> None:
    try:
        with Tree.at(folder) as tree:
            for path, text in files.items():
                tree.overwrite(path, text.encode())
    except OSError as error:
        raise TrialError(f"a file of the solution cannot be written: {error}", kind="solution") from error


async def _call(call: SolutionCall, context: Context) -> None:
    servers = [each for each in context.servers if call.server in (None, each.name) and call.tool in each.tools]
    if len(servers) != 1 or servers[0].channel is None:
        whose = (
            f"{len(servers)} servers of the condition {context.condition!r} have; one that keval is connected to must"
        )
        raise TrialError(f"the solution calls {call.tool!r}, which {whose}", kind="solution")
    result = await servers[0].channel.call_tool(call.tool, call.arguments)
    if result.get("isError") is True:
        raise TrialError(f"the solution's call of {call.tool} failed: {result.get('content')!r:.300}", kind="solution")
