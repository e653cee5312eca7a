"""The formats of vally: stimuli with graders (`eval.yaml`, `eval.vally.yaml`), and experiments that `vary` skills.

Sources: Vally, Eval Spec Reference, Grader Catalog and Experiment File Schema. Paths are relative to the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keval_formats.cases import Case, Suite, SuiteFormat, SuiteReader, label_of, listed, seconds, section

_EVAL = ("name", "description", "version", "type", "tags", "environment", "agent_environment", "config", "defaults")
_COMPARED = re.compile(r"(output|file)-(not-)?(contains|matches|exists)")
_CHOICES = {"tool-calls": "calls", "skill-invocation": "reads"}


def suite(data: dict[str, Any], path: Path) -> Suite | None:
    """Return the suite of an evaluation or of an experiment."""
    found = Suite(label_of(data.get("name"), label_of(path.resolve().parent.name, "vally")), path.parent)
    found.header = {key: str(data[key]) for key in ("version", "description") if key in data}
    if isinstance(data.get("variants"), dict) and isinstance(data.get("evals"), list):
        _add_experiment(found, data)
    elif isinstance(data.get("stimuli"), list):
        _add_eval(found, data, path)
    else:
        return None
    return found


def _add_eval(found: Suite, data: Mapping[str, Any], path: Path, *, alone: bool = True) -> None:
    """Add the stimuli of a file, and its skills and servers; `alone`, if the file is the suite's own."""
    found.lacks_others(data, (*_EVAL, "stimuli", "graders"))
    settings = {**section(data, "defaults"), **section(data, "config")}
    found.lacks_others(settings, ("runs", "timeout"), "config" if "config" in data else "defaults")
    found.most("num_repetitions", [settings.get("runs")])
    found.most("timeout_seconds", [seconds(settings.get("timeout"))])
    around = _environment(found, data)
    _add_offered(found, around, path.parent)
    for index, each in enumerate(found.entries(data.get("stimuli"), "the stimulus", "stimuli")):
        where = ("stimuli", index) if alone else ()
        about = {"tags": each["tags"]} if "tags" in each else {}
        case = Case(str(each.get("name", index)), str(each.get("prompt", "")), where, about)
        own = _environment(found, each, *where)
        found.lacks_others(each, (*_EVAL, "prompt", "rubric", "graders"), *where)
        found.lacks_others(own, ("files", "commands"), *where, told="the environment of a stimulus: ")
        for file in found.entries([*listed(around.get("files")), *listed(own.get("files"))], "the file", *where):
            case.files[str(file.get("dest"))] = {"copy": str((path.parent / str(file.get("src"))).resolve())}
        case.setup += map(str, (*listed(around.get("commands")), *listed(own.get("commands"))))
        case.expectations += map(str, listed(each.get("rubric")))
        for grader in found.entries([*listed(data.get("graders")), *listed(each.get("graders"))], "the grader", *where):
            if not _graded(case, str(grader.get("type")), section(grader, "config")):
                found.lacks(f"a grader of the type {grader.get('type')!r}, as it is configured", *where)
        found.cases.append(case)


def _environment(found: Suite, data: Mapping[str, Any], *where: str | int) -> dict[str, Any]:
    for key in ("environment", "agent_environment"):
        if isinstance(data.get(key), str):
            found.lacks(f"an environment of .vally.yaml, {data[key]!r}", *where, key)
    return {**section(data, "environment"), **section(data, "agent_environment")}


def _add_offered(found: Suite, environment: Mapping[str, Any], base: Path, parent: str = "") -> list[str]:
    """Add skills and servers, and return their labels."""
    skills = (str(each).replace("${eval.parent}", parent) for each in listed(environment.get("skills")))
    labels = [found.add_skill(base / each.removesuffix("/SKILL.md")) for each in skills]
    servers = section(environment, "mcpServers").items()
    return [*labels, *filter(None, (found.add_server(name, entry, base, "mcpServers") for name, entry in servers))]


def _graded(case: Case, kind: str, config: Mapping[str, Any]) -> bool:
    """Add a grader to a case; false if nothing in keval is equivalent."""
    if compared := _COMPARED.fullmatch(kind):
        absent, file = bool(config.get("negate", compared[2])), str(config.get("path")) if kind[0] == "f" else None
        if compared[3] == "exists":
            return case.leaves(file or "", exists=not absent)
        literal = re.escape(str(config.get("substring", config.get("value"))))
        pattern = config.get("pattern") if compared[3] == "matches" else literal
        flags = "i" if pattern == literal and not file and not config.get("case_sensitive") else ""
        return not re.search(r"[*?\[]", file or "") and case.matches(pattern, flags, absent=absent, file=file)
    if key := _CHOICES.get(kind):
        # A name is a pattern, which says the same as the name if it is only a word.
        wanted, unwanted = ([_named(each) for each in listed(config.get(of))] for of in ("required", "disallowed"))
        plain = all(re.fullmatch(r"[\w-]+", each) for each in wanted + unwanted)
        if not plain or not {*config} <= {"required", "disallowed"}:
            return False
        return case.expects(key, *wanted) | case.expects(f"not_{key}", *unwanted)
    if kind == "prompt":
        case.expectations += [] if case.expectations else [str(config.get("prompt"))]
        return {*config} <= {"prompt"}
    if kind == "run-command" and {*config} == {"command"}:
        return case.verifies("command", "command", config["command"])
    if kind == "diff-empty":
        return case.verifies("unchanged", "diff", ["**"])
    # A trial that does not complete is a failure in keval.
    return kind in ("completed", "exit-success")


def _named(entry: Any) -> str:
    return str(entry["name"] if isinstance(entry, dict) and {*entry} == {"name"} else entry)


def _add_experiment(found: Suite, data: Mapping[str, Any]) -> None:
    """Add all stimuli of an experiment, and a condition for each variant, whose skills and servers replace others."""
    found.lacks_others(data, ("name", "description", "version", "evals", "vary", "baseline", "variants"))
    files = sorted({file for each in data["evals"] for file in found.base.glob(str(each))})
    for file in files:
        _add_eval(found, found.source(file), file, alone=False)
    usual = [*found.contexts]
    for name, variant in data["variants"].items():
        own = section(variant, "environment")
        found.lacks_others(variant or {}, ("environment",), "variants", name)
        found.lacks_others(own, ("skills", "mcpServers"), "variants", name, "environment")
        added = _add_offered(found, own, found.base, files[0].parent.name if len(files) == 1 else "")
        of_skills = {each for each in usual if found.contexts[each]["type"] == "skill"}
        kept = [each for each in usual if ("skills" if each in of_skills else "mcpServers") not in own]
        found.arms[label_of(name, "variant")] = [*kept, *added]
    if isinstance(data.get("baseline"), str):
        found.header["baseline"] = label_of(data["baseline"], "")


def reader() -> SuiteReader:
    """The stimuli of vally, of one file or of those of an experiment."""
    return SuiteReader(suite)


vally = SuiteFormat("vally", suite)
