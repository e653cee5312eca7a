"""Break the code on purpose, in one place at a time, and say which defects the tests notice.

    uv run python bench/breaks.py                 all of breaks.yaml, in hours
    uv run python bench/breaks.py tap: sessions:  those whose names begin so

It works on a copy of the project, so the working tree is never broken.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs
import yaml

ROOT = Path(__file__).parents[1]
_PYTEST = ("-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider")
_TIMEOUT_SECONDS = 300


@attrs.frozen
class Break:
    """A defect: in `file`, `old` becomes `new`, and a test under `tests` should fail, if `slow` a slow one."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    slow: bool = False

    def is_noticed(self, project: Path) -> bool:
        """Apply the defect to a copy of the project, run the tests until one fails, and take it back."""
        path = project / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.name}: {self.file} holds `old` {text.count(self.old)} times; renew breaks.yaml")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        command = [
            str(project / ".venv" / "bin" / "python"),
            *_PYTEST,
            "-m",
            "slow" if self.slow else "not slow",
            *self.tests,
        ]
        try:
            done = subprocess.run(command, cwd=project, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return True
        finally:
            path.write_text(text, encoding="utf-8")
        return done.returncode == 1


def main(beginnings: tuple[str, ...]) -> None:
    entries = yaml.safe_load(Path(__file__).with_name("breaks.yaml").read_text(encoding="utf-8"))
    chosen = [one for one in (Break(**entry) for entry in entries) if one.name.startswith(beginnings or "")]
    noticed = 0
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "keval"
        shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "results"))
        subprocess.run(["uv", "sync", "-q", "--group", "dev"], cwd=project, check=True)  # its own environment
        for one in chosen:
            found = one.is_noticed(project)
            noticed += found
            print(f"{'noticed' if found else 'MISSED '}  {one.name}", flush=True)
    print(f"{noticed} of {len(chosen)} noticed")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
