"""Broken configs, datasets, run directories and recorded files: each a located error and exit 2, or read as it is.

Never a traceback (exit 70), a hang or a crash. Most cases are made by changing one value of something whole. What hangs
or crashes for its size is in `config/test_bounds.py`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.conftest import Project

RUN = Path(__file__).parents[1] / "runs" / "0.1.0" / "20261122-063743-c6a2"
DELETED = object()
VALUES: tuple[Any, ...] = (
    *(DELETED, None, True, -1, 0.5, 10**30, "", "x", "\0", "../../x", "é" * 300, "${", "${HOME}", "{{", "{{ nope }}"),
    *([], [[]], [None], {}, {"": None}, {"x": {"y": []}}),
)
FEW: tuple[Any, ...] = (DELETED, None, -1, "x", [])
"""For what is large: a run's files."""

CONFIG: dict[str, Any] = {
    "name": "hostile",
    "dataset": {"path": "questions.jsonl", "question_key": "question", "answer_key": "answer"},
    "agents": {"scripted": {}, "old": {"type": "recorded", "path": "recorded.jsonl"}},
    "contexts": {"notes": {"text": "Read this."}},
    "conditions": {"baseline": None, "with": {"contexts": ["notes"], "system_prompt": "Answer {{ id }}."}},
    "baseline": "baseline",
    "metrics": [
        "double/length",
        {"basic/regex": {"pattern": "a+"}},
        {"basic/json_schema": {"schema": {"type": "object"}}},
    ],
    "execution": {
        "num_repetitions": 1,
        "max_concurrent": 2,
        "timeout_seconds": 5,
        "seed": 1,
        "retry": {"max_attempts": 1},
    },
    "plugins": [],
}
SAMPLE = {
    "id": "a",
    "question": "How?",
    "answer": "So.",
    "turns": ["And then?"],
    "history": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    "facts": {"city": "Oslo", "list": [1, 2.5, None]},
    "metadata": {"kind": "plain"},
}
ANSWER = {
    "id": "a",
    "condition": "baseline",
    "response": "So.",
    "response_time": 1.5,
    "tool_calls": [{"name": "look", "arguments": {"at": 1}, "result": "7", "duration": 0.1, "turn": 0}],
    "model_calls": 1,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
FILES = ("eval.yaml", "questions.jsonl", "recorded.jsonl")
REPORT = ("report", "run")
MISSING = b"\0 missing"
RAW: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n\n",
    "a NUL": b"\0",
    "UTF-16": "\ufeffdataset: x".encode("utf-16"),
    "no UTF-8": b"\xff\xfe\xfa: 1\n",
    "a cut character": "é".encode()[:1],
    "a byte order mark": b"\xef\xbb\xbf",
    "a number": b"5",
    "a text": b"hello",
    "a list": b"[1, 2]",
    "an open bracket": b"[",
    "many brackets": b"[" * 5000,
    "an open quote": b'"abc',
    "a tab": b"\tx: 1",
    "an alias of nothing": b"*a",
    "an alias of itself": b"&a [*a]",
    "a merge of itself": b"&a {<<: *a}",
    "a merge of a text": b"{<<: x}",
    "a tag": b"!!python/object/apply:os.system [x]",
    "a foreign tag": b"!x y",
    "two documents": b"a: 1\n---\nb: 2\n",
    "a directive": b"%YAML 9.9\n---\na: 1\n",
    "a key that is a list": b"? [a, b]\n: 1\n",
    "a key twice": b"a: 1\na: 2\n",
    "a wrong number": b"a: !!int x\n",
    "an odd date": b"a: 2024-99-99\n",
    "a binary": b"a: !!binary x\n",
    "a surrogate": b'{"id": "\\ud800", "question": "\\udfff?"}\n',
    "not a number": b'{"id": "a", "question": NaN}\n',
    "deep JSON": b'{"id": "a", "question": "x", "facts": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}\n",
    "a long number": b'{"id": ' + b"9" * 5000 + b', "question": "x"}\n',
    "a line without an end": b'{"id": "a", "question": "How?"}',
    "half a line": b'{"id": "a", "ques',
    "carriage returns": b'{"id": "a", "question": "x"}\r{"id": "b", "question": "y"}\r',
    "a table": b"id,question\na,b,c\n",
    "an open cell": b'id,question\na,"b',
    "a column twice": b"id,id,question\na,b,c\n",
    "a page": b"<html></html>",
}


