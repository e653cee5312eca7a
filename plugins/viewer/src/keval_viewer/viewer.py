"""What is served: the runs of a folder, and the templates that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
from jinja2 import Environment, PackageLoader

from keval.plugin import dollars, time_span
from keval_viewer import addresses
from keval_viewer.following import Following
from keval_viewer.listing import Listing
from keval_viewer.report_page.rendering import environment
from keval_viewer.runs import Runs

__all__ = ["Viewer"]


@attrs.frozen
class Viewer:
    """The runs, their table, those that are followed, the templates, and the tabs of a run: names, and places in it."""

    runs: Runs
    listing: Listing
    following: Following
    environment: Environment
    tabs: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, root: Path, tabs: Sequence[tuple[str, str]]) -> Viewer:
        """Return a viewer of a results folder."""
        templates = environment(PackageLoader("keval_viewer"))
        templates.filters |= {"dollars": dollars, "span": time_span}
        templates.globals |= {name: getattr(addresses, name) for name in addresses.__all__ if name != "RUN"}
        runs = Runs(root)
        return cls(runs, Listing(runs), Following(), templates, tabs)
