"""The format of k-eval: a config written for k-eval is translated into keval's own words before anything reads it.

Source: k-eval.md, Configuration. `agent:` and `judge:` hold one each, and `mcp_servers:` are contexts. A config with
`agent:` or `mcp_servers:` is written for k-eval, so what it leaves out has k-eval's defaults. Places of errors stay
those of the user's file.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from keval.config.evaluation import TEMPLATE_MARKS
from keval.config.source import KeyPath
from keval.config.variables import interpolate
from keval.errors import FieldError
from keval.seams import registry
from keval.seams.formats import Translation
from keval.seams.remedies import remedy

_SHORT_FORMS = {"agent": "agents", "judge": "judges", "mcp_servers": "contexts"}
_OWN_WORDS = ("agent", "mcp_servers")
"""The keys by which a config is known as one of k-eval; `judge` is short for one judge in any config."""
_REPETITIONS = 3
_IMPLIED_JUDGE = "judge"
"""The label of a judge of which the config gives only the model."""


class KEval:
    """The format of k-eval."""

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Translate a config; one without k-eval's words is in another format."""
        work = _Work(path.parent, deepcopy(data))
        written_for_k_eval = any(key in data for key in _OWN_WORDS)
        for short, section in _SHORT_FORMS.items():
            if short in data and section in data:
                work.problem((short,), f"{short!r} and {section!r} are the same; keep one", at_key=True)
                del work.data[short]
        for noun in ("agent", "judge"):
            if noun in work.data:
                work.unfold(noun)
        if "mcp_servers" in work.data:
            work.rename((), "mcp_servers", "contexts")
        for label, condition in work.section("conditions").items():
            if isinstance(condition, dict):
                work.translate_condition(label, condition, lenient=written_for_k_eval)
        if written_for_k_eval:
            work.find_dataset()
            work.fill_repetitions()
        if work.data == data and not work.problems:
            return None
        return Translation(work.data, work.moves, tuple(work.problems), tuple(work.notices))

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add the format's keys to the JSON Schema of a config's sections."""
        for short, section in _SHORT_FORMS.items():
            whole = properties[section]
            properties[short] = whole if short == "mcp_servers" else whole["additionalProperties"]
        condition = properties["conditions"]["additionalProperties"]["properties"]
        condition["mcp_servers"] = condition["contexts"]


k_eval = KEval()


class _Work:
    """A copy of a config's data while it is translated, with the original path of each part that was moved."""

    def __init__(self, folder: Path, data: dict[str, Any]) -> None:
        self.folder = folder
        self.data = data
        self.moves: dict[KeyPath, KeyPath] = {}
        self.problems: list[FieldError] = []
        self.notices: list[FieldError] = []

    def section(self, name: str) -> dict[str, Any]:
        """Return what a section maps, as it is now; nothing, if it is no mapping."""
        entries = self.data.get(name)
        return dict(entries) if isinstance(entries, dict) else {}

    def unfold(self, noun: str) -> None:
        """Make `agent:` or `judge:` the one entry of its section."""
        one = self.data.pop(noun)
        if not isinstance(one, dict) or not isinstance(one.get("type", noun), str):
            more = remedy("entries", (f"{noun}s", noun), one)
            self.problem((noun,), f"expected a mapping with type: and the options of one {noun}{more}")
            return
        if "type" not in one and not (noun == "judge" and "model" in one):
            needed = "`type:` with the name of an agent" if noun == "agent" else "`model:`, such as openai/gpt-4o"
            self.problem((noun,), f"add {needed}; `keval plugins` lists what is installed", at_key=True)
            return
        section = _SHORT_FORMS[noun]
        label = _IMPLIED_JUDGE
        if "type" in one:
            filled, unset = interpolate(one["type"], (noun, "type"))
            if unset:
                self.problems += unset
                return
            label = registry.label(f"keval.{section}", str(filled))
        self.data[section] = {label: one}
        self.moves[noun,] = (section, label)

    def rename(self, parent: KeyPath, old: str, new: str) -> None:
        """Rename a key of the mapping at `parent`, which keeps its place there."""
        mapping: Any = self.data
        for step in parent:
            mapping = mapping[step]
        items = [(new if key == old else key, value) for key, value in mapping.items()]
        mapping.clear()
        mapping.update(items)
        self.moves[*parent, old] = (*parent, new)

    def translate_condition(self, label: str, condition: dict[str, Any], *, lenient: bool) -> None:
        """Read `mcp_servers` of a condition as its contexts. If it has both, `mcp_servers` stays and is an unknown key.

        k-eval enforces the required use of tools only where a condition has servers, and sends prompts as they are
        written: `lenient` says to do the same.
        """
        if "mcp_servers" in condition and "contexts" not in condition:
            self.rename(("conditions", label), "mcp_servers", "contexts")
        for key in ("require_mcp_tool_use", "require_mcp_tool_success"):
            if lenient and condition.get(key) is True and not condition.get("contexts"):
                del condition[key]
                told = f"{label!r} has no server, so {key} is not enforced (the same as k-eval)"
                self.notice(("conditions", label, key), told)
        prompt = condition.get("system_prompt")
        if lenient and isinstance(prompt, str) and "template" not in condition:
            marks = [mark for mark in TEMPLATE_MARKS if mark in prompt]
            if marks:
                condition["template"] = False
                told = f"{' and '.join(marks)} are sent as written (the same as k-eval); `template: true` fills them in"
                self.notice(("conditions", label, "system_prompt"), told)

    def find_dataset(self) -> None:
        """Take a dataset relative to the working directory, as k-eval does, if the config's folder does not have it."""
        dataset = self.section("dataset")
        path = dataset.get("path")
        # Variables are filled in later, so the path is not known yet.
        if not isinstance(path, str) or "${" in path:
            return
        if not (self.folder / path).exists() and Path(path).is_file():
            found = Path(path).resolve()
            self.data["dataset"] = {**dataset, "path": str(found)}
            told = f"the dataset is taken relative to the working directory, as in k-eval: {found}"
            self.notice(("dataset", "path"), told)

    def fill_repetitions(self) -> None:
        """Ask each question three times, as k-eval does, if the config does not say how often."""
        execution = self.data.setdefault("execution", {})
        # In YAML a key with nothing below it is null.
        if execution is None:
            execution = self.data["execution"] = {}
        if isinstance(execution, dict):
            execution.setdefault("num_repetitions", _REPETITIONS)

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(FieldError(path, message, at_key))

    def notice(self, path: KeyPath, message: str) -> None:
        self.notices.append(FieldError(path, message, at_key=True))
