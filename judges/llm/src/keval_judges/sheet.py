"""The sheet: what all judgements by one set of rubrics have in common, made once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from keval import Rubric
from keval_judges.prompt import instructions

__all__ = ["CLAIMS", "TOOL", "Sheet", "Structured"]

CLAIMS = "unverified_claims"
"""The verdict's key for what the response states and the judge could not verify."""

TOOL = "grade"
"""The tool that a judge is made to call, where its verdict is asked for so."""

Structured: TypeAlias = Literal["json_schema", "tool", "prompt"]
"""How the verdict's form is asked for: a response format, a tool that must be called, or in words alone."""

_LONGEST_KEY = 64


@attrs.frozen
class Sheet:
    """Rubrics by their key in the verdict, the JSON Schema of the verdict and the system prompt."""

    rubrics: Mapping[str, Rubric]
    schema: Mapping[str, Any]
    instructions: str

    @classmethod
    def of(cls, rubrics: Sequence[Rubric], *, answered: bool) -> Sheet:
        """Make the sheet; `answered` says whether there is a golden answer."""
        keyed = _keyed(rubrics)
        return cls(keyed, _schema(keyed), instructions(keyed, answered=answered))


def _keyed(rubrics: Sequence[Rubric]) -> dict[str, Rubric]:
    """Give each rubric a key that both vendors take as a property's name: letters, digits, `_`, `.` and `-`."""
    keyed: dict[str, Rubric] = {}
    for rubric in rubrics:
        plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", rubric.name)[:_LONGEST_KEY]
        key, number = plain, 1
        while key in keyed or key == CLAIMS:
            number += 1
            key = f"{plain[: _LONGEST_KEY - len(str(number)) - 1]}_{number}"
        keyed[key] = rubric
    return keyed


def _schema(keyed: Mapping[str, Rubric]) -> dict[str, Any]:
    """State the verdict's shape as OpenAI's strict mode wants it: nothing optional, nothing additional.

    The reasoning comes before the score, so that the score follows from it.
    """
    entries = {
        key: _object(
            {
                "reasoning": {"type": "string", "description": "What speaks for the level, in a few sentences."},
                "score": {"type": "integer", "enum": sorted(rubric.levels)},
            }
        )
        for key, rubric in keyed.items()
    }
    claims = {
        "type": "array",
        "description": "What the response states and you can neither confirm nor refute, one claim each.",
        "items": {"type": "string"},
    }
    return _object({**entries, CLAIMS: claims})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
