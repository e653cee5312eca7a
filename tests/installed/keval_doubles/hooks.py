"""Hook plugins that add facts."""

from typing import Any

import attrs

from keval import Sample, hookimpl


@attrs.frozen
class Facts:
    """Adds `truth`, after waiting like one that asks a server."""

    truth: str = "sun"

    @hookimpl
    async def keval_sample_facts(self, sample: Sample) -> dict[str, Any]:
        return {"truth": self.truth}


class BrokenFacts:
    @hookimpl
    def keval_sample_facts(self, sample: Sample) -> dict[str, Any]:
        raise ConnectionError("no route")


class UnknownHook:
    @hookimpl
    def keval_sample_fact(self, sample: Sample) -> dict[str, Any]:
        return {}
