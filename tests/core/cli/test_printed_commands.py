"""Every command of keval that is printed or documented is one that can be typed."""

from __future__ import annotations

import ast
import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from keval.cli import main
from tests.conftest import Project

ROOT = Path(__file__).parents[3]
FOLDERS = ("core", "plugins", "agents", "judges", "metrics", "docs", "examples")
KINDS = (".py", ".md", ".html", ".js", ".j2", ".yaml", ".yml")
GIVEN = "1"
"""Stands for what is filled in: a path, an id or a number."""
QUOTED = re.compile(r"(?:`|<code>)keval ([^`\n<]+)")
BARE = re.compile(r"(?<![\w./`-])keval ([a-z]+(?: (?:--?[a-z][\w-]*|[A-Z][A-Z_]*|latest|\S+\.(?:ya?ml|html)|1)\b)*)")
"""A command within a sentence: its options, and words that are plainly arguments."""
PRINTED = re.compile(r"keval ((?:'[^']+'|--?\w[\w-]*|[\w@/.-]+)(?: (?:'[^']+'|[\w@/.-]+))*)")
"""A command with all that is filled in."""
ENDS = re.compile(r" (?:[#|&…]|>>?(?: |$)|2>)|[;…]|\\$")


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file; in Python, strings and lists of words, with `1` for what is filled in."""
    whole = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield html.unescape(re.sub(r"\{\{[^}]*\}\}|\$\{[^}]*\}", GIVEN, re.sub("</?bdi>", "", whole)))
        return
    for node in ast.walk(ast.parse(whole)):
        match node:
            case ast.JoinedStr(values=parts) | ast.List(elts=parts):
                words = parts
            case ast.Call(func=ast.Name("typed"), args=words):
                words = [ast.Constant("keval"), *words]
            case ast.Constant():
                words = [node]
            case _:
                continue
        known = [part for part in words if not isinstance(part, ast.Starred)]
        filled = [str(part.value) if isinstance(part, ast.Constant) else GIVEN for part in known]
        yield ("" if isinstance(node, ast.JoinedStr) else " ").join(filled)


def commands(text: str) -> Iterator[str]:
    """Yield the commands of keval that a text has, without the name of the program."""
    for pattern in (QUOTED, BARE):
        yield from (re.sub(r"[][]", "", ENDS.split(found[1])[0]) for found in pattern.finditer(text))


def mistake(command: str) -> str | None:
    """Return what is wrong with a command; `None` if it can be typed, lacks only an argument, or is none of keval's."""
    group = click.Context(main, info_name="keval", **main.context_settings)
    name, *words = shlex.split(command) if command.split(maxsplit=1)[0] in main.list_commands(group) else ["nothing"]
    if (found := main.get_command(group, name)) is None or isinstance(found, click.Group):
        return None
    # An exporter adds options of its own.
    own = click.Context(found, parent=group, ignore_unknown_options=name == "export", **found.context_settings)
    try:
        _, rest, _ = found.make_parser(own).parse_args([word for word in words if word != "--help-all"])
    except click.NoSuchOption as error:
        return error.message
    except click.BadOptionUsage:
        return None
    return f"nothing takes {rest}" if rest and name != "export" else None


def test_every_command_that_is_printed_or_documented_can_be_typed() -> None:
    files = [ROOT / "README.md", *(path for each in FOLDERS for path in (ROOT / each).rglob("*"))]

    found = {
        (str(path.relative_to(ROOT)), command)
        for path in files
        if path.suffix in KINDS and "keval " in path.read_text(encoding="utf-8")
        for text in texts(path)
        for command in commands(text)
    }

    assert len(found) > 400
    assert {} == {place: told for place in sorted(found) if (told := mistake(place[1]))}


def test_commands_that_are_printed_work_as_they_are_printed(project: Project) -> None:
    config, results = "my evals/eval one.yaml", "my results"
    (project.root / "my evals").mkdir()
    (project.root / config).write_text(
        "dataset: {path: ../questions.jsonl}\nagents: {scripted: {}}\ncontexts: {notes: {tools: [look]}}\n"
        "conditions: {baseline: {}, with_notes: {contexts: [notes]}}\nmetrics: [double/length]\n",
        encoding="utf-8",
    )
    questions = ['{"id": "a", "question": "How?"}', '{"id": "b", "question": "Why?", "accepted": false}']
    project.write(questions_jsonl="\n".join(questions))
    here = ("-o", results)

    said = [project.keval("run", config, *here), project.keval("run", config, *here), project.keval("report")]
    first, second = sorted(path.parent for path in project.root.glob("*/*/*/manifest.json"))
    runs = [str(each.relative_to(project.root)) for each in (first, second)]
    said += [project.keval("report", runs[0], "--explain"), project.keval("history", *here)]
    said += [project.keval("compare", *runs), project.keval("history", "--changes", *runs[:1], *here)]
    said += [project.keval("generate", config), project.keval("resume", runs[0])]

    told = "".join(each.stdout + each.stderr for each in said)
    printed = sorted({found.rstrip(".;") for found in re.findall(PRINTED, told)})
    outcomes = {command: project.keval(*shlex.split(command)) for command in printed if "view" not in command}

    assert {"report", "show", "compare", "history", "review", "view"} == {command.split()[0] for command in printed}
    assert {} == {command: each.stderr for command, each in outcomes.items() if each.code == 2}
