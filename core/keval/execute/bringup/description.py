"""Describing a run: the manifest of a plan that is up, and what its servers offer."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation, PluginSpec
from keval.config.load import effective
from keval.config.secrets import secret_variables
from keval.config.variables import SECRET_OPTION, literal, variable, variables_in
from keval.errors import PreflightError
from keval.execute.bringup.preflight import Ready
from keval.execute.bringup.servers import OpenedContext
from keval.execute.models.prices import is_simulated
from keval.plan.plan import Arm, Plan, ResolvedPlugin, Scorers
from keval.records.manifest import (
    AgentEntry,
    ConditionEntry,
    DatasetEntry,
    JudgeEntry,
    Manifest,
    Ratings,
    ReplayEntry,
    ScorerEntry,
    SelectionEntry,
    ServerEntry,
    ServerStartsEntry,
)
from keval.records.models import Endpoint, Price
from keval.records.scores import Rubric
from keval.records.servers import ServerListing, ToolListing
from keval.records.transcript import Blob
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.interfaces import AgentChecker, FreezesOptions, MadeOfFiles
from keval.seams.registry import Component
from keval.seams.workspaces import Tasks, WorksInFolder
from keval.store.scores import ScoringSpec
from keval.store.serialization import to_plain


def server_entries(contexts: Iterable[OpenedContext], redact: Redactor) -> dict[str, ServerEntry]:
    """Describe the servers of a condition, by name."""
    return {
        listing.server: _entry(listing, context, redact) for context in contexts for listing in context.tool_listings
    }


def describe_starts(
    plan: Plan, ready: Ready, before: Sequence[ServerStartsEntry] = ()
) -> tuple[ServerStartsEntry, ...]:
    """Describe the processes of servers that were started until now, and `before` of a run that goes on."""
    found = {(entry.condition, entry.server): entry for entry in before}
    for condition, contexts in ready.contexts.items():
        for name, server in ((name, each) for context in contexts for name, each in context.servers.items()):
            starts, sharing = server.starts, server.tool_listing.sharing
            if not starts.processes:
                continue
            # Only a server that trials do not share is started for each of them.
            planned = plan.trials_of_arm if sharing is not None and not sharing.shared else 0
            had = found.get((condition, name)) or ServerStartsEntry(condition, name)
            found[condition, name] = attrs.evolve(
                had,
                planned=planned,
                processes=had.processes + starts.processes,
                seconds=round(had.seconds + starts.seconds, 3),
            )
    return tuple(found.values())


def kept_blobs(ready: Ready, tasks: Tasks | None, redact: Redactor) -> list[Blob]:
    """Return what all servers say of themselves, before and after interventions, and the texts of contexts."""
    tool_listings = [listing for condition in ready.contexts for listing in ready.tool_listings(condition)]
    said = [blob for listing in tool_listings for blob in _blobs(listing, redact) if blob is not None]
    return [*said, *(tasks.text_blobs(redact.data) if tasks is not None else ())]


def check_tool_listings(manifest: Manifest, ready: Ready) -> None:
    """Raise PreflightError if a server lists other tools than its manifest does."""
    for condition, entry in manifest.conditions.items():
        for listing in ready.tool_listings(condition):
            expected = entry.servers.get(listing.server)
            if expected is not None and expected.sha256 != listing.digest:
                raise PreflightError(
                    f"condition {condition!r}: the tools of the server {listing.server!r} differ"
                    f" from those in the manifest of {manifest.run}; use the same version of the server"
                )


def _entry(listing: ToolListing, context: OpenedContext, redact: Redactor) -> ServerEntry:
    offered, original = _blobs(listing, redact)
    return ServerEntry(
        tools=tuple(redact.data(listing.tools)),
        sha256=listing.digest,
        listing=offered.sha256 if offered else None,
        interventions=tuple(redact.data(each.as_config()) for each in context.interventions),
        original_sha256=listing.original_digest,
        original_listing=original.sha256 if original else None,
        aliases=redact.data(dict(context.aliases.get(listing.server, {}))),
        shared=listing.sharing.shared if listing.sharing else None,
        sharing=redact.text(listing.sharing.why) if listing.sharing else None,
        isolation_verified=listing.sharing.verified if listing.sharing else None,
        answers=context.answers.get(listing.server),
        protocol=listing.protocol,
    )


def _blobs(listing: ToolListing, redact: Redactor) -> tuple[Blob | None, Blob | None]:
    offered, original = ServerListing.offered(listing), ServerListing.original(listing)
    return (offered.blob(redact.content) if offered else None, original.blob(redact.content) if original else None)


@attrs.frozen
class RunDescriber:
    """Describes runs in their manifests. Variables stand as `${VAR}`, so that no manifest holds a secret.

    `rubrics` are those that judges grade by, by digest, `ratings` what metrics say of agents whatever they answer, and
    `prices` those of models, as `find_prices` returns them.
    """

    evaluation: Evaluation
    scorers: Scorers
    endpoints: Mapping[str, Endpoint]
    spec: ScoringSpec
    rubrics: Mapping[str, Rubric]
    ratings: Ratings
    prices: Mapping[str, Price]
    redact: Redactor

    def begun(self, plan: Plan, ready: Ready, run_id: str, started: datetime) -> Manifest:
        """Describe a run that begins."""
        evaluation, header, dataset = self.evaluation, self.evaluation.header, plan.dataset
        components = plan.components()
        config = _frozen(effective(evaluation), plan.contexts.values())
        secret = {name for _, name in secret_variables(evaluation.source.data)}
        manifest = Manifest(
            run=run_id,
            evaluation=evaluation.name,
            started=started.isoformat(timespec="seconds"),
            seed=evaluation.execution.seed,
            baseline=evaluation.baseline,
            neutral=header.neutral,
            failed=header.failed,
            unscored=header.unscored,
            config=config,
            config_file=evaluation.source.name,
            config_folder=str(evaluation.source.base),
            selection=SelectionEntry(evaluation.limit, evaluation.sample_ids),
            dataset=DatasetEntry(
                str(dataset.path),
                dataset.digest,
                len(plan.samples),
                evaluation.dataset.cluster_key if evaluation.dataset else None,
                dataset.checks,
                dataset.workspaces,
            ),
            trials=plan.trial_count,
            agents={item.label: self._agent(item) for item in plan.agents},
            conditions={arm.label: self._condition(arm, plan, ready) for arm in plan.arms},
            judges=self._judges(),
            rubrics=self._rubrics(),
            scorers=self._scorers(),
            plugins=_plugins(components),
            versions={"python": platform.python_version(), **_versions(components)},
            # `None` where a default stands in for a variable.
            variables={name: variable(name) for name in sorted({*variables_in(config)} - secret)},
            prices=self.prices,
        )
        return _with_simulated(manifest)

    def scored_again(self, manifest: Manifest) -> Manifest:
        """Return the manifest with the scorers, their versions and the prices of models added."""
        # By scorer, so that a scorer that scores again keeps its place in the order.
        entries = {entry.scorer: entry for entry in (*manifest.scorers, *self._scorers())}
        components, judges = self.scorers.components(), self._judges()
        changed = attrs.evolve(
            manifest,
            config=_config_with(manifest.config, effective(self.evaluation)),
            judges={**manifest.judges, **judges},
            replay=manifest.replay and _graded_again(manifest.replay, judges),
            rubrics={**manifest.rubrics, **self._rubrics()},
            scorers=tuple(entries.values()),
            plugins={**manifest.plugins, **_plugins(components)},
            versions={**manifest.versions, **_versions(components)},
            prices=self.prices,
        )
        return _with_simulated(changed)

    def _agent(self, item: ResolvedPlugin) -> AgentEntry:
        return AgentEntry(
            type=item.component.name,
            model=item.model_name,
            simulated=is_simulated(item, self.endpoints),
            characteristics=self.redact.data(dict(item.characteristics)),
            recording=item.prerecorded.digest if item.prerecorded else None,
            # so that a run does not go on with another function or program of the same name
            files=_digests(item.plugin.own_files(), self.evaluation.source.base)
            if isinstance(item.plugin, MadeOfFiles)
            else {},
            conventions=item.plugin.conventions() if isinstance(item.plugin, WorksInFolder) else None,
        )

    def _condition(self, arm: Arm, plan: Plan, ready: Ready) -> ConditionEntry:
        redact, tasks = self.redact.data, plan.tasks
        return ConditionEntry(
            contexts=arm.contexts,
            servers=server_entries(ready.contexts[arm.label], self.redact),
            require_mcp_tool_use=arm.condition.require_mcp_tool_use,
            require_mcp_tool_success=arm.condition.require_mcp_tool_success,
            on_missing_tool_use=arm.condition.on_missing_tool_use,
            texts=tasks.describe_texts(arm.label, redact) if tasks is not None else {},
            workspace=redact(dict(tasks.describe(arm.label))) if tasks is not None else {},
        )

    def _judges(self) -> dict[str, JudgeEntry]:
        """Describe judges by their options as written, so that no variable's value is among them."""
        specs = {spec.label: spec for spec in self.evaluation.judges}
        return {
            item.label: JudgeEntry(
                type=item.component.name,
                implied=item.label in specs and specs[item.label].implied,
                model=item.model_name,
                simulated=is_simulated(item, self.endpoints),
                **self._options(item, specs),
            )
            for item in self.scorers.judges
        }

    def _rubrics(self) -> dict[str, Rubric]:
        redact = self.redact.text
        return {
            digest: attrs.evolve(
                rubric,
                name=redact(rubric.name),
                instructions=redact(rubric.instructions),
                levels={level: redact(text) for level, text in rubric.levels.items()},
            )
            for digest, rubric in self.rubrics.items()
        }

    def _scorers(self) -> tuple[ScorerEntry, ...]:
        metrics = {item.label: item for item in self.scorers.metrics}
        specs = {each.label: each for each in self.evaluation.metrics}
        digests = {rubric.name: digest for digest, rubric in self.rubrics.items()}
        entries = []
        for (metric, judge), scale in self.scorers.scales().items():
            own: dict[str, Any] = {"rubric": digests[metric]} if judge else self._metric(metrics[metric], specs)
            entries.append(
                ScorerEntry(
                    metric=metric,
                    judge=judge,
                    scale=scale,
                    repetitions=self.spec.repetitions[metric, judge],
                    digest=self.spec.digests[metric, judge],
                    of_agent=metric in metrics and isinstance(metrics[metric].plugin, AgentChecker),
                    **own,
                )
            )
        return tuple(entries)

    def _metric(self, item: ResolvedPlugin, specs: Mapping[str, PluginSpec]) -> dict[str, Any]:
        """Return what a manifest has of a metric alone."""
        category = getattr(type(item.plugin), "category", None)
        ratings = self.ratings.get(item.label, {}).items()
        return {
            **self._options(item, specs),
            "category": category if isinstance(category, str) else None,
            "ratings": {
                agent: attrs.evolve(each, derivation=self.redact.text(each.derivation)) for agent, each in ratings
            },
        }

    def _options(self, item: ResolvedPlugin, specs: Mapping[str, PluginSpec]) -> dict[str, dict[str, Any]]:
        """Return the options of a plugin as written, and the values of those that the config left to the plugin."""
        written = dict(specs[item.label].options) if item.label in specs else {}
        fields = attrs.fields(type(item.plugin)) if attrs.has(type(item.plugin)) else ()
        left = {
            field.name: getattr(item.plugin, field.name)
            for field in fields
            # `repr=False` marks what is not shown, such as a key.
            if field.init and field.repr and field.name not in written and not SECRET_OPTION.fullmatch(field.name)
        }
        shown = {name: value for name, value in left.items() if not name.startswith("_") and _is_plain(value)}
        return {"options": written, "defaults": self.redact.data(to_plain(shown))}


