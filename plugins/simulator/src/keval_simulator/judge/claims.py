"""Claims: a text cut into the clauses that state something, each held by its facts against the judge's sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keval_simulator.judge.comparison import ALIKE, contradictions
from keval_simulator.judge.facts import Text, share
from keval_simulator.judge.prompt import Sections
from keval_simulator.judge.verdict import FILLER
from keval_simulator.schema import Schema, properties_of, resolved

_FEWEST_WORDS = 3
"""A sentence without a fact, and with fewer words than so many, states nothing."""


def claims(sections: Sections, schema: Schema) -> dict[str, Any] | None:
    """Return the lists of claims that a schema asks for; `None` if it asks for something else."""
    plain = {key: resolved(each, schema) for key, each in properties_of(resolved(schema, schema)).items()}
    entries = {key: properties_of(resolved(each.get("items"), schema)) for key, each in plain.items()}
    if not entries or not all(
        "text" in each and {"golden", "results", "covered"} & each.keys() for each in entries.values()
    ):
        return None
    return {
        key: [*(_golden_claims(sections) if "covered" in each else _claims(sections, each))]
        for key, each in entries.items()
    }


def _claims(sections: Sections, asked: Schema) -> Iterator[dict[str, Any]]:
    """Yield each claim of the response with what the sources say of it, as far as that is `asked`."""
    golden, question = Text.read(sections.golden), Text.read(sections.question)
    results = [Text.read(result) for result in sections.results]
    for claim in _stated(sections.response or ""):
        found: dict[str, Any] = {"text": claim}
        read = Text.read(claim)
        if "golden" in asked:
            found["golden"] = _says(golden, read, question)
        if "results" in asked:
            says = [_says(result, read, question) for result in results]
            found["results"] = next((word for word in ("supported", "contradicted") if word in says), "silent")
            loud = found["results"] != "silent"
            found["numbers"] = [at for at, word in enumerate(says, start=1) if loud and word == found["results"]]
        yield found


def _golden_claims(sections: Sections) -> Iterator[dict[str, Any]]:
    """Yield each claim of the golden answer, and whether a claim of the response has its facts, or else its words."""
    said = [(claim, Text.read(claim)) for claim in _stated(sections.response or "")]
    whole = Text.read(sections.response or "")
    for claim in _stated(sections.golden):
        read = Text.read(claim)
        covered = _has(whole, read)
        near = max(
            said,
            key=lambda each: (any(map(each[1].has, read.facts)), share(read.words, each[1].words)),
            default=(sections.response or "", whole),
        )
        yield {"text": claim, "covered": covered, "by": near[0] if covered else ""}


def _stated(text: str) -> Iterator[str]:
    """Yield the clauses of a text that have a fact, and the sentences without one that have words enough."""
    for each in Text.read(text).sentences:
        if Text.read(each.text).unknown:
            continue  # to say that something is not known claims nothing
        if each.facts:
            yield from (one.text for one in each.clauses if one.facts and re.search(r"[^\W\d_]", one.text))
        elif len(each.words) >= _FEWEST_WORDS and not FILLER.search(each.text):
            yield each.text


def _says(source: Text, claim: Text, question: Text) -> str:
    if _has(source, claim):
        return "supported"
    return "contradicted" if contradictions(source, claim, question) else "silent"


def _has(source: Text, claim: Text) -> bool:
    """Tell whether a source has all facts of a claim, or, where it has none, most of its words."""
    return all(map(source.has, claim.facts)) if claim.facts else share(claim.words, source.words) >= ALIKE
