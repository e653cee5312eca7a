"""What a function returned: a text, or a mapping with what else it tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from cattrs import Converter, transform_error

from keval import Usage
from keval.plugin import TrialError


@attrs.frozen
class Call:
    """A call of a tool, as a function tells it."""

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    result: str | None = None
    error: str | None = None


@attrs.frozen
class Answer:
    """A function's answer, and what else it tells; what it does not tell is `None`."""

    answer: str
    tool_calls: tuple[Call, ...] | None = None
    usage: Usage | None = None
    model_calls: int | None = None
    truncated: bool = False


def read_answer(returned: object, name: str) -> Answer:
    """Read what the function of this name returned. Raises TrialError: kind `bad_answer`."""
    if isinstance(returned, str):
        return Answer(returned)
    if not isinstance(returned, Mapping):
        problem = f"{name} returned {returned!r:.60}; return a text, a mapping with `answer`, or a Transcript"
        raise TrialError(problem, kind="bad_answer")
    try:
        return _converter.structure(returned, Answer)
    except Exception as error:
        told = "; ".join(transform_error(error, path="the mapping"))
        raise TrialError(f"{name} returned a mapping that keval cannot read: {told}", kind="bad_answer") from error


def _exactly(kind: type) -> Any:
    def read(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, got {value!r:.60}")
        return value

    return read


_converter = Converter(forbid_extra_keys=True)
for _kind in (str, int, bool):
    _converter.register_structure_hook(_kind, _exactly(_kind))
