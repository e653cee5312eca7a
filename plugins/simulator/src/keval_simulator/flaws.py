"""Flaws: how often the simulated model's answers are less than perfect."""

from __future__ import annotations

import attrs

__all__ = ["Flaws"]


@attrs.frozen
class Flaws:
    """How often an answer is less than perfect, as probabilities; the defaults are a decent, small model's."""

    rounds: float = 0.3
    """States a temperature in whole degrees."""
    slips: float = 0.03
    """States a temperature that is off by three degrees."""
    omits_details: float = 0.35
    """Leaves humidity and wind out."""
    omits_advice: float = 0.08
    """Gives no recommendation."""
    forgets_user: float = 0.05
    """Ignores what is known of the user's preferences."""
    overlooks: float = 0.2
    """Leaves out one of the passages of a document that it should tell."""
    clutches: float = 0.3
    """Tells the beginning of a document where nothing in it answers the question."""
    misreads: float = 0.06
    """States a number of a document wrong."""
