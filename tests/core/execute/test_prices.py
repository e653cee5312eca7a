"""What runs cost: prices of the config and of tables, budgets in US dollars, and what stays unknown."""

from __future__ import annotations

import json

import pytest

from keval import Transcript, Usage, open_run
from keval.records.manifest import Rates
from keval.records.models import FREE, Price
from keval.records.transcript import ModelUsage
from keval_report.totals import total_lines
from tests.conftest import Project

# A trial costs 1,000 × $2 + 500 × $8 = $6,000 per million, or $0.006; a judgement 10 × $1 + 2 × $4, or $0.000018.
CONFIG = """
dataset: {path: questions.jsonl}
agents: {paid: {type: double/paid, model: openai/ours}}
metrics: [double/length]
execution: {max_concurrent: 1, retry: {max_attempts: 2, initial_backoff_seconds: 0}}
"""
OURS = "prices: {openai/ours: {input: 2, output: 8}}\n"
USAGE = {"input_tokens": 1000, "output_tokens": 500}


@pytest.fixture(autouse=True)
def key(project: Project) -> None:
    project.environ["OPENAI_API_KEY"] = "sk-test"


def dataset(count: int, **script: object) -> str:
    return "".join(
        json.dumps({"id": f"q{n}", "question": "How?", "answer": "So.", **script}) + "\n" for n in range(count)
    )


def cost(project: Project, part: str = "trials") -> list[tuple[float | None, int]]:
    found = [entry["cost"] for entry in project.read("summary.json")[part]]
    return [(None if one["usd"] is None else round(one["usd"], 9), one["unknown"]) for one in found]


def line(project: Project) -> str:
    summary = open_run(project.run_directory()).summary()
    return "\n".join(line.plain for line in total_lines(summary, 200))


def test_trials_and_judgements_cost_what_their_tokens_cost(project: Project) -> None:
    judged = "judges: {reader: {type: double/paid-reader, model: openai/listed}}\nrubrics: [completeness]\n"
    project.write(eval_yaml=CONFIG + OURS + judged, questions_jsonl=dataset(3, usage=USAGE, level=4))

    outcome = project.keval("run", "eval.yaml")

    manifest, summary = project.read("manifest.json"), project.read("summary.json")
    assert 0 == outcome.code
    assert ([(0.018, 0)], [(0.000054, 0)]) == (cost(project), cost(project, "judging"))
    assert [] == summary["unpriced"]
    assert {
        "openai/listed": {"input": 1, "output": 4, "cached": None, "source": "doubles 1.0", "date": "2026-11-01"},
        "openai/ours": {"input": 2, "output": 8, "cached": None, "source": "config", "date": None},
    } == manifest["prices"]
    assert line(project).endswith("6 model calls   0 tool calls   4,536 tokens   $0.018")


def test_a_table_is_asked_once_and_the_manifest_keeps_what_it_said(project: Project) -> None:
    """So a report on a machine without the plugin gives the same figures."""
    asked = project.root / "asked"
    project.write(eval_yaml=CONFIG.replace("ours", "listed"), questions_jsonl=dataset(1, usage=USAGE))

    project.keval("run", "eval.yaml", env={"PRICES_ASKED": str(asked)})
    more = project.keval("resume", "latest", "--add-repetitions", "1", env={"PRICES_ASKED": str(asked)})
    project.keval("report", "latest", env={"PRICES_ASKED": str(asked)})

    assert (0, "openai/listed\n") == (more.code, asked.read_text(encoding="utf-8"))
    assert [(0.006, 0)] == cost(project)


@pytest.mark.parametrize("priced", ["", OURS])
def test_what_the_provider_tells_of_each_call_goes_before_the_price(project: Project, priced: str) -> None:
    project.write(
        eval_yaml=CONFIG + priced,
        questions_jsonl=dataset(2, usage={**USAGE, "cost": 0.5}) + dataset(1, usage=USAGE).replace("q0", "q2"),
    )

    project.keval("run", "eval.yaml")

    known = (1.006, 0) if priced else (1.0, 1)
    unknown = "" if priced else "; cost of 1 trial or judgement unknown"
    assert [known] == cost(project)
    assert [2] == [entry["cost"]["by_provider"] for entry in project.read("summary.json")["trials"]]
    assert line(project).endswith(f"   ${known[0]:.2f} (told by the provider for 2 trials or judgements){unknown}")


def test_cached_tokens_cost_their_own_price(project: Project) -> None:
    project.write(
        eval_yaml=f"{CONFIG}prices: {{openai/ours: {{input: 2, output: 8, cached: 0.5}}}}\n",
        questions_jsonl=dataset(1, usage={**USAGE, "cached_tokens": 800}),
    )

    project.keval("run", "eval.yaml")

    assert [(0.0048, 0)] == cost(project)  # 200 × $2 + 800 × $0.50 + 500 × $8


def test_what_is_unknown_is_unknown_and_not_free(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(2, usage=USAGE))

    project.keval("run", "eval.yaml")

    assert [(None, 2)] == cost(project)
    assert ({}, ["openai/ours"]) == (project.read("manifest.json")["prices"], project.read("summary.json")["unpriced"])
    assert line(project).endswith("   price unknown for openai/ours")


