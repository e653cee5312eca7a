"""Logs of Inspect, made by inspect-ai 0.3.285 and 0.3.60 with the model mockllm, in the manner of three authors.

`city_weather` has a tool, an image, a history, three epochs and two scorers; `quiz` has choices and a sample with an
error, and its events are left out; `stopped` was interrupted, with scores that are no shares.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from tests.conftest import Project


def put(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


HERE = Path(__file__).parent / "inspect_logs"


@pytest.fixture
def log(project: Project, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts a log into the folder, and returns its name."""
    monkeypatch.chdir(project.root)

    def put(name: str) -> str:
        shutil.copy(HERE / name, project.root / f"log{Path(name).suffix}")
        return f"log{Path(name).suffix}"

    return put


def means(project: Project) -> dict[str, float]:
    arms = json.loads(project.keval("report", "--json", str(project.run_directory())).stdout)["arms"]
    return {each["metric"].removeprefix("recorded/"): each["mean"] for each in arms}


@pytest.mark.parametrize("version", ["0.3.285", "0.3.60"])
def test_a_log_that_is_damaged_is_told(project: Project, log: Any, version: str) -> None:
    name = log(f"city_weather-{version}.eval")
    content = bytearray(Path(name).read_bytes())
    at = content.index(b"header.json") + len("header.json")
    content[at : at + 60] = b"x" * 60
    Path(name).write_bytes(content)

    outcome = project.keval("validate", name)

    assert 2 == outcome.code
    assert "log.eval: no log of Inspect can be read: " in outcome.stderr


def test_a_log_that_is_too_large_or_too_deep_is_told(project: Project, log: Any) -> None:
    name = log("city_weather-0.3.60.eval")
    content = bytearray(Path(name).read_bytes())
    entry = content.rindex(b"header.json") - 46
    content[entry + 24 : entry + 28] = (2**30 + 1).to_bytes(4, "little")
    Path(name).write_bytes(content)
    with ZipFile("deep.eval", "w", ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "[" * 100_000)

    large, deep = project.keval("validate", name), project.keval("validate", "deep.eval")

    assert (2, 2) == (large.code, deep.code)
    assert "header.json has 1073741825 bytes, more than 1073741824" in large.stderr
    assert "deep.eval: no log of Inspect can be read: maximum recursion depth" in deep.stderr


