"""`keval export`: writes a run in the format of another tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from keval.cli.console import message_console, print_json, safe
from keval.cli.messages import foreign
from keval.cli.options import json_option, local_folder_type, results_option
from keval.config.structure import resolve_fields, structure
from keval.config.variables import Interpolated
from keval.errors import ConfigError, PluginError, Problem, RunError
from keval.seams import registry
from keval.seams.exporters import Exporter
from keval.seams.results import mirror_of
from keval.store.run import find_run
from keval_analysis.seal import SealCheck
from keval_report.display import tell_changed
from keval_report.words import run_place

_GROUP = "keval.exporters"
_FLAG = "--format"
_VARIABLE = "KEVAL_EXPORT_FORMAT"
_TARGET = "keval.exporter"


class _ExportCommand(click.Command):
    """A command whose further options are the fields of the exporter that `--format` names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Which options there are depends on the exporter, so that it has to be known before Click parses them.
        name = _format_in(args)
        if name is not None:
            ctx.meta[_TARGET] = registry.load(registry.find(_GROUP, name))
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params, exporter = super().get_params(ctx), ctx.meta.get(_TARGET)
        # A plain class is an exporter, too, and has no options.
        if exporter is None or not attrs.has(exporter):
            return params
        resolve_fields(exporter)
        return [*params, *(_option(field) for field in attrs.fields(exporter) if field.init)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = ", ".join(component.name for component in registry.offered(_GROUP))
        formatter.write_paragraph()
        formatter.write_text(f"Formats: {names or 'none is installed'}. `--format NAME --help` shows its own options.")


def _format_in(args: Sequence[str]) -> str | None:
    for index, argument in enumerate(args):
        if argument == _FLAG and index + 1 < len(args):
            return args[index + 1]
        if argument.startswith(f"{_FLAG}="):
            return argument.partition("=")[2]
    return os.environ.get(_VARIABLE)


def _option(field: attrs.Attribute[Any]) -> click.Option:
    flag = field.name.replace("_", "-")
    described = field.metadata.get("help", "")
    default = field.default
    if isinstance(default, bool):
        default = flag if default else f"no-{flag}"
    if default != "" and isinstance(default, str | int | float):
        described = f"{described}  [default: {default}]".strip()
    if field.type is bool:
        # Without a default of Click's, a flag that is not given is `None`, and the exporter's own default holds.
        return click.Option([f"--{flag}/--no-{flag}", field.name], default=None, help=described)
    return click.Option([f"--{flag}", field.name], metavar="VALUE", help=described)


@click.command("export", cls=_ExportCommand)
@click.argument("run")
@click.option(
    _FLAG, "format_name", required=True, envvar=_VARIABLE, metavar="NAME", help="The format: the name of an exporter."
)
@click.option(
    "-d",
    "--to",
    "folder",
    type=local_folder_type,
    help="The folder to write to.  [default: export/FORMAT in the run's own]",
)
@results_option
@json_option
def command(
    *, run: str, format_name: str, folder: Path | None, output_dir: Path, as_json: bool, **options: Any
) -> None:
    """Export RUN: a path, an id or its start, or `latest`. No model is called.

    The files that were written are listed on stdout. Exporting again replaces them.
    """
    exporter = _constructed(format_name, options)
    found = find_run(run, output_dir)
    if found.is_locked:
        raise RunError(f"another process is writing to {run_place(found.path)}; export it when that has ended")
    if folder is None and mirror_of(found.path.parent.parent):
        raise click.UsageError(f"an export is not mirrored to {run_place(found.path)}; name a folder with --to")
    folder = folder or found.path / "export" / format_name
    check = SealCheck(found)
    exported = exporter.export(check.run, folder)
    tell_changed(check)
    for reason in exported.left_out:
        message_console().print(safe(f"note: {reason}", "yellow"), soft_wrap=True)
    if exported.sent:
        message_console().print(safe(exported.sent), soft_wrap=True)
    if as_json:
        files = [str(path) for path in exported.files]
        told = {"files": files, "left_out": list(exported.left_out), "sent": exported.sent}
        print_json({"format": format_name, "folder": str(folder), **told})
    else:
        for path in exported.files:
            click.echo(foreign(str(path)))


def _constructed(name: str, options: dict[str, Any]) -> Exporter:
    """Construct the exporter with its options. Raises ConfigError that names each flag, and PluginError."""
    component = registry.find(_GROUP, name)
    target = registry.load(component)
    # Text of the command line is converted to the type of the field, like that of a variable in a config.
    given = {key: Interpolated(value) if isinstance(value, str) else value for key, value in options.items()}
    given = {key: value for key, value in given.items() if value is not None}
    if attrs.has(target):
        exporter, errors = structure(target, given, (), Path.cwd(), variables=False)
        if errors:
            raise ConfigError([Problem(f"--{'.'.join(map(str, e.path)).replace('_', '-')}", e.message) for e in errors])
    else:
        exporter = target()
    if not isinstance(exporter, Exporter):
        raise PluginError(f"{component.target} of {component.distribution} is no exporter: it has no method export()")
    return exporter
