"""What trials were given and left: kept, shown, compared, and copied with the part of a run that is kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from keval import open_run
from keval.store.serialization import read_trial, trial_line
from tests import endings
from tests.conftest import Project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("made"))
    endings.make(project)
    return project.root


@pytest.fixture
def ran(made: Path, project: Project) -> Project:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return project


def test_a_trial_keeps_what_it_left_and_one_that_left_nothing_says_nothing_of_it(ran: Project) -> None:
    for trial in open_run(ran.run_directory()).trials():
        line, sample = trial_line(trial), trial.sample
        read = read_trial(line, lambda _, sample=sample: sample, lambda _: {})  # type: ignore[misc]
        assert trial.transcript == read.transcript
        left = {"texts", "end_state"} & json.loads(line)["transcript"].keys()
        assert left == ({"texts", "end_state"} if trial.condition == "skilled" else set())


def test_a_trial_is_shown_with_texts_checks_diff_and_artifacts_and_plays_no_tricks(ran: Project) -> None:
    run = str(ran.run_directory())
    shown = ran.keval("show", run, "--trial", endings.TRIAL).stdout
    full = ran.keval("show", run, "--trial", endings.TRIAL, "--full").stdout
    data = ran.keval("show", run, "--trial", endings.TRIAL, "--json").data
    baseline = ran.keval("show", run, "--trial", endings.TRIAL.replace("skilled", "baseline")).stdout
    lines = shown.split("\n")

    assert "skill: pdf, given by .claude/skills, read by Read in model call 2" in lines
    assert "neighbour: rival�[2J�, given by .claude/skills, not read" in lines
    assert "instructions: AGENTS.md, given in the system prompt, read in model call 1" in lines
    assert "passed check compiles (command in 250 ms): exit status 0" in lines
    assert "unscored check row is there (sqlite): could not run: no such file" in lines
    assert ["  … 21 more lines; --full shows all", "  │ case 21"] == lines[lines.index("  │ case 21") - 1 :][:2]
    assert {"  -old�[2J�", "  +<script>window.injected = true</script>"} <= {*lines}
    assert "  … 25 more lines of the diff; --full shows all" in lines
    assert "  … the run does not keep 7 more characters of the diff" in lines
    kept = Path(run) / "blobs" / endings.PAGE_SHA256
    assert f"artifact page�[2J�.html: {len(endings.PAGE)} bytes, text/html, {kept}" in lines
    assert "artifact huge.bin: 1,073,741,824 bytes, not kept: it is larger than max_artifact_bytes" in lines
    assert not {"\x1b", "\u202e"} & {*shown, *full, *baseline}
    assert {"  │ case 0", "  +line 59"} <= {*full.split("\n")}
    assert "--full" not in full
    assert endings.DIFF == data["transcript"]["end_state"]["diff"]
    trials = Path(run) / "trials.jsonl"
    trials.write_text(
        trials.read_text(encoding="utf-8").replace("0" * 64, "").replace('"request": ""', '"request": null'),
        encoding="utf-8",
    )
    unseen = ran.keval("show", run, "--trial", endings.TRIAL).stdout
    assert "rival�[2J�, given by .claude/skills, unknown whether it was read" in unseen
    assert (
        "texts    skill pdf read in trials: unknown, as keval saw no model request" in ran.keval("report", run).stdout
    )
    assert not any(word in baseline for word in ("skill", "check", "workspace", "artifact"))


def test_runs_that_left_other_things_differ_but_for_times_and_the_machine(ran: Project) -> None:
    run, other = ran.run_directory(), ran.root / "results" / "other"
    shutil.copytree(run, other)
    text = (other / "trials.jsonl").read_text(encoding="utf-8")
    alike = text.replace("hard links", "copies").replace("case 29", "case 30").replace('"at": 0.5', '"at": 0.6')
    assert alike != text
    (other / "trials.jsonl").write_text(alike, encoding="utf-8")
    equal = ran.keval("compare", "--exact", str(run), str(other))
    (other / "trials.jsonl").write_text(alike.replace("+line 59", "+line 60"), encoding="utf-8")
    different = ran.keval("compare", "--exact", str(run), str(other))

    assert (0, 1) == (equal.code, different.code)
    assert "12 equal, 12 different" in different.stdout
    assert "end_state.diff" in different.stdout


def test_a_report_says_how_often_a_skill_was_read(ran: Project) -> None:
    run = str(ran.run_directory())
    data = ran.keval("report", run, "--json").data
    first, explained = (ran.keval("report", run, *more).stdout for more in ((), ("--explain",)))
    markdown = ran.keval("report", run, "--markdown").stdout
    ran.keval("report", run, "--html", "page.html")
    page = (ran.root / "page.html").read_text(encoding="utf-8")

    pdf, rival = data["activations"]
    assert ("pdf", "skill", ".claude/skills", 12, 0, 6, 12, 0.5) == tuple(
        pdf[key] for key in ("text", "kind", "way", "trials", "unknown", "read", "n", "rate")
    )
    assert ("neighbour", 0, 0.0) == (rival["kind"], rival["read"], rival["rate"])
    assert (2.0, {"Read": 6}) == (pdf["model_call"], pdf["tools"])
    # 0.5 ± t(11) sqrt(0.25 / 11), over questions.
    assert [0.17, 0.83] == [round(pdf[end], 2) for end in ("ci_low", "ci_high")]
    assert "texts    skill pdf read in trials: 50 % [17 %, 83 %] n=12" in first.splitlines()
    assert "rival" not in first
    for told in (explained, markdown, page):
        assert "skill pdf" in told
        assert "\x1b" not in told


def test_a_run_without_texts_says_nothing_of_any(project: Project) -> None:
    project.write(eval_yaml=endings.CONFIG, questions_jsonl='{"id": "a", "question": "Why?"}\n')
    first = project.run("eval.yaml")
    markdown = project.keval("report", "latest", "--markdown", "--html", "page.html").stdout
    data = project.keval("report", "latest", "--json").data

    assert [] == data["activations"]
    assert not any(line.startswith("texts") for line in first.stdout.splitlines())
    assert "Instructions and skills" not in markdown
    assert 'id="texts"' not in (project.root / "page.html").read_text(encoding="utf-8")
