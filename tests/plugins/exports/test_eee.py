"""`keval export --format eee`: files that Every Eval Ever takes, and that say no more than the run does."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import attrs
import pytest
from jsonschema import Draft7Validator

from keval import Scale, open_run
from keval_analysis.findings.effects import Repetitions
from keval_exports.eee import Eee
from keval_exports.eee.results import Record, is_correct, model_info, results
from tests.conftest import Outcome, Project

ROOT = Path(__file__).parents[3]
SCHEMAS = Path(os.environ.get("EEE_SCHEMAS", ROOT.parent / "shared" / "schemas" / "every-eval-ever"))
CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents:
  terse: {type: scripted}
  wordy: {type: scripted, suffix: " And so on, at some length, as is its way."}
contexts:
  notes: {text: "As the notes say: "}
conditions:
  baseline: {system_prompt: ""}
  with_notes: {system_prompt: "Answer {{ id }}. ", contexts: [notes]}
metrics: [double/length, double/characters, double/grade, double/neutral]
rubrics: [double/brevity]
judges: {strict: {}}
execution: {num_repetitions: 2, judge_repetitions: 3}
"""
CALLS = [
    {
        "name": "find",
        "arguments": {"where": {"city": "Köln", "near": [1, 2.5]}, "deep": True, "say": "日本 😀"},
        "result": "Köln\u2028\x85 am Rhein",
    },
    {"name": "find", "arguments": {"n": None}, "error": "no such place"},
]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "a", "question": "Why?", "answer": "Because of the 雨.", "tags": {"hard": True}},
    {"id": "bb", "question": "Where to?", "answer": "To Köln.", "calls": CALLS, "says": "Köln\u2028am Rhein 😀"},
    {"id": "ccc", "question": "When?", "history": [{"role": "user", "text": "Hello"}], "turns": ["And then?"]},
    {"id": "down", "question": "Who?", "fail": "it is out"},
]
# What the schemas demand of either file, as keval's own statement of it.
REQUIRED = {
    "": "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library evaluation_results",
    "source_metadata": "source_type source_organization_name evaluator_relationship",
    "eval_library": "name version",
    "model_info": "name id additional_details",
    "model_info.additional_details": "deployment_type model_availability",
    "evaluation_results": "evaluation_name source_data metric_config score_details",
    "evaluation_results.source_data": "dataset_name source_type",
    "evaluation_results.metric_config": "lower_is_better score_type min_score max_score",
    "evaluation_results.score_details": "score",
    "detailed_evaluation_results": "format file_path",
}
REQUIRED_OF_ROWS = {
    "": "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input output messages"
    " answer_attribution evaluation",
    "input": "raw reference",
    "output": "raw",
    "messages": "turn_idx role",
    "messages.tool_calls": "id name",
    "answer_attribution": "turn_idx source extracted_value extraction_method is_terminal",
    "evaluation": "score is_correct",
    "token_usage": "input_tokens output_tokens total_tokens",
}
TEXTS = {"additional_details", "details", "metadata", "arguments", "parameters"}
"""What holds strings only, wherever it stands."""


@attrs.frozen
class Pair:
    """An aggregate with its rows."""

    path: Path
    aggregate: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def agent(self) -> str:
        return str(self.aggregate["eval_library"]["additional_details"]["agent"])

    def result(self, id: str) -> dict[str, Any]:
        (found,) = [item for item in self.aggregate["evaluation_results"] if item["evaluation_result_id"] == id]
        return dict(found)

    def rows_of(self, id: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["evaluation_result_id"] == id]


def prepare(project: Project, config: str = CONFIG, questions: list[dict[str, Any]] = QUESTIONS) -> Project:
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    project.write(eval_yaml=config, questions_jsonl=lines)
    outcome = project.keval("run", "eval.yaml", "-q")
    assert outcome.code in (0, 3), outcome.stderr
    return project


