"""Planning a play: what a run of the config would need, but for its dataset."""

from __future__ import annotations

import attrs

from keval.config.evaluation import Evaluation
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.plan.build import make_plan
from keval.plan.plan import Plan

_NO_DATASET = Dataset(None, Samples.of(()), "")


def make_play_plan(evaluation: Evaluation) -> Plan:
    """Construct what a play needs. Its samples are none; those that can be asked are `plan.dataset.samples`.

    A missing dataset and missing scorers are not problems. A person decides how often something is asked, and a
    person's questions are no test, so that repetitions, gates and `ablate` are left out.

    Raises ConfigError with every problem.
    """
    lacking = "the key 'dataset' is missing"
    played = attrs.evolve(
        evaluation,
        header=attrs.evolve(evaluation.header, ablate=()),
        gates=(),
        execution=attrs.evolve(evaluation.execution, num_repetitions=1),
        problems=tuple(problem for problem in evaluation.problems if not problem.message.startswith(lacking)),
    )
    plan = make_plan(played, None if evaluation.dataset is not None else _NO_DATASET, scored=False)
    return attrs.evolve(plan, samples=Samples.of(()))
