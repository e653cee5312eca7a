"""What the wide tables and the page tell of repetitions, and of quality beside cost."""

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


def test_repetitions_and_worth_are_told_where_everything_is_told(project: Project) -> None:
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

    wide = project.keval("run", "eval.yaml", "--wide").stdout
    page = project.root / "page.html"
    project.keval("report", "latest", "--html", str(page))

    cells = [
        " ".join(line.replace("one baseline", "").replace("one with_docs", "").split()) for line in wide.splitlines()
    ]
    assert ["sd 0.71 flip 100 %", "sd 0.00 flip 0 %"] == [cell for cell in cells if cell.startswith("sd 0")]
    assert ["1.00/$ ◆", "0.50/$ ◆"] == [cell for cell in cells if cell.endswith("◆")]
    assert "1.00 per $, 1.00 per 1,000 tokens ◆" in page.read_text(encoding="utf-8")
