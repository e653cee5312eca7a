"""A YAML file as plain data, with the place of every key and value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

import attrs
import yaml

from keval.errors import ConfigError, Problem
from keval.files import read_input

_DEEPEST = 200
"""Levels of lists and mappings. The C loader calls itself for each, and some thousands end the process."""

_INDENT = re.compile(r"^[ ?:-]+", re.MULTILINE)
_EventLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_depth(text: str, name: str) -> None:
    """Refuse a text that is nested too deeply, by its events, which are read without recursion. Raises ConfigError."""
    # A level takes a bracket, or a column of its own: most files cannot be so deep, and are not read twice.
    if text.count("[") + text.count("{") < _DEEPEST and _deepest_indent(text) < _DEEPEST // 2:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_EventLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                mark = event.start_mark
                place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
                raise ConfigError([Problem(place, f"nested more than {_DEEPEST} levels deep; write it flatter")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _deepest_indent(text: str) -> int:
    return max(map(len, _INDENT.findall(text)), default=0)


KeyPath: TypeAlias = tuple[str | int, ...]

T = TypeVar("T")

_MERGE = "tag:yaml.org,2002:merge"
_NODE_LIMIT = 200_000
_MOST_BYTES = 10_000_000
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@attrs.frozen
class Source:
    """Plain data, and the place of each part.

    `name` is what errors call the file; relative paths in the data are relative to `base`. `_values` and `_keys` map
    a path of keys and indexes to a line and column, both from 1, and `_written` to a number or boolean as written.
    """

    name: str
    base: Path
    data: Any
    _values: Mapping[KeyPath, tuple[int, int]] = attrs.field(factory=dict, repr=False)
    _keys: Mapping[KeyPath, tuple[int, int]] = attrs.field(factory=dict, repr=False)
    _written: Mapping[KeyPath, str] = attrs.field(factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a YAML file. Raises ConfigError: unreadable, not UTF-8, not YAML, or a key that is repeated."""
        try:
            text = read_input(path, _MOST_BYTES).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem(str(path), f"cannot be read: {error}")]) from error
        return cls.parse(text, str(path), path.resolve().parent)

    @classmethod
    def parse(cls, text: str, name: str, base: Path) -> Source:
        """Parse YAML text; raises as `read` does."""
        try:
            check_depth(text, name)
            loader = _Loader(text)
            root = loader.get_single_node()
            if root is None:
                problem = "the file is empty; see `keval schema` for what belongs in it"
                raise ConfigError([Problem(name, problem)])
            reader = _Reader(loader, name)
            data = reader.convert(root, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
            raise ConfigError(
                [Problem(place, f"not valid YAML: {error.problem}; check the indentation and quotes")]
            ) from error
        except yaml.YAMLError as error:
            raise ConfigError([Problem(name, f"not valid YAML: {error}")]) from error
        except RecursionError as error:
            raise ConfigError([Problem(name, "nested too deeply; write it flatter")]) from error
        if reader.problems:
            raise ConfigError(reader.problems)
        return cls(name, base, data, reader.values, reader.keys, reader.written)

    def moved(self, data: Any, moves: Mapping[KeyPath, KeyPath]) -> Source:
        """Return a source with other data; `moves` maps the old paths of parts that were moved to the new ones.

        Places stay those of the file: an error in a moved part is shown where the user wrote it.
        """
        if not moves:
            return attrs.evolve(self, data=data)
        return Source(
            self.name,
            self.base,
            data,
            _moved(self._values, moves),
            _moved(self._keys, moves),
            _moved(self._written, moves),
        )

    def written(self, path: KeyPath) -> str | None:
        """Return a number or boolean as it is written: `yes` and not True, 3.50 and not 3.5."""
        return self._written.get(path)

    def line(self, path: KeyPath) -> int:
        """Return the line on which the value at `path` begins."""
        return self._values[path][0]

    def place(self, path: KeyPath, *, key: bool = False) -> str:
        """Return the place of the value at `path` as `file:line:column`; with `key`, the place of its key.

        A path that is not in the file has the place of the nearest parent that is.
        """
        # An item of a list has no key.
        table = self._keys if key and path in self._keys else self._values
        if path in table:
            line, column = table[path]
            return f"{self.name}:{line}:{column}"
        if path:
            return self.place(path[:-1], key=len(path) > 1)
        return self.name


def _moved(table: Mapping[KeyPath, T], moves: Mapping[KeyPath, KeyPath]) -> dict[KeyPath, T]:
    moved: dict[KeyPath, T] = {}
    for path, value in table.items():
        old = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in moves), ())
        new = (*moves[old], *path[len(old) :]) if old else path
        moved[new] = value
        if path == old:  # the file has the section only under its other name
            moved.setdefault(new[:-1], value)
    return moved


class _Reader:
    """Walks a node graph once, collecting plain data, places and problems."""

    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self.loader = loader
        self.name = name
        self.values: dict[KeyPath, tuple[int, int]] = {}
        self.keys: dict[KeyPath, tuple[int, int]] = {}
        self.written: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._flattened: set[int] = set()
        self._count = 0

    def convert(self, node: yaml.Node, path: KeyPath) -> Any:
        self._count += 1
        if self._count > _NODE_LIMIT or id(node) in self._open:
            self._refuse(node)
        self.values[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node)
            if isinstance(value, int | float):
                self.written[path] = node.value
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
            self._problem(node, f"cannot be read: {error}")
            return None
        # A date is meant as a text; YAML 1.1 would make a date object of it.
        return node.value if value is not None and not isinstance(value, str | int | float | bool) else value

    def _items(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[Any, Any]]:
        if id(node) not in self._flattened:
            # Merging `<<` changes the node, so an alias must not be merged again.
            self._flattened.add(id(node))
            self._check_duplicates(node)
            if self._merged(node, {}) > _NODE_LIMIT:
                self._refuse(node)
            self.loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(key_node, "a key must be a text; quote it")
                continue
            # Keys stay as written: `on` and `off` are labels and not booleans, and 010 is not 8.
            key = key_node.value
            self.keys[(*path, key)] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            yield key, self.convert(value_node, (*path, key))

    def _merged(self, node: yaml.MappingNode, sizes: dict[int, int]) -> int:
        """Return how many pairs a mapping has when what `<<` names is merged into it."""
        if id(node) not in sizes:
            sizes[id(node)] = 0  # until it is known, so that a mapping may name itself
            size = 0
            for key, value in node.value:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                merges = key.tag == _MERGE
                size += (
                    sum(self._merged(part, sizes) for part in parts if isinstance(part, yaml.MappingNode))
                    if merges
                    else 1
                )
            sizes[id(node)] = size
        return sizes[id(node)]

    def _refuse(self, node: yaml.Node) -> NoReturn:
        place = f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        raise ConfigError([Problem(place, "aliases unfold to too much or to themselves; write the values out")])

    def _check_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE:
                continue
            if key_node.value in seen:
                first = seen[key_node.value]
                self._problem(key_node, f"the key {key_node.value!r} stands here again, after line {first}; keep one")
            seen.setdefault(key_node.value, key_node.start_mark.line + 1)

    def _problem(self, node: yaml.Node, message: str) -> None:
        place = f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        self.problems.append(Problem(place, message))
