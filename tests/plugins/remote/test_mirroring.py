"""Runs that are mirrored: what lies where, who may write, and that a command does there what it does in a folder."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import keval
from keval.seams.results import results_folder
from keval.store.lock import locked
from keval_analysis.findings.reviews import Review
from keval_remote.copies import RunCopy
from keval_remote.objects import Objects
from tests.conftest import INSTALLED, Project
from tests.plugins.remote.conftest import CONFIG, Machine, eventually, questions

Machines = Callable[[str], Machine]


def stored(bucket: Path) -> dict[str, bytes]:
    """The objects of the one run, by their names."""
    (run,) = bucket.glob("results/*/*")
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def here(run: Path) -> dict[str, bytes]:
    """The files of a run that are mirrored."""
    names = {path.relative_to(run).as_posix(): path for path in run.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in names.items() if name[0] != "." and not name.endswith(".index")}


def trials(objects: dict[str, bytes]) -> list[str]:
    return [json.loads(line)["sample"] for line in objects["trials.jsonl"].splitlines()]


def test_a_run_is_mirrored_as_plain_files_and_read_elsewhere(machine: Machines, bucket: Path) -> None:
    a, b = machine("a"), machine("b")

    ran = a.keval("run", "eval.yaml", "--json")

    objects = stored(bucket)
    listed = b.keval("list", "--json")
    assert (0, {"manifest.json", "samples.jsonl", "scores.jsonl", "summary.json", "trials.jsonl"}) == (
        ran.code,
        {name for name in objects if not name.startswith("blobs/")},
    )
    assert objects == here(a.run())
    assert (0, f"{a.url}/shared/{a.run().name}") == (listed.code, listed.data[0]["path"])
    assert (0, True) == ((told := b.keval("history")).code, a.run().name in told.stdout), told.stderr
    assert {"manifest.json", "summary.json"} == b.files()
    reported = b.keval("report", "latest", "--json")
    assert ran.data == reported.data
    assert reported.stderr.splitlines()[-1] == f"{a.url}/shared/{a.run().name}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["show", "RUN"],
        ["show", "RUN", "--trial", "scripted/baseline/q1/1"],
        ["report", "RUN"],
        ["compare", "RUN"],
        ["score", "RUN"],
        ["resume", "RUN"],
        ["export", "RUN", "--format", "csv", "--to", "exported"],
        ["run", "eval.yaml", "--fail-on-regression", "RUN"],
    ],
    ids=" ".join,
)
def test_commands_do_there_what_they_do_in_a_folder(machine: Machines, command: list[str]) -> None:
    a = machine("a")
    a.keval("run", "eval.yaml")
    url = f"{a.url}/shared/{a.run().name}"

    by_id = machine("b").keval(*("latest" if word == "RUN" else word for word in command))
    by_url = machine("c").bare(*(url if word == "RUN" else word for word in command))

    assert (0, 0) == (by_id.code, by_url.code), by_id.stderr + by_url.stderr


def test_the_commands_of_the_page_run(machine: Machines) -> None:
    page = (Path(__file__).parents[3] / "docs" / "remote-results.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    a = machine("a")

    outcomes = [a.bare(*line.replace("s3://bucket/prefix", a.url).split()[1:]) for line in block.splitlines()]

    assert [0, 0] == [outcome.code for outcome in outcomes]


def test_two_runs_there_are_compared_and_diffed_and_one_is_trimmed(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.keval("run", "eval.yaml", "--record")
    first = f"{a.url}/shared/{a.run().name}"
    machine("c").keval("run", "eval.yaml")
    second = f"{a.url}/shared/{machine('c').run().name}"

    compared = b.bare("compare", first, second)
    same = b.bare("compare", "--exact", first, second)
    trimmed = b.bare("record", "trim", first, "--samples", "q1", "-o", "small")

    assert (0, 0, 0) == (compared.code, same.code, trimmed.code), compared.stderr + same.stdout + trimmed.stderr
    assert "1 trial" in trimmed.stdout


@pytest.mark.slow
def test_doctor_says_whether_something_can_be_written_there(machine: Machines, bucket: Path) -> None:
    found = machine("a").keval("validate", "--live").stdout
    shutil.rmtree(bucket)
    bucket.write_text("in the way", encoding="utf-8")

    broken = machine("b").keval("validate", "--live").stdout

    assert f"file://{bucket}/results can be written" in " ".join(found.split())
    assert f"file://{bucket}/results: NotADirectoryError" in " ".join(broken.split())


def test_growing_files_are_read_while_they_grow_and_a_second_writer_is_refused(machine: Machines, bucket: Path) -> None:
    a, b = machine("a").but(KEVAL_REMOTE_LEASE_SECONDS="30"), machine("b")
    a.project.write(questions_jsonl=questions(5, hang=True))
    with a.begin("run", "eval.yaml") as process:
        try:
            eventually(lambda: [*bucket.glob("results/*/*/.scores.*.parts/*")])
            first = b.keval("report", "latest", "--json")
            refused = b.keval("resume", "latest")
            one = ("show", "latest", "--trial", "scripted/baseline/q0/1")
            eventually(lambda: b.keval(*one).code == 0)  # another question's scores may come first
            shown = b.keval(*one)
        finally:
            process.kill()

    assert first.data["trials"][0]["trials"] >= 1
    assert (0, True) == (shown.code, "user: How, 0?" in shown.stdout)
    assert 2 == refused.code
    assert f"is being written by process {process.pid} on " in refused.stderr


@pytest.mark.slow
def test_a_lost_machine_loses_no_more_than_the_open_part(
    machine: Machines, bucket: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = machine("a"), machine("b")
    a.project.write(
        eval_yaml=CONFIG.replace("scripted: {}", "mortal: {type: double/mortal, journal: asked.txt}"),
        questions_jsonl=questions(40),
    )
    killed = a.fork("run", "eval.yaml", MORTAL_DIES_AFTER="25")
    parts = [path.name for path in bucket.glob("results/*/*/trials.jsonl.parts/*")]
    asked = len((a.project.root / "asked.txt").read_text(encoding="utf-8").splitlines())

    eventually(lambda: b.keval("resume", "latest").code == 0)

    objects = stored(bucket)
    again = len((a.project.root / "asked.txt").read_text(encoding="utf-8").splitlines()) - asked
    assert -signal.SIGKILL == killed.code
    assert "its lease is taken over" in caplog.text
    assert sorted(f"q{n}" for n in range(40)) == sorted(trials(objects))
    assert 40 - 26 < again <= 40
    assert parts or again == 40
    assert {name for name in objects if "parts" in name or name.startswith(".")} == set()
    # What the first machine finished and had not mirrored is not mixed into the run that another one went on with.
    late = a.keval("report", "latest")
    assert 2 == late.code
    assert "another machine went on with" in late.stderr
    assert f"what it wrote is in {a.run()}" in late.stderr


def test_what_a_killed_process_had_not_mirrored_is_mirrored_by_the_next_command(
    machine: Machines, bucket: Path
) -> None:
    a = machine("a")
    slow = a.but(KEVAL_REMOTE_PART_SECONDS="600")
    a.project.write(
        eval_yaml=CONFIG.replace("scripted: {}", "mortal: {type: double/mortal, journal: asked.txt}"),
        questions_jsonl=questions(9),
    )
    slow.fork("run", "eval.yaml", MORTAL_DIES_AFTER="5")
    assert "trials.jsonl" not in stored(bucket)

    reported = a.keval("report", "latest", "--json")

    kept = reported.data["trials"][0]["trials"]
    assert kept in {4, 5}  # the last was perhaps not written yet when the process was killed
    assert here(a.run()) == {name: text for name, text in stored(bucket).items() if name[0] != "."}
    assert kept == len(trials(stored(bucket)))
    resumed = machine("b").keval("resume", "latest")
    assert (0, 9) == (resumed.code, len(trials(stored(bucket))))


def test_a_run_that_is_newer_here_is_listed_whatever_lies_there(machine: Machines, bucket: Path) -> None:
    a = machine("a")
    a.project.write(eval_yaml=CONFIG.replace("scripted: {}", "mortal: {type: double/mortal, journal: asked.txt}"))
    a.fork("run", "eval.yaml", MORTAL_DIES_AFTER="1")
    shutil.rmtree(bucket)

    listed = a.keval("list")

    assert (0, True) == (listed.code, a.run().name in listed.stdout)


def test_a_file_that_another_one_replaced_begins_again(machine: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if that is larger, so that only its content tells."""
    a = machine("a")
    for name, value in a.environ.items():
        monkeypatch.setenv(name, value)
    run = results_folder(a.url) / "shared" / "20260101-000000-aaaa"
    run.mkdir(parents=True)
    lines, other = b"1\n2\n", b"3\n4\n5\n"
    reader = RunCopy(a.project.root / "reader", Objects.at(f"{a.url}/shared/{run.name}"))

    def brought() -> bytes:
        reader.fetch()
        return (reader.run / "trials.jsonl").read_bytes() if (reader.run / "trials.jsonl").exists() else b""

    reader.run.mkdir()
    with locked(run):
        (run / "trials.jsonl").write_bytes(lines)
        eventually(lambda: brought() == lines)
        (run / "trials.jsonl").write_bytes(other)
        eventually(lambda: brought() == other)
        with (run / "trials.jsonl").open("ab") as file:
            file.write(b"6\ntorn")
        eventually(lambda: brought() == other + b"6\n")

    assert other + b"6\ntorn" == brought()


