"""Checks of what a trial left, each a class whose fields are its options; and the solutions of samples."""

from keval_checks.command import CommandCheck as CommandCheck
from keval_checks.file import FileCheck as FileCheck, Golden as Golden
from keval_checks.mcp import McpCheck as McpCheck
from keval_checks.python import PythonCheck as PythonCheck
from keval_checks.solution import (
    NothingAgent as NothingAgent,
    Solution as Solution,
    SolutionAgent as SolutionAgent,
    SolutionCall as SolutionCall,
)
from keval_checks.sqlite import SqliteCheck as SqliteCheck
from keval_checks.unchanged import UnchangedCheck as UnchangedCheck
