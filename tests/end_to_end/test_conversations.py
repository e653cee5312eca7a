"""Does an agent remember? Real conversations in both frameworks, with a model that remembers and one that forgets."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import attrs
import pytest

from keval import Message, Sample, Transcript, Trial
from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval_gateway import ChatReply, ChatRequest
from keval_simulator.model import SimulatedModel
from tests.conftest import Project
from tests.end_to_end.conftest import EXAMPLE
from tests.end_to_end.servers.model import gateway

pytestmark = pytest.mark.slow
SAMPLES: dict[str, Sample] = {
    sample.id: sample for sample in read_dataset(DatasetFile(EXAMPLE / "conversations.jsonl")).samples
}
LEARN, LOOK_UP = "update_user_preferences_from_insight", "get_user_preferences"
both_frameworks = pytest.mark.parametrize("agent", ["gadk", "ms"])


@attrs.frozen
class Run:
    """The example, run once for all of this module's tests."""

    trials: dict[str, dict[str, Any]]
    scores: dict[tuple[str, str], dict[str, Any]]
    summary: dict[str, Any]

    def trial(self, agent: str, sample: str) -> dict[str, Any]:
        return self.trials[f"{agent}/with_weather/{sample}/1"]

    def score(self, agent: str, sample: str, metric: str) -> dict[str, Any]:
        return self.scores[f"{agent}/with_weather/{sample}/1", f"weather/{metric}"]

    def values(self, agent: str, metric: str) -> dict[str, float]:
        """The values of a metric by sample, where there was something to judge."""
        scores = {sample: self.score(agent, sample, metric) for sample in SAMPLES}
        return {sample: score["value"] for sample, score in scores.items() if not score["neutral"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    project = Project(tmp_path_factory.mktemp("conversations"))
    outcome = project.run(EXAMPLE / "conversations.yaml")
    assert 0 == outcome.code, outcome.stderr
    return Run(
        {trial["id"]: trial for trial in project.lines("trials.jsonl")},
        {(score["trial"], score["metric"]): score for score in project.lines("scores.jsonl")},
        project.read("summary.json"),
    )


def test_the_example_runs_and_nothing_fails(run: Run) -> None:
    counts = {arm["agent"]: (arm["trials"], arm["failed"]) for arm in run.summary["trials"]}

    assert dict.fromkeys(["gadk", "gadk_forgetful", "ms", "ms_forgetful"], (len(SAMPLES), 0)) == counts
    assert ["simulated/forgetful", "simulated/weather"] == run.summary["simulated"]


@both_frameworks
@pytest.mark.parametrize("metric", ["context_retention", "adaptation_quality", "repeatability"])
def test_an_agent_that_forgets_scores_lower_than_one_that_remembers(run: Run, agent: str, metric: str) -> None:
    remembering, forgetful = run.values(agent, metric), run.values(f"{agent}_forgetful", metric)
    both = remembering.keys() & forgetful.keys()

    lost = fmean(remembering[sample] - forgetful[sample] for sample in both)

    assert len(both) >= 3
    assert lost > 0.05


@both_frameworks
def test_what_needs_no_memory_is_answered_alike(run: Run, agent: str) -> None:
    named = ("lodz-once-more", "lisbon-tokyo-lisbon")

    remembering = [run.score(agent, sample, "context_retention")["value"] for sample in named]
    forgetful = [run.score(f"{agent}_forgetful", sample, "context_retention")["value"] for sample in named]

    assert remembering == forgetful


def result_of(text: str) -> Any:
    """Return the value of a tool's result, or the text of an error, which is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_each_turns_transcript_is_kept_in_order(run: Run) -> None:
    for trial in run.trials.values():
        asked = SAMPLES[trial["sample"]].asked
        transcript = trial["transcript"]
        spoken = defaultdict(list)
        for message in transcript["messages"]:
            spoken[message["turn"]].append((message["role"], message["text"]))
        told = [(turn, result_of(text)) for turn in spoken for role, text in spoken[turn] if role == "tool"]

        assert list(range(len(asked))) == list(spoken)
        assert [("user", text) for text in asked] == [said[0] for said in spoken.values()]
        assert {"assistant"} == {said[-1][0] for said in spoken.values()}
        # The message is what the framework made of the result, with spaces of its own.
        assert told == [(call["turn"], result_of(call["error"] or call["result"])) for call in transcript["tool_calls"]]
        assert len(asked) == len(transcript["turn_durations"])
        assert min(transcript["turn_durations"]) > 0
        assert transcript["duration"] == pytest.approx(sum(transcript["turn_durations"]))


LEARNED = {
    "montreal-learned-cold": ["dislikes_cold"],
    "chicago-learned-indoors": ["dislikes_cold", "prefers_indoor"],
    "new-york-not-the-rain": ["dislikes_cold"],
    # The simulated model takes "no longer" for nothing that it could tell the server.
    "krakow-no-more-hiking": ["prefers_indoor", "outdoor_activities"],
}


@both_frameworks
@pytest.mark.parametrize("sample", LEARNED)
def test_what_was_learned_in_an_early_turn_is_judged_by_in_the_last(run: Run, agent: str, sample: str) -> None:
    calls = run.trial(agent, sample)["transcript"]["tool_calls"]
    score = run.score(agent, sample, "adaptation_quality")
    forgotten = run.score(f"{agent}_forgetful", sample, "adaptation_quality")

    assert LEARN == calls[0]["name"]
    assert 0 == calls[0]["turn"] < len(SAMPLES[sample].turns)
    assert LEARNED[sample] == score["details"]["preferences"] == forgotten["details"]["preferences"]
    assert "awareness of preferences" in [point["what"] for point in score["details"]["points"]]
    assert forgotten["value"] < score["value"]


def taught(calls: list[dict[str, Any]]) -> Iterator[tuple[dict[str, bool], dict[str, bool]]]:
    """Yield what each look-up should find, going by what the trial itself taught before, and what it found."""
    known: dict[str, bool] = {}
    for call in calls:
        if call["name"] == LEARN:
            known |= {flag: value for flag, value in call["arguments"].items() if isinstance(value, bool)}
        if call["name"] in (LEARN, LOOK_UP):
            yield dict(known), json.loads(call["result"])["preferences"]


def test_a_trial_finds_what_it_taught_and_nothing_of_another_trial(run: Run) -> None:
    found = [pair for trial in run.trials.values() for pair in taught(trial["transcript"]["tool_calls"])]

    assert [learned for learned, _ in found] == [known for _, known in found]
    # The same user in every trial, before and after others taught the server something.
    assert {(), ("dislikes_cold",)} <= {tuple(known) for _, known in found}


CAPTURED = ("dublin-wear-again", "mexico-city-rain-again", "krakow-no-more-hiking")
CONFIG = """
dataset: {{path: {dataset}}}
agents:
  gadk: {{model: google/gemini-test}}
  ms: {{model: openai/gpt-test}}
contexts: {{weather: {{}}}}
conditions:
  with_weather: {{system_prompt: "You help with the weather. The user's id is user-1.", contexts: [weather]}}
metrics: [weather/context_retention]
plugins: [weather/ground-truth]
"""


def heard(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages if message.role != "tool" and message.text]


def test_the_history_that_metrics_see_is_what_the_model_was_told(tmp_path: Path) -> None:
    requests: list[ChatRequest] = []
    model = SimulatedModel()

    def respond(request: ChatRequest) -> ChatReply:
        requests.append(request)
        return model(request)

    project = Project(tmp_path)
    project.write(eval_yaml=CONFIG.format(dataset=json.dumps(str(EXAMPLE / "conversations.jsonl"))))
    with gateway(respond) as environ:
        flags = [flag for sample in CAPTURED for flag in ("--sample-id", sample)]
        outcome = project.run("eval.yaml", *flags, env=environ)

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    assert 2 * len(CAPTURED) == len(trials)
    for line in trials:
        sample, wire = SAMPLES[line["sample"]], {"gadk": "gemini", "ms": "openai-chat"}[line["agent"]]
        messages = tuple(Message(**message) for message in line["transcript"]["messages"])
        trial = Trial("t", sample, line["agent"], "c", 1, transcript=Transcript(messages))
        said, asked = [(message.role, message.text) for message in trial.history], ("user", trial.question)
        (told,) = {
            tuple(heard(request))
            for request in requests
            if request.wire == wire and (request.messages[-1].role, request.messages[-1].text) == asked
        }

        assert [*said, asked] == list(told)
        assert len(sample.history) + 2 * len(sample.turns) == len(said)
