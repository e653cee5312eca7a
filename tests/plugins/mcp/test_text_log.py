"""Whether a model saw a text is read off its requests, in each of the four protocols."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from keval.plugin import GivenText
from keval_mcp.text_log import FollowedTexts, SoughtText
from keval_skills.changes import scrambled
from tests.plugins.skills.folders import PDF_BODY

TABLES = """
# Tables

Count the rows of a table before you sort "any" of its columns.
Größen stehen in der letzten Spalte, in <mm>.
"""
ASKED = "Fill the form."
PDF, DOCX = (GivenText(name, "skill", ".claude/skills", "0") for name in ("pdf", "docx"))
AGENTS = GivenText("agents", "instructions", "AGENTS.md", "0")


def follow(*texts: tuple[GivenText, str]) -> FollowedTexts:
    return FollowedTexts.of([(given, body, "Fills PDF forms.") for given, body in texts])


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.splitlines(), start=1))


def chat(tool: str, arguments: Any, result: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    other = {"id": "c2", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    return {
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": None, "tool_calls": [call, other]},
            {"role": "tool", "tool_call_id": "c2", "content": "done"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": result}]},
        ]
    }


def responses(tool: str, arguments: Any, result: str) -> dict[str, Any]:
    return {
        "instructions": "You help.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
            {"type": "function_call", "call_id": "c1", "name": tool, "arguments": json.dumps(arguments)},
            {"type": "function_call", "call_id": "c2", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": result},
        ],
    }


def anthropic(tool: str, arguments: Any, result: str) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "c1", "name": tool, "input": arguments}
    other = {"type": "tool_use", "id": "c2", "name": "shell", "input": {}}
    answered = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": result}]}
    return {
        "messages": [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": [use, other]},
            {"role": "user", "content": [answered, {"type": "tool_result", "tool_use_id": "c2", "content": "done"}]},
        ],
        "system": [{"type": "text", "text": "You help."}],
    }


def gemini(tool: str, arguments: Any, result: str) -> dict[str, Any]:
    calls = [{"functionCall": {"name": tool, "args": arguments}}, {"functionCall": {"name": "shell", "args": {}}}]
    return {
        "systemInstruction": {"parts": [{"text": "You help."}]},
        "contents": [
            {"role": "user", "parts": [{"text": ASKED}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": result}}}]},
        ],
    }


PROTOCOLS = {"chat": chat, "responses": responses, "anthropic": anthropic, "gemini": gemini}
SHOWN: dict[str, Callable[[str], str]] = {
    "whole": lambda text: text,
    "numbered": numbered,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "wrapped": lambda text: f"<skill_content>\n{text}\n</skill_content>\n<files/>",
    "json": lambda text: json.dumps({"content": text, "mime": "text/markdown"}),
    "cut": lambda text: text[: text.rindex("\n", 0, -1)] + "\n[truncated]",
}


@pytest.mark.parametrize("how", SHOWN)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_skill_is_read_by_the_call_whose_result_has_it(protocol: str, how: str) -> None:
    log = follow((PDF, PDF_BODY), (DOCX, TABLES))
    write = PROTOCOLS[protocol]

    for number, ascii_only in ((1, True), (2, False)):
        body = (PDF_BODY, TABLES)[number - 1]
        request = write("read_skill", {"name": "pdf"}, SHOWN[how](body))
        log.saw(json.dumps(write("shell", {}, "Fills PDF forms.")).encode(), 0, 0.5)
        log.saw(json.dumps(request, ensure_ascii=ascii_only).encode(), number, 1.5 * number)

    read = [(each.name, each.read, each.model_call, each.by, each.at) for each in log.texts()]
    assert [("pdf", True, 1, "read_skill", 1.5), ("docx", True, 2, "read_skill", 3.0)] == read


def test_a_skill_that_is_shown_after_a_call_is_read_by_that() -> None:
    request = anthropic("Skill", {"skill": "pdf"}, "Launching skill: pdf")
    shown = {"role": "user", "content": [{"type": "text", "text": f"Base directory: /x/pdf\n{PDF_BODY}"}]}
    request["messages"].append(shown)
    log = follow((PDF, PDF_BODY))

    log.saw(json.dumps(request).encode(), 3, None)

    (read,) = log.texts()
    assert attrs.evolve(PDF, read=True, model_call=3, by="Skill") == read


def test_instructions_are_in_the_request_without_a_call() -> None:
    request = PROTOCOLS["anthropic"]("shell", {}, "done")
    request["system"][0]["text"] += PDF_BODY
    later = PROTOCOLS["chat"]("shell", {"command": "cat AGENTS.md"}, "done")
    later["messages"].insert(3, {"role": "user", "content": f"<AGENTS.md>{PDF_BODY}</AGENTS.md>"})

    for each in (request, later):
        log = follow((AGENTS, PDF_BODY))
        log.saw(json.dumps(each).encode(), 1, 0.0)
        assert (attrs.evolve(AGENTS, read=True, model_call=1),) == log.texts()


@pytest.mark.parametrize(
    "result",
    [
        "Fills PDF forms.",
        PDF_BODY.splitlines()[3],
        "Run `scripts/fields.py`",
        scrambled(PDF_BODY),
        TABLES,
        "",
    ],
)
def test_less_than_half_of_a_text_is_not_the_text(result: str) -> None:
    log = follow((PDF, f"{PDF_BODY}Fills PDF forms.\n"))

    for number, write in enumerate(PROTOCOLS.values(), start=1):
        log.saw(json.dumps(write("read", {"path": "pdf"}, result)).encode(), number, 1.0)

    assert (PDF,) == log.texts()


def test_the_halves_of_a_text_in_two_strings_are_not_the_text() -> None:
    _, _, _, first, _, second, third = PDF_BODY.splitlines()
    request = chat("grep", {}, first)
    request["messages"] += [{"role": "user", "content": line} for line in (second, third)]
    log = follow((PDF, PDF_BODY))

    log.saw(json.dumps(request).encode(), 1, 1.0)
    log.saw(b'{"messages": [' + PDF_BODY.encode(), 2, 1.0)

    assert (PDF,) == log.texts()


def test_placebos_are_followed_by_their_own_words_and_equal_texts_by_their_names() -> None:
    placebo = scrambled(PDF_BODY)
    log = follow((PDF, placebo))
    log.saw(json.dumps(chat("read_skill", {}, PDF_BODY)).encode(), 1, 1.0)
    log.saw(json.dumps(chat("read_skill", {}, placebo)).encode(), 2, 2.0)
    fixed = follow((PDF, "Do nothing."), (DOCX, "Do nothing."))
    fixed.saw(json.dumps(chat("read_skill", {"name": "docx"}, "Skill docx\n\nDo nothing.")).encode(), 1, 1.0)

    assert [2] == [each.model_call for each in log.texts()]
    assert [False, True] == [each.read for each in fixed.texts()]


def test_a_text_that_two_skills_share_in_part_tells_neither() -> None:
    common = "Follow the house rules for documents, all of them, always.\n"
    log = follow((PDF, common + "Forms have fields.\n"), (DOCX, common + "Letters have a greeting.\n"))

    log.saw(json.dumps(chat("read", {}, common + "Letters have a greeting.\n")).encode(), 1, 1.0)

    assert [("pdf", False), ("docx", True)] == [(each.name, each.read) for each in log.texts()]


@pytest.mark.parametrize("body", ["填写表格之前先数一数行数。", "先数 行数", "🦜🦜"])
def test_a_request_without_a_text_in_another_script_is_not_parsed(body: str) -> None:
    sought = SoughtText.of(PDF, body)
    within = [
        json.dumps(chat("read", {}, text), ensure_ascii=ascii_only).encode()
        for ascii_only in (True, False)
        for text in (body, json.dumps({"content": body}))
    ]
    without = json.dumps(chat("read", {}, "列 1"), ensure_ascii=False).encode()

    assert [True] * 4 == [sought.may_be_in(request) for request in within]
    assert not sought.may_be_in(without)


def test_a_long_conversation_takes_memory_by_its_length() -> None:
    request = anthropic("read", {"path": "pdf"}, PDF_BODY)
    uses = [{"type": "tool_use", "id": f"u{number}", "name": "shell", "input": {}} for number in range(1_000)]
    request["messages"].insert(1, {"role": "assistant", "content": uses})
    written, log = json.dumps(request).encode(), follow((PDF, PDF_BODY))

    tracemalloc.start()
    log.saw(written, 1, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [("read", True)] == [(each.by, each.read) for each in log.texts()]
    assert peak < 50 * len(written), f"{peak:,} bytes for a request of {len(written):,}"
