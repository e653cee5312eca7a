"""Reading the sections of a config: options, references and labels; every problem at its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from keval.config.evaluation import Budget, Condition, DatasetFile, Evaluation, Execution, Header, PluginSpec
from keval.config.source import KeyPath, Source
from keval.config.structure import options_class, provider_of, read_model, structure, unknown_key
from keval.config.variables import interpolate, written_secrets
from keval.errors import PluginError, Problem, suggestion
from keval.records.interventions import Intervention
from keval.records.models import Price
from keval.seams import registry
from keval.seams.interventions import context_changes
from keval.seams.remedies import remedy

T = TypeVar("T")

SECTIONS = {
    "dataset": "where the questions are",
    "agents": "the systems under test, by label",
    "contexts": "what agents may be given: MCP servers and bundles, by label",
    "conditions": "the arms to compare, by label; the first is the baseline; without any there is one, `baseline`",
    "metrics": "scorers that need no model: names, or name: {options}",
    "judges": "models that grade, by label",
    "rubrics": "what judges grade by: names, or name: {options}",
    "middleware": "what stands between agents or judges and their models: names, or name: {options}",
    "plugins": "hook plugins to load: names, or name: {options}",
    "execution": "how often, how parallel, how patient",
    "budget": "what a run may use up",
    "prices": "what models cost, by provider/name, in US dollars per million tokens",
    "providers": "options of the providers of models, by their names",
}
NOUNS = {"agents": "agent", "contexts": "context", "judges": "judge"}
"""The sections that map labels to plugins, and what one of each is called."""

_CHANGES = attrs.fields_dict(Intervention)
"""The keys by which an entry of `contexts:` changes its context."""
_ONLY = "baseline"
"""The label of the only condition of an evaluation that lists none."""
_LABEL = re.compile(r"\w[\w.+-]*(?: [\w.+-]+)*(?: \((?:[\w.+-]+@)?[0-9a-f]+\))?")  # at a commit, as --against has it


class SectionReader:
    """Collects problems while the sections are read."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        self.lacks: dict[str, Problem] = {}

    def evaluation(self) -> Evaluation:
        data = self.source.data
        added = self._added(data, (*attrs.fields_dict(Header), *SECTIONS))
        headers = {key: data[key] for key in attrs.fields_dict(Header) if key in data}
        header = self._record(Header, headers, ()) or Header()
        if "dataset" not in data:
            self._lack("dataset", "{path: questions.jsonl}")
        dataset = self._dataset(data["dataset"]) if "dataset" in data else None
        execution = self._execution(data.get("execution"))
        budget = self._record(Budget, data.get("budget"), ("budget",))
        prices, providers = self._prices(), self._providers()
        # A misspelled key is reported as unknown already; that `agents` is missing would be the same mistake again.
        spoiled = bool(self.problems)
        agents, judges = self._named("agents"), self._named("judges")
        contexts, conditions = self._contexts(), self._conditions()
        metrics, rubrics = self._listed("metrics"), self._listed("rubrics")
        middleware, plugins = self._listed("middleware"), self._listed("plugins")
        if not agents and "agents" not in data and not spoiled:
            self._lack("agents", "{label: {type: …, model: provider/name}}")
        self._check_reference(("baseline",), "condition", header.baseline, [*self._labels("conditions"), *conditions])
        added += self._added(data.get("execution"), attrs.fields_dict(Execution), ("execution",))
        evaluation = Evaluation(
            self.source,
            header,
            dataset,
            agents,
            contexts,
            conditions,
            metrics,
            judges,
            rubrics,
            middleware,
            plugins,
            execution or Execution(),
            budget or Budget(),
            prices,
            providers,
            tuple(added),
        )
        for section in added:
            if check := getattr(section, "check_config", None):
                self.problems.extend(check(evaluation))
        return evaluation

    def _lack(self, section: str, example: str) -> None:
        self._problem((), f"the key {section!r} is missing; add `{section}: {example}`")
        self.lacks[section] = self.problems[-1]

    def _execution(self, data: Any) -> Execution | None:
        """Read the section. An executor's options keep their variables until it is built, as those of any plugin."""
        if not isinstance(data, dict):
            return self._record(Execution, data, ("execution",))
        data = {key: value for key, value in data.items() if key in attrs.fields_dict(Execution)}
        chosen = data.get("executor")
        if not isinstance(chosen, dict):
            return self._record(Execution, data, ("execution",))
        path = ("execution", "executor")
        execution = self._record(Execution, {key: value for key, value in data.items() if key != "executor"}, path[:1])
        if not isinstance(chosen.get("type"), str):
            self._problem(path, "add `type:` with the name of an executor")
            return execution
        self._check_secrets(chosen, path)
        # The name has to be known to find the plugin, long before its options are filled in.
        filled = {**chosen, "type": self._filled(chosen["type"], (*path, "type"))}
        return attrs.evolve(execution, executor=filled) if execution else None

    def _dataset(self, data: Any) -> DatasetFile | None:
        """Read the section; keys that are not keval's own are options of the reader of the file's format."""
        file = self._record(DatasetFile, data, ("dataset",))
        known = [field.name for field in attrs.fields(DatasetFile) if field.name != "options"]
        extra = [key for key in data if key not in known] if isinstance(data, dict) else []
        reader = options_class("keval.datasets", file.format) if extra and file else None
        own = [field.name for field in attrs.fields(reader) if field.init] if reader else []
        for key in extra:
            if key not in own:
                self._problem(("dataset", key), unknown_key(key, [*known, *own]), at_key=True)
        options = {key: data[key] for key in extra if key in own}
        if reader and self._record(reader, options, ("dataset",)) is None:
            return None  # what is read otherwise would not be what is meant
        return attrs.evolve(file, options=options) if file else None

    def _added(self, data: Any, known: Iterable[str], path: KeyPath = ()) -> list[Any]:
        """Read the keys of a mapping that packages add, and report those that nobody knows."""
        offered = {component.name: component for component in registry.components("keval.sections")}
        prefix = "".join(f"{step}." for step in path)
        classes: dict[type, dict[str, Any]] = {}
        for key in data if isinstance(data, dict) else ():
            name = f"{prefix}{key}"
            if key in known:
                continue
            if name in offered:
                try:
                    classes.setdefault(registry.load(offered[name]), {})[key] = data[key]
                except PluginError as error:
                    self._problem((*path, key), str(error), at_key=True)
                continue
            from keval.seams.installation import missing_package, package_of  # only who needs a remedy waits for it

            read = registry.has("keval.formats", key)
            if package := package_of("keval.sections", name) or (not read and package_of("keval.formats", key)):
                self._problem((*path, key), f"the key {key!r} {missing_package(package)}", at_key=True)
            else:
                beside = [each.removeprefix(prefix) for each in offered if each.startswith(prefix)]
                others = [each for each in beside if "." not in each]
                misplaced = not path and (key in attrs.fields_dict(Execution) or f"execution.{key}" in offered)
                told = f"unknown key {key!r}; it belongs under `execution:`" if misplaced else ""
                told = told or unknown_key(key, [*known, *others], data)
                self._problem((*path, key), told, at_key=True)
        records: list[Any] = [self._record(cls, given, path) for cls, given in classes.items()]
        return [record for record in records if record is not None]

    def _record(self, cls: type[T], data: Any, path: KeyPath) -> T | None:
        record, errors = structure(cls, data, path, self.source.base)
        self.problems += self.source.problems(errors)
        return record

    def _named(self, section: str) -> tuple[PluginSpec, ...]:
        """Read a section that maps labels to options."""
        entries = self.source.data.get(section)
        if entries is None and section not in self.source.data:
            return ()
        noun = NOUNS[section]
        if not isinstance(entries, dict) or (not entries and section == "agents"):
            self._unfit((section,), f"a mapping of labels to options, such as `{noun}_label: {{type: …}}`", entries)
            return ()
        specs = []
        for label, options in entries.items():
            path = (section, label)
            if not self._is_label(label, path):
                continue
            if options is not None and not isinstance(options, dict):
                self._unfit(path, "a mapping of options", options)
            elif section == "contexts" and "from" in (options or {}):
                # Its type and options are known once `keval.interventions` has followed `from`.
                self._check_secrets(options or {}, path)
                specs.append(PluginSpec(label, "", path=path, changes=options or {}))
            elif not isinstance(name := (options or {}).get("type", label), str):
                self._unfit((*path, "type"), "the name of a plugin", name)
            else:
                implied = section == "judges" and "type" not in (options or {}) and implies_judge(label, options or {})
                kind = implied_judge(options or {}) if implied else self._filled(name, (*path, "type"))
                specs.append(self._spec(section, label, kind, options or {}, implied=implied))
        return tuple(specs)

    def _contexts(self) -> tuple[PluginSpec, ...]:
        """Read the contexts, and what their entries change, which another package does."""
        specs = self._named("contexts")
        if not any(spec.changes for spec in specs):
            return specs
        try:
            specs, wrong = context_changes().read(self.source, specs)
            self.problems += self.source.problems(wrong)
        except PluginError as error:
            self._problem(next(spec.path for spec in specs if spec.changes), str(error), at_key=True)
            specs = tuple(spec for spec in specs if spec.base is None)
        return specs

    def _listed(self, section: str) -> tuple[PluginSpec, ...]:
        """Read a section that lists names, or name: {options}."""
        entries = self.source.data.get(section)
        if entries is None:
            return ()
        if not isinstance(entries, list):
            self._unfit((section,), "a list of names, or of `name: {options}`", entries)
            return ()
        specs: dict[str, PluginSpec] = {}
        for index, entry in enumerate(entries):
            path: KeyPath = (section, index)
            name, options = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else (entry, None)
            name = self._filled(name, path) if isinstance(name, str) else name
            if not isinstance(name, str) or not isinstance(options, dict | None):
                self._unfit(path, "a name, or one `name: {options}`", entry)
            elif (label := registry.label("", name)) in specs:
                self._problem(path, f"{label!r} is listed twice; keep one")
            else:
                self._check_secrets(options or {}, (*path, *entry))
                specs[label] = PluginSpec(label, name, options or {}, path if options is None else (*path, *entry))
        return tuple(specs.values())

    def _conditions(self) -> dict[str, Condition]:
        contexts = self._labels("contexts")
        if "conditions" not in self.source.data and not contexts:
            return {_ONLY: Condition()}
        data = self.source.data.get("conditions")
        if not isinstance(data, dict) or not data:
            path: KeyPath = ("conditions",) if "conditions" in self.source.data else ()
            if data:
                self._unfit(path, "a mapping of labels to conditions, such as `baseline: {}`", data)
                return {}
            use = "".join(f", with_{name}: {{contexts: [{name}]}}" for name in contexts[:1])
            self._problem(path, f"no conditions; add at least one, such as `conditions: {{{_ONLY}: {{}}{use}}}`")
            self.lacks["conditions"] = self.problems[-1]
            return {}
        conditions: dict[str, Condition] = {}
        for label, entry in data.items():
            path = ("conditions", label)
            condition = self._record(Condition, entry, path) if self._is_label(label, path) else None
            if condition is None:
                continue
            conditions[label] = condition
            for required in ("require_mcp_tool_use", "require_mcp_tool_success"):
                if getattr(condition, required) and not condition.contexts:
                    problem = f"{label!r} has no context and so no tools; add a context, or remove this key"
                    self._problem((*path, required), problem, at_key=True)
            for index, name in enumerate(condition.contexts):
                self._check_reference((*path, "contexts", index), "context", name, contexts)
                if name in condition.contexts[:index]:
                    self._problem((*path, "contexts", index), f"{name!r} is listed twice; keep one")
        return conditions

    def _prices(self) -> dict[str, Price]:
        """Read the prices of models, by `provider/name`; one whose source is not given has the source `config`."""
        prices: dict[str, Price] = {}
        example = "models to prices, such as `openai/gpt-4o-mini: {input: 0.15, output: 0.6}`"
        for model, entry in self._mapping("prices", example).items():
            try:
                name = str(read_model(model))
            except ValueError as error:
                self._problem(("prices", model), str(error), at_key=True)
                continue
            written = {"source": "config", **entry} if isinstance(entry, dict) else entry
            if (price := self._record(Price, written, ("prices", model))) is not None:
                prices[name] = price
        return prices

    def _providers(self) -> dict[str, Any]:
        """Read the options of providers of models, and return those providers by name."""
        providers: dict[str, Any] = {}
        for name, options in self._mapping("providers", "providers to options, such as `azure: {}`").items():
            path = ("providers", name)
            try:
                registry.find("keval.models", name)
                if (cls := options_class("keval.models", name)) is None:
                    raise PluginError(f"the model provider {name!r} takes no options")
                self._check_secrets(options if isinstance(options, dict) else {}, path)
                providers[name] = self._record(cls, options, path)
            except PluginError as error:
                self._problem(path, str(error), at_key=True)
        return providers

    def _mapping(self, section: str, example: str) -> Mapping[str, Any]:
        data = self.source.data.get(section)
        if isinstance(data, dict | None):
            return data or {}
        self._unfit((section,), f"a mapping of {example}", data)
        return {}

    def _is_label(self, label: str, path: KeyPath) -> bool:
        """Return whether a key can be a label; if not, report it."""
        if _LABEL.fullmatch(label):
            return True
        self._problem(path, f"a label is letters, digits, single spaces and _.+- only, got {label!r}", at_key=True)
        return False

    def _labels(self, section: str) -> list[str]:
        """Return the labels of a section, also of wrong entries, so that references to them are not reported."""
        entries = self.source.data.get(section)
        return list(entries) if isinstance(entries, dict) else []

    def _check_reference(self, path: KeyPath, noun: str, name: str | None, labels: Sequence[str]) -> None:
        if name is not None and name not in labels:
            self._problem(path, f"no {noun} named {name!r}{suggestion(name, labels, f'{noun}s')}")

    def _spec(
        self, section: str, label: str, kind: str, options: Mapping[str, Any], *, implied: bool = False
    ) -> PluginSpec:
        path: KeyPath = (section, label)
        given = {key: value for key, value in options.items() if key != "type"}
        about = given.pop("characteristics", None) if section == "agents" else None
        if not isinstance(about, dict | str | None):
            self._problem((*path, "characteristics"), "expected a mapping, or the name of an agent that ships one")
            about = None
        self._check_secrets(given, path)
        changes = {key: given[key] for key in given if key in _CHANGES} if section == "contexts" else {}
        if changes:  # a plugin whose own options have a name of a change keeps it
            plugin = options_class("keval.contexts", kind)
            own = [field.name for field in attrs.fields(plugin) if field.init] if plugin else ()
            changes = {key: each for key, each in changes.items() if key not in own}
            given = {key: each for key, each in given.items() if key not in changes}
        return PluginSpec(label, kind, given, path, implied, about, changes=changes)

    def _check_secrets(self, options: Mapping[Any, Any], path: KeyPath) -> None:
        for at, problem in written_secrets(options, path):
            self._problem(at, f"{problem}; what stands here is in every copy of this file")

    def _filled(self, text: str, path: KeyPath) -> str:
        """Fill in the variables of a plugin's name; a file in it is relative to the config."""
        filled, unset = interpolate(text, path)
        self.problems += self.source.problems(unset)
        return (self.source.base / filled).as_posix() if registry.IN_FILE.fullmatch(filled) else str(filled)

    def _unfit(self, path: KeyPath, expected: str, given: Any) -> None:
        self._problem(path, f"expected {expected}{remedy('entries', path, given)}")

    def _problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(self.source.problem(path, message, at_key=at_key))


