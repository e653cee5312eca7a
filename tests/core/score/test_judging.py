"""Judging: by which rubrics, how often, what it took, and going on where it stopped."""

from __future__ import annotations

import json

import pytest

from keval.plugin import TranscriptBuilder, TrialError
from keval.seams.judgement_builder import JudgementBuilder
from tests.conftest import Project, scale_of

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
judges: {reader: {}}
"""


def dataset(*questions: object) -> str:
    return "".join(json.dumps({"answer": "golden", **question}) + "\n" for question in questions)  # type: ignore[dict-item]


ABC = dataset(*({"id": name, "question": name, "level": level} for name, level in zip("abc", (1, 3, 5), strict=True)))


def test_without_rubrics_judges_grade_by_those_of_k_eval(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=ABC)

    outcome = project.keval("run", "eval.yaml", "--json")

    means = {arm["metric"]: (arm["mean"], arm["judge"]) for arm in outcome.data["arms"]}
    names = ("factual_adherence", "completeness", "helpfulness_and_clarity")
    assert (0, dict.fromkeys(names, (3.0, "reader"))) == (outcome.code, means)
    rubrics = {rubric["name"]: rubric for rubric in project.read("manifest.json")["rubrics"].values()}
    assert [*"12345"] == [*rubrics["completeness"]["levels"]]


def test_a_rubric_can_be_written_out_and_stand_in_a_file(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG
        + """
rubrics:
  - completeness
  - rubrics/tone.yaml
  - swift: {instructions: Is it swift?, levels: {1: slow, 5: swift}}
