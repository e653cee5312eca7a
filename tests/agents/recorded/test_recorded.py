"""Recorded answers, evaluated through the command line as a user would."""

from __future__ import annotations

import asyncio
import hashlib
import json
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from keval import open_run
from keval.config.load import load
from keval.plan.build import make_plan
from keval.run.flow import run_plan
from tests.conftest import Project

CONFIG = """
agents: {gadk: {type: recorded, path: gadk.jsonl}, ms: {type: recorded, path: ms.jsonl}}
dataset: {path: questions.jsonl}
metrics: [weather]
"""
FACTS = {
    "weather": {
        "current": {"temperature": 15, "main_condition": "rain"},
        "daily_summaries": [{"date": "2026-06-18", "min_temp": 12, "max_temp": 18, "main_condition": "Rain"}],
    },
    "preferences": {"dislikes_rain": True, "learned_from_conversations": 3},
}
QUESTIONS: list[dict[str, Any]] = [
    {"id": "helsinki", "question": "What's the weather in Helsinki?", "facts": FACTS},
    {
        "id": "there",
        "question": "And there?",
        "history": [{"user": "How is Oslo?", "assistant": "It is 3 °C in Oslo."}],
    },
]
RAIN = "The temperature in Helsinki is 15°C with light rain. You should bring an umbrella."


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write(project: Project, gadk: str, ms: str | None = None, config: str = CONFIG) -> None:
    project.write(eval_yaml=config, questions_jsonl=lines(*QUESTIONS), gadk_jsonl=gadk)
    project.write(ms_jsonl=lines(*({"id": q["id"], "response": RAIN} for q in QUESTIONS)) if ms is None else ms)


def answered(*first: Any) -> str:
    """A file whose other sample is answered plainly."""
    return lines(*first, {"id": "there", "response": "It is 3 °C in Oslo."})


def means(data: Any) -> dict[tuple[str, str], float | None]:
    return {(arm["agent"], arm["metric"].removeprefix("weather/")): arm["mean"] for arm in data["arms"]}


def test_answers_are_scored_without_calling_anything(project: Project) -> None:
    calls = [{"name": "get_current_weather", "arguments": {"city": "Helsinki"}, "result": {"temp": 15}, "error": None}]
    tokens = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    record = {"id": "helsinki", "response": RAIN, "response_time": 3.5, "tool_calls": calls, "usage": tokens}
    write(project, answered(record))

    outcome = project.fork("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    found = means(outcome.data)
    assert (0.8, 1.0) == (found["gadk", "response_time"], found["gadk", "accuracy"])
    assert ["baseline"] == list(project.read("manifest.json")["conditions"])
    trial = next(each for each in project.lines("trials.jsonl") if each["id"] == "gadk/baseline/helsinki/1")
    transcript = trial["transcript"]
    assert RAIN == trial["output"]
    assert [("user", 0), ("tool", 0), ("assistant", 0)] == [(m["role"], m["turn"]) for m in transcript["messages"]]
    (call,) = transcript["tool_calls"]
    assert ("get_current_weather", {"city": "Helsinki"}, '{"temp":15}', None, None) == (
        call["name"],
        call["arguments"],
        call["result"],
        call["error"],
        call["executions"],
    )
    usage = transcript["usage"]
    assert (100, 20, 3.5, [3.5]) == (
        usage["input_tokens"],
        usage["output_tokens"],
        transcript["duration"],
        transcript["turn_durations"],
    )


def test_the_manifest_knows_the_file_by_its_digest(project: Project) -> None:
    write(project, answered({"id": "helsinki", "response": RAIN}))

    project.keval("run", "eval.yaml")

    expected = hashlib.sha256((project.root / "gadk.jsonl").read_bytes()).hexdigest()
    assert expected == project.read("manifest.json")["agents"]["gadk"]["recording"]


def test_lines_with_one_id_are_repetitions(project: Project) -> None:
    fast, slow = ({"id": "helsinki", "response": RAIN, "response_time": t} for t in (1.0, 3.5))
    write(project, answered(fast, slow, fast))

    outcome = project.keval("run", "eval.yaml", "--json")

    ids = [trial["id"] for trial in project.lines("trials.jsonl") if trial["agent"] == "gadk"]
    assert [f"gadk/baseline/{name}" for name in ("helsinki/1", "there/1", "helsinki/2", "helsinki/3")] == ids
    assert (0, 6) == (outcome.code, outcome.data["planned"])
    (arm,) = [a for a in outcome.data["arms"] if (a["agent"], a["metric"]) == ("gadk", "weather/response_time")]
    assert (1, 3, 1) == (arm["n"], arm["scored"], arm["neutral"])
    assert (1.0 + 0.8 + 1.0) / 3 == pytest.approx(arm["mean"])


def test_one_sample_recorded_often_is_no_reason_to_go_through_the_others(project: Project) -> None:
    often, others = 3_000, 2_000
    questions = [{"id": str(number), "question": "?"} for number in range(others)]
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(*questions))
    answers = [{"id": str(number), "response": "."} for number in range(others)]
    project.write(gadk_jsonl=lines(*answers, *answers[:1] * (often - 1)), ms_jsonl=lines(*answers))
    plan = make_plan(load(project.root / "eval.yaml"))
    counted = 0

    def count(sample: str, condition: str) -> int:
        nonlocal counted
        counted += 1
        return often if sample == "0" else 1

    recording = SimpleNamespace(check_answers=list, count_answers=count, digest="")
    planned = [attrs.evolve(agent, plugin=recording) for agent in plan.agents[:1]]
    trials = list(attrs.evolve(plan, agents=tuple(planned)).trials())

    assert often + others - 1 == len(trials) == counted
    assert [f"gadk/baseline/0/{often}"] == [trial.id for trial in trials[-1:]]