def test_files_that_are_written_anew_are_mirrored_as_they_are(machine: Machines, bucket: Path) -> None:
    a, b = machine("a"), machine("b")
    agent = "mortal: {type: double/mortal, journal: asked.txt, fails: [q1], healed: healed}"
    a.project.write(eval_yaml=CONFIG.replace("scripted: {}", agent))
    assert 3 == a.keval("run", "eval.yaml").code
    assert 3 == b.keval("report", "latest").code
    (a.project.root / "healed").touch()

    healed = b.keval("resume", "latest", "--retry-failed")
    scored = a.keval("score", "latest", "--metric", "double/characters")

    objects = stored(bucket)
    assert (0, 0) == (healed.code, scored.code)
    assert here(a.run()) == objects
    assert ["q0", "q2", "q1"] == trials(objects)
    assert 1 == len(objects["retried.jsonl"].splitlines())
    metrics = [json.loads(line)["metric"] for line in objects["scores.jsonl"].splitlines()]
    assert (3, 3) == (metrics.count("double/length"), metrics.count("double/characters"))
    assert 0 == b.keval("report", "latest").code
    assert here(b.run()) == objects


def test_blobs_and_recordings_are_brought_when_they_are_read(machine: Machines, bucket: Path) -> None:
    a, b = machine("a"), machine("b")
    a.project.write(questions_jsonl=questions(2, attaches="a cat"))
    assert 0 == a.keval("run", "eval.yaml", "--record").code
    blobs = {name for name in stored(bucket) if name.startswith("blobs/")}
    b.keval("report", "latest")
    before = b.files()

    replayed = b.keval("run", "--replay", "latest")

    assert blobs
    assert {*()} == {name for name in before if name.startswith(("blobs/", "recording/"))}
    assert 0 == replayed.code, replayed.stderr


