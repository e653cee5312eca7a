"""What the commands print: tables for people, JSON for machines, messages on stderr."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console

from keval import Manifest, Scale, Summary, open_run
from keval.records.manifest import DatasetEntry
from keval.seams import registry
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import ScorerScale
from keval_report.commands.list import ListedRun, describe_runs, print_runs
from tests.conftest import INSTALLED, Project, scale_of

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
metrics: [double/length, double/neutral]
execution: {num_repetitions: 2}
"""
QUESTIONS = "".join(json.dumps({"id": name, "question": f"{name}?" * 5}) + "\n" for name in ("a", "bb", "ccc"))


_RUNNING: list[subprocess.Popen[Any]] = []
"""The processes that a test started."""


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Leave no process behind where a test fails; what never ends would slow down all that follows."""
    yield
    while _RUNNING:
        process = _RUNNING.pop()
        process.kill()
        process.wait()


@pytest.fixture
def notes(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    return project


def test_a_run_names_the_band_of_a_mean(notes: Project) -> None:
    notes.keval("run", "eval.yaml", "--metric", "double/grade")

    shown = notes.keval("show", "latest", "--trial", "scripted/with_notes/ccc/1").stdout
    assert "0.70 high double/grade: graded\n" in shown
    found = {arm["condition"]: (arm["band"], arm["n"]) for arm in notes.read("summary.json")["arms"]}
    assert {"baseline": ("low", 1), "with_notes": ("high", 1)} == found


def test_a_scale_without_an_end_is_shown_by_its_unit(notes: Project) -> None:
    outcome = notes.keval("run", "eval.yaml", "--metric", "double/characters", "--metric", "double/length", "--json")
    listed = notes.keval("list", "--json").data

    scale = scale_of(outcome, "double/characters")
    assert (0.0, None, "lower", "characters") == tuple(scale[key] for key in ("low", "high", "better", "unit"))
    assert "double/length" == listed[0]["largest_effect"]["metric"]


def test_the_largest_effect_is_the_largest_for_its_scale() -> None:
    scales = {"share": Scale(0, 1), "stars": Scale(1, 11), "seconds": Scale(0, math.inf)}
    differences = {"share": 0.3, "stars": 1.0, "seconds": 50.0}
    summary = Summary(
        run="r",
        evaluation="e",
        baseline="b",
        neutral="omit",
        planned=0,
        scorers=tuple(ScorerScale(metric, None, scale) for metric, scale in scales.items()),
        effects=tuple(
            Effect(metric, None, "a", "c", Arm("a", "b"), 1, value, None) for metric, value in differences.items()
        ),
    )
    manifest = Manifest("r", "e", {}, "", DatasetEntry("q.jsonl"), {}, {}, 0, "b")

    (described,) = describe_runs([ListedRun("r", manifest, summary)])

    assert "share" == described["largest_effect"]["metric"]


def test_a_report_that_is_piped_fits_100_columns_and_ends_no_line_with_spaces(notes: Project) -> None:
    narrow = notes.keval("run", "eval.yaml", "--metric", "double", "--metric", "double/length").stdout.splitlines()
    wide = notes.keval("report", "latest", "--explain").stdout.splitlines()
    small = notes.keval("report", "latest", env={"COLUMNS": "60"}).stdout.splitlines()

    assert [] == [line for line in [*narrow, *wide] if len(line) > 100 or line != line.rstrip()]
    assert [] == [line for line in small if len(line) > 60]
    assert narrow != wide == notes.keval("report", "latest", "--wide").stdout.splitlines()  # its old name


def test_the_commands_that_a_report_names_show_more_of_the_run(notes: Project) -> None:
    told = notes.keval("run", "eval.yaml").stdout + notes.keval("report", "latest", "--explain").stdout

    named = re.findall(r"keval ((?:show|report) .*)", told)
    outcomes = [notes.keval(*shlex.split(command)) for command in named]

    run = notes.run_directory().name
    worst = f"show {run} --worst double/length"
    assert [worst, f"report {run} --explain", worst, f"report {run} --html report.html"] == named
    assert [0] * 4 == [outcome.code for outcome in outcomes]


def test_json_goes_to_stdout_alone(notes: Project) -> None:
    outcome = notes.keval("run", "eval.yaml", "--json")

    effect = next(effect for effect in outcome.data["effects"] if effect["metric"] == "double/length")
    assert (3, 0.53) == (effect["n"], round(effect["difference"], 9))
    assert {"agent": "scripted", "condition": "baseline", "run": outcome.data["run"]} == effect["against"]
    assert notes.read("summary.json") == outcome.data


def test_json_is_json_whatever_the_environment_says_of_colours(notes: Project) -> None:
    colours = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}

    ran = notes.keval("run", "eval.yaml", "--json", env=colours)
    listed = notes.keval("list", "--json", env=colours)

    assert ran.data["run"] == listed.data[0]["run"]


@pytest.mark.slow
def test_a_report_goes_on_where_the_terminal_cannot_write_it(notes: Project) -> None:
    notes.keval("run", "eval.yaml")

    outcome = notes.spawn("report", "latest", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})

    assert (0, True) == (outcome.code, "baseline ? with_notes" in outcome.stdout)


def test_a_broken_manifest_leaves_the_other_runs_in_the_list(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    broken = notes.root / "results" / "other" / "20260101-000000-aaaa"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text("[]", encoding="utf-8")

    outcome = notes.keval("list", "--json")

    assert (0, ["notes"]) == (outcome.code, [run["evaluation"] for run in outcome.data])
    assert "manifest.json is no manifest" in outcome.stderr


def test_quiet_still_says_what_failed(notes: Project) -> None:
    notes.write(questions_jsonl=json.dumps({"id": "z", "question": "?", "fail": "no luck"}) + "\n" + QUESTIONS)

    outcome = notes.keval("run", "eval.yaml", "-q")

    assert (3, "") == (outcome.code, outcome.stdout)
    assert "4 of 16 trials failed, 0 scores failed or are missing\n" in outcome.stderr


def test_quiet_says_what_was_never_run(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    trials = notes.run_directory() / "trials.jsonl"
    trials.write_text("".join(trials.read_text(encoding="utf-8").splitlines(keepends=True)[:-2]), encoding="utf-8")

    outcome = notes.keval("score", "latest", "-q")

    assert 3 == outcome.code
    assert "0 of 12 trials failed, 2 were not run, 0 scores failed or are missing\n" in outcome.stderr


def test_a_run_that_is_still_made_is_not_called_interrupted(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    for name, left in (("trials.jsonl", -2), ("scores.jsonl", -5)):
        file = notes.run_directory() / name
        file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:left]), encoding="utf-8")

    with FileLock(notes.run_directory() / ".lock"):
        report = notes.keval("report", "latest")
        export = notes.keval("export", "latest", "--format", "eee")

    assert "1 score missing, because scoring is still running" in report.stdout
    assert "2 trials are still to be run." in report.stdout
    assert (3, 2) == (report.code, export.code)
    assert "another process is writing to" in export.stderr


def test_a_file_of_a_run_that_cannot_be_read_is_no_defect(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    scores = notes.run_directory() / "scores.jsonl"
    scores.unlink()
    scores.mkdir()

    outcome = notes.keval("report", "latest")

    assert 2 == outcome.code
    assert "scores.jsonl cannot be read: " in outcome.stderr


def test_what_is_lost_of_a_run_is_named(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    samples, trials = (notes.run_directory() / name for name in ("samples.jsonl", "trials.jsonl"))
    samples.write_text("", encoding="utf-8")

    lost = notes.keval("report", "latest")
    notes.keval("run", "eval.yaml", "-o", "again")
    (trials,) = (notes.root / "again").glob("*/*/trials.jsonl")
    text = trials.read_text(encoding="utf-8").replace('"agent":"scripted"', '"agent":"x"', 1)
    trials.write_text(text, encoding="utf-8")
    strange = notes.keval("report", "latest", "-o", "again")

    assert 2 == lost.code
    assert re.search("samples.jsonl has no sample '(a|bb|ccc)', which was asked; restore the file", lost.stderr)
    assert (2, True) == (strange.code, "trials.jsonl:1: this line is damaged" in strange.stderr)


def test_a_dry_run_prints_the_plan_and_writes_nothing(notes: Project) -> None:
    outcome = notes.keval("run", "eval.yaml", "--dry-run", "--json")
    text = notes.keval("run", "eval.yaml", "--dry-run")

    plan = outcome.data
    assert (12, 1, 18) == (plan["trials"], plan["servers"], plan["estimated_model_calls"])
    assert {"contexts": {"notes": "notes"}} == plan["conditions"]["with_notes"]
    assert "notes: 12 trials (1 agents × 2 conditions × 3 samples × 2 repetitions), 8 at once" in text.stdout
    assert not (notes.root / "results").exists()


def test_flags_narrow_a_run(notes: Project) -> None:
    flags = ["--condition", "baseline", "--limit", "2", "--repetitions", "1", "--metric", "double/length"]

    outcome = notes.keval("run", "eval.yaml", "--json", *flags)

    trials = sorted(trial["id"] for trial in notes.lines("trials.jsonl"))
    assert ["scripted/baseline/a/1", "scripted/baseline/bb/1"] == trials
    assert ["double/length"] == [arm["metric"] for arm in outcome.data["arms"]]


def test_hook_plugins_are_left_out_alone_or_by_their_vendor(notes: Project) -> None:
    config = (notes.root / "eval.yaml").read_text(encoding="utf-8") + "plugins: [double/facts, double/diary]\n"
    notes.write(eval_yaml=config)

    def loaded(*flags: str) -> list[str]:
        plugins: list[str] = notes.keval("run", "eval.yaml", "--dry-run", "--json", *flags).data["plugins"]
        return plugins

    assert ["double/facts"] == loaded("-p", "no:double/diary")
    assert ["double/other-facts"] == loaded("-p", "no:double", "-p", "double/other-facts")
    assert "  hooks      double/facts\n" in notes.keval("run", "--dry-run", "-p", "no:double/diary").stdout
    assert "hooks" not in notes.keval("run", "--dry-run", "-p", "no:double").stdout


def test_an_agent_that_only_a_flag_names_gets_the_same_model(project: Project) -> None:
    config = CONFIG.replace("scripted: {}", "mine: {type: gadk, model: simulated/notes}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--agent", "modelled", "--agent", "scripted", "--dry-run", "--json")

    models = {label: agent["model"] for label, agent in outcome.data["agents"].items()}
    assert {"modelled": "simulated/notes", "scripted": None} == models


def test_a_plugin_name_selects_the_labels_that_use_it(project: Project) -> None:
    agents = "mine: {type: scripted}\n  yours: {type: scripted}\n  modelled: {model: simulated/notes}"
    config = CONFIG.replace("scripted: {}", agents)
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--agent", "scripted", "--dry-run", "--json")

    assert ["mine", "yours"] == list(outcome.data["agents"])


def test_a_metric_named_by_a_flag_keeps_its_options(project: Project) -> None:
    config = CONFIG.replace("double/length,", "double/length: {limit: 10},").replace("[double", "[{double", 1)
    config = config.replace("{limit: 10},", "{limit: 10}},")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--metric", "double/length", "--condition", "baseline", "--json")

    (arm,) = outcome.data["arms"]
    assert 1.0 == arm["mean"]


def test_list_shows_runs_with_their_largest_effect(notes: Project) -> None:
    assert "no runs under results" in notes.keval("list").stderr
    notes.keval("run", "eval.yaml")

    outcome = notes.keval("list", "--json")
    text = notes.keval("list")

    (run,) = outcome.data
    effect = run["largest_effect"]
    assert ("done", "notes", 12, 12, 0) == (
        *(run["state"], run["evaluation"]),
        *(run["planned"], run["trials"], run["failed"]),
    )
    assert ("double/length", 0.53) == (effect["metric"], round(effect["difference"], 9))
    (line,) = text.stdout.splitlines()
    wanted = f"{run['run']}  done  notes  12 trials  +0.53 cannot tell  length, scripted with_notes ["
    assert ("unclear", wanted) == (effect["verdict"], line[: len(wanted)])


def test_list_tells_which_runs_are_not_done(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    run = notes.run_directory()
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    lacking = {**summary, "trials": [{**arm, "trials": arm["trials"] - 1} for arm in summary["trials"]]}

    def states() -> list[tuple[str, int | None]]:
        return [(run["state"], run["trials"]) for run in notes.keval("list", "--json").data]

    (run / "summary.json").write_text(json.dumps(lacking), encoding="utf-8")
    with FileLock(run / ".lock"):
        found = states()
    found += states()
    (run / "summary.json").unlink()
    found += states()

    assert [("running", 10), ("unfinished", 10), ("unfinished", None)] == found


def test_a_list_for_people_has_a_line_for_each_run_that_fits_the_terminal(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    run = open_run("latest", notes.root / "results")
    file = io.StringIO()

    print_runs([ListedRun(str(run.path), run.manifest, run.summary())] * 2, Console(file=file, width=60))

    assert [f"{run.id}  done  notes  12 trials  +0.53 cannot …"] * 2 == file.getvalue().splitlines()


def test_show_tells_what_a_run_was_made_of(notes: Project) -> None:
    notes.keval("run", "eval.yaml")

    outcome = notes.keval("show", notes.run_directory().name[:15])

    assert 0 == outcome.code
    assert "scripted/with_notes/ccc/2" in outcome.stdout
    assert "keval-doubles 1.0" in outcome.stdout


def test_show_prints_a_trial_with_its_calls_and_scores(project: Project) -> None:
    call = {"name": "look", "arguments": {"where": "here"}, "error": "not\x1b[31m found [bold]"}
    sample = {"id": "a", "question": "Where?", "history": [{"user": "Hi", "assistant": "Hello"}], "calls": [call]}
    project.write(eval_yaml=CONFIG, questions_jsonl=json.dumps(sample) + "\n")
    project.keval("run", "eval.yaml")

    outcome = project.keval("show", "latest", "--trial", "scripted/baseline/a/1")

    lines = outcome.stdout.splitlines()
    assert "assistant (earlier): Hello" in lines
    assert "assistant: Where?" in lines
    assert "0.06 double/length: 6 characters" in lines
    # Model output is data: neither its escapes nor its brackets do anything.
    assert any("error: not�[31m found [bold]" in line for line in lines)


def test_show_marks_the_calls_that_were_made_together(project: Project) -> None:
    calls = [{"name": "look", "result": "nothing"}, {"name": "listen", "result": "a bird"}]
    for name, made in (("both", calls), ("one", calls[:1])):
        project.write(eval_yaml=CONFIG, questions_jsonl=json.dumps({"id": name, "question": "?", "calls": made}) + "\n")
        project.keval("run", "eval.yaml")

    first, last = (run["run"] for run in project.keval("list", "--json").data)
    both = project.keval("show", first, "--trial", "scripted/baseline/both/1").stdout.splitlines()
    one = project.keval("show", last, "--trial", "scripted/baseline/one/1").stdout.splitlines()

    assert ["  ┌ look", "  └ listen"] == [line.split("(")[0] for line in both if line.startswith("  ")]
    assert ["  → look"] == [line.split("(")[0] for line in one if line.startswith("  ")]


def test_a_tool_with_an_odd_name_is_shown(project: Project) -> None:
    config = CONFIG.replace('notes: {text: "A long', 'notes: {tools: ["look[/oops]"], text: "A long')
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")

    outcome = project.keval("show", "latest")

    assert (0, True) == (outcome.code, "notes (look[/oops])" in outcome.stdout)


def test_a_report_needs_to_write_nothing(notes: Project) -> None:
    notes.keval("run", "eval.yaml")
    before = notes.read("summary.json")
    (notes.run_directory() / "summary.json").unlink()
    notes.run_directory().chmod(0o500)

    outcome = notes.keval("report", "latest", "--json")

    notes.run_directory().chmod(0o700)
    assert (0, before) == (outcome.code, outcome.data)
    assert not (notes.run_directory() / "summary.json").exists()


def test_a_defect_is_told_from_a_failed_gate(notes: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval.plan.build.make_plan", lambda evaluation: 1 / 0)

    outcome = notes.keval("run", "eval.yaml")

    assert 70 == outcome.code
    assert "this is a defect of keval or a plugin, not of your config: ZeroDivisionError" in outcome.stderr


def test_an_odd_id_is_an_id(project: Project) -> None:
    odd = "../../[red]a\x1b[2J\nb/ż"
    project.write(eval_yaml=CONFIG, questions_jsonl=json.dumps({"id": odd, "question": "Where?"}) + "\n")

    ran = project.keval("run", "eval.yaml")
    listed = project.keval("show", "latest")
    shown = project.keval("show", "latest", "--trial", f"scripted/baseline/{odd}/1")

    assert (0, 0, 0) == (ran.code, listed.code, shown.code)
    assert "scripted/baseline/../../[red]a�[2J b/ż/1  Where?" in listed.stdout
    assert "\x1b" not in listed.stdout + shown.stdout
    assert ["results"] == [path.name for path in project.root.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("view", "no command 'view'; it comes with keval-viewer: `"),
        ("show", "no command 'show'; it comes with keval-report: `"),
        ("vew", "no command 'vew'; did you mean 'view'?"),
        ("rnu", "no command 'rnu'; did you mean 'run'?"),
        ("frobnicate", "no command 'frobnicate'; `keval --help` lists all"),
    ],
)
def test_a_command_that_is_not_there_is_told_with_what_brings_it(
    project: Project, typed: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "it comes with" in told:
        monkeypatch.setattr(registry, "components", lambda group: ())

    outcome = project.keval(typed)

    assert (2, True) == (outcome.code, f"Error: {told}" in outcome.stderr), outcome.stderr


HANGS = json.dumps({"id": "hangs", "question": "Why?", "hang": True}) + "\n"


def test_an_interruption_keeps_what_is_finished_and_exits_130(project: Project) -> None:
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 2, grace_seconds: 0.1")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS + HANGS)
    process = _started(project)

    _wait_for_lines(project.root, 12)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)

    where = project.run_directory().relative_to(project.root)
    told = [
        "stopping: no new trials start, and running trials have 0.1 s to finish; press Ctrl-C again to stop at once",
        f"interrupted; finished trials are in {where}; `keval resume {where}` continues it",
    ]
    assert (130, told) == (process.returncode, stderr.splitlines()[-2:])
    assert {"a", "bb", "ccc"} == {trial["sample"] for trial in project.lines("trials.jsonl")}
    assert 0 < project.read("manifest.json")["elapsed"] < 60


@pytest.mark.slow
def test_trials_in_flight_may_finish_after_ctrl_c_and_no_other_one_begins(project: Project) -> None:
    config = CONFIG.replace("scripted: {}", "scripted: {delay: 1.0}")
    project.write(eval_yaml=config.replace("num_repetitions: 2", "num_repetitions: 50, max_concurrent: 6"))
    project.write(questions_jsonl=QUESTIONS)
    process = _started(project)

    _wait_for_lines(project.root, 6)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert 130 == process.returncode
    assert [None] * 12 == [trial["failure"] for trial in project.lines("trials.jsonl")]


def test_the_second_ctrl_c_stops_at_once(project: Project) -> None:
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 2, grace_seconds: 60")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS + HANGS)
    process = _started(project)

    _wait_for_lines(project.root, 12)
    process.send_signal(signal.SIGINT)
    _wait_for_words(process, "stopping")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)

    assert 130 == process.returncode
    assert 12 == len(project.lines("trials.jsonl"))


@pytest.mark.parametrize("at_once", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["third", "in time"])
def test_a_metric_that_never_ends_does_not_keep_ctrl_c_from_ending_keval(project: Project, at_once: bool) -> None:
    project.write(eval_yaml=CONFIG.replace("double/length", "stuck/endless"), questions_jsonl=QUESTIONS)
    process = _started(project)

    _wait_for_words(process, "endless")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    if at_once:
        process.send_signal(signal.SIGHUP)
    _, stderr = process.communicate(timeout=30)

    assert (130, True) == (process.returncode, "interrupted; finished trials are in" in stderr)


def test_a_scripts_background_job_can_be_ended(project: Project) -> None:
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 2, grace_seconds: 0")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS + HANGS)
    # As a shell begins what a script puts in the background.
    command = ["sh", "-c", f"trap '' INT; exec {sys.executable} -m keval run eval.yaml"]
    environ = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    process = subprocess.Popen(command, cwd=project.root, env=environ, stderr=subprocess.DEVNULL)
    _RUNNING.append(process)

    _wait_for_lines(project.root, 12)
    process.terminate()

    assert 130 == process.wait(timeout=30)


@pytest.mark.slow
def test_ctrl_c_stops_workers_whose_agents_make_something_else_of_it(project: Project) -> None:
    script = {"question": "Why?", "deaf": True, "busy": 1}  # an error first, and then an answer
    samples = (json.dumps({"id": f"d{number}", **script}) + "\n" for number in range(200))
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 2, retry: {initial_backoff_seconds: 0.01}")
    project.write(eval_yaml=config, questions_jsonl="".join(samples))
    process = _started(project, "run", "eval.yaml", "-j", "4")

    _wait_for_lines(project.root, 8)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert 130 == process.returncode
    # Of 800 trials no more begin.
    assert 20 > len(project.lines("trials.jsonl"))


@pytest.mark.slow
def test_an_interruption_while_judging_says_how_to_go_on(project: Project) -> None:
    config = CONFIG.replace("metrics:", "judges: {reader: {hangs: true, journal: asked.txt}}\nmetrics:")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)
    run = _interrupted_while_judging(project, "run", "eval.yaml")
    score = _interrupted_while_judging(project, "score", "latest")

    where = project.run_directory().relative_to(project.root)
    assert (130, f"interrupted; finished trials are in {where}; `keval score {where}` continues it\n") == run
    assert (130, f"interrupted; run the same command again to continue scoring {where}\n") == score


def _interrupted_while_judging(project: Project, *args: str) -> tuple[int, str]:
    asked = project.root / "asked.txt"
    asked.unlink(missing_ok=True)
    process = _started(project, *args)
    deadline = time.monotonic() + 30
    while not asked.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    _wait_for_lines(project.root, 12)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    # The last trial may have been written just before.
    said = "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(("note: ", "stopping: ")))
    return process.returncode, said


def _started(project: Project, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "keval", *(args or ("run", "eval.yaml"))]
    environ = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    process = subprocess.Popen(command, cwd=project.root, env=environ, stderr=subprocess.PIPE, text=True)
    _RUNNING.append(process)
    return process


def _wait_for_words(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    while not process.stderr.readline().startswith(words):
        assert process.poll() is None


def _wait_for_lines(root: Path, wanted: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        files = list(root.glob("results/*/*/trials.jsonl"))
        if files and files[0].read_bytes().count(b"\n") >= wanted:
            return
        time.sleep(0.02)
    raise TimeoutError(f"no {wanted} trials within 30 s")


def test_several_runs_of_one_config_are_counted(project: Project) -> None:
    project.write(q_jsonl='{"id": "a", "question": "?"}', eval_yaml=ALIKE)
    told = [project.keval("run", "eval.yaml", *args).stdout for args in ((), (), ("--limit", "1"), ("--seed", "5"))]
    lost = next(project.root.glob("results/*/*/scores.jsonl"))
    lost.write_text("", encoding="utf-8")  # as of a run without answers
    told.append(project.keval("run", "eval.yaml").stdout)

    assert ["2 of this config are here" in text for text in told][:2] == [False, True]
    assert "runs     " not in told[3]
    assert "runs     3 of this config are here" in told[4]


ALIKE = """
dataset: {path: q.jsonl}
agents: {scripted: {}}
metrics: [basic/latency]
"""


def test_a_primary_metric_stands_out_before_a_larger_effect_on_another(project: Project) -> None:
    answers = [
        json.dumps({"id": f"q{n}", "condition": condition, "response": "x" * length})
        for n in range(8)
        for condition, length in (("baseline", 1), ("long", 2))
    ]
    project.write(
        q_jsonl="\n".join(json.dumps({"id": f"q{n}", "question": "?", "answer": "x"}) for n in range(8)),
        answers_jsonl="\n".join(answers),
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents: {recorded: {path: answers.jsonl}}
            conditions: {baseline: {}, long: {system_prompt: Hm.}}
            primary: [basic/contains]
            metrics: [basic/equals, basic/contains: {any_of: [x]}]
        """,
    )

    assert 0 == project.keval("run", "eval.yaml").code

    (listed,) = project.keval("list", "--json").data
    assert "basic/contains" == listed["largest_effect"]["metric"]


def test_questions_of_init_are_named_until_they_are_replaced(project: Project) -> None:
    project.write(q_jsonl='{"id": "replace-me-1", "question": "?"}', eval_yaml=ALIKE)

    outcome = project.keval("run", "eval.yaml")

    remedy = 'replace them by your own, a line each: {"id": "berths", "question": "How many berths'
    assert f"1 of 1 questions are those that `keval init` wrote; {remedy}" in outcome.stderr
    assert "caution  questions of `keval init` that are yet to be replaced by your own: 1" in outcome.stdout
