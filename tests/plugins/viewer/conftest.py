"""Runs to look at, and the browser that looks at them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from keval_viewer.app import Serving
from tests import hostile, viewing
from tests.conftest import Project
from tests.plugins.viewer import odd_run


@pytest.fixture(scope="package")
def hostile_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one run, in which everything that others write is hostile."""
    project = Project(tmp_path_factory.mktemp("hostile"))
    hostile.run(project)
    return project.root / "results"


@pytest.fixture
def copied(hostile_results: Path, tmp_path: Path) -> Path:
    """A copy of a run, in a results folder of its own."""
    (run,) = hostile_results.glob("*/*")
    return Path(shutil.copytree(run, tmp_path / "results" / "hostile" / run.name))


@pytest.fixture(scope="package")
def served(hostile_results: Path) -> Iterator[Serving]:
    """The hostile run, served."""
    with viewing.served(hostile_results) as running:
        yield running


@pytest.fixture(scope="package")
def odd_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one run, whose trials are odd."""
    results = tmp_path_factory.mktemp("odd")
    odd_run.make(results)
    return results


@pytest.fixture(scope="package")
def odd(odd_results: Path) -> Iterator[Serving]:
    """The odd run, served."""
    with viewing.served(odd_results) as running:
        yield running


@pytest.fixture(scope="module")
def browser(hostile_results: Path) -> Iterator[Browser]:
    """Chromium; the runs that are made in this process are made before, as it keeps an event loop in its thread."""
    with viewing.chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, as `tests.viewing.visiting` does."""
    with viewing.visiting(browser) as visit:
        yield visit
