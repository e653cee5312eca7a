"""Reading the answer, and a session's id, out of what a program wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import attrs
import jmespath
import orjson
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from keval.plugin import TrialError

Events: TypeAlias = Literal["jsonl"]

_SHOWN = 500


def expression(field: str, text: str) -> ParsedResult:
    """Compile a JMESPath expression. Raises ValueError: it does not parse."""
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        told = " ".join(str(error).split())
        raise ValueError(f"'{field}' must be a JMESPath expression: {told}") from error


@attrs.frozen
class Output:
    """What a program wrote on its standard output; `events` says that each line is JSON of its own."""

    text: str
    events: Events | None = None

    def answer(self, wanted: ParsedResult | None) -> str:
        """Return the answer: all of the text, or the last text that `wanted` finds.

        Raises:
            TrialError: of kind `bad_output`; it is no JSON, or `wanted` finds no text in it.
        """
        if wanted is None:
            return self.text.strip()
        found = [value for value in self._found(wanted) if isinstance(value, str)]
        if not found:
            raise self._lacks(f"a text at {wanted.expression!r}")
        return found[-1].strip()

    def session(self, wanted: ParsedResult) -> str:
        """Return the session's id, which `wanted` finds first. Raises TrialError of kind `bad_output`."""
        for value in self._found(wanted):
            if isinstance(value, str | int) and not isinstance(value, bool):
                return str(value)
        raise self._lacks(f"a session's id at {wanted.expression!r}")

    def _found(self, wanted: ParsedResult) -> Iterator[Any]:
        for value in self._read():
            try:
                found = wanted.search(value)
            except JMESPathError:  # a function that does not take this value, in one event of many
                continue
            if found is not None:
                yield found

    def _read(self) -> Iterator[Any]:
        for text in self.text.splitlines() if self.events else [self.text]:
            try:
                yield orjson.loads(text)
            except orjson.JSONDecodeError:
                # Some programs write lines of their own among the events.
                if not self.events:
                    raise self._lacks("JSON") from None

    def _lacks(self, what: str) -> TrialError:
        end = self.text.strip()[-_SHOWN:]
        return TrialError(f"the program's output has not {what}; it ends:\n{end}", kind="bad_output")
