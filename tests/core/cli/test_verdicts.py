"""Verdicts through the commands: cases whose interval, p, words and gates must say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from keval.plugin import PluginWarning
from tests.conftest import Project

THIRD = 1 / 3


def write(project: Project, name: str, metric: str, arms: Mapping[str, Sequence[float]], more: str = "") -> None:
    """Write an evaluation of recorded answers that are numbers, in each condition one for each question."""
    count = len(next(iter(arms.values())))
    project.write(
        **{
            "q_jsonl": "".join(json.dumps({"id": f"q{n}", "question": "?"}) + "\n" for n in range(count)),
            f"{name}_jsonl": "".join(
                json.dumps({"id": f"q{n}", "condition": condition, "response": str(value)}) + "\n"
                for condition, values in arms.items()
                for n, value in enumerate(values)
            ),
            f"{name}_yaml": "\n".join(
                [
                    "dataset: {path: q.jsonl}",
                    f"agents: {{one: {{type: recorded, path: {name}.jsonl}}}}",
                    f"conditions: {{{', '.join(f'{condition}: {{}}' for condition in arms)}}}",
                    f"metrics: [{metric}]",
                    more,
                ]
            ),
        }
    )


CASES = {
    "all by 0.2 on a wide scale": ("number/balance", [0.0] * 40, [-0.2] * 40),
    "all by 0.1": ("number/rating", [0.5] * 20, [0.4] * 20),
    "half by a third": ("number/rating", [0.5] * 16, [0.5] * 8 + [0.5 - THIRD] * 8),
    "and four unchanged ones": ("number/rating", [0.5] * 20, [0.5] * 12 + [0.5 - THIRD] * 8),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_questions_that_lose_alike_are_worse_and_a_regression(project: Project, case: str) -> None:
    metric, before, after = CASES[case]
    write(project, "old", metric, {"baseline": before, "docs": before})
    write(project, "new", metric, {"baseline": before, "docs": after})
    old = project.keval("run", "old.yaml", "--json").data["run"]

    ran = project.keval("run", "new.yaml", "--json", "--fail-on-regression", old)
    report = project.keval("report", "latest", "--fail-on-regression", old)
    compared = project.keval("compare", "--json", old, "latest")
    page = project.root / "report.html"
    project.keval("report", "latest", "--html", str(page))

    (effect,) = ran.data["effects"]
    assert (1, "worse") == (ran.code, effect["verdict"])
    assert effect["ci_high"] < 0
    assert effect["p"] < 0.05
    assert {"docs": "failed", "baseline": "undecided"} == {g["condition"]: g["verdict"] for g in ran.data["gates"]}
    assert "worse" in report.stdout
    assert "cannot tell" not in report.stdout
    assert {"docs": "worse", "baseline": "unclear"} == {e["condition"]: e["verdict"] for e in compared.data["effects"]}
    assert ">worse" in page.read_text(encoding="utf-8")


def test_a_verdict_that_one_unlike_question_could_undo_says_so(project: Project) -> None:
    write(project, "few", "number/rating", {"baseline": [0.5] * 20, "docs": [0.4] * 20})
    write(project, "much", "number/rating", {"baseline": [0.9] * 20, "docs": [0.4] * 20})

    few, much = (project.keval("run", f"{name}.yaml") for name in ("few", "much"))

    explained = project.keval("report", few.stderr.splitlines()[-1], "--explain").stdout
    note = "caution  rating: a single question more could change the verdict"
    assert (True, False) == (note in few.stdout, note in much.stdout)
    assert "sure only if no other question changes by more than these do: rating" in explained


def test_primary_metrics_stand_before_exploratory_ones(project: Project) -> None:
    arms = {"baseline": [0.5] * 12, "docs": [0.9] * 12}
    write(project, "eval", "number/balance, number/rating", arms, "primary: [number/rating]")

    outcome = project.keval("run", "eval.yaml", "--fail-under", "number/balance >= 0.1")
    comment = project.keval("report", "latest", "--markdown")

    rows = [line.strip() for line in outcome.stdout.splitlines() if line.startswith("  ")]
    primary, mark, explored = (
        next(n for n, row in enumerate(rows) if row.startswith(start))
        for start in ("rating", "exploratory:", "balance")
    )
    assert primary < mark < explored
    assert "exploratory)" in next(line for line in outcome.stdout.splitlines() if "number/balance >= 0.1" in line)
    assert "judged together" not in outcome.stdout
    assert "better (exploratory)" in comment.stdout
    assert "- docs improves rating by +0.40.\n- Exploratory: docs improves balance by +0.40." in comment.stdout


def test_a_config_without_a_primary_metric_is_told_what_one_would_bring(project: Project) -> None:
    rises = [0.5 + 0.02 * n for n in range(12)]
    write(project, "eval", "number/balance, number/rating", {"baseline": [0.5] * 12, "docs": rises})

    outcome = project.keval("run", "eval.yaml", "--explain")

    told = " ".join(outcome.stdout.split())
    assert "2 comparisons are judged together" in told
    assert "One metric under `primary:` would see it in 80." in told


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("number/ratin", "did you mean 'number/rating'?"),
        ("number", "which is a vendor; name one of its metrics, such as 'number/balance'"),
        ("rating", "did you mean 'number/rating'?"),
        ("usd", "known"),
    ],
)
def test_a_primary_metric_that_is_not_scored_is_refused_where_it_stands(
    project: Project, named: str, hint: str
) -> None:
    write(project, "eval", "number/balance, number/rating", {"baseline": [0.5] * 4}, f"primary:\n  - {named}")

    outcome = project.keval("run", "eval.yaml")

    assert 2 == outcome.code
    assert outcome.stderr.startswith(f"error: eval.yaml:6:5: no metric or rubric named '{named}'")
    assert hint in outcome.stderr


def test_a_selection_may_leave_out_the_primary_metric(project: Project) -> None:
    arms = {"baseline": [0.5] * 4, "docs": [0.6] * 4}
    write(project, "eval", "number/balance, number/rating", arms, "primary: [number/rating]")

    outcome = project.keval("run", "eval.yaml", "--json", "--metric", "number/balance")

    assert (0, []) == (outcome.code, outcome.data["primary"])
    assert ["all"] == [effect["family"] for effect in outcome.data["effects"]]


def test_an_unfinished_run_has_intervals_and_no_verdicts(project: Project) -> None:
    rises = [0.5 + 0.02 * (n % 5) for n in range(20)]
    write(project, "eval", "number/rating", {"baseline": [0.1] * 20, "docs": rises}, "budget: {trials: 24}")
    whole = project.keval("run", "eval.yaml", "--json", "--budget", "trials=40").data["run"]

    outcome = project.keval("run", "eval.yaml", "--fail-on-regression", whole)
    data = project.keval("report", "latest", "--json").data
    comment = project.keval("report", "latest", "--markdown").stdout

    assert 3 == outcome.code
    assert ["interim"] == [effect["verdict"] for effect in data["effects"]]
    assert data["effects"][0]["ci_low"] > 0
    assert "interim, 24 of 40 trials: intervals without verdicts" in " ".join(outcome.stdout.split())
    assert "Interim, 24 of 40 trials." in comment
    assert "With docs against baseline, so far: rating +0." in comment
    assert "undecided (2 means: a run is unfinished)" in " ".join(outcome.stdout.split())
    for word in ("better", "worse", "cannot tell", "improves", "highest", "costs"):
        assert word not in outcome.stdout
        assert word not in comment.partition("<summary>Questions")[0]


def test_what_no_answer_changes_is_a_property_and_no_effect(project: Project) -> None:
    def agents(first: str) -> None:
        project.write(
            q_jsonl="".join(json.dumps({"id": f"q{n}", "question": "?"}) + "\n" for n in range(4)),
            one_jsonl="".join(
                json.dumps({"id": f"q{n}", "response": first if not n else "."}) + "\n" for n in range(4)
            ),
            eval_yaml="""
                dataset: {path: q.jsonl}
                agents:
                  one: {type: recorded, path: one.jsonl, characteristics: {effort: 0.25}}
                  two: {type: recorded, path: one.jsonl, characteristics: {effort: 0.75}}
                conditions: {baseline: {}, docs: {}}
                metrics: [number/effort, double/length]
            """,
        )

    agents(".")
    first, constant = project.keval("run", "eval.yaml"), project.keval("report", "latest", "--explain")
    data: Any = project.keval("report", "latest", "--json").data
    compared = project.keval("compare", "--json", data["run"], project.keval("run", "eval.yaml", "--json").data["run"])
    agents("effortless")
    varying = project.keval("report", project.keval("run", "eval.yaml", "--json").data["run"], "--json").data

    assert {"one": 0.25, "two": 0.75} == {each["agent"]: each["value"] for each in data["properties"]}
    for effects in (data["effects"], compared.data["effects"]):
        assert {"double/length"} == {effect["metric"] for effect in effects}
    told = "properties of agents, which no answer changes\n  effort, one: 0.25\n  effort, two: 0.75\n"
    assert told in constant.stdout
    assert "properties of agents, which no answer changes (one, two): effort 0.25, 0.75\n" in first.stdout
    assert [] == varying["properties"]
    assert {"double/length", "number/effort"} == {effect["metric"] for effect in varying["effects"]}


def test_what_a_metric_says_of_agents_is_a_property_though_their_answers_change_its_scores(project: Project) -> None:
    failed = "Sorry, I couldn't retrieve the weather because the service returned an error; try again later."
    project.write(
        q_jsonl="".join(json.dumps({"id": f"q{n}", "question": "Weather in Oslo?"}) + "\n" for n in range(4)),
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents:
              gadk: {type: recorded, path: gadk.jsonl, characteristics: gadk}
              ms: {type: recorded, path: ms.jsonl, characteristics: ms}
              new: {type: recorded, path: ms.jsonl}
            metrics: [weather]
        """,
        **{
            f"{agent}_jsonl": "".join(
                json.dumps({"id": f"q{n}", "response": failed if n < fails else "It is 5 °C in Oslo."}) + "\n"
                for n in range(4)
            )
            for agent, fails in (("gadk", 0), ("ms", 3))
        },
    )

    printed = project.keval("run", "eval.yaml", "--explain", env={"COLUMNS": "140"}).stdout
    data: Any = project.keval("report", "latest", "--json").data

    told = {(each["metric"], each["agent"]): (each["value"], each["derivation"]) for each in data["properties"]}
    assert {"debuggability", "implementation_effort", "integration_simplicity"} == {
        metric.removeprefix("weather/") for metric, _ in told
    }
    assert {"gadk", "ms"} == {agent for _, agent in told}
    assert (
        0.35,
        "0.5 to begin with, -0.1 manual error handling, -0.1 basic logging, +0.05 moderate documentation",
    ) == told["weather/debuggability", "ms"]
    assert not {metric for metric, _ in told} & {effect["metric"] for effect in data["effects"]}
    assert [0.35] < [
        arm["mean"] for arm in data["arms"] if (arm["agent"], arm["metric"]) == ("ms", "weather/debuggability")
    ]
    heading, *rows = printed[printed.index("properties of agents") :].partition("\n\n")[0].splitlines()
    assert "properties of agents, which no answer changes" == heading
    assert "  implementation effort, gadk: 0.00 (5 files, medium setup, medium code complexity: effort 1" in printed
    assert 3 == sum(", ms: " in row for row in rows)


