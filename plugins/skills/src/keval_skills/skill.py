"""The context `skill`: skills where an agent discovers them, or a tool that reads them."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from typing import ClassVar, Literal

import attrs

from keval.plugin import ContextSource, Conventions, Intervention, PreflightError, Provision, ServerSpec, TrialInfo
from keval_programs import Tree
from keval_skills.changes import changed_skills
from keval_skills.placing import placing, writing
from keval_skills.skill_folder import SkillFolder, SkillReader
from keval_skills.text_log import FollowedTexts
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

    def changed(self, interventions: Sequence[Intervention]) -> Skill:
        """Return the skills with these changes, which leave neighbours as they are. Raises InterventionError."""
        # `attrs.evolve` would read the folders again, without the changes.
        other, own = copy(self), changed_skills(self._own, interventions)
        object.__setattr__(other, "_own", own)
        return other

    def way(self, agent: Conventions | None) -> str:
        """Return the folder in which the agent discovers skills, or `read_skill`."""
        return (agent.skills if agent else None) or READ_SKILL

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the skills to trials, with a server for agents without skills, which keval starts."""
        server = ServerSpec(
            name=label,
            transport="stdio",
            command=sys.executable,
            args=("-P", "-m", "keval_skills.server"),  # nothing is imported from the working folder
            bring_up=self._bring_up,
            keeps_trials_apart=True,  # it keeps nothing between calls
        )
        yield _SkillSource(label, self, server)

    @asynccontextmanager
    async def _bring_up(self, server: ServerSpec) -> AsyncIterator[ServerSpec]:
        """Write the skills into a folder from which the server reads them. Raises PreflightError."""
        with tempfile.TemporaryDirectory(prefix="keval-skills-") as folder:
            try:
                with Tree.at(Path(folder)) as to:
                    for each in self.given:
                        await asyncio.to_thread(each.write, to, each.name)
            except OSError as error:
                raise PreflightError(f"server '{server.name}': its skills cannot be copied: {error}") from error
            yield attrs.evolve(server, args=(*server.args, folder))

    @property
    def given(self) -> tuple[SkillFolder, ...]:
        """All skills that agents get, neighbours last."""
        return (*self._own, *self._others)

    def kind(self, skill: SkillFolder) -> Literal["skill", "neighbour"]:
        """Return what a skill is to the records."""
        return "neighbour" if skill in self._others else "skill"


@attrs.frozen(eq=False)
class _SkillSource:
    label: str
    provider: Skill
    server: ServerSpec

    @property
    def servers(self) -> Sequence[ServerSpec]:
        return [self.server]

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the skills to one attempt at a trial. Raises TrialError."""
        skills, way = self.provider.given, self.provider.way(trial.conventions if trial.workspace else None)
        log = FollowedTexts.of([each.given(each.name, self.provider.kind(each), way) for each in skills])
        if way == READ_SKILL or trial.workspace is None:
            yield Provision(instructions_for(skills), (self.server,), text_log=log)
            return
        # A skill that the config leaves out is not there, even if the workspace has it of itself.
        with placing(trial.workspace, way, self.provider.names, self.label) as folder:
            with writing(self.label):
                for each in skills:
                    await asyncio.to_thread(each.write, folder, each.name)
            yield Provision(text_log=log)


def instructions_for(skills: Sequence[SkillFolder]) -> str:
    """Return what a system prompt says of skills that are read with a tool."""
    listed = "\n".join(f"- {each.name}: {' '.join(each.description.split())}" for each in skills)
    return (
        "# Skills\n\n"
        "A skill has instructions for one kind of task. When a task fits the description of a skill, use read_skill"
        f" to read it before you begin, and follow it.\n\n{listed}"
    )
