"""The config that a command is about: the file that is named, or that of the current folder."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.messages import redactor
from keval.config.evaluation import Evaluation
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.errors import typed

CONFIG_NAMES = ("eval.yaml", "keval.yaml")
"""What a config may be called so that no command needs its name."""


def config_here(given: Path | None = None) -> Path:
    """Return the config that is given, or the one of the current folder. Raises click.UsageError."""
    found = [given] if given else [path for path in map(Path, CONFIG_NAMES) if path.is_file()]
    if len(found) == 1:
        return found[0]
    context, others = click.get_current_context(), found or sorted(Path().glob("[!.]*.y*ml"))[:3]
    calls = " or ".join(f"`{typed(context.info_name, other)}`" for other in others)
    names = " and ".join(map(str, found))
    told = f"this folder has both {names}" if found else "there is no eval.yaml or keval.yaml in this folder"
    remedy = f"name one: {calls}" if calls else "`keval init` writes one"
    raise click.UsageError(f"Missing argument 'CONFIG', and {told}; {remedy}", context)


config_argument = click.argument(
    "config", type=click.Path(path_type=Path), required=False, callback=lambda _, option, given: config_here(given)
)
"""The config that a command is about: by default that of the current folder."""


def read_config(given: Path | None) -> Evaluation:
    """Read a config, whose secrets are shown nowhere from then on. Raises ConfigError."""
    evaluation = load(config_here(given))
    learn_config(redactor(), evaluation)
    return evaluation
