"""How judges grade anchors: against the people who labelled them, and against an earlier run of the evaluation."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

import attrs
import numpy as np

from keval.errors import RunError
from keval.records.manifest import Manifest, ScorerEntry, is_current
from keval.store.lock import fetch_run
from keval.store.run import Run, list_runs
from keval_analysis.findings.anchors import ANCHOR_SCORES, AnchorFindings, JudgeDrift
from keval_analysis.labels.anchors import anchor_digest, anchor_level, read_anchor_scores, read_kept_anchors
from keval_analysis.stats.paired import Differences, paired_effects

_EARLIER = 100
"""So many earlier runs are looked at for one by the same judge."""


def anchor_findings(run: Run) -> tuple[AnchorFindings, ...]:
    """Return what each judge that does not compare gave to the anchors of a run, by each of its rubrics.

    The earlier run is the latest finished one of the same evaluation beside it in which the same model, as the same
    judge, graded anchors by the same rubric. Raises RunError.
    """
    if not (run.path / ANCHOR_SCORES).exists():
        return ()
    here, earlier, rubrics = _Anchored(run), _Earlier(run), run.manifest.rubrics
    graded = (each for each in run.manifest.scorers if each.rubric and rubrics[each.rubric].kind != "preference")
    return tuple(_found(here, earlier, entry) for entry in graded)


class _Anchored:
    """A run with its anchors, and what judges gave to them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.anchors = {anchor.id: anchor for anchor in read_kept_anchors(run.path)}
        self.lines = read_anchor_scores(run.path)

    def levels(self, entry: ScorerEntry) -> dict[str, float]:
        """Return the mean level over a judge's gradings, by anchor."""
        found: dict[str, list[float]] = defaultdict(list)
        for line in self.lines:
            if line.scorer == entry.scorer and is_current(line, entry) and line.score.value is not None:
                found[line.sample].append(line.score.value)
        return {name: sum(values) / len(values) for name, values in found.items() if name in self.anchors}


class _Earlier:
    """The finished runs of the evaluation beside a run, the latest before it first, each read when it is asked for."""

    def __init__(self, run: Run) -> None:
        folder = run.path.absolute().parent
        runs = [each for each in list_runs(folder.parent) if each.path.parent == folder]
        before = itertools.takewhile(lambda each: each.id != run.id, runs)
        self._evaluation = run.manifest.evaluation
        self._left = itertools.islice(reversed([*before]), _EARLIER)
        self._read: list[_Anchored] = []

    def __iter__(self) -> Iterator[_Anchored]:
        yield from self._read
        for run in self._left:
            # A run that is mirrored lies elsewhere until it is fetched.
            fetch_run(run.path)
            if not (run.path / ANCHOR_SCORES).exists() or run.is_locked:
                continue
            with suppress(RunError):  # what is damaged is told where that run is read for its own sake
                if run.manifest.replay is None and run.manifest.evaluation == self._evaluation:
                    self._read.append(found := _Anchored(run))
                    yield found


def _found(here: _Anchored, earlier: _Earlier, entry: ScorerEntry) -> AnchorFindings:
    levels = here.levels(entry)
    people = {name: anchor_level(here.anchors[name], entry.metric) for name in levels}
    above = np.array([levels[name] - level for name, level in people.items() if level is not None])
    failed = sum(line.failure is not None for line in here.lines if line.scorer == entry.scorer)
    found = AnchorFindings(entry.metric, entry.judge or "", len(levels), failed, len(above))
    if len(above):
        effect = paired_effects([Differences(above, span=entry.scale.high - entry.scale.low)])[0]
        same = float(np.mean(above == 0))
        found = attrs.evolve(found, same=same, bias=effect.difference, bias_low=effect.low, bias_high=effect.high)
    return attrs.evolve(found, drift=_drift(here, earlier, entry, levels))


def _drift(here: _Anchored, earlier: _Earlier, entry: ScorerEntry, levels: Mapping[str, float]) -> JudgeDrift:
    manifest = here.run.manifest
    if manifest.replay is not None:
        return JudgeDrift(reason="the judge was not asked: the run is a replay")
    if not levels:
        return JudgeDrift(reason="the judge graded no anchor")
    for there in earlier:
        run, before = there.run, _same_scorer(there.run.manifest, manifest, entry)
        if before is None or not (had := there.levels(before)):
            continue
        both = [name for name in levels if name in had]
        same = [name for name in both if anchor_digest(here.anchors[name]) == anchor_digest(there.anchors[name])]
        if not same:
            return JudgeDrift(run.id, reason=f"no anchor is the same as in {run.id}")
        differences = np.array([levels[name] - had[name] for name in same])
        effect = paired_effects([Differences(differences, span=entry.scale.high - entry.scale.low)])[0]
        changes = tuple(_changes(run.manifest, manifest, before, entry))
        return JudgeDrift(run.id, len(same), effect.difference, effect.low, effect.high, changes=changes)
    return JudgeDrift(reason="no earlier run of the evaluation had this judge grade anchors by this rubric")


def _same_scorer(before: Manifest, now: Manifest, entry: ScorerEntry) -> ScorerEntry | None:
    """Return the scorer of an earlier run that is the same judge, model and rubric."""
    had = before.scorer(entry.scorer)
    label = entry.judge or ""
    if had is None or had.rubric != entry.rubric or label not in before.judges:
        return None
    return had if before.judges[label].model == now.judges[label].model else None


def _changes(before: Manifest, now: Manifest, had: ScorerEntry, entry: ScorerEntry) -> Iterator[str]:
    """Yield what was changed of a judge, so that a drift may be of that."""
    if had.digest == entry.digest:
        return
    was, is_now = (manifest.judges[entry.judge or ""] for manifest in (before, now))
    options = {**was.defaults, **was.options}, {**is_now.defaults, **is_now.options}
    names = sorted(name for name in {*options[0], *options[1]} if options[0].get(name) != options[1].get(name))
    yield from (f"the option {name}" for name in names)
    if was.type != is_now.type:
        yield "the type of the judge"
    if before.seed != now.seed:
        yield "the seed"
    # The digest is another one, and nothing that the manifests tell explains it.
    if not names and was.type == is_now.type and before.seed == now.seed:
        yield "its version, its endpoint, or a file that an option names"
