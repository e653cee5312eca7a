"""The check of exporters."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval import Run, RunError
from keval.seams.blank_text import is_blank
from keval.seams.exporters import Exported
from keval_testing.broken_rules import Checklist
from keval_testing.calls import excerpt
from keval_testing.left_behind import LEFT_BEHIND_RULES, nothing_left_behind
from keval_testing.odd_run import make_odd_run
from keval_testing.subject import OPTIONS_RULES, Subject

EXPORTER_RULES: Mapping[str, str] = {
    **OPTIONS_RULES,
    "any run": "export failed trials, unscored and neutral scores, and any text; raise RunError where none can be",
    "files": "return an Exported with every file that was written, all within the folder `to`, which may not exist yet",
    "left out": "say in sentences of `left_out` what the format cannot hold",
    "determinism": "write the same run the same way: no time of the export, no random ids, everything in a fixed order",
    "in place": "replace an earlier export of another run, and leave other people's files in the folder alone",
    "run unchanged": "write to the folder `to` only",
    "refusals": "let the RunError of reading pass, and raise RunError from OSError where the folder cannot be written",
    **LEFT_BEHIND_RULES,
}
"""The rules of exporters, each with how to mend one that breaks it."""


def check_exporter(
    exporter: str | type | object, *, options: Mapping[str, Any] | None = None, run: Run | None = None
) -> None:
    """Check an exporter, given by its name, as a class or as an instance, with an odd run that is made for it.

    `options` are those of `keval export`, by the names of fields. One for runs of a kind is given such a `run`.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such exporter is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.exporters", exporter, options)
    checklist = Checklist(subject.told, EXPORTER_RULES)
    if subject.check_options(checklist):
        with tempfile.TemporaryDirectory() as folder:
            exported = run or asyncio.run(make_odd_run(Path(folder, "results")))
            check = _Check(subject, checklist, exported, Path(folder))
            if check.exported("first use") is not None:
                with nothing_left_behind(checklist):
                    check.run_all()
    checklist.finish()


@attrs.frozen
class _Check:
    subject: Subject
    checklist: Checklist
    run: Run
    folder: Path

    def exported(self, name: str) -> Path | None:
        """Export the run to a new folder of this name, and return that; `None` if it failed."""
        to = self.folder / "exported" / name
        try:
            told = self.subject.new().export(self.run, to)
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.checklist.broken("any run", f"it raised {excerpt(error)}")
            return None
        return to if self._are_files_told(told, to) else None

    def run_all(self) -> None:
        before = _content(self.run.path)
        again = self.exported("again")
        if again is not None:
            if _content(again) != _content(self.folder / "exported" / "first use"):
                self.checklist.broken("determinism", "the same run was exported twice, with different bytes")
            else:
                self._export_in_place(again)
        if _content(self.run.path) != before:
            self.checklist.broken("run unchanged", "the run's directory has other files than before")
        self._check_refusals()

    def _are_files_told(self, told: object, to: Path) -> bool:
        if not isinstance(told, Exported):
            self.checklist.broken("files", f"it returned {excerpt(told)}")
            return False
        outside = [path for path in told.files if not path.resolve().is_relative_to(to.resolve())]
        missing = [path for path in told.files if not path.is_file()]
        written = {path.resolve() for path in to.rglob("*") if path.is_file()}
        untold = sorted(written - {path.resolve() for path in told.files})
        for what, paths in (("is not in the folder", outside), ("was not written", missing), ("is not told", untold)):
            for path in paths:
                self.checklist.broken("files", f"{path.name} {what}")
        if not told.files and not told.sent:
            self.checklist.broken("files", "nothing was written, and nothing sent")
        for reason in told.left_out:
            if is_blank(reason) or "\n" in reason:
                self.checklist.broken("left out", f"{excerpt(reason)} is no sentence")
        return not (outside or missing or untold)

    def _export_in_place(self, to: Path) -> None:
        """Export to a folder that has an earlier export, which was of another run, and a file of somebody else."""
        whole = _content(to)
        other = to / "notes of somebody else.txt"
        for path in whole:
            (to / path).write_bytes(b"an earlier export\n" * 10_000)
        other.write_text("keep me", encoding="utf-8")
        self.subject.new().export(self.run, to)
        if not other.exists():
            self.checklist.broken("in place", "a file of somebody else is gone")
            return
        other.unlink()
        if _content(to) != whole:
            self.checklist.broken("in place", "an earlier export was not replaced whole")

    def _check_refusals(self) -> None:
        for name in ("trials.jsonl", "scores.jsonl", "manifest.json"):
            damaged = self.folder / "damaged" / name / self.run.path.name
            shutil.copytree(self.run.path, damaged)
            (damaged / name).write_bytes(b'{"id": 1}\n' + (damaged / name).read_bytes()[40:])
            self._export_in_vain(Run(damaged), self.folder / "exported" / f"damaged {name}", f"a damaged {name}")
        file = self.folder / "a file"
        file.touch()
        self._export_in_vain(self.run, file / "deeper", "a folder that cannot be made")

    def _export_in_vain(self, run: Run, to: Path, what: str) -> None:
        try:
            self.subject.new().export(run, to)
        except RunError:
            return
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.checklist.broken("refusals", f"with {what} it raised {excerpt(error)}")


def _content(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
