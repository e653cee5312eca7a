"""A YAML file as plain data, with the place of every key and value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import attrs
import yaml

from keval.errors import ConfigError, FieldError, Problem
from keval.files import read_input
from keval.seams.remedies import remedy, unread

KeyPath: TypeAlias = tuple[str | int, ...]

_DEEPEST = 200
"""Levels of lists and mappings. The C loader calls itself for each, and some thousands end the process."""
_INDENT = re.compile(r"^[ ?:-]+", re.MULTILINE)
_PAIR = re.compile(r"\\ud[89ab]..\\ud[c-f]..", re.IGNORECASE)
_MERGE = "tag:yaml.org,2002:merge"
# Counted with aliases expanded: ten lines of aliases of aliases can stand for billions of nodes.
_NODE_LIMIT = 200_000
_MOST_BYTES = 10_000_000
# PyYAML has the fast loader only where it was built with libyaml.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Place(NamedTuple):
    """Where a value and its key stand (line and column, both from 1), and a number or boolean as it is written."""

    value: tuple[int, int]
    key: tuple[int, int] | None
    written: str | None


@attrs.frozen
class Source:
    """Plain data, and the place of each part.

    `name` is what errors call the file; relative paths in the data are relative to `base`.
    """

    name: str
    base: Path
    data: Any
    _places: Mapping[KeyPath, Place] = attrs.field(factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a YAML file. Raises ConfigError: unreadable, not UTF-8, not YAML, or a key that is repeated."""
        try:
            text = read_input(path, _MOST_BYTES).decode("utf-8")
            if path.suffix == ".json":  # of which YAML knows neither tabs between items nor pairs of surrogates
                text = _PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), text.replace("\t", " "))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem(str(path), unread(path, error))]) from error
        return cls.parse(text, str(path), path.resolve().parent)

    @classmethod
    def parse(cls, text: str, name: str, base: Path) -> Source:
        """Parse YAML text; raises as `read` does."""
        try:
            _check_depth(text, name)
            loader = _Loader(text)
            root = loader.get_single_node()
            if root is None:
                problem = "the file is empty; see `keval schema` for what belongs in it"
                raise ConfigError([Problem(name, problem)])
            reader = _Reader(loader, name)
            data = reader.convert(root, ())
        except yaml.MarkedYAMLError as error:
            mark, began = error.problem_mark or error.context_mark, error.context_mark
            # That a quote, a bracket or a key has no end is found below it.
            if mark and began and began.line < mark.line and re.search("quoted|flow|simple key", error.context or ""):
                mark = began
            told = remedy("yaml", error, text.splitlines()) or "; check the indentation and quotes"
            raise ConfigError([Problem(_at(name, mark), f"not valid YAML: {error.problem}{told}")]) from error
        except yaml.YAMLError as error:
            raise ConfigError([Problem(name, f"not valid YAML: {error}")]) from error
        except RecursionError as error:
            raise ConfigError([Problem(name, "nested too deeply; reduce the nesting")]) from error
        if reader.problems:
            raise ConfigError(reader.problems)
        return cls(name, base, data, reader.places)

    def moved(self, data: Any, moves: Mapping[KeyPath, KeyPath]) -> Source:
        """Return a source with other data; `moves` maps the old paths of parts that were moved to the new ones.

        Places stay those of the file: an error in a moved part is shown where the user wrote it.
        """
        places: dict[KeyPath, Place] = {}
        for path, place in self._places.items():
            old = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in moves), ())
            new = (*moves[old], *path[len(old) :]) if old else path
            places[new] = place
            if old and path == old:  # the file has the section only under its other name
                places.setdefault(new[:-1], place)
        return Source(self.name, self.base, data, places)

    def written(self, path: KeyPath) -> str | None:
        """Return a number or boolean as it is written: `yes` and not True, 3.50 and not 3.5."""
        return place.written if (place := self._places.get(path)) else None

    def line(self, path: KeyPath) -> int:
        """Return the line on which the value at `path` begins."""
        return self._places[path].value[0]

    def place(self, path: KeyPath, *, key: bool = False) -> str:
        """Return the place of the value at `path` as `file:line:column`; with `key`, the place of its key.

        A path that is not in the file has the place of the nearest parent that is.
        """
        if path and str(path[0]).startswith("-"):  # an option of the command line, and its value
            return " ".join(map(str, path[:2]))
        if found := self._places.get(path):
            # An item of a list has no key.
            line, column = found.key if key and found.key else found.value
            return f"{self.name}:{line}:{column}"
        return self.place(path[:-1], key=len(path) > 1) if path else self.name

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem with the value at `path`, or with its key."""
        return Problem(self.place(path, key=at_key), message)

    def problems(self, errors: Iterable[FieldError]) -> list[Problem]:
        """Return errors of fields with their places."""
        return [self.problem(error.path, error.message, at_key=error.at_key) for error in errors]


def _check_depth(text: str, name: str) -> None:
    """Refuse a text that is nested too deeply, by its events, which are read without recursion. Raises ConfigError."""
    # A level takes a bracket, or a column of its own: most files cannot be so deep, and are not read twice.
    deepest_indent = max(map(len, _INDENT.findall(text)), default=0)
    if text.count("[") + text.count("{") < _DEEPEST and deepest_indent < _DEEPEST // 2:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            problem = f"nested more than {_DEEPEST} levels deep; reduce the nesting"
            raise ConfigError([Problem(_at(name, event.start_mark), problem)])


def _at(name: str, mark: Any) -> str:
    return f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name


class _Reader:
    """Walks a node graph once, collecting plain data, places and problems."""

    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self.loader = loader
        self.name = name
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._flattened: set[int] = set()
        self._count = 0

    def convert(self, node: yaml.Node, path: KeyPath, key: yaml.Node | None = None) -> Any:
        self._count += 1
        # A node that is still open contains itself by an alias.
        if self._count > _NODE_LIMIT or id(node) in self._open:
            self._refuse(node)
        value = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        written = node.value if isinstance(value, int | float) else None
        self.places[path] = Place(_position(node), _position(key) if key else None, written)
        if isinstance(node, yaml.ScalarNode):
            return value
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self._items(node, path))
            return [self.convert(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            value = self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            # ValueError is for what only looks like a date or a number, such as 2024-02-30.
            self._problem(node, f"cannot be read: {error}")
            return None
        # A date is meant as a text; YAML 1.1 would make a date object of it.
        return node.value if value is not None and not isinstance(value, str | int | float | bool) else value

    def _items(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[Any, Any]]:
        if id(node) not in self._flattened:
            # Merging `<<` changes the node, so an alias must not be merged again.
            self._flattened.add(id(node))
            self._check_duplicates(node)
            # Merging copies all pairs at once, before `convert` counts any of them.
            if self._merged(node, {}) > _NODE_LIMIT:
                self._refuse(node)
            self.loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(key_node, "a key must be a text; quote it")
                continue
            # Keys stay as written: `on` and `off` are labels and not booleans, and 010 is not 8.
            yield key_node.value, self.convert(value_node, (*path, key_node.value), key_node)

    def _merged(self, node: yaml.MappingNode, sizes: dict[int, int]) -> int:
        """Return how many pairs a mapping has when what `<<` names is merged into it."""
        if id(node) not in sizes:
            sizes[id(node)] = 0  # until it is known, so that a mapping may name itself
            size = 0
            for key, value in node.value:
                if key.tag != _MERGE:
                    size += 1
                    continue
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                size += sum(self._merged(part, sizes) for part in parts if isinstance(part, yaml.MappingNode))
            sizes[id(node)] = size
        return sizes[id(node)]

    def _check_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in seen:
                problem = f"the key {key.value!r} stands here again, after line {seen[key.value]}; keep one"
                self._problem(key, problem)
            seen.setdefault(key.value, key.start_mark.line + 1)

    def _refuse(self, node: yaml.Node) -> NoReturn:
        problem = "YAML aliases are recursive or expand to too much data; write the values out"
        raise ConfigError([Problem(_at(self.name, node.start_mark), problem)])

    def _problem(self, node: yaml.Node, message: str) -> None:
        self.problems.append(Problem(_at(self.name, node.start_mark), message))


def _position(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