def test_how_often_it_was_recorded_wins_over_the_config(project: Project) -> None:
    write(project, answered({"id": "helsinki", "response": RAIN}), config=CONFIG + "execution: {num_repetitions: 3}\n")

    outcome = project.keval("run", "eval.yaml", "--dry-run")

    assert outcome.stdout.startswith(
        "eval: 4 trials (2 agents × 1 conditions × 2 samples × as many as were recorded)\n"
    )


def test_a_condition_in_a_line_makes_recorded_arms(project: Project) -> None:
    config = CONFIG + "conditions: {baseline: {}, with_docs: {}}\n"
    late = {"id": "helsinki", "condition": "baseline", "response": RAIN, "response_time": 3.5}
    soon = {"id": "helsinki", "condition": "with_docs", "response": RAIN, "response_time": 1.0}
    write(project, answered(soon, late), config=config)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code
    effects = {(e["agent"], e["metric"]): e["difference"] for e in outcome.data["effects"]}
    assert 0.2 == pytest.approx(effects["gadk", "weather/response_time"])
    assert 0.0 == effects["ms", "weather/accuracy"]


def test_answers_of_a_condition_that_a_flag_leaves_out_are_left_alone(project: Project) -> None:
    config = CONFIG + "conditions: {baseline: {}, with_docs: {}}\n"
    tied = [{"id": "helsinki", "condition": name, "response": RAIN} for name in ("baseline", "with_docs")]
    write(project, answered(*tied), config=config)

    outcome = project.keval("run", "eval.yaml", "--condition", "with_docs", "--agent", "gadk", "--json")

    assert (0, 2) == (outcome.code, outcome.data["planned"])


