"""What a newcomer types: no config, a name of an earlier version, `--help`."""

from __future__ import annotations

import click
import pytest

from keval.cli import main
from keval.cli.help import SectionedCommand
from keval.seams import registry
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {tools: [look]}}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
metrics: [double/length]
"""
QUESTIONS = '{"id": "a", "question": "How?"}\n'


@pytest.fixture
def folder(project: Project) -> Project:
    """A folder with a config that has a usual name."""
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    return project


@pytest.mark.parametrize(
    "command", ["run --dry-run", "validate", "validate --live --json", "power", "tools --context notes"]
)
def test_the_config_of_the_folder_need_not_be_named(folder: Project, command: str) -> None:
    outcome = folder.keval(*command.split())

    assert "CONFIG" not in outcome.stderr
    assert outcome.stdout


@pytest.mark.parametrize(
    "command", ["run", "validate", "power", "tools", "generate", "play", "check", "tap --context a"]
)
def test_what_was_looked_for_is_said_where_there_is_no_config_or_two(project: Project, command: str) -> None:
    name = command.split(maxsplit=1)[0]
    none = project.keval(*command.split())
    project.write(harbour_yaml=CONFIG)
    other = project.keval(*command.split())
    project.write(eval_yaml=CONFIG, keval_yaml=CONFIG)
    both = project.keval(*command.split())

    missing = "Error: Missing argument 'CONFIG', and there is no eval.yaml or keval.yaml in this folder; "
    assert [2, 2, 2] == [none.code, other.code, both.code]
    assert none.stderr.endswith(missing + "`keval init` writes one\n")
    assert other.stderr.endswith(missing + f"name one: `keval {name} harbour.yaml`\n")
    assert both.stderr.endswith(
        "Error: Missing argument 'CONFIG', and this folder has both eval.yaml and keval.yaml; name one: "
        f"`keval {name} eval.yaml` or `keval {name} keval.yaml`\n"
    )


def test_json_of_validate_is_of_what_is_looked_at(folder: Project) -> None:
    assert "--json prints what --live finds; add that" in folder.keval("validate", "--json").stderr


def test_review_says_what_it_is_about(project: Project) -> None:
    assert "Missing argument 'RUN'; `latest` is the newest" in project.keval("review", "--sample", "3").stderr
    assert "there is no eval.yaml or keval.yaml" in project.keval("review", "--questions").stderr


def test_old_names_work_and_tell_the_new_ones(folder: Project) -> None:
    looked = folder.keval("doctor", "--json")
    compared = folder.keval("diff", "latest", "nothing")

    assert "note: `keval doctor` is now `keval validate --live`; the old name goes" in looked.stderr
    assert "2 trials can begin" in {finding["found"] for finding in looked.data}
    assert "note: `keval diff` is now `keval compare --exact`" in compared.stderr
    assert "no run 'latest'" in compared.stderr
    assert not {"doctor", "diff"} & {*main.list_commands(click.Context(main))}


def test_exact_comparison_takes_two_runs_and_options_of_its_own(folder: Project) -> None:
    for _ in range(2):
        folder.keval("run", "-q")
    ids = [path.parent.name for path in folder.root.glob("results/*/*/manifest.json")]

    for wrong in (["--exact", ids[0]], ["--times", *ids], ["--limit", "2", *ids], ["--exact", "--explain", *ids]):
        outcome = folder.keval("compare", *wrong)

        assert 2 == outcome.code
        assert "--exact compares two runs, without --agent or --explain; --times and --limit need it" in outcome.stderr
    assert 0 == folder.keval("compare", "--exact", *ids).code


def test_help_lists_commands_by_what_one_does_first(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = registry.Component("keval.commands", "frob", "nowhere:command", "keval-doubles", "1.0")
    lost = registry.Component("keval.commands", "lost", "nowhere:command", "of-nobody", "1.0")
    found = registry.components
    more = {"keval.commands": (mine, lost)}
    monkeypatch.setattr(registry, "components", lambda group: (*found(group), *more.get(group, ())))

    lines = project.keval("--help").stdout.splitlines()
    all_lines = project.keval("--help-all").stdout.splitlines()

    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert ["Begin:", "Look:", "Compare:", "CI:", "Advanced:", "Commands of other packages:"] == titles[-6:]
    assert "  view    Show runs in the browser." in lines
    assert lines.index("Begin:") < lines.index("  run       Run an evaluation and show what its contexts do.")
    assert (
        "  plugins, tools, models, schema, new, clean, tap, gateway: see --help-all"
        == lines[lines.index("Advanced:") + 1]
    )
    assert "  schema   Print the JSON Schema of a config." in all_lines
    assert lines[-2:] == all_lines[-2:] == ["  frob  Doubles for tests. (keval-doubles)", "  lost  from of-nobody"]


def test_help_of_a_command_of_another_package_lists_all_options(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = SectionedCommand("frob", params=[click.Option([each]) for each in ("--depth", "--budget")])
    monkeypatch.setattr(main, "get_command", lambda ctx, name: command)
    monkeypatch.setattr(main, "list_commands", lambda ctx: ["frob"])

    for flag in ("--help", "--help-all"):
        lines = project.keval("frob", flag).stdout.splitlines()

        assert ["--depth", "--budget", "-h,"] == [line.split()[0] for line in lines[lines.index("Options:") + 1 :]]


def test_help_of_a_command_lists_options_by_what_one_does_first(project: Project) -> None:
    first = project.keval("run", "--help").stdout.splitlines()
    lines = project.keval("run", "--help-all").stdout.splitlines()

    titles = ["Options:", "Options to compare:", "Options for CI:", "Advanced options:"]
    places = [lines.index(title) for title in titles]
    assert sorted(places) == places
    assert "--help-all lists 21 more." == first[-1]
    assert lines[: places[1]] == first[:-1]
    assert any("--limit" in line for line in lines[places[0] : places[1]])
    assert any("--strict" in line for line in lines[places[2] : places[3]])
    assert any("--executor" in line for line in lines[places[3] :])


def test_help_of_no_command_is_long_and_all_options_are_listed_somewhere(project: Project) -> None:
    group = click.Context(main, **main.context_settings)
    for name in main.list_commands(group):
        command = main.get_command(group, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=group)
        shown = [each for each in command.get_params(own) if isinstance(each, click.Option) and not each.hidden]
        told = project.keval(name, "--help").stdout
        listed = {each.name for each in shown if f" {max(each.opts, key=len)}" in told}
        more = project.keval(name, "--help-all").stdout

        assert len(listed) <= 15, name
        assert not {each.name for each in shown if f" {max(each.opts, key=len)}" not in more}, name
