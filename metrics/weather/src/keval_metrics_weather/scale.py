"""The scale that all of these metrics score on."""

from __future__ import annotations

from keval import Scale

__all__ = ["SCALE"]

SCALE = Scale(bands={"poor": 0.0, "acceptable": 0.4, "good": 0.7, "excellent": 0.9})
"""From 0 to 1, each band from where the document lets it begin (metrics-assessment.md, Overview)."""
