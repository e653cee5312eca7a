"""A project with the weather example's questions; only the model is simulated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "weather"

CONFIG = """
name: weather
dataset: {path: questions.jsonl}
agents:
  gadk: {model: simulated/weather}
contexts:
  weather: {}
conditions:
  baseline: {system_prompt: "You help with the weather. The user's id is user-1."}
  with_weather: {system_prompt: "You help with the weather. The user's id is user-1.", contexts: [weather]}
metrics: [weather/accuracy, weather/tool_call_count]
plugins: [weather/ground-truth]
execution: {retry: {initial_backoff_seconds: 0}}
"""


@pytest.fixture
def weather(project: Project) -> Callable[..., Project]:
    """Writes a config, changed by (old, new) pairs, beside the example's questions."""

    def make(*changes: tuple[str, str]) -> Project:
        config = CONFIG
        for old, new in changes:
            assert old in config
            config = config.replace(old, new)
        shutil.copy(EXAMPLE / "questions.jsonl", project.root)
        project.write(eval_yaml=config)
        return project

    return make
