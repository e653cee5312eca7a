"""`keval plugins` lists what is installed, and describes one plugin from its class."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from keval_start.schema_command import evaluation_schema
from tests.conftest import Project

IN_CONFIGS = {"agent", "context", "workspace", "check", "metric", "judge", "rubric", "model provider", "middleware"}
IN_CONFIGS |= {"dataset format", "executor", "hook plugin"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return evaluation_schema()


def test_plugins_are_listed_by_kind_with_a_line_for_each(project: Project) -> None:
    rows = project.keval("plugins", "--json").data

    listed = {(row["kind"], row["name"]): row["distribution"] for row in rows}
    assert "keval-doubles" == listed["agent", "scripted"]
    assert "keval-providers" == listed["model provider", "openai"]
    assert "keval-core" == listed["executor", "local"]
    assert ("agent", "testing/echo") not in listed  # it is for tests of plugins
    assert "keval-doubles" == listed["responder", "double/scripted"]
    lines = project.keval("plugins").stdout.splitlines()
    kinds = [line for line in lines if line and not line.startswith(" ")]
    assert kinds.index("agents") < kinds.index("metrics") < kinds.index("proxies")
    metric = next(line for line in lines if line.startswith("  basic/contains  "))
    assert "Scores 1 if the answer contains all of `all_of`" in metric
    # Those of which the same is said stand together, and one that does not import says so.
    assert any(line.startswith("  jsonl, ndjson") for line in lines)
    assert "the agent 'absent' of keval-doubles 1.0 does not import" in " ".join(
        project.keval("plugins").stdout.split()
    )


@pytest.mark.parametrize(
    ("name", "names"), [("metrics", "double/length"), ("basic", "basic/contains"), ("rubric", "grounded")]
)
def test_a_kind_or_a_vendor_lists_its_own(project: Project, name: str, names: str) -> None:
    rows = project.keval("plugins", name, "--json").data
    told = project.keval("plugins", name).stdout

    assert f"  {names}" in told
    assert 1 == len({row["kind"] for row in rows})
    assert "executors" not in told


def test_a_plugin_is_described_with_its_options_and_an_example(project: Project) -> None:
    told = project.keval("plugins", "basic/contains").stdout
    server = project.keval("plugins", "stdio").stdout
    both = project.keval("plugins", "csv").stdout

    assert told.startswith("basic/contains: metric of keval-metrics-basic 0.1.0\n\n  Scores 1 if the answer contains ")
    assert "  all_of              none    list of text\n" in told
    assert "  whole_words         true    true or false\n" in told
    assert told.endswith("example\n  metrics:\n  - basic/contains:\n      all_of:\n      - TEXT\n")
    assert "  startup_timeout      30.0        number > 0\n" in server
    assert "  command              required    text\n" in server
    assert "  isolation            auto        auto | condition | trial\n" in server
    assert server.endswith("  contexts:\n    stdio:\n      command: COMMAND\n")
    kinds = [line.partition(" of ")[0] for line in both.splitlines() if line.startswith("csv: ")]
    assert ["csv: dataset format", "csv: exporter"] == kinds
    assert "  keval export latest --format csv\n" in both


def test_each_example_is_a_config(project: Project, schema: dict[str, Any]) -> None:
    rows = [row for row in project.keval("plugins", "--json").data if row["kind"] in IN_CONFIGS]
    shipped = [row for row in rows if row["distribution"] != "keval-doubles"]

    assert IN_CONFIGS == {row["kind"] for row in shipped}
    checked = jsonschema.Draft202012Validator(schema)
    examples: dict[str, list[Any]] = {}
    for row in shipped:
        for section, example in yaml.safe_load(row["example"]).items():
            examples.setdefault(section, []).append(example)
    for section, found in examples.items():
        joined = [item for each in found for item in each] if isinstance(found[0], list) else None
        for each in [joined] if joined else found:
            problems = checked.iter_errors({"dataset": {"path": "questions.jsonl"}, section: each})
            assert [] == [error.message for error in problems]


def test_a_name_that_is_not_there_is_told_with_the_nearest(project: Project) -> None:
    near = project.keval("plugins", "basic/contain")
    none = project.keval("plugins", "qqqqq")

    assert (2, "error: no plugin named 'basic/contain' is installed; did you mean 'basic/contains'?\n") == (
        near.code,
        near.stderr,
    )
    assert "error: no plugin named 'qqqqq' is installed; `keval plugins` lists all\n" == none.stderr
