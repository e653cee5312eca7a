"""Judges grade the anchors of a run, after its trials, by what grades these: with its budget, recording and retries."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import attrs

from keval.files import explained, open_added, replacing, write_all
from keval.plan.plan import Plan
from keval.records.scores import ScoreLine
from keval.records.trial import Trial
from keval.run.active_run import ActiveRun
from keval.score.backlog import Backlog
from keval.score.scoring import ScoredTrial
from keval.seams.interfaces import ComparingJudge
from keval.store.serialization import read_score, sample_line, score_line
from keval_analysis.findings.anchors import ANCHOR_SCORES, ANCHORS
from keval_analysis.labels.anchors import anchor_trial, read_anchor_scores, read_anchors, read_kept_anchors


async def grade_anchors(run: ActiveRun, path: Path, *, missing: bool) -> None:
    """Have the judges of a run grade its anchors; with `missing`, only make the scores that it lacks.

    A run keeps the anchors that its first plan has. Raises RunError.
    """
    folder = run.writer.path
    if not (folder / ANCHORS).exists():
        if not isinstance(run.plan, Plan) or not run.plan.scorers.judges or run.manifest.replay is not None:
            return
        anchors = read_anchors(path, run.plan.evaluation, run.plan.scorers)[0]
        with replacing(folder / ANCHORS) as file:
            file.writelines(line + b"\n" for line in run.redact.lines([*map(sample_line, anchors)]))
    kept = [line for line in read_anchor_scores(folder) if _stays(run, line, missing=missing)]
    made = {(line.trial, *line.scorer, line.judgement.repetition) for line in kept if line.judgement}
    comparing = {item.label for item in run.plan.scorers.judges if isinstance(item.plugin, ComparingJudge)}

    def lacks(trial: Trial, metric: str, judge: str | None, repetition: int) -> bool:
        if judge is None or judge in comparing or (trial.id, metric, judge, repetition) in made:
            return False
        return repetition <= run.spec.repetitions.get((metric, judge), 0)

    path = folder / ANCHOR_SCORES
    with replacing(path) as earlier:
        earlier.writelines(score_line(line) + b"\n" for line in kept)
    # Unbuffered, so that what was graded is in the file if the process is killed.
    with run.grader(lacks) as grader, explained(path), os.fdopen(open_added(path), "ab", buffering=0) as added:

        def keep(scored: ScoredTrial, begun: bool) -> None:
            # No arm of the run gave the answer.
            lines = [score_line(attrs.evolve(line, agent="", condition="")) for line in map(read_score, scored.written)]
            write_all(added, b"".join(line + b"\n" for line in run.redact.lines(lines)))

        at_once = run.plan.evaluation.execution.max_concurrent
        backlog = Backlog(grader, run.run.read_trial, keep, _noted, at_once, set(), bytearray())
        # Any arm of the run, as a worker elsewhere knows no others; `keep` takes it out again.
        agent = next(iter(run.manifest.agents))
        await backlog.score(anchor_trial(each, agent, run.manifest.baseline) for each in read_kept_anchors(folder))


def _stays(run: ActiveRun, line: ScoreLine, *, missing: bool) -> bool:
    """Return whether an earlier score of an anchor is not made again."""
    digest = run.spec.digests.get(line.scorer)
    return digest is None or (missing and line.failure is None and line.digest == digest)


def _noted(trial: Trial, lines: Iterable[ScoreLine]) -> None:
    """Nothing: an anchor is scored in one step."""
