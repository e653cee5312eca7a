"""Resuming: what a run has is kept, what it lacks is run, and what changed in between is refused."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from filelock import FileLock

from keval import open_run
from tests.conftest import Project

CONFIG = """
name: mortal
dataset: {path: questions.jsonl}
agents:
  mortal: {type: double/mortal, journal: journal.txt, suffix: "${SUFFIX:-.}", fails: [c], healed: healed.txt}
contexts: {notes: {text: "Read. "}}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
metrics: [double/length]
execution: {num_repetitions: 2, max_concurrent: 4, retry: {max_attempts: 1}}
"""
SAMPLES = [{"id": name, "question": f"{name}?"} for name in "abcdefgh"]
PLANNED = 2 * 8 * 2
INTERRUPTED = {"MORTAL_DIES_AFTER": "13"}


def lines(samples: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(sample) + "\n" for sample in samples)


@pytest.fixture
def mortal(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(SAMPLES))
    return project


@pytest.fixture
def killed(mortal: Project) -> Project:
    """A run that was killed after 13 answers."""
    assert -9 == mortal.fork("run", "eval.yaml", env=INTERRUPTED).code
    return mortal


@pytest.fixture
def ran(mortal: Project) -> Project:
    """A run that came to its end, with four failed trials."""
    assert 3 == mortal.keval("run", "eval.yaml").code
    return mortal


def asked(project: Project) -> Counter[str]:
    """How often the agent was asked each trial."""
    return Counter((project.root / "journal.txt").read_text(encoding="utf-8").splitlines())


def found(project: Project) -> dict[str, Any]:
    """What the run's summary says, but for its id and how long things took."""
    summary = project.read("summary.json")
    for arm in summary["trials"]:
        for took in ("duration", "duration_median", "duration_p95"):
            del arm[took]
    del summary["elapsed"], summary["expenses"]
    found: dict[str, Any] = json.loads(json.dumps(summary).replace(summary["run"], "RUN"))
    return found


def test_a_run_that_was_killed_goes_on_and_comes_to_the_same_end(killed: Project) -> None:
    before = {trial["id"] for trial in killed.lines("trials.jsonl")}
    done = asked(killed)

    outcome = killed.keval("resume", "latest")

    assert 3 == outcome.code, outcome.stderr
    again = asked(killed) - done
    trials = [trial["id"] for trial in killed.lines("trials.jsonl")]
    assert (PLANNED, PLANNED) == (len(trials), len({*trials}))
    # Up to four were under way, and four being written.
    assert 5 <= len(before) < PLANNED
    assert before.isdisjoint(again)
    assert {*trials} - before == again.keys()
    (entry,) = killed.read("manifest.json")["resumed"]
    assert (0, []) == (entry["retried"], entry["changes"])
    resumed = found(killed)
    killed.keval("run", "eval.yaml", "-o", "whole")
    (whole,) = killed.root.glob("whole/*/*/summary.json")
    (killed.run_directory() / "summary.json").write_bytes(whole.read_bytes())
    assert found(killed) == resumed


def test_what_is_left_is_asked_in_the_order_that_it_would_have_had(mortal: Project) -> None:
    mortal.write(eval_yaml=CONFIG.replace("max_concurrent: 4", "max_concurrent: 1"))
    mortal.fork("run", "eval.yaml", env=INTERRUPTED)
    mortal.keval("resume", "latest")
    journal = mortal.root / "journal.txt"
    resumed = [*dict.fromkeys(journal.read_text(encoding="utf-8").splitlines())]
    journal.unlink()

    mortal.keval("run", "eval.yaml", "-o", "whole")

    assert (PLANNED, journal.read_text(encoding="utf-8").splitlines()) == (len(resumed), resumed)


def test_a_line_that_was_torn_is_run_again(killed: Project) -> None:
    path = killed.run_directory() / "trials.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    torn = json.loads(whole.splitlines()[-1])["id"]

    killed.keval("resume", "latest")

    trials = [trial["id"] for trial in killed.lines("trials.jsonl")]
    assert (PLANNED, 2) == (len({*trials}), asked(killed)[torn])
    assert PLANNED == len(trials)


