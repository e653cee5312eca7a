"""The simulated model on documents: searching, opening what was found, and answering out of it."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatRequest
from keval_simulator.answers import Flaws, composed
from keval_simulator.conversation import understand
from keval_simulator.documents import Passage, best_passages, passages
from tests.plugins.simulator.made_up import PERFECT, TEXT, talk, tool

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


@pytest.mark.parametrize(
    "result",
    [
        HITS,
        orjson.dumps({"result": HITS}).decode(),
        orjson.dumps([{"page": name, "snippet": "A tunnel."} for name in ("tunnels", "limits", "x")]).decode(),
        orjson.dumps({"hits": [{"page": name} for name in ("tunnels", "limits")]}).decode(),
    ],
)
def test_what_a_search_found_is_opened_until_it_answers(result: str) -> None:
    pages = {"tunnels": "# Tunnels\n\nA tunnel is a way.", "limits": DOCUMENT}
    tools = [
        tool(lambda query: result, "search_docs", "Search the docs.", {"query": TEXT}, "query"),
        tool(lambda page: pages[page], "read_page", "Read a page.", {"page": TEXT}, "page"),
    ]

    said = talk(tools, "How many minutes are idle tunnels kept open?")

    assert ("search_docs", {"query": "minutes idle tunnels kept open"}) == said.calls[0]
    assert {"read_page"} == {name for name, _ in said.calls[1:]}
    assert "10 minutes" in said.answer


def test_a_search_that_shows_the_answer_is_the_end() -> None:
    tools = [
        tool(lambda query: DOCUMENT, "search_docs", "Search the docs.", {"query": TEXT}, "query"),
        tool(lambda page: DOCUMENT, "read_page", "Read a page.", {"page": TEXT}, "page"),
    ]

    assert ["search_docs"] == [name for name, _ in talk(tools, QUESTION).calls]


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


def answer(result: str, question: str = QUESTION, flaws: Flaws = PERFECT, seed: int = 0) -> str:
    call = ChatCall("search_docs", {"query": "x"}, "1")
    messages = (
        ChatMessage("user", question),
        ChatMessage("assistant", calls=(call,)),
        ChatMessage("tool", result, call_id="1"),
    )
    conversation = understand(ChatRequest("openai-chat", "m", messages))
    return composed(conversation, Random(seed), flaws)


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