def implies_judge(label: str, options: Mapping[str, Any]) -> bool:
    """Return whether a labelled judge is chosen by its model: it names one, and its label is not a judge's name."""
    named = any(label == component.name for component in registry.components("keval.judges"))
    return not named and isinstance(options.get("model"), str)


def implied_judge(options: Mapping[str, Any]) -> str:
    """Return the name of the judge for the model of these options, by the `providers` that judges list.

    If no judge lists the model's provider, return the provider's name, so that the error can say what to install.
    """
    # A variable that is not set is reported when the judge itself is constructed.
    filled, _ = interpolate(options.get("model"), ())
    name, slash, rest = str(filled).partition("/")
    provider = name if slash else provider_of(name)
    # A judge for this provider goes before one for all providers, and one for the only protocol of the model, too.
    for wanted in (provider, _only_wire(name, rest), "*"):
        for component in registry.components("keval.judges"):
            try:
                judge = registry.load(component)
            except PluginError:  # a broken judge breaks only the runs that name it
                continue
            if wanted is not None and wanted in getattr(judge, "providers", ()):
                return component.name
    return provider or name


def _only_wire(provider: str, name: str) -> str | None:
    """Return the protocol of a model that speaks one alone, where its provider says so: Claude, on clouds."""
    try:
        (wire,) = registry.load(registry.find("keval.models", provider)).wires_of(name)
    except (PluginError, AttributeError, ValueError):
        return None
    return str(wire)
