"""`keval gateway`: serves the simulated model on its own, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import click

from keval_gateway.urls import wire_urls

__all__ = ["gateway"]


@click.command()
@click.option("--simulate", is_flag=True, help="Answer with the simulated model.")
@click.option("--port", type=click.IntRange(0, 65535), default=8089, show_default=True, help="0 takes a free port.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the simulated model.")
@click.option("--latency-ms", type=click.FloatRange(0), default=0.0, help="Send no answer sooner after its request.")
@click.option("--child", is_flag=True, hidden=True, help="Announce the port as JSON; exit when stdin closes.")
def gateway(simulate: bool, port: int, seed: int, latency_ms: float, child: bool) -> None:
    """Serve a model on loopback that speaks the OpenAI, Anthropic and Gemini protocols."""
    if not simulate:
        raise click.UsageError("say what should answer; a simulated model is what there is: keval gateway --simulate")
    # The web server costs a third of a second to import, and this module is imported to list keval's commands.
    import asyncio

    try:
        asyncio.run(_serve(port, seed, latency_ms / 1000, child))
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}; choose another --port") from error


async def _serve(port: int, seed: int, latency: float, child: bool) -> None:
    import asyncio

    from keval_gateway.app import build_app
    from keval_gateway.provider import KEY_VARIABLE
    from keval_gateway.serving import serve
    from keval_gateway.simulate import SimulatedModel, SimulatedModels

    token = os.environ.get(KEY_VARIABLE)
    app = build_app(SimulatedModels(SimulatedModel(seed)), token=token, latency=latency)
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
            click.echo(_welcome(base, token))
        await stop.wait()


def _on_stdin_closed(call: Callable[[], object]) -> None:
    """Call back when stdin closes, which it does when the parent ends, even by SIGKILL."""

    def wait() -> None:
        # os.read, not sys.stdin: a thread inside a buffered reader would hang the interpreter's exit.
        while os.read(0, 4096):
            pass
        call()

    threading.Thread(target=wait, daemon=True).start()


def _welcome(base: str, token: str | None) -> str:
    urls = wire_urls(base)
    key = "$KEVAL_GATEWAY_KEY" if token else "any"
    return f"""\
A SIMULATED model answers here: rules, no language model. Measure plumbing with it, not quality.

  OpenAI      export OPENAI_BASE_URL={urls["openai-chat"]} OPENAI_API_KEY={key}
  Anthropic   export ANTHROPIC_BASE_URL={urls["anthropic"]} ANTHROPIC_API_KEY={key}
  Gemini      export GOOGLE_GEMINI_BASE_URL={urls["gemini"]} GEMINI_API_KEY={key}

Any model name is served; `forgetful` answers each message as if it were the first, `careless` often ignores its tools.
Ctrl-C ends it."""
