"""Effects in a summary: recorded answers that are numbers, scored as the number that they are."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from scipy import stats

from tests.conftest import Project

Arm: TypeAlias = tuple[str, str]
Answers: TypeAlias = Mapping[Arm, Mapping[str, Sequence[object]]]
"""By agent and condition: what is answered to each sample, once per repetition; an exception is a failed trial."""

USAGE = {"input_tokens": 400, "output_tokens": 50}
SAMPLES = ("a", "b", "c", "d", "e", "f")
BEFORE = (0.1, 0.3, 0.2, 0.6, 0.5, 0.4)
AFTER = (0.5, 0.6, 0.4, 0.9, 1.0, 0.6)


def evaluated(project: Project, answers: Answers, more: str = "", samples: Sequence[dict[str, Any]] = ()) -> Any:
    """Run an evaluation of recorded answers, and return its summary."""
    agents = dict.fromkeys(agent for agent, _ in answers)
    ids = dict.fromkeys(sample for by_sample in answers.values() for sample in by_sample)
    known = samples or [{"id": name} for name in ids]
    lines(project.root / "q.jsonl", [{"question": f"{sample['id']}?", **sample} for sample in known])
    for name in agents:
        lines(
            project.root / f"{name}.jsonl",
            [
                {"id": sample, "condition": condition, "response_time": 1.0}
                | ({"error": str(answer)} if isinstance(answer, Exception) else {"response": str(answer)})
                for (agent, condition), by_sample in answers.items()
                if agent == name
                for sample, given in by_sample.items()
                for answer in given
            ],
        )
    conditions = "\n".join(f"  {condition}: {{}}" for condition in dict.fromkeys(condition for _, condition in answers))
    listed = "\n".join(f"  {agent}: {{type: recorded, path: {agent}.jsonl}}" for agent in agents)
    config = f"agents:\n{listed}\nconditions:\n{conditions}\n{more}"
    if "metrics:" not in more:
        config = f"metrics: [number/rating]\n{config}"
    if "dataset:" not in more:
        config = f"dataset: {{path: q.jsonl}}\n{config}"
    (project.root / "eval.yaml").write_text(config, encoding="utf-8")
    outcome = project.keval("run", "eval.yaml", "--json")
    assert outcome.code in (0, 3), outcome.stderr
    return outcome.data


def lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def once(values: Sequence[object]) -> dict[str, list[object]]:
    return {sample: [value] for sample, value in zip(SAMPLES, values, strict=True)}


def test_an_effect_is_what_a_paired_test_says(project: Project) -> None:
    summary = evaluated(project, {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(AFTER)})

    (effect,) = summary["effects"]
    differences = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]
    expected = stats.ttest_rel(AFTER, BEFORE)
    ends = expected.confidence_interval(0.95)
    assert ("condition", "better", 6, 0) == (effect["kind"], effect["verdict"], effect["n"], effect["dropped"])
    assert {"agent": "one", "condition": "baseline", "run": summary["run"]} == effect["against"]
    assert pytest.approx(statistics.fmean(differences)) == effect["difference"]
    assert pytest.approx((statistics.fmean(AFTER), statistics.fmean(BEFORE))) == (
        effect["mean"],
        effect["against_mean"],
    )
    assert pytest.approx(statistics.fmean(differences) / statistics.stdev(differences)) == effect["d"]
    # The interval is never narrower than that of t, and never wider than what the scale leaves possible.
    assert effect["ci_low"] <= ends.low + 1e-9
    assert ends.high - 1e-9 <= effect["ci_high"]
    assert effect["worst_case"][0] < effect["ci_low"]
    assert effect["ci_high"] < effect["worst_case"][1]
    assert effect["p"] >= expected.pvalue - 1e-9


def test_every_kind_of_effect_is_a_family_of_its_own(project: Project) -> None:
    arms = {(agent, condition) for agent in ("one", "two", "three") for condition in ("baseline", "with_docs")}
    shifted = {arm: once([value + 0.01 * number for value in BEFORE]) for number, arm in enumerate(sorted(arms))}

    summary = evaluated(project, shifted)

    found = [(e["kind"], e["agent"], e["condition"], e["against"]["agent"]) for e in summary["effects"]]
    kinds = [kind for kind, *_ in found]
    assert "\ntwo against three\n" in project.keval("report", "latest").stdout
    # The first agent is what the other two are to beat, and these are held against each other, too.
    pairs = [("three", "one"), ("two", "one"), ("two", "three")]
    assert (6, 3) == (kinds.count("agent"), kinds.count("condition"))
    assert sorted(pairs * 2) == sorted((agent, against) for kind, agent, _, against in found if kind == "agent")
    for kind in ("agent", "condition"):
        family = [e for e in summary["effects"] if e["kind"] == kind]
        least = min(family, key=lambda e: e["p"])
        assert pytest.approx(min(1.0, least["p"] * len(family))) == least["p_adjusted"]
    assert 2 == len(summary["interactions"])


def test_an_interaction_is_the_difference_of_two_effects(project: Project) -> None:
    summary = evaluated(
        project,
        {
            ("one", "baseline"): once(BEFORE),
            ("one", "with_docs"): once(BEFORE),
            ("two", "baseline"): once(BEFORE),
            ("two", "with_docs"): once(AFTER),
        },
    )

    (found,) = summary["interactions"]
    assert ("with_docs", "two", "one", 6) == (found["condition"], found["agent"], found["against_agent"], found["n"])
    assert pytest.approx(statistics.fmean(AFTER) - statistics.fmean(BEFORE)) == found["difference"]
    assert found["ci_low"] > 0


def test_repeating_every_answer_narrows_nothing(project: Project) -> None:
    arms = {("one", "baseline"): BEFORE, ("one", "with_docs"): AFTER}
    single = evaluated(project, {arm: once(values) for arm, values in arms.items()})
    thrice = evaluated(project, {arm: {k: v * 3 for k, v in once(values).items()} for arm, values in arms.items()})

    keys = ("n", "difference", "stderr", "ci_low", "ci_high", "p", "mde")
    (before,), (after,) = single["effects"], thrice["effects"]
    assert pytest.approx([before[key] for key in keys]) == [after[key] for key in keys]
    ends = [[(arm["ci_low"], arm["ci_high"]) for arm in summary["arms"]] for summary in (single, thrice)]
    assert [pytest.approx(pair) for pair in ends[0]] == ends[1]


def test_repetitions_say_how_often_a_question_passes(project: Project) -> None:
    answers = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [0.0, 0.0], "d": [0.6, 1.0]}

    summary = evaluated(project, {("one", "baseline"): answers}, "thresholds: {number/rating: 0.5}")

    found = summary["arms"][0]["repetitions"]
    assert (4, 0.5) == (found["samples"], found["threshold"])
    assert pytest.approx(((0.5 + 0.08) / 4) ** 0.5) == found["sd"]
    assert pytest.approx(1 / 4) == found["flip_rate"]
    assert {"1": 0.625, "2": 0.75} == found["pass_at"]
    assert {"1": 0.625, "2": 0.5} == found["pass_all"]


def test_samples_of_one_source_count_together(project: Project) -> None:
    arms = {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(AFTER)}
    samples = [{"id": name, "document": "x" if name in "abc" else name} for name in SAMPLES]

    alone = evaluated(project, arms)
    together = evaluated(project, arms, "dataset: {path: q.jsonl, cluster_key: document}", samples)

    (before,), (after,) = alone["effects"], together["effects"]
    assert (before["n"], before["difference"]) == (after["n"], after["difference"])
    assert after["stderr"] != before["stderr"]
    assert after["ci_high"] - after["ci_low"] > before["ci_high"] - before["ci_low"]


def test_lost_samples_are_told_and_bound_the_effect(project: Project) -> None:
    lost = RuntimeError("the server broke")
    after = [lost, *AFTER[1:4], "neutral", AFTER[5]]

    summary = evaluated(project, {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(after)})

    (effect,) = summary["effects"]
    kept = [AFTER[n] - BEFORE[n] for n in (1, 2, 3, 5)]
    assert (4, 2) == (effect["n"], effect["dropped"])
    assert pytest.approx(statistics.fmean(kept)) == effect["difference"]
    # The lost answer scores 0 or 1; the neutral one had nothing to judge, and is none of the five.
    assert pytest.approx(((sum(kept) - BEFORE[0]) / 5, (sum(kept) + 1 - BEFORE[0]) / 5)) == (
        effect["bound_low"],
        effect["bound_high"],
    )


def test_neutral_scores_bound_the_effect_where_arms_have_unlike_shares(project: Project) -> None:
    """Whether there is something to judge is decided by the answer, so that arms may be held to unlike questions."""
    after = ["neutral", *AFTER[1:]]

    alike = evaluated(project, {("one", "baseline"): once(["neutral", *BEFORE[1:]]), ("one", "with_docs"): once(after)})
    unlike = evaluated(project, {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(after)})

    kept = [AFTER[n] - BEFORE[n] for n in range(1, 6)]
    assert (None, None) == (alike["effects"][0]["neutral_low"], alike["effects"][0]["neutral_high"])
    assert pytest.approx(((sum(kept) - BEFORE[0]) / 6, (sum(kept) + 1 - BEFORE[0]) / 6)) == (
        unlike["effects"][0]["neutral_low"],
        unlike["effects"][0]["neutral_high"],
    )


def test_primary_metrics_are_judged_first_and_by_themselves(project: Project) -> None:
    after = [f"{value}{'0' * digits}" for digits, value in enumerate(AFTER)]
    arms = {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(after)}
    metrics = "metrics: [number/rating, double/length, double/characters, basic/contains: {all_of: [x]}]"

    together = evaluated(project, arms, metrics)
    apart = evaluated(project, arms, f"{metrics}\nprimary: [number/rating]")

    def told(summary: Any) -> dict[str, tuple[str | None, int]]:
        return {e["metric"]: (e["family"], e["family_size"]) for e in summary["effects"]}

    # No answer contains an x, and such an effect is in no family.
    assert {None: 1, "all": 3} == Counter(family for family, _ in told(together).values())
    assert ("primary", 1) == told(apart)["number/rating"]
    assert {(None, 0), ("exploratory", 2)} == {of for name, of in told(apart).items() if name != "number/rating"}
    of = "number/rating"
    first, second = (next(e for e in each["effects"] if e["metric"] == of) for each in (together, apart))
    assert first["p"] == second["p"] == second["p_adjusted"] < first["p_adjusted"]
    assert (None, ["number/rating"]) == (apart["family_power"], apart["primary"])
    power = together["family_power"]
    assert (3, 1) == (power["comparisons"], power["primary_comparisons"])
    assert 0.5 < power["power"] < power["primary_power"] == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([0.51, 0.59, 0.4, 0.91, 0.99, 0.6], "unclear"),  # of six questions, others may be unlike
        ([value / 10 for value in AFTER], "worse"),
        ([0.9, 0.2, 0.8, 0.1, 0.7, 0.3], "unclear"),
    ],
)
def test_what_is_the_same_what_is_worse_and_what_nobody_can_tell(
    project: Project, after: Sequence[float], verdict: str
) -> None:
    summary = evaluated(project, {("one", "baseline"): once(AFTER), ("one", "with_docs"): once(after)})

    (effect,) = summary["effects"]
    assert (verdict, None) == (effect["verdict"], effect["needed_samples"])  # six questions are too few to say
    assert effect["mde"] > (abs(effect["difference"]) if verdict == "unclear" else 0)


@pytest.mark.parametrize(("count", "verdict"), [(50, "unclear"), (100, "same")])
def test_no_difference_is_said_where_others_that_lose_much_would_have_been_seen(
    project: Project, count: int, verdict: str
) -> None:
    """Of 50 questions, none is among the 7 % that lose 0.9 in one of 40 runs."""
    before = {f"s{number}": [0.5 + number % 7 / 20] for number in range(count)}
    after = {
        name: [values[0] + (0.004 if number % 2 else -0.004)] for number, (name, values) in enumerate(before.items())
    }

    summary = evaluated(project, {("one", "baseline"): before, ("one", "with_docs"): after})

    (effect,) = summary["effects"]
    assert (verdict, 2) == (effect["verdict"], len(effect["worst_case"]))
    assert max(map(abs, (effect["ci_low"], effect["ci_high"]))) < 0.05
    told = "no difference as large as 0.05: rating"
    assert (verdict == "same") == (told in project.keval("report", summary["run"]).stdout)


def test_questions_with_equal_scores_are_counted(project: Project) -> None:
    same = {("one", "baseline"): once(BEFORE), ("one", "with_docs"): once(BEFORE)}

    summary = evaluated(project, same)

    assert "equal on all 6 questions: rating" in project.keval("report", summary["run"]).stdout


def test_questions_with_equal_scores_share_a_line_whatever_their_number(project: Project) -> None:
    whole, part = once(BEFORE), dict([*once(BEFORE).items()][:4])
    arms = {(agent, arm): of for agent, of in (("one", whole), ("two", part)) for arm in ("baseline", "with_docs")}

    summary = evaluated(project, arms)

    assert "equal on all questions: rating 6 (one), 4 (two)" in project.keval("report", summary["run"]).stdout


@pytest.mark.parametrize("lost", ["unscored", "neutral"])
def test_no_verdict_is_given_where_the_scores_that_are_lost_could_decide(project: Project, lost: str) -> None:
    """Two arms are alike, but for one that has no score for a third of its wrong answers."""
    answers = {f"s{number}": 0.9 if number % 2 else 0.1 + number % 3 / 50 for number in range(40)}
    more = {name: [lost if number % 6 == 0 else value + 0.02] for number, (name, value) in enumerate(answers.items())}
    before = {name: [value] for name, value in answers.items()}

    summary = evaluated(project, {("one", "baseline"): before, ("one", "with_docs"): more})

    (effect,) = summary["effects"]
    assert (True, "unclear") == (effect["p_adjusted"] < 0.05, effect["verdict"])
    told = project.keval("report", summary["run"]).stdout
    assert "cannot tell, as lost scores could decide: rating" in told
    words = {"unscored": "so many scores are lost that they could decide", "neutral": "judged on far fewer answers"}
    assert f"rating: {words[lost]}" in told


def test_a_score_that_neither_arm_has_is_not_lost(project: Project) -> None:
    before = once(["unscored", *BEFORE[1:]])
    after = once(["unscored", *AFTER[1:]])

    (effect,) = evaluated(project, {("one", "baseline"): before, ("one", "with_docs"): after})["effects"]

    assert (5, None, "better") == (effect["n"], effect["bound_low"], effect["verdict"])


def test_differences_that_are_all_equal_do_not_show_how_little_could_be_seen(project: Project) -> None:
    arms = {("one", "baseline"): once([0.25] * 6), ("one", "with_docs"): once([0.5] * 6)}

    (effect,) = evaluated(project, arms)["effects"]

    assert (0.0, None, "better") == (effect["stderr"], effect["needed_samples"], effect["verdict"])
    assert pytest.approx(0.5**6) == effect["p"]
    assert pytest.approx((effect["ci_high"] - effect["ci_low"]) / 2) == effect["mde"]


def test_what_an_answer_takes_is_compared_like_a_score(project: Project) -> None:
    project.write(q_jsonl="".join(json.dumps({"id": name, "question": "?"}) + "\n" for name in SAMPLES))
    answers = [
        {
            "id": name,
            "condition": condition,
            "response": "1",
            "response_time": seconds,
            "usage": USAGE,
            "tool_calls": calls,
        }
        for position, name in enumerate(SAMPLES)
        for condition, seconds, calls in (("baseline", 1.0 + position, 0), ("with_docs", 3.0 + 1.1 * position, 2))
    ]
    lines(project.root / "one.jsonl", answers)
    config = "agents: {one: {type: recorded, path: one.jsonl}}\nconditions: {baseline: {}, with_docs: {}}\n"
    (project.root / "eval.yaml").write_text(
        "dataset: {path: q.jsonl}\nmetrics: [number/rating]\n" + config, encoding="utf-8"
    )

    summary = project.keval("run", "eval.yaml", "--json").data

    found = {effect["metric"]: effect for effect in summary["expenses"]}
    assert {"seconds", "tokens", "tool_calls"} == found.keys()
    assert (pytest.approx(2.25), "worse") == (found["seconds"]["difference"], found["seconds"]["verdict"])
    assert (2.0, 0.0) == (found["tool_calls"]["difference"], found["tokens"]["difference"])


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("thresholds: {number/ratng: 0.5}", "eval.yaml:7:14: no metric or rubric named 'number/ratng'; did you mean"),
        ("thresholds: {number/rating: 5}", "eval.yaml:7:29: the scale of 'number/rating' is from 0 to 1, got 5"),
        (
            "dataset: {path: q.jsonl, cluster_key: documnt}",
            "no sample has the metadata 'documnt'; did you mean 'document'?",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_at_its_place(project: Project, written: str, told: str) -> None:
    project.write(
        q_jsonl='{"id": "a", "question": "a?", "document": "x"}\n', one_jsonl='{"id": "a", "response": "1"}\n'
    )
    dataset = "" if "dataset" in written else "dataset: {path: q.jsonl}\n"
    agents = (
        "agents:\n  one: {type: recorded, path: one.jsonl}\nconditions:\n  baseline: {}\nmetrics: [number/rating]\n"
    )
    (project.root / "eval.yaml").write_text(dataset + agents + written + "\n", encoding="utf-8")

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert told in outcome.stderr
