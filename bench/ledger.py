"""What keval does for a judged sample, an MCP trial, a recorded answer and a start, counted and not timed.

    uv run python bench/ledger.py            prints what is done today beside what `ledger.json` says
    uv run python bench/ledger.py --write    renews `ledger.json`

Functions that are called, instructions of bytecode that are executed, modules that are imported and the peak of what
is allocated do not depend on the machine or on what else it does, but on the version of Python and on those of the
packages that do the work. A ledger is kept for each version of Python, and says which versions of packages it holds
for. What a sample costs is the difference of two runs by the number of samples between them: what a run does once is
not in it. One sample is worked on at a time, and the model answers at once with fixed replies.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import recorded
from fixed_model import fixed_model
from measure import INSTALLED

FILE = Path(__file__).with_name("ledger.json")
INTERPRETER = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}, {sys.platform}"
TOLERANCES = {"calls": 0.03, "calls of C": 0.03, "modules": 0.03, "instructions": 0.03, "peak KiB": 0.1}
"""By how much of itself a figure may rise without the ledger being renewed. Peaks scatter, and are rounded to that."""
ALL = "all"
HELP, START = "keval --help", "start of a run"

Costs: TypeAlias = dict[str, dict[str, float]]
"""What one subject costs: numbers by package, `ALL` among them, and unit."""

_HERE = Path(__file__).parent
_RENEW = "If the change is worth its cost, renew the ledger: uv run python bench/ledger.py --write"
_KEPT = ("LD_", "OPENBLAS_", "PATH", "TMPDIR")
"""How the environment variables begin that are handed on; others might change what is counted."""


@attrs.frozen
class Ledger:
    """What each subject costs, with these versions of packages, and so many distributions to look for plugins in."""

    costs: dict[str, Costs]
    versions: list[str]
    distributions: int

    def others(self, earlier: Ledger, subject: str) -> list[str]:
        """Return what is not as it was for an earlier ledger, and might change the figures of a subject."""
        before = dict(version.split("==") for version in earlier.versions)
        packages = (version.split("==") for version in self.versions)
        others = [f"{name}=={version}" for name, version in packages if before.get(name, version) != version]
        if subject in (HELP, START) and self.distributions != earlier.distributions:
            others.append(f"{self.distributions} distributions installed")
        return others


@attrs.frozen
class Subject:
    """Something that is done for each of a number of samples; `write` writes a config and its dataset."""

    name: str
    write: Callable[[Path, int], None]
    few: int
    many: int


def judged_sample(folder: Path, samples: int) -> None:
    """One model call by the agent, and one by a judge with one rubric."""
    rubric = {"agrees": {"instructions": "Does it agree?", "levels": {1: "No.", 5: "Yes."}, "needs_answer": True}}
    _write(
        folder,
        samples,
        {
            "conditions": {"only": {"system_prompt": "You are a helpful assistant. " * 10}},
            "judges": {"openai": {"model": "openai/m"}},
            "rubrics": [rubric],
        },
    )


def mcp_trial(folder: Path, samples: int) -> None:
    """Two model calls, and one call of a server over stdio between them."""
    server = {"type": "stdio", "command": sys.executable, "args": [str(_HERE / "look_up_server.py")]}
    server |= {"isolation": "condition"}
    conditions = {"only": {"contexts": ["keys"]}}
    _write(folder, samples, {"contexts": {"keys": server}, "conditions": conditions, "metrics": ["bench/one"]})


def recorded_answer(folder: Path, samples: int) -> None:
    """An answer that is read from a file, scored by the 14 weather metrics."""
    recorded.prepare(folder, samples)
    config = {**recorded.CONFIG, "execution": {"max_concurrent": 1}}
    (folder / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")


SUBJECTS = (
    Subject("judged sample", judged_sample, few=5, many=25),
    Subject("MCP trial", mcp_trial, few=5, many=25),
    Subject("recorded answer", recorded_answer, few=20, many=60),
)


def measure(counts: Iterable[str] = ("calls", "instructions", "memory")) -> Ledger:
    """Count what is done today, each count in processes of its own."""
    costs: dict[str, Costs] = {}
    with tempfile.TemporaryDirectory() as name, fixed_model() as url:
        folder = Path(name)
        environ = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
        environ |= {"HOME": name, "PYTHONHASHSEED": "0", "PYTHONPATH": str(INSTALLED)}
        environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "key-of-nobody"}
        runs = [
            _run(folder / f"{subject.name}, {number}", subject, number)
            for subject in SUBJECTS
            for number in (2, subject.few, subject.many)
        ]
        one = _run(folder / "one", SUBJECTS[0], 1)
        distributions = 0
        for count in counts:
            tallied = _tally(count, [one, *runs], folder, environ)
            started, *others = tallied["counts"]
            (helped,) = _tally(count, [["--help"]], folder, environ)["counts"]
            found = {HELP: helped, START: started}
            for subject, few, many in zip(SUBJECTS, others[1::3], others[2::3], strict=True):
                found[subject.name] = _each(few, many, subject.many - subject.few)
            distributions = tallied["distributions"]
            for subject_name, by_unit in found.items():
                _add(costs.setdefault(subject_name, {}), by_unit)
    packages = {package for cost in costs.values() for package in cost}
    return Ledger(costs, _versions(packages), distributions)


def read(interpreter: str = INTERPRETER) -> Ledger | None:
    """Return the committed ledger of a version of Python, `None` if there is none."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return Ledger(**kept[interpreter]) if interpreter in kept else None


