"""What does not answer, forgets its conditions or changes hands: the run goes on, and says what is where."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

import keval
from keval import RunError, Trial
from keval.errors import OutageError
from keval.plugin import hookimpl
from keval_remote.lease import HeldError, Lease
from keval_remote.objects import Objects, UnreachableError
from keval_remote.remote import Remote
from tests.conftest import Project
from tests.plugins.remote.conftest import CONFIG, eventually, questions


class Flaky(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Objects in memory that cannot be reached while it is down; it counts what it is asked."""

    protocol = "flaky"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    is_down: ClassVar[bool] = False
    asked: ClassVar[Counter[str]] = Counter()
    written: ClassVar[list[str]] = []

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            Flaky.written.append(path.rpartition("/")[2])
        return super().open(path, mode, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(str(path).replace("flaky://", "memory://")))

    def __getattribute__(self, name: str) -> Any:
        if name in ("ls", "cat_file", "pipe_file", "put_file", "get_file", "rm_file", "open"):
            Flaky.asked[name] += 1
            if Flaky.is_down:
                raise ConnectionError("nobody answers")
        return super().__getattribute__(name)


class Careless(AbstractFileSystem):  # type: ignore[misc]  # as above
    """Objects in memory, where two who make one at once both succeed."""

    protocol = "careless"
    found: ClassVar[dict[str, bytes]] = {}
    both_looked: ClassVar[threading.Barrier] = threading.Barrier(2)

    def ls(self, path: str, detail: bool = True, **_: object) -> list[dict[str, Any]]:
        return [{"name": name, "size": 1, "type": "file"} for name in [*self.found]]

    def exists(self, path: str, **_: object) -> bool:
        return path in self.found

    def cat_file(self, path: str, **_: object) -> bytes:
        return self.found[path]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: object) -> None:
        if mode == "create":
            self.both_looked.wait()
        self.found[path] = value

    def rm_file(self, path: str) -> None:
        self.found.pop(path)


@attrs.define
class At:
    """Calls something when so many trials have finished."""

    calls: dict[int, Callable[[], None]]
    finished: int = 0

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self.finished += 1
        self.calls.get(self.finished, lambda: None)()