""",
        questions_jsonl=dataset({"id": "a", "question": "a", "level": 5}),
    )
    (project.root / "rubrics").mkdir()
    (project.root / "rubrics" / "tone.yaml").write_text(
        "instructions: Is it polite?\nlevels: {0: rude, 5: polite}\n", encoding="utf-8"
    )

    outcome = project.keval("run", "eval.yaml", "--json")

    assert {"completeness": 5.0, "tone": 5.0, "swift": 5.0} == {a["metric"]: a["mean"] for a in outcome.data["arms"]}
    assert (0, 5) == tuple(scale_of(outcome, "tone")[end] for end in ("low", "high"))


def test_a_rubric_in_a_file_says_the_same_in_every_environment(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG + "rubrics: [tone.yaml]\n",
        tone_yaml="instructions: Does it mention ${TONE_TOKEN}?\nlevels: {1: no one, 5: it does}\n",
        questions_jsonl=dataset({"id": "a", "question": "a", "level": 5}),
    )

    outcome = project.keval("run", "eval.yaml", env={"TONE_TOKEN": "canary-7"})

    assert 0 == outcome.code
    (rubric,) = project.read("manifest.json")["rubrics"].values()
    assert "Does it mention ${TONE_TOKEN}?" == rubric["instructions"]


def test_what_is_wrong_with_a_rubric_is_told_at_its_place(project: Project) -> None:
    rubrics = "rubrics: [tone.yaml, absent.yaml, complete, {own: {instructions: x, levels: {1: bad, 2: ' '}}}]\n"
    project.write(
        eval_yaml=CONFIG + rubrics,
        questions_jsonl=ABC,
        tone_yaml="instruction: Is it polite?\nlevels: {1: rude}\n",
    )

    outcome = project.keval("validate", "eval.yaml")

    problems = outcome.stderr.splitlines()
    assert 2 == outcome.code
    assert any("absent.yaml: cannot be read" in problem for problem in problems)
    assert any("no rubric named 'complete' is installed" in problem for problem in problems)
    assert any("every level needs a description; 2 has none" in problem for problem in problems)
    assert any("tone.yaml:1:1: unknown key 'instruction'; did you mean 'instructions'?" in p for p in problems)


def test_a_level_that_the_rubric_does_not_have_is_no_score(project: Project) -> None:
    rubric = "rubrics: [{swift: {instructions: Is it swift?, levels: {1: slow, 5: swift}}}]\n"
    project.write(eval_yaml=CONFIG + rubric, questions_jsonl=dataset({"id": "a", "question": "a", "level": 3}))

    outcome = project.keval("run", "eval.yaml")

    (line,) = project.lines("scores.jsonl")
    assert (3, None, "the value 3 is not one of the levels 1, 5") == (outcome.code, line["value"], line["reason"])


def test_a_rubric_that_needs_the_golden_answer_is_unscored_without_one(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "a", "level": 4}\n')

    outcome = project.keval("run", "eval.yaml")

    values = {line["metric"]: (line["value"], line["failure"]) for line in project.lines("scores.jsonl")}
    assert {
        "factual_adherence": (None, None),
        "completeness": (None, None),
        "helpfulness_and_clarity": (4.0, None),
    } == values
    assert 0 == outcome.code


def test_nobody_was_asked_where_every_rubric_lacks_its_golden_answer(project: Project) -> None:
    config = CONFIG + "rubrics: [completeness]\n"
    project.write(eval_yaml=config, questions_jsonl='{"id": "a", "question": "a", "level": 4}\n')

    outcome = project.keval("run", "eval.yaml", "--json")

    assert [0] == [line["judgement"]["model_calls"] for line in project.lines("scores.jsonl")]
    assert [0] == [took["judgements"] for took in outcome.data["judging"]]


def test_what_a_judgement_took_stands_with_its_scores(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG, questions_jsonl=dataset({"id": "a", "question": "a", "level": 4, "claims": ["it is blue"]})
    )

    outcome = project.keval("run", "eval.yaml", "--json")
    shown = project.keval("show", "latest", "--trial", "scripted/baseline/a/1")

    judgements = [line["judgement"] for line in project.lines("scores.jsonl")]
    (first, *others) = judgements
    assert ([first, first], ["it is blue"], 1) == (others, first["unverified_claims"], first["model_calls"])
    (took,) = outcome.data["judging"]
    assert (1, 1, 10) == (took["judgements"], took["flagged"], took["usage"]["input_tokens"])
    assert 1 == shown.stdout.count("unverified claim, according to reader: it is blue")


def test_a_reply_that_is_no_judgement_is_unscored_and_kept(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset({"id": "a", "question": "a", "level": None}))

    outcome = project.keval("run", "eval.yaml", "--json")

    line = project.lines("scores.jsonl")[0]
    assert (3, None, "bad_reply") == (outcome.code, line["value"], line["failure"]["kind"])
    assert ["five out of five!"] == line["judgement"]["rejected"]
    assert [(None, 1)] * 3 == [(arm["mean"], arm["failed"]) for arm in outcome.data["arms"]]


def test_a_judge_can_be_asked_more_than_once_to_see_its_own_spread(project: Project) -> None:
    questions = dataset(
        {"id": "a", "question": "a", "level": [1, 2, 3]}, {"id": "b", "question": "b", "level": [4, 4, 4]}
    )
    project.write(
        eval_yaml=CONFIG + "execution: {judge_repetitions: 3}\nrubrics: [completeness]\n", questions_jsonl=questions
    )

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,), (rubric,) = outcome.data["arms"], outcome.data["agreement"]
    assert (2, 3.0, 6, 0) == (arm["n"], arm["mean"], arm["scored"], arm["missing"])
    # Within-answer variances 1 and 0, each with two degrees of freedom.
    assert [{"judge": "reader", "n": 2, "sd": 0.5**0.5, "reason": None}] == rubric["spread"]
    lines = project.lines("scores.jsonl")
    assert [1, 2, 3] == [line["judgement"]["repetition"] for line in lines if line["sample"] == "a"]


def test_every_repetition_of_a_judge_has_a_seed_of_its_own_and_no_arm_has(project: Project) -> None:
    conditions = "conditions: {one: {}, two: {}}\nrubrics: [completeness]\n"
    config = CONFIG.replace("reader: {}", "reader: {journal: journal.txt}") + conditions
    project.write(eval_yaml=config, questions_jsonl=ABC)

    project.keval("run", "eval.yaml", "--judge-repetitions", "2")

    seeds: dict[tuple[str, str], set[str]] = {}
    for line in (project.root / "journal.txt").read_text(encoding="utf-8").splitlines():
        sample, repetition, _, seed, _ = line.split()
        seeds.setdefault((sample, repetition), set()).add(seed)
    assert (6, 6) == (len(seeds), len(set.union(*seeds.values())))


def test_a_panel_is_scored_by_each_judge_and_its_agreement_told(project: Project) -> None:
    judges = "judges: {first: {type: reader}, second: {type: reader, key: other}}\nrubrics: [completeness]\n"
    levels = [(1, 1), (2, 3), (3, 3), (4, 5), (5, 5)]
    questions = dataset(*({"id": str(i), "question": "q", "level": a, "other": b} for i, (a, b) in enumerate(levels)))
    project.write(eval_yaml=CONFIG.replace("judges: {reader: {}}\n", judges), questions_jsonl=questions)

    outcome = project.keval("run", "eval.yaml", "--json")
    table = project.keval("report", "latest", "--explain")

    means = {arm["judge"]: arm["mean"] for arm in outcome.data["arms"]}
    (rubric,) = outcome.data["agreement"]
    (pair,) = rubric["pairs"]
    assert {"first": 3.0, "second": 3.4} == means
    # The mean squared difference is 0.4 as paired, and 4.4 over all 25 pairings (Cohen 1968).
    assert (["first", "second"], 5, round(1 - 0.4 / 4.4, 6)) == (pair["judges"], pair["n"], round(pair["kappa"], 6))
    assert (5, 0.908) == (rubric["n"], round(rubric["alpha"], 3))
    said = " ".join(table.stdout.split())
    assert "completeness 0.91 (n=5), first × second 0.91 (n=5)" in said


def test_agreement_on_one_level_throughout_is_undefined_and_says_so(project: Project) -> None:
    judges = "judges: {first: {type: reader}, second: {type: reader}}\nrubrics: [completeness]\n"
    questions = dataset(*({"id": str(i), "question": "q", "level": 4} for i in range(3)))
    project.write(eval_yaml=CONFIG.replace("judges: {reader: {}}\n", judges), questions_jsonl=questions)

    outcome = project.keval("run", "eval.yaml", "--json")

    (rubric,) = outcome.data["agreement"]
    assert (None, "one level throughout") == (rubric["alpha"], rubric["reason"])


def test_judges_that_score_again_agree_with_those_that_did_not(project: Project) -> None:
    project.write(eval_yaml=CONFIG + "rubrics: [completeness]\n", questions_jsonl=ABC)
    project.keval("run", "eval.yaml")

    outcome = project.keval("score", "latest", "--judge", "strict", "--json")

    (rubric,) = outcome.data["agreement"]
    assert (["reader", "strict"], 3) == (rubric["judges"], rubric["n"])


def test_a_judge_without_a_type_is_the_one_that_speaks_to_its_model(project: Project) -> None:
    models = {
        "openai/gpt-4o": "openai",
        "anthropic/claude-sonnet-5-5": "anthropic",
        "gemini/gemini-3-pro": "openai",
        "claude-opus-5-5": "anthropic",
        "gpt-4o": "openai",
    }
    plans = []
    for model in models:
        project.write(
            eval_yaml=CONFIG.replace("judges: {reader: {}}", f"judge: {{model: {model}}}"), questions_jsonl=ABC
        )
        plans.append(project.keval("run", "eval.yaml", "--dry-run", "--json").data["judges"])

    assert [*models.values()] == [judge["type"] for plan in plans for judge in plan.values()]
    named = [judge["model"] for plan in plans for judge in plan.values()]
    assert ["gemini/gemini-3-pro", "anthropic/claude-opus-5-5", "openai/gpt-4o"] == named[2:]


def test_a_judge_that_is_named_stays_when_its_model_changes(project: Project) -> None:
    config = CONFIG.replace("{reader: {}}", "{one: {type: openai, model: openai/a}}")
    project.write(eval_yaml=config, questions_jsonl=ABC)

    plan = project.keval("run", "eval.yaml", "--dry-run", "--json", "--model", "judges.one=anthropic/claude-x")

    assert ["openai"] == [judge["type"] for judge in plan.data["judges"].values()]


def test_judges_that_took_alike_are_counted_each(project: Project) -> None:
    config = CONFIG.replace("{reader: {}}", "{one: {type: reader}, two: {type: reader}}")
    project.write(eval_yaml=config, questions_jsonl=ABC)

    outcome = project.keval("run", "eval.yaml", "--json")

    took = [(entry["judge"], entry["judgements"], entry["model_calls"]) for entry in outcome.data["judging"]]
    assert [("one", 3, 3), ("two", 3, 3)] == took


def test_a_label_of_an_agent_and_a_judge_alike_needs_its_section(project: Project) -> None:
    config = CONFIG.replace("agents: {scripted: {}}", "agents: {one: {type: modelled, model: openai/a}}")
    config = config.replace("judges: {reader: {}}", "judges: {one: {type: openai, model: openai/b}}")
    project.write(eval_yaml=config, questions_jsonl=ABC)

    told = project.keval("run", "eval.yaml", "--dry-run", "--model", "one=openai/c")
    plan = project.keval("run", "eval.yaml", "--dry-run", "--json", "--model", "judges.one=openai/c").data

    problem = "--model one=openai/c: an agent and a judge are labelled 'one'; write agents.one=… or judges.one=…"
    assert (2, f"error: {problem}\n") == (told.code, told.stderr)
    assert ("openai/a", "openai/c") == (plan["agents"]["one"]["model"], plan["judges"]["one"]["model"])


def test_a_model_without_a_label_is_for_all_and_one_with_a_label_counts_more(project: Project) -> None:
    agents = {name: f"{name}: {{type: modelled, model: openai/{name}}}" for name in ("one", "two")}
    said = "said: {type: recorded, path: answers.jsonl, model: openai/said}"
    config = CONFIG.replace("scripted: {}", f"scripted: {{}}, {', '.join(agents.values())}, {said}")
    config = config.replace("judges: {reader: {}}", "judge: {model: openai/c}")
    answers = "".join(f'{{"id": "{name}", "response": "x"}}\n' for name in "abc")
    project.write(eval_yaml=config, questions_jsonl=ABC, answers_jsonl=answers)

    flags = ("--model", "two=openai/d", "--model", "anthropic/e")
    plan = project.keval("run", "eval.yaml", "--dry-run", "--json", *flags).data

    models = {label: agent["model"] for label, agent in plan["agents"].items()}
    assert {"scripted": None, "one": "anthropic/e", "two": "openai/d", "said": "openai/said"} == models
    assert {"judge": {"type": "anthropic", "model": "anthropic/e"}} == plan["judges"]


def test_a_key_of_execution_at_the_top_is_told_where_it_belongs(project: Project) -> None:
    project.write(eval_yaml=CONFIG + "judge_repetitions: 3\n", questions_jsonl=ABC)

    outcome = project.keval("validate", "eval.yaml")

    problem = "eval.yaml:4:1: unknown key 'judge_repetitions'; it belongs under `execution:`"
    assert (2, f"error: {problem}\n") == (outcome.code, outcome.stderr)


def test_answers_that_rubrics_need_and_do_not_find_are_told_of_before_the_run(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "a", "level": 4}\n')

    outcome = project.keval("validate", "eval.yaml")

    said = " ".join(outcome.stderr.split())
    assert 0 == outcome.code
    assert "no sample has a golden answer under 'answer'; factual_adherence and completeness will" in said


@pytest.mark.parametrize(
    ("lacking", "place"), [({"a": "x"}, "questions.jsonl:2:"), ({}, "eval.yaml:1:46:")], ids=["one", "all"]
)
def test_a_record_without_the_golden_answer_that_the_config_names_is_an_error(
    project: Project, lacking: dict[str, str], place: str
) -> None:
    config = CONFIG.replace("questions.jsonl}", "questions.jsonl, answer_key: antwort}")
    records = [
        {"id": name, "question": name, "level": 4, **({"antwort": lacking[name]} if name in lacking else {})}
        for name in ("a", "b")
    ]
    project.write(eval_yaml=config, questions_jsonl=dataset(*records))

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, f"error: {place}" in outcome.stderr.replace(str(project.root) + "/", ""))
    assert "golden answer under 'antwort', but factual_adherence and completeness need" in outcome.stderr


def test_an_empty_golden_answer_is_none(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset({"id": "a", "question": "a", "level": 4, "answer": " "}))

    project.keval("run", "eval.yaml")

    scored = {line["metric"] for line in project.lines("scores.jsonl") if line["value"] is not None}
    assert {"helpfulness_and_clarity"} == scored


def test_keys_that_do_nothing_are_told(project: Project) -> None:
    config = CONFIG.replace("judges: {reader: {}}", "metrics: [double/length]")
    more = "rubrics: [completeness]\nexecution: {judge_repetitions: 2}\nconditions: {a: {on_missing_tool_use: keep}}\n"
    project.write(eval_yaml=config + more, questions_jsonl=ABC)

    outcome = project.keval("validate", "eval.yaml")

    assert (0, 3) == (outcome.code, outcome.stderr.count("note: eval.yaml:"))


def test_a_rubric_may_not_be_named_as_a_metric_is(project: Project) -> None:
    rubric = "metrics: [double/length]\nrubrics: [{double/length: {instructions: x, levels: {1: a, 2: b}}}]\n"
    project.write(eval_yaml=CONFIG + rubric, questions_jsonl=ABC)

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, "a metric has the same name 'double/length'" in outcome.stderr)


def test_why_judges_failed_is_in_the_report(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("{reader: {}}", "{strict: {down: true}}"), questions_jsonl=ABC)

    outcome = project.keval("run", "eval.yaml")

    assert (3, True) == (outcome.code, "strict: 9 × down" in outcome.stdout)


def test_scoring_gives_no_agent_another_model(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=ABC)
    project.keval("run", "eval.yaml")

    outcome = project.keval("score", "latest", "--model", "scripted=openai/gpt")

    problem = "--model scripted=openai/gpt: no agent or judge is labelled 'scripted'; labels: reader"
    assert (2, f"error: {problem}\n") == (outcome.code, outcome.stderr)


def test_a_judge_that_does_not_speak_to_its_model_is_told_at_its_place(project: Project) -> None:
    config = CONFIG.replace("{reader: {}}", "{anthropic: {model: openai/gpt-4o}}")
    project.write(eval_yaml=config, questions_jsonl=ABC)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    place = (
        "error: eval.yaml:3:10: the model openai/gpt-4o speaks openai-chat, openai-responses, and anthropic is needed"
    )
    assert (2, True) == (outcome.code, outcome.stderr.startswith(place))


def test_long_replies_that_are_no_judgement_are_kept_in_part() -> None:
    builder = JudgementBuilder()

    builder.rejected("x" * 50_000)
    builder.unverified(str(number) for number in range(500))

    judgement = builder.judgement()
    assert (True, 100) == (
        judgement.rejected[0].endswith("… (50000 characters)"),
        len(judgement.unverified_claims or ()),
    )
    with pytest.raises(TypeError, match="a list of texts"):
        builder.unverified("one text")


def test_an_evaluation_may_have_any_name_and_labels_in_any_script(project: Project) -> None:
    config = CONFIG.replace("agents: {scripted: {}}", 'name: "Graph vs. RAG: (v2)/ü"\nagents: {scripted: {}}')
    project.write(eval_yaml=config + "conditions: {mit Übersicht: {}}\n", questions_jsonl=ABC)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert (0, "Graph vs. RAG: (v2)/ü") == (outcome.code, outcome.data["evaluation"])
    assert "Graph vs. RAG_ _v2__ü" == project.run_directory().parent.name
    trials = {f"scripted/mit Übersicht/{name}/1" for name in "abc"}
    assert trials == {trial["id"] for trial in project.lines("trials.jsonl")}


def test_what_was_said_before_the_last_tool_call_is_no_answer() -> None:
    builder = TranscriptBuilder()

    def turn() -> None:
        with builder.turn("How high is it?"):
            builder.said("Let me look.")
            builder.called("look", {})
            builder.returned("7 m")
            builder.said("")

    with pytest.raises(TrialError, match="before it said anything") as raised:
        turn()

    assert "no_answer" == raised.value.kind
    assert "" == builder.transcript().output
