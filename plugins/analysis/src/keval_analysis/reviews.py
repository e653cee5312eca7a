"""What the reviews of a run come to, without a summary of the run."""

from __future__ import annotations

from functools import cache

from keval.store.run import Run
from keval_analysis.findings.reviews import ReviewFindings
from keval_analysis.stats.findings import Findings
from keval_analysis.stats.observations import Observations, numbered


def review_findings(run: Run) -> ReviewFindings | None:
    """Return what people's reviews come to, as `run.summary().reviews`; only the answers are read that they name.

    All are read where there are labels enough to correct an effect. `None` if nobody reviewed anything, and nothing was
    drawn. Raises RunError.
    """
    if not (labels := run.labels()):
        return None
    from keval_analysis.stats.agreement import ReviewTally  # NumPy takes a tenth of a second to import

    tally = ReviewTally(run.manifest, labels)
    for name in sorted({review.trial for review in run.reviews()}):
        tally.add_trial(run.trial(name))
        for line in run.scores_of(name):
            tally.add_score(line)

    @cache
    def findings() -> Findings:
        observed = Observations(run.manifest, numbered(run.samples.ids), spending=False)
        return Findings(observed.read(run.trials(), run.scores_as_made()))

    return tally.findings(findings, len(run.trial_ids(failed=False)))
