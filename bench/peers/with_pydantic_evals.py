"""The same evaluation as `keval.yaml`, by Pydantic Evals: its judge gives a reason and a score."""

import json
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import LLMJudge

# A judge that is given a model's name makes a client for each grade, which doubles its CPU.
model = OpenAIChatModel("m")
agent = Agent(model, system_prompt="You are a helpful assistant.")


async def ask(question: str) -> str:
    answer: str = (await agent.run(question)).output
    return answer


judge = LLMJudge(
    rubric="The output answers the question, and agrees with the expected output.",
    model=model,
    include_input=True,
    include_expected_output=True,
    score={"include_reason": True},
    assertion=False,
)
lines = [json.loads(line) for line in Path("questions.jsonl").read_text(encoding="utf-8").splitlines()]
cases = [Case(name=each["id"], inputs=each["question"], expected_output=each["answer"]) for each in lines]
report = Dataset(name="peers", cases=cases, evaluators=[judge]).evaluate_sync(ask, max_concurrency=50, progress=False)
assert not report.failures
assert all(case.scores for case in report.cases)
