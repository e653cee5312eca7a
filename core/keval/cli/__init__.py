"""The command line. Commands are imported when they are called, so that `keval --help` is fast."""

from __future__ import annotations

import gc
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from keval.cli.help import HELP_ALL, told
from keval.cli.output import OutputError, guarded_output
from keval.errors import ConfigError, KevalError, OutageError, PreflightError

__all__ = ["main"]

_COMMANDS = ("run", "resume", "score")


class _Commands(click.Group):
    """Built-in commands by module, and those of plugins by entry point; listing imports neither."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[HELP_ALL] = HELP_ALL in args  # of the command, too, which shares what the context holds
        return super().parse_args(ctx, ["--help" if each == HELP_ALL else each for each in args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_owners()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            command: click.Command = import_module(f"keval.cli.{cmd_name}_command").command
            return command
        if cmd_name not in _owners():
            return None
        from keval.errors import PluginError
        from keval.seams import registry

        component = registry.find("keval.commands", cmd_name)
        found = registry.load(component)
        if not isinstance(found, click.Command):
            raise PluginError(f"{component.target} of {component.distribution} is no click command")
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if (name := args[0]) not in _owners() and (now := told()["Old names"].get(name)):
            from keval.cli.messages import tell

            tell(f"note: `keval {name}` is now `keval {now}`; the old name goes with the next version")
            args = [*now.split(), *args[1:]]
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            from keval.errors import suggestion
            from keval.seams.installation import missing_command

            hint = missing_command(name) or suggestion(name, self.list_commands(ctx)) or "; `keval --help` lists all"
            raise click.UsageError(f"no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from keval.seams.registry import summary_of

        owners, sections = _owners(), dict[str, dict[str, str]]()
        for title, described in told().items():
            # A name that is described may be a command of somebody else's package, which is then told as theirs.
            sections[title] = {each: described[each] for each in described if owners.get(each, "").startswith("keval-")}
            for name in sections[title]:
                del owners[name]
        sections["Commands of other packages"] = {name: summary_of(owner) for name, owner in owners.items()}
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    if title in ("CI", "Advanced") and not ctx.meta.get(HELP_ALL):
                        formatter.write_text(f"{', '.join(rows)}: see {HELP_ALL}")
                    else:
                        formatter.write_dl([*rows.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        # A run makes many records and few cycles: to look for these as often as Python does takes a tenth of its CPU.
        gc.set_threshold(20_000, 20, 20)
        try:
            with guarded_output():
                return super().main(*args, **kwargs)
        except OutputError as error:
            click.echo(f"error: {error}", err=True)
            raise SystemExit(2) from error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as the whole of a process, which ends soon after its command."""
        try:
            return super().__call__(*args, **kwargs)
        except SystemExit as ended:
            if interruption := sys.modules.get("keval.cli.interruption"):  # only such a command leaves threads behind
                interruption.end_soon(ended.code)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        from keval.cli.messages import foreign, guarded, tell  # `keval --help` need not wait for it

        with guarded():
            try:
                return super().invoke(ctx)
            except OutputError:
                raise
            except OutageError as error:
                tell(f"error: {error}")
                ctx.exit(3)
            except KevalError as error:
                for problem in error.problems if isinstance(error, ConfigError | PreflightError) else [error]:
                    tell(f"error: {problem}")
                ctx.exit(2)
            except KeyboardInterrupt:
                ctx.exit(130)
            except click.NoSuchOption as error:
                from keval.seams.installation import missing_option

                told = foreign(missing_option(error.option_name) or error.format_message())
                raise click.UsageError(told, error.ctx) from error
            except click.ClickException as error:
                error.message = foreign(error.message)  # type: ignore[misc]  # click shows it
                raise
            except (click.exceptions.Exit, click.Abort):
                raise
            except Exception as error:  # noqa: BLE001 - the last seam: a defect must not look like a failed gate
                # A file that the user named, such as a folder in place of a config, is no defect.
                if isinstance(error, OSError) and error.filename is not None:
                    tell(f"error: {error.filename}: {error.strerror}; name another file or folder")
                    ctx.exit(2)
                tell(traceback.format_exc())
                tell(f"error: this is a defect of keval or a plugin, not of your config: {error!r}")
                # EX_SOFTWARE of sysexits.h: Python's own 1 after an error would be read as a failed gate.
                ctx.exit(70)


def _owners() -> dict[str, str]:
    """The distribution of each command; those that are described come first, in the order of the list."""
    from keval.seams import registry

    found = {component.name: component.distribution for component in registry.components("keval.commands")}
    found |= dict.fromkeys(_COMMANDS, "keval-core")
    return {name: found[name] for described in told().values() for name in described if name in found} | found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "KEVAL"})
# Without `allow_from_autoenv=False`, a variable KEVAL_VERSION would be this flag, and no command would run.
@click.version_option(package_name="keval-core", prog_name="keval", allow_from_autoenv=False)
def main() -> None:
    """Measure what a context does for an AI agent.

    Exit codes: 0 done; 1 a gate failed, or runs differ; 2 the usage, the config or a plugin is wrong; 3 done, but some
    trials or scores failed; 130 interrupted; 141 the reader of the output, such as `head`, closed the pipe; 70 a
    defect.
    """
