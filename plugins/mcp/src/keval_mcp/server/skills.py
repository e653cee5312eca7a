"""The skills that a server serves by the extension `io.modelcontextprotocol/skills` of MCP (SEP-2640, final).

`skills/list` has an entry for each: the address and the front matter of its SKILL.md, and the size and SHA-256 of each
of its files, which are resources.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from urllib.parse import unquote

import attrs
from mcp import MCPError

from keval.errors import PreflightError, ServerLostError
from keval.seams.contexts import ServerSpec
from keval_mcp.server.connection import ServerConnection, connection_to
from keval_mcp.server.session import EXTENSION
from keval_mcp.server.upstream import CallTimeoutError, Upstream

_MOST_PAGES = 1000
_MOST_FILES, _MOST_BYTES = 512, 16 * 2**20
"""Of a skill: more a server should not serve (the extension's specification, "Limits")."""

CheckSkillFile: TypeAlias = Callable[[Mapping[str, Any], bytes], object]
"""Takes the front matter that is listed of a skill, and its SKILL.md. Raises ValueError: it has another one."""


@attrs.frozen
class ServedSkill:
    """A skill as a server serves it: its entry, and what `resources/read` returns of each of its files, by path."""

    entry: Mapping[str, Any]
    contents: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """Its name, which is also that of its folder."""
        return str(self.entry["frontmatter"]["name"])

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of its files, by path."""
        return {path: _bytes(content) for path, content in self.contents.items()}


@attrs.frozen(eq=False)
class SkillCatalogue:
    """The skills of a server, as they were read, and the connection by which they were."""

    skills: tuple[ServedSkill, ...]
    _connection: ServerConnection

    async def changed(self) -> set[str]:
        """Return the addresses of the skills that the server lists otherwise by now. Raises PreflightError."""
        with _reading(self._connection.server.name):
            entries = await _entries(await self._connection.upstream())
        before, now = map(_by_uri, ([each.entry for each in self.skills], entries))
        return {uri for uri in before | now if before.get(uri) != now.get(uri)}


def _by_uri(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {entry["uri"]: [entry["frontmatter"], entry["resources"]] for entry in entries}


@asynccontextmanager
async def open_skills(server: ServerSpec, check: CheckSkillFile) -> AsyncIterator[SkillCatalogue]:
    """Connect to a server, read its skills, and hold the connection.

    Of a skill, SKILL.md is read first, and nothing else if `check` finds that it is not the one listed.

    Raises:
        PreflightError: it does not come up, or serves no skills; or a file is not the one that its entry tells of.
    """
    async with AsyncExitStack() as stack:
        up = server if server.bring_up is None else await stack.enter_async_context(server.bring_up(server))
        # Servers that speak older revisions, too, may declare the extension in the newest one alone.
        newest = attrs.evolve(up, protocol=up.protocol or ("newest" if up.transport != "sse" else None))
        with _reading(server.name):
            connection = await stack.enter_async_context(connection_to(newest))
            upstream = await connection.upstream()
            skills = [await _read(upstream, entry, check) for entry in await _entries(upstream)]
        yield SkillCatalogue(tuple(skills), connection)


@contextmanager
def _reading(server: str) -> Iterator[None]:
    """Raise what goes wrong while skills are read as PreflightError."""
    try:
        yield
    except (MCPError, CallTimeoutError, ServerLostError, ValueError) as error:
        raise PreflightError(f"the skills of server '{server}' cannot be read: {error}") from error


async def _entries(upstream: Upstream) -> list[Mapping[str, Any]]:
    """Return the entries of all skills. Raises ValueError: it lists none, or what is no skill."""
    if EXTENSION not in (upstream.listing.capabilities.get("extensions") or {}):
        raise ValueError(f"it serves none: it does not declare the extension {EXTENSION}")
    entries: list[Mapping[str, Any]] = []
    asked: dict[str, Any] = {}
    for _ in range(_MOST_PAGES):
        page = await upstream.request("skills/list", asked)
        listed = page.get("skills")
        if not isinstance(listed, list) or not all(map(_is_entry, listed)):
            raise ValueError(f"it lists what are no skills with their files: {listed!r:.200}")
        entries += listed
        if page.get("nextCursor") is None:
            return entries
        asked = {"cursor": page["nextCursor"]}
    raise ValueError(f"its list of skills has more than {_MOST_PAGES} pages")


def _is_entry(entry: Any) -> bool:
    """Return whether an entry is one (the extension's specification, "Skill Entries")."""
    match entry:
        case {"uri": str(uri), "frontmatter": {"name": str(name)}, "resources": "dynamic" | list() as resources}:
            files = resources if isinstance(resources, list) else []
            keys = (("uri", str), ("digest", str), ("size", int))
            fits = all(isinstance(each, dict) and all(isinstance(each.get(k), t) for k, t in keys) for each in files)
            listed = resources == "dynamic" or (fits and any(each["uri"] == uri for each in files))
            # The name is that of a folder which is made.
            return fits and listed and uri.split("/")[-2:] == [name, "SKILL.md"] and name not in ("", ".", "..")
    return False


async def _read(upstream: Upstream, entry: Mapping[str, Any], check: CheckSkillFile) -> ServedSkill:
    """Read the files of a skill; of a dynamic one, whose files nobody lists, SKILL.md alone."""
    uri, root = entry["uri"], entry["uri"].removesuffix("SKILL.md")
    files = [{"uri": uri}] if entry["resources"] == "dynamic" else entry["resources"]
    if len(files) > _MOST_FILES or sum(each.get("size", 0) for each in files) > _MOST_BYTES:
        raise ValueError(f"{uri!r:.200} has more than {_MOST_FILES} files, or {_MOST_BYTES:,} bytes")
    contents: dict[str, Mapping[str, Any]] = {}
    for told in sorted(files, key=lambda each: each["uri"] != uri):
        path = unquote(told["uri"].removeprefix(root))
        if not told["uri"].startswith(root) or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise ValueError(f"{told['uri']!r} is no file in {root}")
        found = (await upstream.request("resources/read", {"uri": told["uri"]})).get("contents")
        content = found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}
        body = _bytes(content)
        is_now = {"uri": told["uri"], "size": len(body), "digest": f"sha256:{hashlib.sha256(body).hexdigest()}"}
        if {**is_now, **told} != {**told, **is_now}:
            raise ValueError(f"a file is not what skills/list says: {is_now} in place of {told}")
        if told["uri"] == uri:
            check(entry["frontmatter"], body)
        contents[path] = content
    return ServedSkill(entry, contents)


def _bytes(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file in the answer to `resources/read`. Raises ValueError."""
    match content:
        case {"text": str(text)}:
            return text.encode()
        case {"blob": str(blob)}:
            return base64.b64decode(blob, validate=True)
    raise ValueError(f"resources/read returns neither text nor data: {content!r:.200}")
