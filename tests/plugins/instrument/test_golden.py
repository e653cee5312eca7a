"""Golden answers and damaged ones, as scorers see them: planted judges are named by what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from keval import Run, Sample
from keval_instrument.check_folder import Material
from keval_instrument.damages import CONDITIONS, GOLDEN, written_answers
from keval_instrument.findings import Examined
from keval_instrument.golden import examine
from tests.conftest import Project
from tests.instruments import run_of_answers

SCORERS = """
judges:
  sound: {type: planted/judge}
  lenient: {type: planted/judge, lenient: 2}
  always: {type: planted/judge, always: 5}
  random: {type: planted/judge, chance: 0.3}
  strict: {type: planted/judge, strict: true}
rubrics: [factual_adherence]
metrics: [basic/equals, basic/latency, number/effort, {basic/regex: {pattern: '^'}}]
"""
FORMS = (
    "The server in {} listens on port {}. It is not reloaded by itself; it waits {} minutes for that.",
    "Sign in at {}, where {} people are known. The code cannot be read again after {} hours.",
    "Boats leave {} at noon and carry {} guests. Tickets are sold on board; they are good for {} days.",
)
PLACES = ("Oslo or Riga", "Rome or Bari", "Lima or Cusco", "Kyoto or Nara", "Bergen or Narvik", "Turku or Rauma")
GOLDENS = {
    f"q{place}": FORMS[place % 3].format(names, 7000 + 11 * place, place + 2) for place, names in enumerate(PLACES)
}


def damaged_run(project: Project, scorers: str = SCORERS, goldens: dict[str, str] = GOLDENS, **options: Any) -> Run:
    samples = [Sample(name, f"What of {name}?", golden) for name, golden in goldens.items()]
    answers = [(each.sample, each.condition, each.text) for each in written_answers(samples, seed=0)]
    return run_of_answers(project, "damaged", answers, scorers, golden=goldens, **options)


def values(examined: Examined, name: str, scorer: str) -> dict[str, float | None]:
    """The values of a figure of a scorer, by the condition; that of all of them stands under an empty text."""
    return {
        figure.of.get("damage", ""): figure.value
        for figure in examined.figures
        if figure.name == name and figure.of.get("scorer", "").endswith(scorer)
    }


def test_each_planted_scorer_is_named_by_what_is_wrong_with_it(project: Project) -> None:
    run = damaged_run(project)

    found = examine(Material(damaged=run))

    harmful = {name for name, damage in CONDITIONS.items() if damage.harmful}
    sound = values(found, "detection", "by sound")
    assert sound.keys() == {"", *harmful} - {"left_out-half"}
    assert {name: value for name, value in sound.items() if name and value != 1.0} == {}
    assert set(values(found, "false_alarm", "by sound").values()) == {0.0}
    lenient = values(found, "detection", "by lenient")
    assert (lenient["number-1"], lenient["negation"], lenient["other"], lenient["empty"]) == (0.0, 0.0, 1.0, 1.0)
    assert set(values(found, "detection", "by always").values()) == {0.0}
    assert values(found, "golden", "by strict") == {"": 1.0}
    assert values(found, "false_alarm", "by strict") == {"padded": 1.0, "reworded": 1.0}
    told = "\n".join(defect.problem for defect in found.defects)
    assert "by sound" not in told
    assert "factual_adherence by always gives every answer 5, damaged and empty ones as well" in told
    assert "factual_adherence by strict scores reworded golden answers worse, 100 % of 6" in told
    random = [defect.sample for defect in found.defects if "by random gives the golden answer" in defect.problem]
    share = values(found, "golden", "by random")[""]
    assert 0 < len(random) == round(6 * (1 - (share or 0)))
    assert None not in random
    reasons = {
        figure.of["scorer"]: figure.reason
        for figure in found.figures
        if figure.value is None and not figure.of.get("damage")
    }
    assert reasons == {
        "basic/latency": "it scored no golden answer: it is not known how long the trial took",
        "number/effort": "it is about the agent, not about the answer",
        "basic/regex": "it gives all answers to a question the same score: it is not about the answer",
    }


def test_what_no_scorer_notices_is_told(project: Project) -> None:
    run = damaged_run(project, "judges: {lenient: {type: planted/judge, lenient: 2}}\nrubrics: [factual_adherence]")

    found = examine(Material(damaged=run))

    kinds = {defect.problem.split("'")[1] for defect in found.defects if defect.problem.startswith("no scorer notices")}
    assert {"number-1", "name-1", "negation"} <= kinds


def test_few_answers_give_no_share_and_samples_of_one_source_are_one_unit(project: Project) -> None:
    few = examine(Material(damaged=damaged_run(project, goldens={key: GOLDENS[key] for key in ("q0", "q1", "q2")})))
    (project.root / "damaged.yaml").unlink()
    clustered = run_of_answers(
        project,
        "clustered",
        [(each, condition, text) for each in GOLDENS for condition, text in ((GOLDEN, GOLDENS[each]), ("empty", ""))],
        "metrics: [basic/equals]",
        golden=GOLDENS,
        cluster=", cluster_key: source",
    )

    shares = {figure.name: figure for figure in few.figures if figure.of == {"scorer": "basic/equals"}}
    assert (shares["golden"].value, shares["golden"].reason) == (None, "3 answers, and a share or mean takes 5")
    figures = examine(Material(damaged=clustered)).figures
    assert {(figure.value, figure.low) for figure in figures if figure.name == "detection"} == {(1.0, None)}


def test_the_better_end_of_a_scale_counts_and_what_was_not_scored_does_not(project: Project) -> None:
    goldens = {f"q{number}": "0.9" for number in range(8)}
    damaged = ["0.8", "0.80", "1.0", "neutral", "unscored", "0.8", "0.8", "0.8"]
    answers = [
        (sample, condition, text)
        for sample, other in zip(goldens, damaged, strict=True)
        for condition, text in ((GOLDEN, "0.9"), ("number-1", other))
    ]
    run = run_of_answers(
        project, "low", answers, "metrics: [number/rating, double/characters, number/waste]", golden=goldens
    )

    found = examine(Material(damaged=run))

    assert values(found, "detection", "number/rating") == {"number-1": pytest.approx(5 / 6), "": pytest.approx(5 / 6)}
    assert values(found, "drop", "number/rating") == {"number-1": pytest.approx(0.4 / 6)}
    assert values(found, "unscored", "number/rating") == {"": 2.0}
    assert (
        values(found, "detection", "number/waste")[""] == values(found, "detection", "double/characters")[""] == 3 / 8
    )
    assert values(found, "drop", "double/characters") == {"number-1": pytest.approx(3.0 * (1 + 4 + 5) / 8)}
    assert values(found, "golden", "double/characters") == {"": 1.0}
    assert values(found, "golden", "number/waste") == {"": 0.0}
    (told,) = [defect.problem for defect in found.defects if "number/waste" in defect.problem]
    assert told.startswith("number/waste gives 8 of 8 golden answers a worse score than 0")


def test_without_a_run_or_scores_there_is_a_reason(project: Project) -> None:
    assert examine(Material(reasons={"damaged": "no key"})) == Examined("golden", reason="no key")
    unscored = damaged_run(project, "metrics: [basic/latency]")
    assert (
        examine(Material(damaged=unscored)).reason
        == "no golden answer was scored; basic/latency: it is not known how long the trial took"
    )
