"""The skills that an MCP server serves (`offer: skills`), given as those on disk are."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from keval.plugin import ContextSource, Conventions, Intervention, PreflightError, ServerSpec, TrialError
from keval_skills.changes import changed_skills
from keval_skills.front_matter import FrontMatter, FrontMatterError, without_entries
from keval_skills.skill import SkillSource, read_skill_server, skill_way, writing_skills
from keval_skills.skill_folder import SkillFolder, SkillReader
from keval_skills.tree import SKILL_FILE, digest_of

if TYPE_CHECKING:  # with it comes the MCP SDK, which takes 0.4 s
    from keval_mcp import ServedSkill, SkillCatalogue

_GRANTS = ("allowed-tools", "hooks")
"""Keys that widen what an agent may do, which no server may (the extension's specification, "Security")."""


@attrs.frozen
class ServedSkills:
    """Gives agents the skills that the server of another context serves, and nothing else of it.

    They are read before the first trial. `server` is the provider of that context, and `origin` the server's name,
    which models are told.
    """

    part: ClassVar[str] = "skill"

    server: Any
    origin: str
    interventions: tuple[Intervention, ...] = ()
    _given: list[SkillFolder] = attrs.field(factory=list, init=False, eq=False)
    """The skills as agents get them, once the server was asked."""

    @property
    def digest(self) -> str:
        """The SHA-256 of all skills with their files; of none, until the server was asked."""
        return digest_of(*(each.digest for each in self._given))

    def parts(self) -> Sequence[str]:
        """Return the names of the skills; none, until the server was asked."""
        return [each.name for each in self._given]

    def texts(self) -> Mapping[str, str]:
        """Return SKILL.md of each skill; none, until the server was asked."""
        return {each.name: each.text for each in self._given}

    def changed(self, interventions: Sequence[Intervention]) -> ServedSkills:
        """Return the skills with these changes, which are made when the server was asked."""
        return attrs.evolve(self, interventions=tuple(interventions))

    def way(self, agent: Conventions | None) -> str:
        """Return the folder in which the agent discovers skills, or `read_skill`."""
        return skill_way(agent)

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the skills to trials; the server is asked for them before the first one."""
        async with self.server.start(self.origin) as source:
            (server,) = source.servers
            with tempfile.TemporaryDirectory(prefix="keval-skills-") as folder:
                shelf = _Shelf(self, server, Path(folder))
                tool = read_skill_server(label, self.origin)
                # The login is of the server that is asked, so that keval learns the tokens.
                tool = attrs.evolve(tool, skills=shelf, login=server.login, bring_up=shelf.bring_up)
                yield SkillSource(label, shelf, tool, shelf.check)


@attrs.define(eq=False)
class _Shelf:
    """The skills of one server as they were read, in `folder`, and as agents get them: `given`."""

    provider: ServedSkills
    server: ServerSpec
    folder: Path
    given: tuple[SkillFolder, ...] = ()
    names: tuple[str, ...] = ()
    _skills: Sequence[ServedSkill] = ()
    _catalogue: SkillCatalogue | None = None

    @property
    def origin(self) -> str:
        return self.provider.origin

    def kind(self, skill: SkillFolder) -> Literal["skill", "neighbour"]:
        return "skill"

    def kept(self) -> list[Mapping[str, Any]]:
        """Return what a recording keeps: the skills as the server served them."""
        return [attrs.asdict(each, recurse=False) for each in self._skills]

    def restore(self, kept: Any) -> None:
        """Take what a recording kept."""
        from keval_mcp import ServedSkill  # the MCP SDK takes 0.4 s to import

        self._take([ServedSkill(**each) for each in kept or ()])

    async def check(self) -> None:
        """Raise TrialError if the server lists its skills otherwise than before the first trial, or not any more."""
        try:
            changed = await self._catalogue.changed() if self._catalogue is not None else ()
        except PreflightError as error:
            raise TrialError(str(error), stage="context", kind="server_lost") from error
        if changed:
            told = f"server '{self.origin}' serves other skills than before the first trial: {', '.join(changed)}"
            raise TrialError(f"{told}; keep them as they are, and run again", stage="context", kind="skills_changed")

    @asynccontextmanager
    async def bring_up(self, server: ServerSpec) -> AsyncIterator[ServerSpec]:
        """Read the skills, and yield what serves the tool `read_skill`. Raises PreflightError, InterventionError."""
        from keval_mcp import open_skills

        bounded = attrs.evolve(self.server, max_result_bytes=server.max_result_bytes)
        async with open_skills(bounded, _check_front_matter) as catalogue:
            self._take(catalogue.skills)
            self._catalogue = catalogue
            async with writing_skills(self.given, server) as up:
                yield up

    def _take(self, skills: Sequence[ServedSkill]) -> None:
        reader, folders = SkillReader(), []
        for number, each in enumerate(skills):
            # Two skills of a server may have one name, which the reader tells.
            folders.append(folder := self.folder / str(number) / each.name)
            for path, content in each.files.items():
                file = folder / path
                try:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                except (OSError, ValueError) as error:  # such as a name that is too long, or holds a NUL
                    why = getattr(error, "strerror", None) or error
                    problem = f"the file {path!r:.200} of its skill {each.name!r:.200} cannot be written: {why}"
                    raise PreflightError(f"server '{self.origin}': {problem}") from error
        found = reader.found(folders)
        if reader.problems or not found:
            problems = ["what it serves is no skill:", *reader.problems] if reader.problems else ["it serves no skills"]
            raise PreflightError(f"server '{self.origin}': " + "\n  ".join(problems))
        own = [attrs.evolve(each, head=without_entries(each.head, _GRANTS)) for each in found]
        self._skills, self.names = skills, tuple(dict.fromkeys(each.name for each in skills))
        self.given = changed_skills(own, self.provider.interventions)
        before = self.provider.digest if self.provider._given else None
        self.provider._given[:] = self.given
        if before not in (None, self.provider.digest):
            told = "it served other skills when it was started for another condition; keep them as they are"
            raise PreflightError(f"server '{self.origin}': {told}")


def _check_front_matter(listed: Mapping[str, Any], content: bytes) -> None:
    try:
        front_matter = FrontMatter.read(content.decode())
    except FrontMatterError as error:
        raise ValueError(f"{SKILL_FILE}:{error.line}: {error.problem}") from error
    if not _same(front_matter.values, listed):
        raise ValueError(f"{SKILL_FILE} of {listed['name']!r}: the front matter is not that which skills/list has")


def _same(text: Any, value: Any) -> bool:
    """Return whether a value of a front matter, whose scalars are texts, is this one in JSON."""
    if isinstance(text, dict) and isinstance(value, dict):
        return text.keys() == value.keys() and all(_same(text[key], value[key]) for key in text)
    if isinstance(text, list) and isinstance(value, list):
        return len(text) == len(value) and all(map(_same, text, value))
    # Of numbers, booleans and null, YAML has several spellings.
    return bool(text == value or (isinstance(text, str) and not isinstance(value, str | dict | list)))
