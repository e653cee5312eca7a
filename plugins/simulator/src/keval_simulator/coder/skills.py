"""The skills that a coding agent offers to its model, and the calls by which each is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from keval_gateway import ChatCall, ChatTool
from keval_simulator.coder.tools import call_of, read_call

_TAGGED = re.compile(
    r"<name>(.*?)</name>\s*<description>(.*?)</description>(?:\s*<location>(.*?)</location>)?", re.DOTALL
)
_LISTED = re.compile(r"^[ \t]*[-*] `?([\w:-]+)`?: (.+?)(?: \(file: (\S+)\))?$", re.MULTILINE)
_ROOT = re.compile(r"^- `(\w+)` = `(.+)`$", re.MULTILINE)
"""How Codex shortens the paths of skills."""
_ABOVE = re.compile(r"^.*/(?=\.\w+/skills/)")
_TOOLS = ("Skill", "skill", "activate_skill", "read_skill")


@attrs.frozen
class OfferedSkill:
    """A skill as an agent tells its model of it; `path` is that of its file in the working folder, if it is told."""

    name: str
    description: str
    path: str | None = None


def offered_skills(told: str) -> Iterator[OfferedSkill]:
    """Yield the skills in what a model is told: those in tags, and those in lists after the word "skills"."""
    for name, description, path in _TAGGED.findall(told):
        yield OfferedSkill(name.strip(), description.strip(), path or None)
    roots = dict(_ROOT.findall(told))
    start = told.lower().find("skills")
    for name, description, path in _LISTED.findall(told, start) if start >= 0 else ():
        root, _, rest = path.partition("/")
        whole = f"{roots[root]}/{rest}" if root in roots else path
        # The folder of a trial has another name in a replay.
        yield OfferedSkill(name, description, _ABOVE.sub("", whole) or None)


def skill_call(tools: Sequence[ChatTool], skill: OfferedSkill) -> ChatCall | None:
    """Return the call that reads a skill: of the tool that is made for it, or else one that reads its file."""
    found = call_of(tools, _TOOLS, skill=skill.name, name=skill.name)
    return found or (read_call(tools, skill.path) if skill.path else None)
