"""What files of a repository a context is made of, and the same context from a checkout of another commit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import PluginSpec
from keval.config.structure import options_class
from keval.config.variables import interpolate, texts

_SERVERS, _STARTED = ("stdio", "http", "sse"), ("command", "args")


@attrs.frozen
class Place:
    """Where a config lies: the top of its checkout, its own folder there, and the folder in which servers start."""

    top: Path
    folder: Path
    started: Path

    @classmethod
    def of(cls, top: Path, folder: Path) -> Place:
        """Return the place of a config in the user's own repository."""
        here = Path.cwd().resolve()
        return cls(top, folder, here if here.is_relative_to(top) else folder)

    def in_checkout(self, top: Path) -> Place:
        """Return the same place in another checkout."""
        started = top / self.started.relative_to(self.top)
        return Place(top, top / self.folder.relative_to(self.top), started if started.is_dir() else top)

    def within(self, path: Path) -> str | None:
        """Return a path as one from the top; `None` if it leads elsewhere."""
        real = Path(os.path.normpath(path))
        return real.relative_to(self.top).as_posix() if real.is_relative_to(self.top) else None

    def existing(self, path: Path, *, top: bool = False) -> Iterator[str]:
        """Yield a path as one from the top, if there is something; the top itself, with everything in it, if wanted."""
        # `Path.exists` would raise for a text that is too long.
        if (found := self.within(path)) and (top or found != ".") and os.path.exists(path):
            yield found


def sources_of(spec: PluginSpec, place: Place) -> Iterator[str]:
    """Yield the files, folders and patterns from the top of the checkout that a context is made of.

    They are what `watch` names, or else what its options lead to.
    """
    options, _ = interpolate(dict(spec.options), ())
    if watched := options.get("watch"):
        yield from filter(None, (place.within(place.folder / str(each)) for each in watched))
        return
    cwd = _cwd(options)
    # The folder in which a server is started has much besides its code.
    paths = [name for name in _paths(spec) if name != "cwd"]
    bases = [(place.folder, paths), (place.folder / cwd if cwd else place.started, _STARTED)]
    for base, names in bases:
        for _, text in texts({name: options[name] for name in names if name in options}):
            # In `--root=DIR`, the path comes after the sign.
            yield from place.existing(base / text.rpartition("=")[2], top=names is paths)


def files_in(data: Any, place: Place) -> Iterator[str]:
    """Yield the files and folders from the top of the checkout that the texts of a config's data lead to."""
    for at, text in texts(data):
        # In `checks.py:brevity`, the path comes before the sign. A word alone is the name of a plugin or a label, but
        # not in an option, such as `copy: repository`.
        path, is_option = text.partition(":")[0], len(at) > 1 and isinstance(at[-1], str) and at[-1] != "type"
        if is_option or not {".", "/"}.isdisjoint(path):
            yield from place.existing(place.folder / path)


def touched(changed: Iterable[str], sources: Sequence[str]) -> list[str]:
    """Return the changed files that are among the sources, or lie in one, or that a pattern fits."""

    def is_of(file: str, each: str) -> bool:
        return file == each or file.startswith(f"{each}/") or each == "." or fnmatchcase(file, each)

    return [file for file in changed if any(is_of(file, each) for each in sources)]


def moved(spec: PluginSpec, here: Place, there: Place) -> dict[str, Any]:
    """Return the type and the options of a context that stands `here` as one of the checkout `there`."""

    def move(value: Any, base: Path | None) -> Any:
        if isinstance(value, dict):
            return {key: move(item, base) for key, item in value.items()}
        if isinstance(value, list):
            return [move(item, base) for item in value]
        if not isinstance(value, str):
            return value
        if base is not None and not value.startswith(("/", "${", "{")):
            return str(base / value)
        found = value.replace(f"{here.top}/", f"{there.top}/")
        return str(there.top) if found == str(here.top) else found

    options = {
        name: move(value, there.folder if name in _paths(spec) else None) for name, value in spec.options.items()
    }
    if spec.type == "stdio" and not options.get("cwd"):
        options["cwd"] = str(there.started)
    return {"type": spec.type, **options}


def is_started_in(spec: PluginSpec, there: Place) -> bool:
    """Return whether what a context starts is of its checkout: by a path, or by its `cwd`, as far as options tell."""
    named = attrs.evolve(spec, options={key: each for key, each in spec.options.items() if key != "watch"})
    return spec.type not in _SERVERS or any(sources_of(named, there)) or bool(spec.options.get("cwd"))


def _cwd(options: Mapping[str, Any]) -> str | None:
    """Return the folder in which a server is started, or what is copied into its own, as written."""
    cwd = options.get("cwd")
    return cwd.get("copy") if isinstance(cwd, dict) else cwd


def _paths(spec: PluginSpec) -> list[str]:
    """Return the options of a context that are paths, which start from the config's folder."""
    plugin = options_class("keval.contexts", spec.type)
    fields = [field for field in attrs.fields(plugin) if field.init] if plugin else []
    return [field.name for field in fields if any(word in str(field.type) for word in ("Path", "WorkingFolder"))]
