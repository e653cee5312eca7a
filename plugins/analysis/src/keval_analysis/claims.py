"""The claims that judges could not verify, each with the answer that makes it, and any tool result that it is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean as mean

import attrs

from keval.records.scores import Score
from keval.store.run import Run
from keval_analysis.findings.summary import Summary


@attrs.frozen
class UnverifiedClaim:
    """What an answer states and a judge could neither confirm nor refute; `trial` is the id of the answer's trial.

    `source` has the tool results that the claim is in, such as `search #2`, and is empty if it is in none; `None`
    if no rubric of claims has looked for it. `score` is the mean of what that judge gave the answer.
    """

    sample: str
    agent: str
    condition: str
    repetition: int
    trial: str
    judge: str
    text: str
    source: str | None = None
    score: float | None = attrs.field(default=None, eq=False)


def unverified_claims(run: Run, summary: Summary | None = None) -> tuple[UnverifiedClaim, ...]:
    """Return the unverified claims of a run: sample by sample in the order of its dataset, then by repetition and arm.

    A claim that several gradings of an answer by one judge found is listed once. With the run's `summary`, nothing is
    read where no judge found any. Raises RunError.
    """
    traced = any(rubric.kind == "claims" for rubric in run.manifest.rubrics.values())
    if summary is not None and not traced and not any(entry.flagged for entry in summary.judging):
        return ()
    found: dict[UnverifiedClaim, str | None] = {}
    values: dict[tuple[str, str], list[float]] = {}
    for line in run.scores():
        if line.judge and line.score.value is not None:
            values.setdefault((line.trial, line.judge), []).append(line.score.value)
        of = (line.sample, line.agent, line.condition, line.repetition, line.trial, line.judge or "")
        for text in (line.judgement and line.judgement.unverified_claims) or ():
            found.setdefault(UnverifiedClaim(*of, text), None)
        # Where a rubric of claims has looked for the same claim, its place counts.
        found.update((UnverifiedClaim(*of, text), source) for text, source in _traced(line.score))
    # Most runs have none, and need no ids.
    places = run.samples.positions if found else {}
    means = {answer: mean(given) for answer, given in values.items()}
    claims = (
        attrs.evolve(claim, source=source, score=means.get((claim.trial, claim.judge)))
        for claim, source in found.items()
    )
    return tuple(sorted(claims, key=lambda claim: places.get(claim.sample, len(places))))


def worst_first(claims: Iterable[UnverifiedClaim]) -> Sequence[UnverifiedClaim]:
    """Return the claims that are not known to be in a tool result, those of the lowest scored answers first."""
    return sorted((each for each in claims if not each.source), key=lambda each: (each.score is None, each.score or 0))


def _traced(score: Score) -> Iterator[tuple[str, str]]:
    """Yield the claims of a score's details that the golden answer does not settle, each with where it is."""
    claims = score.details.get("claims")
    for claim in claims if isinstance(claims, list) else ():
        match claim:
            case {"text": str(text), "golden": "silent", "results": "supported", "sources": [*sources]}:
                yield text, ", ".join(map(str, sources))
            case {"text": str(text), "golden": "silent" | None, "results": "silent" | None}:
                yield text, ""