@attrs.frozen
class Case:
    """Files in place of whole ones, by their names, and the command to run; `run` says that they are a run's."""

    name: str
    files: dict[str, Callable[[], bytes]]
    command: tuple[str, ...] = ("validate", "eval.yaml")
    run: bool = False


Path_: TypeAlias = tuple[Any, ...]


def paths(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in plain data."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*at, key))


def changed(data: Any, at: Path_, new: Any) -> Any:
    """The data with another value at one place, or without that."""
    if not at:
        return None if new is DELETED else new
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    if new is DELETED:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return copy


def changes(data: Any, values: Sequence[Any] = VALUES) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that is one value away, made when it is asked for."""
    for at in paths(data):
        for new in values:
            told = "deleted" if new is DELETED else f"{new!r:.20}"
            yield f"{'.'.join(map(str, at))} {told}", partial(changed, data, at, new)


def yaml_text(data: Any) -> bytes:
    return yaml.safe_dump(data).encode()


def line(data: Any) -> bytes:
    return json.dumps(data).encode() + b"\n"


def followed(others: bytes, data: Any) -> bytes:
    return line(data) + others


def written(write: Callable[[Any], bytes], make: Callable[[], Any]) -> Callable[[], bytes]:
    return lambda: write(make())


def cases() -> Iterator[Case]:
    for name, make in changes(CONFIG):
        yield Case(f"config: {name}", {"eval.yaml": written(yaml_text, make)})
    for name, make in changes(SAMPLE):
        yield Case(f"dataset: {name}", {"questions.jsonl": written(line, make)})
    for name, make in changes(ANSWER):
        yield Case(f"recorded: {name}", {"recorded.jsonl": written(line, make)})
    for name, raw in RAW.items():
        for file in FILES:
            yield Case(f"raw {file}: {name}", {file: raw.__bytes__})
        for suffix in ("csv", "yaml", "parquet"):
            config = yaml_text(changed(CONFIG, ("dataset", "path"), f"q.{suffix}"))
            yield Case(f"raw {suffix}: {name}", {"eval.yaml": config.__bytes__, f"q.{suffix}": raw.__bytes__})


def run_cases() -> Iterator[Case]:
    for name, make in changes(json.loads((RUN / "manifest.json").read_bytes()), FEW):
        yield Case(f"manifest: {name}", {"manifest.json": written(line, make)}, REPORT, run=True)
    trial = json.loads((RUN / "trials.jsonl").read_bytes().splitlines()[0])
    for file in ("samples.jsonl", "trials.jsonl", "scores.jsonl"):
        first, _, others = (RUN / file).read_bytes().partition(b"\n")
        for name, make in changes(json.loads(first), FEW):
            content = written(partial(followed, others), make)
            yield Case(f"{file}: {name}", {file: content}, REPORT, run=True)
            yield Case(f"{file} shown: {name}", {file: content}, ("show", "run", "--trial", trial["id"]), run=True)
    for name, raw in RAW.items():
        for file in ("manifest.json", "samples.jsonl", "trials.jsonl", "scores.jsonl"):
            yield Case(f"raw {file}: {name}", {file: raw.__bytes__}, REPORT, run=True)
    for file in ("samples.jsonl", "trials.jsonl", "scores.jsonl", "summary.json"):
        for command in (REPORT, ("show", "run"), ("export", "run", "--format", "eee", "--to", "out")):
            yield Case(f"{command[0]} without {file}", {file: MISSING.__bytes__}, command, run=True)


@pytest.fixture
def outcome_of(project: Project, record_property: Callable[[str, object], None]) -> Iterator[Callable[[Case], str]]:
    """Run a case in a folder where all else is whole; returns what is wrong with how it ended, or nothing."""
    whole = {
        "eval.yaml": yaml.safe_dump(CONFIG).encode(),
        "questions.jsonl": line(SAMPLE),
        "recorded.jsonl": line(ANSWER),
    }

    tried = 0

    def outcome(case: Case) -> str:
        nonlocal tried
        tried += 1
        folder = project.root / "run" if case.run else project.root
        originals = {name: (RUN / name).read_bytes() for name in case.files} if case.run else whole
        for name, make in case.files.items():
            content = make()
            if content == MISSING:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(content)
        try:
            ended = project.keval(*case.command)
        finally:
            for name in case.files:
                if name in originals:
                    (folder / name).write_bytes(originals[name])
        return fault(ended.code, ended.stderr)

    shutil.copytree(RUN, project.root / "run")
    for name, content in whole.items():
        (project.root / name).write_bytes(content)
    yield outcome
    record_property("broken inputs", tried)


PLACE = re.compile(
    r"eval\.yaml|questions\.jsonl|recorded\.jsonl|q\.\w+|run/[\w/]+\.json|in run;|no run 'run'|run has no"
    r"|^error: (/|run\b)"
)


def fault(code: int, said: str) -> str:
    if "Traceback" in said or code not in {0, 2, 3}:
        return f"exit {code}: {said.strip().splitlines()[-1:]}"
    if code == 2 and not any(error.startswith("error: ") and PLACE.search(error) for error in said.splitlines()):
        return f"no located error: {said!r:.200}"
    return ""


def faults(chosen: Iterator[Case] | list[Case], outcome_of: Callable[[Case], str]) -> list[str]:
    return [f"{case.name}: {told}" for case in chosen if (told := outcome_of(case))]


def test_whole_input_is_read(outcome_of: Callable[[Case], str], project: Project) -> None:
    valid, reported = project.keval("validate", "eval.yaml"), project.keval("report", "run")

    assert (0, True) == (valid.code, reported.code in {0, 3}), valid.stderr + reported.stderr


@pytest.mark.parametrize("make", [cases, run_cases], ids=["input", "runs"])
def test_some_broken_input_is_refused(outcome_of: Callable[[Case], str], make: Callable[[], Iterator[Case]]) -> None:
    every = [*make()]

    assert len(every) >= 400
    assert [] == faults(every[:: len(every) // 25], outcome_of)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "step"), [(cases, 1), (run_cases, 3)], ids=["input", "runs"])
def test_broken_input_is_refused(
    outcome_of: Callable[[Case], str], make: Callable[[], Iterator[Case]], step: int
) -> None:
    assert [] == faults([*make()][::step], outcome_of)


RECORDED = Path(__file__).parents[2] / "examples" / "context-ab" / "recording"
RECORDED_TRIAL = "openai/with_docs/prune-default/1"
RUN_FILES = (
    *("manifest.json", "samples.jsonl", "trials.jsonl", "scores.jsonl", "reviews.jsonl", "retried.jsonl"),
    *("draws.jsonl", "anchors.jsonl", "anchor_scores.jsonl", "summary.json", "recording/traffic.jsonl.zst"),
)
TRIM = ("record", "trim", "run", "-o", "small")
READING = (
    TRIM,
    (*TRIM, "--samples", "prune-default", "--condition", "with_docs"),
    ("report", "run"),
    ("report", "run", "--explain"),
    ("report", "run", "--markdown"),
    ("report", "run", "--html", "page.html"),
    ("show", "run", "--trial", RECORDED_TRIAL),
    ("show", "run", "--trial", RECORDED_TRIAL, "--traffic"),
    ("show", "run", "--sample", "prune-default"),
    ("show", "run", "--worst", "completeness"),
    ("compare", "run"),
    ("compare", "--exact", "run", str(RECORDED)),
    *(
        ("export", "run", "--format", name, "--to", "out")
        for name in ("eee", "csv", "parquet", "junit", "otlp", "html")
    ),
)
SCORING = ("score", "run", "--metric", "basic/turns", "-q")


@pytest.fixture
def recorded(project: Project) -> Path:
    """A recorded run with all that a run may have: a review, a draw, an anchor, and a trial that was run again."""
    folder = project.root / "run"
    shutil.copytree(RECORDED, folder)
    trial = json.loads((folder / "trials.jsonl").read_bytes().splitlines()[0])
    failure = {"stage": "agent", "kind": "told", "message": "no", "traceback": None}
    (folder / "retried.jsonl").write_bytes(line({**trial, "failure": failure}))
    said = {"reviewer": "ann", "at": "2026-11-23T00:00:00+00:00", "kind": "note", "note": "good"}
    (folder / "reviews.jsonl").write_bytes(line({"trial": trial["id"], "answer": "0" * 64, **said}))
    assert 0 == project.keval("review", "run", "--sample", "4").code
    labelled = {"metadata": {"response": "Never.", "levels": {"completeness": 1}}, "question": "When?", "id": "a"}
    (folder / "anchors.jsonl").write_bytes(line(labelled))
    scores = map(json.loads, (folder / "scores.jsonl").read_bytes().splitlines())
    score = next(each for each in scores if each["metric"] == "completeness")
    (folder / "anchor_scores.jsonl").write_bytes(line({**score, "trial": "/anchor/a", "sample": "a"}))
    assert 0 == project.keval(*TRIM).code
    shutil.rmtree(project.root / "small")
    return folder


def damage(path: Path, rng: random.Random) -> str:
    """Damage a file in one of the ways that a disk, a person or a program does; returns which."""
    content = path.read_bytes()
    at = rng.randrange(len(content))
    name, raw = rng.choice([*RAW.items()])
    lines = content.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    broken: dict[str, Callable[[], object]] = {
        "is a directory": path.mkdir,
        "is a pipe": partial(os.mkfifo, path),
        "is a link to itself": partial(path.symlink_to, path.name),
        "ends early": partial(path.write_bytes, content[:at]),
        "has zeros": partial(path.write_bytes, content[:at] + bytes(rng.choice((1, 64))) + content[at:]),
        "has another byte": partial(path.write_bytes, content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]),
        f"is {name}": partial(path.write_bytes, raw),
        f"begins with {name}": partial(path.write_bytes, raw + b"\n" + content),
        f"ends with {name}": partial(path.write_bytes, content + raw + b"\n"),
    }
    if path.suffix in {".json", ".jsonl"}:
        data = json.loads(content if path.suffix == ".json" else lines[number])
        place, new = rng.choice([*paths(data)]), rng.choice(VALUES)
        other = [line(changed(data, place, new))]
        whole = other if path.suffix == ".json" else lines[:number] + other + lines[number + 1 :]
        told = f"line {number + 1}: {'.'.join(map(str, place))} {'deleted' if new is DELETED else f'{new!r:.20}'}"
        broken |= {f"{told} ({again})": partial(path.write_bytes, b"".join(whole)) for again in range(4)}
    kind, write = rng.choice([*broken.items()])
    path.unlink()
    write()
    return kind


def restored(path: Path, content: bytes) -> None:
    """Put a file back in place of whatever is there."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)


def kept(run: Path, *but: str) -> dict[str, bytes]:
    """The content of a run's regular files."""
    return {name: (run / name).read_bytes() for name in RUN_FILES if name not in but and (run / name).is_file()}


def run_faults(project: Project, run: Path, seeds: Sequence[int], *, reading: int) -> Iterator[str]:
    """Damage a run once a seed, and yield what is wrong with how commands end: `trim`, and `reading` others."""
    whole = kept(run)
    for seed in seeds:
        rng = random.Random(seed)
        name = rng.choice(RUN_FILES)
        told = damage(run / name, rng)
        for command in (*READING[:2], *rng.sample(READING[2:], reading), SCORING):
            written = ("manifest.json", "scores.jsonl", "summary.json", RUN_FILES[-1]) if command is SCORING else ()
            before = kept(run, *written)
            ended = project.keval(*command)
            after = kept(run, *written)
            problem = fault(0 if ended.code == 1 else ended.code, ended.stderr)
            problem = problem or ("" if before == after else "the run was changed")
            if (project.root / "small").exists():
                problem = problem or ("" if ended.code == 0 else "half of a copy was left")
                shutil.rmtree(project.root / "small")
            if problem:
                yield f"{seed}: {name} {told}: {' '.join(command)}: {problem}"
        for name, content in whole.items():
            restored(run / name, content)
        for unfinished in run.glob(".scores.*"):  # a pass that the damage interrupted
            unfinished.unlink()


def test_some_damaged_runs_are_refused_or_read_and_stay_as_they_are(project: Project, recorded: Path) -> None:
    assert [] == [*run_faults(project, recorded, range(8), reading=2)]


@pytest.mark.slow
def test_damaged_runs_are_refused_or_read_and_stay_as_they_are(project: Project, recorded: Path) -> None:
    assert [] == [*run_faults(project, recorded, range(1000, 1100), reading=6)]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(FILES),
    content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
)
def test_any_bytes_are_refused_or_read(outcome_of: Callable[[Case], str], name: str, content: bytes) -> None:
    assert "" == outcome_of(Case(name, {name: content.__bytes__}))


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), new=PLAIN)
def test_any_value_anywhere_is_refused_or_read(
    outcome_of: Callable[[Case], str], data: st.DataObject, new: Any
) -> None:
    name, whole = data.draw(st.sampled_from([*zip(FILES, (CONFIG, SAMPLE, ANSWER), strict=True)]))
    other = changed(whole, data.draw(st.sampled_from([*paths(whole)])), new)
    content = yaml.safe_dump(other).encode("utf-8", "replace") if name == "eval.yaml" else line(other)

    assert "" == outcome_of(Case(name, {name: content.__bytes__}))
