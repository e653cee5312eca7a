"""How often a whole report says something false, on planted data in which no arm differs from another.

Prints the figures of `docs/statistics.md`. A report is read as it is printed: its sentences, its rows, its cautions and
the lines of `--explain`. It is false if anything in it outside *exploratory* says that an arm is better or worse than
another, does more, or costs more. Beside it stands how often something exploratory says so.
`false_reports.py 2000` draws each cell so often, as for the documentation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
from measure import part

from keval import Message, Sample, Score, Summary, Transcript, Trial, Usage
from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, ScorerEntry
from keval.records.scores import ScoreLine
from keval_analysis.findings.effects import SURE
from keval_analysis.stats.summarise import Summariser
from keval_analysis.stats.units import FloatArray
from keval_report.cautions import cautions
from keval_report.claims import BETTER, EXPLORATORY, WORSE
from keval_report.contrasts import all_blocks
from keval_report.run_claims import COSTS, SAVES, TAKES
from keval_report.sentences import findings
from keval_report.terminal.overview import explanation_lines

QUESTIONS = 30
SEED = 20261129
SAYS = re.compile(r"\b(improves|got worse|is (better|worse)|does more|costs|takes|differs between agents)\b")


@attrs.frozen
class Cell:
    """How many agents, conditions and metrics are compared, and what has no score, by chance or not."""

    name: str
    agents: int = 1
    conditions: int = 2
    metrics: int = 1
    primary: bool = False
    lost: str = ""


CELLS = (
    Cell("1 comparison"),
    Cell("8 comparisons: 1 agent, 2 conditions, 8 metrics", metrics=8),
    Cell("8 comparisons: 2 agents, 3 conditions, 2 metrics", agents=2, conditions=3, metrics=2),
    Cell("50 comparisons: 2 agents, 2 conditions, 25 metrics", agents=2, metrics=25),
    Cell("3 agents, 3 conditions, 8 metrics, of which 1 primary", 3, 3, 8, primary=True),
    Cell("3 agents under one condition, 2 metrics", agents=3, conditions=1, metrics=2),
    Cell("2 metrics, a tenth neutral by chance", metrics=2, lost="neutral"),
    Cell("2 metrics, a tenth unscored by chance", metrics=2, lost="unscored"),
    Cell("2 metrics, 35 % of one arm's wrong answers unscored", metrics=2, lost="unscored if wrong"),
    Cell("2 metrics, half of the hard questions neutral in one arm", metrics=2, lost="neutral if hard"),
)


def scores(rng: np.random.Generator, cell: Cell) -> FloatArray:
    """Draw scores by metric, agent, condition and question: a half of them 0 or 1, and a half continuous."""
    shape = (cell.metrics, cell.agents, cell.conditions, QUESTIONS)
    hard = rng.normal(size=(cell.metrics, 1, 1, QUESTIONS))
    drawn = 0.6 + hard + rng.normal(size=shape)
    passed = (drawn > 0).astype(float)
    smooth = 1 / (1 + np.exp(-drawn))
    return np.where(np.arange(cell.metrics)[:, None, None, None] % 2 == 0, passed, smooth)


def manifest(cell: Cell) -> Manifest:
    conditions = ["baseline", *(f"with_{number}" for number in range(1, cell.conditions))]
    return Manifest(
        run="r",
        evaluation="e",
        config={},
        config_folder="/",
        dataset=DatasetEntry("q.jsonl"),
        agents={f"agent {number}": AgentEntry("recorded") for number in range(cell.agents)},
        conditions={label: ConditionEntry() for label in conditions},
        trials=cell.agents * cell.conditions * QUESTIONS,
        baseline="baseline",
        scorers=tuple(ScorerEntry(f"metric {number}") for number in range(cell.metrics)),
        primary=("metric 0",) if cell.primary else (),
    )


def summarised(rng: np.random.Generator, cell: Cell) -> Summary:
    """Return the summary of one run."""
    told = manifest(cell)
    summariser, drawn = Summariser(told), scores(rng, cell)
    hard = drawn.mean(axis=(0, 1, 2)) < np.median(drawn.mean(axis=(0, 1, 2)))
    for a, agent in enumerate(told.agents):
        for c, condition in enumerate(told.conditions):
            for q in range(QUESTIONS):
                trial = _trial(rng, agent, condition, f"q{q}")
                summariser.add_trial(trial)
                for m, entry in enumerate(told.scorers):
                    value = float(drawn[m, a, c, q])
                    score = _lost(rng, cell, value, treated=c == cell.conditions - 1, hard=bool(hard[q]))
                    line = (trial.id, f"q{q}", agent, condition, 1, entry.metric, None, score)
                    summariser.add_score(ScoreLine(*line))
    return summariser.summary()


def _trial(rng: np.random.Generator, agent: str, condition: str, sample: str) -> Trial:
    seconds, tokens = (float(np.exp(0.5 * rng.normal())) for _ in range(2))
    messages = (Message("user", "?"), Message("assistant", "!"))
    usage = Usage(round(1000 * tokens), round(100 * tokens))
    transcript = Transcript(messages, usage=usage, duration=seconds, turn_durations=(seconds,), model_calls=1)
    return Trial(f"{agent}/{condition}/{sample}/1", Sample(sample, "?"), agent, condition, 1, transcript)


def _lost(rng: np.random.Generator, cell: Cell, value: float, *, treated: bool, hard: bool) -> Score:
    chance = rng.random()
    if cell.lost == "neutral" and chance < 0.1:
        return Score(1.0, "nothing to judge", neutral=True)
    if cell.lost == "neutral if hard" and treated and hard and chance < 0.5:
        return Score(1.0, "nothing to judge", neutral=True)
    if cell.lost == "unscored" and chance < 0.1:
        return Score(None, "no score")
    if cell.lost == "unscored if wrong" and treated and value < 0.5 and chance < 0.35:
        return Score(None, "no score")
    return Score(value)


def statements(summary: Summary) -> Iterator[tuple[bool, str]]:
    """Yield what a report says of a difference, and whether it says that as something exploratory."""
    blocks = all_blocks(summary)
    lines = [*findings(summary), *cautions(summary, blocks)]
    lines += [line.plain for line in explanation_lines(summary, (), 120, Path())]
    for line in lines:
        if SAYS.search(line):
            yield EXPLORATORY.says in line.lower(), line
    for block in blocks:
        for claim in block.claims:
            if BETTER.holds(claim) or WORSE.holds(claim):
                yield EXPLORATORY.holds(claim), claim.name
    for effect in summary.expenses:
        if any(each.holds(effect) for each in (COSTS, SAVES, TAKES)):
            yield True, effect.metric  # which stands under a heading of its own


def main(times: int) -> None:
    """Print the table."""
    print(f"| {QUESTIONS} questions | false reports, wanted at most {100 * SURE:.0f} % | something exploratory |")
    print("|---|---|---|")
    for cell in CELLS:
        rng = np.random.default_rng(SEED)
        found = [[*statements(summarised(rng, cell))] for _ in range(times)]
        false = sum(any(not explored for explored, _ in each) for each in found)
        explored = sum(any(explored for explored, _ in each) for each in found)
        print(f"| {cell.name} | {100 * false / times:.1f} % | {100 * explored / times:.1f} % |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else part(100, least=2))
