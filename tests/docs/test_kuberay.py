"""The example for Kubernetes: its manifest is a RayJob, and its parts fit each other and this repository."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.conftest import Project

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "kuberay"
SCHEMA = json.loads(Path(__file__).with_name("rayjob.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def job() -> Any:
    return yaml.safe_load((EXAMPLE / "rayjob.yaml").read_text(encoding="utf-8"))


def problems(job: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(job)]


def pods(job: Any) -> tuple[Any, Any]:
    """The specs of the head's pod and of a worker's."""
    cluster = job["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    return cluster["headGroupSpec"]["template"]["spec"], workers["template"]["spec"]


def test_the_manifest_is_a_ray_job(job: Any) -> None:
    Draft202012Validator.check_schema(SCHEMA)

    assert [] == problems(job)


def test_a_wrong_manifest_is_noticed(job: Any) -> None:
    head, _ = pods(job)
    head["containers"][0]["volumeMounts"][0]["path"] = "/evaluation"
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
    del job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["groupName"]

    told = problems(job)

    assert 3 == len(told)
    assert all(any(name in problem for problem in told) for name in ("'path'", "0 is not of type", "'groupName'"))


def test_only_the_head_has_keys_and_results_and_all_pods_have_the_files(job: Any) -> None:
    head, worker = pods(job)
    (on_head,), (on_worker,) = head["containers"], worker["containers"]
    mounts = [{each["name"]: each["mountPath"] for each in one["volumeMounts"]} for one in (on_head, on_worker)]

    assert ["keval-keys"] == [each["secretRef"]["name"] for each in on_head["envFrom"]]
    assert not {"env", "envFrom"} & on_worker.keys()
    assert [{"evaluation": "/evaluation", "results": "/results"}, {"evaluation": "/evaluation"}] == mounts
    assert on_head["image"] == on_worker["image"]
    assert {"evaluation", "results"} == {volume["name"] for volume in head["volumes"]}


def test_what_the_manifest_mounts_is_made_by_the_kustomization(job: Any) -> None:
    made = yaml.safe_load((EXAMPLE / "kustomization.yaml").read_text(encoding="utf-8"))
    head, _ = pods(job)
    config, claim = head["volumes"]
    (generated,) = made["configMapGenerator"]
    claims = [yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8")) for name in made["resources"]]

    assert config["configMap"]["name"] == generated["name"]
    assert made["generatorOptions"]["disableNameSuffixHash"]  # names in a RayJob are not replaced
    assert all((EXAMPLE / name).is_file() for name in generated["files"])
    assert f"/evaluation/{generated['files'][0]}" in job["spec"]["entrypoint"]
    assert claim["persistentVolumeClaim"]["claimName"] in {each["metadata"]["name"] for each in claims}


def test_the_versions_are_those_of_the_constraints(job: Any) -> None:
    (tested,) = re.findall(r"^ray==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    image = (EXAMPLE / "Dockerfile").read_text(encoding="utf-8")

    assert [tested] == re.findall(r"ray\[default\]==([\d.]+)", image)
    assert tested == job["spec"]["rayClusterSpec"]["rayVersion"]


def test_the_workers_of_the_config_have_place_on_the_nodes(job: Any) -> None:
    config = yaml.safe_load((EXAMPLE / "eval.yaml").read_text(encoding="utf-8"))
    _, worker = pods(job)
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    cpus = int(worker["containers"][0]["resources"]["limits"]["cpu"])

    assert {"type": "ray", "address": "auto", "workers": group["maxReplicas"] * cpus} == config["execution"]["executor"]


@pytest.mark.skipif(find_spec("keval_ray") is None, reason="keval-ray is installed apart")
def test_the_config_is_valid(project: Project) -> None:
    keys = {"OPENAI_API_KEY": "sk-0123456789", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    outcome = project.keval("validate", str(EXAMPLE / "eval.yaml"), env=keys)

    assert (0, "") == (outcome.code, outcome.stderr)