def test_a_metric_that_cannot_rate_an_agent_is_named_and_the_run_goes_on(project: Project) -> None:
    project.write(
        q_jsonl='{"id": "q", "question": "?"}\n',
        a_jsonl='{"id": "q", "response": "."}\n',
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents:
              known: {type: recorded, path: a.jsonl, characteristics: {rating: 0.5}}
              unknown: {type: recorded, path: a.jsonl}
              beyond: {type: recorded, path: a.jsonl, characteristics: {rating: 7}}
              wordy: {type: recorded, path: a.jsonl, characteristics: {rating: high}}
            metrics: [number/rated]
        """,
    )

    with pytest.warns(PluginWarning) as warned:
        outcome = project.keval("run", "eval.yaml", "--json")

    whose = "the metric 'number/rated' of keval-doubles 1.0 cannot rate the agent"
    unknown, beyond, wordy = (str(warning.message) for warning in warned)
    assert f"{whose} 'unknown': 'rating'" == unknown
    assert f"{whose} 'beyond': the value 7 is outside the scale 0 to 1" == beyond
    assert wordy.startswith(f"{whose} 'wordy': a Score is a number, a text, true or false, and a mapping; got ('high',")
    assert (0, [("known", 0.5)]) == (
        outcome.code,
        [(each["agent"], each["value"]) for each in outcome.data["properties"]],
    )
    assert {None} == {each["category"] for each in outcome.data["scorers"]}


def test_a_property_of_the_only_agent_is_in_its_own_table_alone(project: Project) -> None:
    project.write(
        q_jsonl='{"id": "q", "question": "?"}\n',
        a_jsonl='{"id": "q", "response": "."}\n',
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents: {known: {type: recorded, path: a.jsonl, characteristics: {rating: 0.5}}}
            metrics: [number/rated, double/length]
        """,
    )

    first = project.keval("run", "eval.yaml").stdout
    explained = project.keval("report", "latest", "--explain").stdout.splitlines()

    assert "properties of agents, which no answer changes (known): rated 0.50\n" in first
    assert ["  rated, known: 0.50 (as its author says)"] == [line for line in explained if "rated" in line]
    assert 1 == first.count("rated")
