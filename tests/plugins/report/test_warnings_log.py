"""Warnings of other packages: in a log of the run, and not in between what keval prints."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from keval.redaction import MARK
from keval_report.warnings_log import package_of
from keval_testing import Project
from tests.printed import printed

CONFIG = """
    dataset: {path: questions.jsonl}
    agents:
      own: {type: python, target: "noisy:answer"}
      other: {type: http, url: "http://127.0.0.1:9/", answer: text, headers: {x-token: "${TOKEN}"}}
    metrics: [testing/words]
"""
NOISY = """
    import logging, warnings

    import framework
    from keval.errors import PluginWarning

    async def answer(question):
        warnings.warn("this is experimental, canary-4711", UserWarning)
        warnings.warn("mind this", PluginWarning)
        warnings.warn("x" * 1980 + "canary-4711", UserWarning)
        framework.run()
        logging.getLogger("keval_own").warning("keval says so")
        return "Oslo"
"""
FRAMEWORK = """
    import logging

    def run():
        logging.getLogger("google_adk.tools").warning("first\\nsecond")
        logging.getLogger().error("never retrieved", exc_info=ValueError("boom"))
"""


@pytest.fixture
def noisy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project.new(tmp_path)
    # As a library that hides what it logs, as keval-gadk has ADK do.
    monkeypatch.setattr(logging.getLogger("google_adk"), "handlers", [logging.NullHandler()])
    monkeypatch.chdir(project.root)
    project.write("eval.yaml", CONFIG)
    project.write("noisy.py", NOISY)
    project.write("framework/__init__.py", FRAMEWORK)
    monkeypatch.delitem(sys.modules, "noisy", raising=False)  # of another test
    return project


def logs(project: Project) -> list[Path]:
    return [*project.root.glob("results/*/*/warnings.log")]


def test_a_run_counts_them_in_one_line_and_keeps_each_once(noisy: Project) -> None:
    code, shown = printed("run", "eval.yaml", "--agent", "own", env={"TOKEN": "canary-4711"})

    (log,) = logs(noisy)
    assert 0 == code
    assert [
        f"3 × noisy: UserWarning: this is experimental, {MARK}",
        f"3 × noisy: UserWarning: {'x' * 1980}{MARK[:7]}",
        "3 × framework: WARNING: first",
        "    second",
        "3 × framework: ERROR: never retrieved: ValueError('boom')",
    ] == log.read_text(encoding="utf-8").splitlines()
    assert f"\n12 warnings of framework, noisy: see {log.relative_to(noisy.root)}\n" in shown
    assert not any(told in shown for told in ("experimental", "second", "boom", "canary"))
    assert "warning: mind this" in shown


def test_a_run_without_any_writes_nothing(noisy: Project) -> None:
    noisy.write("noisy.py", "def answer(question): return 'Oslo'")

    code, shown = printed("run", "eval.yaml", "--agent", "own", env={"TOKEN": "canary-4711"})

    assert (0, []) == (code, logs(noisy))
    assert "warning" not in shown


def test_a_run_that_cannot_begin_shows_them(noisy: Project) -> None:
    noisy.write(
        "noisy.py", "import warnings\nwarnings.warn('no licence found', UserWarning)\nraise OSError('no licence')"
    )

    code, shown = printed("run", "eval.yaml", "--agent", "own", env={"TOKEN": "canary-4711"})

    assert (2, []) == (code, logs(noisy))
    assert "warning: 1 × noisy: UserWarning: no licence found" in shown


def test_a_log_that_cannot_be_written_ends_no_run(noisy: Project) -> None:
    noisy.write(
        "noisy.py",
        """
        import pathlib, warnings

        def answer(question):
            for manifest in pathlib.Path("results").glob("*/*/manifest.json"):
                manifest.with_name("warnings.log").symlink_to("/dev/null") if question[-2] == "d" else None
            warnings.warn("this is experimental", UserWarning)
            return "Oslo"
        """,
    )

    code, shown = printed("run", "eval.yaml", "--agent", "own", env={"TOKEN": "canary-4711"})

    assert 0 == code
    assert "warnings.log cannot be written: a link is in its place" in shown


def test_a_file_is_told_by_its_package() -> None:
    site = next(path for path in sys.path if path.endswith("site-packages"))

    assert [
        package_of(told)
        for told in (
            f"{site}/openai/_client.py",
            f"{site}/google/adk/agents/x.py",
            f"{site}/six.py",
            logging.__file__,
            "/elsewhere/mine.py",
            "<string>",
        )
    ] == ["openai", "google.adk", "six", "logging", "mine", "<string>"]
