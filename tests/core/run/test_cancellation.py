import asyncio

import pytest

from keval.run.cancellation import apart


def test_work_that_is_ended_before_it_began_does_not_complain() -> None:
    async def work() -> None:
        raise AssertionError

    async def ended() -> None:
        task = asyncio.create_task(apart(work()))
        await asyncio.sleep(0)  # the task has begun, and the one that it made for the work has not
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ended())
