"""Interventions that do not fit what a server offers fail the run before the first trial, at their place."""

from __future__ import annotations

import json
import sys

import pytest

from keval.errors import FieldError
from keval.records.servers import ToolListing
from keval_mcp.derived_contexts import _unmatched_by_all
from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{openai: {{model: simulated/m}}}}
contexts:
  docs: {server}
  less: {{from: docs, {changes}}}
conditions:
  with_less: {{contexts: [less]}}
metrics: [basic/contains]
"""


def problem(project: Project, changes: str, **options: object) -> str:
    """Run a config with a derived context, and return what keval says of it."""
    args = ["-m", "tests.end_to_end.servers.docs", "calls.jsonl"]
    server = {"type": "stdio", "command": sys.executable, "args": args, "env": ENVIRONMENT, **options}
    project.write(
        eval_yaml=CONFIG.format(server=json.dumps(server), changes=changes),
        questions_jsonl='{"id": "a", "question": "How?"}\n',
    )
    outcome = project.run("eval.yaml")
    assert outcome.code == 2
    assert not (project.root / "results").exists()
    return outcome.stderr.replace(f"{project.root}/", "")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            (
                "tools: [x*, '*'], without: [open_pag], rename: {serch: find},"
                " describe: {search: {parameters: {words: Words.}}, x: X.}"
            ),
            [
                "30: the server has no tool 'x*'; tools: search, open_page",
                "50: the server has no tool 'open_pag'; did you mean 'open_page'?",
                "70: the server has no tool 'serch'; did you mean 'search'?",
                "134: the server has no tool 'x'; tools: search, open_page",
                "117: the tool 'search' has no parameter 'words'; it has query",
            ],
        ),
        (
            "rename: {search: open_page}",
            ["39: another tool, 'open_page', has the name 'open_page'; rename 'search' otherwise"],
        ),
        ('without: ["*"]', ["3: the context 'less' would have no tool left; keep at least one"]),
    ],
    ids=["names that no tool has", "one name for two", "nothing left"],
)
@pytest.mark.usefixtures("simulated_here")
def test_what_does_not_fit_the_server_is_told_at_its_place(project: Project, changes: str, expected: list[str]) -> None:
    told = problem(project, changes)

    assert sorted(f"eval.yaml:5:{each}" for each in expected) == sorted(
        line.removeprefix("error:").strip() for line in told.splitlines()
    )


def test_of_a_name_that_no_server_has_the_error_with_a_hint_is_told() -> None:
    told = ["no tool 'did you mean'; tools: search", "no tool 'did you mean'; did you mean 'did_you_mean'?"]
    listings = [ToolListing(f"server {each}", (), unmatched=(FieldError((0, "tools", 0), each),)) for each in told]

    assert [told[1]] == [error.message for error in _unmatched_by_all(listings)]
