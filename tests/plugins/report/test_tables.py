"""What the page tells of quality beside cost."""

from __future__ import annotations

import json

from tests.conftest import Project

CONFIG = """
dataset: {path: q.jsonl}
agents: {one: {type: recorded, path: one.jsonl, model: acme/large}}
conditions: {baseline: {}, with_docs: {}}
prices: {acme/large: {input: 1000, output: 1000}}
metrics: [number/rating]
"""


def test_worth_is_told_on_the_page(project: Project) -> None:
    # The baseline passes one of two times for 500 tokens, with_docs always for 2,000: neither is better in both.
    told = [
        {
            "id": name,
            "condition": condition,
            "response": response,
            "usage": {"input_tokens": tokens, "output_tokens": 0},
        }
        for name in ("a", "b", "c")
        for condition, tokens, answers in (("baseline", 500, "01"), ("with_docs", 2000, "11"))
        for response in answers
    ]
    project.write(
        eval_yaml=CONFIG,
        one_jsonl="".join(json.dumps(line) + "\n" for line in told),
        q_jsonl="".join(json.dumps({"id": name, "question": f"{name}?"}) + "\n" for name in ("a", "b", "c")),
    )

    project.keval("run", "eval.yaml")
    page = project.root / "page.html"
    project.keval("report", "latest", "--html", str(page))

    assert "1.00 per $, 1.00 per 1,000 tokens ◆" in page.read_text(encoding="utf-8")
