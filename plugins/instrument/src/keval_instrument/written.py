"""An answer that was written to examine scorers, in place of an agent's."""

from __future__ import annotations

import attrs


@attrs.frozen
class WrittenAnswer:
    """An answer to a sample, made in the way that its `condition` names, such as `number-1` or `padded`.

    `note` says what was done to it, such as `21 became 24`. `of` is the id of the trial whose answer it was made of;
    its tool calls are then those of that trial. Several answers to a sample under one condition are its repetitions.
    """

    sample: str
    condition: str
    text: str
    note: str = ""
    of: str | None = None
