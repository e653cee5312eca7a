"""What gives a golden answer away to an agent, or an arm to a judge."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from keval import Run, open_run
from keval_instrument.check_folder import Material
from keval_instrument.findings import Defect, Examined
from keval_instrument.leaks import examine
from tests.conftest import Project

CONFIG = """
name: leaky
dataset: {{path: q.jsonl}}
agents: {{scribe: {{type: scripted}}}}
conditions: {{baseline: {{}}, with_docs: {{system_prompt: "{prompt}"}}}}
judges: {{it: {{type: planted/judge}}}}
rubrics: [factual_adherence]
"""

GOLDEN = "Tarn listens on port 7443."


def asked(
    project: Project,
    *samples: Mapping[str, object],
    prompt: str = "Be brief.",
    config: str = CONFIG,
    flags: tuple[str, ...] = (),
) -> Run:
    project.write(leaky_yaml=config.format(prompt=prompt))
    lines = [
        {"id": f"q{place}", "question": "Which port?", "answer": GOLDEN, **each} for place, each in enumerate(samples)
    ]
    project.write(q_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    done = project.keval("run", "leaky.yaml", "-q", *flags, env={"OPENAI_API_KEY": "a-key"})
    assert 0 == done.code, done.stderr
    return open_run(project.run_directory())


def counts(found: Examined, name: str = "leaks") -> dict[str, float | None]:
    return {each.of.get("of", ""): each.value for each in found.figures if each.name == name}


def test_an_evaluation_that_gives_nothing_away_has_no_leak(project: Project) -> None:
    found = examine(Material(asked=asked(project, {"says": "It is 7443."}, {"says": "I do not know."})))

    assert {"golden answer": 0, "rubric": 0, "condition": 0, "agent": 0, "model": 0} == counts(found)
    assert () == found.defects


def test_a_golden_answer_is_found_where_an_agent_sees_it_and_told_by_its_place(project: Project) -> None:
    told = "As **tarn** says: tarn listens, on port 7443!"
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": told}]
    samples: tuple[Mapping[str, object], ...] = (
        {"question": f"Is it right that {GOLDEN.lower()}"},
        {"history": history},
        {"metadata": {"calls": [{"name": "look", "result": f"# Manual\n{told}"}]}},
        {},
    )
    found = examine(Material(asked=asked(project, *samples)))

    assert 2 == counts(found)["golden answer"]
    assert {"": 1} == counts(found, "in_results")
    remedy = "take it out, or ask another question"
    assert (
        Defect(f"the golden answer stands in the question in 1 sample; {remedy}", "q0"),
        Defect(f"the golden answer stands in the history in 1 sample; {remedy}", "q1"),
    ) == found.defects


def test_a_system_prompt_that_has_the_answer_or_the_label_leaks(project: Project) -> None:
    found = examine(Material(asked=asked(project, {}, {"answer": "yes"}, prompt=f"You are with_docs. {GOLDEN}")))

    assert (1, 2) == (counts(found)["golden answer"], counts(found)["condition"])
    assert {"golden answer": 1, "name": 1} == counts(found, "not_searched")
    assert ["q0", "q0", "q0"] == [each.sample for each in found.defects]


def test_an_answer_that_names_its_arm_tells_the_judge(project: Project) -> None:
    told = {"metadata": {"tells_context": True}}
    found = examine(Material(asked=asked(project, told, {})))

    assert 1 == counts(found)["condition"]
    assert "the condition 'with_docs' stands in the answer in 1 sample" in found.defects[-1].problem


def test_a_run_without_golden_answers_gives_a_reason_and_no_number(project: Project) -> None:
    run = asked(project, {"answer": None})
    (found,) = (
        each
        for each in examine(Material(asked=run)).figures
        if each.of.get("of") == "golden answer" and each.name == "leaks"
    )

    assert (None, "there is no golden answer to search for") == (found.value, found.reason)


@pytest.mark.parametrize(
    ("said", "leaks"), [("As GPT-5, I say 7443.", 1), ("I'm gpt4, and it is 7443.", 1), ("So be it.", 0)]
)
def test_an_answer_that_names_its_model_leaks(project: Project, said: str, leaks: int) -> None:
    config = CONFIG.replace("{{type: scripted}}", "{{type: double/paid, model: openai/gpt-4o-mini}}")
    found = examine(Material(asked=asked(project, {"metadata": {"says": said}}, config=config)))

    assert leaks == counts(found)["model"]


@pytest.mark.usefixtures("simulated_here")
def test_a_label_in_the_recorded_request_of_a_judge_leaks(project: Project) -> None:
    # What stands between the judge and its model adds the label of one arm.
    config = CONFIG.replace("it: {{type: planted/judge}}", "it: {{model: simulated/judge}}")
    config += "middleware: [{{double/rewriting: {{old: Zq, new: 'with_docs '}}}}]"
    found = examine(Material(asked=asked(project, {}, prompt="Zq", config=config, flags=("--record",))))

    assert 1 == counts(found)["condition"]
    (defect,) = found.defects
    assert defect.problem.startswith("the condition 'with_docs' stands in the judge's request in 1 sample; ")
