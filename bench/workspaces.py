"""What a workspace adds to a trial: seconds and CPU, against the same trial in an empty folder of the agent's own.

Each trial runs a small program that writes one file, one trial at a time. A workspace is copied, noted, compared with
its start, and removed; what a run does once, such as making the template, is not in the figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs
from measure import Cost, keval, measure, part

_PROGRAM = "import time; time.sleep(0.2); open('answer.txt', 'w').write('42\\n'); print('It is 42.')"
_LINES = "a line of a program that is as long as most\n" * 60


@attrs.frozen
class Case:
    """What a trial works in, and how many trials of it are measured."""

    name: str
    files: int
    trials: int
    options: dict[str, Any] = attrs.field(factory=dict)


CASES = (
    Case("an empty workspace", 0, part(40)),
    Case("an empty one, shut in with bubblewrap", 0, part(40), {"sandbox": "bubblewrap"}),
    Case("1 file", 1, part(40)),
    Case("100 files", 100, part(40)),
    Case("100 files of a Git commit", 100, part(40), {"git": {"commit": "HEAD"}}),
    Case("10,000 files", 10_000, part(10)),
)


def run(folder: Path, trials: int, **config: Any) -> Cost:
    """Return what a trial costs: the difference of two runs, by the number of trials between them."""
    agents = {"program": {"type": "command", "command": [sys.executable, "-S", "-c", _PROGRAM]}}
    execution = {"max_concurrent": 1}
    whole = {"dataset": {"path": "q.jsonl"}, "agents": agents, "metrics": ["basic/contains"], "execution": execution}
    few, many = (keval(folder, {**whole, **config}, samples) for samples in (2, 2 + trials))
    return Cost((many.wall - few.wall) / trials, (many.cpu - few.cpu) / trials, many.peak)


def make(folder: Path, case: Case) -> None:
    """Write files of 2.6 kB into folders of 100, and commit them if the case is about a commit."""
    folder.mkdir()
    for number in range(case.files):
        path = folder / f"{number // 1000}" / f"{number // 100}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n{_LINES}", encoding="utf-8")
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All"]) if "git" in case.options else ():
        subprocess.run([*git, *command], check=True)


def copying(source: Path) -> Cost:
    """Return what the programs of the system take to copy a folder, and to remove the copy."""
    target = source.with_name("copied")
    copy, removal = (
        measure(command) for command in (["cp", "-a", str(source), str(target)], ["rm", "-r", str(target)])
    )
    return Cost(copy.wall + removal.wall, copy.cpu + removal.cpu, copy.peak)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        bare = run(Path(name), part(40))
        print(f"a trial without a workspace, {os.cpu_count()} cores: {bare.wall * 1000:.0f} ms,", end=" ")
        print(f"{bare.cpu * 1000:.0f} ms of CPU")
        for number, case in enumerate(CASES[: part(len(CASES), least=2)]):
            source = Path(name) / f"source-{number}"
            make(source, case)
            found = run(Path(name), case.trials, workspace={"copy": str(source), **case.options})
            wall, cpu = found.wall - bare.wall, found.cpu - bare.cpu
            print(f"  {case.name}: {found.wall / bare.wall:.2f} times as long ({wall * 1000:+.0f} ms),", end=" ")
            print(f"{found.cpu / bare.cpu:.2f} times the CPU ({cpu * 1000:+.0f} ms)")
            copied = copying(source)
            print(f"    that is {wall / copied.wall:.2f} times as long as `cp -a` and `rm -r` of its files,", end=" ")
            print(f"and {cpu / copied.cpu:.2f} times their CPU")
    print("wanted: 100 files at most 1.2 times as long, 10,000 files at most 2 times as long as `cp -a` and `rm -r`")


if __name__ == "__main__":
    main()