@pytest.mark.parametrize("version", ["0.3.285", "0.3.60"])
def test_answers_calls_and_scores_of_a_log_are_a_run(project: Project, log: Any, version: str) -> None:
    name = log(f"city_weather-{version}.eval")

    outcome = project.keval("run", name, "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert "log.eval: the scale of style.length is taken from the values" in outcome.stderr
    assert "content of the kind image (3x)" in outcome.stderr
    Path(name).unlink()
    assert 0 == project.keval("score", str(project.run_directory())).code
    # What Inspect says in its own results.
    assert means(project) == pytest.approx({"match": 5 / 6, "style.length": 41 / 6, "style.polite": 1 / 6})
    asked = {each["id"]: each for each in project.lines("samples.jsonl")}
    assert ("How warm is Helsinki?", {"kind": "now"}) == (asked["helsinki"]["question"], asked["helsinki"]["metadata"])
    assert ["I am in Atlantis.", "Nice."] == [each["text"] for each in asked["2"]["history"]]
    assert ("unknown", ["nowhere"]) == (asked["2"]["answer"], asked["2"]["other_answers"])
    trials = {(each["sample"], each["repetition"]): each for each in project.lines("trials.jsonl")}
    assert 6 == len(trials)
    told = trials["helsinki", 2]["transcript"]
    assert ["system", "user", "assistant", "tool", "assistant"] == [each["role"] for each in told["messages"]]
    assert "please look: 14" in {trials["helsinki", 2]["output"], trials["2", 1]["output"]}
    assert [("weather", {"city": "Helsinki"}, "Helsinki: 15 C, rain")] == [
        (each["name"], each["arguments"], each["result"]) for each in told["tool_calls"]
    ]
    assert (2, "mockllm/model", 5) == (told["model_calls"], trials["2", 1]["model"], told["usage"]["cached_tokens"])
    assert 35 == told["usage"]["input_tokens"]  # with those of the cache
    calls = [call for each in trials.values() for call in each["transcript"]["tool_calls"]]
    assert ["no such city"] * 3 == [each["error"] for each in calls if each["arguments"] == {"city": "Atlantis"}]


def test_a_sample_with_an_error_is_lost_and_told(project: Project, log: Any) -> None:
    name = log("quiz-0.3.285.json")
    theirs = json.loads((HERE / "quiz-0.3.285.json").read_text(encoding="utf-8"))["results"]

    outcome = project.keval("run", name, "-o", "results")

    assert 3 == outcome.code, outcome.stderr
    assert "recorded_error: recorded: RuntimeError('the sandbox was lost')" in outcome.stdout
    assert {"choice": pytest.approx(theirs["scores"][0]["metrics"]["accuracy"]["value"])} == means(project)
    assert ["1", "2", "none"] == project.lines("samples.jsonl")[0]["metadata"]["choices"]


@pytest.mark.parametrize("file", ["stopped-0.3.285.eval", "stopped-0.3.60.json"])
def test_a_log_that_was_stopped_says_how_far_it_came(project: Project, log: Any, file: str) -> None:
    name = log(file)

    validated = project.keval("validate", name)
    outcome = project.keval("run", name, "-o", "results")

    assert (0, 0) == (validated.code, outcome.code), outcome.stderr
    assert "and 2 of 4 samples" in validated.stderr
    assert {"points": 5.25, "includes": 0.5} == means(project)
    assert [False, True] == sorted(each["transcript"]["truncated"] for each in project.lines("trials.jsonl"))
    scales = {each["metric"]: each["scale"]["high"] for each in project.read("manifest.json")["scorers"]}
    assert {"recorded/points": 7.0, "recorded/includes": 1.0} == scales


def test_a_log_is_written_out_and_two_logs_are_compared(project: Project, log: Any) -> None:
    name = log("city_weather-0.3.60.eval")

    outcome = project.keval("init", "mine", "--from", name)
    config = project.root / "mine" / "eval.yaml"
    lines = config.read_text(encoding="utf-8").replace("  model:\n", "  old:\n")
    config.write_text(
        lines.replace(
            "metrics:", f"  new: {{type: recorded-log, path: {HERE / 'city_weather-0.3.285.eval'}}}\nmetrics:"
        ),
        encoding="utf-8",
    )
    compared = project.keval("run", "mine/eval.yaml", "-o", "results")

    assert (0, 0) == (outcome.code, compared.code), compared.stderr
    assert {"old", "new"} == {each["agent"] for each in project.lines("trials.jsonl")}


def test_long_texts_values_and_other_models_of_a_log(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    long = 'He said "15",\nand left.'
    call = {"id": "1", "function": "look", "arguments": {}}
    sample = {
        "id": 1,
        "input": "attachment://abc",
        "target": "",
        "attachments": {"abc": long},
        "messages": [
            {"role": "user", "content": "attachment://abc", "source": "input"},
            {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm."}], "tool_calls": [call]},
        ],
        "output": {"choices": [], "completion": "yes"},
        "scores": {
            "said": {"value": "yes"},
            "both": {"value": [1, "N"], "explanation": "why"},
            "odd": {"value": "unsure"},
            "lost": {"value": float("nan")},
        },
        "model_usage": {"openai/judge": {"input_tokens": 1}},
        "limit": {"type": "time", "limit": 5},
    }
    header = {
        "status": "success",
        "eval": {"task": "my org/task", "model": "openai/gpt-5.5", "config": {"epochs_reducer": ["max"]}},
        "results": {"scores": [{"name": "said", "metrics": {"my/f1": {"value": 1}}}]},
    }
    put("log.json", json.dumps({**header, "samples": [sample]}))

    outcome = project.keval("run", "log.json", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    for told in ("how epochs are reduced: max", "samples: my/f1", "tokens of openai/judge", "ended the sample: time"):
        assert told in outcome.stderr
    [trial] = project.lines("trials.jsonl")
    assert ("my org_task", "gpt-5.5") == (project.read("manifest.json")["evaluation"], trial["agent"])
    assert long == project.lines("samples.jsonl")[0]["question"] == trial["transcript"]["messages"][0]["text"]
    assert ("yes", "Hm.") == (trial["output"], trial["transcript"]["messages"][1]["reasoning"])
    assert (None, None) == (
        trial["transcript"]["usage"]["input_tokens"],
        trial["transcript"]["tool_calls"][0]["result"],
    )
    scores = {each["metric"].removeprefix("recorded/"): each for each in project.lines("scores.jsonl")}
    assert {"said": 1.0, "both.0": 1.0, "both.1": 0.0, "odd": None, "lost": None} == {
        name: each["value"] for name, each in scores.items()
    }
    assert ("why", "the value 'unsure' is no number") == (scores["both.1"]["reason"], scores["odd"]["reason"])


def test_what_is_no_log_is_told(project: Project, log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = log("city_weather-0.3.285.eval")
    put("text.eval", "hello")
    put("lines.jsonl", '{"a": 1}\n')
    put("broken.json", json.dumps({"eval": {"task": "t", "model": "a/b"}, "samples": [{"id": 1}]}))
    with ZipFile("other.eval", "w", ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
    put("twice.yaml", "dataset: {path: twice.json, type: recorded-log}\nmetrics: [recorded]\nagents: {http: {}}\n")
    asked = {"output": {}, "target": ""}
    twice = [{"id": 1, "input": "A?", **asked}, {"id": 1, "input": "B?", **asked}]
    put("twice.json", json.dumps({"eval": {"model": "a/b"}, "samples": twice}))

    told = {each: project.keval("validate", each) for each in ("text.eval", "lines.jsonl", "broken.json", "other.eval")}
    again = project.keval("validate", "twice.yaml")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    packed = project.keval("validate", name)

    assert [2] * 6 == [each.code for each in (*told.values(), again, packed)]
    assert "text.eval: no log of Inspect can be read: File is not a zip file" in told["text.eval"].stderr
    assert "broken.json: an answer is not as Inspect writes it: KeyError('input')" in told["broken.json"].stderr
    for each in ("lines.jsonl", "other.eval"):
        assert f"{each}: no log that keval reads; k-eval writes *.detailed.jsonl" in told[each].stderr
    assert "twice.json: the sample '1' has two questions" in again.stderr
    assert "log.eval: logs of this version of Inspect need keval-formats[inspect]: `" in packed.stderr
