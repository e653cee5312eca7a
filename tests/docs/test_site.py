"""The documentation as a site: built strictly, and looked at in Chromium."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Literal

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Page, expect

from keval.seams.registry import GROUPS, offered
from tests.viewing import chromium, needs_chromium

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="the group docs is installed apart"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Tell nothing of requests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-d",
        str(folder),
    ]  # `--quiet` would hide warnings from it

    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == built.returncode, built.stderr
    return folder


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


def test_every_page_says_something_and_can_be_found(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for entry in index["docs"]:
        page = entry["location"].partition("#")[0]
        found[page] = found.get(page, "") + entry["text"]

    pages = [str(file.parent.relative_to(site)) for file in site.rglob("index.html") if "files" not in file.parts]
    assert [] == [page for page in pages if len(found["" if page == "." else f"{page}/"]) < 50]
    assert "paired" in found["statistics/"]


def test_markdown_is_shown_as_a_code_host_shows_it(site: Path) -> None:
    """Lists, code in lists and tables are where Markdown's dialects differ."""
    dialect = MarkdownIt("commonmark").enable("table")
    for source in sorted(site.rglob("*.md")):
        folder = source.parent if source.name in ("index.md", "README.md") else source.with_suffix("")
        shown = (folder / "index.html").read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        wanted = dialect.render(re.sub(r"\A---\n.*?\n---\n", "", source.read_text(encoding="utf-8"), flags=re.DOTALL))

        for tag in ("h2", "li", "ol", "pre", "tr"):
            found = [len(re.findall(rf"<{tag}\b", html)) for html in (wanted, shown)]
            assert found[0] == found[1], f"{source.relative_to(site)}: {tag}"


def test_llms_txt_leads_to_pages(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    targets = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)

    assert re.match(r"# keval\n\n> \S", text)
    assert ["Start", "Tutorials", "How-to", "Reference", "Explanation", "Plugins", "Optional"] == re.findall(
        r"^## (.+)$", text, re.MULTILINE
    )
    assert len(targets) == len([line for line in text.splitlines() if line.startswith("- ")])
    assert [] == [each for each in targets if not (site / each / ("index.html" if each.endswith("/") else "")).exists()]


def test_the_skill_is_served_as_it_is(site: Path) -> None:
    skill = Path("skill", "keval", "SKILL.md")

    assert (ROOT / "docs" / skill).read_bytes() == (site / skill).read_bytes()


def test_the_gallery_has_every_plugin_that_is_installed(site: Path) -> None:
    page = (site / "plugins" / "gallery.md").read_text(encoding="utf-8")

    plugins = [each for group in GROUPS for each in offered(group) if each.distribution != "keval-doubles"]
    assert plugins
    assert [] == [each.name for each in plugins if f"### {each.name}\n" not in page and f"`{each.name}`" not in page]
    assert "| `target` | `Path` | required |\n| `model` | `Model | None` | `None` |" in page


def test_the_reference_has_what_commands_options_and_docstrings_say(site: Path) -> None:
    commands = (site / "reference" / "commands.md").read_text(encoding="utf-8")
    keys = (site / "reference" / "config.md").read_text(encoding="utf-8")
    names = (site / "reference" / "python" / "keval-plugin-agents" / "index.html").read_text(encoding="utf-8")
    statements = (site / "statements" / "index.html").read_text(encoding="utf-8")

    assert "| `--budget NAME=N` | Begin nothing more when `tokens`, `trials` or `usd`" in commands
    assert "| `retry.max_attempts` | whole number ≥ 1 | `3` |" in keys
    assert "<td><code>interim</code></td>" in statements
    assert all(f'id="keval.seams.{name}"' in names for name in ("interfaces.Agent.run", "contexts.Provision"))


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_asks_no_other_host_and_takes_its_colours_from_the_system(
    url: str, page: Page, scheme: Literal["light", "dark"]
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(color_scheme=scheme)

    for path in ("", "tutorials/agents/", "plugins/gallery/", "reference/python/keval-plugin-agents/"):
        page.goto(url + path)
        page.wait_for_load_state("networkidle")

    assert [] == [each for each in asked if not each.startswith(url)]
    assert page.locator("body").get_attribute("data-md-color-scheme") == {"light": "default", "dark": "slate"}[scheme]


@needs_chromium
def test_a_search_finds_the_page_about_a_word(url: str, page: Page) -> None:
    page.goto(f"{url}?q=ablate")

    expect(page.locator(".md-search-result__item").first).to_contain_text("ablate")


@needs_chromium
@pytest.mark.parametrize("path", ["", "tutorials/agents/", "reference/commands/", "plugins/gallery/"])
def test_a_page_fits_a_phone(url: str, page: Page, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(url + path)

    assert 390 == page.evaluate("document.documentElement.scrollWidth")
