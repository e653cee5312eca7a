"""The formats of mcpchecker: a task, and an eval that asserts which tools are called for the tasks of its sets.

Sources: mcpchecker, Task Format and Use Assertions. Paths are relative to the file that they stand in.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keval_formats.cases import Case, Suite, SuiteFormat, SuiteReader, label_of, listed, script, seconds, section

_ASSERTED = {
    "toolsUsed": ("calls", "tool"),
    "toolsNotUsed": ("not_calls", "tool"),
    "skillsLoaded": ("reads", "skill"),
    "skillsNotLoaded": ("not_reads", "skill"),
}
_JUDGED = {"contains": "The response says this", "exact": "The response means the same as this"}
_VARIABLE = "KUBECONFIG"


def suite(data: dict[str, Any], path: Path) -> Suite | None:
    """Return the suite of an eval, or of one task."""
    config = section(data, "config")
    found = Suite(label_of(section(data, "metadata").get("name"), "mcpchecker"), path.parent)
    runs: list[Any] = []
    if data.get("kind") == "Task" and (section(data, "spec") or section(data, "steps")):
        runs.append(_add_task(found, data, path.parent, {}))
    elif data.get("kind") == "Eval" and isinstance(config.get("taskSets"), list):
        found.lacks_others(config, ("taskSets", "mcpConfigFile", "skills"), "config")
        if servers := str(config.get("mcpConfigFile", "")):
            for name, entry in section(found.source(path.parent / servers), "mcpServers").items():
                found.add_server(name, entry, path.parent, servers)
        for each in found.entries(section(config, "skills").get("sources"), "the source of skills"):
            for skill in sorted((path.parent / str(each.get("path"))).glob("*/SKILL.md")):
                found.add_skill(skill.parent)
        for index, each in enumerate(found.entries(config["taskSets"], "the task set", "config", "taskSets")):
            found.lacks_others(each, ("path", "glob", "assertions"), "config", "taskSets", index)
            for file in sorted(path.parent.glob(str(each.get("path", each.get("glob"))))):
                runs.append(_add_task(found, found.source(file), file.parent, section(each, "assertions")))
    else:
        return None
    found.most("num_repetitions", runs)
    if found.more:  # scripts change what all tasks share
        found.execution["max_concurrent"] = 1
    return found


def _add_task(found: Suite, task: Mapping[str, Any], folder: Path, asserted: Mapping[str, Any]) -> Any:
    """Add a task, and return how often it runs."""
    about, steps = section(task, "metadata"), section(task, "spec") or section(task, "steps")
    name, prompt = str(about.get("name", folder.name)), section(steps, "prompt")
    text = found.text(folder / str(prompt["file"])) if "file" in prompt else str(prompt.get("inline", ""))
    case = Case(name, text, (), {key: about[key] for key in ("difficulty", "labels") if key in about})
    found.cases.append(case)
    found.lacks_others(about, ("name", "difficulty", "labels", "runs", "parallel"), told=f"{name}: ")
    found.lacks_others(steps, ("setup", "verify", "cleanup", "prompt"), told=f"{name}: ")
    for key in ("setup", "verify", "cleanup"):
        for kind, step in _steps(found.entries(steps.get(key), f"{name}: the step of {key}")):
            if kind == "llmJudge" and key == "verify":
                case.expectations += [f"{_JUDGED[word]}: {step[word]}" for word in _JUDGED if word in step]
            elif not (command := _command(step, folder) if kind == "script" else None):
                found.lacks(f"{name}: the step {kind!r} of {key}")
            elif key == "verify":
                case.verifies("command", key, {"run": command, "timeout_seconds": _timeout(step)})
            else:
                _add_script(
                    found, key, f'if [ "$KEVAL_SAMPLE" = {shlex.quote(name)} ]; then {command}; fi', _timeout(step)
                )
    for key, each in asserted.items():
        word, named = _ASSERTED.get(key, ("", ""))
        texts = [str(one.get(named, "")) for one in listed(each) if isinstance(one, dict)]
        if not word or not all(texts) or not case.expects(word, *texts):
            found.lacks(f"{name}: the assertion {key!r}, as it is written")
    return about.get("runs", 1)


def _steps(written: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the steps of a phase; of the first version, a script alone, or what a judge is asked."""
    for each in written:
        if {"file", *_JUDGED} & {*each}:
            yield "script" if "file" in each else "llmJudge", each
        else:
            yield from ((kind, section(each, kind)) for kind in each)


def _timeout(step: Mapping[str, Any]) -> float:
    return seconds(step.get("timeout")) or 300.0


def _command(step: Mapping[str, Any], folder: Path) -> str | None:
    """Return the command of a step, which is run in the folder of its task."""
    text = shlex.quote(str(step.get("inline")))
    if "file" in step:
        command = script((folder / str(step["file"])).resolve())
    elif str(step.get("inline", "")).startswith("#!"):
        command = f'f=$(mktemp) && printf %s {text} > "$f" && chmod +x "$f" && "$f"'
    else:
        command = f"bash -c {text}" if "inline" in step else ""
    ignored = " || true" if step.get("continueOnError") else ""
    return command and f"(cd {shlex.quote(str(folder.resolve()))} && {command}){ignored}"


def _add_script(found: Suite, key: str, line: str, timeout: float) -> None:
    """Add a line to what is run before or after each trial."""
    env = [_VARIABLE] if _VARIABLE in os.environ else []
    section = found.more.setdefault(key, {"trial": {"command": "set -e", "env": env, "timeout_seconds": 0.0}})
    section["trial"]["command"] += f"\n{line}"
    section["trial"]["timeout_seconds"] = max(section["trial"]["timeout_seconds"], timeout)
    found.lacks(f"variables for scripts, but {_VARIABLE}: name others in `env` of `setup` and `cleanup`")


def reader() -> SuiteReader:
    """The tasks of an eval of mcpchecker, or a task alone."""
    return SuiteReader(suite)


mcpchecker = SuiteFormat("mcpchecker", suite)
