"""Writes the gallery: every plugin of this repository by entry-point group, from its package's metadata and source.

The source is read and not imported, so that the packages of large SDKs need not be installed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby

import attrs
import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from outside_pages import ROOT, members

from keval.seams.registry import GROUPS

_TOP = """# The gallery of plugins

What the packages of this repository bring, by what it is for. `keval plugins` lists what is installed; [writing a
plugin](../plugins.md) says what one of each kind must have.
"""
_TITLES = {"keval": "Hook plugins", "keval.responders": "Responders of simulated models"}


@attrs.frozen
class Plugin:
    """One entry point: its group and name, the object that it leads to, and the package that has it."""

    group: str
    name: str
    target: str
    package: str
    readme: str


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, "plugins/gallery.md", content=_TOP + "\n".join(_page())))
    return files


def plugins() -> Mapping[str, list[Plugin]]:
    """Return the plugins of all packages by group, in the order of keval's groups."""
    found: dict[str, list[Plugin]] = defaultdict(list)
    for folder, project in members():
        readme = f"../../{(folder / 'README.md').relative_to(ROOT)}"
        for group, points in project.get("entry-points", {}).items():
            for name, target in sorted(points.items()):
                if not name.startswith("testing/"):  # for tests of plugins
                    found[group].append(Plugin(group, name, target, project["name"], readme))
    return {
        group: found[group]
        for group in (*GROUPS, *sorted(found.keys() - GROUPS))
        if group in found and group.startswith("keval")
    }


def _page() -> Iterator[str]:
    for group, found in plugins().items():
        title = _TITLES.get(group) or group.removeprefix("keval.").capitalize()
        yield f"\n## {title}\n\nThe entry-point group `{group}`.\n"
        yield from _providers(found) if group == "keval.models" else _described(found)


def _providers(found: list[Plugin]) -> Iterator[str]:
    """Providers of models differ in a URL and a key, so that a row for each package is enough."""
    yield "| package | providers |\n|---|---|"
    for (package, readme), group in groupby(found, lambda each: (each.package, each.readme)):
        yield f"| [{package}]({readme}) | {', '.join(f'`{each.name}`' for each in group)} |"


def _described(found: list[Plugin]) -> Iterator[str]:
    for each in sorted(found, key=lambda each: each.name):
        source = _source(each.target)
        yield f"### {each.name}\n\n{_summary(source)} From [{each.package}]({each.readme}).\n"
        if rows := list(_options(source)):
            yield "\n".join(["| option | type | default |", "|---|---|---|", *rows, ""])


@cache
def _loader() -> griffe.GriffeLoader:
    return griffe.GriffeLoader(search_paths=[ROOT / "core", *(folder / "src" for folder, _ in members())])


def _source(target: str) -> griffe.Object:
    """Read the object that an entry point leads to."""
    loader, path = _loader(), target.replace(":", ".")
    package = path.partition(".")[0]
    if package not in loader.modules_collection:
        loader.load(package)
    found = loader.modules_collection[path]
    return found.final_target if isinstance(found, griffe.Alias) else found


def _summary(source: griffe.Object) -> str:
    """Return the first sentence of an object's docstring, or of its module's."""
    docstring = source.docstring or source.module.docstring
    text = " ".join((docstring.value if docstring else "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text)[0]


def _options(source: griffe.Object) -> Iterator[str]:
    """Yield a row for each field of an attrs class that a config can set."""
    fields = {**source.inherited_members, **source.members} if isinstance(source, griffe.Class) else {}
    for name, field in fields.items():
        if not isinstance(field, griffe.Attribute) or name.startswith("_") or field.annotation is None:
            continue
        default = _default(field.value)
        if default is not None and "instance-attribute" in field.labels:  # no ClassVar, and no property
            yield f"| `{name}` | `{field.annotation}` | {default} |"


def _default(value: str | griffe.Expr | None) -> str | None:
    """Return the default of a field as a table shows it, or None for a field that no config sets."""
    if value is None:
        return "required"
    if not isinstance(value, griffe.ExprCall) or not str(value.function).endswith("field"):
        return f"`{value}`"
    arguments = {each.name: str(each.value) for each in value.arguments if isinstance(each, griffe.ExprKeyword)}
    if arguments.get("init") == "False":
        return None
    if factory := arguments.get("factory"):
        return {"dict": "`{}`", "list": "`[]`", "tuple": "`()`"}.get(factory, f"`{factory}()`")
    return f"`{arguments['default']}`" if "default" in arguments else "required"
