"""What is served: the runs of a folder, and the templates that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
from jinja2 import Environment, PackageLoader

from keval.frontend import environment
from keval_viewer import addresses
from keval_viewer.runs import Runs

__all__ = ["Viewer"]


@attrs.frozen
class Viewer:
    """The runs, the templates, and the tabs of a run's pages, each a name and a place in the run."""

    runs: Runs
    environment: Environment
    tabs: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, root: Path, tabs: Sequence[tuple[str, str]]) -> Viewer:
        """Return a viewer of a results folder."""
        templates = environment(PackageLoader("keval_viewer"))
        templates.globals |= {name: getattr(addresses, name) for name in addresses.__all__ if name != "RUN"}
        return cls(Runs(root), templates, tabs)