def test_a_finished_run_has_nothing_left_to_run(ran: Project) -> None:
    before = (asked(ran), found(ran))

    outcome = ran.keval("resume", "latest")

    assert (3, before) == (outcome.code, (asked(ran), found(ran)))


def test_failed_trials_are_run_again_where_that_is_asked_for(ran: Project) -> None:
    ill = {f"mortal/{condition}/c/{number}" for condition in ("baseline", "with_notes") for number in (1, 2)}
    (ran.root / "healed.txt").touch()

    outcome = ran.keval("resume", "latest", "--retry-failed", "--json")

    assert (0, ill) == (outcome.code, {trial for trial, times in asked(ran).items() if times == 2})
    assert [0, 0] == [arm["failed"] for arm in outcome.data["trials"]]
    assert {trial["id"] for trial in ran.lines("retried.jsonl")} == ill
    assert 4 == ran.read("manifest.json")["resumed"][0]["retried"]
    assert [8, 8] == [arm["n"] for arm in outcome.data["arms"]]


def test_repetitions_can_be_added(ran: Project) -> None:
    outcome = ran.keval("resume", "latest", "--add-repetitions", "1", "--json")

    trials = [arm["trials"] for arm in outcome.data["trials"]]
    assert ([24, 24], {1}) == (trials, {*asked(ran).values()})
    assert 3 == ran.read("manifest.json")["config"]["execution"]["num_repetitions"]
    assert 48 == outcome.data["planned"]


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_a_run_that_is_extended_remembers_that_it_was_looked_at(mortal: Project, whole: bool) -> None:
    """Twelve questions, to which four are added: that may be because of what was found on the twelve."""
    few, more = ([{"id": f"q{number}", "question": f"{number}?"} for number in range(count)] for count in (12, 16))
    mortal.write(questions_jsonl=lines(few))
    env = {} if whole else {"MORTAL_DIES_AFTER": "20"}
    mortal.fork("run", "eval.yaml", env=env)
    first = mortal.keval("report", str(mortal.run_directory()), "--json").data
    mortal.write(questions_jsonl=lines(more))

    outcome = mortal.keval("resume", str(mortal.run_directory()), "--extend", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    assert ("looked at before, after 12 questions; intervals hold at every look" in outcome.stdout) == whole
    last = mortal.read("summary.json")["effects"][0]
    before = first["effects"][0]
    if whole:
        assert [12] == mortal.read("manifest.json")["looking"]["before"]
        assert last["ci_high"] - last["ci_low"] > before["ci_high"] - before["ci_low"] or not before["stderr"]


def test_a_config_can_add_samples_and_conditions(ran: Project) -> None:
    more = [*SAMPLES, {"id": "new", "question": "And now?"}]
    text = CONFIG.replace("{contexts: [notes]}}", "{contexts: [notes]}, prompted: {system_prompt: Be kind.}}")
    text += "providers: {openai: {command: [a, token]}}\n"
    ran.write(more_yaml=text.replace("questions.jsonl", "more.jsonl"), more_jsonl=lines(more))

    outcome = ran.keval("resume", "latest", "--extend", "more.yaml", "--json")

    assert 3 == outcome.code, outcome.stderr
    assert {arm["condition"]: arm["trials"] for arm in outcome.data["trials"]} == {
        "baseline": 18,
        "with_notes": 18,
        "prompted": 18,
    }
    assert {1} == {*asked(ran).values()}
    run = open_run()
    assert [*"abcdefgh", "new"] == list(run.samples.ids)
    assert "And now?" == run.trial("mortal/prompted/new/2").sample.question


def edit_manifest(project: Project, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = project.read("manifest.json")
    change(manifest)
    (project.run_directory() / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def other_dataset(project: Project) -> None:
    project.write(questions_jsonl=lines([{**SAMPLES[0], "question": "Else?"}, *SAMPLES[1:]]))


def other_version(project: Project) -> None:
    edit_manifest(project, lambda manifest: manifest["versions"].update({"keval": "0.0.1"}))


def other_plugin(project: Project) -> None:
    edit_manifest(project, lambda manifest: manifest["plugins"].update({"keval.agents:double/mortal": "doubles 9"}))


def other_tools(project: Project) -> None:
    gone = {"tools": ["look"], "sha256": "0"}
    edit_manifest(project, lambda manifest: manifest["conditions"]["with_notes"]["servers"].update(notes=gone))


CHANGES: dict[str, tuple[Callable[[Project], None], dict[str, str], tuple[str, ...], str]] = {
    "dataset": (other_dataset, {}, (), "dataset .*questions.jsonl: SHA-256: was "),
    "variable": (lambda project: None, {"SUFFIX": "!"}, (), r"variable SUFFIX: was not set, is !"),
    "version": (other_version, {}, (), r"version of keval: was 0\.0\.1, is "),
    "plugin": (other_plugin, {}, (), r"plugin keval\.agents:double/mortal: was doubles 9, is keval-doubles 1\.0"),
    "tools": (other_tools, {}, (), "condition with_notes: the server notes is gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_does_not_go_on_where_something_changed_unless_it_is_forced(ran: Project, change: str) -> None:
    edit, environ, flags, told = CHANGES[change]
    edit(ran)
    before = asked(ran)

    refused = ran.keval("resume", "latest", "--add-repetitions", "1", *flags, env=environ)
    unchanged = asked(ran)
    forced = ran.keval("resume", "latest", "--add-repetitions", "1", "--force", *flags, env=environ)

    assert (2, before) == (refused.code, unchanged)
    assert re.search(told, refused.stderr), refused.stderr
    assert 3 == forced.code, forced.stderr
    assert 16 == sum((asked(ran) - before).values())
    (entry,) = ran.read("manifest.json")["resumed"]
    assert re.search(told, "\n".join(entry["changes"]))


def test_a_config_that_extends_a_run_may_change_nothing_of_it(ran: Project) -> None:
    more = [{**SAMPLES[0], "question": "Else?"}, *SAMPLES[2:]]
    text = CONFIG.replace("Read. ", "Heed. ").replace("${SUFFIX:-.}", "!")
    ran.write(more_yaml=text.replace("questions.jsonl", "more.jsonl"), more_jsonl=lines(more))

    outcome = ran.keval("resume", "latest", "--extend", "more.yaml")

    assert 2 == outcome.code
    for told in (
        "agents.mortal.suffix: was ${SUFFIX:-.}, is !",
        "contexts.notes.text: was Read. , is Heed. ",
        "sample a: it asks something else",
        "sample b: it is missing now",
    ):
        assert told in outcome.stderr


def test_a_variable_that_is_no_longer_set_has_its_value_from_the_manifest(mortal: Project) -> None:
    mortal.fork("run", "eval.yaml", env={**INTERRUPTED, "SUFFIX": "!"})

    outcome = mortal.keval("resume", "latest")

    assert 3 == outcome.code, outcome.stderr
    assert {"!"} == {trial["output"][-1] for trial in mortal.lines("trials.jsonl") if trial["output"]}


def test_two_processes_do_not_write_to_one_run(killed: Project) -> None:
    before = asked(killed)
    with FileLock(killed.run_directory() / ".lock"):  # that of the killed process is free
        outcome = killed.keval("resume", "latest")

    assert (2, before) == (outcome.code, asked(killed))
    assert "another process is writing to" in outcome.stderr


def test_the_time_of_a_run_is_what_it_was_worked_on(ran: Project) -> None:
    first = ran.read("manifest.json")["elapsed"]
    began = time.perf_counter()
    resumed = ran.keval("resume", "latest", "--add-repetitions", "1", "--json").data["elapsed"]
    scored = ran.keval("score", "latest", "--json").data["elapsed"]
    took = time.perf_counter() - began

    assert 0 < first < resumed == scored < first + took
    assert scored == ran.read("manifest.json")["elapsed"] == ran.keval("report", "latest", "--json").data["elapsed"]


def test_the_time_of_a_run_that_was_killed_is_unknown(killed: Project) -> None:
    resumed = killed.keval("resume", "latest")

    assert (None, False) == (killed.read("summary.json")["elapsed"], "It took" in resumed.stdout)
