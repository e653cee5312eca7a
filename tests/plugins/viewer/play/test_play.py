"""Plays: columns that are asked side by side, and the run that they leave."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from keval import Run, Usage, open_run
from keval.seams.live_events import EventKind
from keval_viewer.play import Play, PlayError, Question, QuestionInput, Standings
from tests.conftest import Project
from tests.reviewing import review

T = TypeVar("T")

TALKERS = """
agents:
  steady: {type: double/talker}
  weak: {type: double/talker, fails_at: break, hangs_at: hang}
conditions: {only: {}}
metrics: [double/length]
"""


def played(config: str, work: Callable[[Play], Awaitable[T]], **options: object) -> T:
    """Open a play of a config in the working directory, and return what is made of it."""

    Path("eval.yaml").write_text(config, encoding="utf-8")

    async def play() -> T:
        async with Play.open("eval.yaml", **options) as found:  # type: ignore[arg-type]
            return await work(found)

    return asyncio.run(play())


def test_loopback_needs_no_proxy_whatever_client_a_function_uses(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, {"HTTP_PROXY": "http://127.0.0.1:9"}.get(name, ""))
    project.write(told_py="import os\n\n\ndef answer(question):\n    return os.environ['NO_PROXY']\n")

    async def ask(play: Play) -> list[str | None]:
        asked = await play.ask("Which hosts need no proxy?")
        return [answer.record.output for answer in asked.answers if answer.record is not None]

    assert ["127.0.0.1,localhost,::1"] == played("agents: {mine: {type: python, target: told.py:answer}}", ask)


def states(question: Question) -> dict[str, str]:
    return {answer.trial: answer.state for answer in question.answers}


def test_columns_answer_and_are_scored_and_remember_until_a_new_conversation(project: Project) -> None:
    async def talk(play: Play) -> tuple[list[Question], Standings]:
        await play.ask("one")
        await play.ask("two")
        await play.new_conversation()
        await play.ask("three")
        return [*play.questions], play.standings()

    questions, standings = played(TALKERS, talk)

    said = [(each.id, each.conversation, each.turn, [answer.text for answer in each.answers]) for each in questions]
    assert [
        ("q1", 1, 0, ["one", "one"]),
        ("q1.2", 1, 1, ["one two", "one two"]),
        ("q2", 2, 0, ["three", "three"]),
    ] == said
    assert [0.03, 0.07, 0.05] == [each.answers[0].scores[0].score.value for each in questions]
    assert {"done"} == {state for each in questions for state in states(each).values()}
    assert ("steady/only/q1.2/1", ("two",)) == (questions[1].answers[0].trial, questions[1].sample.turns)
    assert (3, "steady/only") == (standings.questions, standings.against)
    assert [("weak", "only", 3, "agent")] == [(e.agent, e.condition, e.n, e.kind) for e in standings.differences]
    assert [arm.mean for arm in open_run("latest").summary().arms] == [arm.mean for arm in standings.arms]


def test_a_play_leaves_a_run_that_every_command_reads(project: Project) -> None:
    async def talk(play: Play) -> None:
        await play.ask(QuestionInput("one", answer="uno"))
        await play.ask("two")
        run = Run(project.run_directory())
        run.reviews_file.append([review(run, "weak/only/q1/1", note="good")])

    played(TALKERS, talk)

    assert 1 == project.read("summary.json")["reviews"]["answers"]
    listed = project.keval("list", "--json").data[0]
    assert ("done", 4, 0) == (listed["state"], listed["trials"], listed["failed"])
    report = project.keval("report", "latest", "--json").data
    assert [(2, 0.05), (2, 0.05)] == [(arm["n"], arm["mean"]) for arm in report["arms"]]
    assert "PLAY: a person asked the questions" in project.keval("report", "latest").stdout
    assert "questions  2, asked by a person" in project.keval("show", "latest").stdout
    shown = project.keval("show", "latest", "--trial", "weak/only/q1.2/1").stdout
    assert "one two" in shown
    again = project.keval("score", "latest", "--metric", "double/neutral")
    assert 0 == again.code, again.stderr
    assert {"double/length", "double/neutral"} == {line["metric"] for line in project.lines("scores.jsonl")}
    refused = project.keval("resume", "latest")
    assert (True, 2) == ("is a play, whose questions" in refused.stderr, refused.code)
    assert ["uno", None] == [line["answer"] for line in project.lines("samples.jsonl")]


def test_each_turn_is_counted_once(project: Project) -> None:
    async def talk(play: Play) -> None:
        for text in ("one", "two", "three"):
            await play.ask(text)

    played(TALKERS, talk)

    run = open_run("latest")
    last = run.trial("steady/only/q1.3/1").transcript
    assert last is not None
    assert (2, 1, Usage(10, 5), 3) == (last.carried, last.model_calls, last.usage, len(last.turn_durations))
    assert last.turn_durations[2] == last.duration
    assert ["one", "one", "two", "one two", "three", "one two three"] == [message.text for message in last.messages]
    total = run.summary().trials[0]
    assert (3, 3, 30) == (total.trials, total.model_calls, total.usage.input_tokens)


def test_the_failure_of_one_column_is_its_own(project: Project) -> None:
    async def talk(play: Play) -> tuple[list[Question], list[bool]]:
        await play.ask("one")
        await play.ask("break")
        level = [column.is_level for column in play.columns]
        await play.ask("two")
        return [*play.questions], level

    questions, level = played(TALKERS, talk)

    assert {"steady/only/q1.2/1": "done", "weak/only/q1.2/1": "failed"} == states(questions[1])
    assert "it broke" == questions[1].answers[1].problem
    assert [True, False] == level
    assert {"steady/only/q1.3/1": "done"} == states(questions[2])
    assert {"agent: told": 1} == open_run("latest").summary().trials[1].failures


def test_a_column_is_asked_again_from_the_first_question(project: Project) -> None:
    async def talk(play: Play) -> list[Question]:
        play.switch("weak/only", on=False)
        await play.ask("one")
        await play.ask("two")
        play.switch("weak/only", on=True)
        await play.ask("three")
        await play.ask_again("weak/only")
        await play.settle()
        await play.ask_again("steady/only")
        await play.settle()
        await play.ask("four")
        return [*play.questions]

    questions = played(TALKERS, talk)

    expected = ["steady/only/q1.3/1", "weak/only/q1.3/1", "steady/only/q1.3/2"]
    assert expected == [answer.trial for answer in questions[2].answers]
    assert ["one two three four"] * 2 == [answer.text for answer in questions[3].answers]


def test_stop_keeps_what_was_said_and_what_it_cost(project: Project) -> None:
    async def talk(play: Play) -> Question:
        question = await play.begin(QuestionInput("hang"))
        with pytest.raises(PlayError, match="still being answered"):
            await play.begin(QuestionInput("more"))
        wanted = {("trial_finished", "steady/only/q1/1"), ("said", "weak/only/q1/1")}
        async for _, event, _ in play.feed.read():
            wanted.discard((event.kind, event.trial))
            if not wanted:
                break
        assert play.is_answering
        await play.stop()
        assert not play.is_answering
        await play.settle()
        return next(each for each in play.questions if each.id == question.id)

    question = played(TALKERS, talk)

    assert {"steady/only/q1/1": "done", "weak/only/q1/1": "stopped"} == states(question)
    trial = open_run("latest").trial("weak/only/q1/1")
    assert trial.failure is not None
    assert trial.transcript is not None
    assert ("stopped", "Let me think.") == (trial.failure.kind, trial.transcript.messages[-1].text)


def test_an_answer_that_does_not_come_in_time_is_a_failure(project: Project) -> None:
    async def talk(play: Play) -> Question:
        return await play.ask("hang")

    question = played(f"{TALKERS}execution: {{timeout_seconds: 0.05}}\n", talk)

    assert {"steady/only/q1/1": "done", "weak/only/q1/1": "failed"} == states(question)
    assert "no answer within 0.05 s" == question.answers[1].problem


def test_a_used_up_budget_leaves_columns_out_and_then_takes_no_question(project: Project) -> None:
    async def talk(play: Play) -> list[Question]:
        await play.ask("one")
        await play.ask("two")
        with pytest.raises(PlayError, match="3 of 3 trials"):
            await play.ask("three")
        return [*play.questions]

    questions = played(f"{TALKERS}budget: {{trials: 3}}\n", talk)

    assert {"steady/only/q1.2/1": "done", "weak/only/q1.2/1": "left_out"} == states(questions[1])
    # Told while the third trial is in flight.
    assert "budget used: 3 of 3 trials (--budget sets another)" == questions[1].answers[1].problem
    assert 2 == len(questions)
    manifest = open_run("latest").manifest
    assert (3, "budget used: 3 of 3 trials (--budget sets another)") == (manifest.trials, manifest.stopped)


def test_events_tell_everything_as_it_happens_and_a_reader_can_begin_at_an_answer(project: Project) -> None:
    async def talk(play: Play) -> tuple[list[EventKind], list[str]]:
        await play.ask("one")
        question = await play.ask("two")
        since = question.answers[0].since
        play.feed.close()
        told = [event async for _, event, _ in play.feed.read(since)]
        first = [each.kind for each in told if each.trial == question.answers[0].trial]
        return first, [str(each.data["text"]) for each in told if each.kind == "text_streamed"]

    kinds, pieces = played(TALKERS, talk)

    streamed = ["text_streamed"] * 2
    assert ["trial_started", "turn_started", *streamed, "model_called", "said", "trial_finished", "scored"] == kinds
    assert ["one", " two"] == pieces[:2]


JUDGED = """
agents: {steady: {type: double/talker}}
conditions: {only: {}}
metrics: [double/length]
judges: {strict: {level: 3}}
rubrics: [double/brevity]
"""


def test_judges_grade_after_the_metrics(project: Project) -> None:
    async def talk(play: Play) -> tuple[Question, list[tuple[str, str | None]]]:
        question = await play.ask("one")
        play.feed.close()
        told = [event async for _, event, _ in play.feed.read()]
        return question, [(each.data["metric"], each.data["judge"]) for each in told if each.kind == "scored"]

    question, scored = played(JUDGED, talk)

    assert [("double/length", None), ("double/brevity", "strict")] == scored
    assert [0.03, 3.0] == [line.score.value for line in question.answers[0].scores]


def test_a_judge_that_would_slow_agents_down_waits_for_all_columns(project: Project) -> None:
    agents = "agents: {quick: {type: double/talker}, slow: {type: double/talker, delay: 0.1}}"
    config = JUDGED.replace("agents: {steady: {type: double/talker}}", agents) + "budget: {tokens: 1000}\n"

    async def talk(play: Play) -> list[tuple[str, str]]:
        await play.ask("one")
        play.feed.close()
        told = [event async for _, event, _ in play.feed.read()]
        kinds = ("trial_finished", "scored")
        return [(each.kind, str(each.data.get("judge"))) for each in told if each.kind in kinds]

    finished, scored, judged = ("trial_finished", "None"), ("scored", "None"), ("scored", "strict")
    told = played(config, talk)
    assert [finished, scored, finished] == told[:3]
    assert 2 == told[3:].count(judged)


FACTS = """
agents:
  steady: {type: double/talker}
  other: {type: double/talker}
