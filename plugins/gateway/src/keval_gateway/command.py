"""`keval gateway`: serves simulated models, or one responder, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import click

from keval.plugin import PluginError
from keval_gateway.address import KEY_VARIABLE, wire_urls
from keval_gateway.chat import Respond
from keval_gateway.responders import RespondersByName, installed_responders, make_responder

__all__ = ["gateway"]


class _NotInstalledError(click.ClickException):
    """Nothing that is installed can answer; shown without the lines on usage."""

    exit_code = 2


@click.command()
@click.option("--simulate", is_flag=True, help="Answer as the simulated models of keval-simulator.")
@click.option("--responder", metavar="NAME", help="Answer with this responder alone, whatever model is asked for.")
@click.option("--port", type=click.IntRange(0, 65535), default=8089, show_default=True, help="0 takes a free port.")
@click.option("--seed", type=int, default=0, show_default=True, help="What the responders are made with.")
@click.option("--latency-ms", type=click.FloatRange(0), default=0.0, help="Send no answer sooner after its request.")
@click.option("--child", is_flag=True, hidden=True, help="Announce the port as JSON; exit when stdin closes.")
def gateway(*, simulate: bool, responder: str | None, port: int, seed: int, latency_ms: float, child: bool) -> None:
    """Serve a model on loopback that speaks the OpenAI, Anthropic and Gemini protocols."""
    if simulate == (responder is not None):
        raise click.UsageError(
            "say what should answer: `keval gateway --simulate` or `keval gateway --responder NAME`, one of the two"
        )
    try:
        respond = make_responder(responder, seed) if responder else RespondersByName(seed)
    except PluginError as error:
        raise _NotInstalledError(str(error)) from error
    # The web server takes a third of a second to import, for which `--help` need not wait.
    import asyncio

    try:
        asyncio.run(_serve(respond, _described(responder), port, latency_ms / 1000, child))
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}; choose another --port") from error


async def _serve(respond: Respond, described: str, port: int, latency: float, child: bool) -> None:
    import asyncio

    from keval_gateway.app import build_app
    from keval_gateway.serving import serve

    token = os.environ.get(KEY_VARIABLE)
    app = build_app(respond, token=token, latency=latency)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM"):
        # Windows' loop has no signal handlers; there Ctrl-C ends asyncio.run instead.
        if os.name != "nt":
            loop.add_signal_handler(getattr(signal, name), stop.set)
    async with serve(app, port) as base:
        if child:
            _on_stdin_closed(lambda: loop.call_soon_threadsafe(stop.set))
            click.echo(f'{{"port": {base.rpartition(":")[2]}}}')
        else:
            click.echo(_welcome(described, base, token))
        await stop.wait()


def _on_stdin_closed(call: Callable[[], object]) -> None:
    """Call back when stdin closes, which it does when the parent ends, even by SIGKILL."""

    def wait() -> None:
        # os.read, not sys.stdin: a thread inside a buffered reader would hang the interpreter's exit.
        while os.read(0, 4096):
            pass
        call()

    threading.Thread(target=wait, daemon=True).start()


def _described(responder: str | None) -> str:
    """Say what answers, and to which names."""
    if responder is not None:
        return f"The responder {responder!r} answers here, whatever model is asked for."
    named = ", ".join(dict.fromkeys(each.name for each in installed_responders()))
    return f"""\
A SIMULATED model answers here: rules, no language model. Measure plumbing with it, not quality.
Any model name is served; these have a responder of their own: {named}."""


def _welcome(described: str, base: str, token: str | None) -> str:
    urls = wire_urls(base)
    key = f"${KEY_VARIABLE}" if token else "any"
    return f"""\
{described}

  OpenAI      export OPENAI_BASE_URL={urls["openai-chat"]} OPENAI_API_KEY={key}
  Anthropic   export ANTHROPIC_BASE_URL={urls["anthropic"]} ANTHROPIC_API_KEY={key}
  Gemini      export GOOGLE_GEMINI_BASE_URL={urls["gemini"]} GEMINI_API_KEY={key}

Ctrl-C ends it."""
