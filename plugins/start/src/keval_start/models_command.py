"""`keval models`: the providers of models, and whether a model can be used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import click

from keval.cli.config_argument import read_config
from keval.cli.console import print_json, safe
from keval.cli.messages import foreign, redactor
from keval.cli.options import json_option
from keval.cli.session import run_to_end
from keval.config.structure import read_model
from keval.errors import ConfigError, PluginError, PreflightError, TrialError
from keval.execute.models.exchange import learn_keys
from keval.execute.models.prices import looked_up, priced_providers
from keval.records.models import Endpoint, Model, Wire
from keval.seams import registry
from keval.seams.infrastructure import ModelProvider
from keval_clients import quoted
from keval_report.terminal.console import data_console, print_sections
from keval_report.words import padded

_QUESTION = "Reply with the one word: yes"
_MESSAGES = [{"role": "user", "content": _QUESTION}]
_ASKED: Mapping[Wire, tuple[str, Mapping[str, Any]]] = {
    "openai-chat": ("/chat/completions", {"messages": _MESSAGES}),
    "openai-responses": ("/responses", {"input": _QUESTION}),
    "anthropic": ("/v1/messages", {"messages": _MESSAGES, "max_tokens": 16}),
}
"""How a model is asked for a word, by its protocol."""
_PATIENCE = 60
"""Seconds for the word."""
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

    `key_set` is the first of `key_variables` that is set, or names a file with `_FILE`. `ways` are those of signing in
    without a key. `prices` says whether a price table knows some of its models.
    """

    name: str
    package: str
    wires: tuple[str, ...]
    url: str | None
    key_variables: tuple[str, ...]
    key_set: str | None
    key_optional: bool
    ways: tuple[str, ...]
    prices: bool

    @property
    def key(self) -> str:
        """Say which variable has the key."""
        if self.key_set is not None:
            return f"{self.key_set} is set"
        if not (self.key_variables or self.ways):
            return "no key needed"
        if self.key_optional:
            return "no key is set, and none may be needed"
        key = f"{self.key_variables[0]} is not set" if self.key_variables else ""
        ways = f"{' or '.join(self.ways)} may sign in" if self.ways else ""
        return "; ".join(filter(None, (key, ways)))


def listed_providers(priced: Collection[str] = ()) -> list[ListedProvider]:
    """Describe every provider of models that can be made, without opening any; `priced` are those with prices."""
    found = []
    for component in registry.components("keval.models"):
        try:
            provider = registry.load(component)()
        except Exception:  # noqa: BLE001, S112 - `validate --live` tells of one that cannot be made
            continue
        found.append(_listed(component, provider, priced))
    return found


def _listed(component: registry.Component, provider: ModelProvider, priced: Collection[str] = ()) -> ListedProvider:
    # The seam asks for `open` alone; a provider that tells more of itself is listed with that.
    urls = getattr(provider, "urls", {})
    variables = (*getattr(provider, "key_variables", ()), *getattr(provider, "token_variables", ()))
    places = [name for variable in variables for name in (variable, f"{variable}_FILE")]
    return ListedProvider(
        component.name,
        f"{component.distribution} {component.version}",
        tuple(getattr(provider, "wires", urls)),
        _shown(next(iter(urls.values()), None)),
        variables,
        next((name for name in places if os.environ.get(name)), None),
        getattr(provider, "key_optional", False),
        tuple(way.name for way in getattr(provider, "ways", ())),
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


async def examine(name: str, providers: Mapping[str, ModelProvider], *, ask: bool) -> AsyncIterator[Finding]:
    """Say of a model whether it can be used, and if not, why; `providers` are those with options in a config.

    The model is asked for one word if it is to `ask`.
    """
    try:
        model = read_model(name)
        component = registry.find("keval.models", model.provider)
        provider = providers.get(model.provider) or registry.load(component)()
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
            learn_keys(redactor(), endpoints.values())
            yield Finding("access", True, f"by {endpoint.login}" if endpoint.login else about.key)
            yield Finding("wires", True, ", ".join(f"{wire} at {_shown(url)}" for wire, url in endpoint.urls.items()))
            if ask:
                yield await _tried(model, endpoint)
            if endpoint.simulated:
                return
    except PreflightError as error:
        for problem in error.problems:
            yield Finding("access", False, problem)
    price = looked_up([str(model)]).get(str(model))
    if price is not None:
        found = f"${price.input:g} per million tokens of input, ${price.output:g} of output ({price.source})"
        yield Finding("price", True, found)
    else:
        entry = f"prices: {{{model}: {{input: …, output: …}}}}"
        yield Finding("price", None, "unknown, so is what a run costs", f"a config may name it: `{entry}`")


async def _tried(model: Model, endpoint: Endpoint) -> Finding:
    """Ask a model for one word."""
    wire = next((wire for wire in _ASKED if wire in endpoint.urls), None)
    if wire is None:
        return Finding("reply", None, f"{model} cannot be asked from here: it speaks {', '.join(endpoint.urls)}")
    from keval_clients import anthropic_client, openai_client  # the vendor's SDK takes half a second

    path, question = _ASKED[wire]
    client = (anthropic_client if wire == "anthropic" else openai_client)(endpoint.urls[wire], endpoint)
    try:
        async with asyncio.timeout(_PATIENCE):
            reply = await client.post(path, {"model": endpoint.model, **question}, {})
    except (TrialError, TimeoutError) as error:
        return Finding("reply", False, str(error) or f"there is none after {_PATIENCE} s")
    finally:
        await client.aclose()
    said = _said(reply.get("choices") or reply.get("output") or reply.get("content"))
    return Finding("reply", True, quoted(said.strip() or "it has no text"))


def _said(part: object) -> str:
    """Return the text in a part of a reply, of any protocol."""
    match part:
        case str():
            return part
        case list():
            return "".join(map(_said, part))
        case {"message": inner} | {"content": inner} | {"text": inner}:
            return _said(inner)
    return ""


@click.command("models")
@click.argument("model", required=False)
@click.option("--ask", is_flag=True, help="Ask MODEL for one word, which costs a few tokens.")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A config whose options of `providers:` to use."
)
@json_option
def command(*, model: str | None, ask: bool, config: Path | None, as_json: bool) -> None:
    """List the providers of models: keys, protocols, prices, base URLs and packages.

    With MODEL, such as openrouter/some-model, say how keval signs in there and whether it can be used, and if not, why.
    It is asked only with --ask. The name of a provider lists that one.
    """
    chosen = any(component.name == model for component in registry.components("keval.models"))
    if ask and (model is None or chosen):
        raise click.UsageError("--ask needs MODEL, such as openai/gpt-4o-mini")
    if model is not None and not chosen:
        made: Mapping[str, ModelProvider] = {}
        if config is not None:
            evaluation = read_config(config)
            if evaluation.problems:
                raise ConfigError(evaluation.problems)
            made = evaluation.providers
        tell_findings(examine(model, made, ask=ask), as_json=as_json)
        return
    providers = [each for each in listed_providers(priced_providers()) if not chosen or each.name == model]
    print_json([attrs.asdict(provider) for provider in providers]) if as_json else _print(providers)
