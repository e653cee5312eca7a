"""`keval schema`: the JSON Schema of a config."""

from __future__ import annotations

import json

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of a config, with the options of every installed plugin.

    Editors check and complete a config that names it in its first line:
    `# yaml-language-server: $schema=keval.schema.json`
    """
    from keval.config.schema import evaluation_schema

    click.echo(json.dumps(evaluation_schema(), indent=2, ensure_ascii=False))