def write(ledger: Ledger) -> None:
    """Renew the ledger of this version of Python in the file, a line for each package."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    text = json.dumps({**kept, INTERPRETER: attrs.asdict(ledger)}, indent=1, sort_keys=True)
    lines = re.sub(r"\{([^{}]*)\}", lambda numbers: "{" + " ".join(numbers[1].split()) + "}", text)
    FILE.write_text(lines + "\n", encoding="utf-8")


def rises(committed: Ledger, today: Ledger) -> list[str]:
    """Say which figures are more than the tolerance above the committed ones, by which packages, and what to do.

    Where packages have other versions, only keval's own are held against the ledger.
    """
    said = []
    for subject, costs in today.costs.items():
        before, others = committed.costs.get(subject, {}), today.others(committed, subject)
        only = f" (keval's own packages only, as there are {', '.join(others)})" if others else ""
        for unit, tolerance in TOLERANCES.items():
            was, now = _figure(before, unit, own=bool(others)), _figure(costs, unit, own=bool(others))
            if now > was * (1 + tolerance):
                by = ", ".join(_changes(before, costs, unit, own=bool(others)))
                said.append(f"{subject}: {unit} {was:,.1f} -> {now:,.1f}, {_change(was, now)}: {by}{only}")
        if subject in (HELP, START):
            new = [each for each in costs if "modules" in costs[each] and each not in before and not is_own(each)]
            said += [f"{subject}: imports {package}, which it did not" for package in new]
    return [*said, _RENEW] if said else []


def is_own(package: str) -> bool:
    """Return whether a package is one of keval's."""
    return package.partition(".")[0].partition("_")[0] == "keval"


def table(committed: Ledger | None, today: Ledger) -> Iterable[str]:
    """Yield the lines of a table: each figure, committed and today, and the packages that have a part in it."""
    yield f"{'':<28}{'committed':>14}{'today':>14}{'change':>10}"
    for subject, costs in today.costs.items():
        before = committed.costs.get(subject, {}) if committed else {}
        for unit in TOLERANCES:
            if unit not in costs[ALL]:
                continue
            yield _row(f"{subject}: {unit}", _figure(before, unit), _figure(costs, unit))
            for package in sorted(costs, key=lambda each: -costs[each].get(unit, 0)):
                was, now = (each.get(package, {}).get(unit, 0.0) for each in (before, costs))
                if package != ALL and max(was, now) >= costs[ALL][unit] / 100:
                    yield _row(f"  {package}", was, now)
    if committed:
        for subject in today.costs:
            for other in today.others(committed, subject):
                yield f"{subject}: {other}, other than committed"


