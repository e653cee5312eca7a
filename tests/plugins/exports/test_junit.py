"""`keval export --format junit`: what Jenkins takes, and what a reader of it is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema

from keval import Run
from keval_exports.junit import Junit
from tests.conftest import Project
from tests.plugins.exports.conftest import CONFIG, FORMULAS, HOSTILE, prepare

# From jenkinsci/xunit-plugin, as pytest has it, too; its license (MIT) stands in it.
SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit-10.xsd"))
ALLOWED = HOSTILE.translate(dict.fromkeys(map(ord, "\x00\x1b\ufffe\uffff"), "\ufffd"))
"""The hostile text, with what XML 1.0 forbids replaced."""


def exported(run: Run, folder: Path) -> ElementTree.Element:
    """The root of the exported file, which the schema holds to be valid."""
    (path,) = Junit().export(run, folder).files
    assert [] == [error.reason for error in SCHEMA.iter_errors(path)]
    return ElementTree.parse(path).getroot()


def case(root: ElementTree.Element, name: str, arm: str = "baseline") -> ElementTree.Element:
    (found,) = [
        each
        for each in root.iter("testcase")
        if (name, True) == (each.get("name"), each.get("classname", "").endswith(arm))
    ]
    return found


@pytest.fixture(scope="module")
def root(hostile: Run, tmp_path_factory: pytest.TempPathFactory) -> ElementTree.Element:
    return exported(hostile, tmp_path_factory.mktemp("junit"))


def test_every_trial_is_a_case_under_its_name(root: ElementTree.Element, hostile: Run) -> None:
    names = Counter((each.get("classname"), each.get("name")) for each in root.iter("testcase"))

    name = 'hostile, "quoted" & <odd>'
    assert (
        Counter(
            (f"{name}.odd.one.{trial.condition}", f"{trial.sample.id.replace(HOSTILE, ALLOWED)} [{trial.repetition}]")
            for trial in hostile.trials()
        )
        == names
    )
    assert {1} == {*names.values()}
    assert all((f"{name}.odd.one.baseline", f"{text} [2]") in names for text in FORMULAS)


def test_the_suites_count_their_cases(root: ElementTree.Element) -> None:
    # `down` fails under both conditions, and so does one that answers with a blank in one of them; the judge that gives
    # `a` no level fails, too. Each is asked twice.
    expected = {"baseline": {"tests": 34, "failures": 0, "errors": 6, "skipped": 0}}
    expected["with notes"] = {**expected["baseline"], "errors": 4}

    counts = {
        str(suite.get("name")).partition("odd.one ")[2]: {
            key: int(suite.get(key, "-1")) for key in expected["baseline"]
        }
        for suite in root.iter("testsuite")
    }

    assert expected == counts
    assert ("68", "0", "10") == tuple(root.get(key) for key in ("tests", "failures", "errors"))
    for suite in root.iter("testsuite"):
        assert int(suite.get("tests", "-1")) == len(suite.findall("testcase"))
        assert int(suite.get("errors", "-1")) == len(suite.findall("testcase/error"))
        times = [float(each.get("time", "0")) for each in suite.iter("testcase")]
        assert pytest.approx(float(suite.get("time", "-1")), abs=0.001 * len(times)) == sum(times)


def test_a_failed_trial_is_an_error_and_a_repeated_one_is_flaky(root: ElementTree.Element) -> None:
    down, busy = case(root, "down [1]"), case(root, "busy [2]")

    error, flaky = down.find("error"), busy.find("flakyError")
    assert error is not None
    assert ("agent: told", "it is out ]]> \ufffd") == (error.get("type"), error.get("message"))
    assert error.text == error.get("message")
    assert flaky is not None
    assert ("model: rate_limit", None) == (flaky.get("type"), busy.find("error"))


def test_a_score_that_failed_is_an_error_that_names_it(root: ElementTree.Element) -> None:
    error = case(root, "a [1]").find("error")

    assert error is not None
    assert ("1 score failed", "double/brevity by reader: no JSON in the reply") == (error.get("message"), error.text)


def test_a_case_tells_what_was_asked_answered_and_scored(root: ElementTree.Element) -> None:
    told = case(root, f"{ALLOWED} [1]").findtext("system-out") or ""

    assert f"trial: odd.one/baseline/{ALLOWED}/1\nquestion: {ALLOWED}\nanswer: {ALLOWED}\n" in told
    assert "\ndouble/brevity by strict: 2, as always" in told
    assert "\ndouble/brevity by reader: 2" in told


def test_an_answer_without_any_value_is_skipped(project: Project) -> None:
    config = CONFIG.replace("double/length, ", "").replace(
        "rubrics: [double/brevity]\njudges: {strict: {}, reader: {}}\n", ""
    )
    run = prepare(project, config, [{"id": "a", "question": "?"}, {"id": "c", "question": "?"}])

    root = exported(run, project.root / "out")

    skipped = case(root, "a [1]").find("skipped")
    assert skipped is not None
    assert "double/grade: cannot say" == skipped.text
    assert ["2", "2"] == [suite.get("skipped") for suite in root.iter("testsuite")]
    assert case(root, "c [1]").find("skipped") is None


def test_gates_are_a_suite_of_their_own(project: Project) -> None:
    run = prepare(project, questions=[{"id": "only", "question": "?", "level": 1}])
    about = {"ci_low": None, "ci_high": None, "decided_on": "mean"}
    gates: list[dict[str, Any]] = [
        {"gate": "double/length >= 0.8", "verdict": "failed", "value": 0.5, "reason": "it is <low>", **about},
        {"gate": "double/length >= 0.1", "verdict": "held", "value": 0.5, "reason": "", **about},
        {"gate": "double/grade >= 0.1", "verdict": "undecided", "value": None, "reason": "too few samples", **about},
    ]
    summary = {**project.read("summary.json"), "gates": gates}
    (run.path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")

    root = exported(run, project.root / "out")

    suite = [*root.iter("testsuite")][-1]
    failure, undecided = case(root, gates[0]["gate"], "gates").find("failure"), case(root, gates[2]["gate"], "gates")
    assert failure is not None
    assert ("mean is 0.5", "double/length >= 0.8: it is <low>") == (failure.get("message"), failure.text)
    assert 1 == len(undecided.findall("skipped"))
    assert ("3", "1", "1") == tuple(suite.get(key) for key in ("tests", "failures", "skipped"))
    assert [] == [*case(root, gates[1]["gate"], "gates")]


def test_a_run_without_trials_says_so(project: Project) -> None:
    run = prepare(project, questions=[{"id": "only", "question": "?", "level": 1}])
    run.trials_file.write_bytes(b"")

    outcome = project.keval("export", "latest", "--format", "junit", "--to", "out")

    assert [] == [*exported(run, project.root / "out")]
    assert (0, "out/junit.xml\n") == (outcome.code, outcome.stdout)
    assert "note: odd.one baseline is left out: it has no trial" in outcome.stderr.splitlines()
