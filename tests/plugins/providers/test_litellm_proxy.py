"""Vendors with a protocol of their own, behind LiteLLM's own proxy, which is a program of the user's."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from keval_providers import PROVIDERS
from keval_providers.table import ProxiedProvider
from tests.conftest import Project
from tests.end_to_end.servers.model import served
from tests.plugins.providers.vendors import AWS, bedrock
from tests.providers import BusyModel, check_busy_run

PROXY = os.environ.get("KEVAL_LITELLM")
ROOT = Path(__file__).parents[3]
KEY = "sk-" + "0123456789abcdef" * 4
MODEL = "litellm/bedrock/eu.amazon.nova-lite-v1:0"
KNOWN = """
import json, litellm
from litellm.litellm_core_utils.get_llm_provider_logic import get_llm_provider
names = [getattr(name, "value", name) for name in litellm.provider_list]
print(json.dumps({name: get_llm_provider(f"{name}/some-model")[3] for name in names if name in NAMES}))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROXY is None, reason="LiteLLM's proxy is installed apart"),
]


@contextmanager
def proxy(folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Run LiteLLM's proxy with the config that docs/models.md gives."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    documented = re.findall(r"^    ((?:model_list|\w+_settings): .*)", page, re.MULTILINE)
    assert 3 == len(documented)
    (folder / "litellm.yaml").write_text("\n".join(documented), encoding="utf-8")
    command = [str(PROXY), "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    log = folder / "proxy.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environ}, stdout=file, stderr=file)
    base = f"http://127.0.0.1:{port}"
    try:
        while not is_up(f"{base}/health/liveliness"):
            assert process.poll() is None, log.read_text(encoding="utf-8")
        yield base
    finally:
        process.kill()
        process.wait()


def is_up(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


def test_a_busy_model_behind_the_proxy_answers_agents_and_judges(project: Project, tmp_path: Path) -> None:
    cloud = {**AWS, "LITELLM_MASTER_KEY": KEY}
    busy = BusyModel()
    with served(bedrock(busy)) as base, proxy(tmp_path, {**cloud, "AWS_BEDROCK_RUNTIME_ENDPOINT": base}) as url:
        environ = {"LITELLM_PROXY_API_BASE": url, "LITELLM_PROXY_API_KEY": KEY, "PYTHON": sys.executable}
        # LiteLLM takes an internal error of Bedrock for one of a service that is not available.
        check_busy_run(project, MODEL, environ, busy.asked, broken=503, says_when=False)
        for agent in ("anthropic", "gadk", "ms"):
            config = (
                (project.root / "eval.yaml").read_text(encoding="utf-8").replace("openai, model", f"{agent}, model")
            )
            (project.root / f"{agent}.yaml").write_text(config, encoding="utf-8")
            outcome = project.run(f"{agent}.yaml", env=environ)
            assert 0 == outcome.code, outcome.stdout + outcome.stderr

    assert {MODEL.rpartition("/")[2]} == {request.model for request in busy.asked}


def test_the_providers_have_the_names_and_the_base_urls_that_litellm_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those whose vendor documents another address since, and LiteLLM's own words for a server's."""
    for provider in PROVIDERS.values():
        for variable in (*provider.url_variables, *provider.key_variables):
            monkeypatch.delenv(variable, raising=False)
    python = str(Path(str(PROXY)).with_name("python"))
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    said = subprocess.run(
        [python, "-c", KNOWN.replace("NAMES", json.dumps([*PROVIDERS]))],
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = json.loads(said.stdout.splitlines()[-1])
    ours = {name: next(iter(provider().urls.values()), None) for name, provider in PROVIDERS.items()}

    assert {"google", "litellm"} == PROVIDERS.keys() - theirs.keys()
    assert {"deepseek", "github", "llamafile", "nebius", "ollama"} == {
        name
        for name, url in theirs.items()
        if url is not None and url != ours[name] and not issubclass(PROVIDERS[name], ProxiedProvider)
    }
