"""The context `plugin`: a plugin of Claude Code, whose MCP servers keval offers through the tap."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import ClassVar

import attrs

from keval.plugin import (
    ContextSource,
    Conventions,
    GivenText,
    Intervention,
    McpServer,
    Provision,
    ServerSpec,
    TrialError,
    TrialInfo,
)
from keval_programs import Tree
from keval_skills.changes import changed_skills
from keval_skills.placing import writing
from keval_skills.plugin import PluginFolder, PluginReader
from keval_skills.skill_folder import SkillFolder
from keval_skills.text_log import FollowedTexts
from keval_skills.tree import digest_of

_PLUGIN = "plugin"


@attrs.frozen
class Plugin:
    """Gives agents a plugin of Claude Code: its skills, commands, subagents, hooks and MCP servers.

    Each trial gets a copy of the folder without its MCP servers. These keval offers as Claude Code would name them, so
    that their calls are recorded.
    """

    part: ClassVar[str] = "skill"

    path: Path
    _folder: PluginFolder = attrs.field(init=False)
    _skills: tuple[SkillFolder, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        reader = PluginReader(self.path)
        folder = reader.read()
        if folder is None:
            raise ValueError("\n  ".join(["'path' must lead to a plugin of Claude Code:", *reader.problems]))
        object.__setattr__(self, "_folder", folder)
        object.__setattr__(self, "_skills", folder.skills)

    @property
    def digest(self) -> str:
        """The SHA-256 of all its files, with its skills as they are given."""
        return digest_of(self._folder.tree.digest(self._folder.files), *(each.digest for each in self._skills))

    def parts(self) -> Sequence[str]:
        """Return the names of its skills."""
        return [each.name for each in self._skills]

    def changed(self, interventions: Sequence[Intervention]) -> Plugin:
        """Return the plugin with these changes of its skills. Raises InterventionError."""
        other = copy(self)
        object.__setattr__(other, "_skills", changed_skills(self._skills, interventions))
        return other

    def way(self, agent: Conventions | None) -> str:
        """Return `plugin`. Raises ValueError: the agent takes no plugins of Claude Code."""
        if agent is None or not agent.plugins:
            raise ValueError(
                "only Claude Code takes its plugins; give other agents the plugin's skills (`type: skill, path:"
                " PLUGIN/skills`) and its servers as contexts of their own"
            )
        return _PLUGIN

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the plugin to trials, with its servers, to which keval connects."""
        async with AsyncExitStack() as stack:
            servers: list[ServerSpec | McpServer] = []
            for each in self._folder.servers:
                name = f"plugin_{self._folder.name}_{each.name}"
                source = await stack.enter_async_context(each.provider.start(name))
                servers += source.servers
            yield _PluginSource(label, self, self._folder, self._skills, tuple(servers))


@attrs.frozen(eq=False)
class _PluginSource:
    label: str
    provider: Plugin
    folder: PluginFolder
    skills: Sequence[SkillFolder]
    servers: Sequence[ServerSpec | McpServer]

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give one attempt at a trial a copy of the plugin. Raises TrialError."""
        try:
            way = self.provider.way(trial.conventions)
        except ValueError as error:
            raise TrialError(f"the context {self.label!r}: {error}", stage="context", kind="no_plugins") from error
        log = FollowedTexts.of(
            [
                (
                    GivenText(f"{self.folder.name}:{each.name}", "skill", way, each.sha256),
                    each.body,
                    each.description,
                )
                for each in self.skills
            ]
        )
        # The prefix is that of a trial's folders, whose paths a replay does not compare.
        with tempfile.TemporaryDirectory(prefix="keval-trial-") as made:
            copy = Path(made) / self.folder.name
            with writing(self.label), Tree.at(Path(made)) as to:
                await asyncio.to_thread(self.folder.write, to, self.folder.name, self.skills)
            yield Provision(servers=tuple(self.servers), text_log=log, plugins=(copy,))