@pytest.fixture
def url(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    monkeypatch.setattr("keval_remote.remote._FRESH", 0.0)
    monkeypatch.setenv("KEVAL_REMOTE_PART_SECONDS", "0.02")
    monkeypatch.setenv("KEVAL_REMOTE_LEASE_SECONDS", "0.6")
    monkeypatch.setenv("KEVAL_REMOTE_END_SECONDS", "5")
    monkeypatch.setenv("KEVAL_CACHE", str(project.root / "cache"))
    project.write(eval_yaml=CONFIG.replace("scripted: {}", "scripted: {delay: 0.02}"), questions_jsonl=questions(12))
    yield f"flaky://{project.root.name}"
    Flaky.is_down = False
    Flaky.store.clear()
    Flaky.written.clear()


def stored(name: str) -> int:
    """How many lines the plain file of this name has there; 0 without it."""
    found = [bytes(file.getbuffer()) for path, file in Flaky.store.items() if path.endswith(f"/{name}")]
    return sum(content.count(b"\n") for content in found)


def down(to: bool) -> Callable[[], None]:
    return lambda: setattr(Flaky, "is_down", to)


def test_what_a_run_writes_while_nobody_answers_is_uploaded_later(url: str, caplog: pytest.LogCaptureFixture) -> None:
    def until_noticed() -> None:
        eventually(lambda: "the run goes on" in caplog.text)

    hooks = [At({3: down(True), 5: until_noticed, 7: down(False)})]

    run = keval.evaluate("eval.yaml", results=url, hooks=hooks)

    told = [record.getMessage() for record in caplog.records if record.name.startswith("keval_remote")]
    assert 12 == stored("trials.jsonl") == sum(1 for _ in run.trials())
    assert [] == [path for path in Flaky.store if ".parts" in path or "/." in path]
    assert 2 == len(told)
    assert "ConnectionError: nobody answers" in told[0]
    assert told[1].endswith("uploads work again")


def test_a_run_that_cannot_be_uploaded_ends_with_code_3_and_says_where_it_is(
    url: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEVAL_REMOTE_END_SECONDS", "0.3")
    with pytest.raises(OutageError) as caught:
        keval.evaluate("eval.yaml", results=url, hooks=[At({3: down(True)})])
    (path,) = project.root.glob("cache/*/*/*/manifest.json")
    Flaky.is_down = False

    outcome = project.keval("report", "latest", "-o", url, "--json")

    place = f"{url}/shared/{path.parent.name}"
    assert str(caught.value).startswith(f"the run is whole in {path.parent} and not in {place}: ")
    assert str(caught.value).endswith(f"`keval report {place}` uploads the rest when that works again")
    assert (0, 12) == (outcome.code, outcome.data["trials"][0]["trials"])
    assert 12 == stored("trials.jsonl")


def test_a_run_that_cannot_begin_there_asks_no_agent(url: str, project: Project) -> None:
    Flaky.is_down = True

    outcome = project.keval("run", "eval.yaml", "-o", url)

    assert (2, 0) == (outcome.code, len([*project.root.glob("cache/*/*/*/manifest.json")]))
    assert "ConnectionError: nobody answers; check the network, the credentials and the rights" in outcome.stderr


def test_what_could_not_be_looked_at_is_looked_at_again_at_once(
    url: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keval.evaluate("eval.yaml", results=url).path
    fsspec.filesystem("flaky").pipe_file(f"{url}/shared/{path.name}/blobs/0a", b"large")
    monkeypatch.setenv("KEVAL_CACHE", str(project.root / "another"))
    monkeypatch.setattr("keval_remote.remote._FRESH", 600.0)
    remote = Remote()
    run = remote.folder(url) / "shared" / path.name
    looks: dict[str, Callable[[], object]] = {
        "manifest.json": lambda: remote.find(run.parent.parent),
        "trials.jsonl": lambda: remote.fetch(run),
        "blobs/0a": lambda: remote.fetch(run, "blobs/0a"),
    }

    for file, look in looks.items():
        Flaky.is_down = True
        with pytest.raises(UnreachableError):
            look()
        Flaky.is_down = False
        look()

        assert (run / file).is_file(), file


def test_a_writer_that_lost_its_lease_stops(url: str, project: Project) -> None:
    def take() -> None:
        held = next(name for name in Flaky.store if ".lease." in name)
        told = {"token": "another", "host": "elsewhere", "pid": 7, "until": time.time() + 60}
        fsspec.filesystem("flaky").pipe_file(held[:-1] + "1", json.dumps(told).encode())

    project.write(questions_jsonl=questions(500))
    at = At({3: take})

    with pytest.raises(RunError, match=r"is written by process 7 on elsewhere, until .*; what it wrote is in .*cache"):
        keval.evaluate("eval.yaml", results=url, hooks=[at])

    assert 3 <= at.finished < 500
    assert stored("summary.json") == 0


def test_of_two_who_make_a_lease_where_that_succeeds_twice_one_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("careless", Careless, clobber=True)
    monkeypatch.setattr("keval_remote.lease._SETTLING", 0.2)
    objects, outcomes = Objects.at("careless://run"), list[str]()

    def acquire() -> None:
        try:
            Lease.acquire(objects, ".lease", 5.0)
            outcomes.append("held")
        except HeldError as error:
            outcomes.append(str(error).partition(" process")[0])

    both = [threading.Thread(target=acquire) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert ["careless://run is being written by", "held"] == sorted(outcomes)


def test_who_takes_a_lease_over_removes_those_of_earlier_ones() -> None:
    objects = Objects.at("memory://left")
    for number in range(2):
        held = {"token": f"{number}", "host": "lost", "pid": number, "until": 0}
        objects.write(f".lease.{number}", json.dumps(held).encode())

    lease = Lease.acquire(objects, ".lease", 0.3)
    there = [*objects.list()]
    lease.release()

    assert ([".lease.2"], {}) == (there, objects.list())


def test_a_lease_that_is_renewed_by_a_machine_with_another_clock_is_not_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = Objects.at("memory://skewed")

    def renewed(_: float = 0) -> None:
        held = {"token": "one", "host": "elsewhere", "pid": 7, "until": time.time() - 3600 + renewals.__next__()}
        objects.write(".lease.0", json.dumps(held).encode())

    renewals = iter(range(9))
    renewed()
    monkeypatch.setattr("keval_remote.lease.time.sleep", renewed)

    with pytest.raises(HeldError, match="is being written by process 7 on elsewhere"):
        Lease.acquire(objects, ".lease", 0.3)


def test_an_error_of_a_file_system_shows_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("GET https://account.example/x?sig=a-canary failed")

    objects = Objects.at("memory://anywhere")
    monkeypatch.setattr(MemoryFileSystem, "ls", fail)

    with pytest.raises(UnreachableError, match=r"GET https://account\.example/x\?… failed; check the network"):
        objects.list()


def test_a_run_costs_few_requests(url: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/remote-results.md has these figures."""
    monkeypatch.setenv("KEVAL_REMOTE_PART_SECONDS", "600")
    monkeypatch.setenv("KEVAL_REMOTE_LEASE_SECONDS", "600")
    monkeypatch.setattr("keval_remote.mirror._LOOKS", 60.0)  # a slow machine is not at the end when it looks again
    Flaky.asked.clear()

    keval.evaluate("eval.yaml", results=url)
    written, asked = [*Flaky.written], Counter(Flaky.asked)
    Flaky.written.clear()
    resumed = project.keval("resume", "latest", "-o", url)

    # What lines refer to comes before them, and scores after their trials. The manifest is written again at the end.
    lasting = [name for name in dict.fromkeys(written) if name != "manifest.json"]
    assert [".lease.0", "samples.jsonl", "trials.jsonl", "scores.jsonl", "summary.json"] == lasting
    assert len(written) in (6, 7)
    assert (True, 1) == (asked["ls"] in (10, 11), asked["rm_file"])
    assert (0, {".lease.0", "manifest.json", "scores.jsonl", "summary.json"}) == (resumed.code, {*Flaky.written})
