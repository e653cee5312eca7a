"""What a judged sample costs in keval, in Inspect, Pydantic Evals, Ragas and promptfoo, and without a framework.

    uv run python bench/against_peers.py [FOLDER]

Each makes one model call for an answer and one for a grade with its reason, 50 samples at once, as its documentation
tells a user to write it: see `bench/peers/`. The model is one server with fixed replies in a process of its own, which
counts the calls, so that work that was not done is noticed. Only the CPU of each peer's own processes counts, start-up
included. They run in turns, and the figures are medians.

Peers are installed in environments of their own in FOLDER, at first from the package registries; with a FOLDER, they
stay there. Their telemetry, caches and checks for updates are switched off.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import attrs
from fixed_model import counts, fixed_model
from measure import Cost, measure, part

SAMPLES, ROUNDS = part(1_000, least=2), part(3)
_CODE = Path(__file__).parent / "peers"
_OFFLINE = {
    "DO_NOT_TRACK": "1",
    "PROMPTFOO_CACHE_ENABLED": "false",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "TQDM_DISABLE": "1",
}


@attrs.frozen
class Peer:
    """Something that does the work: `command` is made of the environment that its packages were installed in."""

    name: str
    packages: Sequence[str]
    install: Callable[[Path, Sequence[str]], None]
    command: Callable[[Path], list[str]]


def with_uv(environment: Path, packages: Sequence[str]) -> None:
    """Install packages from PyPI in an environment of their own; this project's constraints are not theirs."""
    subprocess.run(["uv", "venv", "-q", "--no-config", "--python", sys.executable, str(environment)], check=True)
    python = str(environment / "bin" / "python")
    subprocess.run(["uv", "pip", "install", "-q", "--no-config", "--python", python, *packages], check=True)


def with_npm(environment: Path, packages: Sequence[str]) -> None:
    """Install packages from npm, with a Node.js for them."""
    environment.mkdir(parents=True)
    (environment / "package.json").write_text('{"allowScripts": {"node": true}}', encoding="utf-8")
    quiet = ["--silent", "--no-audit", "--no-fund"]
    subprocess.run(["npm", "install", *quiet, "--prefix", str(environment), *packages], check=True)


def with_nothing(environment: Path, packages: Sequence[str]) -> None:
    """Use the packages of this environment."""


def script(name: str) -> Callable[[Path], list[str]]:
    """Return what runs a script of `bench/peers/` in an environment."""
    return lambda environment: [str(environment / "bin" / "python"), name]


def own(*command: str) -> Callable[[Path], list[str]]:
    """Return what runs a command of this environment."""
    return lambda _: [sys.executable, *command]


def promptfoo(environment: Path) -> list[str]:
    binaries = environment / "node_modules" / ".bin"
    options = ["--max-concurrency", "50", "--no-cache", "--no-table", "--no-progress-bar", "--output", "results.json"]
    return [str(binaries / "node"), str(binaries / "promptfoo"), "eval", "--config", "promptfoo.yaml", *options]


BARE = "two calls of OpenAI's SDK, recorded"
PEERS = (
    Peer(BARE, (), with_nothing, own("bare_sdk.py")),
    Peer("two calls of aiohttp", (), with_nothing, own("bare_aiohttp.py")),
    Peer("keval", (), with_nothing, own("-m", "keval", "run", "keval.yaml", "-q")),
    Peer("Ragas", ("ragas==0.4.3", "langchain-community==0.3.31", "openai==3.3.0"), with_uv, script("with_ragas.py")),
    Peer(
        "Pydantic Evals",
        ("pydantic-evals==2.62.0", "pydantic-ai-slim[openai]==2.62.0"),
        with_uv,
        script("with_pydantic_evals.py"),
    ),
    Peer("promptfoo", ("promptfoo@0.123.1", "node@24.21.0"), with_npm, promptfoo),
    Peer("Inspect", ("inspect-ai==0.3.285", "openai==3.51.0"), with_uv, script("with_inspect.py")),
)


def set_up(peer: Peer, folder: Path) -> Path:
    """Return the environment of a peer, made if it is not there with these packages."""
    environment = folder / "_".join([peer.name, *peer.packages]).replace(" ", "_")
    if not (environment / "complete").exists():
        shutil.rmtree(environment, ignore_errors=True)
        peer.install(environment, peer.packages)
        environment.mkdir(parents=True, exist_ok=True)
        (environment / "complete").touch()
    return environment


def run(peer: Peer, environment: Path, url: str, samples: int) -> Cost:
    """Have a peer do the work; the environment leads to the model. Raises SystemExit if it did less, or more."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(_CODE, folder, dirs_exist_ok=True)
        _write_questions(folder, samples)
        offline = {**_OFFLINE, "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"), "PYTHONPATH": ""}
        before = counts(url)
        cost = measure(peer.command(environment), folder, offline)
        done = counts(url) - before
    if done != Counter(answers=samples, grades=samples):
        raise SystemExit(f"{peer.name} made {dict(done)} of {samples} calls of each kind")
    return cost


def _write_questions(folder: Path, samples: int) -> None:
    """Write the samples, and once more as promptfoo reads them."""
    questions = [
        {
            "id": f"q{number:06}",
            "question": f"Question {number:06}: where is the key? {'context ' * 100}",
            "answer": "Under the mat.",
        }
        for number in range(samples)
    ]
    lines = [json.dumps(each) for each in questions]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [json.dumps({"vars": each}) for each in questions]
    (folder / "questions.promptfoo.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, fixed_model() as url:
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "key-of-nobody"}
        folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else Path(scratch)
        peers = [peer for peer in PEERS if peer.install is not with_npm or shutil.which("npm")]
        environments = {peer.name: set_up(peer, folder) for peer in peers}
        costs: dict[str, list[Cost]] = {peer.name: [] for peer in peers}
        for _ in range(ROUNDS):
            for peer in peers:
                costs[peer.name].append(run(peer, environments[peer.name], url, SAMPLES))
    bare = median(cost.cpu for cost in costs[BARE])
    print(f"{SAMPLES} judged samples, 50 at once, medians of {ROUNDS} rounds, start-up included:")
    print(f"{'':<36}{'CPU a sample':>13}{'of the SDK':>12}{'peak':>10}{'wall':>8}")
    for peer in PEERS:
        if peer.name not in costs:
            print(f"{peer.name:<36}skipped: there is no npm")
            continue
        cpu, peak, wall = (median(getattr(cost, each) for cost in costs[peer.name]) for each in ("cpu", "peak", "wall"))
        print(f"{peer.name:<36}{cpu / SAMPLES * 1000:>10.2f} ms{cpu / bare:>12.2f}{peak:>6.0f} MiB{wall:>6.1f} s")
    print("wanted: keval at most 0.60 of the SDK")


if __name__ == "__main__":
    main()
