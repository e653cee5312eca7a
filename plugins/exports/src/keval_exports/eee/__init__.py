"""Every Eval Ever: a shared format for results of evaluations, schema version 0.3.0."""

from keval_exports.eee.export import Eee

__all__ = ["Eee"]