def export(project: Project, *args: str, **environ: str) -> dict[str, Pair]:
    outcome = project.keval("export", "latest", "--format", "eee", "--json", *args, env=environ)
    assert 0 == outcome.code, outcome.stderr
    pairs = [read(Path(file)) for file in outcome.data["files"] if file.endswith(".json")]
    return {pair.agent: pair for pair in pairs}


def read(path: Path) -> Pair:
    rows = path.with_name(f"{path.stem}_samples.jsonl").read_text(encoding="utf-8")
    return Pair(path, json.loads(path.read_text(encoding="utf-8")), [json.loads(row) for row in rows.splitlines()])


def change_manifest(project: Project, change: Mapping[str, Any]) -> None:
    path = project.run_directory() / "manifest.json"
    path.write_text(json.dumps({**project.read("manifest.json"), **change}), encoding="utf-8")


def lacking(data: Any, required: Mapping[str, str], path: str = "") -> Iterator[str]:
    """What is required at a path and not there; lists are looked through, and what is null is not looked into."""
    if isinstance(data, list):
        for item in data:
            yield from lacking(item, required, path)
    elif isinstance(data, dict):
        yield from (f"{path}.{key}" for key in required.get(path, "").split() if key not in data)
        for key, value in data.items():
            yield from lacking(value, required, f"{path}.{key}" if path else key)


def not_texts(data: Any, path: str = "") -> Iterator[str]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        place = f"{path}.{key}"
        if key in TEXTS:
            yield from (f"{place}.{name}" for name, text in value.items() if not isinstance(text, str))
        elif isinstance(value, dict | list):
            yield from not_texts(value, place)


@pytest.fixture
def pairs(project: Project) -> dict[str, Pair]:
    return export(prepare(project))


def test_the_files_are_what_the_published_schemas_ask_for(project: Project) -> None:
    if not SCHEMAS.is_dir():
        pytest.skip("the schemas of Every Eval Ever are not here; EEE_SCHEMAS may name their folder")
    found = export(prepare(project, CONFIG + "neutral: count\n"))
    of_file, of_row = (
        Draft7Validator(json.loads((SCHEMAS / name).read_text(encoding="utf-8")))
        for name in ("eval.schema.json", "instance_level_eval.schema.json")
    )

    errors = [error.message for pair in found.values() for error in of_file.iter_errors(pair.aggregate)]
    errors += [error.message for pair in found.values() for row in pair.rows for error in of_row.iter_errors(row)]

    assert [] == errors
    assert {"single_turn", "multi_turn", "agentic"} == {row["interaction_type"] for row in found["terse"].rows}


def test_the_files_have_what_the_format_requires(pairs: dict[str, Pair]) -> None:
    for pair in pairs.values():
        assert [] == list(lacking(pair.aggregate, REQUIRED))
        assert [] == list(lacking(pair.rows, REQUIRED_OF_ROWS))
        assert [] == list(not_texts(pair.aggregate))
        assert [] == list(not_texts(pair.rows))
        for row in pair.rows:
            single = row["interaction_type"] == "single_turn"
            assert (single, not single) == (row["output"] is not None, row["messages"] is not None)
            assert pair.aggregate["evaluation_id"] == row["evaluation_id"]
            assert pair.aggregate["model_info"]["id"] == row["model_id"]


def test_there_is_a_row_per_question_condition_repetition_and_metric(pairs: dict[str, Pair]) -> None:
    rows = [row for row in pairs["wordy"].rows if "keval.judge" not in row["metadata"]]

    told = Counter((row["sample_id"], row["metadata"]["keval.repetition"], row["evaluation_result_id"]) for row in rows)

    always = ("double/length", "double/characters")
    expected = [
        (sample, repetition, f"{condition}:{metric}")
        for sample in ("a", "bb", "ccc")
        for repetition in "12"
        for condition in ("baseline", "with_notes")
        # This one is unscored for `a` and neutral for `bb`.
        for metric in (*always, *(["double/grade"] if sample == "ccc" else []))
    ]
    assert Counter(expected) == told
    assert {"notes.baseline", "notes.with_notes"} == {row["evaluation_name"] for row in rows}


