"""The claims that judges could not verify, each with the answer that makes it."""

from __future__ import annotations

import attrs

from keval.findings.summary import Summary
from keval.store.run import Run


@attrs.frozen
class UnverifiedClaim:
    """What an answer states and a judge could neither confirm nor refute; `trial` is the id of the answer's trial."""

    sample: str
    agent: str
    condition: str
    repetition: int
    trial: str
    judge: str
    text: str


def unverified_claims(run: Run, summary: Summary | None = None) -> tuple[UnverifiedClaim, ...]:
    """Return the unverified claims of a run: sample by sample in the order of its dataset, then by repetition and arm.

    A claim that several gradings of an answer by one judge found is listed once. With the run's `summary`, nothing is
    read where no judge found any. Raises RunError.
    """
    if summary is not None and not any(entry.flagged for entry in summary.judging):
        return ()
    found: dict[UnverifiedClaim, None] = {}
    for line in run.scores():
        for text in (line.judgement and line.judgement.unverified_claims) or ():
            of = (line.sample, line.agent, line.condition, line.repetition, line.trial, line.judge or "")
            found[UnverifiedClaim(*of, text)] = None
    places = run.samples.positions if found else {}
    return tuple(sorted(found, key=lambda claim: places.get(claim.sample, len(places))))
