"""A judge of the same vendor as an agent is told: by validate, and before a report's figures."""

from __future__ import annotations

import json
import re

import pytest

from keval_analysis.vendors import vendors_of
from tests.conftest import Project


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("openai/gpt-4o-mini", "azure/gpt-4.1", True),
        ("anthropic/claude-sonnet-4", "bedrock/us.anthropic.claude-3-5-haiku", True),
        ("openrouter/google/gemini-2.5-pro", "gemini/gemini-2.0-flash", True),
        ("openrouter/meta-llama/llama-3-70b", "groq/llama-3.1-8b", True),
        ("litellm/acme/one", "openrouter/acme/two", True),
        ("groq/llama-3.1-8b", "groq/qwen-2.5", False),
        ("openai/gpt-4o", "anthropic/claude-sonnet-4", False),
        ("simulated/weather", "simulated/judge", False),
        ("simulated/judge", "simulated/judge", False),
    ],
)
def test_models_are_of_one_vendor_whoever_serves_them(one: str, other: str, same: bool) -> None:
    assert same == bool({*vendors_of(one)} & {*vendors_of(other)})


CONFIG = """
dataset: {path: questions.jsonl}
agents: {old: {type: recorded, path: old.jsonl, model: openai/gpt-4o}, scripted: {}}
judges: {mini: {model: openai/gpt-4o-mini}, other: {model: anthropic/claude-sonnet-4}}
rubrics: [helpfulness_and_clarity]
"""


def test_validate_and_the_report_name_the_judge(project: Project) -> None:
    answer = json.dumps({"id": "a", "response": "5, so."}) + "\n"
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "Why?"}\n', old_jsonl=answer)
    checked = project.keval("validate", "eval.yaml")
    project.write(
        eval_yaml=re.sub("judges: .*", "judges: {mini: {type: double/digit}}", CONFIG).replace(", scripted: {}", "")
    )
    assert 0 == project.run("eval.yaml", "-q").code
    path = project.run_directory() / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["judges"]["mini"]["model"] = "openai/gpt-4o-mini"
    path.write_text(json.dumps(manifest), "utf-8")
    report = project.keval("report", "latest").stdout
    manifest["judges"]["mini"]["simulated"] = True
    path.write_text(json.dumps(manifest), "utf-8")

    assert 0 == checked.code
    told = "is of the same vendor as old (openai) and may favour"
    notice = f"the judge 'mini' {told} its answers; take one of another vendor"
    assert 1 == " ".join(checked.stderr.split()).count(notice)
    assert "'other'" not in checked.stderr
    assert f"the judge mini {told} it" in " ".join(report.split())
    assert "vendor" not in project.keval("report", "latest").stdout