def test_reviews_of_two_machines_are_all_kept(machine: Machines, bucket: Path) -> None:
    a, b = machine("a"), machine("b")
    a.keval("run", "eval.yaml")
    b.keval("report", "latest")
    reviews = [
        Review("scripted/baseline/q0/1", "", name, "2026-01-01T00:00:00+00:00", kind="note", note="good")
        for name in ("Ada", "Bo")
    ]

    keval.Run(a.run()).reviews_file.append(reviews[:1])
    keval.Run(b.run()).reviews_file.append(reviews[1:])

    assert ["Ada", "Bo"] == [json.loads(line)["reviewer"] for line in stored(bucket)["reviews.jsonl"].splitlines()]
    assert 0 == a.keval("report", "latest").code
    assert here(a.run())["reviews.jsonl"] == stored(bucket)["reviews.jsonl"]


def test_a_run_that_was_removed_there_is_gone_here(machine: Machines, bucket: Path) -> None:
    a = machine("a")
    a.keval("run", "eval.yaml")
    (bucket / "results").rename(bucket / "elsewhere")

    listed = a.keval("list")

    assert (0, "") == (listed.code, listed.stdout)
    assert 1 == len([*a.cache.glob("*/.gone/shared/*/trials.jsonl")])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "eval.yaml", "-o", "s3://user:secret@bucket/p"], "has no password"),
        (["list", "-o", "s3://bucket/p?sig=secret"], "no query"),
        (["list", "-o", "nowhere://bucket/p"], "nowhere://bucket/p: Protocol not known: nowhere"),
        (["list", "-o", "gs://bucket/p"], "plugins/remote[gs]"),
        (["show", "file:///nowhere/at/all/eval/run"], "no run at file:///nowhere/at/all/eval/run"),
        (["record", "trim", "latest", "-o", "file:///x/y"], "is a URL; name a folder of this machine"),
    ],
    ids=["password", "query", "scheme", "client", "missing", "trim"],
)
def test_urls_that_cannot_be_used_are_refused(machine: Machines, arguments: list[str], told: str) -> None:
    outcome = machine("a").bare(*arguments)

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert "secret" not in outcome.stderr


