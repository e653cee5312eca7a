"""The page on models, with the table that its site adds, lists every provider; and its commands run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from runpy import run_path

from importlib_metadata import version

from keval_providers import ALIASES, PROVIDERS
from tests.conftest import Project

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SITE = (DOCS / "models.md").read_text(encoding="utf-8"), run_path(str(DOCS / "site" / "tables.py"))
PROTOCOLS = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}


def test_the_page_and_the_site_have_what_the_table_of_providers_has() -> None:
    told = {
        (
            " ".join([provider.vendor, *sorted(name for name, meant in ALIASES.items() if meant == provider.vendor)]),
            " ".join(provider.key_variables),
            " ".join(provider.url_variables),
            ", ".join(PROTOCOLS[wire] for wire in provider.wires),
        )
        for provider in PROVIDERS.values()
    }

    assert rows(PAGE.splitlines()) < told
    assert rows(SITE["providers"]()) == told


def rows(lines: Iterable[str]) -> set[tuple[str, ...]]:
    """The rows of tables that begin with a name: names of three columns, and the text of the fourth."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    return {
        tuple(cell if number == 3 else " ".join(re.findall("`([^`]+)`", cell)) for number, cell in enumerate(row))
        for row in cells
    }


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
