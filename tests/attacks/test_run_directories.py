"""Run directories that came from others: nothing in them leads a command or a page to a file outside of them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import sqlite3
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from filelock import FileLock

from keval.execute import packing
from tests import viewing
from tests.conftest import Project
from tests.viewing import client_of

RECORDED = Path(__file__).parents[2] / "examples" / "context-ab" / "recording"
RUN = "20261122-221731-9bad"
TRIAL = "openai/with_docs/prune-default/1"
PLACE = f"/runs/context-ab/{RUN}"
OF_TRIAL = TRIAL.replace("/", "%2F")
PAGES = (
    *("", "/trials", "/trials.json", "/compare", "/review", "/parts/questions", "/parts/making"),
    *("/samples/prune-default?against=0", "/answers/prune-default"),
    *(f"/trials/{OF_TRIAL}", f"/raw/trials/{OF_TRIAL}", f"/raw/requests/{OF_TRIAL}"),
)
CANARY = "canary-7d1f: the end of a file of the user\n"
READING = (
    ("report", "run", "--markdown"),
    ("show", "run"),
    ("show", "run", "--contexts"),
    ("show", "run", "--trial", TRIAL, "--full"),
    ("show", "run", "--trial", TRIAL, "--request"),
    ("show", "run", "--trial", TRIAL, "--traffic"),
    ("compare", "run"),
    ("compare", "--exact", "run", str(RECORDED)),
    ("export", "run", "--format", "eee", "--to", "out"),
    ("export", "run", "--format", "csv", "--to", "out"),
    ("record", "trim", "run", "-o", "small"),
    ("list", "-o", "results"),
    ("history", "-o", "results"),
)
FILES = (
    *("manifest.json", "samples.jsonl", "trials.jsonl", "scores.jsonl", "reviews.jsonl", "draws.jsonl"),
    *("retried.jsonl", "anchors.jsonl", "anchor_scores.jsonl", "summary.json", "trials.index", "scores.index"),
    *(".lock", ".watched", "live.json", "recording/traffic.jsonl.zst"),
)


@pytest.fixture
def secret(project: Project) -> Path:
    """A file of the user, which no run has anything to do with."""
    path = project.root / "home" / "secret.txt"
    path.parent.mkdir()
    path.write_text(CANARY, encoding="utf-8")
    return path


@pytest.fixture
def run(project: Project) -> Path:
    """A run in a results folder, reached as `run`, too."""
    folder = project.root / "results" / "context-ab" / RUN
    shutil.copytree(RECORDED, folder)
    (project.root / "run").symlink_to(folder)
    return folder


@pytest.fixture
def client(project: Project, run: Path) -> Iterator[httpx2.Client]:
    with viewing.served(project.root / "results") as running, client_of(running) as client:
        yield client


def edited(path: Path, edit: Callable[[dict[str, Any]], object], of: str = TRIAL) -> None:
    """Change a JSON file, or the line of a trial."""
    if path.suffix == ".json":
        data = json.loads(path.read_bytes())
        edit(data)
        path.write_text(json.dumps(data), encoding="utf-8")
        return
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        if of in (line.get("id"), line.get("trial")):
            edit(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def naming(sha256: str) -> Callable[[dict[str, Any]], None]:
    """Let a trial name its first request, an artifact and an image by something."""

    def edit(trial: dict[str, Any]) -> None:
        artifact = {"path": "notes.txt", "sha256": sha256, "size": 10, "media_type": "text/plain"}
        end = {"artifacts": [artifact], "checks": [], "changes": [], "diff": ""}
        trial["transcript"] |= {"request": sha256, "end_state": end}

    return edit


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts are in plain data."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))
    if isinstance(node, str):
        yield path


def put(path: tuple[Any, ...], new: str, data: dict[str, Any]) -> None:
    node: Any = data
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = new


def faults(project: Project, client: httpx2.Client, commands: Any, pages: Any) -> list[str]:
    """What commands and pages did wrong: the secret is shown, there is a traceback, or keval calls it its defect."""
    found = []
    for command in commands:
        ended = project.keval(*command)
        told = f"{ended.stdout}{ended.stderr}"
        copied = b"".join(path.read_bytes() for to in ("out", "small") for path in files_in(project.root / to))
        if "canary-7d1f" in told or b"canary-7d1f" in copied or "Traceback" in told or ended.code not in (0, 1, 2, 3):
            found.append(f"{' '.join(command)}: exit {ended.code}: {told[-300:]}")
        for made in ("out", "small"):
            shutil.rmtree(project.root / made, ignore_errors=True)
    for page in pages:
        answer = client.get(f"{PLACE}{page}")
        if "canary-7d1f" in answer.text or "defect of keval" in answer.text:
            found.append(f"{page}: {answer.status_code}")
    return found


def untouched(secret: Path) -> dict[str, str]:
    """The files of the user, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in secret.parent.iterdir()}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # as the name of a socket has a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


