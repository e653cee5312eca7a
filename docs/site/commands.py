"""Writes the page of commands from what `keval COMMAND --help` says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from keval.cli import main

_TOP = """# Commands

Any flag can be set by an environment variable instead: `KEVAL_RUN_MAX_CONCURRENT=4` is `keval run --max-concurrent 4`.
The page about [the config](../config.md#flags) says which flag changes which key.

"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, "reference/commands.md", content=_TOP + "\n".join(_page())))
    return files


def _page() -> Iterator[str]:
    with click.Context(main, info_name="keval", **main.context_settings) as parent:
        yield f"{inspect.cleandoc(main.help or '')}\n"
        for name in main.list_commands(parent):
            command = main.get_command(parent, name)
            if command is None:
                raise RuntimeError(f"keval lists the command {name}, and has none of that name")
            yield from _command(command, name, parent)


def _command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=parent) as context:
        path = context.command_path
        yield f"## {path}\n" if parent.parent is None else f"### {path}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        yield f"```console\n{usage}\n```\n"
        records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
        if rows := [f"| `{flag}` | {_cell(text)} |" for flag, text in records if text and "--help" not in flag]:
            yield "\n".join(["| flag | what it does |", "|---|---|", *rows, ""])
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                if found := command.get_command(context, child):
                    yield from _command(found, child, context)


def _cell(text: str) -> str:
    """Return a text for a table, where a bracket would begin a link to a name."""
    return re.sub(r"([\[|])", r"\\\1", " ".join(text.split()))
