"""Which worker a task goes to, and what is told of workers that do not come up; without a cluster."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections import Counter
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from keval.errors import PluginWarning, PreflightError
from keval.plugin import CrewOrder, CrewWatcher
from keval.records.manifest import WorkerEntry
from keval.records.trial import TrialKey
from keval_ray.crew import Assigned, RayCrew
from keval_ray.worker import RunTask, Usage, WorkerWarning, _usage


@attrs.define(eq=False)
class Place:
    """A worker that is up, and does nothing."""

    name: str
    tasks: dict[int, Assigned] = attrs.field(factory=dict)
    actor: Any = "up"

    @property
    def entry(self) -> WorkerEntry:
        return WorkerEntry(self.name, "here", lost=None if self.actor else "killed")

    def give(self, assigned: Assigned) -> None:
        self.tasks[assigned.number] = assigned


class Forgetful:
    """A limiter that nobody asks, and that has nothing to tell."""

    class changes:  # noqa: N801 - as below
        @staticmethod
        async def remote() -> None:
            """Wait for ever."""
            await asyncio.Event().wait()

    class forget:  # noqa: N801 - it is called as an actor's method is
        @staticmethod
        async def remote(worker: str) -> None:
            """Nothing is held."""


def crew(*places: Place) -> Any:
    order: Any = CrewOrder(None, {})  # type: ignore[arg-type]  # no worker is brought up
    found: Any = RayCrew(
        order, CrewWatcher(lambda worker: None, lambda model, at_once, down, trouble: None), Forgetful()
    )
    found._places += places
    return found


def assigned(number: int) -> Assigned:
    task = RunTask(TrialKey(str(number), "a", "plain", "s", 1), None)  # type: ignore[arg-type]  # nobody runs it
    return Assigned(number, task, asyncio.get_running_loop().create_future())


def test_trials_go_to_the_worker_that_has_the_fewest_and_to_another_when_it_is_lost() -> None:
    async def dealt() -> list[list[int]]:
        one, two = Place("worker-1"), Place("worker-2")
        found = crew(one, two)
        for number in range(12):
            found._assign(assigned(number))
        before = [[*one.tasks], [*two.tasks]]
        lost, one.tasks, one.actor = [*one.tasks.values()], {}, None
        await found.lost(one, lost)
        return [*before, [*two.tasks], [each.losses for each in two.tasks.values()]]

    first, second, after, losses = asyncio.run(dealt())

    assert ([0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]) == (first, second)
    assert [*second, *first] == after
    assert Counter({0: 6, 1: 6}) == Counter(losses)


def test_a_worker_that_does_not_come_up_is_told_of_once_another_is_up() -> None:
    async def told() -> list[list[str]]:
        place = Place("worker-1", actor=None)
        found = crew(place)
        said = []
        for step in ("alone", "up", "later"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if step == "up":
                    place.actor = "up"
                    found.came_up(place)
                else:
                    found.gave_up([f"{step}: no such file"])
            said.append([str(each.message) for each in caught])
        return said

    alone, up, later = asyncio.run(told())

    assert [] == alone
    assert ["alone: no such file; the run goes on with other workers"] == up
    assert ["later: no such file; the run goes on with other workers"] == later


def test_warnings_of_workers_are_those_of_the_package_that_gave_them() -> None:
    place = Place("worker-1")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crew(place).hear(place, (), [WorkerWarning("old", "/lib/adk.py", False), WorkerWarning("mind", "/k.py", True)])

    assert [(str(each.message), each.filename, each.category) for each in caught] == [
        ("worker-1: old", "/lib/adk.py", UserWarning),
        ("worker-1: mind", "/k.py", PluginWarning),
    ]


def test_a_task_that_ends_three_workers_fails_and_ends_no_fourth() -> None:
    async def lost() -> str:
        places = [Place(f"worker-{number}") for number in range(1, 5)]
        found = crew(*places)
        poison = assigned(1)
        found._assign(poison)
        for place in places[:3]:
            tasks, place.tasks, place.actor = [*place.tasks.values()], {}, None
            await found.lost(place, tasks)
        assert {} == places[3].tasks
        return str(poison.result.exception())

    assert asyncio.run(lost()) == "3 workers ended while they worked on it; the last one: killed"


def test_many_workers_with_few_trials_at_once_are_told_of() -> None:
    class Job:
        max_concurrent, count, outbox = 1, 0, None

    with pytest.warns(RuntimeWarning, match=r"2 workers have 1 trials at once between them; raise"):
        asyncio.run(crew(Place("worker-1"), Place("worker-2")).execute(Job()))


def test_a_cluster_that_cannot_say_what_it_has_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def places() -> int:
        raise RuntimeError("the head does not answer")

    found = crew()
    demand: Any = SimpleNamespace(places=places)
    made = SimpleNamespace(remote=lambda limits: Forgetful())
    monkeypatch.setattr("keval_ray.crew.new_actor", lambda kind, **options: made)
    monkeypatch.setattr("keval_ray.crew.here", lambda: None)
    monkeypatch.setattr("keval_ray.crew.RunLimits", SimpleNamespace(of=lambda manifest: None))
    monkeypatch.setattr("keval_ray.crew.ray", SimpleNamespace(put=lambda order: None, kill=lambda actor: None))

    async def opened() -> None:
        async with asyncio.timeout(0.2), RayCrew.open(demand, found.order, found._watcher):
            """No worker is up."""

    with pytest.raises(PreflightError, match=r"^RuntimeError: the head does not answer$"):
        asyncio.run(opened())


def test_a_cluster_that_answers_late_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    went_on = threading.Event()

    def places() -> int:
        raise RuntimeError(f"went on: {went_on.wait(0.2)}")

    async def looked() -> None:
        demand: Any = SimpleNamespace(places=places)
        keeping = asyncio.create_task(crew()._keep_places(demand))
        await asyncio.sleep(0)
        went_on.set()
        await keeping

    monkeypatch.setattr("keval_ray.crew.ray", SimpleNamespace(put=lambda order: None))

    with pytest.raises(RuntimeError, match="went on: True"):
        asyncio.run(looked())


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_memory_is_counted_in_bytes_on_every_system(monkeypatch: pytest.MonkeyPatch, platform: str, unit: int) -> None:
    used = SimpleNamespace(ru_utime=1.0, ru_stime=0.5, ru_maxrss=7)
    monkeypatch.setattr("keval_ray.worker.resource.getrusage", lambda whose: used)
    monkeypatch.setattr("keval_ray.worker.sys.platform", platform)

    assert Usage(3.0, 7 * unit) == _usage()
