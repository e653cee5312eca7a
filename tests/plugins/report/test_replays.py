"""Labels of a replayed run: wherever its answers are shown, it is said that they are a recording's, and of when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval.store.run import Run
from tests.conftest import Project
from tests.ratings import run_of

ENTRY = {
    "run": "20261022-101112-abcd",
    "recorded": "2026-10-22T10:11:12+00:00",
    "misses": "live",
    "live_trials": 2,
    "live_judgements": 1,
    "changes": ["version of keval: was 0.1.0, is 0.2.0", "metric number/rating: it changed, so it scored anew"],
}
LABEL = "REPLAY: answers recorded 2026-10-22; 2 trials and 1 judgement live"
ASKED = "; 2 trials and 1 judgement were made live."
SENTENCES = [
    f"The answers were replayed from run 20261022-101112-abcd, recorded on 2026-10-22{ASKED}",
    "Changed since: version of keval: was 0.1.0, is 0.2.0; metric number/rating: it changed, so it scored anew.",
]
DECIDED = "decided on replayed answers, recorded on 2026-10-22"


def label(run: Run, **values: Any) -> None:
    """Write that the run was replayed, as `keval run --replay` does."""
    path = run.path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, "replay": {**ENTRY, **values}}), encoding="utf-8")


@pytest.fixture
def replayed(project: Project) -> Run:
    run = run_of(project, "ratings", {"a": 0.25, "b": 0.5, "c": 0.5})
    label(run)
    return run


def test_reports_say_that_the_answers_are_recorded_ones(project: Project, replayed: Run) -> None:
    gate = ["--fail-under", "number/rating >= 0"]
    first, table = (project.keval("report", replayed.id, *more, *gate).stdout for more in ([], ["--explain"]))
    page = project.keval("report", replayed.id, "--html", "page.html", *gate)
    markdown = project.keval("report", replayed.id, "--markdown", *gate).stdout

    text = (project.root / "page.html").read_text(encoding="utf-8")
    assert 0 == page.code
    assert f"<strong>REPLAY</strong>{LABEL.removeprefix('REPLAY')}" in text
    assert (1, 1, 1) == (text.count(SENTENCES[0]), text.count(DECIDED), text.count(f"recorded {ENTRY['recorded']}"))
    assert f"**{LABEL}**" in markdown
    assert (1, 1) == (markdown.count(f"- {SENTENCES[0]}"), markdown.count(f"*{DECIDED}*"))
    flowing = " ".join(table.split())
    assert [1, 1, 1] == [flowing.count(told) for told in (*SENTENCES, DECIDED)]
    flowing = " ".join(first.split())
    assert (1, 1, 1) == tuple(flowing.count(told) for told in (LABEL, SENTENCES[1], DECIDED))


def test_data_for_programs_says_so_too(project: Project, replayed: Run) -> None:
    summary = project.keval("report", replayed.id, "--json").data
    listed = project.keval("list", "--json").data
    arms = project.keval("compare", replayed.id, "--json").data
    shown = project.keval("show", replayed.id).stdout

    assert ENTRY == summary["replay"] == listed[0]["replay"] == arms["runs"][0]["replay"]
    assert [1, 1] == [shown.count(sentence) for sentence in SENTENCES]
    assert f"\n{LABEL}\n" in project.keval("show", replayed.id, "--trial", "one/baseline/a/1").stdout
    assert f"\n{LABEL}\n" in project.keval("show", replayed.id, "--sample", "a").stdout


def test_comparing_names_the_replayed_run(project: Project, replayed: Run) -> None:
    other = run_of(project, "others", {"a": 0.5, "b": 0.5, "c": 0.25})

    told = project.keval("compare", replayed.id, other.id).stdout

    assert f"{replayed.id}: {LABEL}\n" in told


def test_exports_have_it_in_their_metadata(project: Project, replayed: Run) -> None:
    for name in ("junit", "otlp", "eee"):
        assert 0 == project.keval("export", replayed.id, "--format", name, "--to", name).code

    texts = {
        name: "".join(path.read_text(encoding="utf-8") for path in (project.root / name).rglob("*") if path.is_file())
        for name in ("junit", "otlp", "eee")
    }
    assert f'<property name="replayed_from" value="{ENTRY["run"]}"/>' in texts["junit"]
    assert texts["otlp"].count('"keval.replay.recorded"') == 6
    assert f'"replayed_from": "{ENTRY["run"]}"' in texts["eee"]


def test_a_replay_without_misses_and_changes_says_that_nothing_was_asked(project: Project, replayed: Run) -> None:
    label(
        replayed, live_trials=0, live_judgements=0, changes=[f"variable V{number}: it changed" for number in range(9)]
    )

    told = " ".join(project.keval("report", replayed.id, "--explain").stdout.split())

    assert "recorded on 2026-10-22; no request was sent to a model or server." in told
    assert "variable V5: it changed; 3 other changes." in told


def test_a_replay_that_is_graded_again_says_so(project: Project, replayed: Run, simulated_here: None) -> None:
    label(replayed, changes=[])
    asked = ["--judge", "openai", "--model", "openai=simulated/judge"]
    for _ in range(2):
        assert 0 == project.keval("score", replayed.id, *asked, "-q").code

    told = " ".join(project.keval("report", replayed.id).stdout.split())

    assert 1 == told.count("Changed since: judge openai: graded again after the replay.")
