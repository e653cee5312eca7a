"""What to write in place of a mistake in a config, a dataset or on the command line: the remedies that keval tells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import attrs
import yaml

from keval.config.evaluation import PluginSpec
from keval.config.structure import MAPPINGS, SEQUENCES, UNIONS, options_class, structure
from keval.errors import FieldError, suggestion
from keval.records.models import Model
from keval.seams import registry
from keval_start.servers import label_of, named_server
from keval_start.variables import Variables, looks_secret
from keval_start.workplace import Workplace

_LONGEST = 100
"""Characters of what is written for the user; more is harder to read than the documentation."""
_MOST_NAMES = 8
_QUOTE = "; put it in quotes"


def for_value(wanted: Any, given: Any) -> str:
    """Return what to write for a value of another type than the `wanted` one."""
    parts = get_args(wanted) if get_origin(wanted) in UNIONS else (wanted,)
    if isinstance(given, bool | int | float) and {str, Path} & {*parts}:
        return _QUOTE
    meant = next((found for each in parts if (found := _meant(each, given)) is not None), None)
    return _write(meant)


def _meant(wanted: Any, given: Any) -> Any:
    """Return what is meant by a value that is not of the `wanted` type; `None` if that is not clear."""
    origin = get_origin(wanted)
    if wanted in (int, float, bool) and isinstance(given, str) and re.fullmatch(r"[\w.+-]+", given):
        read = yaml.safe_load(given)
        return read if isinstance(read, wanted) and isinstance(read, bool) is (wanted is bool) else None
    if origin in SEQUENCES and isinstance(given, str | dict):
        return _listed(given) if str in get_args(wanted) else [given]
    if origin in MAPPINGS and given:
        return _merged(given) or None
    if attrs.has(wanted) and wanted is not Model:
        # By a single key that takes the value, or the only item of a list.
        items = [_merged(given), *({each.name: given} for each in attrs.fields(wanted) if each.init)]
        items += [{each.name: given[0]} for each in attrs.fields(wanted) if isinstance(given, list) and len(given) == 1]
        return next((each for each in items if each and _fits(wanted, each)), None)
    return None


def _fits(cls: type, options: Mapping[str, Any], base: Path = Path()) -> bool:
    return structure(cls, options, (), base, variables=False)[0] is not None


def _listed(given: Any) -> list[Any]:
    """Return as items of a list what stands there as one text, or as a mapping."""
    pairs = given.items() if isinstance(given, dict) else ()
    return [{name: options} if options else name for name, options in pairs] or [given]


def _merged(given: Any) -> dict[str, Any]:
    """Return as a mapping what stands in a list: mappings, `NAME=VALUE`, `name:value` or names alone."""
    found: dict[str, Any] = {}
    for each in given if isinstance(given, list) else [given]:
        if isinstance(each, dict) and len(each) > 1 and isinstance(name := each.get("name", each.get("type")), str):
            found[name] = {key: value for key, value in each.items() if key != "name"}
        elif isinstance(each, dict):
            found.update(each)
        elif isinstance(each, str):
            name, _, value = re.sub(r"^([\w-]+):(?!/)", r"\1=", each).partition("=")
            found[name] = value or {}
    return found


def for_entries(path: Sequence[str | int], given: Any) -> str:
    """Return what to write for a section that is no mapping or list as it should be, or for one of its entries."""
    section, inner = str(path[0]), len(path) > 1
    if isinstance(given, bool | int | float):
        return _QUOTE
    if section in ("metrics", "rubrics", "middleware", "plugins"):
        return "; begin each name with `- `, and indent its options below it" if inner else _write(_listed(given))
    if inner or given is None or section not in ("agents", "contexts", "judges", "conditions"):
        return _write(_entry(section, given)[1]) if inner and isinstance(given, str) else ""
    entries = [(name, has) if has or section == "conditions" else _entry(section, name) for name, has in _each(given)]
    return _write(dict(entries))


def _each(given: Any) -> list[tuple[str, Any]]:
    # A text in a list may be a URL or a command, which is no label.
    items = given if isinstance(given, list) else [given]
    return [pair for each in items for pair in ([(each, {})] if isinstance(each, str) else _merged(each).items())]


def _entry(section: str, text: str) -> tuple[str, dict[str, Any]]:
    """Return the label and the options of a plugin of which only a text is given: its type, model, URL or command."""
    if section == "contexts" and re.search(r"^https?://|\s", text):
        server = named_server(text, Workplace(Path(), Path()), Variables())
        return server.label, dict(server.options)
    model = {"model": text} if section == "judges" else {"type": "…", "model": text}
    return (section[:-1], model) if "/" in text else (label_of(text), {"type": text})


def for_plugin(group: str, spec: PluginSpec, base: Path) -> str:
    """Return what to write for a plugin of no known name: the type that its keys belong to, or where it belongs."""
    if group == "keval.metrics" and registry.has("keval.rubrics", spec.type):
        return "; it is a rubric: list it under `rubrics:`, and add a judge, `judge: {model: provider/name}`"
    if spec.label != spec.type or group not in ("keval.agents", "keval.contexts", "keval.judges"):
        kinds = [registry.GROUPS[each] for each in registry.groups() if registry.has(each, spec.type)]
        return f"; {spec.type!r} is another kind of plugin: {' and '.join(kinds)}" if kinds else ""
    known = {each.name: options_class(group, each.name) for each in registry.offered(group)}
    near = [name for name, cls in known.items() if cls and {*spec.options} <= {*attrs.fields_dict(cls)}]
    sure = [name for name in near if spec.options and _fits(known[name] or dict, spec.options, base)]
    meant = " or ".join(f"`type: {name}`" for name in (sure or near if spec.options else ())) or "`type:`"
    return f"; if that is its label, add {meant}; types: {', '.join(known)}"


def for_file(path: Path, error: Exception) -> str:
    """Return which file may be meant in place of one that cannot be read, and of what format it is."""
    if isinstance(error, UnicodeDecodeError):
        return f" at byte {error.start + 1}; save it as UTF-8"
    if path.exists() or not isinstance(error, FileNotFoundError | NotADirectoryError):
        return ""
    folder = next(each for each in path.parents if each.is_dir())
    missing = path.relative_to(folder).parts[0]
    names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    told = "" if missing == path.name else f"; there is no folder {missing!r} in {folder}"
    return told + (suggestion(missing, names) or f"; {folder} has {', '.join(names[:_MOST_NAMES]) or 'nothing'}")


def for_path(spec: PluginSpec, error: FieldError, base: Path) -> str:
    """Return which file or folder may be meant by an option of a plugin that leads nowhere."""
    value: Any = spec.options
    for step in error.path[len(spec.path) :]:
        value = value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, str) or not re.search("exist|no folder|No such", error.message):
        return ""
    return for_file(base / re.sub(r":\w+$", "", value), FileNotFoundError())


def for_key(key: str, beside: Mapping[str, Any]) -> str:
    """Return what is meant by a key that nobody knows, of a mapping with what stands `beside` it."""
    if (pair := re.match(r"([\w-]+):(.+)", key)) is not None:
        return f"; write a blank after the colon: `{pair[1]}: {pair[2]}`"
    before = next((above for above, below in zip(beside, [*beside][1:], strict=False) if below == key), key)
    return f"; if it belongs to `{before}:` above it, indent it" if beside.get(before, "") is None else ""


@cache
def _yaml() -> Mapping[str, str]:
    """A part of what the parser of YAML says, and what to do.

    {0} is what stands there, {1} the line in which the whole begins, {2} and {3} the line and column of what is above
    and indented nearly alike.
    """
    lines = Path(__file__).with_name("yaml_remedies.txt").read_text(encoding="utf-8").splitlines()
    return {said: told for said, _, told in (line.partition(" | ") for line in lines)}


def for_yaml(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> str:
    """Return what to do about a text that is no YAML."""
    if (mark := error.problem_mark or error.context_mark) is None:
        return ""
    line = lines[mark.line] if mark.line < len(lines) else ""
    found = line[mark.column : mark.column + 1]
    problem = "tab" if found == "\t" else str(error.problem)
    told = next((told for said, told in _yaml().items() if said in problem), "")
    above = [(len(each) - len(each.lstrip()), number) for number, each in enumerate(lines[: mark.line]) if each.strip()]
    indent, beside = min(above, key=lambda each: (abs(each[0] - mark.column), -each[1]), default=(0, 0))
    return told.format(found, (error.context_mark or mark).line + 1, beside + 1, indent + 1)


def _write(value: Any) -> str:
    """Return a value as one writes it in YAML; nothing for none, or if it is long."""
    text = yaml.safe_dump(_shown(value), default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return "" if value is None or len(text) > _LONGEST else "; write " + text.split("\n")[0]


def _shown(value: Any, name: str = "") -> Any:
    """Return data without what may be secret in them."""
    if isinstance(value, dict):
        return {key: _shown(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each, name) for each in value]
    # A text in which variables were filled in is of a class of its own.
    return value if not isinstance(value, str) else "…" if looks_secret(name, value) else str(value)
