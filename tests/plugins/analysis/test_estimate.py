"""What a run would take, told before it: calls, tokens, price and time, from assumptions that are told with them."""

from __future__ import annotations

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: simulated/any}}
contexts: {notes: {text: "Tarn listens on port 7443."}}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
judge: {model: simulated/judge}
rubrics: [helpfulness_and_clarity]
prices: {openai/mine: {input: 2, output: 10}}
execution: {num_repetitions: 5, max_concurrent: 2}
"""
ASSUMED = "a call reads 150 tokens and 1,500 of each context, and writes 200; a judge reads 1,500 and writes 300"
# 10 calls without and 20 with the context, and 20 of the judge.
READ, WRITTEN, JUDGED, SAID = 10 * 150 + 20 * 1650, 30 * 200, 20 * 1500, 20 * 300
TOKENS = READ + WRITTEN + JUDGED + SAID


@pytest.fixture
def asked(project: Project) -> Project:
    questions = '{"id": "a", "question": "Which port?"}\n{"id": "b", "question": "Which command?"}'
    project.write(eval_yaml=CONFIG, questions_jsonl=questions)
    return project


def test_a_dry_run_of_simulated_models_says_what_a_real_one_would_cost(asked: Project) -> None:
    plan = asked.keval("run", "eval.yaml", "--dry-run", "--json").data["estimate"]
    shown = asked.keval("run", "eval.yaml", "--dry-run").stdout

    usd = ((READ + JUDGED) * 0.15 + (WRITTEN + SAID) * 0.6) / 1e6
    assert (30, 20, TOKENS) == tuple(plan[key] for key in ("model_calls", "judge_calls", "tokens"))
    assert (True, pytest.approx(usd), 50 * 4 / 2) == tuple(plan[key] for key in ("simulated", "usd", "seconds"))
    told = "about 76,000 tokens, $0 as the models are simulated; with openai/gpt-4o-mini $0.017 and 1 min 40 s"
    assert f"  estimate   {told}\n  assumed    {ASSUMED}; a call takes 4 s\n" in shown


def test_real_models_are_estimated_at_the_price_of_the_config_or_the_table(asked: Project) -> None:
    mine, table, local, unknown = (
        asked.keval("run", "eval.yaml", "--dry-run", "--json", "-m", f"openai={model}").data["estimate"]
        for model in ("openai/mine", "openai/gpt-4o-mini", "ollama/of-mine", "openai/of-nobody")
    )
    shown = asked.keval("run", "eval.yaml", "--dry-run", "-m", "openai=openai/of-nobody").stdout

    assert (pytest.approx((READ * 2 + WRITTEN * 10) / 1e6), 30 * 4 / 2) == (mine["usd"], mine["seconds"])
    assert pytest.approx((READ * 0.15 + WRITTEN * 0.6) / 1e6) == table["usd"]
    assert ((0.0, False), (None, False)) == tuple((each["usd"], each["simulated"]) for each in (local, unknown))
    assert "  estimate   about 76,000 tokens, an unknown price and 1 min\n" in shown


def test_power_without_a_pilot_says_the_estimate_and_that_it_is_one(asked: Project) -> None:
    shown = " ".join(asked.keval("power", "eval.yaml").stdout.split())

    assert "as planned, by assumption and not by a pilot: about 76,000 tokens, $0" in shown
    assert ASSUMED in shown


def test_recorded_answers_take_nothing_of_an_agent(asked: Project) -> None:
    asked.write(answers_jsonl='{"id": "a", "response": "7443"}\n{"id": "b", "response": "tarn reload"}')
    config = CONFIG.replace("openai: {model: simulated/any}", "mine: {type: recorded, path: answers.jsonl}")
    graded = "judge: {model: simulated/judge}\nrubrics: [helpfulness_and_clarity]"
    asked.write(eval_yaml=config.replace(graded, "metrics: [basic/latency]"))

    shown = asked.keval("run", "eval.yaml", "--dry-run").stdout

    assert "estimate" not in shown
    assert "about 0 model calls and 0 judge calls; nothing was run" in shown
