"""What a function is given, and what becomes of what it returns, yields or raises."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs
import pytest

from keval import Message, Sample, Transcript, Usage
from keval.plugin import Context, McpServer, TranscriptBuilder, TrialError
from keval_python import Python

QUESTION = Sample("q1", "What is 2 + 3?", answer="5")
HISTORY = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))


@attrs.frozen
class Outcome:
    """What came of a trial: its transcript or its error, and the pieces of text that were streamed."""

    transcript: Transcript
    error: TrialError | None
    pieces: list[str]


@pytest.fixture
def ask(tmp_path: Path, runner: asyncio.Runner) -> Callable[..., Outcome]:
    """Run a trial with a target of these lines: `ask(code, sample=…, instructions=…)`."""

    def run(code: str, sample: Sample = QUESTION, **given: Any) -> Outcome:
        (tmp_path / "my_agent.py").write_text(dedent(code), encoding="utf-8")
        pieces: list[str] = []
        builder = TranscriptBuilder(emit=lambda kind, data: pieces.append(data["text"]) if "stream" in kind else None)
        agent = Python(target=tmp_path / "my_agent.py:answer")
        try:
            told = runner.run(agent.run(sample, Context(builder=builder, history=sample.history, **given)))
        except TrialError as error:
            return Outcome(builder.transcript(), error, pieces)
        return Outcome(told, None, pieces)

    return run


@pytest.mark.parametrize(
    "code",
    [
        "def answer(question): return question.upper()",
        "async def answer(question: str, style='loud'): return question.upper()",
        "async def answer(question):\n    for piece in question.split(' '):\n        yield piece.upper() + ' '",
        "def answer(question, history): return question.upper()",
        "def answer(sample, context): return sample.question.upper()",
        "from keval import Sample\nasync def answer(s: Sample, context): return {'answer': s.question.upper()}",
        "class Loud:\n    def __call__(self, question): return question.upper()\nanswer = Loud()",
        "async def later(text): return text.upper()\ndef answer(question): return later(question)",
    ],
)
def test_every_kind_of_function_answers(ask: Any, code: str) -> None:
    outcome = ask(code)

    assert outcome.error is None
    assert ("WHAT IS 2 + 3?", 1) == (outcome.transcript.output.strip(), len(outcome.transcript.turn_durations))
    unknown = (outcome.transcript.model_calls, outcome.transcript.tools, outcome.transcript.usage)
    assert (None, None, Usage()) == unknown


def test_a_system_prompt_stands_before_a_question_that_is_taken_alone(ask: Any) -> None:
    outcome = ask("def answer(question): return question", instructions="Be brief.")

    assert "Be brief.\n\nWhat is 2 + 3?" == outcome.transcript.output
    assert "What is 2 + 3?" == outcome.transcript.messages[0].text


def test_a_history_has_the_system_prompt_and_every_turn(ask: Any) -> None:
    sample = Sample("q1", "One?", history=HISTORY, turns=("Two?",))

    outcome = ask("def answer(question, history): return f'{history} {question}'", sample, instructions="Be brief.")

    first, second = (message.text for message in outcome.transcript.messages if message.role == "assistant")
    earlier = [{"role": "system", "content": "Be brief."}]
    earlier += [{"role": message.role, "content": message.text} for message in HISTORY]
    assert f"{earlier} One?" == first
    said = [*earlier, {"role": "user", "content": "One?"}, {"role": "assistant", "content": first}]
    assert f"{said} Two?" == second


@pytest.mark.parametrize(
    ("code", "sample", "kind"),
    [
        ("def answer(question): return 'x'", Sample("q", "One?", turns=("Two?",)), "turns_unsupported"),
        ("def answer(question): return 'x'", Sample("q", "One?", history=HISTORY), "history_unsupported"),
        ("def answer(sample, context): return 'x'", Sample("q", "One?", turns=("Two?",)), "turns_unsupported"),
    ],
)
def test_what_a_function_cannot_be_given_fails_the_trial_and_says_the_remedy(
    ask: Any, code: str, sample: Sample, kind: str
) -> None:
    error = ask(code, sample).error

    assert (kind, False, True) == (error.kind, error.retryable, "let it take" in str(error))


def test_servers_that_a_function_does_not_take_fail_the_trial(ask: Any) -> None:
    error = ask("def answer(question): return 'x'", servers=(McpServer("docs", "http", "http://127.0.0.1:1"),)).error

    assert ("servers_unsupported", True) == (error.kind, "takes none; let it take a Sample" in str(error))


def test_a_mapping_tells_calls_tokens_and_truncation(ask: Any) -> None:
    outcome = ask(
        """
        def answer(question):
            return {
                "answer": "It is 5.",
                "tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 3}, "result": "5"}, {"name": "shell"}],
                "usage": {"input_tokens": 12, "output_tokens": 3},
                "model_calls": 2,
                "truncated": True,
            }
        """,
        servers=(),
    )

    transcript = outcome.transcript
    first, second = transcript.tool_calls
    assert ("add", {"a": 2, "b": 3}, "5", None) == (first.name, first.arguments, first.result, first.error)
    assert ("shell", None, True) == (second.name, second.result, second.own)
    assert (Usage(12, 3), 2, "agent") == (transcript.usage, transcript.model_calls, transcript.model_calls_by)
    assert ("It is 5.", True) == (transcript.output, transcript.truncated)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("None", "answer() of my_agent.py returned None; return a text, a mapping with `answer`, or a Transcript"),
        ("{'text': 'x'}", "required field missing @ the mapping.answer"),
        ("{'answer': 'x', 'tokens': 3}", "extra fields found (tokens) @ the mapping"),
        ("{'answer': 'x', 'model_calls': '3'}", "expected int | None @ the mapping.model_calls"),
        ("{'answer': 5}", "expected str @ the mapping.answer"),
    ],
)
def test_what_is_no_answer_says_what_is_wrong(ask: Any, returned: str, told: str) -> None:
    error = ask(f"def answer(question): return {returned}").error

    assert ("bad_answer", False, True) == (error.kind, error.retryable, told in str(error)), str(error)


def test_an_empty_answer_is_none(ask: Any) -> None:
    error = ask("def answer(question): return ' '").error

    assert "no_answer" == error.kind


@pytest.mark.parametrize("streams", [True, False])
def test_the_pieces_of_a_generator_are_streamed_where_somebody_reads(ask: Any, streams: bool) -> None:
    outcome = ask("async def answer(question):\n    yield 'It is '\n    yield '5.'", streams=streams)

    assert (["It is ", "5."] if streams else [], "It is 5.") == (outcome.pieces, outcome.transcript.output)


def test_a_generator_that_yields_something_else_fails_the_trial(ask: Any) -> None:
    error = ask("async def answer(question):\n    yield 5").error

    assert ("bad_answer", "answer() of my_agent.py yielded 5 in place of a text") == (error.kind, str(error))


@pytest.mark.parametrize("prefix", ["", "async "])
@pytest.mark.parametrize("raised", ["ValueError('no such city')", "SystemExit(3)"])
def test_what_a_function_raises_is_shown_with_its_own_calls(ask: Any, prefix: str, raised: str) -> None:
    error = ask(f"{prefix}def answer(question):\n    look_up(question)\ndef look_up(city):\n    raise {raised}").error

    first, *calls = str(error).splitlines()
    assert ("agent", "target_failed", False) == (error.stage, error.kind, error.retryable)
    name, _, argument = raised.rstrip(")").partition("(")
    assert f"answer() of my_agent.py raised {name}: {argument.strip(chr(39))}" == first
    assert ["look_up(question)", f"raise {raised}"] == [line.strip() for line in calls if "File" not in line]


def test_an_error_that_is_explained_is_passed_on_even_from_a_group(ask: Any) -> None:
    error = ask(
        """
        from keval.plugin import TrialError
        async def answer(question):
            raise ExceptionGroup("two", [ValueError("x"), TrialError("too busy", kind="busy", retryable=True)])
        """
    ).error

    assert ("busy", True, "too busy") == (error.kind, error.retryable, str(error))


def test_a_transcript_is_completed_by_what_keval_measured(ask: Any) -> None:
    outcome = ask(
        """
        from keval import Message, Transcript, Usage
        def answer(sample, context):
            return Transcript((Message("assistant", "It is 5."),), usage=Usage(7, 2), model_calls=1)
        """
    )

    transcript = outcome.transcript
    assert ("It is 5.", Usage(7, 2), 1) == (transcript.output, transcript.usage, transcript.model_calls)
    assert ((transcript.duration,), "agent") == (transcript.turn_durations, transcript.model_calls_by)
    assert transcript.duration


def test_a_function_that_is_annotated_reports_every_turn_itself(ask: Any) -> None:
    code = """
        from keval import Transcript
        def answer(sample, context) -> Transcript:
            for question in sample.asked:
                with context.builder.turn(question):
                    context.builder.said(question.upper())
            return context.builder.transcript()
        """

    outcome = ask(code, Sample("q1", "One?", turns=("Two?",)))
    alone = ask(code.replace(" -> Transcript", ""))

    assert ["One?", "ONE?", "Two?", "TWO?"] == [message.text for message in outcome.transcript.messages]
    assert "annotate it `-> Transcript`, so that keval begins none" in str(alone.error)


def test_an_annotation_that_is_not_kept_fails_the_trial(ask: Any) -> None:
    error = ask("from keval import Transcript\ndef answer(sample, context) -> Transcript: return 'x'").error

    assert ("bad_answer", True) == (error.kind, "returned 'x', though it is annotated" in str(error))


def test_a_plain_function_that_does_not_return_holds_up_neither_its_trial_nor_the_end(
    tmp_path: Path, runner: asyncio.Runner
) -> None:
    (tmp_path / "my_agent.py").write_text(
        "import threading\nbegun, ended = threading.Event(), threading.Event()\nthreads = []\n"
        "def answer(question):\n    threads.append(threading.current_thread())\n    begun.set()\n    ended.wait(60)\n",
        encoding="utf-8",
    )
    agent = Python(target=tmp_path / "my_agent.py:answer")

    async def scenario() -> None:
        await agent.prepare()
        running = asyncio.create_task(agent.run(QUESTION, Context()))
        await asyncio.sleep(0)
        await asyncio.to_thread(module().begun.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    def module() -> Any:
        return next(each for name, each in sys.modules.items() if name.endswith(f"{tmp_path.name}/my_agent.py"))

    runner.run(asyncio.wait_for(scenario(), 20))
    (thread,) = module().threads
    assert (True, True) == (thread.is_alive(), thread.daemon)
    module().ended.set()
    thread.join(10)
    assert not thread.is_alive()
