"""The context `skill`: skills where an agent discovers them, or a tool that reads them."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs

from keval.plugin import ContextSource, Conventions, Intervention, PreflightError, Provision, ServerSpec, TrialInfo
from keval_mcp import FollowedTexts, ProxiedServer
from keval_programs import Tree
from keval_skills.changes import changed_skills
from keval_skills.placing import placing, writing
from keval_skills.skill_folder import SkillFolder, SkillReader
from keval_skills.tree import digest_of

READ_SKILL = "read_skill"
"""The tool, and how an agent without skills gets them."""


@attrs.frozen
class Skill:
    """Gives agents skills: folders with SKILL.md, or folders of such folders.

    An agent that discovers skills in its folder finds them there. Any other agent has their names and descriptions in
    its system prompt, and the tool `read_skill`. `neighbours` are skills that are given alike and only compete with
    them. `names` are those of all skills, also of those that a change leaves out.
    """

    part: ClassVar[str] = "skill"
    origin: ClassVar[str] = ""

    path: Path | tuple[Path, ...]
    neighbours: tuple[Path, ...] = ()
    _own: tuple[SkillFolder, ...] = attrs.field(init=False)
    _others: tuple[SkillFolder, ...] = attrs.field(init=False)
    names: tuple[str, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        reader, paths = SkillReader(), [self.path] if isinstance(self.path, Path) else self.path
        own = reader.found(paths)
        others = reader.found(self.neighbours, beside=own)
        if not paths:
            reader.problems.append("the list is empty; name a folder with SKILL.md")
        if reader.problems:
            raise ValueError("\n  ".join(["'path' must lead to skills as agentskills.io has them:", *reader.problems]))
        reader.warn()
        object.__setattr__(self, "_own", tuple(own))
        object.__setattr__(self, "_others", tuple(others))
        object.__setattr__(self, "names", tuple(each.name for each in self.given))

    @property
    def digest(self) -> str:
        """The SHA-256 of all skills with their files."""
        return digest_of(*(each.digest for each in self.given))

    def parts(self) -> Sequence[str]:
        """Return the names of the skills, without neighbours."""
        return [each.name for each in self._own]

    def texts(self) -> Mapping[str, str]:
        """Return SKILL.md of each skill."""
        return {each.name: each.text for each in self.given}

    def changed(self, interventions: Sequence[Intervention]) -> Skill:
        """Return the skills with these changes, which leave neighbours as they are. Raises InterventionError."""
        # `attrs.evolve` would read the folders again, without the changes.
        other, own = copy(self), changed_skills(self._own, interventions)
        object.__setattr__(other, "_own", own)
        return other

    def way(self, agent: Conventions | None) -> str:
        """Return the folder in which the agent discovers skills, or `read_skill`."""
        return skill_way(agent)

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the skills to trials, with a server for agents without skills, which keval starts."""
        server = attrs.evolve(read_skill_server(label), bring_up=partial(writing_skills, self.given))
        yield SkillSource(label, self, server)

    @property
    def given(self) -> tuple[SkillFolder, ...]:
        """All skills that agents get, neighbours last."""
        return (*self._own, *self._others)

    def kind(self, skill: SkillFolder) -> Literal["skill", "neighbour"]:
        """Return what a skill is to the records."""
        return "neighbour" if skill in self._others else "skill"


def skill_way(agent: Conventions | None) -> str:
    """Return the folder in which an agent discovers skills, or `read_skill`."""
    return (agent.skills if agent else None) or READ_SKILL


def read_skill_server(label: str, origin: str = "") -> ProxiedServer:
    """Return the server of the tool `read_skill`; `origin` is the MCP server whose skills these are, if they are."""
    return ProxiedServer(
        name=label,
        transport="stdio",
        command=sys.executable,
        args=("-P", "-m", "keval_skills.server", origin),  # nothing is imported from the working folder
        keeps_trials_apart=True,  # it keeps nothing between calls
    )


@asynccontextmanager
async def writing_skills(skills: Sequence[SkillFolder], server: ServerSpec) -> AsyncIterator[ServerSpec]:
    """Write skills into a folder from which the server of `read_skill` reads them. Raises PreflightError."""
    with tempfile.TemporaryDirectory(prefix="keval-skills-") as folder:
        try:
            with Tree.at(Path(folder)) as to:
                for each in skills:
                    await asyncio.to_thread(each.write, to, each.name)
        except OSError as error:
            raise PreflightError(f"server '{server.name}': its skills cannot be copied: {error}") from error
        yield attrs.evolve(server, args=(*server.args, folder))


@attrs.frozen(eq=False)
class SkillSource:
    """Gives trials the skills of a provider: in the agent's folder, or with the `server` of `read_skill`.

    `check` raises TrialError if they are not to be given any more.
    """

    label: str
    provider: Any
    server: ServerSpec
    check: Callable[[], Awaitable[None]] | None = None

    @property
    def servers(self) -> Sequence[ServerSpec]:
        return [self.server]

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the skills to one attempt at a trial. Raises TrialError."""
        if self.check is not None:
            await self.check()
        skills, way = self.provider.given, skill_way(trial.conventions if trial.workspace else None)
        log = FollowedTexts.of([each.given(each.name, self.provider.kind(each), way) for each in skills])
        if way == READ_SKILL or trial.workspace is None:
            yield Provision(instructions_for(skills, self.provider.origin), (self.server,), text_log=log)
            return
        # A skill that the config leaves out is not there, even if the workspace has it of itself.
        with placing(trial.workspace, way, self.provider.names, self.label) as folder:
            with writing(self.label):
                for each in skills:
                    await asyncio.to_thread(each.write, folder, each.name)
            yield Provision(text_log=log)


def instructions_for(skills: Sequence[SkillFolder], origin: str = "") -> str:
    """Return what a system prompt says of skills that are read with a tool, and of the server that they come from."""
    source = f" These come from the MCP server {origin!r}." if origin else ""
    listed = "\n".join(f"- {each.name}: {' '.join(each.description.split())}" for each in skills)
    return (
        "# Skills\n\n"
        "A skill has instructions for one kind of task. When a task fits the description of a skill, use read_skill"
        f" to read it before you begin, and follow it.{source}\n\n{listed}"
    )
