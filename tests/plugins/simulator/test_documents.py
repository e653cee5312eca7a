"""The simulated model on documents: searching, opening what was found, and answering out of it."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatRequest, ChatTool
from keval_simulator.conversation import understand
from keval_simulator.documents import Passage, best_passages, findings, passages
from keval_simulator.model import SimulatedModel
from keval_simulator.replies import Flaws

TEXT = {"type": "string"}


def tool(name: str, *required: str) -> ChatTool:
    parameters = {"type": "object", "properties": dict.fromkeys(required, TEXT), "required": list(required)}
    return ChatTool(name, name.replace("_", " "), parameters)


SEARCH, READ = tool("search_docs", "query"), tool("read_page", "page")
FLAWLESS = Flaws(overlooks=0, clutches=0, misreads=0)
MODEL = SimulatedModel(seed=1, flaws=FLAWLESS, guesses=0, reads_on=1)
QUESTION = "How long are idle tunnels kept open?"
BOTH = "How many tunnels are open at a time, and how long is an idle one kept?"
HITS = (
    "page: tunnels\n\nAn idle tunnel is closed.\n\npage: limits\n\nThere are limits.\n\npage: words\n\nTunnel: a way."
)
DOCUMENT = """\
# Tunnels

A tunnel connects two machines. It is
encrypted.

## Limits

- An idle tunnel is kept open for 10 minutes.
- At most 5 tunnels are open at a time.

| option | default | meaning |
|---|---|---|
| `--idle` | 10m | how long an idle tunnel stays |

Open one by hand:

```
mole tunnel open backup.example
# and leave it
```

