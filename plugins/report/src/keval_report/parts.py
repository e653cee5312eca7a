"""Parts of the summary that hook plugins add, as what the group `keval.report_parts` has of their names shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from keval.errors import RunError
from keval.files import DAMAGE
from keval.seams import registry
from keval_analysis.findings.summary import Summary


def part_lines(summary: Summary) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the name of each part that something shows, and its sentences. Raises PluginError: that does not import."""
    for name, part in summary.parts.items():
        if registry.has("keval.report_parts", name):
            show: Callable[[Any], Iterable[str]] = registry.load(registry.find("keval.report_parts", name))
            try:
                yield name, [*map(str, show(part))]
            except DAMAGE as error:  # a run of others, or of another version of the package, may have anything there
                told = f"the part {name!r} of summary.json cannot be shown: {type(error).__name__}: {error}"
                raise RunError(f"{told}; remove the file, as it is made anew without that part") from error
