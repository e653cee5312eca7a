"""The format of `evals/evals.json`: tasks for one skill, with what must hold of each answer.

Sources: agentskills.io, Evaluating skills, whose cases have `assertions`; skill-creator, JSON Schemas, whose cases have
`expectations`. Files are relative to the skill's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from keval.errors import FieldError
from keval.seams.formats import Translation
from keval_formats.cases import OFFERED, label_of, parties

WORD = "evals"
"""The key by which a file is known to be in this format."""
_LISTS = ("assertions", "expectations")
_KNOWN = ("id", "prompt", "expected_output", "files", *_LISTS)
_TELLING = ("name", "eval_name", "title", "description", "category", "tags", "notes")
"""Keys that say something about a case, and ask for nothing."""
_HEADER = ("version", "description")
_EXPECT = {"contains": "contains", "not_contains": "not_contains", "regex": "regex", "matches": "regex"}
"""Types of assertions that are decided without a judge, and the keys of `expect` that they become."""
_FILES = {"file_exists": True, "file_not_exists": False}
_VALUES = ("value", "pattern", "expected", "path")
_TEXTS = ("text", "assertion", "expectation", "statement", "description")


class AgentSkills:
    """The format of agentskills.io and of skill-creator."""

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Make two conditions of a file, without and with the skill that it lies in."""
        evals = data.get(WORD)
        if not isinstance(evals, list) or {"agents", "dataset", "variants"} & {*data}:
            return None
        label = label_of(data.get("skill_name"), "skill")
        skill = skill_folder(path)
        cases = [each for each in evals if isinstance(each, dict)]
        parts = [part for case in cases for part in _parts(case)]
        judged = any(key == "expectations" for key, _ in parts) or any(case.get("expected_output") for case in cases)
        problems = []
        contexts = {label: {"type": "skill", "path": os.path.relpath(skill, path.parent)}} if skill else {}
        if skill is None:
            told = f"there is no SKILL.md beside {path.name} or above it; put it into `evals/` of the skill's folder"
            problems.append(FieldError((), told))
        if not parts and not judged:
            told = f"no case has what an answer is checked by: {', '.join(_LISTS)} or expected_output"
            problems.append(FieldError((WORD,), told))
        return Translation(
            {
                **{key: data[key] for key in _HEADER if key in data},
                "name": label,
                "dataset": {"path": path.name, "question_key": "prompt", "answer_key": "expected_output"},
                **parties(judged=judged),
                "contexts": contexts,
                "conditions": {"without_skill": {}, "with_skill": {"contexts": [*contexts]}},
                **({"metrics": ["verify"]} if any(key == "verify" for key, _ in parts) else {}),
            },
            moves={("skill_name",): ("contexts", label)} if skill else {},
            problems=tuple(problems),
            notices=(OFFERED,),
            unmatched=tuple(_unmatched(data, evals)),
        )

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add nothing: a config in keval's own words has no key of this format."""


agent_skills = AgentSkills()


def skill_folder(path: Path) -> Path | None:
    """Return the folder of the skill that a file is about: with SKILL.md beside the file, or up to two levels above."""
    folders = (path.parent, *path.resolve().parent.parents[:2])
    return next((each for each in folders if (each / "SKILL.md").is_file()), None)


