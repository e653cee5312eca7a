"""The context `plugin`: a plugin of Claude Code, whose MCP servers keval offers through the tap."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import Any, ClassVar

import attrs

import keval_programs as programs
from keval.plugin import (
    ContextSource,
    Conventions,
    Intervention,
    McpServer,
    Provision,
    ServerSpec,
    TrialError,
    TrialInfo,
)
from keval_mcp import FollowedTexts, Http, Sse, Stdio
from keval_skills.changes import changed_skills
from keval_skills.placing import writing
from keval_skills.skill_folder import SkillFolder, SkillReader, read_text
from keval_skills.tree import Tree, digest_of, place

MANIFEST = ".claude-plugin/plugin.json"
_SERVERS = ".mcp.json"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PATHS = ("commands", "agents", "skills", "hooks", "mcpServers", "lspServers", "outputStyles")
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_ROOT = "CLAUDE_PLUGIN_ROOT"
_UNSUPPORTED = ("headersHelper", "oauth")
_WANTED: Mapping[type, str] = {str: "a text", tuple: "a list of texts", dict: "an object of texts"}
_REMOTE: Mapping[str, type] = {"url": str, "headers": dict}
_KINDS: Mapping[str, tuple[Callable[..., Stdio | Http | Sse], Mapping[str, type]]] = {
    "stdio": (Stdio, {"command": str, "args": tuple, "env": dict, "cwd": str}),
    "http": (Http, _REMOTE),
    "streamable-http": (Http, _REMOTE),
    "sse": (Sse, _REMOTE),
}
"""What a server of each type is for keval, and the options that it takes."""


@attrs.frozen
class PluginServer:
    """An MCP server of a plugin, with its variables filled in."""

    name: str
    provider: Stdio | Http | Sse


@attrs.frozen
class PluginFolder:
    """A plugin as agents get it: all its files but for its MCP servers, which keval offers."""

    name: str
    tree: Tree
    manifest: Mapping[str, Any]
    skills: tuple[SkillFolder, ...]
    servers: tuple[PluginServer, ...]

    @property
    def files(self) -> list[str]:
        """All files but for those of skills and of MCP servers."""
        own = (each.tree.root.relative_to(self.tree.root).as_posix() for each in self.skills)
        left_out = {_SERVERS, *_paths_of(self.manifest.get("mcpServers"))}.union(*map(self.tree.within, own))
        return [name for name in self.tree.files if name not in left_out]

    def write(self, to: programs.Tree, folder: str, skills: Sequence[SkillFolder]) -> None:
        """Write the plugin into a folder that is made, with these skills for its own. Raises OSError."""
        self.tree.copy(to, folder, self.files)
        for each in skills:
            each.write(to, f"{folder}/{each.tree.root.relative_to(self.tree.root).as_posix()}")
        manifest = {key: value for key, value in self.manifest.items() if key != "mcpServers"}
        to.write(f"{folder}/{MANIFEST}", json.dumps(manifest, ensure_ascii=False, indent=2).encode())


@attrs.define
class PluginReader:
    """Reads a plugin, and collects all that is wrong with it, each with its file."""

    root: Path
    problems: list[str] = attrs.field(factory=list)

    def read(self) -> PluginFolder | None:
        """Return the plugin; `None` where what is wrong with it is in `problems`."""
        if not self.root.is_dir():
            self.problems.append(f"{place(self.root)}: there is no folder")
            return None
        manifest = self._json(MANIFEST, 'write {"name": …} into it')
        tree = Tree.read(self.root)
        self.problems += tree.problems
        if manifest is None:
            return None
        name = manifest.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            told = f"'name' has lowercase letters, digits and single hyphens, got {name!r}"
            self.problems.append(f"{place(self.root / MANIFEST)}: {told}")
        for key in _PATHS:
            for path in _paths_of(manifest.get(key), written=True):
                self._check_path(key, path)
        if "hooks/hooks.json" in tree.files:
            self._json("hooks/hooks.json")
        reader = SkillReader(in_plugin=True, problems=self.problems)
        skills = [self.root / each for each in ("skills", *_paths_of(manifest.get("skills")))]
        found = reader.found([each for each in dict.fromkeys(skills) if each.is_dir()])
        servers = tuple(self._servers(manifest, tree))
        if self.problems:
            return None
        reader.warn()
        return PluginFolder(str(name), tree, manifest, tuple(found), servers)

    def _check_path(self, key: str, path: str) -> None:
        told = None
        if not path.startswith("./") or ".." in Path(path).parts:
            told = f"a path begins with './' and stays in the plugin, got {path!r}"
        elif not (self.root / path).exists():
            told = f"there is no {path!r}"
        if told:
            self.problems.append(f"{place(self.root / MANIFEST)}: {key!r}: {told}")

    def _servers(self, manifest: Mapping[str, Any], tree: Tree) -> Iterator[PluginServer]:
        written = manifest.get("mcpServers")
        files = [name for name in dict.fromkeys((_SERVERS, *_paths_of(written))) if name in tree.files]
        found = [(name, self._json(name) or {}) for name in files]
        if isinstance(written, dict):
            found.append((MANIFEST, written))
        for file, content in found:
            # In the manifest, servers stand without the outer key.
            servers = content.get("mcpServers", content)
            for name, entry in servers.items() if isinstance(servers, dict) else ():
                yield from self._server(file, name, entry)

    def _server(self, file: str, name: str, entry: Any) -> Iterator[PluginServer]:
        where = f"{place(self.root / file)}: the server {name!r}"
        if not isinstance(entry, dict) or not {"command", "url"} & {*entry}:
            self.problems.append(f"{where} has neither a 'command' nor a 'url'")
            return
        kind = str(entry.get("type", "stdio" if "command" in entry else "http"))
        provider, keys = _KINDS.get(kind, (None, {}))
        if provider is None:
            self.problems.append(f"{where} is of the type {kind!r}; keval connects to stdio, http and sse")
            return
        if unsupported := [key for key in _UNSUPPORTED if key in entry]:
            told = f"keval cannot do {unsupported[0]!r}; give its token in 'headers', from a variable"
            self.problems.append(f"{where}: {told}")
        known = len(self.problems)
        options = {key: self._filled(where, entry[key]) for key in keys if key in entry}
        if len(self.problems) > known:  # what a variable that is not set makes of an option is no further problem
            return
        wrong = [key for key, value in options.items() if not _fits(value, keys[key])]
        try:
            if wrong:
                raise ValueError(f"{wrong[0]!r} is {_WANTED[keys[wrong[0]]]}")
            if "cwd" in options:
                options["cwd"] = Path(options["cwd"])
            yield PluginServer(name, provider(**options))
        except (TypeError, ValueError) as error:
            self.problems.append(f"{where}: {error}")

    def _filled(self, where: str, value: Any) -> Any:
        """Fill in the variables of an entry, as Claude Code does it."""
        if isinstance(value, dict):
            return {key: self._filled(where, each) for key, each in value.items()}
        if isinstance(value, list):
            return tuple(self._filled(where, each) for each in value)

        def known(found: re.Match[str]) -> str:
            value = str(self.root.resolve()) if found["name"] == _ROOT else os.environ.get(found["name"])
            if value is None and found["default"] is None:
                self.problems.append(f"{where}: the variable {found['name']} is not set")
            return (value if value is not None else found["default"]) or ""

        return _VARIABLE.sub(known, value) if isinstance(value, str) else value

    def _json(self, name: str, remedy: str = "write an object") -> dict[str, Any] | None:
        text = read_text(self.root / name, self.problems)
        if text is None:
            return None
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            self.problems.append(f"{place(self.root / name, error.lineno)}: it is no JSON: {error.msg}")
            return None
        except RecursionError:
            content = None
        if not isinstance(content, dict):
            self.problems.append(f"{place(self.root / name)}: it is no JSON object; {remedy}")
            return None
        return content


def _fits(value: Any, wanted: type) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return isinstance(value, wanted) and all(isinstance(each, str) for each in items)


def _paths_of(value: Any, *, written: bool = False) -> list[str]:
    """Return the paths that an entry of a manifest names; `written` as they are there, else without `./`."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [each if written else Path(each).as_posix() for each in values if isinstance(each, str)]


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

    def texts(self) -> Mapping[str, str]:
        """Return SKILL.md of each of its skills."""
        return {each.name: each.text for each in self._skills}

    def changed(self, interventions: Sequence[Intervention]) -> Plugin:
        """Return the plugin with these changes of its skills. Raises InterventionError."""
        # `attrs.evolve` would read the folder again, without the changes.
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
            yield _PluginSource(label, self, tuple(servers))


@attrs.frozen(eq=False)
class _PluginSource:
    label: str
    provider: Plugin
    servers: Sequence[ServerSpec | McpServer]

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give one attempt at a trial a copy of the plugin. Raises TrialError."""
        try:
            way = self.provider.way(trial.conventions)
        except ValueError as error:
            raise TrialError(f"the context {self.label!r}: {error}", stage="context", kind="no_plugins") from error
        folder, skills = self.provider._folder, self.provider._skills
        log = FollowedTexts.of([each.given(f"{folder.name}:{each.name}", "skill", way) for each in skills])
        # The prefix is that of a trial's folders, whose paths a replay does not compare.
        with tempfile.TemporaryDirectory(prefix="keval-trial-") as made:
            copy = Path(made) / folder.name
            with writing(self.label), programs.Tree.at(Path(made)) as to:
                await asyncio.to_thread(folder.write, to, folder.name, skills)
            yield Provision(servers=tuple(self.servers), text_log=log, plugins=(copy,))