def test_what_belongs_nowhere_is_told_at_its_line_and_nothing_runs(project: Project) -> None:
    bad = [
        '{"id": "helsinki", "response": "Rain."',
        '["helsinki"]',
        '{"response": "Rain."}',
        '{"id": "helsinki"}',
        '{"id": "helsinky", "response": "Rain."}',
        '{"id": "helsinki", "response": "Rain.", "condition": "with_docs"}',
        '{"id": "helsinki", "response": 3}',
        '{"id": "helsinki", "response": "Rain.", "respons_time": 3}',
        '{"id": "helsinki", "response": "Rain.", "response_time": -1}',
        '{"id": "helsinki", "response": "Rain.", "tool_calls": "two"}',
        '{"id": "helsinki", "response": "Rain.", "tool_calls": [{"tool": "x"}]}',
        '{"id": "helsinki", "response": "Rain.", "tool_calls": [{"name": "x", "arguments": "{"}]}',
        '{"id": "helsinki", "response": "Rain.", "usage": 120}',
        '{"id": "helsinki", "response": "Rain.", "usage": {"input_tokens": -1}}',
        '{"id": true, "response": "Rain."}',
        '{"id": "helsinki", "response": "Rain.", "error": "boom"}',
        '{"id": "helsinki", "response": "Rain.", "response_time": 1e200}',
        '{"id": "helsinki", "response": "Rain.", "tool_calls": [{"name": "x", "args": {}}]}',
        '{"id": "helsinki", "response": "Rain.", "usage": {"input_token": 1}}',
        '{"id": "helsinki", "response": "Rain.", "usage": {"input_tokens": 5, "prompt_tokens": 6}}',
        '{"id": "helsinki", "response": "Rain.", "history": "How is Oslo?"}',
        '{"id": "helsinki", "response": "Rain.", "history": [{"role": "system", "content": "Hi"}]}',
        '{"id": "helsinki", "response": "Rain.", "facts": ["Oslo"]}',
        '{"id": "helsinki", "response": "Rain.", "conversation_history": []}',
        '{"id": "helsinki", "response": "Rain.", "truncated": 1}',
        '{"id": "helsinki", "response": "Rain.", "messages": [{"role": "tool"}]}',
        '{"id": "helsinki", "response": "Rain.", "messages": 2}',
        '{"id": "helsinki", "response": "Rain.", "scores": {"match": "C"}}',
        '{"id": "helsinki", "response": "Rain.", "scores": [1]}',
        '{"id": "helsinki", "response": "Rain.", "usage": {"cost": -1}}',
    ]
    write(project, "\n".join(bad) + "\n")

    outcome = project.keval("run", "eval.yaml")

    file = project.root / "gadk.jsonl"
    told = [line.removeprefix("error: ").removeprefix(str(file)) for line in outcome.stderr.splitlines()]
    assert [
        ":1: not valid JSON at column 39: unexpected end of data; one object a line",
        ":2: expected an object with id and response",
        ":3: no id; give the id of the sample that is answered",
        ":4: neither response nor error; give the answer's text, or say why there is none",
        ":5: an answer to 'helsinky', which the dataset does not have",
        ":6: no condition named 'with_docs'; conditions: baseline",
        ":7: 'response' is a text, got 3",
        ":8: unknown key 'respons_time'; did you mean 'response_time'?",
        ":9: 'response_time' is a number of seconds, got -1",
        ":10: 'tool_calls' is a list of calls, or their number, got 'two'",
        ":11: 'tool_calls[0]' is an object with the name of a tool, got {'tool': 'x'}",
        ":12: 'tool_calls[0].arguments' is an object, or one written as JSON, got '{'",
        ":13: 'usage' is an object such as {input_tokens: 120, output_tokens: 30}, got 120",
        ":14: 'usage.input_tokens' is a whole number from 0, got -1",
        ":15: 'id' is a text or a whole number, got True",
        ":16: both response and error; give the answer's text, or say why there is none",
        ":17: 'response_time' is a number of seconds, got 1e+200",
        (
            ":18: unknown key 'tool_calls[0].args'; a call has arguments, duration, error, id, name, result, server,"
            " turn, type"
        ),
        ":19: unknown key 'usage.input_token'; did you mean 'input_tokens'?",
        ":20: 'usage' says input_tokens twice: 5 and 6",
        ":21: 'history' is a list of messages {role, content} or of exchanges {user, assistant}",
        ":22: each item of 'history' is {role: user or assistant, content} or {user, assistant}",
        ":23: 'facts' is an object with named values, got ['Oslo']",
        ":24: unknown key 'conversation_history'; did you mean 'history'?",
        ":25: 'truncated' is true or false, got 1",
        ":26: 'messages' is a list of {role, content}, got {'role': 'tool'}; roles: system, user, assistant, tool",
        ":27: 'messages' is a list of {role, content}, got 2; roles: system, user, assistant, tool",
        ":28: 'scores.match' is a number, or {value, reason}, got 'C'",
        ":29: 'scores' is an object with named values, got [1]",
        ":30: 'usage.cost' is a number of US dollars, got -1",
    ] == told
    assert 2 == outcome.code
    assert not (project.root / "results").exists()


