"""The model with fixed replies, and the work that is compared with that of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import against_peers
import attrs
import pytest
from fixed_model import ANSWER, REASON, fixed_model, reply

SCHEMA = {
    "type": "object",
    "properties": {"reason": {"$ref": "#/$defs/text"}, "score": {"enum": [1, 5]}, "notes": {"type": "array"}},
    "$defs": {"text": {"type": "string"}},
}
TOOL = {"type": "function", "function": {"name": "grade", "parameters": SCHEMA}}
OWN = [peer for peer in against_peers.PEERS if not peer.packages]


def said(content: str, **options: Any) -> tuple[str, dict[str, Any]]:
    return reply({"messages": [{"role": "user", "content": content}], **options})


def test_a_question_gets_the_answer() -> None:
    assert said("Where is the key?") == ("answers", {"role": "assistant", "content": ANSWER})


def test_what_demands_a_form_gets_a_grade_in_it() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}

    by_schema = said("Is it right?", response_format=form)
    by_tool = said("Is it right?", tools=[TOOL], tool_choice="required")
    in_words = said("Is it right? End with GRADE: C or GRADE: I.")

    grade, arguments = by_schema[1]["content"], by_tool[1]["tool_calls"][0]["function"]["arguments"]
    assert ("grades", "grades", "grades") == (by_schema[0], by_tool[0], in_words[0])
    assert {"reason": REASON, "score": 5, "notes": []} == json.loads(grade) == json.loads(arguments)
    assert in_words[1]["content"].endswith("GRADE: C")


def test_a_tool_is_called_once() -> None:
    result = {"role": "tool", "content": "under the mat", "tool_call_id": "c"}

    assert said("Where?", tools=[TOOL])[0] == "calls"
    assert reply({"messages": [{"role": "user", "content": "Where?"}, result], "tools": [TOOL]})[0] == "answers"


@pytest.mark.slow
@pytest.mark.parametrize("peer", OWN, ids=lambda peer: peer.name)
def test_what_needs_no_other_packages_makes_two_calls_for_each_sample(
    peer: against_peers.Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-nobody")
    with fixed_model() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)

        against_peers.run(peer, tmp_path, url, 3)


@pytest.mark.slow
def test_a_peer_that_does_not_do_the_work_is_noticed(tmp_path: Path) -> None:
    idle = attrs.evolve(OWN[0], command=against_peers.own("-c", "pass"))

    with fixed_model() as url, pytest.raises(SystemExit, match=r"made \{\} of 3 calls of each kind"):
        against_peers.run(idle, tmp_path, url, 3)
