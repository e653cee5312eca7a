"""Checks of what a trial left, each a class whose fields are its options; and the solutions of samples."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_checks.command": "CommandCheck",
        "keval_checks.file": "FileCheck Golden",
        "keval_checks.mcp": "McpCheck",
        "keval_checks.python": "PythonCheck",
        "keval_checks.solution": "NothingAgent Solution SolutionAgent SolutionCall",
        "keval_checks.sqlite": "SqliteCheck",
        "keval_checks.unchanged": "UnchangedCheck",
    },
)
