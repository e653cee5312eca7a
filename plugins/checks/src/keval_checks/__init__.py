"""Checks of what a trial left, each a class whose fields are its options; and the solutions of samples."""

from keval_checks.command import CommandCheck
from keval_checks.file import FileCheck, Golden
from keval_checks.mcp import McpCheck
from keval_checks.python import PythonCheck
from keval_checks.solution import NothingAgent, Solution, SolutionAgent, SolutionCall
from keval_checks.sqlite import SqliteCheck
from keval_checks.unchanged import UnchangedCheck

__all__ = [
    "CommandCheck",
    "FileCheck",
    "Golden",
    "McpCheck",
    "NothingAgent",
    "PythonCheck",
    "Solution",
    "SolutionAgent",
    "SolutionCall",
    "SqliteCheck",
    "UnchangedCheck",
]
