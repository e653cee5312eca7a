"""Anchors: answers that people have labelled once, and that judges grade again in every run.

An anchor is a sample whose metadata has the `response` and the `levels` that people gave it, by rubric. A run keeps its
anchors, and what judges gave them, in files of their own: they are none of its trials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from keval.config.evaluation import DatasetFile, Evaluation
from keval.dataset.read import read_dataset
from keval.errors import ConfigError, Problem, suggestion
from keval.files import read_lines
from keval.plan.plan import Scorers
from keval.records.scores import Rubric, ScoreLine
from keval.records.transcript import Message, Transcript
from keval.records.trial import Sample, Trial
from keval.store.serialization import dump, read_sample, read_score
from keval_analysis.findings.anchors import ANCHOR_SCORES, ANCHORS

_PREFIX = "/anchor/"
"""With which the id of no trial of a run begins, as the label of an agent stands first there."""
_KEYS = ("response", "levels")


def read_anchors(path: Path, evaluation: Evaluation, scorers: Scorers) -> tuple[Sequence[Sample], list[Problem]]:
    """Read the anchors that a config names; returns them, and what is wrong with them, at its place.

    A record is read as those of a dataset are, and has `response` and `levels`.
    """
    if not path.is_file():
        told = f"there is no file {path}; anchors are JSON lines with id, question, response and levels"
        return (), [evaluation.source.problem(("anchors",), told)]
    try:
        dataset = read_dataset(DatasetFile(path))
    except ConfigError as error:
        return (), [*error.problems]
    rubrics = {rubric.name: rubric for judge in scorers.judges for rubric in scorers.graded_by(judge)}
    found, problems = [*dataset.samples], list[Problem]()
    for anchor in found:
        problems += [Problem(dataset.place(anchor.id), told) for told in _wrong(anchor, rubrics)]
    return found, problems


def _wrong(anchor: Sample, rubrics: Mapping[str, Rubric]) -> Iterator[str]:
    """Yield what is wrong with an anchor. Levels are checked if there is any rubric."""
    response, levels = (anchor.metadata.get(key) for key in _KEYS)
    if not isinstance(response, str):
        yield "an anchor has the answer that people labelled under `response`, as text"
    if anchor.turns:
        yield "an anchor has no `turns`; write what was said before under `history`"
    if not isinstance(levels, Mapping) or not levels:
        yield "an anchor has the levels that people gave it, such as `levels: {completeness: 4}`"
        return
    for name, level in levels.items():
        # True is an int, too.
        if isinstance(level, bool) or not isinstance(level, int | float):
            yield f"the level of {name!r} is a number, got {level!r}"
        elif rubrics:
            yield from _wrong_level(anchor, name, level, rubrics)


def _wrong_level(anchor: Sample, name: str, level: float, rubrics: Mapping[str, Rubric]) -> Iterator[str]:
    rubric = rubrics.get(name)
    if rubric is None:
        hint = suggestion(name, rubrics) or f"; judges grade by {', '.join(rubrics)}"
        yield f"no judge grades by a rubric {name!r}{hint}"
    elif rubric.kind == "preference":
        yield f"{name!r} compares two answers, and an anchor is one; remove the level"
    elif rubric.needs_answer and anchor.answer is None:
        yield f"{name!r} compares with the golden answer, and the anchor has none; add an `answer`"
    elif rubric.kind == "levels" and level not in rubric.levels:
        yield f"{level:g} is no level of {name!r}; it has {', '.join(map(str, rubric.levels))}"
    elif not rubric.scale.low <= level <= rubric.scale.high:
        yield f"{level:g} is beyond the scale of {name!r}, {rubric.scale.low:g} to {rubric.scale.high:g}"


def anchor_trial(anchor: Sample, agent: str, condition: str) -> Trial:
    """Return the answer of an anchor as judges get it: what people say of it is not in it.

    `agent` and `condition` are of the run, as a worker elsewhere knows no others; judges are told neither.
    """
    # A judge must not see the levels that it is held against.
    bare = {key: value for key, value in anchor.metadata.items() if key not in _KEYS}
    messages = (Message("user", anchor.question), Message("assistant", str(anchor.metadata["response"])))
    sample = Sample(anchor.id, anchor.question, anchor.answer, anchor.history, facts=anchor.facts, metadata=bare)
    return Trial(f"{_PREFIX}{anchor.id}", sample, agent, condition, 1, Transcript(messages))


def is_anchor(trial: str | None) -> bool:
    """Return whether the id of a trial is that of an anchor."""
    return trial is not None and trial.startswith(_PREFIX)


def anchor_digest(anchor: Sample) -> str:
    """Return the digest of all that a judge sees of an anchor."""
    seen = [anchor.question, anchor.answer, anchor.history, anchor.facts, anchor.metadata["response"]]
    return hashlib.sha256(dump(seen)).hexdigest()[:12]


def anchor_level(anchor: Sample, rubric: str) -> float | None:
    """Return the level that people gave an anchor by a rubric; `None` if they gave none."""
    level = anchor.metadata["levels"].get(rubric)
    return None if level is None else float(level)


def read_kept_anchors(folder: Path) -> list[Sample]:
    """Read the anchors of a run. Raises RunError."""
    return [*read_lines(folder / ANCHORS, read_anchor)]


def read_anchor_scores(folder: Path, trial: str = "") -> list[ScoreLine]:
    """Read the scores of the anchors of a run, or of one; of several by one grading, the last counts.

    Raises RunError.
    """
    every = read_lines(folder / ANCHOR_SCORES, read_score)
    lines = (line for line in every if trial in ("", line.trial))
    return [
        *{(line.sample, line.scorer, line.judgement and line.judgement.repetition): line for line in lines}.values()
    ]


def read_anchor(line: bytes) -> Sample:
    """Read a line of the anchors of a run. Raises LookupError, TypeError or ValueError."""
    anchor = read_sample(line)
    if [*_wrong(anchor, {})]:
        raise ValueError(f"the anchor {anchor.id!r} lacks its response or its levels")
    return anchor
