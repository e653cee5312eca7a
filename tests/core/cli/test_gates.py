"""Gates in the config and by flags: what is printed, kept and exited with."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from tests.conftest import Project

CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts:
  notes: {text: "A long and thorough answer follows, as the notes say. "}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length]
execution: {retry: {max_attempts: 1}}
"""
LENGTHS = ("a", "bb", "ccc")


def questions(names: Sequence[str] = LENGTHS, **changed: Any) -> str:
    return "".join(json.dumps({"id": name, "question": f"{name}?" * 5, **changed}) + "\n" for name in names)


@pytest.fixture
def project(project: Project) -> Project:
    """Give every verdict a line of its own."""
    return attrs.evolve(project, environ={"COLUMNS": "400"})


@pytest.fixture
def notes(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl=questions())
    return project


def gated(project: Project, *gates: str) -> Project:
    """Let the config of a project end with these gates."""
    project.write(eval_yaml=CONFIG + "gates:\n" + "".join(f"  - {gate}\n" for gate in gates))
    return project


def lines(stdout: str) -> list[str]:
    """The verdicts without their alignment, a line each, although gates that held may share one."""
    told = [line.removeprefix("gates") for line in stdout[stdout.index("gates  ") :].splitlines()]
    found = [" ".join(line.split()) for line in told if line.startswith("  ")]
    shared = [re.fullmatch(r"(?:all )?\d+ held: (.*)", line) for line in found]
    gates = [[f"{gate} held" for gate in each[1].split(", ")] if each else None for each in shared]
    return [verdict for line, of in zip(found, gates, strict=True) for verdict in of or [line]]


def test_each_verdict_is_printed_and_the_failed_ones_first(notes: Project) -> None:
    gated(notes, "double/length >= 0.6", "with_notes/double/length >= +0.9", "usd <= 2", "failures <= 5%")

    outcome = notes.keval("run", "eval.yaml")

    assert 1 == outcome.code
    told = [line.partition(" (")[0] for line in lines(outcome.stdout)]
    assert [
        "with_notes/double/length >= +0.9 failed",
        "usd <= 2 undecided",
        "double/length >= 0.6 held",
        "scripted:baseline/failures <= 5% held",
        "scripted:with_notes/failures <= 5% held",
    ] == told
    explained = lines(notes.keval("report", "latest", "--explain").stdout)
    assert "held (0.0 %; 0 of 3 trials)" in explained[4]


def test_verdicts_are_kept_with_what_they_decided_on(notes: Project) -> None:
    gated(notes, "double/length >= 0.5", "low(with_notes/double/length) > 0")

    outcome = notes.keval("run", "eval.yaml", "--json", "--fail-under", "scripted:double/length >= +0.9")

    assert 1 == outcome.code
    assert notes.read("summary.json") == outcome.data
    first, _, last = outcome.data["gates"]
    arm = {"agent": "scripted", "condition": "with_notes", "metric": "double/length", "judge": None}
    assert {
        **arm,
        "gate": "double/length >= 0.5",
        "written": "double/length >= 0.5",
        "verdict": "held",
        "kind": "score",
        "decided_on": "mean",
        "op": ">=",
        "threshold": 0.5,
    }.items() <= first.items()
    assert pytest.approx(0.68) == first["value"]
    assert ("failed", "effect", 0.9) == (last["verdict"], last["kind"], last["threshold"])
    assert pytest.approx(0.53) == last["value"]
    assert "scripted:double/length >= +0.9 failed (+0.53" in lines(outcome.stderr)[0]


def test_every_mistake_is_told_at_its_place_with_the_others(notes: Project) -> None:
    gated(
        notes,
        "double/lenght >= 0.5",
        "'wth_notes/double/length >= +0.1'",
        "double/length > high",
        "0.8",
        "'lo(double/length) >= 0.5'",
    )
    config = (notes.root / "eval.yaml").read_text(encoding="utf-8").replace("name:", "nmae:")
    notes.write(eval_yaml=config)

    outcome = notes.keval("run", "eval.yaml", "--fail-under", "scriptd:double/length >= 0.5")

    assert 2 == outcome.code
    remedy = "write one, such as 'basic/contains >= 0.8'"
    told = [line.removeprefix("error: ") for line in outcome.stderr.splitlines()]
    assert [
        "--fail-under scriptd:double/length >= 0.5: no agent named 'scriptd'; did you mean 'scripted'?",
        "eval.yaml:1:1: unknown key 'nmae'; did you mean 'name'?",
        "eval.yaml:12:5: no metric named 'double/lenght'; did you mean 'double/length'?",
        "eval.yaml:13:5: no condition named 'wth_notes'; did you mean 'with_notes'?",
        f"eval.yaml:14:5: the gate 'double/length > high' has no number after >: 'high'; {remedy}",
        "eval.yaml:15:5: expected a gate, such as `basic/contains >= 0.8`, got 0.8",
        "eval.yaml:16:5: no function named 'lo'; did you mean 'low'?",
    ] == told
    assert not (notes.root / "results").exists()


