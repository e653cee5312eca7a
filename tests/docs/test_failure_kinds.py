"""The kinds of failures: one list in the code, which whoever makes a failure keeps to, and one table in the docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from keval.errors import FailureKind

ROOT = Path(__file__).parents[2]
KINDS = frozenset(get_args(FailureKind))
FACTORIES = {"Failure", "cannot_run", "partial", "FinishReason"}
"""What makes failures or their errors, besides the classes of errors."""
NAMED_BY_STATUS = re.compile(r"http_\d{3}")


@cache
def nodes() -> dict[Path, list[ast.AST]]:
    """Parse the modules of all packages but the one for tests, whose doubles fail in ways of their own."""
    folders = [ROOT / "core", *ROOT.glob("*/*/src")]
    paths = [path for folder in folders if folder.parent.name != "testing" for path in folder.rglob("*.py")]
    return {path: [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))] for path in paths}


@cache
def errors() -> frozenset[str]:
    """Return the names of the errors of trials."""
    found = {"TrialError"}
    classes = [node for each in nodes().values() for node in each if isinstance(node, ast.ClassDef)]
    while more := {each.name for each in classes if found & {*map(named, each.bases)}} - found:
        found |= more
    return frozenset(found)


def named(node: ast.expr) -> str:
    """Return the last name of an expression such as `errors.TrialError`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def made(module: list[ast.AST]) -> Iterator[str]:
    """Yield the kinds that a module writes where it makes a failure, or an error that becomes one."""
    makers = errors() | FACTORIES
    for node in module:
        if isinstance(node, ast.ClassDef) and node.name in errors():
            for each in node.body:
                if isinstance(each, ast.Assign | ast.AnnAssign) and "kind" in ast.unparse(each).partition("=")[0]:
                    yield from texts(each.value)
        if isinstance(node, ast.Call) and (name := named(node.func)) in makers:
            yield from (text for each in node.keywords if each.arg == "kind" for text in texts(each.value))
            if name in ("Failure", "cannot_run") and len(node.args) > 1:
                yield from texts(node.args[1])
            if name == "FinishReason" and node.args:
                yield from texts(node.args[0])


def texts(value: ast.expr | None) -> Iterator[str]:
    """Yield the texts that a value may be, but for those that are put together."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from (*texts(value.body), *texts(value.orelse))
    elif isinstance(value, ast.BoolOp):
        yield from (text for each in value.values for text in texts(each))


def test_a_kind_that_is_written_where_a_failure_is_made_is_in_the_list() -> None:
    found = {kind: path for path, module in nodes().items() for kind in made(module)}

    assert len(KINDS) // 2 < len(found)
    assert {} == {kind: path for kind, path in found.items() if kind not in KINDS and not NAMED_BY_STATUS.match(kind)}


def test_each_kind_in_the_list_is_one_that_the_code_has() -> None:
    every = [node for each in nodes().values() for node in each]
    lists = [each for each in every if isinstance(each, ast.Assign) and named(each.targets[0]) == "FailureKind"]
    listed = {node for each in lists for node in ast.walk(each)}
    written = {node.value for node in every if isinstance(node, ast.Constant) and node not in listed}

    assert set() == KINDS - written


def test_the_documentation_says_what_each_kind_means() -> None:
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    section = page.partition("\n## Kinds of failures\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \| \S.* \|$", section, re.MULTILINE)

    assert sorted(KINDS) == sorted(told)
