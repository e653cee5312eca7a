"""What a `Run` reads by this package: its summary, and what people said of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from keval.errors import RunError
from keval.files import read_json
from keval.records.scores import Scored
from keval.records.trial import Trial
from keval.store.run import Run
from keval.store.serialization import from_plain
from keval_analysis.findings.added_lines import AddedLines
from keval_analysis.findings.effects import EXPENSES
from keval_analysis.findings.reviews import Review, ReviewFindings, answer_digest, read_review, standing
from keval_analysis.findings.summary import Summary

if TYPE_CHECKING:
    from keval_analysis.findings.draws import Labels

_REMADE = "remove it, as it is made anew from trials and scores"


def summary(run: Run, trials: Iterable[Trial]) -> Summary:
    """Summarise trials and the scores of a run; gates are not decided. Raises RunError."""
    from keval_analysis.stats.summarise import summarise  # asked for by few readers of runs

    return summarise(run.manifest, run.samples.positions, trials, run.all_scores(), labels(run))


def written_summary(path: Path) -> Summary:
    """Read what a run found, as it was written down. Raises RunError."""
    found = from_plain(Summary, read_json(path, _REMADE), path, _REMADE)
    contrasts = found.contrasts
    scored: list[Scored] = [*found.arms, *found.effects, *found.interactions, *found.variance]
    scored += [*found.win_rates, *found.properties, *(each for contrast in contrasts for each in contrast.effects)]
    expenses = [*found.expenses, *(each for contrast in contrasts for each in contrast.expenses)]
    # Reports look up names and scales by scorer, and would end in a KeyError.
    unknown = {each.metric for each in expenses} - {*EXPENSES}
    scorers = {entry.scorer for entry in found.scorers}
    unknown |= {each.metric for each in scored if each.scorer not in scorers}
    if unknown:
        raise RunError(f"{path} is damaged: it does not list the metric {min(unknown)!r}; {_REMADE}")
    return found


def reviews_file(run: Run) -> AddedLines[Review]:
    """Return where the reviews of a run are."""
    return AddedLines(run.path / "reviews.jsonl", read_review)


def reviews(run: Run) -> list[Review]:
    """Return what people said of the answers of a run as they are, and did not replace or withdraw. Raises RunError."""
    digests = run.digests
    # The run keeps the digests, as each takes reading a trial.
    for review in (found := standing(reviews_file(run).read())):
        if review.trial not in digests and run.known_trials.named(review.trial) is not None:
            digests[review.trial] = answer_digest(run.trial(review.trial))
    return [review for review in found if review.answer == digests.get(review.trial)]


def conclusion(run: Run, parts: Mapping[str, Any], given: Mapping[str, Any]) -> Summary:
    """Summarise a run whose trials are finished, and decide its gates; `given` are the options of the command.

    Raises RunError.
    """
    from keval_analysis.expectations import ExpectationCheck
    from keval_analysis.gates import with_gates

    expectations = ExpectationCheck.of(run.manifest)
    found = with_gates(
        run, run.summary(expectations.watch(run.trials())), expectations, regression=given.get("regression")
    )
    return attrs.evolve(found, parts=parts)


def kept_parts(run: Run) -> Mapping[str, Any]:
    """Return the parts of its summary that hook plugins made when the run ended. Raises RunError."""
    path = run.path / "summary.json"
    kept = read_json(path, _REMADE) if path.is_file() else {}
    # The file may be of others; what is in it besides is made anew.
    parts = kept.get("parts", {}) if isinstance(kept, dict) else {}
    return parts if isinstance(parts, dict) else {}


def labels(run: Run) -> Labels:
    """Return all that people said of answers of a run, and which answers were drawn for that. Raises RunError."""
    from keval_analysis.findings.draws import Labels, draws_file, questions_digest

    draws = [*draws_file(run.path).read()]
    digest = questions_digest(run.known_trials) if draws else ""
    return Labels([*reviews_file(run).read()], [draw for draw in draws if draw.samples == digest])


def review_findings(run: Run) -> ReviewFindings | None:
    """Return what people's reviews come to, as `run.summary().reviews`; only the answers are read that they name.

    All are read where there are labels enough to correct an effect. `None` if nobody reviewed anything, and nothing was
    drawn. Raises RunError.
    """
    if not (labels := run.labels()):
        return None
    from keval_analysis.stats.agreement import ReviewTally  # as in `summary`
    from keval_analysis.stats.findings import read_findings

    tally = ReviewTally(run.manifest, labels)
    for name in sorted({review.trial for review in run.reviews()}):
        tally.add_trial(run.trial(name))
        for line in run.scores_of(name):
            tally.add_score(line)

    # Each judge asks for them; the scores are read once.
    findings = cache(lambda: read_findings(run))
    return tally.findings(findings, len(run.trial_ids(failed=False)))
