"""The preference: which of two responses has more facts of the golden answer, in the form that is asked for."""

from __future__ import annotations

from typing import Any

from keval_simulator.judge.comparison import contradictions
from keval_simulator.judge.facts import Text
from keval_simulator.judge.prompt import Sections
from keval_simulator.schema import Schema, Suggest, schema_type


def preference(sections: Sections) -> Suggest:
    """Return the wishes for a verdict on two responses: the better one, and the reason.

    A response is better if it has more facts of the golden answer, less those that it contradicts.
    """
    counts = [_right(sections, response) for response in (sections.response, sections.second)]
    chosen = "tie" if counts[0] == counts[1] else "first" if counts[0] > counts[1] else "second"
    told = (
        f"Simulated judge: of the facts of the golden answer, less those contradicted, the first response has"
        f" {counts[0]} and the second one {counts[1]}."
    )

    def suggest(path: tuple[str, ...], schema: Schema) -> Any:
        if options := schema.get("enum"):
            return chosen if chosen in options else None
        return told if schema_type(schema) == "string" else None

    return suggest


def _right(sections: Sections, response: str | None) -> int:
    golden, said, question = map(Text.read, (sections.golden, response or "", sections.question))
    wrong = contradictions(golden, said, question) if sections.golden else []
    return sum(map(said.has, golden.facts)) - len(wrong)