def test_a_wrong_dataset_is_not_told_ten_thousand_times(project: Project) -> None:
    write(project, lines(*({"id": f"other-{n}", "response": "Rain."} for n in range(60))))

    told = project.keval("validate", "eval.yaml").stderr.splitlines()

    assert 51 == len(told)
    assert told[-1].endswith("gadk.jsonl:51: 10 more like these")


@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "no answers are recorded here"), ("\ufeff\n", "no answers are recorded here"), (None, "cannot be read")],
)
def test_a_file_without_answers_is_an_error(project: Project, content: str | None, problem: str) -> None:
    write(project, content or "")
    if content is None:
        (project.root / "gadk.jsonl").unlink()

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert f"{project.root / 'gadk.jsonl'}: " in outcome.stderr
    assert problem in outcome.stderr


def test_a_sample_without_an_answer_is_told_with_its_place_and_fails(project: Project) -> None:
    write(project, lines({"id": "helsinki", "response": RAIN}))
    note = f"note: {project.root / 'questions.jsonl'}:2: 'gadk' has no answer to 'there' under 'baseline'\n"

    checked = project.keval("validate", "eval.yaml")
    outcome = project.keval("run", "eval.yaml", "--json")

    assert (0, note) == (checked.code, checked.stderr)
    assert outcome.stderr.startswith(note)
    assert (3, 4) == (outcome.code, outcome.data["planned"])
    (failed,) = [trial for trial in project.lines("trials.jsonl") if trial["failure"]]
    assert ("gadk/baseline/there/1", "no_answer") == (failed["id"], failed["failure"]["kind"])
    assert 1.0 == means(outcome.data)["gadk", "accuracy"]


def test_a_recorded_error_is_a_failed_trial(project: Project) -> None:
    write(project, answered({"id": "helsinki", "error": "the app timed out"}))

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 3 == outcome.code
    (failed,) = [trial["failure"] for trial in project.lines("trials.jsonl") if trial["failure"]]
    assert ("recorded_error", "recorded: the app timed out") == (failed["kind"], failed["message"])


@pytest.mark.parametrize(
    ("recorded", "count", "unlisted"),
    [
        ({"tool_calls": ["a", {"name": "b", "error": "no such city"}]}, 2, 0),
        ({"tool_calls": 3}, 3, 3),
        ({"tool_calls": []}, 0, 0),
        ({}, None, None),
    ],
)
def test_calls_may_be_listed_counted_or_unknown(
    project: Project, recorded: dict[str, Any], count: int | None, unlisted: int | None
) -> None:
    write(project, lines({"id": "helsinki", "response": RAIN, **recorded}))

    outcome = project.keval("run", "eval.yaml", "--sample-id", "helsinki", "--agent", "gadk", "--json")

    (trial,) = project.lines("trials.jsonl")
    assert (0, unlisted) == (outcome.code, trial["transcript"]["unlisted_calls"])
    assert count == outcome.data["trials"][0]["tool_calls"]


def test_what_is_selected_needs_no_other_answers(project: Project) -> None:
    write(project, answered({"id": "helsinki", "response": RAIN}))

    outcome = project.keval("run", "eval.yaml", "--limit", "1", "--json")

    assert (0, 2, "") == (outcome.code, outcome.data["planned"], outcome.stderr.split("results")[0])