def test_the_rows_of_a_result_amount_to_its_score(pairs: dict[str, Pair]) -> None:
    results = [(pair, result) for pair in pairs.values() for result in pair.aggregate["evaluation_results"]]

    for pair, result in results:
        scores: dict[str, list[float]] = {}
        for row in pair.rows_of(result["evaluation_result_id"]):
            scores.setdefault(row["sample_id"], []).append(row["evaluation"]["score"])
        details = result["score_details"]
        assert pytest.approx(fmean(map(fmean, scores.values()))) == details["score"]
        assert len(scores) == details["uncertainty"]["num_samples"]

    assert 2 * 2 * 4 == len(results)


def test_what_failed_or_has_no_score_is_counted_and_no_row(pairs: dict[str, Pair]) -> None:
    details = pairs["terse"].result("baseline:double/grade")["score_details"]["details"]

    counts = {key: details[key] for key in ("scores_scored", "scores_neutral", "scores_unscored", "trials_failed")}
    expected = {"scores_scored": "2", "scores_neutral": "2", "scores_unscored": "2", "trials_failed": "2"}
    assert expected == counts
    assert ("8", '{"agent: told":2}') == (details["trials"], details["trial_failures"])
    assert "down" not in {row["sample_id"] for pair in pairs.values() for row in pair.rows}
    assert "double/neutral" not in {
        result["metric_config"]["metric_id"] for result in pairs["terse"].aggregate["evaluation_results"]
    }


def test_neutral_scores_are_rows_where_the_config_counts_them(project: Project) -> None:
    pair = export(prepare(project, CONFIG + "neutral: count\n"))["terse"]

    rows = pair.rows_of("baseline:double/neutral")

    assert 6 == len(rows)
    assert {"true"} == {row["metadata"]["keval.neutral"] for row in rows}
    assert 0.5 == pair.result("baseline:double/neutral")["score_details"]["score"]


def test_arguments_are_text_and_calls_stand_among_the_messages(pairs: dict[str, Pair]) -> None:
    row = next(row for row in pairs["terse"].rows if row["metadata"]["keval.trial"] == "terse/baseline/bb/1")

    asked = {"where": '{"city":"Köln","near":[1,2.5]}', "deep": "true", "say": "日本 😀"}
    both = [
        {"id": "call-1", "name": "find", "arguments": asked},
        {"id": "call-2", "name": "find", "arguments": {"n": "null"}},
    ]
    assert [
        {"turn_idx": 0, "role": "user", "content": "Where to?"},
        {"turn_idx": 1, "role": "assistant", "content": None, "tool_calls": both},
        {"turn_idx": 2, "role": "tool", "content": "Köln\u2028\x85 am Rhein", "tool_call_id": ["call-1"]},
        {"turn_idx": 3, "role": "tool", "content": "no such place", "tool_call_id": ["call-2"]},
        {"turn_idx": 4, "role": "assistant", "content": "Köln\u2028am Rhein 😀"},
    ] == row["messages"]
    assert {"num_turns": 5, "tool_calls_count": 2}.items() <= row["evaluation"].items()
    answer = row["answer_attribution"][0]
    assert (4, "messages[4].content", "Köln\u2028am Rhein 😀") == tuple(
        answer[key] for key in ("turn_idx", "source", "extracted_value")
    )


def test_a_conversation_is_told_with_its_history(pairs: dict[str, Pair]) -> None:
    row = next(row for row in pairs["terse"].rows if row["metadata"]["keval.trial"] == "terse/baseline/ccc/1")

    said = [(message["role"], message["content"]) for message in row["messages"]]
    assert [
        ("user", "Hello"),
        ("user", "When?"),
        ("assistant", "When?"),
        ("user", "And then?"),
        ("assistant", "And then?"),
    ] == said
    assert "user: Hello\nuser: When?\nuser: And then?" == row["input"]["raw"]
    assert 4 == row["answer_attribution"][0]["turn_idx"]


