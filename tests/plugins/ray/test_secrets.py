"""Variables that a config names reach the workers, and no file of Ray's: logs, errors, and what it keeps of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from keval.records.trial import Trial
from keval.store.run import list_runs
from tests.canaries import leaks
from tests.conftest import Project
from tests.end_to_end import test_canaries as canaries
from tests.end_to_end.servers.model import gateway
from tests.plugins.ray.conftest import RunningCluster

pytestmark = pytest.mark.slow

EXECUTION = {
    "executor": {"type": "ray", "address": "auto", "workers": 2},
    "retry": {"max_attempts": 2, "initial_backoff_seconds": 0},
}
# The executor of those tests has this one.
CANARIES = {name: secret for name, secret in canaries.CANARIES.items() if name != "CANARY_NOTE"}


def test_no_canary_is_left_in_the_run_or_in_the_folder_of_rays_session(
    project: Project, cluster: RunningCluster
) -> None:
    canaries.written(project, execution=EXECUTION)
    with gateway(canaries.tells) as environ:
        known = {**environ, **cluster.environ, "RAY_ADDRESS": cluster.address, **canaries.CANARIES}
        outcome = project.spawn("run", "eval.yaml", "--record", env=known)

    assert 3 == outcome.code, outcome.stderr
    assert [] == leaks(CANARIES, [outcome.stdout, outcome.stderr], project.root, canaries.GIVEN)
    assert any(path.stat().st_size for path in cluster.session.glob("logs/*"))
    assert [] == leaks(CANARIES, [], cluster.session)
    # The trials had them, and what failed says where.
    (run,) = list_runs(Path("results"))
    trials: dict[str, Trial] = {trial.id: trial for trial in run.trials()}
    assert trials["asked/bare/says/1"].output.startswith("Bearer [secret] Say [secret]. ")
    failure = trials["scripted/it/fails/1"].failure
    assert failure is not None
    assert "[secret]" in (failure.traceback or "")


def test_a_worker_that_does_not_come_up_tells_no_canary(project: Project, cluster: RunningCluster) -> None:
    # The server comes up once, for the driver.
    canaries.written(project, execution=EXECUTION)
    server = (project.root / "server.py").read_text("utf-8")
    once = 'if Path("up").exists() or Path("up").touch():'
    assert 'if "dies" in sys.argv:' in server
    project.write(server_py=server.replace('if "dies" in sys.argv:', once))
    with gateway(canaries.tells) as environ:
        known = {**environ, **cluster.environ, "RAY_ADDRESS": cluster.address, **canaries.CANARIES}
        outcome = project.spawn("run", "eval.yaml", env=known)

    assert (2, True) == (outcome.code, "error: worker-" in outcome.stderr), outcome.stderr
    assert [] == leaks(CANARIES, [outcome.stdout, outcome.stderr], project.root, canaries.GIVEN)
    assert [] == leaks(CANARIES, [], cluster.session)
    assert not (project.root / "results").exists()
