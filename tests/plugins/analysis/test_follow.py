"""Following a run: each line is read once, half a line not at all, and what is replaced is read anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from keval import RunError, open_run
from keval.store.serialization import to_plain
from keval_analysis.follow import Follower
from tests.conftest import Project

CONFIG = """
name: growing
dataset: {path: questions.jsonl}
agents:
  mortal: {type: double/mortal, journal: journal.txt, fails: [c], healed: healed.txt}
contexts: {notes: {text: "Read. "}}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
metrics: [double/length]
execution: {num_repetitions: 2, max_concurrent: 4, retry: {max_attempts: 1}}
"""
PAID = """
dataset: {path: questions.jsonl}
agents: {paid: {type: double/paid, model: openai/ours}}
judges: {reader: {type: double/paid-reader, model: openai/listed}}
rubrics: [completeness]
prices: {openai/ours: {input: 2, output: 8}}
"""
QUESTIONS = "".join(json.dumps({"id": name, "question": f"{name}?" * n}) + "\n" for n, name in enumerate("abcde", 1))
PLANNED = 2 * 5 * 2
FAILED = 2 * 2


@pytest.fixture
def ran(project: Project) -> Project:
    """A run that came to its end, with four failed trials."""
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    assert 3 == project.keval("run", "eval.yaml").code
    return project


@pytest.fixture
def begun(ran: Project) -> Path:
    """The same run, as it is when its first trial begins."""
    begun = ran.root / "begun"
    begun.mkdir()
    for name in ("manifest.json", "samples.jsonl"):
        shutil.copy(ran.run_directory() / name, begun)
    return begun


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def finished(follower: Follower) -> int:
    return follower.progress().finished


def scores(follower: Follower) -> int:
    return sum(arm.scores for arm in follower.progress().arms)


def test_a_run_is_followed_from_its_first_byte_to_its_last(ran: Project, begun: Path) -> None:
    whole = ran.run_directory()
    trials, scored = begun / "trials.jsonl", begun / ".scores.0123456789abcdef.jsonl"
    follower = Follower(begun)
    seen = []

    for source, file, count in ((whole / "trials.jsonl", trials, finished), (whole / "scores.jsonl", scored, scores)):
        for piece in pieces(source.read_bytes(), 997):
            append(file, piece)
            follower.advance()
            seen.append(count(follower) == file.read_bytes().count(b"\n"))
    shutil.copy(scored, begun / "scores.jsonl")  # the pass ends
    repeats = [follower.advance()]
    scored.unlink()
    repeats.append(follower.advance())

    assert {True} == {*seen}
    assert (PLANNED, PLANNED - FAILED, [False] * 2) == (finished(follower), scores(follower), repeats)
    assert to_plain(open_run(whole).summary()) == to_plain(follower.summary())


def test_progress_says_how_fast_a_run_is_and_what_went_wrong(ran: Project, begun: Path) -> None:
    lines = (ran.run_directory() / "trials.jsonl").read_bytes().splitlines(keepends=True)
    now = [100.0]
    follower = Follower(begun, lambda: now[0])
    append(begun / "trials.jsonl", b"".join(lines[:4]))
    follower.advance()
    at_first = follower.progress()
    append(begun / "trials.jsonl", b"".join(lines[4:16]))
    now[0] += 6

    follower.advance()

    progress = follower.progress()
    failed = [json.loads(line)["failure"] for line in lines[:16]]
    kinds = [(trouble.kind, trouble.count, trouble.message) for trouble in progress.failures]
    assert (None, None) == (at_first.rate, at_first.seconds_left)
    assert (2.0, 2.0) == (progress.rate, progress.seconds_left)
    assert [("agent: ill", len([*filter(None, failed)]), "it is not well")] == kinds
    assert {PLANNED // 2} == {arm.planned for arm in progress.arms}


def test_the_cost_is_told_of_what_is_there(project: Project) -> None:
    """A trial costs 1,000 × $2 + 500 × $8 = $6,000 per million, and a judgement 10 × $1 + 2 × $4."""
    sample = {"question": "How?", "answer": "So.", "usage": {"input_tokens": 1000, "output_tokens": 500}, "level": 4}
    project.write(
        eval_yaml=PAID, questions_jsonl="".join(json.dumps({"id": f"q{n}", **sample}) + "\n" for n in range(4))
    )
    project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "sk-test"})
    whole, part = project.run_directory(), project.root / "part"
    shutil.copytree(whole, part)
    for name, count in (("trials.jsonl", 2), ("scores.jsonl", 1)):
        lines = (whole / name).read_bytes().splitlines(keepends=True)
        (part / name).write_bytes(b"".join(lines[:count]))

    found = [Follower(folder).progress() for folder in (whole, part)]

    assert [0.024072, 0.012018] == [round(progress.cost.usd or 0, 9) for progress in found]


def test_a_run_that_is_resumed_is_followed_on(ran: Project) -> None:
    """Failures are moved away, scores of an earlier pass are replaced, and trials are added."""
    follower = Follower(open_run("latest"))
    follower.advance()
    failed = follower.progress().failed
    (ran.root / "healed.txt").touch()

    ran.keval("resume", "latest", "--retry-failed")
    follower.advance()
    healed = follower.progress()
    ran.keval("resume", "latest", "--add-repetitions", "1")
    follower.advance()

    more = follower.progress()
    run = open_run("latest")
    assert (FAILED, 0, 0) == (failed, healed.failed, more.failed)
    assert ((PLANNED, PLANNED), (30, 30)) == ((healed.finished, healed.planned), (more.finished, more.planned))
    assert to_plain(run.summary()) == to_plain(follower.summary())


def test_a_run_that_was_killed_is_followed_on(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.fork("run", "eval.yaml", env={"MORTAL_DIES_AFTER": "9"})
    follower = Follower(open_run("latest"))
    follower.advance()
    before = finished(follower)
    append(project.run_directory() / "trials.jsonl", b'{"id": "mortal/basel')  # as a power cut leaves it
    follower.advance()

    project.keval("resume", "latest")
    follower.advance()

    assert before < PLANNED
    assert to_plain(open_run("latest").summary()) == to_plain(follower.summary())


def test_scores_of_a_pass_beside_others_are_of_new_trials_only(ran: Project, begun: Path) -> None:
    """So a score that is made again counts once; the earlier one counts until the pass has ended."""
    whole = ran.run_directory()
    lines = (whole / "scores.jsonl").read_bytes().splitlines(keepends=True)
    shutil.copy(whole / "trials.jsonl", begun)
    append(begun / "scores.jsonl", b"".join(lines[:10]))
    follower = Follower(begun)
    follower.advance()
    before = scores(follower)

    append(begun / ".scores.0123456789abcdef.jsonl", b"".join(lines[5:]))
    follower.advance()
    during = scores(follower)
    (begun / ".scores.0123456789abcdef.jsonl").unlink()
    append(begun / "scores.jsonl", b"".join(lines[10:]))
    follower.advance()

    assert (10, len(lines), len(lines)) == (before, during, scores(follower))
    assert to_plain(open_run(whole).summary()) == to_plain(follower.summary())


def test_a_file_that_shrank_or_was_replaced_is_read_anew(ran: Project, begun: Path) -> None:
    lines = (ran.run_directory() / "trials.jsonl").read_bytes().splitlines(keepends=True)
    trials = begun / "trials.jsonl"
    follower = Follower(begun)
    counts = []

    for content in (lines[:12], lines[:7], lines[7:], [*lines[:3], *lines[9:]]):
        trials.write_bytes(b"".join(content))
        follower.advance()
        counts.append((finished(follower), follower.progress().failed, len(content)))

    failed = [sum(json.loads(line)["failure"] is not None for line in part) for part in (lines[:7], lines[7:])]
    assert [12, 7, 13, 14] == [count for count, _, _ in counts] == [size for _, _, size in counts]
    assert failed == [count for _, count, _ in counts[1:3]]


def test_a_run_that_is_removed_says_so(ran: Project, begun: Path) -> None:
    shutil.copy(ran.run_directory() / "trials.jsonl", begun)
    follower = Follower(begun)
    follower.advance()
    shutil.rmtree(begun)

    with pytest.raises(RunError, match=r"begun cannot be followed: No such file or directory; was the run removed?"):
        follower.advance()


def test_a_damaged_line_is_named(begun: Path) -> None:
    append(begun / "trials.jsonl", b'{"id": "half of a trial"}\n')

    with pytest.raises(RunError, match=r"trials.jsonl:1: this line is damaged"):
        Follower(begun).advance()
