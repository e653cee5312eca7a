"""Which results a trial gets from the samples before it (`results: shuffled`), in whatever order the calls arrive."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.plan.build import make_plan
from keval.records.interventions import ShuffledResults
from keval.records.trial import TrialKey
from keval_mcp.changes.result_shuffling import ResultShuffling, TrialResults
from tests.conftest import Project


def key(sample: str, agent: str = "one", condition: str = "shuffled") -> TrialKey:
    return TrialKey(f"{agent}/{condition}/{sample}/1", agent, condition, sample, 1)


def shuffling() -> ResultShuffling:
    return ResultShuffling(["shuffled"], lambda repetition: {"b": "a", "c": "b", "d": "c"})


def begun(stack: ExitStack, of: ResultShuffling, sample: str, agent: str = "one") -> ShuffledResults:
    results = stack.enter_context(of.trial(key(sample, agent)))
    assert isinstance(results, TrialResults)
    return results.attempt("docs")


def result(said: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def test_a_call_gets_the_donors_call_of_its_number_whichever_comes_first() -> None:
    async def run() -> list[Any]:
        of = shuffling()
        with ExitStack() as stack:
            a, b = begun(stack, of, "a"), begun(stack, of, "b")
            waiting = [asyncio.create_task(b.take("search", number)) for number in (2, 1)]
            await asyncio.sleep(0)
            assert not any(task.done() for task in waiting)
            a.give("search", result("first"))
            a.give("search", result("second"))
            return [await task for task in waiting]

    assert [result("second"), result("first")] == asyncio.run(run())


def test_a_donor_with_fewer_calls_gives_them_in_turn_once_it_has_ended() -> None:
    async def run() -> Any:
        of = shuffling()
        with ExitStack() as stack:
            with ExitStack() as earlier:
                a = begun(earlier, of, "a")
                a.give("search", result("first"))
                b = begun(stack, of, "b")
                waiting = asyncio.create_task(b.take("search", 3))
                await asyncio.sleep(0)
                assert not waiting.done()
            return await waiting

    assert result("first") == asyncio.run(run())


def test_where_a_donor_did_not_call_the_tool_the_one_before_it_gives() -> None:
    async def run() -> list[Any]:
        of = shuffling()
        with ExitStack() as first:
            begun(first, of, "a").give("search", result("of a"))
        with ExitStack() as second:
            begun(second, of, "b").give("open", result("of b"))
        with ExitStack() as third, ExitStack() as fourth:
            begun(third, of, "c")
            d = begun(fourth, of, "d")
            waiting = [asyncio.create_task(d.take(tool, 1)) for tool in ("search", "open", "close")]
            await asyncio.sleep(0)
            third.close()
            return [await task for task in waiting]

    assert [result("of a"), result("of b"), None] == asyncio.run(run())


def test_a_trial_that_is_attempted_again_gives_what_its_first_attempt_got() -> None:
    async def run() -> list[Any]:
        with ExitStack() as stack:
            of = shuffling()
            a = stack.enter_context(of.trial(key("a")))
            assert a is not None
            a.attempt("docs").give("search", result("once"))
            again = a.attempt("docs")
            again.give("search", result("twice"))
            again.give("search", result("more"))
            b = begun(stack, of, "b")
            return [await b.take("search", number) for number in (1, 2)]

    assert [result("once"), result("more")] == asyncio.run(run())


def test_agents_do_not_share_and_the_first_sample_gets_nothing() -> None:
    async def run() -> list[Any]:
        of = shuffling()
        with ExitStack() as stack:
            first = begun(stack, of, "a")
            first.give("search", result("of one"))
            return [await begun(stack, of, "b", "two").take("search", 1), await first.take("search", 1)]

    assert [None, None] == asyncio.run(run())


def test_other_conditions_take_no_part() -> None:
    with shuffling().trial(key("a", condition="real")) as results:
        assert results is None


def test_the_source_of_a_trial_is_the_one_that_its_arm_began_before_it_in_the_repetition(project: Project) -> None:
    names = [f"q{number}" for number in range(20)]
    project.write(questions_jsonl="".join(json.dumps({"id": name, "question": "?"}) + "\n" for name in names))
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {"one": {"type": "scripted"}, "two": {"type": "scripted"}},
        "contexts": {"docs": {"type": "stdio", "command": "docs"}, "other": {"from": "docs", "results": "shuffled"}},
        "conditions": {"real": {"contexts": ["docs"]}, "shuffled": {"contexts": ["other"]}},
        "metrics": ["double/length"],
        "execution": {"num_repetitions": 3},
    }
    plan = make_plan(read_evaluation(Source("eval.yaml", project.root, config)))
    of, last = ResultShuffling.of(plan), dict[tuple[str, int], TrialResults]()
    begun: list[tuple[bool, bool]] = []

    for key in plan.trials():
        arm = (key.agent, key.repetition)
        with of.trial(key) as results:
            if results is not None:
                begun.append((arm in last, results.source is last.get(arm)))
                last[arm] = results

    assert {(False, True): 6, (True, True): 114} == Counter(begun)