conditions: {only: {system_prompt: "{{ facts.user }}:"}}
metrics: [double/uses_fact]
plugins: [double/facts]
"""


def test_facts_are_looked_up_once_and_no_prompt_shows_them(project: Project) -> None:
    async def talk(play: Play) -> list[Question]:
        missing = await play.ask("sun")
        await play.new_conversation()
        await play.ask(QuestionInput("sun", facts={"user": "Ada"}))
        follow_up = await play.ask("rain")
        return [missing, follow_up]

    missing, follow_up = played(FACTS, talk)

    assert ["failed", "failed"] == [*states(missing).values()]
    assert "add the missing facts or metadata to the question" in missing.answers[0].problem
    assert ({"user": "Ada", "truth": "sun"}, ("truth",)) == (follow_up.sample.facts, follow_up.sample.withheld)
    assert ["Ada: sun rain"] * 2 == [answer.text for answer in follow_up.answers]
    assert [1.0] * 2 == [answer.scores[0].score.value for answer in follow_up.answers]


def test_a_sample_of_the_dataset_brings_its_turns_and_begins_a_conversation(project: Project) -> None:
    project.write(
        questions_jsonl="""
        {"id": "q1", "question": "a", "turns": ["b"], "answer": "ab", "metadata": {"kind": "letters"}}
        {"id": "z", "question": "z"}
        """
    )

    async def talk(play: Play) -> list[Question]:
        await play.ask("free")
        await play.ask(QuestionInput(sample="q1"))
        await play.ask("c")
        await play.ask(QuestionInput(sample="q1"))
        await play.ask("d")
        with pytest.raises(PlayError, match="no sample has the id 'y'"):
            await play.ask(QuestionInput(sample="y"))
        return [*play.questions]

    questions = played(f"{TALKERS}dataset: {{path: questions.jsonl}}\n", talk)

    ids = [(each.id, each.answers[0].trial, each.answers[0].text) for each in questions]
    assert [
        ("q2", "steady/only/q2/1", "free"),
        ("q1", "steady/only/q1/1", "a b"),
        ("q1.2", "steady/only/q1.2/1", "a b c"),
        ("q1", "steady/only/q1/2", "a b"),
        ("q1.2-2", "steady/only/q1.2-2/1", "a b d"),
    ] == ids
    assert ("ab", {"kind": "letters"}) == (questions[1].sample.answer, questions[1].sample.metadata)
    assert ["q2", "q1", "q1.2", "q1.2-2"] == [line["id"] for line in project.lines("samples.jsonl")]
    assert 10 == open_run("latest").summary().planned


def test_what_was_answered_is_there_after_an_interruption_and_after_the_end_of_the_process(project: Project) -> None:
    async def talk(play: Play) -> None:
        await play.ask("one")
        shutil.copytree(play.run.path, "killed/eval/run")  # as a process that is killed now leaves it
        await play.begin(QuestionInput("hang"))
        current = asyncio.current_task()
        assert current is not None
        current.cancel()  # as Ctrl-C does
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        played(TALKERS, talk)

    killed = project.keval("report", "killed/eval/run", "--json").data
    assert [0.03, 0.03] == [arm["mean"] for arm in killed["arms"]]
    summary = open_run("latest").written_summary()
    assert summary is not None
    assert [("steady", 2, 1), ("weak", 2, 1)] == [(arm.agent, arm.trials, arm.failed) for arm in summary.trials]


def test_no_secret_is_told_or_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-12345678"
    monkeypatch.setenv("A_TOKEN", secret)

    async def talk(play: Play) -> tuple[Question, str]:
        question = await play.ask(f"Is it {secret}?")
        play.feed.close()
        return question, "".join([str(event.data) async for _, event, _ in play.feed.read()])

    config = TALKERS.replace("only: {}", "only: {system_prompt: '${A_TOKEN}'}")
    question, events = played(config, talk)

    assert "[secret] Is it [secret]?" == question.answers[0].text
    written = "".join(path.read_text() for path in Path("results").rglob("*.json*"))
    assert [False] * 3 == [secret in told for told in (repr(question), events, written)]


def test_a_play_in_which_nothing_was_asked_leaves_nothing(project: Project) -> None:
    async def look(play: Play) -> int:
        with pytest.raises(PlayError, match="no question"):
            await play.ask(" ")
        return len(play.columns)

    assert 2 == played(TALKERS, look)
    assert [] == [*Path().rglob("results*")]


def test_what_cannot_be_opened_is_explained(project: Project) -> None:
    async def nothing(play: Play) -> None:
        raise AssertionError

    with pytest.raises(PlayError, match="no column 'steady/onyl'; did you mean 'steady/only'"):
        played(TALKERS, nothing, only=["steady/onyl"])


def test_an_agent_that_holds_no_conversation_is_asked_the_whole_of_it(project: Project) -> None:
    async def talk(play: Play) -> tuple[bool, Question]:
        await play.ask("one")
        return play.columns[0].remembers, await play.ask("two")

    remembers, question = played("agents: {scripted: {}}\nconditions: {only: {}}\n", talk)

    assert not remembers
    record = question.answers[0].record
    assert record is not None
    assert record.transcript is not None
    assert (["one", "one", "two", "two"], 0) == (
        [message.text for message in record.transcript.messages],
        record.transcript.carried,
    )
    assert json.loads((open_run("latest").path / "samples.jsonl").read_text().splitlines()[1])["turns"] == ["two"]