def _frozen(config: dict[str, Any], contexts: Iterable[ResolvedPlugin]) -> dict[str, Any]:
    """Return a config with what contexts have read of files that may change."""
    read = {
        item.label: literal(item.plugin.frozen_options())
        for item in contexts
        # A context that derives from another one has the same plugin.
        if item.origin is None and isinstance(item.plugin, FreezesOptions)
    }
    return _joined(config, {"contexts": read}) if any(read.values()) else config


def _joined(written: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    joined = {
        key: _joined(written[key], value) if isinstance(written.get(key), dict) and isinstance(value, dict) else value
        for key, value in read.items()
    }
    return {**written, **joined}


def _graded_again(replay: ReplayEntry, judges: Iterable[str]) -> ReplayEntry:
    """Return what is said of a replay whose answers are graded again: the judges' models are asked for that."""
    told = (f"judge {label}: graded again after the replay" for label in judges)
    return attrs.evolve(replay, changes=tuple(dict.fromkeys((*replay.changes, *told))))


def _config_with(config: Mapping[str, Any], scoring: Mapping[str, Any]) -> dict[str, Any]:
    """Add the scorers that score a run again to its config, so that they are found the next time, and the gates."""
    kept = dict(config)
    if judges := {**config.get("judges", {}), **scoring.get("judges", {})}:
        kept["judges"] = judges
    for section in ("metrics", "rubrics"):
        every = (*config.get(section, ()), *scoring.get(section, ()))
        listed = {next(iter(each)) if isinstance(each, dict) else str(each): each for each in every}
        vendors = {name for name in listed if "/" not in name}
        entries = [
            entry
            for name, entry in listed.items()
            # If its vendor is listed, a scorer needs no entry of its own, unless it has options.
            if isinstance(entry, dict) or name in vendors or name.partition("/")[0] not in vendors
        ]
        if entries:
            kept[section] = entries
    if "gates" in scoring:
        kept["gates"] = scoring["gates"]
    return kept


def _digests(files: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, as far as they can be read: by name, or by path if several have one name."""
    found = [path for path in files if path.is_file()]
    names = [path.name for path in found]
    by_name = {path.name if names.count(path.name) == 1 else os.path.relpath(path, folder): path for path in found}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in by_name.items()}


def _is_plain(value: Any) -> bool:
    """Return whether a value is data that JSON holds, and so no path, model or object of the plugin's own."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _with_simulated(manifest: Manifest) -> Manifest:
    """Add which models of agents and judges are simulated."""
    agents = {agent.model for agent in manifest.agents.values() if agent.simulated}
    judges = {judge.model for judge in manifest.judges.values() if judge.simulated}
    return attrs.evolve(manifest, simulated=tuple(sorted(model for model in agents | judges if model)))


def _plugins(components: Iterable[Component]) -> dict[str, str]:
    # In a manifest the core is `keval`, as in its `versions`: runs of before it was keval-core can then be resumed.
    owners = ((each, each.distribution.replace("keval-core", "keval")) for each in components)
    return {f"{each.group}:{each.name}": f"{owner} {each.version}" for each, owner in owners}


def _versions(components: Iterable[Component]) -> dict[str, str]:
    return registry.versions(component.distribution for component in components)
