"""The examinations by name: which runs each reads, and the module that does it, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:  # `keval --help` needs none of these
    from keval_instrument.check_folder import Material, RunName
    from keval_instrument.findings import Examined

VERIFY = "verify"
"""The examination of checks, which runs solutions itself and reads no run."""

EXAMINATIONS: Mapping[str, tuple[RunName, ...]] = {
    VERIFY: (),
    "golden": ("damaged",),
    "repeats": ("asked",),
    "bias": ("asked", "restyled"),
    "leaks": ("asked",),
    "samples": ("asked",),
}


def examine(name: str, material: Material) -> Examined:
    """Do one examination of runs. Raises KevalError: a run is damaged."""
    # An examination is imported when it is done, as some need NumPy and some the recording.
    found: Examined = import_module(f"keval_instrument.{name}").examine(material)
    if found.figures or found.defects or found.reason:
        return found
    lacking = (material.reasons[run] for run in EXAMINATIONS[name] if run in material.reasons)
    return attrs.evolve(found, reason=next(lacking, "nothing scores what an answer says"))


def figures_of(names: Iterable[str] = EXAMINATIONS) -> dict[str, str]:
    """Return what each figure of examinations says, by its name."""
    return {key: told for name in names for key, told in import_module(f"keval_instrument.{name}").FIGURES.items()}
