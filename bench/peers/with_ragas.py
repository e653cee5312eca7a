"""The same evaluation as `keval.yaml`, by Ragas: an experiment, with a metric that gives a reason and a number."""

import asyncio
import json
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from ragas import Dataset, experiment
from ragas.llms import llm_factory
from ragas.metrics import NumericMetric

client, at_once = AsyncOpenAI(), asyncio.Semaphore(50)
llm = llm_factory("m", client=client)
agrees = NumericMetric(
    name="agrees",
    allowed_values=(1.0, 5.0),
    prompt="Does the output answer the question, and agree with the expected output? Rate it from 1 to 5.\n"
    "Question: {question}\nExpected output: {expected}\nOutput: {output}",
)


@experiment()  # type: ignore[untyped-decorator]  # Ragas is not installed where types are checked
async def judged(row: dict[str, Any]) -> dict[str, Any]:
    async with at_once:
        messages: Any = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": row["question"]},
        ]
        answer = await client.chat.completions.create(model="m", messages=messages)
        output = answer.choices[0].message.content
        score = await agrees.ascore(llm=llm, question=row["question"], expected=row["answer"], output=output)
        return {**row, "output": output, "agrees": score.value, "reason": score.reason}


dataset = Dataset(name="questions", backend="local/jsonl", root_dir=".")
for line in Path("questions.jsonl").read_text(encoding="utf-8").splitlines():
    dataset.append(json.loads(line))
done = asyncio.run(judged.arun(dataset, name="peers"))
assert len(done) == len(dataset)
