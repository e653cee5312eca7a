"""The vendors of models: a judge may favour what a model of its own vendor answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from keval.config.structure import provider_of

_FAMILY = re.compile(r"[a-z]{3,}(?=[-\d])")
"""The word that a model's name begins with before its version or size."""
_VERSIONED = re.compile(r"[-\d]")


def vendors_of(model: str) -> tuple[str, ...]:
    """Return names of who made a model that is named as `provider/name`, or as `router/vendor/name`.

    That is the provider whose families the name is of, or else the vendor that a router knows, and the word that the
    name begins with, as models of one family are of one vendor. It is nothing if the name tells nothing.
    """
    *owners, name = model.lower().split("/")
    # Without a version or a size, the first word of a name need not be that of a family.
    if not owners[1:] and not _VERSIONED.search(name):
        return ()
    for part in dict.fromkeys((name, *name.split("."))):  # a host may write us.vendor.model-1
        if provider := provider_of(part):
            return (provider,)
    family = _FAMILY.match(name)
    return (*owners[1:], *([family[0]] if family else []))


def same_vendors(
    agents: Iterable[tuple[str, Iterable[str]]], judges: Iterable[tuple[str, Iterable[str]]]
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the judges that share a vendor with agents, with these agents and the vendor.

    Agents and judges are given by their labels and models.
    """
    made = {label: {vendor for model in models for vendor in vendors_of(model)} for label, models in agents}
    for judge, models in judges if any(made.values()) else ():
        for vendor in dict.fromkeys(vendor for model in models for vendor in vendors_of(model)):
            if found := tuple(label for label, vendors in made.items() if vendor in vendors):
                yield judge, found, vendor
                break
