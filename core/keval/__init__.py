"""keval measures what a context does for an AI agent.

This module has what the author of a metric needs, and what reads a run: `from keval import Score, Trial`, or
`keval.open_run("latest")`. What other plugins need besides is in `keval.plugin`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)$", re.MULTILINE)


def names_of(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a public module: the names that its stub imports.

    The stub beside `file` is the one list of public names. A name is imported when it is first used, so that nobody
    pays for what is not used.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, names in _IMPORT.findall(stub) for name in re.findall(r"(\w+) as", names)}

    def get(name: str) -> Any:
        if name == "__version__" and module == __name__:
            from importlib.metadata import version

            return version("keval-core")
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = vars(sys.modules[module])[name] = getattr(import_module(homes[name]), name)
        return value

    names = sorted([*homes, *(["__version__"] if module == __name__ else [])])
    return get, lambda: names, names


__getattr__, __dir__, __all__ = names_of(__name__, __file__)