def test_a_sample_is_hashed_as_others_do(pairs: dict[str, Pair]) -> None:
    row = next(row for row in pairs["terse"].rows if row["sample_id"] == "a")

    canonical = r'{"raw":"Why?","reference":["Because of the \u96e8."]}'
    assert {"raw": "Why?", "reference": ["Because of the 雨."]} == row["input"]
    assert hashlib.sha256(canonical.encode()).hexdigest() == row["sample_hash"]
    assert '{"hard":true}' == row["metadata"]["tags"]


def test_the_aggregate_vouches_for_its_rows(pairs: dict[str, Pair]) -> None:
    for pair in pairs.values():
        told = pair.aggregate["detailed_evaluation_results"]
        written = pair.path.with_name(f"{pair.path.stem}_samples.jsonl").read_bytes()
        assert len(pair.rows) == told["total_rows"] == written.count(b"\n")
        assert hashlib.sha256(written).hexdigest() == told["checksum"]
        assert str(pair.path.parents[4] / told["file_path"]) == f"{str(pair.path).removesuffix('.json')}_samples.jsonl"
        pattern = r"data/notes/scripted/\w+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_"
        assert re.match(pattern, told["file_path"])


def test_scales_directions_and_errors_are_those_of_the_run(project: Project) -> None:
    pair = export(prepare(project))["terse"]
    arms = {
        arm["metric"]: arm
        for arm in project.read("summary.json")["arms"]
        if (arm["agent"], arm["condition"]) == ("terse", "baseline")
    }

    length, characters = (pair.result(f"baseline:double/{name}") for name in ("length", "characters"))

    bounds = ("min_score", "max_score", "lower_is_better", "score_type")
    assert (0.0, 1.0, False, "continuous") == tuple(length["metric_config"][key] for key in bounds)
    assert (0.0, "Infinity", True, "continuous") == tuple(characters["metric_config"][key] for key in bounds)
    assert "characters" == characters["metric_config"]["metric_unit"]
    for metric, result in (("double/length", length), ("double/characters", characters)):
        arm, uncertainty = arms[metric], result["score_details"]["uncertainty"]
        assert (arm["mean"], arm["stderr"], arm["n"]) == (
            result["score_details"]["score"],
            uncertainty["standard_error"]["value"],
            uncertainty["num_samples"],
        )


def test_a_judge_is_described_with_its_rubric(pairs: dict[str, Pair]) -> None:
    metric = pairs["terse"].result("with_notes:double/brevity@strict")["metric_config"]

    scale = ("score_type", "level_names", "level_metadata", "has_unknown_level", "min_score", "max_score")
    expected = ("levels", ["1", "2", "3"], ["long", "fair", "short"], False, 1.0, 3.0)
    assert expected == tuple(metric[key] for key in scale)
    assert "Is it short?\n1: long\n2: fair\n3: short" == metric["llm_scoring"]["input_prompt"]
    (judge,) = metric["llm_scoring"]["judges"]
    assert ("strict/strict", "strict (model unknown)") == (judge["model_info"]["id"], judge["model_info"]["name"])
    assert "3" == metric["additional_details"]["judge_repetitions"]


def test_a_condition_is_told_by_its_prompt_contexts_and_tools(project: Project) -> None:
    prepare(project, CONFIG.replace("notes: {text", "notes: {tools: [find], text"), QUESTIONS[:1])
    told = project.read("manifest.json")
    agents = {**told["config"]["agents"], "wordy": {"temperature": 0.5, "max_tokens": "${MOST}", "top_p": True}}
    change_manifest(project, {"config": {**told["config"], "agents": agents}})

    pair = export(project)["wordy"]

    plain, noted = (pair.result(f"{name}:double/length")["generation_config"] for name in ("baseline", "with_notes"))
    assert {"temperature": 0.5} == plain["generation_args"]
    tools = {"available_tools": [{"name": "find", "parameters": {"server": "notes"}}]}
    expected = {"temperature": 0.5, "prompt_template": "Answer {{ id }}. ", "agentic_eval_config": tools}
    assert expected == noted["generation_args"]
    about = {"agent": "wordy", "condition": "with_notes", "contexts": "notes", "baseline": "baseline"}
    assert about.items() <= noted["additional_details"].items()
    assert {"agentic"} == {row["interaction_type"] for row in pair.rows_of("with_notes:double/length")}