def test_an_agent_whose_own_model_costs_nothing_pays_for_its_others() -> None:
    told = Transcript(model_calls=2, usage_by_model=(ModelUsage("paid", Usage(1000, 500)),))
    models = {"own": Price(0.0, 0.0), "paid": Price(2.0, 8.0)}
    rates = Rates({"local": models["own"], "simulated": FREE}, models=models)

    assert (0.006, models) == (rates.attempt("local", told), rates.of_models("local"))
    assert (0.0, {}) == (rates.attempt("simulated", told), rates.of_models("simulated"))


def test_tokens_that_are_not_told_leave_the_cost_unknown(project: Project) -> None:
    questions = dataset(2, usage=USAGE) + '{"id": "silent", "question": "How?"}\n'
    project.write(eval_yaml=CONFIG + OURS, questions_jsonl=questions)

    project.keval("run", "eval.yaml")

    assert [(0.012, 1)] == cost(project)
    assert line(project).endswith("$0.012; cost of 1 trial or judgement unknown")


def test_simulated_models_cost_nothing_and_say_so(project: Project, simulated_here: None) -> None:
    simulated = "agents: {openai: {model: simulated/any}}"
    project.write(
        eval_yaml=CONFIG.replace("agents: {paid: {type: double/paid, model: openai/ours}}", simulated),
        questions_jsonl=dataset(1),
    )

    outcome = project.keval("run", "eval.yaml", "--budget", "usd=0.01")

    assert (0, [(0, 0)], {}) == (outcome.code, cost(project), project.read("manifest.json")["prices"])
    assert line(project).endswith("$0 (simulated)")


def test_discarded_attempts_are_a_part_of_what_trials_cost(project: Project) -> None:
    project.write(eval_yaml=CONFIG + OURS, questions_jsonl=dataset(2, usage=USAGE, busy=1))

    project.keval("run", "eval.yaml")

    (arm,) = project.read("summary.json")["trials"]
    assert [(0.024, 0)] == cost(project)
    assert (0.012, 1000) == (round(arm["given_up"]["cost"]["usd"], 9), arm["given_up"]["usage"]["output_tokens"])


def test_scores_are_told_beside_what_they_cost(project: Project) -> None:
    agents = """agents:
  plain: {type: double/paid, model: openai/ours}
  better: {type: double/paid, model: openai/dear, suffix: " It is 42."}
  wasteful: {type: double/paid, model: openai/dear}"""
    config = CONFIG.replace("agents: {paid: {type: double/paid, model: openai/ours}}", agents)
    config = config.replace("double/length", "basic/contains: {any_of: ['42', How]}")
    dear = OURS.replace("}}", "}, openai/dear: {input: 4, output: 16}}")
    questions = dataset(2, usage=USAGE) + json.dumps({"id": "last", "question": "Hm?", "usage": USAGE})
    project.write(eval_yaml=config + dear, questions_jsonl=questions)

    outcome = project.keval("run", "eval.yaml", "--json")

    found = {arm["agent"]: arm for arm in outcome.data["arms"]}
    assert [True, True, False] == [arm["pareto"] for arm in found.values()]
    assert pytest.approx(2 / 3 / 0.006) == found["plain"]["per_usd"]
    assert pytest.approx(1 / 0.012) == found["better"]["per_usd"]
    assert pytest.approx(2 / 3 / 1.5) == found["plain"]["per_1000_tokens"]


def test_a_budget_in_dollars_ends_a_run_and_counts_on_when_it_goes_on(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}{OURS}budget: {{usd: 0.03}}\n", questions_jsonl=dataset(9, usage=USAGE))

    first = project.keval("run", "eval.yaml")
    count = len(project.lines("trials.jsonl"))
    again = project.keval("resume", "latest")
    more = project.keval("resume", "latest", "--budget", "usd=0.043")

    assert (3, 3, 5, 3, 7) == (first.code, again.code, count, more.code, len(project.lines("trials.jsonl")))
    assert "4 trials were not run: budget used: $0.030 of $0.030 (--budget sets another)." in first.stdout
    assert "budget used: $0.042 of $0.043" in more.stdout
    assert 0 == project.keval("resume", "latest", "--budget", "usd=1").code
    assert [(0.054, 0)] == cost(project)


