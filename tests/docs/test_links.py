"""Every page of the documentation is reachable from its index, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "index.md"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*/*/README.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
]


def text(page: Path) -> str:
    """A page without its code, which may hold brackets and hashes that are no links and no headings."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures within the repository."""
    found = re.findall(r"\]\(\s*([^)\s]+)\)", re.sub(r"\s+", " ", text(page)))
    return [target for target in found if "://" not in target and not target.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead(page: Path, target: str) -> bool:
    """Whether a link of a page leads nowhere."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return not file.exists() or (bool(anchor) and anchor not in anchors(file))


def test_every_link_leads_somewhere() -> None:
    assert [] == [
        f"{page.relative_to(ROOT)}: {target}" for page in PAGES for target in links(page) if dead(page, target)
    ]


def test_every_page_is_reachable_from_the_index() -> None:
    reached, left = {INDEX}, [INDEX]
    while left:
        page = left.pop()
        paths = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
        new = {path for path in paths if path.suffix == ".md" and path not in reached}
        reached |= new
        left += sorted(new)

    wanted = [page for page in PAGES if ".github" not in page.parts]
    assert [] == [str(page.relative_to(ROOT)) for page in wanted if page not in reached]


def test_the_index_itself_names_every_page_of_its_folder_and_every_member() -> None:
    named = {(INDEX.parent / target.partition("#")[0]).resolve() for target in links(INDEX)}
    wanted = [
        *(path for path in (ROOT / "docs").glob("*.md") if path != INDEX),
        *(path.parent / "README.md" for path in ROOT.glob("*/*/pyproject.toml")),
    ]

    assert wanted
    assert [] == [str(path.relative_to(ROOT)) for path in wanted if path not in named]
