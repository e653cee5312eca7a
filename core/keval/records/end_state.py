"""What a trial had beside servers, and what it left: texts that it was given, changes in its workspace, checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

CHECK_PREFIX = "verify/"
"""How the names of the metrics begin that tell what checks found."""
ALL_CHECKS = "all"
"""The name, after that, of what all checks found together."""


@attrs.frozen
class Conventions:
    """What an agent that works in a folder finds in it by itself; paths are relative to the folder.

    `instructions` is the file that it reads as instructions, such as `AGENTS.md`, and `skills` the folder in which it
    discovers skills. `plugins` says that it takes Claude Code's plugins. `sandboxed` says that a sandbox can shut it
    in, as it is a process of its own.
    """

    instructions: str | None = None
    skills: str | None = None
    plugins: bool = False
    sandboxed: bool = False


@attrs.frozen
class GivenText:
    """A text that a context gave in a trial, and whether the agent's model saw it.

    A `neighbour` is a skill that only competes with those that are measured. `way` says how it was given: `system
    prompt`, or the path of the file or folder in the workspace, such as `AGENTS.md` or `.agents/skills`, or
    `read_skill`. A `resource` or a `prompt` is what the agent asked an MCP server for by itself, with the request
    `resources/read` or `prompts/get`. `read` says whether a model request had the text in it, and `model_call` is the
    number of the first one, from 1. `by` names the tool whose call returned it; `None` if none did. `at` is when that
    request was sent, in seconds after the transcript's `started`.
    """

    name: str
    kind: Literal["instructions", "skill", "neighbour", "resource", "prompt"]
    way: str
    sha256: str
    read: bool = False
    model_call: int | None = None
    by: str | None = None
    at: float | None = attrs.field(default=None, eq=False)


@attrs.frozen
class FileChange:
    """A file of the workspace that is not as it was when the agent began; `path` is relative to the folder."""

    path: str
    kind: Literal["added", "changed", "deleted"]


@attrs.frozen
class Artifact:
    """A file that was kept of a workspace: `sha256` names its bytes in the run's `blobs/`.

    `left_out` says why it was not kept, if it was not.
    """

    path: str
    size: int
    media_type: str = "application/octet-stream"
    sha256: str | None = None
    left_out: str | None = None


@attrs.frozen
class CheckResult:
    """What a check found in the end. `passed` is `None` if it could not run, and `reason` then says why.

    `kind` is the check's plugin. `output` is what it wrote, cut to its end. `duration` is in seconds.
    """

    name: str
    kind: str
    passed: bool | None
    reason: str
    output: str | None = None
    duration: float | None = attrs.field(default=None, eq=False)


@attrs.frozen
class EndState:
    """What a trial left in its workspace, and what the checks found.

    `changes` are the files that differ from the start, but for `changes_cut` that were added, too. `diff` is their
    difference as `diff -u` writes it, without binary files; `diff_cut` is how many characters of it were left out.
    `notes` say what could not be kept. `facts` describe how the workspace was made: its method, its files and bytes,
    the sandbox.
    """

    changes: tuple[FileChange, ...] = ()
    changes_cut: int = 0
    diff: str = ""
    diff_cut: int = 0
    artifacts: tuple[Artifact, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict, eq=False)
