"""How often a pull request is told something false: 200 of them that change nothing, and 200 that change just enough.

Prints the figures of `docs/ci.md`. Each pull request is a run with `--against`: the condition `docs`, and as it was at
the commit, which are drawn from one distribution, or differ by the margin. Simulated are the scores, and nothing else:
keval's summary gives the verdicts, its gates are decided on that, and its exit code follows. `pull_requests.py 200`
draws so many pull requests of each kind, as for the documentation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import attrs
import numpy as np
from measure import part

from keval import Message, Sample, Score, Summary, Transcript, Trial
from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, ScorerEntry
from keval.records.scores import Scale, ScoreLine
from keval_analysis.findings.effects import SURE
from keval_analysis.gate_language import Names, parse
from keval_analysis.gates import decide
from keval_analysis.stats.summarise import Summariser

SEED = 20261130
MARGIN = 0.1
THEN = "docs (main@3f9c2d1)"
GATES = ("low({metric}) > -margin against commit", "low({metric}) > +0 against commit")
"""That nothing that matters is lost, and that something is gained for sure."""


@attrs.frozen
class Cell:
    """How many questions are asked how often, and by how many metrics answers are scored."""

    questions: int
    repetitions: int
    metrics: int


CELLS = (Cell(10, 1, 1), Cell(30, 1, 1), Cell(30, 3, 4), Cell(100, 3, 1))


def manifest(cell: Cell) -> Manifest:
    scale = Scale(margin=MARGIN)
    return Manifest(
        run="r",
        evaluation="e",
        config={
            "against": {"ref": "main", "commit": "3f9c2d1", "arms": {"docs": THEN}, "changed": {"docs": ["docs"]}},
            "execution": {"num_repetitions": cell.repetitions},
        },
        config_folder="/",
        dataset=DatasetEntry("q.jsonl"),
        agents={"agent": AgentEntry("recorded")},
        conditions={name: ConditionEntry() for name in ("baseline", "docs", THEN)},
        trials=3 * cell.questions * cell.repetitions,
        baseline="baseline",
        scorers=tuple(ScorerEntry(f"metric{number}", scale=scale) for number in range(cell.metrics)),
    )


def summarised(rng: np.random.Generator, cell: Cell, lost: float) -> Summary:
    """Return the summary of a run in which `docs` passes with a probability that is less by so much than it was."""
    told = manifest(cell)
    summariser = Summariser(told)
    # From questions that nobody answers to ones that everybody does, and as far from 0 as is lost.
    ease = lost + (1 - lost) * rng.beta(2, 1, (cell.metrics, cell.questions))
    shares = {"baseline": ease * 0.5, "docs": ease - lost, THEN: ease}
    for condition, share in shares.items():
        passed = rng.random((cell.repetitions, *share.shape)) < share
        for r, m, q in np.ndindex(passed.shape):
            sample, trial = f"q{q}", f"agent/{condition}/q{q}/{r + 1}"
            if m == 0:
                transcript = Transcript((Message("user", "?"), Message("assistant", "!")))
                summariser.add_trial(Trial(trial, Sample(sample, "?"), "agent", condition, r + 1, transcript))
            about = (trial, sample, "agent", condition, r + 1, f"metric{m}", None)
            summariser.add_score(ScoreLine(*about, Score(float(passed[r, m, q]))))
    return summariser.summary()


def verdicts(summary: Summary) -> set[str]:
    """Return the verdicts on the pull request, one a metric."""
    (contrast,) = (each for each in summary.contrasts if each.kind == "revision")
    return {effect.verdict for effect in contrast.effects}


def gates(summary: Summary, cell: Cell) -> Iterator[str]:
    """Yield how each gate ends on the first metric, and the exit code of the first one."""
    names = Names.of(manifest(cell))
    for number, text in enumerate(GATES):
        (result,) = decide([parse(text.format(metric="metric0"), names)], summary)
        yield f"gate {number} {result.verdict}"
        if number == 0:
            yield f"exit {attrs.evolve(summary, gates=(result,)).outcome()}"


def counted(cell: Cell, times: int, lost: float) -> Counter[str]:
    rng, found = np.random.default_rng([SEED, round(100 * lost)]), Counter[str]()
    for _ in range(times):
        summary = summarised(rng, cell, lost)
        found.update({*verdicts(summary), *gates(summary, cell)})
        found["better or worse"] += bool(verdicts(summary) & {"better", "worse"})
    return found


def main(times: int) -> None:
    """Print the tables."""
    most = f"wanted at most {100 * SURE:.0f} %"
    print(
        f"| {times} pull requests | better or worse, {most} | no difference | 1 by `> -margin` | held `> +0`, {most}"
        f" | no difference though {MARGIN:g} is lost, {most} | worse then |"
    )
    print(6 * "|---" + "|---|")
    for cell in CELLS:
        same, less = (counted(cell, times, lost) for lost in (0.0, MARGIN))
        shares = [same["better or worse"], same["same"], same["exit gate failed"], same["gate 1 held"]]
        row = " | ".join(f"{100 * count / times:.1f} %" for count in (*shares, less["same"], less["worse"]))
        asked = f"{cell.questions} questions × {cell.repetitions}, {cell.metrics} metrics"
        print(f"| {asked} | {row} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else part(200, least=2))
