"""Plugins: the manifest `plugin.json`, whose skills and servers are compared on the cases of its evals.

Sources: Agent Plugins Specification 1.0.0; Claude Code, Plugins reference and Test plugins with evals. Cases are
folders of `evals` with `prompt.md`, `case.yaml` or both, and `graders/*.md`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval_formats.cases import Case, Suite, SuiteFormat, SuiteReader, label_of, listed, script, section

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)", re.DOTALL | re.MULTILINE)
_TELLING = ("$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords")
_CLAUDE = ("commands", "agents", "hooks", "output-styles", "bin")
_CASE = (
    *("schema_version", "name", "description", "tags", "expected_outcome", "prompt"),
    *("runs", "timeout_seconds", "scaffold_script", "graders"),
)
_GRADER = ("name", "type", "pattern", "flags", "match", "target", "tool", "input_match", "min", "max", "path", "exists")


def suite(data: dict[str, Any], path: Path) -> Suite | None:
    """Return the suite of a plugin by its manifest. Raises ConfigError for a client's servers, `.mcp.json`."""
    if path.name != "plugin.json" or "name" not in data:
        if path.suffix == ".json" and (section(data, "mcpServers") or section(data, "servers")):
            told = f"servers have no questions; `keval init DIR --from {path.name}` adds some: --questions, --generate"
            raise ConfigError([Problem(str(path), told)])
        return None
    root = path.parent.parent if path.parent.name == ".claude-plugin" else path.parent
    found = Suite(label_of(data.get("name"), "plugin"), path.parent, leaves_out=True)
    found.header = {key: data[key] for key in ("version", "description") if isinstance(data.get(key), str)}
    found.lacks_others(data, (*_TELLING, "displayName", "skills", "mcpServers", "experimental"))
    for name in _CLAUDE:
        if (root / name).is_dir():
            found.lacks(f"{name}/, which only Claude Code gets, by `{{type: plugin, path: …}}`")
    for folder in dict.fromkeys(("skills", *map(str, listed(data.get("skills"))))):
        for skill in sorted((root / folder).glob("*/SKILL.md")) or (root / folder).glob("SKILL.md"):
            found.add_skill(skill.parent)
    files = [each for each in (".mcp.json", "mcp.json") if (root / each).is_file()]
    for written in (*files, *(each for each in listed(data.get("mcpServers")) if f"{each}"[2:] not in files)):
        servers = written if isinstance(written, dict) else found.source(root / str(written))
        for name, entry in (section(servers, "mcpServers") or servers).items():
            found.add_server(name, entry, root, written if isinstance(written, str) else "mcpServers")
    evals = root / str(section(data, "experimental").get("evals", "evals"))
    places = sorted({each.parent for name in ("prompt.md", "case.yaml") for each in evals.rglob(name)})
    cases = [each for each in places if not {*each.parents} & {*places}]
    fields = [_case(found, each, evals) for each in cases]
    if cases:
        found.most("num_repetitions", (each.get("runs", 3) for each in fields))
        found.most("timeout_seconds", (each.get("timeout_seconds", 300) for each in fields))
    if any((folder / "mocks").is_dir() for folder in (evals, *cases)):
        found.lacks("mocks of servers: the servers themselves are asked")
    return found


def _case(found: Suite, folder: Path, evals: Path) -> Mapping[str, Any]:
    """Add the case in a folder, and return its fields."""
    written = found.source(folder / "case.yaml") if (folder / "case.yaml").is_file() else {}
    front, prompt = _markdown(found, folder / "prompt.md") if (folder / "prompt.md").is_file() else ({}, "")
    flat = {key: value for key, value in written.items() if key not in ("execution", "context")}
    fields = {**flat, **section(written, "execution"), **section(written, "context"), **front}
    name = os.path.relpath(folder, evals)
    case = Case(str(fields.get("name", name)), prompt or str(fields.get("prompt", "")))
    case.metadata = {key: fields[key] for key in ("description", "tags", "expected_outcome") if key in fields}
    found.lacks_others(fields, _CASE, told=f"{name}: ")
    if "scaffold_script" in fields:
        case.setup.append(script((folder / str(fields["scaffold_script"])).resolve()))
    graders = [each for each in listed(fields.get("graders")) if isinstance(each, dict)]
    for file in sorted(folder.glob("graders/*.md")):
        options, criteria = _markdown(found, file)
        graders.append({"name": file.stem, **({"criteria": criteria} if criteria else {}), **options})
    for grader in graders:
        told = f"{name}: the grader {grader.get('name')!r}"
        if _graded(case, grader, [key for key, each in found.contexts.items() if each["type"] == "skill"]):
            found.lacks_others(grader, (*_GRADER, "criteria", "focus"), told=f"{told}: ")
        else:
            found.lacks(f"{told} of the type {grader.get('type')!r}, which is not checked as it is written")
    found.cases.append(case)
    return fields


def _markdown(found: Suite, path: Path) -> tuple[dict[str, Any], str]:
    """Return the front matter of a file and its text. Raises ConfigError."""
    text = found.text(path)
    front = _FRONT.match(text)
    data = Source.parse(f"\n{front[1]}" if front and front[1].strip() else "{}", str(path), path.parent).data
    return data if isinstance(data, dict) else {}, (front[2] if front else text).strip()


def _graded(case: Case, grader: Mapping[str, Any], skills: list[str]) -> bool:
    """Add a grader to a case; false if nothing in keval is equivalent."""
    kind, target, match = grader.get("type"), grader.get("target", "last_message"), grader.get("match", "contains")
    file = str(target.get("path")) if isinstance(target, dict) else None
    if kind == "regex" and (file or target == "last_message") and match in ("contains", "not_contains"):
        absent = match == "not_contains"
        return case.matches(grader.get("pattern"), str(grader.get("flags", "")), absent=absent, file=file)
    if kind == "llm" and grader.get("focus", "last_message") == "last_message":
        case.expectations.append(str(grader.get("criteria")))
        return True
    if kind == "file_exists":
        return case.leaves(str(grader.get("path")), exists=grader.get("exists") is not False)
    bounds = (grader.get("min", 1), grader.get("max"))
    if kind != "tool_used" or bounds not in ((1, None), (0, 0)):
        return False
    absent, tool, given = bounds == (0, 0), str(grader.get("tool")), grader.get("input_match")
    if tool != "Skill":
        called = tool.rpartition("__")[2] if tool.startswith("mcp__") else tool
        return not given and case.expects("not_calls" if absent else "calls", called)
    told = [each for each in skills if re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", str(given))]
    told = told if given else skills if absent or len(skills) == 1 else []
    return case.expects("not_reads" if absent else "reads", *told)


def reader() -> SuiteReader:
    """The cases of a plugin's evals, as `claude plugin eval` has them."""
    return SuiteReader(suite)


plugin = SuiteFormat("plugin_evals", suite)