def test_a_section_that_is_no_list_is_refused(notes: Project) -> None:
    notes.write(eval_yaml=CONFIG + "gates: double/length >= 0.5\n")

    outcome = notes.keval("validate", "eval.yaml")

    told = "eval.yaml:11:8: expected a list of gates, such as `basic/contains >= 0.8`; write [double/length >= 0.5]"
    assert (2, f"error: {told}\n") == (outcome.code, outcome.stderr)


def test_a_threshold_may_stand_in_a_variable(notes: Project) -> None:
    gated(notes, "double/length >= ${LEAST:-0.5}")

    outcomes = [notes.keval("run", "eval.yaml", env=env) for env in ({}, {"LEAST": "0.95"})]

    assert [0, 1] == [outcome.code for outcome in outcomes]
    assert "double/length >= 0.95 failed" in lines(outcomes[1].stdout)[0]
    assert 1 == notes.keval("report", "latest").code


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ([], 3),
        (["double/length >= 0.1"], 3),
        (["double/length >= 0.9"], 1),
        (["failures <= 40%"], 0),
        (["failures <= 10%"], 1),
        (["failures >= 10%"], 3),
        (["with_notes/failures <= 40%"], 3),
    ],
)
def test_a_failed_gate_goes_before_failures_and_a_gate_may_allow_them(
    notes: Project, gates: list[str], code: int
) -> None:
    gated(notes, *gates) if gates else None
    failing = json.dumps({"id": "lost", "question": "?", "fail": "no luck"})
    notes.write(questions_jsonl=f"{questions()}{failing}\n")

    outcome = notes.keval("run", "eval.yaml")

    assert code == outcome.code
    assert "8 trials, 2 failed" in outcome.stdout


def test_failures_that_a_gate_allows_excuse_no_failed_score(notes: Project) -> None:
    gated(notes, "failures <= 40%")

    outcome = notes.keval("run", "eval.yaml", "--metric", "double/length", "--metric", "double/broken")

    assert 3 == outcome.code


def test_an_undecided_gate_fails_if_it_is_strict(notes: Project) -> None:
    gated(notes, "double/length >= 0.1")

    outcomes = [notes.keval("run", "eval.yaml", "--limit", "1", *strict) for strict in ((), ("--strict",))]
    reported = [notes.keval("report", "latest", *strict).code for strict in ((), ("--strict",))]

    assert [0, 1] == [outcome.code for outcome in outcomes] == reported
    assert ["double/length >= 0.1 undecided (0.63; too few samples: n = 1)"] == lines(outcomes[0].stdout)


@pytest.mark.parametrize(("gates", "code"), [((), 3), (("failures <= 100%",), 1), (("failures <= 0%",), 1)])
def test_a_gate_on_what_was_not_measured_is_no_failed_gate_unless_the_failures_are_allowed(
    notes: Project, gates: Sequence[str], code: int
) -> None:
    notes.write(questions_jsonl=questions(fail="no luck"))
    gated(notes, "double/length >= 0.1", *gates)

    outcome = notes.keval("run", "eval.yaml", "--strict")

    assert (code, True) == (outcome.code, "undecided (too few samples: n = 0)" in outcome.stdout), outcome.stdout


def test_quiet_says_which_gate_failed_and_nothing_of_gates_that_hold(notes: Project) -> None:
    gated(notes, "double/length >= 0.1")

    held = notes.keval("run", "eval.yaml", "-q")
    failed = notes.keval("run", "eval.yaml", "-q", "--fail-under", "double/length>=0.9")

    assert (0, "", "") == (held.code, held.stdout, held.stderr)
    assert (1, "") == (failed.code, failed.stdout)
    assert ["double/length>=0.9 failed (0.68)", "double/length >= 0.1 held (0.68)"] == [
        line.partition(", ")[0].rstrip(")") + ")" for line in lines(failed.stderr)[:2]
    ]


