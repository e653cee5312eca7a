"""A run as an object: found, read lazily, and read by other versions of keval."""

from __future__ import annotations

import json
import math
import os
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from keval import RunError, open_run
from keval.store.serialization import from_plain, to_plain
from keval.store.writer import RunWriter
from keval_analysis.comparison import arms_of, compare_arms
from keval_analysis.findings.summary import Summary
from keval_analysis.follow import Follower
from tests.conftest import Project

CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {text: "A long and thorough answer, as the notes say: ", tools: [look], direct: true}}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length, double/grade]
judges: {reader: {}}
rubrics: [double/brevity]
execution: {num_repetitions: 2}
"""
QUESTIONS = "".join(
    json.dumps({"id": name, "question": f"Why {name}?", "answer": "So.", "level": 2, "says": f"Because {name}."}) + "\n"
    for name in ("a", "bb", "ccc")
)
RUNS = Path(__file__).parents[2] / "runs"


@pytest.fixture
def notes(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    assert 0 == project.keval("run", "eval.yaml").code
    return project


def test_a_run_is_found_by_path_id_start_of_id_and_latest(notes: Project) -> None:
    path = notes.run_directory()

    found = [open_run(name).path for name in (path, str(path), path.name, path.name[:8], "latest")]
    elsewhere = open_run("latest", root=notes.root / "results").path

    assert {path.resolve()} == {each.resolve() for each in (*found, elsewhere)}
    with pytest.raises(RunError, match="no run 'nope' at that path or under results"):
        open_run("nope")


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3://bucket/run", "://////"])
def test_an_address_without_a_run_is_told(project: Project, url: str) -> None:
    outcome = project.keval("show", url)

    told = f"error: no run {url!r} at that path or under results; `keval list -o results` lists all\n"
    assert (2, told) == (outcome.code, outcome.stderr)


def test_many_may_look_at_once_whether_a_run_is_written_to(notes: Project) -> None:
    run = open_run()

    def looked(times: int) -> set[bool]:
        with ThreadPoolExecutor(8) as threads:
            return {*threads.map(lambda _: run.is_locked, range(times))}

    idle = looked(2000)
    with FileLock(run.path / ".lock"):
        written = looked(50)

    assert ({False}, {True}) == (idle, written)


def test_many_may_read_trials_at_once(notes: Project) -> None:
    run = open_run()
    ids = [key.id for key in run.known_trials] * 200

    with ThreadPoolExecutor(8) as threads:
        read = [*threads.map(run.trial, ids)]

    assert ids == [trial.id for trial in read]


def test_everything_of_a_run_is_read(notes: Project) -> None:
    run = open_run()

    trial = run.trial("scripted/with_notes/bb/2")
    lengths = [line for line in run.scores() if line.metric == "double/length" and line.condition == "baseline"]
    (effect,) = (effect for effect in run.summary().effects if effect.metric == "double/length")
    assert ("notes", 12, "baseline") == (run.manifest.evaluation, run.manifest.trials, run.manifest.baseline)
    assert ("bb", "Why bb?", "So.") == (trial.sample.id, trial.question, trial.sample.answer)
    assert {"files": 5, "setup": "medium"} == trial.characteristics == run.manifest.agents["scripted"].characteristics
    assert run.sample("ccc").metadata["says"] == "Because ccc."
    assert (6, 3) == (len(lengths), effect.n)
    assert to_plain(run.summary()) == notes.read("summary.json")
    with pytest.raises(RunError, match=r"did you mean 'scripted/with_notes/bb/2'\?"):
        run.trial("scripted/with_notes/bb/3")


def test_trials_and_scores_are_read_in_the_order_of_the_dataset_however_they_were_run(notes: Project) -> None:
    pytest.importorskip("pyarrow")
    notes.keval("score", "latest", "--metric", "double/neutral")  # which stands behind all other scores
    ids = [
        f"scripted/{condition}/{sample}/{repetition}"
        for repetition in (1, 2)
        for sample in ("a", "bb", "ccc")
        for condition in ("baseline", "with_notes")
    ]
    metrics = ["double/length", "double/grade", "double/brevity", "double/neutral"]
    trials = open_run().trials_file
    trials.write_bytes(b"".join(reversed(trials.read_bytes().splitlines(keepends=True))))

    run = open_run()

    finished = [trial["id"] for trial in notes.lines("trials.jsonl")]
    assert ids != finished == [trial.id for trial in run.trials_as_finished()]
    assert ids == [trial.id for trial in run.trials()] == run.to_arrow("trials").column("id").to_pylist()
    made, scored = ([f"{line.trial} {line.metric}" for line in lines] for lines in (run.scores_as_made(), run.scores()))
    assert [f"{line['trial']} {line['metric']}" for line in notes.lines("scores.jsonl")] == made != scored
    assert [f"{name} {metric}" for name in ids for metric in metrics] == scored
    shown = [line.split()[0] for line in notes.keval("show", "latest").stdout.splitlines() if "scripted/" in line]
    assert ids == shown


def test_a_run_whose_lines_another_program_wrote_is_read_in_the_same_order(notes: Project) -> None:
    run = open_run()
    before = [*run.trials()], [*run.known_trials]

    lines = [json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in notes.lines("trials.jsonl")]
    run.trials_file.write_text("".join(lines), encoding="utf-8")

    again = open_run()
    assert before == ([*again.trials()], [*again.known_trials])


def test_the_summary_is_the_same_in_whatever_order_trials_finished(notes: Project) -> None:
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 2, seed: 5")
    questions = [{"id": f"q{n}", "question": "?", "level": 2, "says": "long " * (1 + n * n % 7 * 4)} for n in range(11)]
    notes.write(eval_yaml=config, questions_jsonl="".join(json.dumps(question) + "\n" for question in questions))
    notes.keval("run", "eval.yaml", "-o", "more")
    run = open_run("latest", root=notes.root / "more")
    trials, scores = run.trials_file, run.scores_file.path
    lines = trials.read_bytes().splitlines(keepends=True)
    lines = [line for line in lines if b"/q0/1" not in line]  # a sample may lack its first repetition
    trials.write_bytes(b"".join(lines))
    expected = open_run(run.path).summary()

    trials.write_bytes(b"".join(reversed(lines)))
    scores.write_bytes(b"".join(reversed(scores.read_bytes().splitlines(keepends=True))))
    follower = Follower(run.path)
    follower.advance()

    baseline, with_notes = arms_of(open_run(run.path))
    lengths = compare_arms(with_notes, baseline).scores["double/length", None]
    assert [f"q{n}" for n in range(11)] == [each.sample for each in lengths]
    (effect,) = (effect for effect in expected.effects if effect.metric == "double/length")
    assert effect.ci_low != effect.ci_high
    assert to_plain(expected) == to_plain(open_run(run.path).summary()) == to_plain(follower.summary())


def test_a_damaged_line_is_told_by_its_own_number(notes: Project) -> None:
    lines = open_run().trials_file.read_text(encoding="utf-8").splitlines(keepends=True)

    for number, damage in [(4, "{}\n"), (9, lines[8].replace('"messages":[', '"messages":[7,'))]:
        text = "".join([*lines[: number - 1], damage, *lines[number:]])
        open_run().trials_file.write_text(text, encoding="utf-8")

        with pytest.raises(RunError, match=rf"trials\.jsonl:{number}: this line is damaged"):
            [*open_run().trials()]


def test_scores_that_do_not_count_are_left_out(notes: Project) -> None:
    path = notes.run_directory() / "scores.jsonl"
    first, *others = notes.lines("scores.jsonl")
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in ({**first, "digest": "old"}, *others)), encoding="utf-8"
    )

    assert len(others) == len(list(open_run().scores()))


def test_a_run_is_read_in_flat_memory(project: Project) -> None:
    long = {"id": "long", "question": "How long?", "answer": "", "level": 1, "says": "very " * 20_000}
    config = CONFIG.replace("num_repetitions: 2", "num_repetitions: 40")
    project.write(eval_yaml=config, questions_jsonl=json.dumps(long) + "\n")
    project.keval("run", "eval.yaml", "--metric", "double/length", "--condition", "baseline")

    tracemalloc.start()
    run = open_run()
    outputs = sum(len(trial.output) for trial in run.trials())
    again = sum(len(run.trial(f"scripted/baseline/long/{number}").output) for number in range(1, 41))
    summary = run.summary()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (4_000_000, 4_000_000, 40) == (outputs, again, summary.trials[0].trials)
    assert 8_000_000 < run.trials_file.stat().st_size
    assert peak < 4_000_000


def test_trials_and_scores_become_tables(notes: Project) -> None:
    pytest.importorskip("pyarrow")
    run = open_run()

    trials, scores = run.to_arrow("trials"), run.to_arrow("scores")

    assert (12, len(list(run.scores()))) == (trials.num_rows, scores.num_rows)
    first = trials.slice(0, 1).to_pylist()[0]
    assert ("a", "Because a.", False, 1) == (first["sample"], first["output"], first["failed"], first["attempts"])
    graded = [row for row in scores.to_pylist() if row["judge"] == "reader"]
    assert {(2.0, 1, "double/brevity")} == {(row["value"], row["judge_repetition"], row["metric"]) for row in graded}
    with pytest.raises(RunError, match="no 'answers'"):
        run.to_arrow("answers")  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["pyarrow", "pandas"])
def test_a_table_says_what_to_install(notes: Project, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(RunError, match=f"need.* {missing}: `.* {missing}`"):
        open_run().to_pandas()


def test_what_a_newer_version_wrote_is_kept(notes: Project) -> None:
    path = notes.run_directory() / "manifest.json"
    manifest = notes.read("manifest.json")
    manifest["newer"] = {"deep": [1, None]}
    manifest["agents"]["scripted"]["newer"] = "x"
    manifest["conditions"]["with_notes"]["servers"]["notes"]["newer"] = 3.5
    manifest["scorers"][0]["newer"] = True
    manifest["scorers"][0]["scale"]["newer"] = [1]  # where there is no place for it, it is left out
    path.write_text(json.dumps(manifest), encoding="utf-8")
    for name in ("trials.jsonl", "scores.jsonl", "samples.jsonl"):
        lines = [{**line, "newer": {"key": 1}} for line in notes.lines(name)]
        if name == "trials.jsonl":
            for line in lines:
                line["transcript"]["newer"] = 1
                line["transcript"]["messages"][0]["newer"] = 1
        path.with_name(name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    outcome = notes.keval("score", "latest", "--metric", "double/neutral")

    after = notes.read("manifest.json")
    assert 0 == outcome.code
    assert ({"deep": [1, None]}, "x") == (after["newer"], after["agents"]["scripted"]["newer"])
    assert 3.5 == after["conditions"]["with_notes"]["servers"]["notes"]["newer"]
    assert (True, {"deep": [1, None]}) == (after["scorers"][0]["newer"], open_run().manifest.extra["newer"])
    assert 12 == len(list(open_run().trials()))
    assert {"key": 1} == notes.lines("scores.jsonl")[0]["newer"]


def test_what_an_older_version_did_not_write_is_unknown(notes: Project) -> None:
    path = notes.run_directory() / "manifest.json"
    manifest = notes.read("manifest.json")
    for key in ("started", "config_file", "selection", "plugins", "versions", "simulated", "neutral", "seed"):
        del manifest[key]
    del manifest["agents"]["scripted"]["characteristics"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    lines = notes.lines("trials.jsonl")
    for line in lines:
        for key in ("complied", "attempts", "model", "output"):
            del line[key]
        for key in ("tools", "unlisted_calls", "turn_durations", "usage"):
            del line["transcript"][key]
    path.with_name("trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    run = open_run()

    trial = run.trial("scripted/baseline/a/1")
    assert (None, None, {}) == (run.manifest.started, trial.model, trial.characteristics)
    assert trial.transcript
    assert (None, None) == (trial.transcript.usage.input_tokens, trial.transcript.tools)
    assert 0 == notes.keval("report", "latest").code


def test_a_run_of_another_format_is_refused_in_a_line(notes: Project) -> None:
    path = notes.run_directory() / "manifest.json"
    path.write_text(json.dumps({**notes.read("manifest.json"), "format": 2}), encoding="utf-8")

    outcomes = [notes.keval(command, "latest") for command in ("report", "show", "score")]

    told = "has format 2, and this version of keval reads format 3 only"
    assert [(2, True, 1)] * 3 == [(o.code, told in o.stderr, o.stderr.count("\n")) for o in outcomes]


def damaged(data: Any) -> list[Any]:
    """Every copy of the data in which one value is another kind of thing, or is missing."""
    found: list[Any] = []
    if isinstance(data, dict):
        for key, value in data.items():
            found.append({name: item for name, item in data.items() if name != key})
            found += [{**data, key: other} for other in (7, "x", None, [1], {"y": 2}) if type(other) is not type(value)]
            found += [{**data, key: copy} for copy in damaged(value)[:12]]
    return found


@pytest.mark.slow
def test_a_damaged_manifest_is_told_at_its_place(notes: Project) -> None:
    path = notes.run_directory() / "manifest.json"
    whole = {key: value for key, value in notes.read("manifest.json").items() if key != "config"}
    config = notes.read("manifest.json")["config"]
    copies = damaged(whole)
    refused = 0

    for number, copy in enumerate(copies):
        path.write_text(json.dumps({"config": config, **copy}), encoding="utf-8")
        try:
            open_run().summary()
        except RunError:  # anything else would be a defect
            refused += 1
        if number % 20 == 0:
            outcome = notes.keval("report", "latest")
            assert outcome.code in (0, 2, 3), (copy, outcome.stderr)

    assert len(copies) > 150
    assert refused > 100


@pytest.mark.parametrize(
    ("part", "changed", "told"),
    [
        ("effects", {"metric": "nothing"}, "it does not list the metric 'nothing'; remove it"),
        ("arms", {"judge": "nobody"}, "it does not list the metric"),
        ("expenses", {"metric": "wishes"}, "it does not list the metric 'wishes'; remove it"),
        ("effects", {"needed_samples": [1]}, "expected a list of 2, got a list"),
    ],
)
def test_a_damaged_summary_is_told_at_its_place(notes: Project, part: str, changed: Any, told: str) -> None:
    summary = notes.read("summary.json")
    summary[part][0] |= changed
    (notes.run_directory() / "summary.json").write_text(json.dumps(summary), encoding="utf-8")

    outcome = notes.keval("export", "latest", "--format", "html", "--to", "out")

    assert (2, True) == (outcome.code, "summary.json is damaged: " in outcome.stderr), outcome.stderr
    assert told in " ".join(outcome.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags"),
    [("retried.jsonl", ("--retry-failed",)), ("recording/traffic.jsonl.zst", ("--record", "--add-repetitions", "1"))],
)
def test_a_pipe_in_the_place_of_a_file_that_is_appended_to_is_refused(
    notes: Project, name: str, flags: tuple[str, ...]
) -> None:
    run = notes.run_directory()
    first, *others = notes.lines("trials.jsonl")
    failed = {**first, "failure": {"stage": "agent", "kind": "late", "message": "too late", "traceback": None}}
    (run / "trials.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [failed, *others]), encoding="utf-8")
    (run / name).parent.mkdir(exist_ok=True)
    os.mkfifo(run / name)

    outcome = notes.spawn("resume", "latest", *flags, timeout=20)

    assert (2, True) == (outcome.code, f"{name} cannot be written: not a regular file" in outcome.stderr)


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "blobs").touch()

    with pytest.raises(RunError, match="blobs cannot be written: File exists; what was written before is kept"):
        RunWriter(tmp_path).write_blobs([])


def test_a_score_that_is_too_large_for_its_square_is_damage(notes: Project) -> None:
    first, *others = notes.lines("scores.jsonl")
    path = notes.run_directory() / "scores.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [{**first, "value": 1e200}, *others]), encoding="utf-8")

    outcome = notes.keval("report", "latest")

    assert (2, True) == (outcome.code, "scores.jsonl:1: " in outcome.stderr), outcome.stderr
    assert "no scorer gives a score of 1e+200" in outcome.stderr


def test_an_evaluation_without_a_name_is_damage(notes: Project) -> None:
    path = notes.run_directory() / "manifest.json"
    path.write_text(json.dumps({**notes.read("manifest.json"), "evaluation": " "}), encoding="utf-8")

    outcome = notes.keval("report", "latest")

    assert (2, True) == (outcome.code, "manifest.json is damaged: the evaluation has no name" in outcome.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("odd", [None, True, 7, ["a"], {"b": 1}, 1e30])
def test_what_is_only_shown_is_read_as_a_text_whatever_was_left_there(notes: Project, odd: Any) -> None:
    for name in ("trials.jsonl", "scores.jsonl"):
        path = notes.run_directory() / name
        first, *others = notes.lines(name)
        if name == "trials.jsonl":
            first["failure"] = {"stage": "agent", "kind": "odd", "message": odd, "traceback": odd}
            first["transcript"]["tool_calls"] = [{"name": "look", "error": odd}, {"name": "look", "result": odd}]
        else:
            first["reason"] = odd
        path.write_text("".join(json.dumps(each) + "\n" for each in [first, *others]), encoding="utf-8")
    trial = notes.lines("trials.jsonl")[0]["id"]

    told = [
        notes.keval(*command)
        for command in (
            ("report", "latest", "--html", "page.html"),
            ("report", "latest", "--markdown"),
            ("show", "latest", "--trial", trial),
            ("show", "latest", "--failed"),
            *(("export", "latest", "--format", name, "--to", name) for name in ("csv", "parquet", "junit", "otlp")),
        )
    ]

    assert [] == [outcome.stderr for outcome in told if outcome.code not in (0, 3)]
    failure = open_run().trial(trial).failure
    assert failure is not None
    assert ("" if odd is None else json.dumps(odd, separators=(",", ":"))) == failure.message


def test_a_value_that_fits_no_column_is_told_with_its_trial(notes: Project) -> None:
    first, *others = notes.lines("trials.jsonl")
    first["repetition"] = True
    path = notes.run_directory() / "trials.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [first, *others]), encoding="utf-8")

    outcome = notes.keval("export", "latest", "--format", "parquet", "--to", "tables")

    assert 2 == outcome.code
    assert f"the trial {first['id']!r} has a value that does not fit its column" in outcome.stderr
    assert [] == [*(notes.root / "tables").glob("*")]


def test_a_run_that_was_written_by_a_landed_version_opens_for_ever() -> None:
    """Every folder under tests/runs was written by the version that its name says; none is ever changed."""
    folders = sorted(path.parent for path in RUNS.glob("*/*/manifest.json"))

    assert folders
    for folder in folders:
        run = open_run(folder)
        written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        assert from_plain(Summary, written, folder / "summary.json").run == run.id
        assert [] == lacking(written, to_plain(run.summary()))
        assert run.manifest.trials == len(list(run.trials()))
        assert list(run.samples.ids) == [run.sample(name).id for name in run.samples.ids]


def lacking(written: Any, now: Any, place: str = "") -> list[str]:
    """Where plain data that was written before is not what it is now; what was added since is no difference."""
    if isinstance(written, dict) and isinstance(now, dict):
        return [told for key, value in written.items() for told in lacking(value, now.get(key), f"{place}.{key}")]
    if isinstance(written, list) and isinstance(now, list) and len(written) <= len(now):
        pairs = enumerate(zip(written, now, strict=False))
        return [told for index, (old, new) in pairs for told in lacking(old, new, f"{place}.{index}")]
    if isinstance(written, float) and isinstance(now, float) and math.isclose(written, now, rel_tol=1e-12):
        return []
    return [] if written == now else [f"{place}: {written!r} is {now!r}"]