def record(case: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a case as a record of a dataset. Raises ValueError: what is wrong with it."""
    found: dict[str, list[Any]] = {}
    for key, value in _parts(case):
        found.setdefault(key, []).append(value)
    metadata = case.get("metadata")
    texts = found.pop("expectations", []) or [text for text in [case.get("expected_output")] if text]
    about = {**(metadata if isinstance(metadata, dict) else {}), **({"expectations": texts} if texts else {})}
    skill = skill_folder(path)
    # Without a skill there is no folder that files are relative to, and they are only metadata.
    kept = {key: value for key, value in case.items() if key not in (("files", *_LISTS) if skill else _LISTS)}
    verify = {"verify": found.pop("verify")} if "verify" in found else {}
    files = _files(case, skill) if skill else {}
    # A check of files needs a folder, if an empty one.
    workspace = {"workspace": {"files": files}} if files or verify else {}
    return {**kept, "metadata": about, **({"expect": found} if found else {}), **verify, **workspace}


def _files(case: Mapping[str, Any], skill: Path) -> dict[str, Any]:
    """Return the files of a case by their paths in the workspace: where the prompt has them, or else at its top."""
    given = case.get("files") or []
    # Some say of each what it is for.
    if isinstance(given, list):
        given = [each.get("path") if isinstance(each, dict) else each for each in given]
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise ValueError(f"'files' is a list of paths, relative to the skill's folder, got {given!r:.100}")
    found: dict[str, Any] = {}
    for each in given:
        # Some write paths relative to `evals`. What is outside of the skill is nothing that an agent should get.
        places = (place.resolve() for place in (skill / each, skill / "evals" / each))
        there = next((place for place in places if place.is_file() and place.is_relative_to(skill.resolve())), None)
        if there is None:
            raise ValueError(f"the skill has no file {each!r}; 'files' are relative to the folder of SKILL.md, {skill}")
        name = PurePosixPath(each).name
        told = re.search(rf"(?<![\w./-])(?:[\w-][\w.-]*/)*{re.escape(name)}(?![\w-])", str(case.get("prompt")))
        found[told[0] if told else name] = {"copy": str(there)}
    if len(found) < len(given):
        raise ValueError("two of 'files' have the same name; give them different ones, or name them in the prompt")
    return found


def _parts(case: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what must hold of a case: `expectations` for a judge, keys of `expect`, and checks for `verify`."""
    for _, part in _listed(case):
        if (read := _part(part)) is not None:
            yield read


def _listed(case: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for key in _LISTS:
        given = case.get(key)
        for index, part in enumerate(given if isinstance(given, list) else []):
            yield (key, index), part


def _part(part: Any) -> tuple[str, Any] | None:
    """Read an assertion, `None` if nothing in keval is equivalent."""
    if isinstance(part, str):
        return ("expectations", part) if part.strip() else None
    if not isinstance(part, dict):
        return None
    kind = str(part.get("type", "")).replace("-", "_")
    value = _first(part, _VALUES)
    if kind in _EXPECT and value:
        return _EXPECT[kind], value
    if kind in _FILES and value:
        return "verify", {"name": f"{kind}: {value}", "file": {"path": value, "exists": _FILES[kind]}}
    text = _first(part, _TEXTS)
    return ("expectations", text) if text else None


def _first(part: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((part[key] for key in keys if isinstance(part.get(key), str) and part[key].strip()), None)


def _unmatched(data: Mapping[str, Any], evals: list[Any]) -> Iterator[FieldError]:
    """Yield what is read and has no effect; a key that several cases have is told once."""
    for key in data:
        if key not in (WORD, "skill_name", *_HEADER) and not key.startswith("$"):
            yield FieldError((key,), f"the key {key!r}", at_key=True)
    seen: set[str] = set()
    for index, case in enumerate(evals):
        for key in case if isinstance(case, dict) else ():
            if key not in (*_KNOWN, *_TELLING, "metadata", *seen):
                seen.add(key)
                yield FieldError((WORD, index, key), f"the key {key!r}, kept as metadata of the sample", at_key=True)
        for place, part in _listed(case) if isinstance(case, dict) else ():
            if _part(part) is None:
                kind = part.get("type") if isinstance(part, dict) else None
                told = f"an assertion of the type {kind!r}" if kind else "an assertion without a text"
                yield FieldError((WORD, index, *place), f"{told}, which is not checked")
            elif isinstance(part, dict) and (more := _left(part)):
                told = f"{', '.join(more)} of an assertion of the type {part.get('type')!r}, which is not checked"
                yield FieldError((WORD, index, *place), told)


def _left(part: Mapping[str, Any]) -> list[str]:
    """Return the keys of an assertion that say more than what is checked of it."""
    read = str(_part(part))
    telling = ("id", "type", *_TELLING, *_TEXTS)
    return [repr(key) for key, value in part.items() if key not in telling and repr(value) not in read]
