"""keval measures what a context does for an AI agent.

This module has what the author of a metric needs, and what reads a run: `from keval import Score, Trial`, or
`keval.open_run("latest")`. What other plugins need besides is in `keval.plugin`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module; `homes` are the modules that its names come from.

    A name is imported when it is first used, so that nobody pays for what is not used. The stub beside the module says
    the same to type checkers and editors.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # kept in the module, where Python finds it without calling this again
        value = vars(sys.modules[module])[name] = getattr(import_module(home_of[name]), name)
        return value

    return get, lambda: sorted(home_of), sorted(home_of)


_own, _, _names = lazily(
    __name__,
    {
        "keval.errors": "KevalError RunError",
        "keval.records.manifest": "Manifest",
        "keval.records.scores": "Rubric Scale Score ScoreLine",
        "keval.records.transcript": "Message ToolCall Transcript",
        "keval.records.trial": "Failure Sample Trial",
        "keval.records.usage": "Usage",
        "keval.store.run": "Run open_run",
    },
)
_OF_PACKAGES = ("Session", "Summary", "evaluate")
"""Names that packages bring, by the group `keval.api`."""


def __getattr__(name: str) -> Any:
    if name in _OF_PACKAGES:
        from keval.seams import registry

        value = globals()[name] = registry.load(registry.find("keval.api", name))
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version("keval-core")
    # asked for by `from keval import *`; a fixed list would not have the names that packages bring
    return __dir__() if name == "__all__" else _own(name)


def __dir__() -> list[str]:
    from keval.seams import registry

    return sorted([*_names, "__version__", *(component.name for component in registry.components("keval.api"))])
