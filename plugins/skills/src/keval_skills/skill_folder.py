"""A skill on disk: a folder with SKILL.md, checked against the Agent Skills specification (agentskills.io)."""

from __future__ import annotations

import hashlib
import stat
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

import keval_programs as programs
from keval.plugin import GivenText, PluginWarning, read_input
from keval_skills.front_matter import FrontMatter, FrontMatterError, with_entry
from keval_skills.tree import SKILL_FILE, Tree, digest_of, place

MOST_TEXT = 1_000_000
"""Bytes of a text for a model; no model's context window holds more."""
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_COMPATIBILITY = 64, 1024, 500
"""Characters (Agent Skills specification, "Frontmatter")."""
_PUBLISHED = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_OF_CLAUDE_CODE = (
    *("agent", "argument-hint", "arguments", "context", "disable-model-invocation", "disallowed-tools", "effort"),
    *("hooks", "model", "paths", "shell", "user-invocable", "version", "when_to_use"),
)
"""Keys of Claude Code's own (its documentation, "Frontmatter reference"), and one that most published skills have."""


@attrs.frozen
class SkillFolder:
    """A skill as agents get it: `head` is the front matter of SKILL.md, and `body` what comes after it.

    A skill that is `alone` is given without its other files.
    """

    name: str
    description: str
    head: str
    body: str
    tree: Tree
    alone: bool = False

    @property
    def text(self) -> str:
        """SKILL.md as it is given."""
        return self.head + self.body

    @property
    def sha256(self) -> str:
        """The SHA-256 of SKILL.md as it is given."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    @property
    def digest(self) -> str:
        """The SHA-256 of all that is given: its name, SKILL.md and the other files."""
        return digest_of(self.name, self.text, self.tree.digest(self.files))

    @property
    def files(self) -> tuple[str, ...]:
        """The other files that are given with it."""
        return () if self.alone else tuple(name for name in self.tree.files if name != SKILL_FILE)

    def given(self, name: str, kind: Literal["skill", "neighbour"], way: str) -> tuple[GivenText, str, str]:
        """Return what is recorded of the skill as it is given, with its body and what a model sees in any case."""
        return GivenText(name, kind, way, self.sha256), self.body, self.description

    def described(self, description: str) -> SkillFolder:
        """Return the skill with another description."""
        return attrs.evolve(self, description=description, head=with_entry(self.head, "description", description))

    def write(self, to: programs.Tree, folder: str) -> None:
        """Write the skill into a folder that is made. Raises OSError."""
        self.tree.copy(to, folder, self.files)
        mode = stat.S_IMODE((self.tree.root / SKILL_FILE).stat().st_mode)
        to.write(f"{folder}/{SKILL_FILE}", self.text.encode(), mode)


@attrs.define
class SkillReader:
    """Reads skills, and collects what is wrong with all of them, each with its file and line.

    `in_plugin` says that they are part of a plugin of Claude Code, which names a skill after its folder and needs no
    front matter of it.
    """

    in_plugin: bool = False
    problems: list[str] = attrs.field(factory=list)
    _unknown: list[str] = attrs.field(factory=list, init=False)

    def found(self, paths: Sequence[Path], beside: Sequence[SkillFolder] = ()) -> list[SkillFolder]:
        """Return the skills at these paths, each a skill or a folder of skills, without those that are `beside`."""
        skills = {each.name: each for each in beside}
        known = {each.tree.root.resolve() for each in beside}
        for folder in self._folders(paths):
            skill = None if folder.resolve() in known else self._read(folder)
            if skill is not None and (same := skills.get(skill.name)) is not None:
                self.problems.append(
                    f"{place(folder)}: another skill, {place(same.tree.root)}, has this name; keep one"
                )
            elif skill is not None:
                skills[skill.name] = skill
        return [each for each in skills.values() if each not in beside]

    def warn(self) -> None:
        """Warn of keys in front matters that neither the specification nor Claude Code has."""
        if self._unknown:
            told = f"no agent is known to read {', '.join(self._unknown)} of the front matter; look for a slip"
            warnings.warn(told, PluginWarning, stacklevel=2)

    def _folders(self, paths: Iterable[Path]) -> Iterator[Path]:
        for path in paths:
            if not path.is_dir():
                told = (
                    f"it is a file; give its folder, {place(path.parent)}" if path.is_file() else "there is no folder"
                )
                self.problems.append(f"{place(path)}: {told}")
            elif _has_text(path):
                yield path
            else:
                inner = sorted(each for each in path.iterdir() if each.is_dir() and _has_text(each))
                if not inner and not self.in_plugin:
                    told = f"there is no {SKILL_FILE} in it, nor in a folder in it"
                    self.problems.append(f"{place(path)}: {told}")
                yield from inner

    def _read(self, folder: Path) -> SkillFolder | None:
        # `.` and `..` do not tell the name of the folder.
        folder = folder.resolve() if folder.name in ("", "..") else folder
        file, known = folder / SKILL_FILE, len(self.problems)
        tree = Tree.read(folder)
        self.problems += () if self.in_plugin else tree.problems  # a plugin is looked at as a whole
        if SKILL_FILE not in tree.files:
            self.problems.append(
                f"{place(folder)}: agents look for a file {SKILL_FILE}, in capitals; rename what is there"
            )
            return None
        text = read_text(file, self.problems)
        if text is None:
            return None
        try:
            matter = FrontMatter.read(text)
        except FrontMatterError as error:
            # Line 1 says that there is no front matter at all, which a skill of a plugin need not have.
            if self.in_plugin and error.line == 1:
                return SkillFolder(folder.name, "", "", text, tree)
            self.problems.append(f"{place(file, error.line)}: {error.problem}")
            return None
        self.problems += [
            f"{place(file, matter.lines.get(key, 1))}: {problem}"
            for key, problem in problems_of(matter.values, None if self.in_plugin else folder.name)
        ]
        if not matter.body.strip():
            self.problems.append(f"{place(file)}: there is nothing after the front matter that an agent could read")
        self._unknown += [
            f"{key!r} ({place(file, line)})"
            for key, line in matter.lines.items()
            if key not in (*_PUBLISHED, *_OF_CLAUDE_CODE)
        ]
        if len(self.problems) > known:
            return None
        description = str(matter.values.get("description", "")).strip()
        name = folder.name if self.in_plugin else _plain(matter.values["name"])
        # The folder of a repository that is a skill is often called otherwise.
        if name != unicodedata.normalize("NFKC", folder.name):
            told = f"{place(file)}: agents get the skill as {name!r}, its name, though its folder is {folder.name!r}"
            warnings.warn(told, PluginWarning, stacklevel=2)
        return SkillFolder(name, description, matter.head, matter.body, tree)


def problems_of(values: Mapping[str, Any], folder: str | None) -> Iterator[tuple[str, str]]:
    """Yield what the specification does not allow in a front matter, with the key that it is about.

    `folder` is the name of the skill's folder; `None` for one that is named by its folder alone.
    """
    if folder is not None:
        yield from (("name", problem) for problem in _name_problems(values.get("name"), folder))
    description = values.get("description")
    if folder is not None or description is not None:
        yield from (("description", problem) for problem in description_problems(description))
    # The dash stands for a key that is not there, which is allowed; an empty text is not.
    compatibility = values.get("compatibility", "-")
    if not isinstance(compatibility, str) or not 1 <= len(compatibility) <= LONGEST_COMPATIBILITY:
        yield "compatibility", f"'compatibility' is a text of 1 to {LONGEST_COMPATIBILITY} characters"
    if not isinstance(values.get("license", ""), str):
        yield "license", "'license' is a text: the name of a license, or of its file"
    metadata = values.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        yield "metadata", "'metadata' is a mapping of texts to texts"
    tools = values.get("allowed-tools", "")
    if not isinstance(tools, str) and not (isinstance(tools, list) and all(isinstance(each, str) for each in tools)):
        yield "allowed-tools", "'allowed-tools' is a text of names with spaces between them, or a list of texts"


def description_problems(description: Any) -> Iterator[str]:
    """Yield what is wrong with a description."""
    if not isinstance(description, str) or not description.strip():
        yield "the skill needs a 'description': what it does and when to use it, by which agents choose it"
    elif len(description) > LONGEST_DESCRIPTION:
        yield f"'description' has {len(description)} characters; the most are {LONGEST_DESCRIPTION}"


def read_text(file: Path, problems: list[str]) -> str | None:
    """Return the text of a file for a model; `None` where what is wrong with it is added to the problems."""
    try:
        return read_input(file, MOST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.append(f"{place(file)}: it is not in UTF-8 (byte {error.start + 1}); save it so")
    except OSError as error:
        problems.append(f"{place(file)}: it cannot be read: {error.strerror}")
    return None


def _name_problems(name: Any, folder: str) -> Iterator[str]:
    if not isinstance(name, str) or not name.strip():
        yield f"the skill needs a 'name', that of its folder: `name: {folder}`"
        return
    name = _plain(name)
    if len(name) > LONGEST_NAME:
        yield f"'name' has {len(name)} characters; the most are {LONGEST_NAME}"
    if name != name.lower() or not all(letter.isalnum() or letter == "-" for letter in name):
        yield f"'name' has lowercase letters, digits and hyphens only, got {name!r}"
    elif name.startswith("-") or name.endswith("-") or "--" in name:
        yield f"'name' has single hyphens, and none at its ends, got {name!r}"


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name.strip())


def _has_text(folder: Path) -> bool:
    # A `skill.md` counts, too, so that `_read` can say that agents do not find it.
    return any(each.name.upper() == SKILL_FILE.upper() for each in folder.iterdir())
