"""The config that a command is about: the file that is named, or that of the current folder."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from keval.cli.messages import redactor
from keval.config.evaluation import Evaluation
from keval.config.load import load
from keval.config.secrets import learn_config

CONFIG_NAMES = ("eval.yaml", "keval.yaml")
"""What a config may be called so that no command needs its name."""


def config_here(given: Path | None = None) -> Path:
    """Return the config that is given, or the one of the current folder. Raises click.UsageError."""
    if given is not None:
        return given
    context, found = click.get_current_context(), [name for name in CONFIG_NAMES if Path(name).is_file()]
    if len(found) == 1:
        return Path(found[0])
    others = found or sorted(path.name for path in Path().glob("[!.]*.y*ml"))[:3]
    name = "; name one: " + " or ".join(f"`keval {context.info_name} {shlex.quote(other)}`" for other in others)
    missing = f"Missing argument 'CONFIG', and there is no {' or '.join(CONFIG_NAMES)} in this folder"
    told = f"Missing argument 'CONFIG', and this folder has both {' and '.join(found)}" if found else missing
    raise click.UsageError(told + (name if others else "; `keval init` writes one"), context)


config_argument = click.argument(
    "config",
    type=click.Path(path_type=Path),
    required=False,
    callback=lambda context, parameter, given: config_here(given),
)
"""The config that a command is about: by default that of the current folder."""


def read_config(given: Path | None) -> Evaluation:
    """Read a config, whose secrets are shown nowhere from then on. Raises ConfigError."""
    evaluation = load(config_here(given))
    learn_config(redactor(), evaluation)
    return evaluation