def test_a_table_of_characteristics_goes_by_its_agents_name(project: Project) -> None:
    config = CONFIG.replace("gadk.jsonl", "gadk.jsonl, characteristics: gadk").replace(
        "ms.jsonl", "ms.jsonl, characteristics: {files: 4, setup: low, code: low}"
    )
    write(project, answered({"id": "helsinki", "response": RAIN}), config=config)

    outcome = project.keval("run", "eval.yaml", "--metric", "weather/implementation_effort", "--json")

    assert 0 == outcome.code
    found = means(outcome.data)
    assert (0.0, 1.0) == (found["gadk", "implementation_effort"], found["ms", "implementation_effort"])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "gdk",
            (
                "no agent named 'gdk' is installed; did you mean 'gadk'? (install the adapter that ships the table, or"
                " give the characteristics key by key)"
            ),
        ),
        ("recorded", "the agent 'recorded' says nothing of its framework's characteristics; give them key by key"),
        ("{setup: hard}", "expected low or medium or high, got 'hard' (the weather metrics)"),
    ],
)
def test_characteristics_that_are_none_are_told_at_their_place(project: Project, given: str, problem: str) -> None:
    config = CONFIG.replace("path: gadk.jsonl", f"path: gadk.jsonl, characteristics: {given}")
    write(project, answered({"id": "helsinki", "response": RAIN}), config=config)

    outcome = project.keval("validate", "eval.yaml")

    nested = "{setup: " if given.startswith("{") else ""
    column = config.splitlines()[1].index("characteristics: ") + len("characteristics: " + nested) + 1
    assert 2 == outcome.code
    assert outcome.stderr.startswith(f"error: eval.yaml:1:{column}: {problem}")


def test_what_a_log_says_besides_is_left_alone(project: Project) -> None:
    calls = [{"name": "look", "error": ""}, {"name": "look", "error": False}, {"name": "look", "error": {"code": 5}}]
    besides = {"_id": 1, "response_id": 1, "errors": [], "error": "", "latency": 3, "condition": None}
    besides["usage"] = {"prompt_token_count": 7, "candidates_token_count": 5, "total_token_count": 12}
    write(project, answered({"id": "helsinki", "response": RAIN, "tool_calls": calls, **besides}))

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    trials = {trial["id"]: trial for trial in project.lines("trials.jsonl")}
    transcript = trials["gadk/baseline/helsinki/1"]["transcript"]
    assert [None, None, '{"code":5}'] == [call["error"] for call in transcript["tool_calls"]]
    assert (7, 5) == (transcript["usage"]["input_tokens"], transcript["usage"]["output_tokens"])


def test_a_line_may_say_that_its_response_was_cut_off(project: Project) -> None:
    write(project, answered({"id": "helsinki", "response": RAIN, "truncated": True}))

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    assert {"gadk": 1, "ms": 0} == {arm["agent"]: arm["truncated"] for arm in outcome.data["trials"]}
    cut = {trial["id"] for trial in project.lines("trials.jsonl") if trial["transcript"]["truncated"]}
    assert {"gadk/baseline/helsinki/1"} == cut


def test_a_line_may_have_scores_of_others_and_all_messages(project: Project) -> None:
    messages = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": RAIN, "reasoning": "Hm."}]
    scores = {"match": 3, "style": {"value": 0.5, "reason": "curt"}, "none": {"value": None, "reason": "lost"}}
    config = CONFIG.replace("[weather]", "[recorded/match: {of: match, high: 5}, recorded/style: {of: style}]")
    line = {"id": "helsinki", "response": RAIN, "messages": messages, "scores": scores, "usage": {"cost": 0.5}}
    write(project, answered(line), config=config)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    found = {(each["agent"], each["metric"]): each["mean"] for each in outcome.data["arms"]}
    assert (3.0, 0.5, None) == (
        *(found["gadk", f"recorded/{each}"] for each in ("match", "style")),
        found["ms", "recorded/match"],
    )
    [told] = [each["transcript"] for each in project.lines("trials.jsonl") if each["id"] == "gadk/baseline/helsinki/1"]
    assert [("user", "Rain?", None), ("assistant", RAIN, "Hm.")] == [
        (each["role"], each["text"], each.get("reasoning")) for each in told["messages"]
    ]
    assert 0.5 == told["usage"]["cost"]
    reasons = {(each["metric"], each["reason"]) for each in project.lines("scores.jsonl") if each["agent"] == "gadk"}
    assert {("recorded/style", "curt"), ("recorded/match", "no score 'match' is recorded")} < reasons


