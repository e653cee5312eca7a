"""A transcript keeps tool calls apart from its messages; the export puts them where they were made."""

from __future__ import annotations

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval_exports.eee.rows import conversation


def told(*messages: Message, calls: tuple[ToolCall, ...]) -> list[object]:
    """Who says what, and of messages with calls which, by their ids."""
    trial = Trial("t", Sample("s", "Why?"), "a", "c", 1, Transcript(messages, calls))
    return [
        tuple(call["id"] for call in message["tool_calls"])
        if "tool_calls" in message
        else (message["role"], *message.get("tool_call_id", ()), message["content"])
        for message in conversation(trial)
    ]


def user(text: str, turn: int = 0) -> Message:
    return Message("user", text, turn)


def assistant(text: str, turn: int = 0) -> Message:
    return Message("assistant", text, turn)


def tool(text: str, turn: int = 0) -> Message:
    return Message("tool", text, turn)


def call(id: str, result: str | None = None, *, model_call: int | None = None, turn: int = 0) -> ToolCall:
    return ToolCall("find", result=result, id=id, model_call=model_call, turn=turn)


def test_calls_of_one_model_call_are_asked_for_together() -> None:
    calls = (call("x", "1", model_call=1), call("y", "2", model_call=1), call("z", "3", model_call=2))

    said = told(user("Why?"), tool("2"), tool("1"), assistant("Hm."), tool("3"), assistant("So."), calls=calls)

    assert [
        ("user", "Why?"),
        ("x", "y"),
        ("tool", "x", "1"),
        ("tool", "y", "2"),
        ("assistant", "Hm."),
        ("z",),
        ("tool", "z", "3"),
        ("assistant", "So."),
    ] == said


def test_calls_of_unknown_model_calls_are_asked_for_one_by_one() -> None:
    said = told(user("Why?"), tool("1"), tool("2"), assistant("So."), calls=(call("x", "1"), call("y", "2")))

    assert [("user", "Why?"), ("x",), ("tool", "x", "1"), ("y",), ("tool", "y", "2"), ("assistant", "So.")] == said


def test_what_came_back_is_told_as_it_came_back_where_it_ran() -> None:
    said = told(user("Why?"), tool("{1}"), assistant("So."), calls=(call("x", "{\n1\n}"),))

    assert ("tool", "x", "{\n1\n}") in said


def test_a_call_that_never_came_back_is_told_before_the_answer() -> None:
    calls = (call("lost", model_call=1), call("x", "1", model_call=1), call("alone"))

    said = told(user("Why?"), tool("1"), assistant("So."), calls=calls)

    assert [("user", "Why?"), ("lost", "x"), ("tool", "x", "1"), ("alone",), ("assistant", "So.")] == said


def test_a_call_that_no_message_tells_of_is_told_before_the_answer() -> None:
    said = told(user("Why?"), assistant("Hm."), assistant("So."), calls=(call("x", "1"),))

    assert [("user", "Why?"), ("assistant", "Hm."), ("x",), ("tool", "x", "1"), ("assistant", "So.")] == said


def test_a_call_without_an_answer_ends_the_conversation() -> None:
    said = told(user("Why?"), tool("1"), calls=(call("x", "1"), call("y", "2")))

    assert [("user", "Why?"), ("x",), ("tool", "x", "1"), ("y",), ("tool", "y", "2")] == said


def test_a_result_of_a_call_that_is_not_listed_stays() -> None:
    said = told(user("Why?"), tool("1"), assistant("So."), calls=())

    assert [("user", "Why?"), ("tool", "1"), ("assistant", "So.")] == said


def test_each_turn_has_its_own_calls() -> None:
    calls = (call("x", "1", model_call=1), call("y", "2", turn=1))

    said = told(
        user("Why?"), tool("1"), assistant("So."), user("And?", 1), tool("2", 1), assistant("!", 1), calls=calls
    )

    assert [("x",), ("tool", "x", "1")] == said[1:3]
    assert [("y",), ("tool", "y", "2"), ("assistant", "!")] == said[5:]
