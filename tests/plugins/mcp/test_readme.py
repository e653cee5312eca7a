"""What the README shows works."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from keval import Sample
from keval.plugin import ContextProvider, PreflightError
from keval_mcp import Http, Sse, Stdio
from keval_mcp.server.options import Auth
from tests.contexts import started

README = (Path(__file__).parents[3] / "plugins" / "mcp" / "README.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_contexts_are_valid_options() -> None:
    described = yaml.safe_load(_block("yaml"))["contexts"]

    made = []
    for options in described.values():
        (found,) = entry_points(group="keval.contexts", name=options.pop("type"))
        made.append(type(found.load()(**options)))

    assert [Stdio, Http] == made


def test_lists_have_every_option() -> None:
    options = {field.name for described in (Stdio, Http, Sse, Auth) for field in attrs.fields(described) if field.init}

    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL))
    lists = sections["Options"] + sections["Servers behind a login"]
    heads = re.findall(r"^- (`\w+`[^(:]*)", lists, re.MULTILINE)
    assert options == set(re.findall(r"`(\w+)`", " ".join(heads)))


def test_bundle_is_a_context_provider_that_tells_its_server_the_facts(sample: Sample) -> None:
    names: dict[str, Any] = {"__name__": "bundle"}
    exec(compile(_block("python"), "README.md", "exec"), names)

    bundle = names["Tickets"]()

    async def start() -> None:
        async with started(bundle, "tickets"):
            pass

    assert isinstance(bundle, ContextProvider)
    assert {"preferences": {"dislikes_cold": True}} == names["told"](sample)
    with pytest.raises(PreflightError, match="command 'acme-tickets' not found"):
        asyncio.run(start())
