"""The README's example does what it says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.plugins.clients.conftest import http, serve

README = (Path(__file__).parents[3] / "plugins" / "clients" / "README.md").read_text(encoding="utf-8")


def test_the_example_asks_a_model() -> None:
    shown: dict[str, Any] = {}
    (block,) = re.findall(r"^```python\n(.*?)\n```$", README, re.DOTALL | re.MULTILINE)
    exec(compile(block, "README.md", "exec"), shown)

    async def scenario() -> object:
        async with serve(http({"choices": [{"message": {"content": "Because."}}]})) as scene:
            return await shown["ask"]("Why?", scene.url, "s3cret")

    assert asyncio.run(scenario()) == "Because."