@pytest.mark.parametrize(
    ("scale", "value", "threshold", "expected"),
    [
        ((0.0, 1.0, "higher"), 0.5, 0.5, True),
        ((0.0, 1.0, "higher"), 0.49, 0.5, False),
        ((1.0, 5.0, "higher"), 3.0, 0.5, True),
        ((1.0, 5.0, "higher"), 3.0, 0.75, False),
        ((1.0, 5.0, "higher"), 4.0, 0.75, True),
        ((0.0, 10.0, "lower"), 2.0, 0.8, True),
        ((0.0, 10.0, "lower"), 3.0, 0.8, False),
        ((0.0, None, "higher"), 1e9, 0.0, False),
        ((0.0, None, "lower"), 0.0, 0.5, False),
    ],
)
def test_a_score_is_correct_from_a_share_of_its_scale_on(
    scale: tuple[float, float | None, Literal["higher", "lower"]], value: float, threshold: float, *, expected: bool
) -> None:
    low, high, better = scale

    assert expected is is_correct(Scale(low, math.inf if high is None else high, better), value, threshold)


def test_a_threshold_is_a_number(project: Project) -> None:
    prepare(project)

    outcome = project.keval("export", "latest", "--format", "eee", "--threshold", "nan")

    assert (2, "error: --threshold: 'threshold' must be a share from 0 to 1: nan\n") == (outcome.code, outcome.stderr)


def test_the_threshold_is_told(project: Project) -> None:
    prepare(project)

    strict = export(project, "--threshold", "0.9")["wordy"]
    lax = export(project, KEVAL_EXPORT_THRESHOLD="0.1")["wordy"]

    for pair, told in ((strict, "0.9"), (lax, "0.1")):
        details = pair.result("baseline:double/length")["metric_config"]["additional_details"]
        assert (f"true where the score is at least {told}", told) == (details["is_correct"], details["threshold"])
    assert not any(row["evaluation"]["is_correct"] for row in strict.rows_of("baseline:double/length"))
    assert all(row["evaluation"]["is_correct"] for row in lax.rows_of("baseline:double/length"))


def test_simulated_models_and_judges_are_labelled(project: Project) -> None:
    prepare(project)
    told = project.read("manifest.json")
    agents = {label: {**agent, "model": f"acme/{label}"} for label, agent in told["agents"].items()}
    judges = {"strict": {**told["judges"]["strict"], "model": "acme/judge", "simulated": True}}
    change_manifest(project, {"agents": agents, "judges": judges, "simulated": ["acme/judge", "acme/terse"]})

    found = export(project)

    names = {agent: pair.aggregate["model_info"]["name"] for agent, pair in found.items()}
    assert {"terse": "terse (simulated)", "wordy": "wordy"} == names
    judged = found["wordy"].result("baseline:double/brevity@strict")
    info = judged["metric_config"]["llm_scoring"]["judges"][0]["model_info"]
    assert ("acme/judge", "judge (simulated)", "true") == (
        info["id"],
        info["name"],
        info["additional_details"]["simulated"],
    )
    labels = {
        (agent, metric): pair.result(f"baseline:double/{metric}")["score_details"]["details"].get("simulated")
        for agent, pair in found.items()
        for metric in ("length", "brevity@strict")
    }
    assert {
        ("terse", "length"): "model",
        ("terse", "brevity@strict"): "model and judge",
        ("wordy", "length"): None,
        ("wordy", "brevity@strict"): "judge",
    } == labels
    rows = found["wordy"].rows_of("baseline:double/brevity@strict")
    assert {(None, "true")} == {
        (row["metadata"].get("keval.model_simulated"), row["metadata"].get("keval.judge_simulated")) for row in rows
    }


