"""`keval check` names each planted judge by what is wrong with it, and a sound one by nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keval_testing import Project

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{scribe: {{type: scripted}}}}
conditions: {{baseline: {{}}, with_docs: {{}}}}
judges: {{it: {judge}}}
rubrics: {rubrics}
"""
GOLDEN = "The server Tarn listens on port {}. Set `listen_port` in its file, and do not reload it before that is done."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "named_by"),
    [
        ("{type: planted/judge}", {}),
        ("{type: planted/judge, lenient: 2}", {"golden": "no scorer notices 'number-1'"}),
        ("{type: planted/judge, always: 5}", {"golden": "it gives every answer 5"}),
        ("{type: planted/judge, long: 1}", {"bias": "it: +1.00 points for the same answers, restyled (twice as long"}),
        ("{type: planted/judge, likes: Certainly}", {"bias": "with the label, the opening and the closing of another"}),
        (
            "{type: planted/judge, chance: 0.1}",
            {"golden": "by it", "bias": "it: the same answer gets another level in"},
        ),
        (
            "{type: planted/first}",
            {"golden": "it gives every answer 0", "bias": "the answer that stands first is preferr"},
        ),
    ],
)
def test_a_planted_judge_is_named_by_what_is_wrong_with_it(
    tmp_path: Path, judge: str, named_by: dict[str, str]
) -> None:
    project = Project.new(tmp_path)
    rubric = "preference" if "first" in judge else "factual_adherence"
    project.write("eval.yaml", CONFIG.format(judge=judge, rubrics=f"[{rubric}]"))
    questions = [
        {
            "id": f"q{number}",
            "question": f"How does one change port {number} of Tarn?",
            "answer": GOLDEN.format(7000 + number),
            "metadata": {"says": GOLDEN.format(8000 + number)},
        }
        for number in range(60)
    ]
    project.write("questions.jsonl", "".join(json.dumps(each) + "\n" for each in questions))
    options = ["--only=golden", "--only=bias", "--samples=60", "--repetitions=1", "--json"]
    examined = project.keval("check", "eval.yaml", *options).data["examined"]

    problems = {each["examination"]: [defect["problem"] for defect in each["defects"]] for each in examined}
    assert named_by.keys() == {examination for examination, found in problems.items() if found}
    assert all(any(words in told for told in problems[examination]) for examination, words in named_by.items())