def test_a_report_decides_again_with_the_gates_of_its_flags(notes: Project) -> None:
    gated(notes, "double/length >= 0.5")
    ran = notes.keval("run", "eval.yaml")

    report = notes.keval("report", "latest", "--fail-under", "failures <= 5%", "--fail-under", "double/length >= 0.9")
    wrong = notes.keval("report", "latest", "--fail-under", "double/lenght >= 0.9")
    again = notes.keval("report", "latest", "--json")

    assert (0, 1, 0) == (ran.code, report.code, again.code)
    assert ["double/length >= 0.9 failed", "double/length >= 0.5 held"] == [
        line.partition(" (")[0] for line in lines(report.stdout)[:2]
    ]
    assert (
        2,
        "error: --fail-under double/lenght >= 0.9: no metric named 'double/lenght'; did you mean 'double/length'?\n",
    ) == (
        wrong.code,
        wrong.stderr,
    )
    assert ["double/length >= 0.5"] == [gate["gate"] for gate in again.data["gates"]]


def test_gates_of_flags_stay_with_a_run_that_is_resumed_or_scored(notes: Project) -> None:
    notes.keval("run", "eval.yaml", "--fail-under", "double/length >= 0.1")

    resumed = notes.keval("resume", "latest", "--add-repetitions", "1", "--fail-under", "double/length >= 0.2")
    unknown = notes.keval("score", "latest", "--metric", "double/grade", "--fail-under", "double/characters > 3")
    scored = notes.keval("score", "latest", "--metric", "double/characters", "--fail-under", "double/characters < 3")

    assert ["double/length >= 0.1 held", "double/length >= 0.2 held"] == [
        line.partition(" (")[0] for line in lines(resumed.stdout)
    ]
    assert (2, True) == (unknown.code, "no metric named 'double/characters'" in unknown.stderr)
    assert 1 == scored.code
    assert ["double/length >= 0.1", "double/length >= 0.2", "double/characters < 3"] == [
        gate["gate"] for gate in notes.keval("report", "latest", "--json").data["gates"]
    ]


def left_out(written: str, why: str) -> str:
    return f"{written} undecided (not in this run: {why})"


def test_a_gate_about_what_a_flag_leaves_out_is_undecided(notes: Project) -> None:
    gated(notes, "with_notes/double/length >= +0.1", "double/length >= 0.1", "double/grade >= 0.1")
    config = (notes.root / "eval.yaml").read_text(encoding="utf-8")
    notes.write(eval_yaml=config.replace("[double/length]", "[double/length, double/grade]"))

    outcome = notes.keval("run", "eval.yaml", "--condition", "baseline", "--metric", "double/length")
    resumed = notes.keval("resume", "latest", "--add-repetitions", "1")

    assert (0, 0) == (outcome.code, resumed.code)
    assert [
        left_out("with_notes/double/length >= +0.1", "no condition named 'with_notes'; conditions: baseline"),
        left_out("double/grade >= 0.1", "no metric named 'double/grade'; did you mean 'double/length'?"),
        "double/length >= 0.1 held",
    ] == [line if "not in this run" in line else line.partition(" (")[0] for line in lines(outcome.stdout)]
    assert lines(outcome.stdout)[:2] == lines(resumed.stdout)[:2]


def test_all_judges_must_agree_with_a_gate_unless_it_names_one(project: Project) -> None:
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {scripted: {}}
            judges: {one: {type: strict}, two: {type: reader}}
            rubrics: [double/brevity]
        """,
        questions_jsonl=questions(answer="So."),
    )

    outcome = project.keval("run", "eval.yaml", "--json", "--fail-under", "double/brevity >= 1")
    one = project.keval("report", "latest", "--json", "--fail-under", "double/brevity@two >= 1")

    assert ["scripted:baseline/double/brevity@one >= 1", "scripted:baseline/double/brevity@two >= 1"] == [
        gate["gate"] for gate in outcome.data["gates"]
    ]
    assert ["two"] == [gate["judge"] for gate in one.data["gates"] if gate["written"] == "double/brevity@two >= 1"]


@pytest.fixture
def regressed(notes: Project) -> tuple[Project, str]:
    """A run of a dozen questions, whose answers have become shorter since then; the run's id."""
    names = ["a" * length for length in range(1, 13)]
    notes.write(questions_jsonl=questions(names))
    before = notes.keval("run", "eval.yaml", "--json").data["run"]
    notes.write(questions_jsonl=questions(names, says="No."))
    return notes, before


