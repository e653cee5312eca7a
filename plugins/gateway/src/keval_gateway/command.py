"""`keval gateway`: serves simulated models, or one responder, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import shlex
from typing import NamedTuple

import click

from keval.errors import PluginError
from keval_gateway.chat import KEY_VARIABLE, wire_urls
from keval_gateway.responders import RespondersByName, installed_responders, make_responder
from keval_loopback.loopback import listen


class _Key(NamedTuple):
    """The API key that is admitted, or `None` for any, and what a shell reads it from."""

    value: str | None
    told: str


class _BadInputError(click.ClickException):
    """Nothing that is installed can answer; shown without the lines on usage."""

    exit_code = 2


@click.command()
@click.option("--simulate", is_flag=True, help="Answer as the simulated models of keval-simulator.")
@click.option("--responder", metavar="NAME", help="Answer with this responder alone, whatever model is asked for.")
@click.option("--port", type=click.IntRange(0, 65535), default=8089, show_default=True, help="0 takes a free port.")
@click.option("--seed", type=int, default=0, show_default=True, help="What the responders are made with.")
@click.option(
    "--pause-ms",
    type=click.FloatRange(0),
    default=25.0,
    show_default=True,
    envvar="KEVAL_GATEWAY_PAUSE_MS",
    help="Between the events of an answer that somebody watches as it is written.",
)
@click.option("--token", metavar="KEY", help=f"The only API key to admit.  [default: {KEY_VARIABLE}, or a random one]")
@click.option("--no-token", is_flag=True, help="Admit any API key: any program on this machine may ask.")
@click.option("--child", is_flag=True, hidden=True, help="Announce the port as JSON; exit when stdin closes.")
def gateway(
    *,
    simulate: bool,
    responder: str | None,
    port: int,
    seed: int,
    pause_ms: float,
    token: str | None,
    no_token: bool,
    child: bool,
) -> None:
    """Serve a model on loopback that speaks the OpenAI, Anthropic and Gemini protocols."""
    if token is not None and no_token:
        raise click.UsageError("say --token or --no-token, one of the two")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise click.UsageError("a token goes through HTTP headers: write letters, digits and signs of ASCII")
    if simulate == (responder is not None):
        raise click.UsageError(
            "say what should answer: `keval gateway --simulate` or `keval gateway --responder NAME`, one of the two"
        )
    try:
        respond = make_responder(responder, seed) if responder else RespondersByName(seed)
    except PluginError as error:
        raise _BadInputError(str(error)) from error
    key = _key(token, no_token)
    # The web server takes a third of a second to import, for which `--help` need not wait.
    import asyncio

    async def serve() -> None:
        from keval_gateway.app import build_app
        from keval_loopback.serving import serving_until_ended

        app = build_app(respond, token=key.value, pause=pause_ms / 1000)
        async with serving_until_ended(app, listener, child=child) as base:
            if not child:
                click.echo(_welcome(_described(responder), base, key))

    try:
        listener = listen(port)
        asyncio.run(serve())
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}; choose another --port") from error


def _key(token: str | None, no_token: bool) -> _Key:
    """Choose the key: what the command says, else the environment, else a random one."""
    if no_token:
        return _Key(None, "any")
    if token is None and (given := os.environ.get(KEY_VARIABLE)):
        return _Key(given, f"${KEY_VARIABLE}")
    chosen = token or secrets.token_urlsafe(24)
    return _Key(chosen, shlex.quote(chosen))


def _described(responder: str | None) -> str:
    """Say what answers, and to which names."""
    if responder is not None:
        return f"The responder {responder!r} answers here, whatever model is asked for."
    named = ", ".join(dict.fromkeys(each.name for each in installed_responders()))
    return f"""\
A SIMULATED model answers here: rules, no language model. Measure plumbing with it, not quality.
Any model name is served; these have a responder of their own: {named}."""


def _welcome(described: str, base: str, chosen: _Key) -> str:
    urls, key = wire_urls(base), chosen.told
    return f"""\
{described}

  OpenAI      export OPENAI_BASE_URL={urls["openai-chat"]} OPENAI_API_KEY={key}
  Anthropic   export ANTHROPIC_BASE_URL={urls["anthropic"]} ANTHROPIC_API_KEY={key}
  Gemini      export GOOGLE_GEMINI_BASE_URL={urls["gemini"]} GEMINI_API_KEY={key}

Ctrl-C ends it."""
