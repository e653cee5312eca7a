"""The former place of `keval_testing`, whose names it forwards until version 0.2."""

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what Python asks of any module
        raise AttributeError(name)
    try:
        found = getattr(import_module("keval_testing"), name)
    except ModuleNotFoundError as error:
        raise ImportError("keval.testing is a package of its own, keval-testing; install it") from error
    warnings.warn("keval.testing is keval_testing now, and will be removed", DeprecationWarning, stacklevel=2)
    return found
