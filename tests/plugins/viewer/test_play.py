"""A play by HTTP: what the page shows, what its forms do, and the events that it follows."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from keval import open_run
from keval_viewer.play import Edit, Play, QuestionInput
from keval_viewer.play_page.session import PlaySession
from tests import hostile
from tests.conftest import Project
from tests.playing import Player, play_served, playing

TALKERS = """
agents:
  steady: {type: double/talker}
  weak: {type: double/talker, fails_at: break, hangs_at: hang}
conditions: {only: {system_prompt: Hello}}
metrics: [double/length]
dataset: {path: questions.jsonl}
"""
QUESTIONS = [
    {"id": "rain", "question": "Will it rain?", "answer": "No.", "kind": "sky"},
    {"id": "sun", "question": "Will it shine?", "kind": "sky"},
]


def write(folder: Path) -> Path:
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in QUESTIONS), encoding="utf-8")
    (folder / "talkers.yaml").write_text(TALKERS, encoding="utf-8")
    return folder / "talkers.yaml"


@pytest.fixture
def player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Player]:
    """Somebody who plays with two agents."""
    monkeypatch.chdir(tmp_path)
    with play_served(write(tmp_path), Path("results")) as running, playing(running) as found:
        yield found


def test_a_question_and_a_follow_up_are_answered_scored_and_kept_in_a_run(player: Player) -> None:
    assert (204, "") == player.act("ask", text=hostile.EVERYTHING, answer="golden", facts='{"likes": "rain"}')
    first = player.settled()
    player.act("ask", text="break")
    second = player.settled("no answer of weak/only")
    earlier = player.page("/play/questions/1/q1")

    said = html.escape(" ".join(hostile.EVERYTHING.split()), quote=False)[:60]
    assert "<script>window" not in first
    assert 3 <= " ".join(first.split()).replace("&#34;", '"').count(said)  # asked, and answered by two
    assert "it broke" in second
    assert "Ask it again" in second
    assert 'class="meter"' in earlier
    run = open_run("latest")
    assert {"steady/only/q1/1", "steady/only/q1.2/1", "weak/only/q1/1", "weak/only/q1.2/1"} == run.trial_ids()
    assert f"/runs/talkers/{run.id}/trials/steady%2Fonly%2Fq1%2F1" in first
    assert ("golden", {"likes": "rain"}) == (run.sample("q1").answer, run.sample("q1").facts)


def test_an_answer_is_formatted_when_it_is_at_its_end(player: Player) -> None:
    player.act("ask", text="a **good** `day`")
    page = player.settled()
    player.act("ask", text="hang")
    writing = player.settled("weak/only still answering")

    assert 2 == page.count('<div class="foreign markdown answer" dir="auto"><p>Hello a <strong>good</strong>')
    assert 2 == page.count('<div class="foreign text answer" dir="auto">Hello a **good** `day`</div>')
    assert "data-writing" not in page
    assert "data-writing" in writing


def test_events_go_on_where_a_connection_was_lost(player: Player) -> None:
    player.act("ask", text="one")
    player.settled()

    events = [*takewhile(lambda event: event[1].get("what") != "scored", player.events())]
    _, _, last = events[5]
    again = next(player.events(after=last))

    text = [data["text"] for name, data, _ in events if name == "text" and data["trial"].startswith("steady")]
    assert "Hello one" == "".join(text)
    assert [*range(len(events))] == [number for _, _, number in events]
    assert again == events[6]


def test_stop_ends_the_answers_in_flight_alone(player: Player) -> None:
    player.act("ask", text="hang")
    for _, data, _ in player.events():
        if data.get("what") == "said" and "Let me think." in player.page():
            break
    refused = player.act("ask", text="another")
    player.act("stop")
    page = player.settled("no answer of weak/only")

    assert (409, True) == (refused[0], "still being answered" in refused[1])
    assert "Stopped." in page
    assert "Let me think." in page
    assert {"agent: stopped": 1} == open_run("latest").summary().trials[1].failures


def test_columns_are_switched_and_samples_chosen(player: Player) -> None:
    player.act("switch", switch="agent off weak")
    listed = player.page("/play/samples?search=sky+shine")
    player.act("ask", sample="rain")
    page = player.settled()
    player.act("new")
    after = player.page()

    assert ("Will it shine?" in listed, "Will it rain?" in listed) == (True, False)
    assert 'value="agent on weak"' in page
    assert "golden answer:" in page
    assert ["steady/only/rain/1"] == [*open_run("latest").trial_ids()]
    assert "a new conversation begins" in after


def test_an_edit_is_shown_as_a_difference_and_the_conversation_asked_again(player: Player) -> None:
    player.act("ask", text="one")
    player.settled()
    nothing = player.act("edit", condition="only", system_prompt="Hello\r\n")
    wrong = player.act("edit", condition="only", system_prompt="{% if", again="on")
    player.act("edit", condition="only", system_prompt="Goodbye", name="bye", again="on")
    page = player.settled()
    yaml = player.page("/play/conditions/bye")

    assert (409, True) == (nothing[0], "nothing was changed" in nothing[1])
    assert (409, True) == (wrong[0], "the template is not valid" in wrong[1])
    assert "<del>Hello</del> <ins>Goodbye</ins>" in page
    assert "Goodbye one" in page
    assert "before an edit" in page
    assert "bye:\n    system_prompt: Goodbye" in yaml
    assert 2 == len([*Path("results").rglob("manifest.json")])
    assert "Hello one" in player.page("/play/questions/1/q1")


def test_an_edit_asks_the_whole_conversation_again_though_a_column_is_asked_again_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)

    async def play() -> list[tuple[str, list[str]]]:
        async with asyncio.timeout(10), Play.open("talkers.yaml") as play, PlaySession.of(play) as session:
            for text in ("one", "two", "three"):
                await play.ask(text)
            play.switch("weak/only", on=False)
            await session.edit(Edit(condition="only", system_prompt="Goodbye"), again=True)
            await session.ask_again("weak/only")
            async for _ in play.feed.read(0):
                if len(play.questions) == 3 and not play.is_answering:
                    break
            return [(question.text, [answer.column for answer in question.answers]) for question in play.questions]

    assert [("one", ["steady/only", "weak/only"]), ("two", ["steady/only"]), ("three", ["steady/only"])] == (
        asyncio.run(play())
    )


@pytest.mark.parametrize("stopped_by", ["stop", "stop of the only column", "new"])
def test_a_stop_also_ends_what_an_edit_was_to_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_by: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)

    async def until_weak_hangs_alone(play: Play) -> None:
        async for _ in play.feed.read(0):
            if not play.columns[0].is_answering:
                break

    async def play() -> list[tuple[str, int]]:
        async with asyncio.timeout(10), Play.open("talkers.yaml") as play, PlaySession.of(play) as session:
            await session.ask(QuestionInput("hang"))
            await until_weak_hangs_alone(play)
            await play.stop("weak/only")
            await play.ask("two")
            play.switch("steady/only", on=stopped_by != "stop of the only column")
            await session.edit(Edit(condition="only", system_prompt="Goodbye"), again=True)
            await until_weak_hangs_alone(play)
            match stopped_by:
                case "stop":
                    await session.stop()
                case "new":
                    await session.new_conversation()
                case _:
                    await play.stop("weak/only")
            assert session._settling is not None
            await session._settling
            return [(question.text, question.conversation) for question in play.questions]

    assert [("hang", 1)] == asyncio.run(play())


def test_a_question_is_kept_as_a_sample_beside_the_config_and_nowhere_else(player: Player) -> None:
    player.act("ask", text="one", answer="uno")
    player.settled()
    kept = player.client.post("/play/keep", data={"question": "q1"}, headers={"origin": player.origin})
    elsewhere = player.client.post(
        "/play/keep", data={"question": "q1", "path": "../../other.jsonl"}, headers={"origin": player.origin}
    )

    lines = Path("questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert "Kept as <bdi>q1</bdi>" in kept.text
    assert ["rain", "sun", "q1"] == [json.loads(line)["id"] for line in lines]
    assert (409, True) == (elsewhere.status_code, "name a file there" in elsewhere.text)


def test_what_cannot_be_asked_is_said(player: Player) -> None:
    assert (409, "there is no question; write one, or choose a sample") == player.act("ask", text=" ")
    assert (409, True) == ((told := player.act("ask", sample="snow"))[0], "snow" in told[1])
    assert (409, True) == ((told := player.act("ask", text="one", facts="[]"))[0], "not a mapping" in told[1])
    assert (409, "there is no agent 'nobody'") == player.act("switch", switch="agent off nobody")
    assert 404 == player.client.get("/play/questions/1/q9").status_code
    assert 404 == player.client.get("/play/conditions/nothing").status_code
    assert 404 == player.act("dance")[0]
    without_script = player.client.post(
        "/play/ask", data={"text": "one"}, headers={"origin": player.origin, "accept": "text/html"}
    )
    assert "Asked" not in without_script.text
    assert str(without_script.url).endswith("/")


def test_a_config_that_is_wrong_is_told_before_anything_is_served(project: Project) -> None:
    project.write(eval_yaml="agents: {nobody: {}}\nconditions: {only: {}}\n")

    outcome = project.keval("play", "eval.yaml", "--no-browser")

    assert (2, True) == (outcome.code, "nobody" in outcome.stderr)