def test_agents_have_files_of_their_own_though_their_model_is_the_same(project: Project) -> None:
    prepare(project)
    agents = {label: {**agent, "model": "a/b:c/d"} for label, agent in project.read("manifest.json")["agents"].items()}
    change_manifest(project, {"agents": agents})

    found = export(project)

    assert {"a/b:c/d"} == {pair.aggregate["model_info"]["id"] for pair in found.values()}
    assert ["data/notes/b_c/d"] * 2 == ["/".join(pair.path.parts[-5:-1]) for pair in found.values()]
    assert 2 == len({pair.aggregate["evaluation_id"] for pair in found.values()})


@pytest.mark.usefixtures("simulated_here")
def test_options_of_metrics_and_judges_are_told_written_or_not(project: Project) -> None:
    options = CONFIG.replace("double/length,", "{double/length: {limit: 20}},").replace(
        "strict: {}", "strict: {level: 3}, warm: {type: openai, model: simulated/any, max_tokens: 900}"
    )
    prepare(project, options, QUESTIONS[:1])

    pair = export(project)["terse"]

    length = pair.result("baseline:double/length")["metric_config"]["additional_details"]["options"]
    judges = {
        label: pair.result(f"baseline:double/brevity@{label}")["metric_config"]["llm_scoring"]["judges"][0]
        for label in ("strict", "warm")
    }
    levels = json.loads(judges["strict"]["additional_details"]["options"])
    warm = json.loads(judges["warm"]["additional_details"]["options"])
    assert {"limit": 20} == json.loads(length)
    assert (3, 0) == (levels["level"], levels["busy"])
    assert (900, 0.0) == (warm["max_tokens"], warm["temperature"])
    assert 0.0 == judges["warm"]["temperature"]
    assert "api_key" not in warm


def test_the_system_prompt_is_told_as_it_was_rendered(pairs: dict[str, Pair]) -> None:
    rows = {row["metadata"]["keval.trial"]: row for row in pairs["terse"].rows}

    single, agentic = rows["terse/with_notes/a/1"], rows["terse/with_notes/bb/1"]

    assert "Answer a.\n\nAs the notes say:" == single["metadata"]["keval.instructions"]
    assert {"turn_idx": 0, "role": "system", "content": "Answer bb.\n\nAs the notes say:"} == agentic["messages"][0]
    assert "keval.instructions" not in agentic["metadata"]
    assert "keval.instructions" not in rows["terse/baseline/a/1"]["metadata"]


def test_repetitions_scatter_as_the_summary_says(project: Project) -> None:
    run = open_run(prepare(project).run_directory())
    spread = Repetitions(samples=3, sd=0.125)
    summary = run.summary()
    arms = tuple(attrs.evolve(arm, repetitions=spread, ci_low=0.1, ci_high=0.3, method="t") for arm in summary.arms)
    record = Record.of(run.manifest, "terse")

    told = results(run.manifest, attrs.evolve(summary, arms=arms), record, 0.5)

    details = [result["score_details"] for result in told]
    assert {"0.125"} == {each["details"]["standard_deviation_over_repetitions"] for each in details}
    interval = {"lower": 0.1, "upper": 0.3, "confidence_level": 0.95, "method": "t"}
    assert all(interval == each["uncertainty"]["confidence_interval"] for each in details)


