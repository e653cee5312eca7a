"""The check of a plan: what its parts are asked whether anything is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import Problem
from keval.plan.plan import Plan, ResolvedPlugin, Scorers
from keval.records.manifest import Manifest


@attrs.frozen
class PlanCheck:
    """A plan that is being checked, and what was found so far: problems, and notices of what a user should know.

    `samples` is `None` where none is asked, or the plan's samples are known to be well. A plan of a replay is `played`.
    `manifest` is that of a run which is scored again.
    """

    evaluation: Evaluation
    scorers: Scorers
    agents: Sequence[ResolvedPlugin] = ()
    samples: Samples | None = None
    played: bool = False
    manifest: Manifest | None = None
    problems: list[Problem] = attrs.field(factory=list)
    notices: list[Problem] = attrs.field(factory=list)

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Add a problem at a path of the config."""
        self.problems.append(self.evaluation.source.problem(path, message, at_key=at_key))

    def notice(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Add a notice at a path of the config."""
        self.notices.append(self.evaluation.source.problem(path, message, at_key=at_key))


class PlanReview(Protocol):
    """Reviews the plan of every run. Group `keval.plan_reviews`; constructed without arguments."""

    def check(self, check: PlanCheck, dataset: Dataset, samples: Samples) -> None:
        """Add what is wrong, and what a user should know, of the samples that are chosen of a dataset."""
        ...

    def notices(self, plan: Plan) -> Iterable[Problem]:
        """Return what a user should know of a plan in which nothing is wrong."""
        ...
