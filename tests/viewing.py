"""The viewer for tests: served in a thread of this process, and looked at in Chromium or by HTTP."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from starlette.applications import Starlette

from keval_loopback.loopback import listen
from keval_viewer.app import Serving, build_app, serving
from keval_viewer.pages import VIEW_PAGES

CHROMIUM = shutil.which("chromium")
expect.set_options(timeout=20_000)  # pages take longer on a machine that is busy

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian's package `chromium` has it")


@contextmanager
def served(
    app: Path | Callable[[], AbstractAsyncContextManager[Starlette]], session: str | None = None, port: int = 0
) -> Iterator[Serving]:
    """Serve the runs of a results folder, or an application that is brought up in the server's thread."""
    ready: Future[tuple[Serving, Callable[[], object]]] = Future()

    async def serve() -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        built = nullcontext(build_app(app, VIEW_PAGES)) if isinstance(app, Path) else app()
        async with built as application, serving(application, listen(port), session) as running:
            ready.set_result((running, lambda: loop.call_soon_threadsafe(ending.set)))
            await ending.wait()

    with ThreadPoolExecutor(1, thread_name_prefix="viewer") as threads:
        done = threads.submit(asyncio.run, serve())
        done.add_done_callback(lambda ended: _pass_on(ended, ready))
        running, end = ready.result()
        try:
            yield running
        finally:
            end()
        done.result()


def _pass_on(ended: Future[None], ready: Future[Any]) -> None:
    """Tell a server that ended before it was ready to whoever waits for it."""
    if not ready.done():
        ready.set_exception(ended.exception() or EOFError("the server has ended"))


@contextmanager
def client_of(running: Serving) -> Iterator[httpx2.Client]:
    """A client that was let in, as the browser is that opens the printed URL."""
    with httpx2.Client(base_url=running.base, trust_env=False, follow_redirects=True, timeout=30) as client:
        client.get(running.url()).raise_for_status()
        yield client


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium. It keeps an event loop in this thread: what is run in this process comes before."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield what opens pages: `visit(serving, path, **options)` of a browser context.

    At the end, no error may be on any console, and nothing may have been asked of elsewhere. `expected` is for what a
    test provokes: parts of messages that are none of its problems, such as `503`.
    """
    problems: list[str] = []
    pages: list[Page] = []
    tolerated: list[str] = []

    def visit(running: Serving, path: str = "/", *, expected: Sequence[str] = (), **options: Any) -> Page:
        tolerated.extend(expected)
        page = browser.new_context(**options).new_page()
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda asked: None if _is_own(asked.url, running) else problems.append(asked.url))
        page.goto(running.url())
        page.goto(f"{running.base}{path}")
        pages.append(page)
        return page

    yield visit

    for page in pages:
        page.context.close()
    unexpected = [problem for problem in problems if not any(part in problem for part in tolerated)]
    assert not unexpected, unexpected


def _is_own(url: str, running: Serving) -> bool:
    return url == "data:," or urlsplit(url).netloc == urlsplit(running.base).netloc


def serious(page: Page) -> list[tuple[str, str]]:
    """What axe-core finds on a page that is serious or worse; the page must have been opened with `bypass_csp=True`."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    violations = page.evaluate("axe.run().then((results) => results.violations)")
    return [
        (violation["id"], node["html"][:200])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:3]
    ]


def open_all(page: Page) -> None:
    """Open all that can be opened on a page, with the parts that are fetched when they are opened."""
    every = "for (const each of document.querySelectorAll('main details')) each.open = true"
    page.evaluate(every)
    expect(page.locator(".part")).to_have_count(0)
    page.evaluate(every)


def too_wide(page: Page) -> bool:
    """Whether a page scrolls sideways."""
    wider: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wider
