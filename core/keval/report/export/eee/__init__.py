"""Every Eval Ever: a shared format for results of evaluations, schema version 0.3.0.

An aggregate file per agent, and beside it a file of instances with one row per score.
"""

from __future__ import annotations

from keval.report.export.eee.write import export_eee

__all__ = ["export_eee"]
