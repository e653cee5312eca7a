"""Stored preferences: what earlier conversations taught, read before a run, and written from one that is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from keval import RunError
from keval.plugin import Exported, explained, read_input, replacing, suggestion
from keval_weather.source import MAX_INSIGHTS

if TYPE_CHECKING:
    from keval import Manifest, Run, Trial

FILE_NAME = "preferences.json"
COUNT, INSIGHTS, ARMS = "learned_from_conversations", "insights", "arms"


@attrs.frozen
class StoredPreferences:
    """Preferences that every trial begins with, from the file `store`; if that does not exist yet, there are none.

    `content` is what was read of it: a run's manifest has it, so that the run goes on with what it began with.
    """

    store: Path
    content: Mapping[str, Any] = attrs.field()

    @content.default
    def _read(self) -> Mapping[str, Any]:
        return _read_store(self.store)

    @content.validator
    def _check(self, attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
        if problem := next(_problems(value, arms=True), None):
            raise ValueError(f"'store' must hold preferences; in {self.store}, {problem}")

    def of(self, agent: str, condition: str) -> dict[str, Any]:
        """Return the preferences of an arm: its own, if the store has some, or else those of every arm."""
        arms: Mapping[str, Any] = self.content.get(ARMS, {})
        own = arms.get(f"{agent}/{condition}")
        return dict(own) if own is not None else {key: value for key, value in self.content.items() if key != ARMS}


def _read_store(store: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = json.loads(read_input(store).decode("utf-8-sig"))
    except FileNotFoundError:
        if store.parent.is_dir():
            return {}
        raise ValueError(f"'store' must be in a folder that exists; make {store.parent}") from None
    except OSError as error:
        raise ValueError(f"'store' must be a file that can be read: {error}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"'store' must be JSON; {store}:{error.lineno}:{error.colno}: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"'store' must be JSON; {store}: {error}") from error
    return content


def _problems(content: Any, *, arms: bool = False) -> Iterator[str]:
    """Yield what is wrong with stored preferences; those of one arm have no `arms`."""
    from keval_metrics_weather import KEYS  # only a run with stored preferences needs it

    if not isinstance(content, Mapping):
        yield f"there is {content!r:.60} in place of an object of names and values"
        return
    known = (*KEYS, COUNT, INSIGHTS, *((ARMS,) if arms else ()))
    for key, value in content.items():
        if key not in known:
            yield f"the key {key!r} is unknown{suggestion(key, known, 'known keys')}"
        elif key == ARMS:
            if not isinstance(value, Mapping):
                yield f"{key!r} is an object with preferences by agent/condition, got {value!r:.60}"
                continue
            for arm, own in value.items():
                yield from (f"of the arm {arm!r}, {problem}" for problem in _problems(own))
        elif key == COUNT:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                yield f"{key!r} is a whole number from 0, got {value!r:.60}"
        elif key == INSIGHTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                yield f"{key!r} is a list of texts, got {value!r:.60}"
        elif not isinstance(value, bool):
            yield f"{key!r} is true or false, got {value!r:.60}"


@attrs.frozen
class LearnedPreferences:
    """The exporter `weather/preferences`: what the trials of a run began with and learned, as a file to store."""

    def export(self, run: Run, to: Path) -> Exported:
        """Write `preferences.json`: for each arm what it began with, and over that what its trials learned.

        Trials come in the order of the dataset; those that failed are left out. Raises RunError.
        """
        begun = {arm: _begun(run.manifest, *arm) for arm in _arms(run.manifest)}
        stored: dict[str, Any] = {}
        for each in begun.values():
            stored |= each.content if each is not None else {}
        found = {arm: {} if each is None else each.of(*arm) for arm, each in begun.items()}
        for trial in run.trials():
            if trial.failure is None:
                _learn(found[trial.agent, trial.condition], trial)
        own = {f"{agent}/{condition}": each for (agent, condition), each in found.items() if each}
        if not own:
            raise RunError(f"no trial of {run.path} began with preferences or learned any; there is nothing to store")
        content = {**stored, ARMS: {**stored.get(ARMS, {}), **own}}
        path = to / FILE_NAME
        with explained(to):
            to.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n")
        return Exported((path,))


def _arms(manifest: Manifest) -> Iterator[tuple[str, str]]:
    return ((agent, condition) for agent in manifest.agents for condition in manifest.conditions)


def _begun(manifest: Manifest, agent: str, condition: str) -> StoredPreferences | None:
    """Return what an arm began with, from the config that the manifest keeps."""
    if manifest.agents[agent].recording is not None:
        return None  # no context
    contexts = manifest.config.get("contexts", {})
    for label in manifest.conditions[condition].contexts:
        options = contexts.get(label)
        while isinstance(options, Mapping) and "from" in options:
            options = contexts.get(options["from"])
        preferences = options.get("preferences") if isinstance(options, Mapping) else None
        if isinstance(preferences, Mapping) and isinstance(preferences.get("content"), Mapping):
            # A manifest has `${` as a config writes it.
            content = json.loads(json.dumps(preferences["content"]).replace("$${", "${"))
            return StoredPreferences(Path(str(preferences.get("store"))), content)
    return None


def _learn(known: dict[str, Any], trial: Trial) -> None:
    """Add what one conversation taught."""
    from keval_metrics_weather import preferences_of

    calls = trial.transcript.tool_calls if trial.transcript else ()
    learned = preferences_of({}, calls).learned_now
    for each in learned:
        for key, value in each.items():
            if key != "insight_text":
                known[key] = bool(preferences_of({key: value}).names)
            elif value not in (insights := known.get(INSIGHTS, [])):
                known[INSIGHTS] = [*insights, str(value)][-MAX_INSIGHTS:]
    if learned:
        known[COUNT] = known.get(COUNT, 0) + 1
