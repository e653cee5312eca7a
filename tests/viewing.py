"""The viewer for tests: served in a thread of this process, and looked at in Chromium or by HTTP."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.applications import Starlette

from keval_loopback import listen
from keval_viewer.app import Serving, build_app, serving
from keval_viewer.pages import VIEW_PAGES

CHROMIUM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian's package `chromium` has it")


@contextmanager
def served(app: Path | Callable[[], Starlette], session: str | None = None, port: int = 0) -> Iterator[Serving]:
    """Serve the runs of a results folder, or an application that is built in the server's thread."""
    ready: list[Serving] = []
    problems: list[BaseException] = []
    begun, ending = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        built = build_app(app, VIEW_PAGES) if isinstance(app, Path) else app()
        async with serving(built, listen(port), session) as running:
            ready.append(running)
            begun.set()
            await ending.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the test
            problems.append(error)
        finally:
            begun.set()
            loop.close()

    thread = threading.Thread(target=run, name="viewer")
    thread.start()
    try:
        begun.wait()
        if ready:
            yield ready[0]
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(ending.set)
        thread.join()
    if problems:
        raise problems[0]


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
    assert [] == [problem for problem in problems if not any(part in problem for part in tolerated)]


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


def too_wide(page: Page) -> bool:
    """Whether a page scrolls sideways."""
    wider: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wider