def test_a_call_may_say_its_turn(project: Project) -> None:
    turns = {"id": "trip", "question": "I am in Helsinki.", "turns": ["What's the weather?"]}
    calls = [{"name": "note", "turn": 0}, {"name": "look"}]
    write(project, lines({"id": "trip", "response": RAIN, "tool_calls": calls}))
    project.write(
        questions_jsonl=lines(turns),
        ms_jsonl=lines({"id": "trip", "response": RAIN, "tool_calls": [{"name": "look", "turn": 2}]}),
    )

    outcome = project.keval("run", "eval.yaml")

    trials = {trial["agent"]: trial for trial in project.lines("trials.jsonl")}
    first, second = trials["gadk"], trials["ms"]
    assert [("note", 0), ("look", 1)] == [(call["name"], call["turn"]) for call in first["transcript"]["tool_calls"]]
    assert [("user", 0), ("tool", 0), ("user", 1), ("tool", 1), ("assistant", 1)] == [
        (message["role"], message["turn"]) for message in first["transcript"]["messages"]
    ]
    assert (3, "bad_record") == (outcome.code, second["failure"]["kind"])
    assert second["failure"]["message"].endswith("a call of 'look' is of turn 2, and the last turn is 1")


def test_the_last_message_of_a_conversation_is_what_is_answered(project: Project) -> None:
    write(project, lines({"id": "trip", "response": RAIN, "response_time": 1, "tool_calls": [{"name": "look"}]}))
    turns = {"id": "trip", "question": "I am in Helsinki.", "turns": ["What's the weather?"], "facts": FACTS}
    project.write(questions_jsonl=lines(turns))

    outcome = project.keval("run", "eval.yaml", "--agent", "gadk", "--json")

    assert 0 == outcome.code
    assert 1.0 == means(outcome.data)["gadk", "response_time"]
    transcript = project.lines("trials.jsonl")[0]["transcript"]
    assert [("user", 0), ("user", 1), ("tool", 1), ("assistant", 1)] == [
        (message["role"], message["turn"]) for message in transcript["messages"]
    ]
    assert ([1], None) == ([call["turn"] for call in transcript["tool_calls"]], transcript["duration"])


def test_no_server_is_started_for_recorded_answers_alone(project: Project) -> None:
    config = CONFIG + (
        "contexts: {docs: {type: stdio, command: no-such-command}}\nconditions: {baseline: {contexts: [docs]}}\n"
    )
    write(project, answered({"id": "helsinki", "response": RAIN, "tool_calls": ["search"]}), config=config)

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr


def test_recorded_answers_stand_beside_an_agent_that_is_asked(project: Project) -> None:
    config = CONFIG.replace("ms: {type: recorded, path: ms.jsonl}", "asked: {type: scripted}") + (
        "contexts: {notes: {text: Be brief.}}\n"
        "conditions: {baseline: {contexts: [notes]}}\n"
        "execution: {num_repetitions: 2}\n"
    )
    write(project, answered({"id": "helsinki", "response": RAIN}), config=config)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    made = [(trial["id"], trial["output"].startswith("Be brief.")) for trial in project.lines("trials.jsonl")]
    assert sorted(made) == [
        ("asked/baseline/helsinki/1", True),
        ("asked/baseline/helsinki/2", True),
        ("asked/baseline/there/1", True),
        ("asked/baseline/there/2", True),
        ("gadk/baseline/helsinki/1", False),
        ("gadk/baseline/there/1", False),
    ]


