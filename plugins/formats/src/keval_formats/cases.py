"""Cases of another tool, and the servers and skills that they are about, as a config and its samples."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from keval.config.source import KeyPath, Source
from keval.errors import ConfigError, FieldError, Problem
from keval.seams.formats import Translation
from keval.seams.infrastructure import DatasetRequest, RawRecord

_MODEL = "simulated/model"
_AGENT = "gadk"
_SHOWS = f"agent and models are {_AGENT} and {_MODEL}, which only shows how all works, unless flags name others"
OFFERED = FieldError((), f"{_SHOWS}: --agent, -m")
_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}
_OPTIONS = ("command", "args", "env", "url", "headers")
_ROOT = re.compile(r"\$\{(?:CLAUDE_)?PLUGIN_ROOT\}")


def parties(*, judged: bool) -> dict[str, Any]:
    """Return the sections that no file of another tool has: an agent, and a judge of what is expected in words."""
    judges = {"judges": {"judge": {"model": _MODEL}}, "rubrics": ["expectations"]} if judged else {}
    return {"agents": {_AGENT: {"model": _MODEL}}, **judges}


def label_of(name: Any, otherwise: str) -> str:
    """Return a label for something of this name, `otherwise` if it is none."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_") or otherwise if isinstance(name, str) else otherwise


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and one item of what may be one or several."""
    return value if isinstance(value, list) else [] if value is None else [value]


def section(data: Any, key: str) -> dict[str, Any]:
    """Return what a key maps, nothing if it is no mapping."""
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def seconds(written: Any) -> float | None:
    """Return a duration in seconds: a number of these, or a text such as `1m30s`; `None` if it is none."""
    if isinstance(written, int | float):
        return written
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", str(written))
    return sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts) or None


@attrs.define
class Case:
    """One case: what is asked, and what must hold of the answer; `where` it stands in the file.

    `asserts` are for the metric `formats/asserts`. What is expected (`expect`) is so in conditions that have contexts.
    """

    id: str
    prompt: str
    where: KeyPath = ()
    metadata: dict[str, Any] = attrs.field(factory=dict)
    expectations: list[str] = attrs.field(factory=list)
    asserts: list[dict[str, Any]] = attrs.field(factory=list)
    expect: dict[str, list[str]] = attrs.field(factory=dict)
    verify: list[dict[str, Any]] = attrs.field(factory=list)
    files: dict[str, Any] = attrs.field(factory=dict)
    setup: list[str] = attrs.field(factory=list)

    def expects(self, key: str, *texts: str) -> bool:
        """Add texts to a key of `expect`; true if there is any."""
        if texts:
            self.expect.setdefault(key, []).extend(texts)
        return bool(texts)

    def verifies(self, kind: str, about: str, option: Any) -> bool:
        """Add a check of what an agent leaves."""
        self.verify.append({"name": f"{about} ({len(self.verify) + 1})", kind: option})
        return True

    def matches(self, pattern: Any, flags: str = "", *, absent: bool = False, file: str | None = None) -> bool:
        """Say that a pattern is found in the answer or in a file, or is `absent`; false if Python cannot read it."""
        rest = re.sub(r"^\(\?[ims]+\)", "", str(pattern))
        inline = str(pattern).removesuffix(rest)
        flags = "".join(flag for flag in dict.fromkeys(flags + inline) if flag in "ims")
        found = f"(?{flags}:{rest})" if flags else rest
        try:
            re.compile(found)
        except re.error:
            return False
        if not file:
            self.asserts.append({"type": "not-regex" if absent else "regex", "value": found})
            return True
        return self.verifies("file", file, {"path": file, "matches": rf"\A(?![\s\S]*(?:{found}))" if absent else found})

    def leaves(self, path: str, *, exists: bool) -> bool:
        """Say that a file is left, or is not; its path may be a glob, and `**` is for no check."""
        if not re.search(r"[*?\[]", path):
            return self.verifies("file", path, {"path": path, "exists": exists})
        quoted = re.sub(r"[^\w./*?\[\]-]", r"\\\g<0>", path)
        return "**" not in path and self.verifies("command", path, f"{'' if exists else '! '}ls -d -- {quoted}")

    def record(self, conditions: list[str]) -> dict[str, Any]:
        """Return the case as a record of a dataset, with the conditions for what is expected."""
        found = {"expectations": self.expectations, "asserts": {"assert": self.asserts} if self.asserts else None}
        about = {**self.metadata, **{key: value for key, value in found.items() if value}}
        record = {"id": self.id, "question": self.prompt, "metadata": about, "verify": self.verify}
        expect = {"expect": {**self.expect, "conditions": conditions}} if self.expect else {}
        more = {"files": self.files, **({"setup": self.setup} if self.setup else {})}
        return {**record, **expect, **({"workspace": more} if self.files or self.setup or self.verify else {})}


@attrs.define
class Suite:
    """What a file of another tool has. Paths in it are relative to the file's folder, `base`.

    `read` are the other files that it was read from, and `more` are further sections of the config. `arms` are its
    conditions with the labels of their contexts; by default none, all, and where it `leaves_out` parts, all but each.
    """

    name: str
    base: Path
    header: dict[str, Any] = attrs.field(factory=dict)
    cases: list[Case] = attrs.field(factory=list)
    contexts: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    execution: dict[str, Any] = attrs.field(factory=dict)
    more: dict[str, Any] = attrs.field(factory=dict)
    unmatched: list[FieldError] = attrs.field(factory=list)
    read: list[Path] = attrs.field(factory=list)
    arms: dict[str, list[str]] = attrs.field(factory=dict)
    leaves_out: bool = False

    @property
    def conditions(self) -> dict[str, list[str]]:
        """The conditions with the labels of their contexts."""
        every = [*self.contexts]
        parts = every if self.leaves_out and len(every) > 1 else ()
        without = {f"{self.name} without {part}": [each for each in every if each != part] for part in parts}
        return self.arms or {"baseline": [], **({self.name: every} if every else {}), **without}

    @property
    def chosen_in(self) -> list[str]:
        """The conditions in which it is looked at what is chosen of all that is offered."""
        return [arm for arm, contexts in self.conditions.items() if contexts and " without " not in arm] or ["baseline"]

    def lacks(self, told: str, *where: str | int, at_key: bool = False) -> None:
        """Note what has no equivalent; what several cases have is told once."""
        if told not in [each.message for each in self.unmatched]:
            self.unmatched.append(FieldError(where, told, at_key))

    def lacks_others(self, data: Any, known: Collection[str], *where: str | int, told: str = "") -> None:
        """Note the keys of a mapping that are not known."""
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                self.lacks(f"{told}the key {key!r}", *where, key, at_key=True)

    def most(self, key: str, values: Iterable[Any]) -> None:
        """Set a key of `execution` to the largest value, as keval has one for all cases."""
        found = sorted({float(each) for each in values if isinstance(each, int | float) and each > 0})
        if found:
            self.execution[key] = int(found[-1]) if found[-1].is_integer() else found[-1]
        if len(found) > 1:
            self.lacks(f"{key} of its own for each case; it is {found[-1]:g} for all")

    def entries(self, value: Any, told: str, *where: str | int) -> list[dict[str, Any]]:
        """Return the mappings of what may be one or several, and note what is none."""
        for each in listed(value):
            if not isinstance(each, dict):
                self.lacks(f"{told} {each!r:.60}, which is no mapping", *where)
        return [each for each in listed(value) if isinstance(each, dict)]

    def source(self, path: Path) -> dict[str, Any]:
        """Return the mapping in another file, in YAML or JSON. Raises ConfigError."""
        self.read.append(path)
        source = Source.read(path)
        if not isinstance(source.data, dict):
            raise ConfigError([source.problem((), "expected a mapping")])
        return source.data

    def text(self, path: Path) -> str:
        """Return the text of another file. Raises ConfigError."""
        self.read.append(path)
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem(str(path), f"it cannot be read: {error}")]) from error

    def add(self, name: str, options: dict[str, Any]) -> str:
        """Add a context, if it is another one, and return its label."""
        label = label_of(name, "it")
        while self.contexts.setdefault(label, options) != options:
            label += "_2"
        return label

    def add_skill(self, folder: Path) -> str:
        """Add a skill, and return its label."""
        return self.add(folder.resolve().name, {"type": "skill", "path": os.path.relpath(folder, self.base)})

    def add_server(self, name: str, entry: Any, root: Path, told: str) -> str | None:
        """Add an MCP server as clients write it, which is started in `root`, and return its label."""
        known = entry if isinstance(entry, dict) else {}
        kind = _TRANSPORTS.get(str(known.get("type", "stdio" if "command" in known else "http")))
        if kind is None or not {"command", "url"} & known.keys():
            self.lacks(f"{told}: the server {name!r}, as it has no command or URL, or is of another type")
            return None
        cwd = root / _ROOT.sub(lambda _: str(root.resolve()), str(known.get("cwd", ".")))
        here = json.dumps(os.path.relpath(root, cwd))[1:-1]
        given = {key: known[key] for key in _OPTIONS if key in known}
        if str(given.get("command")).startswith("./"):  # of the plugin's folder, and not of `cwd`
            given["command"] = f"./{os.path.relpath(root / given['command'], cwd)}"
        written = json.dumps(given)
        place = {"cwd": os.path.relpath(cwd, self.base)} if kind == "stdio" else {}
        self.lacks_others(known, (*_OPTIONS, "type", "cwd", "description"), told=f"{told}: ")
        return self.add(name, {"type": kind, **json.loads(_ROOT.sub(lambda _: here, written)), **place})

    def translation(self, path: Path, kind: str) -> Translation:
        """Return the config: samples by the dataset format `kind`, and its conditions."""
        kinds = ("expectations", "asserts", "expect", "verify")
        parts = {kind for case in self.cases for kind in kinds if getattr(case, kind)}
        metrics = [name for part, name in (("asserts", "formats/asserts"), ("verify", "verify")) if part in parts]
        # A run needs something that scores, beside what is only expected.
        metrics = metrics or ["basic/no_tool_errors"] * (parts == {"expect"})
        told = "no case has what an answer is checked by"
        if not self.cases:
            file = os.path.relpath(path)
            told = f"it has no questions; `keval init DIR --from {file}` writes a config with some: --questions FILE"
        data = {
            **self.header,
            "name": self.name,
            **({"dataset": {"path": path.name, "type": kind}} if self.cases else {}),
            **parties(judged="expectations" in parts),
            **({"contexts": self.contexts} if self.contexts else {}),
            "conditions": {
                arm: {"contexts": contexts} if contexts else {} for arm, contexts in self.conditions.items()
            },
            **({"metrics": metrics} if metrics else {}),
            **({"execution": self.execution} if self.execution else {}),
            **self.more,
        }
        problems = () if parts else (FieldError((), told),)
        return Translation(data, problems=problems, notices=(OFFERED,), unmatched=tuple(self.unmatched))


@attrs.frozen
class SuiteFormat:
    """A format whose files are suites; `kind` is the dataset format of their cases."""

    kind: str
    suite: Callable[[dict[str, Any], Path], Suite | None]

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Make conditions of what a suite compares, and samples of its cases. Raises ConfigError."""
        found = None if "agents" in data and "conditions" in data else self.suite(data, path)
        return found.translation(path, self.kind) if found else None

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add nothing: a config in keval's own words has no key of these formats."""


@attrs.define
class SuiteReader:
    """Reads the cases of a suite as samples; `digest` is of all files that they are read from."""

    _suite: Callable[[dict[str, Any], Path], Suite | None]
    digest: str | None = attrs.field(default=None, init=False)

    def read(self, request: DatasetRequest) -> Iterator[RawRecord]:
        """Yield each case. Raises ConfigError."""
        source = Source.read(request.path)
        suite = self._suite(source.data, request.path) if isinstance(source.data, dict) else None
        if suite is None:
            raise ConfigError([Problem(str(request.path), "it has no cases in this format")])
        read = (request.path, *suite.read)
        self.digest = hashlib.sha256(b"".join(each.read_bytes() for each in read)).hexdigest() if suite.read else None
        yield from (RawRecord(case.record(suite.chosen_in), source.line(case.where)) for case in suite.cases)


def script(path: Path) -> str:
    """Return the command for a shell that runs a script: by its first line, or by Bash."""
    name = shlex.quote(str(path))
    return name if os.access(path, os.X_OK) else f"bash {name}"
