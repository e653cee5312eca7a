"""Interventions: what a config changes about an MCP context, while all else about it stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
from attrs.validators import ge, le

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names that MCP allows tools (2025-11-25, server/tools, "Tool Names")."""


@attrs.frozen
class Describe:
    """New words for a tool: its description, and those of its parameters by name. `None` leaves the server's own."""

    description: str | None = None
    parameters: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class FixedResult:
    """Every successful call returns this text in place of its result."""

    fixed: str


@attrs.frozen
class FixedText:
    """The text is this one."""

    fixed: str


@attrs.frozen
class RecordedResults:
    """Calls get what equal calls got in the recorded run in the directory `recorded`; the server is not there.

    A call that has no equal one fails the trial (`fail`), is a tool error to the agent (`error`), or is made at the
    server itself, which is started for that (`live`).
    """

    recorded: Path
    misses: Literal["fail", "live", "error"] = "fail"


@attrs.frozen
class Faults:
    """Calls that fail or are slow: `error` is the share of calls that fail, and each call waits `delay_seconds`.

    Whether a call fails depends on `seed`, the sample, the repetition, the tool, its arguments, and how often the trial
    has called it with these, and on nothing else.
    """

    error: float = attrs.field(default=0.0, validator=[ge(0), le(1)])
    delay_seconds: float = attrs.field(default=0.0, validator=ge(0))
    seed: int = 0


def _are_names(instance: object, attribute: attrs.Attribute[Any], names: Mapping[str, str]) -> None:
    for name in names.values():
        if not _NAME.fullmatch(name):
            allowed = "1 to 128 letters, digits, `_`, `-` and `.`, as models and MCP allow"
            raise ValueError(f"'{attribute.name}' must give each tool a name of {allowed}: {name!r}")


ResultChange: TypeAlias = Literal["scrambled", "empty"] | FixedResult | RecordedResults
"""What becomes of the results of calls.

`scrambled` keeps their shape and length and makes their words unreadable, and `empty` gives results without content.
Recorded results are those of an earlier run.
"""


@attrs.frozen
class Intervention:
    """One change to a context, as one entry of `contexts:` writes it. Names are those that the entry before it gives.

    `tools` chooses tools by name or pattern (`a`, `b*`), `without` leaves some out, `rename` maps a tool's name to its
    new one, and `describe` gives tools other words. `results` changes what calls return and `faults` makes calls fail.
    Of a context of texts, `without` leaves out sections by their headings, or skills, and `describe` gives a skill
    another description; `text` puts another text in its place: `scrambled` is as long and has the same form.
    `server_instructions` false hides the server's instructions, and a text replaces them.
    """

    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    rename: Mapping[str, str] = attrs.field(factory=dict, validator=_are_names)
    describe: Mapping[str, Describe] = attrs.field(factory=dict)
    results: ResultChange | None = None
    faults: Faults | None = None
    text: Literal["scrambled", "empty"] | FixedText | None = None
    server_instructions: bool | str = True

    @property
    def recorded(self) -> RecordedResults | None:
        """The recorded run that the results are from, if they are."""
        return self.results if isinstance(self.results, RecordedResults) else None

    def as_config(self) -> dict[str, Any]:
        """Return what is changed, as a config writes it; of a recorded run, the name of its directory."""

        def written(_: Any, field: Any, value: Any) -> Any:
            return value.name if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value

        # What is left to its default is left out, also of the records in it.
        # The default of a mapping is a factory, so that an empty one is looked for by itself.
        return attrs.asdict(
            self, filter=lambda field, value: value not in (field.default, {}), value_serializer=written
        )