ODD: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "socket": a_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "huge": huge,
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00" * 99 + b"\n"),
    "deep": lambda path: path.write_bytes(b"[" * 100_000 + b"\n"),
}


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


NAMES: dict[str, Callable[[Path, Path], str]] = {
    "absolute": lambda secret, run: str(secret),
    "relative": lambda secret, run: os.path.relpath(secret, run / "blobs"),
    "of a file of the run": lambda secret, run: "../../secret.txt",
    "no digits": lambda secret, run: "../blobs/" + "a" * 64,
    "a line more": lambda secret, run: "a" * 64 + "\n",
    "NUL": lambda secret, run: "a\0b",
    "no ASCII": lambda secret, run: "\u0661" * 64,
    "long": lambda secret, run: "a" * 99_999,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_blob_leads_out_of_the_run(
    project: Project, run: Path, secret: Path, client: httpx2.Client, name: str
) -> None:
    shutil.copy(secret, run.parent.parent / "secret.txt")
    sha256 = NAMES[name](secret, run)
    edited(run / "trials.jsonl", naming(sha256))

    shown = project.keval("show", "run", "--trial", TRIAL, "--request")
    page = client.get(f"{PLACE}/trials/{OF_TRIAL}")
    saved = client.get(f"{PLACE}/raw/artifacts/{OF_TRIAL}", params={"sha256": sha256[:999]})

    assert [] == faults(project, client, READING, PAGES)
    assert (2, True) == (shown.code, "is damaged or was changed" in shown.stderr), shown.stderr
    assert (200, True) == (page.status_code, "is damaged or was changed" in page.text)
    assert (True, False) == (saved.status_code >= 400, "canary" in saved.text)


def led(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def led_by_folder(path: Path, secret: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.symlink_to(secret.parent)
    shutil.copy(secret, secret.parent / path.name)


def written(path: Path, secret: Path) -> None:
    shutil.copy(secret, path)


CHANGED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "link": (led, "a link is in its place"),
    "linked folder": (led_by_folder, "a link is in its place"),
    "other content": (written, "its content has another SHA-256"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    ["link", "linked folder", "other content", *ODD],
)
def test_a_blob_is_a_file_of_the_run_with_the_content_that_it_is_named_by(
    project: Project, run: Path, secret: Path, client: httpx2.Client, how: str
) -> None:
    make, told = CHANGED.get(how) or (
        lambda path, _: ODD[how](path),
        "" if how in ("deep", "not UTF-8") else "cannot be read",
    )
    request = json.loads((run / "trials.jsonl").read_bytes().splitlines()[1])["transcript"]["request"]
    edited(run / "trials.jsonl", naming(request))
    removed(run / "blobs" / request)
    make(run / "blobs" / request, secret)

    shown = project.spawn("show", "run", "--trial", TRIAL, "--request", timeout=30)
    page = client.get(f"{PLACE}/trials/{OF_TRIAL}")

    assert (2, "") == (shown.code, shown.stdout)
    assert told in shown.stderr
    assert "Traceback" not in shown.stderr
    # The page lists no run whose folder of blobs is really elsewhere.
    assert (404 if how == "linked folder" else 200) == page.status_code
    assert page.status_code == 404 or told in page.text
    assert [] == faults(project, client, (), PAGES)


def texts(run: Path, secret: Path) -> list[tuple[str, tuple[Any, ...], str]]:
    """Every text of a run's files that could be taken for a path, with paths to put there."""
    first = {"manifest.json": 0, "summary.json": 0, "trials.jsonl": 1, "scores.jsonl": 0, "samples.jsonl": 0}
    found = []
    for name, number in first.items():
        content = (run / name).read_bytes()
        data = json.loads(content if name.endswith(".json") else content.splitlines()[number])
        for path in places(data):
            found += [(name, path, new) for new in (str(secret), os.path.relpath(secret, run), f"file://{secret}")]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_no_text_of_a_run_is_taken_for_a_path(
    project: Project, run: Path, secret: Path, client: httpx2.Client, seed: int
) -> None:
    rng = random.Random(seed)
    edited(run / "trials.jsonl", naming("a" * 64))
    name, path, new = rng.choice(texts(run, secret))
    content = (run / name).read_bytes()
    if name.endswith(".json"):
        edited(run / name, partial(put, path, new))
    else:
        lines = content.splitlines(keepends=True)
        number = 1 if name == "trials.jsonl" else 0
        data = json.loads(lines[number])
        put(path, new, data)
        lines[number] = json.dumps(data).encode() + b"\n"
        (run / name).write_bytes(b"".join(lines))

    assert [] == faults(project, client, READING, PAGES), (name, path, new)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trials.jsonl", "recording/traffic.jsonl.zst", "retried.jsonl", "reviews.jsonl"])
def test_a_file_that_really_lies_elsewhere_is_not_read(
    project: Project, run: Path, secret: Path, client: httpx2.Client, name: str
) -> None:
    """The same content, so that only the link can be why."""
    elsewhere = secret.with_name("elsewhere")
    content = (run / name).read_bytes() if (run / name).exists() else b""
    elsewhere.write_bytes(content.replace(b"The default rules", b"canary-7d1f"))
    removed(run / name)
    (run / name).symlink_to(elsewhere)

    assert [] == faults(project, client, READING, PAGES)
    if name == "trials.jsonl":
        assert "a link is in its place, or on the way to it, and is not followed" in project.keval("show", "run").stderr


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_what_is_no_file_is_no_file_of_a_run(
    project: Project, run: Path, secret: Path, client: httpx2.Client, seed: int
) -> None:
    rng = random.Random(seed)
    name = rng.choice(FILES)
    removed(run / name)
    kind = rng.choice([*ODD, "link"])
    if kind == "link":
        (run / name).symlink_to(secret)
    else:
        ODD[kind](run / name)

    assert [] == faults(project, client, READING, PAGES), (name, kind)
    assert (CANARY, ["secret.txt"]) == (
        secret.read_text(encoding="utf-8"),
        [each.name for each in secret.parent.iterdir()],
    )


SCORED = """
name: mine
dataset: {path: questions.jsonl}
agents: {old: {type: recorded, path: answers.jsonl}}
conditions: {plain: {}}
metrics: [basic/turns]
"""


@pytest.fixture
def mine(project: Project) -> Path:
    """A run that can be scored and resumed without a model."""
    samples = [{"id": name, "question": f"{name}?"} for name in "ab"]
    answers = [{"id": name, "condition": "plain", "response": "So."} for name in "ab"]
    for file, lines in (("questions.jsonl", samples), ("answers.jsonl", answers)):
        (project.root / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    project.write(eval_yaml=SCORED)
    assert 0 == project.run("eval.yaml").code
    return project.run_directory()


def fail_first(run: Path) -> None:
    first, *others = [json.loads(line) for line in (run / "trials.jsonl").read_bytes().splitlines()]
    first["failure"] = {"stage": "agent", "kind": "late", "message": "too late", "traceback": None}
    (run / "trials.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (first, *others)), encoding="utf-8")


WRITTEN = (
    *(".manifest.json.unfinished", ".summary.json.unfinished", ".scores.jsonl.unfinished", ".lock", "retried.jsonl"),
    *(".samples.jsonl.unfinished", ".trials.index.unfinished", ".trials.jsonl.unfinished", ".scores.index.unfinished"),
    *(".live.json.unfinished", ".watched", "live.json", "trials.index", "scores.index", "trials.jsonl", "scores.jsonl"),
    *("draws.jsonl", ".draws.lock", "recording", "blobs", "recording/traffic.jsonl.zst", "summary.json"),
    "manifest.json",
)
WRITING = (
    ("score", "latest"),
    ("resume", "latest", "--retry-failed", "--add-repetitions", "1", "--record"),
    ("review", "latest", "--sample", "1"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_no_link_in_a_run_leads_what_is_written_elsewhere(
    project: Project, mine: Path, secret: Path, name: str
) -> None:
    shutil.copytree(mine, project.root / "whole")
    is_folder = name in ("recording", "blobs")
    for target in (secret.parent,) if is_folder else (secret, secret.with_name("new")):
        before = {path.name: path.read_bytes() for path in secret.parent.iterdir()}
        for command in WRITING:
            shutil.rmtree(mine)
            shutil.copytree(project.root / "whole", mine)
            removed(mine / name)
            (mine / name).parent.mkdir(exist_ok=True)
            (mine / name).symlink_to(target)
            if name != "trials.jsonl":
                fail_first(mine)

            ended = project.keval(*command)

            assert before == {path.name: path.read_bytes() for path in secret.parent.iterdir()}, command
            assert (True, False) == (ended.code in (0, 2, 3), "Traceback" in ended.stderr), (command, ended)


def test_who_looks_at_a_running_run_writes_nothing_elsewhere(
    project: Project, run: Path, secret: Path, client: httpx2.Client
) -> None:
    with FileLock(run / ".lock"):
        for target in (secret, secret.with_name("new")):
            removed(run / ".watched")
            (run / ".watched").symlink_to(target)
            (run / "live.json").unlink(missing_ok=True)
            (run / "live.json").symlink_to(secret)
            was = secret.stat().st_mtime_ns

            page = client.get(PLACE)

            assert ({"secret.txt": CANARY}, was) == (untouched(secret), secret.stat().st_mtime_ns)
            assert "canary" not in page.text


def test_a_history_that_came_with_the_results_is_not_believed(project: Project, mine: Path) -> None:
    path = mine.parent.parent / "history.sqlite"
    honest = project.keval("history", "--sqlite", str(path)).stdout
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TRIGGER lie AFTER INSERT ON scores BEGIN UPDATE scores SET mean = 77; END")
        database.execute("UPDATE scores SET mean = 77")
        database.commit()

    told = [project.keval("history").stdout, project.keval("history", "--sqlite", str(path)).stdout]

    assert [honest] * 2 == told
    with closing(sqlite3.connect(path)) as database:
        lies = "SELECT name FROM sqlite_master WHERE type = 'trigger' UNION SELECT mean FROM scores WHERE mean = 77"
        assert [] == database.execute(lies).fetchall()


def test_a_folder_does_not_say_itself_that_it_mirrors_another_one(project: Project, mine: Path, secret: Path) -> None:
    results = mine.parent.parent
    (results / ".mirror-of").write_text(f"file://{secret.parent}", encoding="utf-8")

    for command in (("list",), ("report", str(mine)), ("score", str(mine))):
        ended = project.keval(*command)

        assert (2, True) == (ended.code, "the folder is not keval's own copy" in ended.stderr), (command, ended)
    assert ({"secret.txt": CANARY}, True) == (untouched(secret), mine.exists())


@pytest.mark.parametrize("name", ["trials.jsonl", "samples.jsonl", "manifest.json", "blobs"])
def test_results_elsewhere_lead_to_no_file_of_the_user(project: Project, run: Path, secret: Path, name: str) -> None:
    request = json.loads((run / "trials.jsonl").read_bytes().splitlines()[1])["transcript"]["request"]
    place = run / name / request if name == "blobs" else run / name
    elsewhere = secret.with_name("elsewhere")
    changed = place.read_bytes().replace(b"The default rules", b"canary-7d1f")
    elsewhere.write_bytes(b"canary-7d1f" if name == "blobs" else changed)
    place.unlink()
    place.symlink_to(elsewhere)
    env = {"KEVAL_CACHE": str(project.root / "cache")}

    for command in (("report", "latest"), ("show", "latest", "--trial", TRIAL, "--request"), ("list",)):
        ended = project.keval(*command, "-o", f"file://{run.parent.parent}", env=env)

        assert "canary" not in f"{ended.stdout}{ended.stderr}"
        assert (True, False) == (ended.code in (0, 2, 3), "Traceback" in ended.stderr)
    assert [] == [path for path in files_in(project.root / "cache") if b"canary" in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b"no JSON", b"", b"\x1f\x8b\x08\xff\x00", b'{"a":' * 99_999, b"\0" * 50_000_000, b"NaN", b"[" * 800 + b"]" * 800],
)
def test_a_request_that_is_no_json_is_told_in_words(project: Project, run: Path, body: bytes) -> None:
    sha256 = hashlib.sha256(body).hexdigest()
    (run / "blobs" / sha256).write_bytes(body)
    edited(run / "trials.jsonl", naming(sha256))

    shown = project.spawn("show", "run", "--trial", TRIAL, "--request", timeout=60)

    assert "Traceback" not in shown.stderr
    if body.startswith(b"[" * 800):
        assert 0 == shown.code
    else:
        assert (2, "") == (shown.code, shown.stdout)
        assert "cannot be shown as JSON: " in shown.stderr
        assert f"its {len(body):,} bytes are in run/blobs/{sha256}, as they were sent" in shown.stderr


SAYS = "changed after the run ended"


def edited_score(run: Path) -> None:
    """Turn a score of the same length into another one, and keep the time of the file."""
    path = run / "scores.jsonl"
    was, content = path.stat(), path.read_bytes()
    assert b"not report" in content
    path.write_bytes(content.replace(b"not report", b"now report", 1))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def edited_trial(run: Path) -> None:
    path = run / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(b"So.", b"No.", 2))


def hidden_trial(run: Path) -> None:
    """Leave a trial out of the index, from which a report knows where trials are."""
    path = run / "trials.index"
    words = array("Q", path.read_bytes())
    words[4] -= 1
    path.write_bytes(words[:-2].tobytes())


def removed_trial(run: Path) -> None:
    path = run / "trials.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def edited_sample(run: Path) -> None:
    path = run / "samples.jsonl"
    path.write_bytes(path.read_bytes().replace(b"a?", b"z?", 1))


EDITS = {
    "scores.jsonl": edited_score,
    "trials.jsonl": edited_trial,
    "samples.jsonl": edited_sample,
    "removed": removed_trial,
    "index": hidden_trial,
}


@pytest.mark.parametrize("what", EDITS)
def test_a_run_that_changed_after_its_end_says_so(project: Project, mine: Path, what: str) -> None:
    before = {command: project.keval(*command) for command in (("report", "latest"), ("show", "latest"))}
    name = what if what.endswith("jsonl") else "trials.jsonl"

    EDITS[what](mine)

    assert [] == [command for command, ended in before.items() if SAYS in ended.stdout + ended.stderr]
    assert f"{name} {SAYS}" in " ".join(project.keval("report", "latest").stdout.split())
    assert f"{name} {SAYS}" in project.keval("report", "latest", "--markdown").stdout
    assert [name] == project.keval("report", "latest", "--json").data["changed"]
    if what != "index":
        assert f"{name} of results/mine/{mine.name} {SAYS}" in project.keval("show", "latest").stderr
        told = project.keval("export", "latest", "--format", "csv", "--to", "out").stderr
        assert f"{name} of results/mine/{mine.name} {SAYS}" in told
        with viewing.served(project.root / "results") as running, client_of(running) as client:
            assert f"{name} {SAYS}" in client.get(f"/runs/mine/{mine.name}").text


def test_what_changed_before_a_run_was_scored_again_is_said_afterwards(project: Project, mine: Path) -> None:
    edited_trial(mine)

    scored = project.keval("score", "latest")

    assert (0, True) == (scored.code, f"trials.jsonl {SAYS}" in " ".join(scored.stdout.split()))
    assert ["trials.jsonl"] == project.keval("report", "latest", "--json").data["changed"]


@pytest.mark.parametrize(
    "command",
    [
        ("score", "latest"),
        ("score", "latest", "--metric", "basic/equals"),
        ("resume", "latest", "--add-repetitions", "1"),
        ("resume", "latest", "--retry-failed"),
        ("history",),
    ],
)
def test_what_keval_itself_writes_is_no_change(project: Project, mine: Path, command: tuple[str, ...]) -> None:
    ended = project.keval(*command)
    reported = project.keval("report", "latest")

    assert (0, False) == (ended.code, SAYS in reported.stdout), (ended, reported)
    edited_score(mine)
    assert SAYS in project.keval("report", "latest").stdout


def test_a_run_without_a_seal_says_nothing(project: Project, run: Path) -> None:
    edited(run / "scores.jsonl", lambda score: score.update(value=1))

    assert SAYS not in project.keval("report", "run").stdout


@pytest.mark.parametrize("code", [0, 1])
def test_a_trial_that_is_too_long_to_be_read_is_a_failure_and_the_run_is_read(
    project: Project, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    script = f"import sys; print('x' * 20_000); sys.stderr.write('x' * 1000); sys.exit({code})"
    commands = {"long": [sys.executable, "-c", script], "short": ["echo", "42"]}
    agents = {name: {"type": "command", "command": command} for name, command in commands.items()}
    config = {"dataset": {"path": "q.jsonl"}, "agents": agents, "metrics": ["basic/turns"]}
    retry = {"retry": {"max_attempts": 1}}
    project.write(q_jsonl='{"id": "a", "question": "x"}\n', eval_yaml=json.dumps({**config, "execution": retry}))
    monkeypatch.setattr(packing, "_MOST_BYTES", 2_000)

    outcome = project.keval("run", "eval.yaml")
    trials = {trial["agent"]: trial for trial in project.lines("trials.jsonl")}

    assert None is trials["short"]["failure"], outcome.stderr
    assert ("process" if code else "unwritable") == trials["long"]["failure"]["kind"]
    assert 3 == project.keval("report", str(project.run_directory())).code  # as trials failed


NAMED = """
dataset: {path: questions.jsonl}
agents: {mine: {type: python, target: evil.py:answer}}
metrics: [evil.py:good]
plugins: [evil.py]
setup: {run: touch ran}
"""
EVIL = """
from pathlib import Path
from keval.plugin import hookimpl
Path(__file__).with_name("ran").touch()
def answer(question): return "yes"
def good(output): return 1.0
@hookimpl
def keval_run_finished(directory, summary): pass
"""


def test_what_a_manifest_names_is_not_run_by_who_reads_it(project: Project) -> None:
    project.write(eval_yaml=NAMED, evil_py=EVIL, questions_jsonl='{"id": "q", "question": "Q?"}\n')
    assert 0 == project.keval("run", "--record").code
    (project.root / "run").symlink_to(project.run_directory())
    ran = project.root / "ran"
    ran.unlink()
    project.write(evil_py=f"{EVIL}# or anything else\n")  # what was imported already would not be again

    commands = [
        ("report", "run", "--html", "page.html"),
        ("show", "run", "--contexts"),
        ("show", "run", "--trial", "mine/baseline/q/1", "--full"),
        ("compare", "run"),
        ("export", "run", "--format", "junit", "--to", "out"),
        ("record", "trim", "run", "-o", "small"),
        ("list",),
        ("history",),
    ]
    read = [project.keval(*command).code for command in commands]
    with viewing.served(project.root / "results") as running, client_of(running) as client:
        pages = [client.get(f"/runs/eval/{project.run_directory().name}{page}").status_code for page in ("", "/trials")]
    assert ([0] * len(read), [200, 200], False) == (read, pages, ran.exists())

    assert 0 == project.keval("score", "latest").code
    assert ran.exists()