def test_a_plan_and_the_environment_have_gates_too(notes: Project) -> None:
    gated(notes, "failures <= 5%")
    env = {"KEVAL_RUN_FAIL_UNDER": "double/length >= 0.5; double/length > 0.9"}

    planned = notes.keval("run", "eval.yaml", "--dry-run", env=env)
    outcome = notes.keval("run", "eval.yaml", env=env)

    told = ["  gate       failures <= 5%", "  gate       double/length >= 0.5", "  gate       double/length > 0.9"]
    assert told == [line for line in planned.stdout.splitlines() if line.startswith("  gate")]
    assert (1, "double/length > 0.9 failed") == (outcome.code, lines(outcome.stdout)[0].partition(" (")[0])


def test_gates_of_a_damaged_manifest_are_told(notes: Project) -> None:
    gated(notes, "failures <= 5%")
    notes.keval("run", "eval.yaml")
    manifest = notes.run_directory() / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    changed = re.sub(r'"gates": \[[^]]*\]', '"gates": 7', text)
    manifest.write_text(changed, encoding="utf-8")

    outcomes = [notes.keval(*command) for command in (("report", "latest"), ("resume", "latest"))]

    assert text != changed
    assert [2, 2] == [outcome.code for outcome in outcomes]
    assert "manifest.json is damaged: config.gates is no list; restore the file" in outcomes[0].stderr
    assert "expected a list of gates" in outcomes[1].stderr


def test_a_run_that_is_surely_worse_than_another_fails(regressed: tuple[Project, str]) -> None:
    project, before = regressed

    same = project.keval("report", before, "--fail-on-regression", before)
    outcome = project.keval("run", "eval.yaml", "--fail-on-regression", before)
    allowed, doubtful, strict = (
        project.keval("report", "latest", "--fail-on-regression", before, "--max-regression", *most)
        for most in (("0.5",), ("0.4",), ("0.4", "--strict"))
    )
    better = project.keval("report", before, "--fail-on-regression", json_run(project))

    assert (2, True) == (same.code, "a run cannot be compared with itself" in same.stderr)
    assert 1 == outcome.code
    assert [f"scripted:with_notes/double/length no more than 0 worse than in {before} failed"] == [
        line.partition(" (")[0] for line in lines(outcome.stdout) if "with_notes" in line
    ]
    assert 0 == allowed.code
    assert [f"no regression against {before} held (2 means compared)"] == lines(allowed.stdout)
    assert (0, 1) == (doubtful.code, strict.code)
    assert "undecided (-0.34 [-0.44, -0.21] (90 % interval); a drop of 0.44 is not" in doubtful.stdout
    assert 0 == better.code


def json_run(project: Project) -> str:
    """The id of the latest run."""
    run: str = project.keval("report", "latest", "--json").data["run"]
    return run


def test_a_rise_is_a_regression_where_less_is_better(project: Project) -> None:
    names, runs = ["a" * length for length in range(1, 13)], {}
    for said in ("No.", "No, and that at length." * 2):
        asked = questions(names, says=said)
        project.write(eval_yaml=CONFIG.replace("double/length", "number/waste"), questions_jsonl=asked)
        runs[said] = project.keval("run", "eval.yaml", "--json").data["run"]
    short, long = runs.values()

    risen, fallen = (
        project.keval("report", run, "--fail-on-regression", before, "--json")
        for run, before in ((long, short), (short, long))
    )

    assert (1, 0) == (risen.code, fallen.code)
    assert [True, True] == [0 < gate["ci_low"] <= gate["ci_high"] for gate in risen.data["gates"]]
    assert [True, True] == [gate["ci_low"] <= gate["ci_high"] < 0 for gate in fallen.data["gates"]]


def test_runs_with_nothing_in_common_are_undecided(regressed: tuple[Project, str]) -> None:
    project, before = regressed

    outcome = project.keval("run", "eval.yaml", "--metric", "double/grade", "--fail-on-regression", before)

    assert 0 == outcome.code
    assert f"no regression against {before} undecided" in lines(outcome.stdout)[0]


def test_another_run_must_be_there_before_a_run_begins(notes: Project) -> None:
    absent = notes.keval("run", "eval.yaml", "--fail-on-regression", "20990101")
    alone = notes.keval("run", "eval.yaml", "--max-regression", "0.1")

    assert (2, True) == (absent.code, "no run '20990101' at that path or under results" in absent.stderr)
    assert (2, True) == (alone.code, "add --fail-on-regression RUN" in alone.stderr)
    assert not (notes.root / "results").exists()
