"""Which scorers of a replay are others than those of the recorded run."""

from __future__ import annotations

import attrs

from keval.records.manifest import DatasetEntry, JudgeEntry, Manifest, ScorerEntry
from keval_replay.replay import scorer_changes

BEFORE = Manifest(
    run="a-run",
    evaluation="eval",
    config={},
    config_folder=".",
    dataset=DatasetEntry("questions.jsonl"),
    agents={},
    conditions={},
    trials=1,
    baseline="baseline",
    judges={"judge": JudgeEntry("openai", model="openai/gpt", options={"temperature": 0, "words": ["a"]})},
    scorers=(
        ScorerEntry("basic/turns", digest="1"),
        ScorerEntry("basic/regex", digest="1", options={"pattern": "x"}),
        ScorerEntry("basic/contains", digest="1"),
        ScorerEntry("clarity", "judge", rubric="r1", digest="1"),
        ScorerEntry("tone", "judge", rubric="r2", digest="1"),
    ),
)


def test_the_same_scorers_have_not_changed() -> None:
    judges = {"judge": attrs.evolve(BEFORE.judges["judge"], options={"temperature": 0, "words": ("a",)})}

    assert [] == scorer_changes(BEFORE, attrs.evolve(BEFORE, judges=judges))


def test_each_scorer_that_changed_is_named_with_what_changed_of_it() -> None:
    now = attrs.evolve(
        BEFORE,
        judges={"judge": JudgeEntry("openai", model="openai/other", options={"temperature": 0, "words": ("a",)})},
        scorers=(
            ScorerEntry("basic/turns", digest="2"),
            ScorerEntry("basic/regex", digest="2", options={"pattern": "y"}),
            ScorerEntry("basic/equals", digest="1"),
            ScorerEntry("clarity", "judge", rubric="r3", digest="2"),
            ScorerEntry("tone", "judge", rubric="r2", digest="1"),
        ),
    )

    assert [
        "metric basic/turns: its version changed, so it scored anew",
        "metric basic/regex: the option pattern changed, so it scored anew",
        "metric basic/equals: it is new",
        "rubric clarity by judge: its text, the judge's model changed, so it scored anew",
        "metric basic/contains: it does not score any more",
    ] == scorer_changes(BEFORE, now)
