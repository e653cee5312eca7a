"""`keval models`: the providers of models, and whether a model can be used."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from urllib.parse import urlsplit

import attrs
import click

from keval.cli.console import print_json, safe
from keval.cli.messages import foreign
from keval.cli.options import json_option
from keval.cli.session import run_to_end
from keval.config.structure import provider_of
from keval.errors import PluginError, PreflightError
from keval.execute.models.prices import looked_up, priced_providers
from keval.records.models import Model
from keval.seams import registry
from keval.seams.infrastructure import ModelProvider
from keval_report.terminal.console import data_console, print_sections
from keval_report.words import padded

_MARKS = {True: "ok", False: "FAULT", None: "-"}


@attrs.frozen
class Finding:
    """What was looked at, whether it is well, what was found, and what to do if it is not well.

    `well` is `None` where it depends on what is to be run.
    """

    about: str
    well: bool | None
    found: str
    remedy: str = ""


def tell_findings(examined: AsyncIterator[Finding], *, as_json: bool) -> None:
    """Print findings when all are there, and end the command with code 2 if anything is at fault."""

    async def collected() -> list[Finding]:
        return [finding async for finding in examined]

    found = run_to_end(collected())
    if as_json:
        print_json([attrs.asdict(finding) for finding in found])
    else:
        for finding in found:
            click.echo(foreign(f"{_MARKS[finding.well]:<5}  {finding.about:<8}  {finding.found}"))
            if not finding.well and finding.remedy:
                click.echo(foreign(f"{'':<17}{finding.remedy}"))
    if any(finding.well is False for finding in found):
        raise SystemExit(2)


@attrs.frozen
class ListedProvider:
    """A provider of models as it is listed. Keys themselves are never shown.

    `key_set` is the first of `key_variables` that is set. `prices` says whether a price table knows some of its models.
    """

    name: str
    package: str
    wires: tuple[str, ...]
    url: str | None
    key_variables: tuple[str, ...]
    key_set: str | None
    key_optional: bool
    prices: bool

    @property
    def key(self) -> str:
        """Say which variable has the key."""
        if self.key_set is not None:
            return f"{self.key_set} is set"
        if not self.key_variables:
            return "no key needed"
        if self.key_optional:
            return "no key is set, and none may be needed"
        return f"{self.key_variables[0]} is not set"


def made_providers() -> Iterator[tuple[registry.Component, ModelProvider]]:
    """Yield every provider of models that can be made."""
    for component in registry.components("keval.models"):
        try:
            provider = registry.load(component)()
        except Exception:  # noqa: BLE001, S112 - the doctor tells of one that cannot be made, and so does its run
            continue
        yield component, provider


def listed_providers(priced: Collection[str] = ()) -> list[ListedProvider]:
    """Describe every provider of models that can be made, without opening any; `priced` are those with prices."""
    return [_listed(component, provider, priced) for component, provider in made_providers()]


def _listed(component: registry.Component, provider: ModelProvider, priced: Collection[str] = ()) -> ListedProvider:
    # The seam asks for `open` alone; a provider that tells more of itself is listed with that.
    urls = getattr(provider, "urls", {})
    variables = tuple(getattr(provider, "key_variables", ()))
    return ListedProvider(
        component.name,
        f"{component.distribution} {component.version}",
        tuple(getattr(provider, "wires", urls)),
        _shown(next(iter(urls.values()), None)),
        variables,
        next((variable for variable in variables if os.environ.get(variable)), None),
        getattr(provider, "key_optional", False),
        component.name in priced,
    )


def _shown(url: str | None) -> str | None:
    """Return a base URL without what may be a secret: a user, a password, a query."""
    if url is None:
        return None
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _print(providers: Sequence[ListedProvider]) -> None:
    """Print providers, one a line, by the package that ships them."""
    rows = [
        (each.name, each.key, ", ".join(each.wires), "prices known" if each.prices else "", each.url or "")
        for each in providers
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sections = {
        package: [
            safe(package, "bold"),
            *(
                safe("  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())
                for row, each in zip(rows, providers, strict=True)
                if each.package == package
            ),
        ]
        for package in dict.fromkeys(each.package for each in providers)
    }
    print_sections(sections.values(), data_console())


async def examine(name: str) -> AsyncIterator[Finding]:
    """Say of a model whether it can be used, and if not, why. The model is not asked."""
    # A name alone may belong to a vendor's family, such as `gpt-…`.
    vendor = None if "/" in name else provider_of(name)
    try:
        model = Model.parse(f"{vendor}/{name}" if vendor else name)
        component = registry.find("keval.models", model.provider)
        provider = registry.load(component)()
    except ValueError as error:
        yield Finding("provider", False, str(error), "`keval models` lists the providers")
        return
    except PluginError as error:
        yield Finding("provider", False, str(error), "`keval models` lists those that are installed")
        return
    about = _listed(component, provider)
    yield Finding("provider", True, f"{component.name} comes with {about.package}")
    try:
        async with provider.open([model.name], 0) as endpoints:
            endpoint = endpoints[model.name]
    except PreflightError as error:
        for problem in error.problems:
            yield Finding("access", False, problem)
    else:
        yield Finding("access", True, about.key)
        yield Finding("wires", True, ", ".join(f"{wire} at {_shown(url)}" for wire, url in endpoint.urls.items()))
        if endpoint.simulated:
            return
    price = looked_up([str(model)]).get(str(model))
    if price is not None:
        found = f"${price.input:g} per million tokens of input, ${price.output:g} of output ({price.source})"
        yield Finding("price", True, found)
    else:
        entry = f"prices: {{{model}: {{input: …, output: …}}}}"
        yield Finding("price", None, "unknown, so is what a run costs", f"a config may name it: `{entry}`")


@click.command("models")
@click.argument("model", required=False)
@json_option
def command(*, model: str | None, as_json: bool) -> None:
    """List the providers of models: keys, protocols, prices, base URLs and packages.

    With MODEL, such as openrouter/some-model, say whether it can be used, and if not, why. It is not asked. The name of
    a provider lists that one.
    """
    chosen = any(component.name == model for component in registry.components("keval.models"))
    if model is not None and not chosen:
        tell_findings(examine(model), as_json=as_json)
        return
    providers = [each for each in listed_providers(priced_providers()) if not chosen or each.name == model]
    print_json([attrs.asdict(provider) for provider in providers]) if as_json else _print(providers)
