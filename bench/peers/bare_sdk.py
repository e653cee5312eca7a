"""The two requests of `keval.yaml` by OpenAI's SDK alone, each sample on disk before it counts as done."""

import asyncio
import json
import os
from pathlib import Path
from typing import IO

from openai import AsyncOpenAI
from two_requests import AT_ONCE, asked, judged, questions


async def main(file: IO[bytes]) -> None:
    left = iter(questions())
    async with AsyncOpenAI() as client:

        async def work() -> None:
            for each in left:
                request = asked(each)
                answer = (await client.chat.completions.create(**request)).choices[0].message.content
                grade = (await client.chat.completions.create(**judged(each, answer))).choices[0].message.content
                done = {"id": each["id"], "request": request, "answer": answer, "grade": json.loads(grade)}
                file.write(json.dumps(done).encode() + b"\n")
                os.fdatasync(file.fileno())

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


with Path("done.jsonl").open("wb", buffering=0) as opened:
    asyncio.run(main(opened))
