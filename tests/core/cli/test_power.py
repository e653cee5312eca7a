"""`keval power`: how many questions show an effect, and what they take."""

from __future__ import annotations

import json
import math
from statistics import stdev

import attrs
import pytest

from keval import open_run
from keval.config.load import load
from keval.plan.build import make_plan
from keval_analysis.findings.effects import Repetitions
from keval_analysis.power import Pilot, PowerPlan, PowerTarget, plan_power
from tests.conftest import Project

CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents:
  scripted: {}
contexts:
  notes: {text: "A long and thorough answer follows, as the notes say. "}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length, double/characters, double/neutral]
rubrics: [double/brevity]
judges: {reader: {}}
execution: {num_repetitions: 2, max_concurrent: 4}
"""
USAGE = {"input_tokens": 100, "output_tokens": 7}
SAMPLES = [
    {"id": f"q{number}", "question": "Why? " * (2 * number), "level": 1 + number % 3, "usage": USAGE}
    for number in range(1, 9)
]


@pytest.fixture
def notes(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    return project


def test_without_a_pilot_the_scatter_is_assumed_and_said_to_be(notes: Project) -> None:
    found = notes.keval("power", "eval.yaml", "--effect", "10%", "--json").data

    length = {each["assumed"]: each for each in found["metrics"] if each["metric"] == "double/length"}
    # By G*Power 3.1, a two-sided paired t-test with d = 0.1 and 0.1/sqrt(0.2), alpha 0.05 and power 0.8.
    by_t = {"worst": pytest.approx(787, rel=0.05), "usual": pytest.approx(159, rel=0.12)}
    assert by_t == {name: each["questions_primary"] for name, each in length.items()}
    # Four comparisons are judged together: alpha 0.0125.
    by_t = {"worst": pytest.approx(1117, rel=0.05), "usual": pytest.approx(226, rel=0.06)}
    needed = {name: each["questions"] for name, each in length.items()}
    assert by_t == needed
    assert (needed["usual"] * 2 * 2, 0.1, "all", 4) == tuple(
        length["usual"][key] for key in ("trials", "effect", "family", "family_size")
    )
    rubric = [each for each in found["metrics"] if each["metric"] == "double/brevity"]
    assert dict.fromkeys(needed, 0.2) == {each["assumed"]: each["effect"] for each in rubric}
    assert (None, 8 * 4, needed["usual"]) == (
        found["pilot"],
        found["expense"]["trials"],
        found["needed"]["questions"],
    )


def test_three_agents_are_three_comparisons(notes: Project) -> None:
    agents = "  a: {type: scripted}\n  b: {type: scripted}\n  c: {type: scripted}\n"
    config = CONFIG.replace("  scripted: {}\n", agents).replace("  with_notes: {contexts: [notes]}\n", "")
    notes.write(eval_yaml=f"{config}primary: [double/length]\n")

    found = notes.keval("power", "eval.yaml", "--effect", "50%", "--json").data

    assert {3} == {each["family_size"] for each in found["metrics"] if each["metric"] == "double/length"}


@pytest.mark.slow
def test_the_terminal_says_what_is_assumed_and_what_is_unknown(notes: Project) -> None:
    shown = notes.keval("power", "eval.yaml", "--effect", "10%").stdout

    assert "unknown: characters: its scale is unbounded, so its scatter is unknown without a pilot." in shown
    assert "It is assumed here, not measured" in shown


def test_a_pilot_tells_the_scatter_and_what_trials_take(notes: Project) -> None:
    pilot = notes.keval("run", "eval.yaml", "--json").data

    found = notes.keval("power", "eval.yaml", "--effect", "0.05", "--pilot", "latest", "--json").data

    scores = [
        line for line in notes.lines("scores.jsonl") if (line["metric"], line["repetition"]) == ("double/length", 1)
    ]
    values = {(line["condition"], line["sample"]): line["value"] for line in scores}
    differences = [values["with_notes", sample["id"]] - values["baseline", sample["id"]] for sample in SAMPLES]
    power = {each["metric"]: each for each in found["metrics"]}
    assert stdev(differences) == pytest.approx(power["double/length"]["sd"])
    assert 8 == power["double/length"]["pilot_n"]
    # These answers are the same each time.
    assert 0.0 == power["double/length"]["repetition_share"]
    assert power["double/characters"]["sd"] is not None
    assert "the pilot has fewer than two questions" in power["double/neutral"]["reason"]
    asked, judged = (
        sum(sum(filter(None, each["usage"].values())) for each in pilot[key]) for key in ("trials", "judging")
    )
    assert (8, 32, asked + judged) == tuple(round(found["expense"][key]) for key in ("questions", "trials", "tokens"))
    assert (None, pilot["elapsed"]) == (found["expense"]["usd"], pytest.approx(found["expense"]["seconds"]))


@pytest.mark.slow
def test_the_terminal_says_what_a_pilot_tells(notes: Project) -> None:
    notes.keval("run", "eval.yaml", "-q")

    shown = notes.keval("power", "eval.yaml", "--effect", "0.05", "--pilot", "latest").stdout

    assert "Only more questions help with any metric." in shown
    assert "With 8 questions, the scatter is only known to ±52 %." in shown


def test_what_is_planned_scales_what_the_pilot_took(notes: Project) -> None:
    pilot = notes.keval("run", "eval.yaml", "--json").data

    flags = ("--limit", "4", "--repetitions", "6", "-j", "8")
    found = notes.keval("power", "eval.yaml", "--pilot", "latest", "--json", *flags).data

    assert (4, 48, None) == (found["expense"]["questions"], found["expense"]["trials"], found["needed"])
    assert pilot["elapsed"] * 48 / 32 / 2 == pytest.approx(found["expense"]["seconds"])


def test_the_scatter_is_that_of_the_arms_that_are_planned(notes: Project) -> None:
    notes.write(
        eval_yaml=CONFIG.replace("scripted: {}", 'scripted: {}\n  brief: {type: scripted, suffix: "' + "x" * 60 + '"}')
    )
    notes.keval("run", "eval.yaml", "-q")

    flags = ("--pilot", "latest", "--json")
    both, one, alone = (
        notes.keval("power", "eval.yaml", *flags, *chosen).data["metrics"][0]
        for chosen in ((), ("--agent", "brief"), ("--condition", "baseline"))
    )

    assert ("scripted", "brief", "brief") == (both["agent"], one["agent"], alone["agent"])
    assert (True, "baseline") == (both["sd"] > one["sd"], alone["condition"])


def planned(notes: Project, *, repetitions: int, baseline: float = 1) -> PowerPlan:
    """Plan as if the pilot's differences varied by 0.09, of which 0.04 in each arm's repetitions.

    There were two of each question, of which the baseline kept this share.
    """
    pilot = Pilot.of(open_run("latest"))
    summary = attrs.evolve(
        pilot.summary,
        effects=tuple(attrs.evolve(each, stderr=math.sqrt(0.09 / each.n)) for each in pilot.summary.effects if each.n),
        arms=tuple(
            attrs.evolve(
                arm,
                scored=round(arm.scored * baseline) if arm.condition == "baseline" else arm.scored,
                repetitions=Repetitions(8, 0.2),
            )
            for arm in pilot.summary.arms
        ),
    )
    evaluation = load(notes.root / "eval.yaml")
    evaluation = attrs.evolve(evaluation, execution=attrs.evolve(evaluation.execution, num_repetitions=repetitions))
    return plan_power(make_plan(evaluation), PowerTarget(0.1), attrs.evolve(pilot, summary=summary))


@pytest.mark.slow
@pytest.mark.parametrize(("repetitions", "variance"), [(1, 0.05 + 0.08), (2, 0.05 + 0.04), (8, 0.05 + 0.01)])
def test_repetitions_reduce_their_own_share_of_the_variance(notes: Project, repetitions: int, variance: float) -> None:
    notes.keval("run", "eval.yaml", "-q")

    plan = planned(notes, repetitions=repetitions)
    found = plan.metrics[0]

    assert "double/length" == found.metric
    assert pytest.approx(variance) == (found.sd or 0.0) ** 2
    assert pytest.approx((variance - 0.05) / variance) == found.repetition_share


def test_repetitions_that_one_arm_lost_count_in_that_arm_alone(notes: Project) -> None:
    notes.keval("run", "eval.yaml", "-q")

    found = planned(notes, repetitions=2, baseline=3 / 4).metrics[0]

    # By 16 scores of one arm and 12 of the other, of 8 questions each.
    variance = 0.09 - 0.04 / 2 - 0.04 / 1.5 + 0.08 / 2
    assert pytest.approx((variance, 0.04 / variance)) == ((found.sd or 0.0) ** 2, found.repetition_share)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--effect", "0"], "expected a number above 0 such as 0.1, or a share of the scale such as 10%, got '0'"),
        (["--effect", "much"], "expected a number above 0"),
        (["--condition", "baseline"], "there is nothing to compare; add another"),
        (["--pilot", "absent"], "no run 'absent'"),
    ],
)
def test_what_cannot_be_planned_is_an_error(notes: Project, flags: list[str], told: str) -> None:
    outcome = notes.keval("power", "eval.yaml", *flags)

    assert (2, True) == (outcome.code, told in outcome.stderr), outcome.stderr


def test_a_pilot_without_the_metrics_of_the_config_is_an_error(notes: Project) -> None:
    notes.keval("run", "eval.yaml", "--metric", "double/length", "-q")
    head, _ = CONFIG.split("metrics: ")
    notes.write(other_yaml=head + "metrics: [double/grade]\n")

    outcome = notes.keval("power", "other.yaml", "--pilot", "latest")

    assert (2, True) == (outcome.code, "has none of the config's metrics, such as 'double/grade'" in outcome.stderr)


def test_an_effect_that_a_scale_does_not_hold_is_unknown(notes: Project) -> None:
    found = notes.keval("power", "eval.yaml", "--effect", "1.5", "--json").data

    reasons = {each["metric"]: each["reason"] for each in found["metrics"]}
    assert ("beyond the scale", "") == (reasons["double/length"], reasons["double/brevity"])


@pytest.mark.slow
def test_a_primary_metric_needs_fewer_questions_than_one_of_many(notes: Project) -> None:
    notes.write(primary_yaml=CONFIG + "primary: [double/length]\n")
    notes.keval("run", "eval.yaml", "-q")

    flags = ("--effect", "0.05", "--pilot", "latest")
    together, apart = (notes.keval("power", f"{name}.yaml", *flags, "--json").data for name in ("eval", "primary"))
    shown = notes.keval("power", "primary.yaml", *flags).stdout

    first, second = (next(m for m in each["metrics"] if m["metric"] == "double/length") for each in (together, apart))
    families = {each["metric"]: (each["family"], each["family_size"]) for each in apart["metrics"]}
    assert {"double/length": ("primary", 1), "double/characters": ("exploratory", 3)}.items() <= families.items()
    assert first["questions"] > second["questions"] == first["questions_primary"]
    assert second["questions"] == apart["needed"]["questions"]
    told = " ".join(shown.split())
    assert "with 1 primary and 3 exploratory comparisons, which are judged apart" in told
    assert "for every primary metric:" in told
