"""`keval check` of what others left: damaged runs are told in words, and no text of a check leads out of its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.vendor import Vendor, serving
from tests.conftest import Project

CONFIG = """
dataset: {path: q.jsonl}
agents: {mine: {type: testing/echo}}
conditions: {a: {}, b: {system_prompt: Be brief.}}
baseline: a
metrics: [basic/contains, basic/turns]
execution: {num_repetitions: 2}
check: {samples: 4}
"""


@pytest.fixture
def checked(project: Project) -> Path:
    """The folder of a check's runs."""
    asked = [{"id": f"q{n}", "question": f"What is 2+{n}?", "answer": f"It is {n + 2} in 2026."} for n in range(6)]
    project.write(eval_yaml=CONFIG, q_jsonl="".join(json.dumps(each) + "\n" for each in asked))
    outcome = project.keval("check", "eval.yaml")
    assert outcome.code in (0, 1), outcome.stderr
    return project.root / "results" / "eval-check"


def test_a_check_of_runs_that_lost_samples_is_told_in_words(project: Project, checked: Path) -> None:
    for file in checked.glob("*/samples.jsonl"):
        file.write_text(file.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")

    for run in [path.parent for path in checked.glob("*/samples.jsonl")]:
        outcome = project.keval("check", str(run))

        assert 2 == outcome.code
        assert "is damaged: a score is of " in outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize("reasons", [None, [], {"asked": {"a": "\x1b[31m"}}])
def test_a_record_of_a_check_leads_out_of_no_folder(project: Project, checked: Path, reasons: object) -> None:
    outside = next(checked.glob("2*"))
    (record,) = checked.glob("check-*/check.json")
    for name in ("manifest.json", "trials.jsonl", "samples.jsonl", "scores.jsonl"):  # a run where the check points to
        (checked.parent / name).write_bytes((outside / name).read_bytes())
    record.write_text(json.dumps({"asked": "..", "damaged": "", "restyled": "a/..", "reasons": reasons}))

    outcome = project.keval("check", str(record.parent))

    assert 2 == outcome.code
    assert "has made no run" in outcome.stderr


@pytest.mark.slow
def test_what_tells_no_tokens_counts_to_the_budget_of_all_runs_of_a_check(project: Project) -> None:
    asked = [{"id": f"q{n}", "question": f"What is 2+{n}?" + " so" * 400, "answer": f"It is {n}."} for n in range(12)]
    judge = "judges: {openai: {model: openai/m}}\nrubrics: [completeness]\n"
    check = "check: {samples: 6, budget: {tokens: 2000}}\n"
    config = "dataset: {path: q.jsonl}\nagents: {mine: {type: openai, model: openai/m}}\nmetrics: [basic/contains]\n"
    project.write(eval_yaml=config + judge + check, q_jsonl="".join(json.dumps(each) + "\n" for each in asked))
    vendor = Vendor(answer='{"score": 3, "reasoning": "So."}', whole_usage="null")

    with serving(vendor) as environ:
        outcome = project.keval("check", "eval.yaml", env=environ)

    assert (3, True) == (outcome.code, len(vendor.asked) <= 4), outcome.stdout
    assert "the budget of the check has no tokens left" in outcome.stdout
