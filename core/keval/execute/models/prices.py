"""Pricing: what the models of a run cost, found once when the run begins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import PluginError, PluginWarning, PreflightError
from keval.plan.plan import ResolvedPlugin
from keval.records.manifest import Manifest
from keval.records.models import Endpoint, Price
from keval.seams import registry
from keval.seams.infrastructure import PriceTable


def find_prices(
    evaluation: Evaluation,
    askers: Collection[ResolvedPlugin],
    endpoints: Mapping[str, Endpoint],
    before: Manifest | None = None,
) -> dict[str, Price]:
    """Return the prices of the models of agents and judges, as far as they are known, by `provider/name`.

    A price is that of the config, else what the manifest of the run `before` has, else what the first of the installed
    price tables knows. The run's agents count, too. Simulated models have no price.

    Raises PreflightError: the budget, or a limit of trials, is in US dollars, and a price is unknown. Recorded answers
    cost nothing again.
    """
    paid = [_Paid.of(item) for item in askers if not is_simulated(item, endpoints)]
    if before:
        paid += _Paid.before(before, besides={item.label for item in askers if item.component.group == "keval.agents"})
    models = dict.fromkeys(model for each in paid for model in each.models)
    known = {**(before.prices if before else {}), **{m: p for m, p in evaluation.prices.items() if m in models}}
    prices = {**known, **looked_up([model for model in models if model not in known])}
    if evaluation.budget.usd is None:
        # Without such a budget, only a limit of trials needs prices, and only agents have trials.
        limits = evaluation.execution.limits
        bounds = limits is not None and limits.cost is not None
        paid = [each for each in paid if each.is_agent and bounds]
    if problems := dict.fromkeys(_unknown(paid, prices)):
        raise PreflightError(problems)
    return prices


def is_simulated(item: ResolvedPlugin, endpoints: Mapping[str, Endpoint]) -> bool:
    """Return whether a model of an agent or judge is simulated."""
    return any((model.endpoint or endpoints[str(model)]).simulated for model in item.models.values())


@attrs.frozen
class _Paid:
    """An agent or judge whose models are not simulated: its place in the config, what it is called, its models."""

    place: str
    name: str
    models: tuple[str, ...]
    recorded: bool
    is_agent: bool = True

    @classmethod
    def of(cls, item: ResolvedPlugin) -> _Paid:
        place = f"{item.place}: " if item.place else ""
        name = f"the {item.component.kind} {item.label!r}"
        return cls(place, name, item.model_names, item.prerecorded is not None, item.component.group == "keval.agents")

    @classmethod
    def before(cls, manifest: Manifest, besides: Collection[str]) -> list[_Paid]:
        """Return the other agents of a run: what their trials cost counts if it is scored again."""
        return [
            cls(
                f"{manifest.run}: ",
                f"the agent {label!r}",
                (entry.model,) if entry.model else (),
                entry.recording is not None,
            )
            for label, entry in manifest.agents.items()
            if not entry.simulated and label not in besides
        ]


def _unknown(paid: Iterable[_Paid], prices: Mapping[str, Price]) -> Iterator[str]:
    """Yield why a budget in US dollars cannot be kept."""
    for each in (each for each in paid if not each.recorded):
        if not each.models:
            yield f"{each.place}{each.name} names no model, so what it costs is unknown; bound tokens and not usd"
        for model in each.models:
            if model not in prices:
                entry = f"`prices: {{{model}: {{input: …, output: …}}}}` (US dollars per million tokens)"
                yield f"{each.place}the price of {model} is unknown; add {entry}, or bound tokens and not usd"


def looked_up(models: Sequence[str]) -> dict[str, Price]:
    """Ask the installed price tables what models cost."""
    found: dict[str, Price] = {}

    def ask(component: registry.Component) -> None:
        table = _table(component)
        for model in models:
            price = None if model in found else table.price(model)
            if isinstance(price, Price):
                found[model] = price
            elif price is not None:
                raise PluginError(f"{component.target} returned {price!r:.60} in place of a keval.plugin.Price")

    if models:
        _ask_tables(ask)
    return found


def priced_providers() -> set[str]:
    """Return the providers of whose models the installed price tables say that they know some prices."""
    found: set[str] = set()
    _ask_tables(lambda component: found.update(getattr(_table(component), "providers", ())))
    return found


def _ask_tables(ask: Callable[[registry.Component], None]) -> None:
    """Ask every price table. One that fails is left out with a warning: prices change no result."""
    for component in registry.components("keval.prices"):
        try:
            ask(component)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            owner = f"{component.distribution} {component.version}"
            told = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
            warnings.warn(f"the price table {component.name!r} of {owner} failed: {told}", PluginWarning, stacklevel=3)


def _table(component: registry.Component) -> PriceTable:
    target = registry.load(component)
    table = target() if isinstance(target, type) else target
    if not isinstance(table, PriceTable):
        raise PluginError(f"{component.target} is no {component.kind}: it has no method price()")
    return table