@pytest.mark.parametrize(
    ("model", "developer"),
    [
        ("openai/gpt-5-mini", "openai"),
        ("openrouter/claude-sonnet-5", "anthropic"),
        ("openrouter/meta-llama/Llama-4-Scout", "meta-llama"),
        ("gemini/gemini-3-pro", "google"),
        ("gemini/something-new", "google"),
        ("simulated/careless", "simulated"),
    ],
)
def test_a_model_has_its_developer(model: str, developer: str) -> None:
    info = model_info(model, "scripted", "any", simulated=False)

    assert (developer, model.partition("/")[0]) == (info["developer"], info["inference_platform"])


def test_rows_stay_whole_for_readers_that_split_by_unicode(project: Project) -> None:
    pair = export(prepare(project))["terse"]

    text = pair.path.with_name(f"{pair.path.stem}_samples.jsonl").read_text(encoding="utf-8")

    assert text.count("\n") == len(text.splitlines()) == len(pair.rows)


def test_an_agent_without_a_score_is_left_out_and_named(project: Project) -> None:
    broken = '  broken: {type: scripted, suffix: "!"}\ncontexts:'
    prepare(project, CONFIG.replace("contexts:", broken, 1), [QUESTIONS[0] | {"fail": "it is out"}, QUESTIONS[1]])
    scores = project.run_directory() / "scores.jsonl"
    kept = [line for line in scores.read_bytes().split(b"\n") if b'"agent":"broken"' not in line]
    scores.write_bytes(b"\n".join(kept))

    outcome = project.keval("export", "latest", "--format", "eee", "--to", "out")

    notes = outcome.stderr.splitlines()
    assert 0 == outcome.code
    assert "note: broken is left out: none of its scores has a value" in notes
    assert "note: terse baseline double/neutral is left out: it has no score that counts in a mean" in notes
    assert [{"out"}] == [{Path(path).parts[0] for path in outcome.stdout.splitlines()}]
    assert 4 == len(outcome.stdout.splitlines())


def refused(outcome: Outcome) -> str:
    assert (2, "") == (outcome.code, outcome.stdout)
    return outcome.stderr


def test_a_run_without_a_score_is_refused(project: Project) -> None:
    prepare(project, CONFIG, [QUESTIONS[3]])

    message = refused(project.keval("export", "latest", "--format", "eee"))

    assert "has no score with a value, so there is nothing to export; see `keval report`" in message
    assert not (project.run_directory() / "export").exists()


def test_an_unknown_format_is_refused_with_the_nearest(project: Project) -> None:
    near = refused(project.keval("export", "latest", "--format", "ee"))
    far = refused(project.keval("export", "latest", "--format", "vellum-scroll"))

    assert "no exporter named 'ee' is installed; did you mean 'eee'?" in near
    assert "no exporter named 'vellum-scroll' is installed; installed: csv, eee, html, junit, otlp, parquet" in far


def test_scores_of_a_trial_that_is_gone_are_refused(project: Project) -> None:
    prepare(project)
    trials = project.run_directory() / "trials.jsonl"
    kept = [line for line in trials.read_bytes().split(b"\n") if b"terse/baseline/a/1" not in line]
    trials.write_bytes(b"\n".join(kept))

    message = refused(project.keval("export", "latest", "--format", "eee"))

    assert "it has scores: restore the file" in message
    assert [] == [path for path in (project.run_directory() / "export").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_exporting_holds_neither_trials_nor_rows_in_memory(project: Project) -> None:
    long = {"id": "long", "question": "How long?", "says": "very " * 20_000}
    prepare(project, CONFIG.replace("num_repetitions: 2, judge_repetitions: 3", "num_repetitions: 40"), [long])
    run = open_run(project.run_directory())

    tracemalloc.start()
    Eee().export(run, project.root / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 16_000_000 < run.trials_file.stat().st_size
    assert peak < 4_000_000


def test_the_commands_of_the_page_run(project: Project) -> None:
    prepare(project)
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    commands = [line.removeprefix("keval ") for block in blocks for line in block.splitlines()]

    outcomes = [project.keval(*shlex.split(command)) for command in commands]

    assert commands
    assert [0] * len(commands) == [outcome.code for outcome in outcomes]
