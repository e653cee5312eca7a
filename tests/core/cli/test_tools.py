"""`keval tools`: what servers offer, read from the servers themselves."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from keval_report.contexts import estimated_tokens
from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

SERVER = f"""\
import sys
sys.path.append({ENVIRONMENT["PYTHONPATH"]!r})
from tests.stdio_server import answer_each
search = {{
    "name": "search",
    "title": "Search",
    "description": "Finds pages.\\nUse it first.",
    "inputSchema": {{
        "type": "object",
        "properties": {{
            "query": {{"type": "string", "description": "Words to look for."}},
            "kinds": {{"type": "array", "items": {{"enum": ["page", "note"]}}}},
        }},
        "required": ["query"],
    }},
    "outputSchema": {{"type": "object"}},
    "annotations": {{"readOnlyHint": True}},
    "x-vendor": {{"kept": 1}},
}}
drop = {{"name": "drop", "inputSchema": {{"type": "object"}}, "annotations": {{"destructiveHint": True}}}}

def answer(method, params):
    if method != "tools/list":
        raise LookupError(method)
    return {{"tools": [search, drop]}}

answer_each("pages", answer)
"""
CONFIG = f"""
contexts:
  pages: {{type: stdio, command: {sys.executable}, args: [server.py]}}
  notes: {{text: "Be brief."}}
  down: {{type: notes, down: true}}
  terse:
    from: pages
    describe: {{search: {{description: Finds., parameters: {{query: Words.}}}}}}
    rename: {{search: find}}
    without: [drop]
    results: scrambled
conditions: {{baseline: {{contexts: [pages]}}}}
"""


def test_tools_are_shown_with_parameters_hints_and_tokens(project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER)

    outcome = project.keval("tools", "eval.yaml", "--context", "pages", "--context", "notes")

    lines = [line for line in outcome.stdout.splitlines() if "tokens" not in line]
    assert 0 == outcome.code
    assert [
        "pages  stdio",
        "    one for each trial (not read-only: drop)",
        "      Finds pages.",
        "      Use it first.",
        "        query (string): Words to look for.",
        "        kinds (array of 'page' | 'note', optional)",
        "      no description",
        "",
        "notes  notes  no MCP server",
        "",
        "Tokens are estimates, of name, description and parameters as JSON: models differ in how they count.",
    ] == lines
    assert "  server pages: 2 tools, about " in outcome.stdout
    assert "    search: about " in outcome.stdout
    assert " tokens, read-only, has an output schema\n" in outcome.stdout
    assert " tokens, may destroy\n" in outcome.stdout


def test_json_has_definitions_as_the_server_wrote_them(project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER)

    outcome = project.keval("tools", "eval.yaml", "--context", "pages", "--json")

    (server,) = outcome.data["contexts"][0]["servers"]
    search, drop = server["tools"]
    assert ("Search", {"kept": 1}, {"type": "object"}) == (search["title"], search["x-vendor"], search["outputSchema"])
    assert ["query"] == search["inputSchema"]["required"]
    assert 0 < drop["estimated_tokens"] < search["estimated_tokens"] < server["estimated_tokens"]
    assert 64 == len(server["sha256"])


def test_what_the_config_changes_is_shown_beside_what_the_server_says(project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER)

    told = project.keval("tools", "eval.yaml", "--context", "terse")
    data = project.keval("tools", "eval.yaml", "--context", "terse", "--json").data["contexts"][0]

    lines = told.stdout.splitlines()
    at = lines.index("    changed by interventions:")
    assert "terse  stdio  from pages" == lines[0]
    assert [
        "      results are scrambled",
        "      search is named find",
        "      find has a different description (about 8 → 2 tokens)",
        "        - Finds pages.",
        "        - Use it first.",
        "        + Finds.",
        "      find has a different definition",
        '        - inputSchema.properties.query.description: "Words to look for."',
        '        + inputSchema.properties.query.description: "Words."',
        "      drop is removed",
    ] == lines[at + 1 : at + 11]
    (server,) = data["servers"]
    assert (["find"], ["search", "drop"]) == (
        [tool["name"] for tool in server["tools"]],
        [tool["name"] for tool in server["original"]["tools"]],
    )
    assert ("pages", ["renamed", "description", "definition", "left out"]) == (
        data["from"],
        [change["kind"] for change in server["changes"]],
    )
    assert server["sha256"] != server["original"]["sha256"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "eval.yaml:4:3: server 'down' did not come up: no such file"),
        (["--context", "page"], "--context page: no context named 'page'; did you mean 'pages'?"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], problem: str, project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER)

    outcome = project.keval("tools", "eval.yaml", *arguments)

    assert (2, True) == (outcome.code, problem in outcome.stderr)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # As the encoding o200k counts them.
        ("Get the weather forecast for a city by day: lowest and highest temperature in °C and conditions.", 20),
        ('{"name":"search","description":"Finds pages.","parameters":{"type":"object","required":["query"]}}', 22),
        ("", 0),
    ],
)
def test_tokens_are_estimated_to_an_eighth(text: str, tokens: int) -> None:
    assert tokens == pytest.approx(estimated_tokens(text), rel=1 / 8)


def test_tokens_of_other_scripts_are_counted_too() -> None:
    counts: list[Any] = [estimated_tokens(text) for text in ("北京的天气预报", "Säätiedotus", "12345678", "\n\n  ")]

    assert [4, 6, 3, 2] == counts
