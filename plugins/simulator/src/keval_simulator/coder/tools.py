"""The calls by which a step of a script is done with the tools that an agent offers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

from keval_gateway import ChatCall, ChatTool
from keval_simulator.coder.script import FileText, Replacement, Step
from keval_simulator.schema import properties_of, required_of, schema_type

_SHELLS = ("exec_command", "shell", "shell_command", "local_shell", "bash", "Bash", "run_shell_command")
_WRITERS = ("Write", "write", "write_file")
_READERS = ("Read", "read", "read_file", "read_text_file")
_EDITORS = ("Edit", "edit", "replace")


def calls_of(step: Step, tools: Sequence[ChatTool]) -> Iterator[ChatCall]:
    """Yield the calls of a step, in order; none for what no tool that is offered can do."""
    found: Sequence[ChatCall | None] = ()
    if step.write is not None:
        found = [_write(tools, step.write)]
    elif step.append is not None:
        found = [_run(tools, f"printf %s {shlex.quote(step.append.text)} >> {shlex.quote(step.append.path)}")]
    elif step.replace is not None:
        found = _replace(tools, step.replace)
    elif step.run is not None:
        found = [_run(tools, step.run)]
    elif step.read is not None:
        found = [read_call(tools, step.read)]
    yield from filter(None, found)


def read_call(tools: Sequence[ChatTool], path: str) -> ChatCall | None:
    """Return the call that reads a file, or `None` if no tool can."""
    return _by_path(tools, _READERS, path) or _run(tools, f"cat {shlex.quote(path)}")


def call_of(tools: Sequence[ChatTool], names: Collection[str], **values: str) -> ChatCall | None:
    """Return a call of the first tool of these names, with the `values` whose parameters it has.

    Some agents put the server's name before that of a tool, as in `mcp__files__read_file`. Other texts that it requires
    say what for; `None` if no such tool is offered, or it has none of the parameters.
    """
    for tool in tools:
        properties = properties_of(tool.parameters)
        if tool.name.rpartition("__")[2] in names and (
            given := {name: value for name, value in values.items() if name in properties}
        ):
            lacking = [name for name in required_of(tool.parameters) if name not in given]
            return ChatCall(tool.name, {**given, **dict.fromkeys(lacking, "Do a step of the task.")})
    return None


def _by_path(tools: Sequence[ChatTool], names: Collection[str], path: str, **values: str) -> ChatCall | None:
    return call_of(tools, names, file_path=path, filePath=path, path=path, **values)


def _write(tools: Sequence[ChatTool], file: FileText) -> ChatCall | None:
    folder, _, _ = file.path.rpartition("/")
    made = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
    command = f"{made}printf %s {shlex.quote(file.text)} > {shlex.quote(file.path)}"
    return _by_path(tools, _WRITERS, file.path, content=file.text) or _run(tools, command)


def _replace(tools: Sequence[ChatTool], change: Replacement) -> Sequence[ChatCall | None]:
    old, new = change.old, change.new
    edit = _by_path(tools, _EDITORS, change.path, old_string=old, new_string=new, oldString=old, newString=new)
    if edit is not None:  # agents want a file to be read before
        return [read_call(tools, change.path), edit]
    old, new = re.sub(r"([][/.*^$\\])", r"\\\1", old), re.sub(r"([/&\\])", r"\\\1", new)
    expression = f"s/{old}/{new}/"
    return [_run(tools, f"sed -i {shlex.quote(expression)} {shlex.quote(change.path)}")]


def _run(tools: Sequence[ChatTool], command: str) -> ChatCall | None:
    found = call_of(tools, _SHELLS, cmd=command, command=command)
    if found is not None and "command" in found.arguments:
        (tool,) = (each for each in tools if each.name == found.name)
        if schema_type(properties_of(tool.parameters)["command"]) == "array":
            return ChatCall(tool.name, {**found.arguments, "command": ["bash", "-c", command]})
    return found