def test_judgements_count_against_a_budget_in_dollars(project: Project) -> None:
    judged = "judges: {reader: {type: double/paid-reader, model: openai/listed}}\nrubrics: [completeness]\n"
    project.write(eval_yaml=CONFIG + OURS + judged, questions_jsonl=dataset(4, usage=USAGE, level=3))

    outcome = project.keval("run", "eval.yaml", "--budget", "usd=0.02404")

    failed = [entry["failed"] for entry in project.read("summary.json")["arms"] if entry["judge"]]
    assert (3, [2]) == (outcome.code, failed)
    assert 0 == project.keval("score", "latest", "--missing", "--budget", "usd=1").code


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (CONFIG, "eval.yaml:2:10: the price of openai/ours is unknown; add `prices: {openai/ours: {input: …"),
        (
            CONFIG.replace("double/paid, model: openai/ours", "scripted"),
            "eval.yaml:2:10: the agent 'paid' names no model, so what it costs is unknown; bound tokens and not usd",
        ),
        (
            f"{CONFIG}{OURS}judges: {{reader: {{}}}}\nrubrics: [completeness]\n",
            "the judge 'reader' names no model",
        ),
    ],
    ids=["agent", "no-model", "judge"],
)
def test_a_budget_in_dollars_needs_every_price_before_anything_runs(
    project: Project, config: str, problem: str
) -> None:
    project.write(eval_yaml=config, questions_jsonl=dataset(1, usage=USAGE, level=1))

    outcome = project.keval("run", "eval.yaml", "--budget", "usd=5")

    assert 2 == outcome.code
    assert problem in " ".join(outcome.stderr.split())
    assert not (project.root / "results").exists()


def test_a_run_without_prices_has_an_unknown_cost_until_it_is_priced(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(1, usage=USAGE))
    project.keval("run", "eval.yaml")
    refused = project.keval("score", "latest", "--budget", "usd=1")
    project.write(eval_yaml=CONFIG + OURS)

    priced = project.keval("resume", "latest", "--extend", "eval.yaml", "--budget", "usd=1")

    assert (2, 0, [(0.006, 0)]) == (refused.code, priced.code, cost(project))
    assert ": the price of openai/ours is unknown" in " ".join(refused.stderr.split())


def test_a_table_that_fails_is_named_and_the_run_goes_on(project: Project, recwarn: pytest.WarningsRecorder) -> None:
    project.write(eval_yaml=CONFIG.replace("ours", "breaking"), questions_jsonl=dataset(1, usage=USAGE))

    with pytest.warns(RuntimeWarning, match=r"the price table 'double/broken-prices' of keval-doubles 1\.0 failed"):
        outcome = project.keval("run", "eval.yaml")

    assert (0, [(None, 1)]) == (outcome.code, cost(project))


@pytest.mark.parametrize(
    ("prices", "problem"),
    [
        ("ours: {input: 1, output: 2}", "5:10: a model is provider/name, such as openai/gpt-4o-mini; got 'ours'"),
        ("openai/x: {input: 1}", "5:20: the key 'output' is missing; add `output:` with a number"),
        ("openai/x: {input: 1, output: -2}", "5:39: 'output' must be US dollars per million tokens, 0 or more: -2"),
        ("openai/x: {input: 1, output: two}", "5:39: expected a number, got 'two'"),
        ("openai/x: {input: 1, output: 2, cache: 3}", "5:42: unknown key 'cache'; did you mean 'cached'?"),
        ("openai/x: 3", "5:20: expected a mapping, got 3"),
    ],
)
def test_a_wrong_price_is_reported_at_its_place(project: Project, prices: str, problem: str) -> None:
    project.write(eval_yaml=f"{CONFIG}prices: {{{prices}}}\n", questions_jsonl=dataset(1))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert f"eval.yaml:{problem}" in outcome.stderr


def test_a_price_for_a_gemini_model_is_that_of_the_model(project: Project) -> None:
    priced = "prices: {gemini/flash: {input: 2, output: 8}}\n"
    project.write(
        eval_yaml=CONFIG.replace("openai/ours", "gemini/flash") + priced, questions_jsonl=dataset(1, usage=USAGE)
    )

    project.keval("run", "eval.yaml", env={"GOOGLE_API_KEY": "a-key"})

    assert ["gemini/flash"] == [*project.read("manifest.json")["prices"]]
    assert [(0.006, 0)] == cost(project)


def test_recorded_answers_cost_what_their_model_costs_and_no_budget(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG.replace("type: double/paid,", "type: recorded, path: old.jsonl,") + OURS,
        questions_jsonl=dataset(1),
        old_jsonl=json.dumps({"id": "q0", "response": "So.", "usage": USAGE}),
    )

    outcome = project.keval("run", "eval.yaml", "--budget", "usd=0.001", "--budget", "tokens=100")

    assert (0, [(0.006, 0)]) == (outcome.code, cost(project))
    assert "openai/ours" == project.lines("trials.jsonl")[0]["model"]


def test_a_price_that_nobody_asks_for_is_noted(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}prices: {{openai/our: {{input: 2, output: 8}}}}\n", questions_jsonl=dataset(1))

    outcome = project.keval("validate", "eval.yaml")

    assert "eval.yaml:5:10: no agent or judge asks openai/our; did you mean 'openai/ours'?" in outcome.stderr


def test_seconds_are_told_by_their_median_and_their_95th_percentile(project: Project) -> None:
    seconds = [1.0, 2.0, 3.0, 4.0, 10.0]
    answers = [{"id": f"q{n}", "response": "So.", "response_time": value} for n, value in enumerate(seconds)]
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}}
            metrics: [double/length]
        """,
        questions_jsonl=dataset(5),
        old_jsonl="".join(json.dumps(answer) + "\n" for answer in answers),
    )

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["trials"]
    assert (4.0, 3.0, 8.8) == (arm["duration"], arm["duration_median"], round(arm["duration_p95"], 9))