Trees grow.
"""


def calls(result: str, *tools: ChatTool, model: SimulatedModel = MODEL, question: str = QUESTION) -> list[list[Any]]:
    """The calls of every step, until the model answers."""
    messages = [ChatMessage("user", question)]
    made: list[list[Any]] = []
    while True:
        reply = model(ChatRequest("openai-chat", "m", tuple(messages), tools=tools))
        if not reply.calls:
            return made
        made.append([(call.name, *call.arguments.values()) for call in reply.calls])
        named = [attrs.evolve(call, id=f"{len(made)}-{at}") for at, call in enumerate(reply.calls)]
        messages.append(ChatMessage("assistant", calls=tuple(named)))
        messages += [ChatMessage("tool", result, call_id=call.id, name=call.name) for call in named]


@pytest.mark.parametrize(
    "result",
    [
        HITS,
        orjson.dumps({"result": HITS}).decode(),
        orjson.dumps([{"page": name, "snippet": "An idle tunnel."} for name in ("tunnels", "limits", "x")]).decode(),
        orjson.dumps({"hits": [{"page": name} for name in ("tunnels", "limits")]}).decode(),
    ],
)
def test_what_a_search_found_is_opened(result: str) -> None:
    searched = [("search_docs", "long idle tunnels kept open")]

    assert [searched, [("read_page", "tunnels"), ("read_page", "limits")]] == calls(result, SEARCH, READ)


def test_some_answer_from_what_the_search_shows() -> None:
    questions = [f"How long are idle tunnels number {number} kept open?" for number in range(100)]

    hasty = [len(calls(HITS, SEARCH, READ, model=SimulatedModel(), question=each)) == 1 for each in questions]

    assert 0.25 < sum(hasty) / 100 < 0.55


def test_a_page_is_not_guessed_where_it_can_be_searched_for() -> None:
    question = "What does the page on how to read tunnels say?"

    assert "search_docs" == calls(HITS, SEARCH, READ, question=question)[0][0][0]


@pytest.mark.parametrize("other", [tool("delete_page", "page"), tool("read_page", "page", "user"), tool("get_x", "id")])
def test_nothing_else_is_called_with_what_a_search_found(other: ChatTool) -> None:
    assert [["search_docs"]] == [[call[0] for call in step] for step in calls(HITS, SEARCH, other)]


def test_a_search_that_finds_nothing_is_the_end() -> None:
    assert 1 == len(calls("No section fits.", SEARCH, READ))


def test_a_document_is_cut_into_sentences_items_and_rows_with_their_headings_and_code() -> None:
    assert [
        Passage("A tunnel connects two machines.", "Tunnels"),
        Passage("It is encrypted.", "Tunnels", goes_on=True),
        Passage("An idle tunnel is kept open for 10 minutes.", "Tunnels Limits"),
        Passage("At most 5 tunnels are open at a time.", "Tunnels Limits"),
        Passage("`--idle`: 10m, how long an idle tunnel stays.", "Tunnels Limits"),
        Passage("Open one by hand:", "Tunnels Limits", "mole tunnel open backup.example\n# and leave it"),
        Passage("Trees grow.", "Tunnels Limits"),
    ] == passages(DOCUMENT)


def test_a_code_block_that_is_not_closed_is_one_to_the_end() -> None:
    assert [Passage("Run:", "", "mole dig")] == passages("Run:\n\n```\nmole dig")


def test_the_passages_that_answer_are_chosen_and_kept_in_order() -> None:
    found = passages(DOCUMENT)

    one, both = ([each.text for each in best_passages(found, asked, 2)] for asked in (QUESTION, BOTH))

    assert ["An idle tunnel is kept open for 10 minutes."] == one
    assert ["An idle tunnel is kept open for 10 minutes.", "At most 5 tunnels are open at a time."] == both


@pytest.mark.parametrize("question", ["Which colours do flags have?", "What does a support contract cost?"])
def test_documents_that_are_about_something_else_have_no_answer(question: str) -> None:
    assert [] == best_passages(passages(DOCUMENT), question, 4)


def answer(result: str, question: str = QUESTION, flaws: Flaws = FLAWLESS, seed: int = 0) -> str:
    call = ChatCall("search_docs", {"query": "x"}, "1")
    messages = (
        ChatMessage("user", question),
        ChatMessage("assistant", calls=(call,)),
        ChatMessage("tool", result, call_id="1"),
    )
    conversation = understand(ChatRequest("openai-chat", "m", messages))
    return findings(conversation.outcomes, conversation, Random(seed), flaws)


def test_commands_are_told_with_what_introduces_them() -> None:
    said = answer(DOCUMENT, "How do I open a tunnel by hand?")

    assert "Open one by hand:\n\n```\nmole tunnel open backup.example\n# and leave it\n```" in said
    assert "Trees" not in said


def test_what_two_results_have_is_told_once() -> None:
    said = answer(f"{DOCUMENT}\n\npage: tunnels\n\nAn idle tunnel is kept open for 10 minutes.")

    assert 1 == said.count("An idle tunnel is kept open for 10 minutes.")


def test_texts_in_records_are_read() -> None:
    said = answer(orjson.dumps([{"page": "limits", "text": "An idle tunnel is kept open for 10 minutes."}]).decode())

    assert "An idle tunnel is kept open for 10 minutes." in said


def test_it_says_so_when_nothing_answers_or_clutches_at_something() -> None:
    question = "What does a support contract cost?"

    honest, clutching = (answer(DOCUMENT, question, Flaws(clutches=rate)) for rate in (0.0, 1.0))

    assert "I could not find an answer to this in what I looked up." == honest
    assert "A tunnel connects two machines." in clutching


def test_it_overlooks_and_misreads_as_often_as_it_is_told_to() -> None:
    told = "An idle tunnel is kept open for 10 minutes."

    overlooking = [answer(DOCUMENT, BOTH, flaws=Flaws(overlooks=1, misreads=0), seed=seed) for seed in range(20)]
    misreading = [answer(DOCUMENT, flaws=Flaws(overlooks=0, misreads=1), seed=seed) for seed in range(20)]

    assert 0 < sum(told in each for each in overlooking) < 20
    assert all("is kept open for 1" in each and told not in each for each in misreading)