def test_an_export_of_a_mirrored_run_needs_a_folder(machine: Machines) -> None:
    machine("a").keval("run", "eval.yaml")

    outcome = machine("b").keval("export", "latest", "--format", "csv")

    assert 2 == outcome.code
    assert "name a folder with --to" in outcome.stderr


def test_without_the_plugin_an_error_names_its_package(machine: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    from keval.seams import registry, results

    results._mirror.cache_clear()
    found = registry.components
    monkeypatch.setattr(registry, "components", lambda group: () if group == "keval.results" else found(group))

    outcome = machine("a").keval("list")

    results._mirror.cache_clear()
    told = "comes with keval-remote, which is not installed: `"
    assert (2, True) == (outcome.code, told in outcome.stderr)


def test_a_run_in_a_folder_imports_and_starts_nothing_of_this(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=questions(2))
    code = (
        "import sys, threading\nfrom keval.cli import main\n"
        "try: main(['run', 'eval.yaml', '-q'])\n"
        "except SystemExit: pass\n"
        "names = [name for name in ('fsspec', 'keval_remote') if name in sys.modules]\n"
        "print(names, [each.name for each in threading.enumerate() if 'keval' in each.name])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=project.root,
        env={"PYTHONPATH": str(INSTALLED), "PATH": ""},
    )

    assert "[] []" == done.stdout.strip()


@pytest.mark.slow
def test_whoever_reads_at_any_moment_sees_a_run(
    machine: Machines, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its lines refer to is there, and it never goes back."""
    a, b = machine("a"), machine("b")
    monkeypatch.setenv("KEVAL_CACHE", str(b.cache))
    lines = [{"id": f"q{n}", "question": "How?", "attaches": f"picture {n}"} for n in range(120)]
    config = CONFIG.replace("scripted: {}", "scripted: {delay: 0.01}")
    a.project.write(eval_yaml=config, questions_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    seen: list[int] = []

    with a.begin("run", "eval.yaml", "-q") as process:
        eventually(lambda: [*bucket.glob("results/*/*/trials.jsonl.parts/*")])
        while process.poll() is None:
            run = keval.open_run("latest", a.url)
            read = [*run.trials()]
            scored = {line.trial for line in run.scores()}
            for trial in read:
                assert trial.transcript
                run.blob(trial.transcript.messages[-1].text.split()[-1])
            assert scored <= {trial.id for trial in read}
            seen.append(len(read))
        _, said = process.communicate()
    run = keval.open_run("latest", a.url)

    assert (0, "") == (process.returncode, said.partition("file://")[0])
    assert (120, []) == (len([*run.trials()]), [*run.path.glob(".scores.*")])
    assert seen == sorted(seen)
    assert 3 < len({*seen})
