"""Checks of what a trial left, each a class whose fields are its options; and the solutions of samples."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"keval_checks.solution": "Solution"})
