"""`keval report`: a run's report, again; or a page of it, or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import click

from keval.cli.console import message_console, safe
from keval.cli.options import Detail, detail_option, json_option, results_option
from keval.errors import ConfigError, PluginError
from keval.files import replacing
from keval.seams import registry
from keval.store.run import Run, find_run
from keval_analysis.expectations import ExpectationCheck
from keval_analysis.findings.summary import Summary
from keval_analysis.gate_language import Names, read_gates
from keval_analysis.gates import with_gates
from keval_analysis.options import GateFlags, gate_options
from keval_analysis.outline import Outline, summarise_with_outline
from keval_analysis.readings import kept_parts
from keval_analysis.seal import SealCheck
from keval_report.display import finish
from keval_report.means import print_plain_table
from keval_report.terminal.console import data_console

_STDOUT = Path("-")


@click.command("report")
@click.argument("run")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page of the run: one file that needs nothing else.",
)
@click.option(
    "--markdown",
    is_flag=False,
    flag_value="-",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="[FILE]",
    help="Write Markdown, as for a pull request; to stdout without a file.",
)
@click.option("--table", is_flag=True, help="Print mean ± standard deviation of each metric and arm.")
@gate_options
@results_option
@detail_option
@json_option
def command(
    *,
    run: str,
    html: Path | None,
    markdown: Path | None,
    table: bool,
    gate_flags: GateFlags,
    output_dir: Path,
    detail: Detail,
    as_json: bool,
) -> None:
    """Show the report of RUN: a path, an id or its start, or `latest`.

    It is made anew from the run's trials and scores, and its gates are decided again, with those of flags. Exits as the
    run did.
    """
    check = SealCheck(find_run(run, output_dir))
    found = check.run
    # Asked before the run is read, as it may end meanwhile.
    under_way = found.is_locked
    summary, outline = _summary(found, gate_flags, output_dir, outlined=html is not None)
    # After the summary, which has read trials and scores to their end: they are not read again.
    summary = attrs.evolve(summary, changed=check.changed(whole=True))
    if html is not None:
        _write(html, _page(found, summary, outline))
    if markdown == _STDOUT:
        click.echo(_markdown(found, summary), nl=False)
    elif markdown is not None:
        _write(markdown, [_markdown(found, summary)])
    if table:
        print_plain_table(summary, data_console())
    written = table or html is not None or markdown is not None
    finish(found, summary, detail=detail, as_json=as_json, quiet=written, under_way=under_way, strict=gate_flags.strict)


def _summary(run: Run, gate_flags: GateFlags, output_dir: Path, *, outlined: bool) -> tuple[Summary, Outline | None]:
    """Summarise a run, and decide its gates and those of flags. Raises ConfigError and RunError."""
    flags, problems = read_gates(
        ((text, f"--fail-under {text}") for text in gate_flags.fail_under), Names.of(run.manifest)
    )
    if problems:
        raise ConfigError(problems)
    regression, expectations = gate_flags.regression(output_dir, run), ExpectationCheck.of(run.manifest)
    trials = expectations.watch(run.trials())
    summary, outline = summarise_with_outline(run, trials) if outlined else (run.summary(trials), None)
    summary = attrs.evolve(summary, parts=kept_parts(run))
    return with_gates(run, summary, expectations, flags=flags, regression=regression), outline


def _page(run: Run, summary: Summary, outline: Outline | None) -> Iterator[str]:
    from keval_report.report import Report  # for most reports the terminal's is enough

    component = registry.find("keval.exporters", "html")
    exporter = registry.load(component)()
    if not hasattr(exporter, "render"):
        raise PluginError(f"{component.target} of {component.distribution} makes no page: it has no method render()")
    page: Iterator[str] = exporter.render(Report(run, summary, outline))
    return page


def _markdown(run: Run, summary: Summary) -> str:
    from keval_report.markdown import markdown  # as in `_page`
    from keval_report.report import Report

    return markdown(Report(run, summary))


def _write(path: Path, parts: Iterable[str]) -> None:
    """Write a text, and say where it is. Raises RunError."""
    with replacing(path) as file:
        file.writelines(part.encode("utf-8", "replace") for part in parts)
    message_console().print(safe(f"wrote {path}"), soft_wrap=True)
