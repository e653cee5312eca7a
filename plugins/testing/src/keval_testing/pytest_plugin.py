"""The pytest plugin: `keval`, by which a test holds an evaluation to its gates, and the fixtures of docs/testing.md.

pytest imports this module wherever keval-testing is installed, so it imports nothing of keval until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from keval import Run
    from keval_testing import Project, ScriptedModel

_RESULTS = "keval_results"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that says where runs are kept."""
    parser.addini(_RESULTS, "where the fixture `keval` keeps its runs, from the root directory", default="results")


@pytest.fixture
def keval(request: pytest.FixtureRequest) -> Evaluations:
    """Run evaluations, and hold them to their gates; see docs/python.md."""
    return Evaluations(request)


@pytest.fixture
def keval_project(tmp_path: Path) -> Project:
    """Return a project in a temporary folder; see docs/testing.md."""
    from keval_testing import Project

    return Project.new(tmp_path)


@pytest.fixture
def scripted_model() -> Iterator[ScriptedModel]:
    """Serve a scripted model; see docs/testing.md."""
    from keval_testing import ScriptedModel

    with ScriptedModel.serve_in_thread() as model:
        yield model


class Evaluations:
    """Runs evaluations for one test.

    Paths of configs start from the folder of the test's file. Runs are kept under `results`, as `keval run` keeps them.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._folder = request.path.parent
        results = str(request.config.getini(_RESULTS))
        self.results: str | Path = results if "://" in results else request.config.rootpath / results

    def evaluate(self, config: str | Path | Mapping[str, Any], **options: Any) -> Run:
        """Run an evaluation as `keval.evaluate` does, with the same options, and return its run."""
        from keval import evaluate

        named = self._folder / config if isinstance(config, str | Path) else config
        return evaluate(named, **{"results": self.results, **options})

    def check(self, config: str | Path | Mapping[str, Any], *, strict: bool = False, **options: Any) -> Run:
        """Run an evaluation and test each of its gates as a subtest; the options are those of `keval.evaluate`.

        A gate that failed fails the test. One that is undecided is skipped with its reason, and fails the test if that
        is `strict`. A last subtest fails if trials or scores failed, unless a gate allows it (`failures <= 5%`). An
        evaluation that cannot be run fails the test.
        """
        from keval import KevalError
        from keval_report.gates import gate_rows, unmet_texts
        from keval_report.totals import loss_texts, unrun_text

        subtests = self._subtests()
        run, problem = None, ""
        try:
            run = self.evaluate(config, **options)
        except KevalError as error:
            problem = str(error)
        if run is None:  # beyond the error, which pytest would show, too
            pytest.fail(f"{config} cannot be run: {problem}", pytrace=False)
        summary = run.written_summary()
        if summary is None or not summary.gates:
            pytest.fail(
                f"{run.manifest.evaluation} has no gates to hold; add `gates:`, or give gates=[…]", pytrace=False
            )
        for row in gate_rows(summary.gates):
            with subtests.test(row.gate):
                told = f"{row.gate}: {row.verdict}" + (f" ({row.detail})" if row.detail else "")
                if row.verdict == "failed" or (strict and row.verdict == "undecided"):
                    unmet = unmet_texts(summary.unmet) if row.gate.startswith("expect") else []
                    pytest.fail("\n".join([told, *unmet, str(run.path)]), pytrace=False)
                if row.verdict == "undecided":
                    pytest.skip(told)
        with subtests.test("all trials answered and scored"):
            if not summary.were_all_made():
                lost = [unrun_text(summary, under_way=False), *loss_texts(summary, run.path)]
                pytest.fail("\n".join([*filter(None, lost), str(run.path)]), pytrace=False)
        return run

    def _subtests(self) -> pytest.Subtests:
        """Return the fixture of this name. Raises UsageError: this pytest has none."""
        try:
            found: pytest.Subtests = self._request.getfixturevalue("subtests")
        except pytest.FixtureLookupError as error:
            told = "each gate is a subtest, which pytest has from version 9 on: `pip install 'pytest>=9'`"
            raise pytest.UsageError(told) from error
        return found
