"""What planted judges make of the form of answers, of their place, and of the same answer seen again."""

from __future__ import annotations

import re

import pytest

from keval import Run
from keval_instrument.bias import examine
from keval_instrument.check_folder import Material
from keval_instrument.findings import Examined
from keval_instrument.restyling import restyled_answers
from tests.conftest import Project
from tests.instruments import run_of_answers

GOLDEN = {
    f"q{number}": f"The server Tarn listens on port {7000 + number}. Set `listen_port` in its file, and then reload it."
    for number in range(20)
}
ANSWERS = [
    (sample, condition, text.replace("port 7", "port 8"))
    for sample, text in GOLDEN.items()
    for condition in ("baseline", "with_docs")
]
"""Answers with one mistake, so that a judge has room for a better level and for a worse one."""


def examined(project: Project, judge: str, *, gradings: int = 1) -> Examined:
    scorers = f"judges: {{it: {judge}}}\nrubrics: [factual_adherence]"
    asked = run_of_answers(project, "asked", ANSWERS, scorers, golden=GOLDEN, gradings=gradings)
    return examine(Material(asked=asked, restyled=restyled(project, asked, scorers)))


def restyled(project: Project, asked: Run, scorers: str) -> Run:
    written = [(each.sample, each.condition, each.text) for each in restyled_answers(asked, seed=1)]
    assert [*dict.fromkeys(condition for _, condition, _ in written)] == ["plain", "padded", "format", "style"]
    return run_of_answers(project, "restyled", written, scorers.replace("with_docs", "baseline"), golden=GOLDEN)


TOLD = [
    "Set `listen_port` to 7001, as 2**3 and 3**2 are taken; `__init__` does the rest. It takes -5 ms.",
    "# Ports\n\n1. **Tarn** takes 7001.\n2. Set it\n   - and reload\n\n```sh\ntarn reload  # now\n```\nThat is all.",
    "| port | of |\n|---|---|\n| 7001 | Tarn |\n\nSee **the manual**, e.g. page 3. It is long.",
    '{"port": 7001}',
]


def test_restyled_answers_say_all_that_they_said_before(project: Project) -> None:
    answers = [(f"q{place}", "baseline", text) for place, text in enumerate(TOLD)]
    golden = {sample: "x" for sample, *_ in answers}
    run = run_of_answers(project, "asked", answers, "metrics: [double/length]", golden=golden)
    written = {(each.sample, each.condition): each.text for each in restyled_answers(run, seed=1)}

    assert {"plain"} == {condition for sample, condition in written if sample == "q3"}
    for (sample, condition), text in written.items():
        said, before = (re.findall(r"\w+|-5|\*\*\d", each) for each in (text, written[sample, "plain"]))
        rest = iter(said)
        missing = [word for word in before if word not in ("1", "2", "sh") and word not in rest]
        assert (condition, []) == (condition, missing)
        assert (condition == "plain") == (text == written[sample, "plain"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "shifted"),
    [
        ("", []),
        ("long: 1", ["padded", "style"]),
        ("listed: -1", ["format"]),
        ("likes: 'Certainly!'", ["style"]),
    ],
)
def test_a_judge_is_named_by_what_shifts_it(project: Project, planted: str, shifted: list[str]) -> None:
    found = examined(project, f"{{type: planted/judge, {planted}}}")

    shifts = {each.of["way"]: each.value for each in found.figures if each.name == "shift"}
    assert shifted == [way for way, value in shifts.items() if value]
    assert [-1.0 if "-1" in planted else 1.0] * len(shifted) == [shifts[way] for way in shifted]
    assert len(shifted) == len(found.defects)
    assert all("factual_adherence by it: " in each.problem for each in found.defects)


@pytest.mark.slow
@pytest.mark.parametrize(("chance", "steady"), [(0.0, True), (0.1, False)])
def test_a_judge_that_is_random_on_a_tenth_is_unsteady(project: Project, chance: float, steady: bool) -> None:
    found = examined(project, f"{{type: planted/judge, chance: {chance}}}", gradings=3)

    (same,) = (each for each in found.figures if each.name == "repeat")
    assert same.n == 40
    assert (same.value == 1.0) == steady
    assert ([] if steady else ["factual_adherence by it"]) == [
        each.problem.partition(":")[0] for each in found.defects if "temperature" in each.problem
    ]


def test_a_judge_that_was_asked_once_tells_nothing_of_repeats(project: Project) -> None:
    found = examined(project, "{type: planted/judge}")

    (same,) = (each for each in found.figures if each.name == "repeat")
    assert (None, "each answer was graded once; two or more `judge_repetitions` show it") == (same.value, same.reason)


@pytest.mark.parametrize("planted", ["", "longer: true"])
def test_a_judge_that_prefers_the_first_answer_is_named(project: Project, planted: str) -> None:
    scorers = f"judges: {{it: {{type: planted/first, {planted}}}}}"
    answers = [(sample, arm, text + " Done." * (arm == "with_docs")) for sample, arm, text in ANSWERS]
    found = examine(Material(asked=run_of_answers(project, "asked", answers, scorers, golden=GOLDEN)))

    values = {each.name: (each.value, each.n) for each in found.figures if each.name in ("position", "inconsistent")}
    share = 0.0 if planted else 1.0
    assert {"position": (share, 20), "inconsistent": (share, 20)} == values
    assert ([] if planted else ["preference by it: the answer that stands first is preferred more often"]) == [
        each.problem.partition(" than the other")[0] for each in found.defects
    ]
