"""Checks of what a trial left, each a class whose fields are its options; and the solutions of samples."""

from keval_checks.solution import (
    Solution as Solution,
)