def test_a_file_that_changes_under_way_fails_its_trials(project: Project) -> None:
    write(project, answered({"id": "helsinki", "response": RAIN}))
    plan = make_plan(load(project.root / "eval.yaml"))
    changed = answered({"id": "helsinki", "response": RAIN.replace("15", "77")})
    (project.root / "gadk.jsonl").write_text(changed, encoding="utf-8")

    run, _ = asyncio.run(run_plan(plan, project.root / "results"))

    failures = [dict(arm.failures) for arm in run.written_summary().trials if arm.agent == "gadk"]
    assert [{"agent: changed": 1}] == failures


OWN: dict[str, Any] = {
    "history": [{"user": "How is Helsinki?", "assistant": "It is 15 °C in Helsinki."}],
    "facts": {"weather": FACTS["weather"], "city": "Helsinki"},
}
PASTS = """
agents: {gadk: {type: recorded, path: gadk.jsonl}, ms: {type: recorded, path: ms.jsonl}}
dataset: {path: questions.jsonl}
metrics:
  - basic/contains: {reference: facts.city}
  - basic/regex: {reference: facts.kept}
  - weather/context_retention
"""


def write_pasts(project: Project, *, of_ms: dict[str, Any]) -> None:
    """Have one question asked with a history in the dataset, and answered by an agent with a past of its own."""
    there = {**QUESTIONS[1], "facts": {"city": "Oslo", "kept": "°C"}}
    project.write(
        eval_yaml=PASTS,
        questions_jsonl=lines(there),
        gadk_jsonl=lines({"id": "there", "response": "It is 15 °C in Helsinki.", **OWN}),
        ms_jsonl=lines({"id": "there", "response": "It is 3 °C in Oslo.", **of_ms}),
    )


NOTE = (
    "Arms had different conversation histories (1 question) and facts (1 question):"
    " the comparison is of assistants with their own pasts."
)


def test_an_agent_is_scored_with_the_history_and_facts_of_its_own(project: Project) -> None:
    write_pasts(project, of_ms={})

    outcome = project.keval("run", "eval.yaml", "--json")
    again = project.keval("score", "latest", "--json")

    expected = {(agent, f"basic/{metric}"): 1.0 for agent in ("gadk", "ms") for metric in ("contains", "regex")}
    for found in (outcome.data, again.data):
        means = {(arm["agent"], arm["metric"]): arm["mean"] for arm in found["arms"]}
        assert expected.items() <= means.items()
        assert [1, 1] == [found["unlike_histories"], found["unlike_facts"]]
    of_gadk, of_ms = (open_run(project.run_directory()).trial(f"{agent}/baseline/there/1") for agent in ("gadk", "ms"))
    assert ["How is Helsinki?", "How is Oslo?"] == [trial.history[0].text for trial in (of_gadk, of_ms)]
    assert {"city": "Helsinki", "kept": "°C", "weather": FACTS["weather"]} == of_gadk.sample.facts
    (kept,) = project.lines("samples.jsonl")
    assert ("How is Oslo?", {"city": "Oslo", "kept": "°C"}) == (kept["history"][0]["text"], kept["facts"])


def test_a_report_says_that_agents_had_unlike_pasts(project: Project) -> None:
    write_pasts(project, of_ms={})

    project.keval("run", "eval.yaml")
    told = project.keval("report", "latest").stdout
    project.keval("report", "latest", "--markdown", "report.md")
    shown = project.keval("show", "latest", "--sample", "there").stdout
    write_pasts(project, of_ms={"facts": dict(reversed(OWN["facts"].items())), "history": OWN["history"]})
    project.keval("run", "eval.yaml")
    same = project.keval("report", "latest").stdout

    assert NOTE in " ".join(told.split())
    assert NOTE in (project.root / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert "user (earlier): How is Helsinki?" in " ".join(shown.split())
    assert "own pasts" not in same


def test_a_sample_without_an_answer_is_left_out_if_the_answers_are_partial(project: Project) -> None:
    partial = CONFIG.replace("path: gadk.jsonl", "path: gadk.jsonl, partial: true")
    write(project, lines({"id": "helsinki", "response": RAIN}), config=partial)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert (0, 3) == (outcome.code, outcome.data["planned"])
    assert "has no answer" not in outcome.stderr
