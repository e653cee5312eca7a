"""A run on a cluster is the run that it is in one process: the same trials, scores and findings."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval import open_run
from keval.store.run import Run, list_runs
from tests.conftest import Outcome, Project
from tests.plugins.ray.conftest import RunningCluster

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "examples" / "weather" / "questions.jsonl"
LOOP = ROOT / "tests" / "agents" / "command" / "loop.py"

CONFIG = f"""
name: weather
dataset: {{path: questions.jsonl}}
agents:
  gadk: {{model: simulated/weather}}
  ms: {{model: simulated/weather}}
  openai: {{model: simulated/weather}}
  command:
    type: command
    command: [{sys.executable}, {LOOP}, --model, "{{model}}", --mcp, "{{mcp_config}}", "{{question}}"]
    model: simulated/weather
    env: {{OPENAI_BASE_URL: "{{model_base_url}}", OPENAI_API_KEY: "{{model_key}}"}}
    events: jsonl
    answer: answer
contexts:
  weather: {{}}
  placebo: {{from: weather, results: scrambled}}
conditions:
  baseline: {{system_prompt: "You help with the weather. The user's id is user-1."}}
  with_weather: {{system_prompt: "You help with the weather. The user's id is user-1.", contexts: [weather]}}
metrics: [weather/accuracy, weather/tool_call_count, weather/task_completion]
judges: {{openai: {{model: simulated/judge}}}}
plugins: [weather/ground-truth]
primary: [weather/accuracy]
gates: ["weather/accuracy >= 0.2"]
execution:
  num_repetitions: 2
  retry: {{initial_backoff_seconds: 0}}
  executor: {{type: ray, address: auto, workers: 2}}
"""


@pytest.fixture
def both(project: Project, cluster: RunningCluster) -> Callable[..., tuple[Run, Run]]:
    """Runs a config with the executor `local`, and on the cluster."""

    def run(*arguments: str, changes: dict[str, str] | None = None) -> tuple[Run, Run]:
        config = CONFIG
        for old, new in (changes or {}).items():
            assert old in config
            config = config.replace(old, new)
        shutil.copy(QUESTIONS, project.root)
        project.write(eval_yaml=config)
        environ = {**cluster.environ, "RAY_ADDRESS": cluster.address}
        for flags in (["--executor", "local"], []):
            ended(project.spawn("run", "eval.yaml", "-q", *flags, *arguments, env=environ))
        here, there = list_runs(project.root / "results")[-2:]
        return here, there

    return run


def ended(outcome: Outcome) -> Outcome:
    assert 0 == outcome.code, outcome.stderr
    return outcome


def summary(run: Run) -> str:
    """What a summary says, but for its run's id, for how long things took, and for processes that were started."""
    found: dict[str, Any] = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    for arm in found["trials"]:
        del arm["duration"], arm["duration_median"], arm["duration_p95"]
    for spent in (found, *found["contrasts"]):
        spent["expenses"] = [each for each in spent["expenses"] if each["metric"] != "seconds"]
        for effect in spent["expenses"]:
            for adjusted in (effect, effect["ratio"] or {}):  # for which seconds count, too
                adjusted.pop("p_adjusted", None)
                adjusted.pop("verdict", None)
    del found["elapsed"], found["server_starts"]
    return json.dumps(_rounded(found), indent=1).replace(run.id, "RUN")


def _rounded(value: Any) -> Any:
    """Without the last digits, in which intervals differ whose family has seconds, too."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def test_all_that_is_found_is_the_same_for_every_kind_of_agent(
    both: Callable[..., tuple[Run, Run]], project: Project
) -> None:
    here, there = both("--limit", "3")

    assert 48 == len(here.trial_ids())
    assert summary(here) == summary(there)
    compared = project.spawn("compare", "--exact", str(here.path), str(there.path))
    assert 0 == compared.code, compared.stdout
    workers = there.manifest.workers
    assert () == here.manifest.workers
    assert 2 == len(workers)
    assert [48, 48] == [sum(worker.trials for worker in workers), sum(worker.scored for worker in workers) // 2]
    assert all(worker.trials and worker.cpu_seconds and worker.memory_bytes and not worker.lost for worker in workers)


def test_an_ablated_run_with_a_placebo_is_recorded_and_replayed(
    both: Callable[..., tuple[Run, Run]], project: Project, cluster: RunningCluster
) -> None:
    changes = {
        "  gadk: {model: simulated/weather}\n  ms: {model: simulated/weather}\n": "",
        "conditions:\n": "ablate: [with_weather]\nconditions:\n  turned: {contexts: [placebo]}\n",
    }
    here, there = both("--limit", "4", "--record", "--agent", "openai", changes=changes)

    assert 7 == len(there.manifest.conditions)
    assert summary(here) == summary(there)
    assert 0 == project.spawn("compare", "--exact", str(here.path), str(there.path)).code
    environ = {**cluster.environ, "RAY_ADDRESS": cluster.address}
    ended(project.spawn("run", "--replay", str(there.path), "-q", env=environ))
    replayed = list_runs(project.root / "results")[-1]
    ended(project.spawn("compare", "--exact", str(there.path), str(replayed.path)))
    assert () == replayed.manifest.workers


def test_answers_are_scored_again_by_all_workers(
    both: Callable[..., tuple[Run, Run]], project: Project, cluster: RunningCluster
) -> None:
    here, there = both("--limit", "4", "--agent", "openai", "--metric", "weather/accuracy")
    environ = {**cluster.environ, "RAY_ADDRESS": cluster.address}
    before = len(there.manifest.workers)  # one, where all was done before the second worker came up

    for run, executor in ((here, "local"), (there, "ray")):
        scorers = ("--metric", "weather", "--judge", "openai", "--judge-repetitions", "2")
        ended(project.spawn("score", str(run.path), *scorers, "-q", "--executor", executor, env=environ))

    assert 16 * (14 + 3 * 2) == len([*open_run(there.path).scores()])
    assert summary(here) == summary(there)
    again = open_run(there.path).manifest.workers[before:]
    assert (0, 16 * 3) == (sum(worker.trials for worker in again), sum(worker.scored for worker in again))


def test_recorded_answers_go_through_the_metrics_on_all_workers(project: Project, cluster: RunningCluster) -> None:
    shutil.copytree(ROOT / "examples" / "recorded", project.root, dirs_exist_ok=True)
    environ = {**cluster.environ, "RAY_ADDRESS": cluster.address}

    for executor in ("local", "ray"):
        ended(project.spawn("run", "recorded.yaml", "-q", "--executor", executor, env=environ))

    here, there = list_runs(project.root / "results")
    assert summary(here) == summary(there)
    assert len(there.trial_ids()) == sum(worker.trials for worker in there.manifest.workers)


def test_budgets_and_failed_gates_end_a_run_as_they_do_in_one_process(
    both: Callable[..., tuple[Run, Run]], project: Project, cluster: RunningCluster
) -> None:
    environ = {**cluster.environ, "RAY_ADDRESS": cluster.address}
    shutil.copy(QUESTIONS, project.root)
    project.write(eval_yaml=CONFIG)

    few = project.spawn("run", "eval.yaml", "-q", "--agent", "openai", "--budget", "trials=7", env=environ)
    gate = ("--limit", "1", "--fail-under", "tokens <= 1")
    failed = project.spawn("run", "eval.yaml", "-q", "--agent", "openai", *gate, env=environ)

    assert (3, True) == (few.code, "7 of 7 trials" in few.stderr), few.stderr
    assert 7 == len(list_runs(project.root / "results")[0].trial_ids())
    assert 1 == failed.code, failed.stderr
