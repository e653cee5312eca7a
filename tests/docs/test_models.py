"""The page on models lists every provider with its variables and protocols, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from importlib_metadata import version

from keval_providers import ALIASES, PROVIDERS
from tests.conftest import Project

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
PROTOCOLS = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}


def test_the_tables_of_the_page_have_what_the_table_of_providers_has() -> None:
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in PAGE.splitlines() if row.startswith("| `")]
    written = {
        tuple(cell if number == 3 else " ".join(re.findall("`([^`]+)`", cell)) for number, cell in enumerate(row))
        for row in rows
    }

    assert {
        (
            " ".join([provider.vendor, *sorted(name for name, meant in ALIASES.items() if meant == provider.vendor)]),
            " ".join(provider.key_variables),
            " ".join(provider.url_variables),
            ", ".join(PROTOCOLS[wire] for wire in provider.wires),
        )
        for provider in PROVIDERS.values()
    } == written


def test_the_commands_of_the_page_say_what_it_says(project: Project) -> None:
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    environ = {"OPENROUTER_API_KEY": None}

    listed, one, refused = (
        project.keval(*shlex.split(line.removeprefix("keval ")), env=environ) for line in block.splitlines()
    )

    assert (0, 0, 2) == (listed.code, one.code, refused.code)
    assert {"openrouter", "ollama", "azure"} < {line.partition(" ")[0] for line in listed.stdout.splitlines()}
    assert [f"keval-providers {version('keval-providers')}", "openrouter"] == [
        line.partition("  ")[0] for line in one.stdout.splitlines()
    ]
    assert "OPENROUTER_API_KEY is not set" in refused.stdout