def _write(folder: Path, samples: int, config: Mapping[str, Any]) -> None:
    evaluation = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "openai/m"}},
        "execution": {"max_concurrent": 1},
        **config,
    }
    (folder / "eval.yaml").write_text(json.dumps(evaluation), encoding="utf-8")
    with (folder / "q.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            question = f"Question {number:06}: where is the key? {'context ' * 100}"
            file.write(json.dumps({"id": f"q{number:06}", "question": question, "answer": "Under the mat."}) + "\n")


def _run(folder: Path, subject: Subject, samples: int) -> list[str]:
    """Write an evaluation of a subject, and return the command that runs it."""
    folder.mkdir()
    subject.write(folder, samples)
    return ["run", str(folder / "eval.yaml"), "-q", "-o", str(folder / "results")]


def _tally(count: str, commands: list[list[str]], folder: Path, environ: Mapping[str, str]) -> Any:
    """Run commands in a process of their own, and return what `tally.py` writes of them.

    They are run again if modules had to be compiled. Raises CalledProcessError when one fails.
    """
    results = folder / "results.json"
    process = [sys.executable, str(_HERE / "tally.py"), count, str(results)]
    given = json.dumps(commands)
    while True:
        subprocess.run(process, input=given, stdout=subprocess.DEVNULL, text=True, check=True, cwd=folder, env=environ)
        tallied = json.loads(results.read_text(encoding="utf-8"))
        if not tallied["compiled"]:
            return tallied


def _each(few: dict[str, dict[str, float]], many: dict[str, dict[str, float]], samples: int) -> dict[str, Any]:
    """Return what each further sample costs. A peak and modules are no matter of samples: it is that of the many."""
    return {
        unit: numbers
        if unit in ("peak KiB", "modules")
        else {package: (number - few[unit].get(package, 0)) / samples for package, number in numbers.items()}
        for unit, numbers in many.items()
    }


def _add(costs: Costs, found: Mapping[str, Mapping[str, float]]) -> None:
    """Add what was found to the costs of a subject, with the sums of all packages.

    It is rounded to three digits, a peak to two, so that what scatters is not in the next diff.
    """
    for unit, numbers in found.items():
        digits = 2 if unit == "peak KiB" else 3
        for package, number in {**numbers, ALL: sum(numbers.values())}.items():
            if rounded := round(float(f"{number:.{digits}g}"), 1):
                costs.setdefault(package, {})[unit] = rounded


def _versions(packages: Iterable[str]) -> list[str]:
    """Return the distributions of packages that are not keval's, with their versions."""
    owners = metadata.packages_distributions()
    names = {name for package in packages if not is_own(package) for name in owners.get(package, ())}
    return sorted(f"{name}=={metadata.version(name)}" for name in names)


def _figure(costs: Costs, unit: str, *, own: bool = False) -> float:
    """Return a figure of a subject, of all packages or of keval's own."""
    if own:
        return sum(numbers.get(unit, 0.0) for package, numbers in costs.items() if is_own(package))
    return costs.get(ALL, {}).get(unit, 0.0)


def _changes(before: Costs, after: Costs, unit: str, *, own: bool) -> list[str]:
    """Return the packages that have more of a unit than before, those with the largest rise first."""
    rise = {
        package: numbers.get(unit, 0.0) - before.get(package, {}).get(unit, 0.0)
        for package, numbers in after.items()
        if package != ALL and (is_own(package) or not own)
    }
    most = sorted((package for package in rise if rise[package] > 0), key=lambda package: -rise[package])
    return [f"{package} {rise[package]:+,.1f}" for package in most[:5]]


def _row(name: str, was: float, now: float) -> str:
    return f"{name:<28}{was:>14,.1f}{now:>14,.1f}{_change(was, now):>10}"


def _change(was: float, now: float) -> str:
    return f"{(now - was) / was:+.1%}" if was else "new"


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what keval does for a sample and for a start.")
    parser.add_argument("--write", action="store_true", help="renew ledger.json")
    renew = parser.parse_args().write
    committed, today = read(), measure()
    for line in table(committed, today):
        print(line)
    print("wanted: no figure more than 3 % above the committed one; no peak more than 10 %")
    for line in rises(committed, today) if committed else ():
        print(line)
    if renew:
        write(today)


if __name__ == "__main__":
    main()
