"""The order of trials: drawn by the seed, the same on every machine, and no arm or part of the dataset goes first."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import groupby, product
from typing import Any

import pytest

from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.records.trial import TrialKey
from tests.conftest import ON_PATH, Project

CONFIG: dict[str, Any] = {
    "name": "drawn",
    "dataset": {"path": "questions.jsonl"},
    "agents": {"one": {"type": "scripted"}, "two": {"type": "scripted"}},
    "conditions": {"baseline": {}, "brief": {"system_prompt": "Be brief."}, "long": {"system_prompt": "Be long."}},
    "metrics": ["double/length"],
}
SAMPLES = [f"q{number}" for number in range(100)]
ARMS = [f"{agent}/{condition}" for agent, condition in product(CONFIG["agents"], CONFIG["conditions"])]


def planned(project: Project, samples: list[str] = SAMPLES, repetitions: int = 3, seed: int = 0) -> Plan:
    project.write(questions_jsonl="".join(json.dumps({"id": name, "question": "?"}) + "\n" for name in samples))
    execution = {"num_repetitions": repetitions, "seed": seed}
    return make_plan(read_evaluation(Source("eval.yaml", project.root, {**CONFIG, "execution": execution})))


def arm(key: TrialKey) -> str:
    return f"{key.agent}/{key.condition}"


def test_every_trial_is_there_once_repetition_by_repetition_and_with_the_other_arms_of_its_sample(
    project: Project,
) -> None:
    plan = planned(project)

    keys = [*plan.trials()]

    groups = [(cell, {*map(arm, group)}) for cell, group in groupby(keys, lambda key: (key.repetition, key.sample))]
    ids = [f"{name}/{sample}/{repetition}" for repetition, sample, name in product((1, 2, 3), SAMPLES, ARMS)]
    assert sorted(ids) == sorted(key.id for key in keys)
    assert (len(ids), 3 * len(SAMPLES)) == (plan.trial_count, len(groups))
    assert [{*ARMS}] * len(groups) == [arms for _, arms in groups]
    assert [1] * 100 + [2] * 100 + [3] * 100 == [repetition for (repetition, _), _ in groups]


def test_each_arm_is_as_often_the_first_of_its_sample_as_any_other_and_as_often_the_last(project: Project) -> None:
    keys = [*planned(project, repetitions=10).trials()]

    for place in (0, len(ARMS) - 1):
        often = Counter(map(arm, keys[place :: len(ARMS)]))

        # Of 1,000, with four standard deviations of about 12 to either side.
        assert {*ARMS} == often.keys()
        assert 1000 / 6 - 48 < min(often.values()) <= max(often.values()) < 1000 / 6 + 48


def test_repetitions_and_seeds_have_orders_of_their_own(project: Project) -> None:
    orders = [[key.id for key in planned(project, seed=seed).trials()] for seed in (0, 0, 1)]
    cells = [[key.split("/")[2] for key in order[:: len(ARMS)]] for order in orders]
    repetitions = [tuple(each[start : start + 100]) for each in cells[1:] for start in (0, 100, 200)]
    arms = [tuple(key.rpartition("/")[0] for key in orders[0] if key.split("/")[2:] == ["q0", n]) for n in "123"]

    assert orders[0] == orders[1]
    assert (6, 3) == (len({*repetitions, tuple(SAMPLES)} - {tuple(SAMPLES)}), len({*arms}))


def test_the_order_is_the_same_on_every_machine(project: Project) -> None:
    keys = [*planned(project, ["a", "b c", "ä", "%"], repetitions=2, seed=-7).trials()]

    order = [*dict.fromkeys(f"{key.sample} {key.repetition}" for key in keys)]
    first = ["one/long", "two/baseline", "one/brief", "two/brief", "two/long", "one/baseline"]
    assert ["ä 1", "b c 1", "% 1", "a 1", "% 2", "a 2", "b c 2", "ä 2"] == order
    assert first == [*map(arm, keys[:6])]


@pytest.mark.parametrize("left_out", [SAMPLES[:90], SAMPLES[::2]], ids=["most", "every second"])
def test_a_part_of_the_samples_keeps_the_order_of_all(project: Project, left_out: list[str]) -> None:
    whole = [key for key in planned(project).trials() if key.sample not in left_out]

    part = [*planned(project, [name for name in SAMPLES if name not in left_out]).trials()]

    assert whole == part


TELLS_ORDER = """
import json
from pathlib import Path
from keval.config.load import load
from keval.plan.build import make_plan
print(json.dumps([key.id for key in make_plan(load(Path("eval.yaml"))).trials()]))
"""


def test_two_processes_agree_on_the_order(project: Project) -> None:
    expected = [key.id for key in planned(project).trials()]
    project.write(eval_yaml=json.dumps({**CONFIG, "execution": {"num_repetitions": 3}}))

    told = [
        subprocess.run(
            [sys.executable, "-c", TELLS_ORDER],
            cwd=project.root,
            env={"PYTHONPATH": ON_PATH[0], "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
        for hash_seed in ("1", "2")
    ]

    assert [expected] * 2 == [json.loads(done.stdout) for done in told]


def test_a_run_that_ends_early_has_asked_from_all_over_the_file_and_begun_with_either_arm(project: Project) -> None:
    config = {**CONFIG, "agents": {"one": {"type": "scripted"}}, "budget": {"trials": 60}}
    del config["conditions"]["long"]
    project.write(eval_yaml=json.dumps({**config, "execution": {"max_concurrent": 1}}))
    planned(project)

    outcome = project.keval("run", "eval.yaml", "-q")

    trials = project.lines("trials.jsonl")
    asked = [SAMPLES.index(trial["sample"]) for trial in trials[::2]]
    first = Counter(trial["condition"] for trial in trials[::2])
    assert (3, 60, 30) == (outcome.code, len(trials), len({*asked}))
    # Of 30 from 100, six are expected of each fifth of the file, and 15 of each arm.
    assert {0, 1, 2, 3, 4} == {place // 20 for place in asked}
    assert 10 <= min(first["baseline"], first["brief"])


def test_a_limit_takes_the_first_of_the_file(project: Project) -> None:
    project.write(eval_yaml=json.dumps(CONFIG))
    planned(project)

    project.keval("run", "eval.yaml", "--limit", "5", "-q")

    assert {*SAMPLES[:5]} == {trial["sample"] for trial in project.lines("trials.jsonl")}
    assert SAMPLES[:5] == [sample["id"] for sample in project.lines("samples.jsonl")]
