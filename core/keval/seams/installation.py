"""How keval was installed, and the line that installs another package in the same way.

Nothing here is read while all is well: only messages about something missing, `keval init` and `keval new` ask.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit
from urllib.request import url2pathname

import attrs

CORE = "keval-core"
"""The distribution that this package is."""
PRODUCT = "keval"
"""The distribution that brings the core and the plugins that everybody wants."""

Manager: TypeAlias = Literal["uv tool", "uvx", "pipx", "uv workspace", "uv project", "uv pip", "pip"]
"""What made the environment, and so adds packages to it. `uv workspace` is keval's own repository."""


@cache
def _packages() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("packages.toml").read_text(encoding="utf-8"))


def package_of(group: str, name: str) -> str | None:
    """Return the package of keval that ships the plugin of this name, if one does."""
    vendor = name.partition("/")[0]
    return next((package for package, shipped in _packages().items() if vendor in shipped.get(group, ())), None)


def missing_package(package: str) -> str:
    """Return what to say of a package that something comes with, and that is not installed."""
    return f"comes with {package}, which is not installed: `{Installation.here_and_now().line(package)}`"


def missing_command(name: str) -> str | None:
    """Return what follows the name of a command that a package of keval ships, and that is not installed."""
    package = package_of("keval.commands", name)
    return package and f"; it comes with {package}: `{Installation.here_and_now().line(package)}`"


def missing_option(option: str) -> str:
    """Return what to say of an option that a package of keval adds to commands, and that is not installed."""
    package = next((each for each, shipped in _packages().items() if option in shipped.get("options", ())), None)
    return f"The option '{option}' {missing_package(package)}" if package else ""


def missing_module(package: str) -> str:
    """Return what to say of a library that is needed, and that is not installed."""
    return f"{package}: `{Installation.here_and_now().line(package)}`"


@attrs.frozen
class Origin:
    """Where keval came from.

    `place` is the path of a folder with keval's repository, the URL of that repository, or the path of a folder with
    wheels; an index has none. Of a URL, `commit` is what was installed, and `revision` what was asked for, if anything.
    """

    kind: Literal["index", "folder", "git", "wheels"] = "index"
    place: str = ""
    revision: str = ""
    commit: str = ""
    editable: bool = False

    @classmethod
    def of(cls, found: Distribution) -> Origin:
        """Return where a distribution of keval came from, as its `direct_url.json` (PEP 610) tells."""
        told = json.loads(found.read_text("direct_url.json") or "{}")
        url = urlsplit(told.get("url", ""))
        if "vcs_info" in told:
            vcs = told["vcs_info"]
            return cls("git", url.geturl(), vcs.get("requested_revision", ""), vcs["commit_id"])
        if url.scheme != "file":
            return cls()
        path = Path(url2pathname(url.path))
        # An archive: a wheel, beside which those of the other packages lie.
        if "dir_info" not in told:
            return cls("wheels", str(path.parent))
        inner = Path(_packages()[found.name]["folder"]).parts
        root = path.parents[len(inner) - 1] if inner else path
        return cls("folder", str(root), editable=bool(told["dir_info"].get("editable")))

    def requirement(self, package: str) -> str:
        """Return what an installer is given for a package; one that is not keval's comes from an index."""
        name, bracket, extras = package.partition("[")
        shipped = _packages().get(name)
        if shipped is None or self.kind in ("index", "wheels"):
            return package
        if self.kind == "folder":
            return f"{Path(self.place, shipped['folder'])}{bracket}{extras}"
        return _git_requirement(package, self.place, self.revision, shipped["folder"])

    @property
    def options(self) -> Sequence[str]:
        """The options that an installer needs to find keval's packages."""
        return ("--find-links", self.place) if self.kind == "wheels" else ()

    def tool(self, main: str = PRODUCT, others: Iterable[str] = ()) -> Sequence[str]:
        """Return the command that installs keval as a tool of uv, with further requirements."""
        editable = ("--editable",) if self.editable else ()
        return ("uv", "tool", "install", *self.options, *editable, self.requirement(main), *_with(others))


@attrs.frozen
class Installation:
    """An installed keval: its `main` distribution, where that came from, and the environment that it is in.

    `installer` is the program that installed it, `here` the folder in which the user stands.
    """

    main: str
    origin: Origin
    installer: str
    prefix: Path
    python: str
    here: Path
    environ: Mapping[str, str] = attrs.field(repr=False)

    @classmethod
    def here_and_now(cls) -> Installation:
        """Return the keval that is running."""
        try:
            found = Distribution.from_name(PRODUCT)
        except PackageNotFoundError:
            found = Distribution.from_name(CORE)
        installer = (found.read_text("INSTALLER") or "pip").strip()
        prefix = Path(sys.prefix)
        return cls(found.name, Origin.of(found), installer, prefix, sys.executable, Path.cwd(), os.environ)

    @property
    def manager(self) -> Manager:
        """What adds packages to the environment."""
        if (self.prefix / "uv-receipt.toml").is_file():
            return "uv tool"
        if (self.prefix / "pipx_metadata.json").is_file():
            return "pipx"
        if self.prefix.parent.name.startswith(("archive-v", "environments-v")):  # of uv's cache
            return "uvx"
        lock = self.prefix.parent / "uv.lock"
        if lock.is_file() and f'name = "{CORE}"' in lock.read_text(encoding="utf-8"):
            return "uv workspace" if self.origin.place == str(self.prefix.parent) else "uv project"
        # What lies in a repository requires its neighbours there, which pip does not find.
        return "uv pip" if self.installer == "uv" or self.origin.kind in ("folder", "git") else "pip"

    def line(self, *packages: str, editable: str | None = None) -> str:
        """Return the command line that installs packages beside keval, or the project in the folder `editable`."""
        wanted = [self.origin.requirement(package) for package in packages]
        project = () if editable is None else ("--editable", editable)
        match self.manager:
            case "uv tool":
                # `uv tool install` replaces what the tool has: the line names again all that was installed with it.
                main, others = self._receipt()
                command = (*self.origin.tool(main), *others, *_with(wanted), *_with(project[1:], "--with-editable"))
            case "uvx":
                command = (*self._uvx(), *_with(wanted), *_with(project[1:], "--with-editable"), "keval")
            case "pipx":
                command = ("pipx", "inject", *project, self.prefix.name, *wanted)
            case "uv workspace" if not project and all(each in _packages() for each in packages):
                command = ("uv", "sync", "--inexact", *(word for each in packages for word in ("--package", each)))
            case "uv workspace" | "uv pip":
                command = ("uv", "pip", "install", *self._target(), *self.origin.options, *wanted, *project)
            case "uv project":
                command = ("uv", "add", *self.origin.options, *(wanted or project))
                if wanted and project:  # the option is for all that one command adds
                    return f"{shlex.join(command)} && {shlex.join(['uv', 'add', *self.origin.options, *project])}"
            case _:
                # A `pip` on PATH may be that of another environment.
                beside = shutil.which("pip", path=self.environ.get("PATH"))
                here = beside is not None and Path(beside).parent == Path(self.python).parent
                pip = ("pip",) if here else (self.python, "-m", "pip")
                command = (*pip, "install", *self.origin.options, *wanted, *project)
        return shlex.join(command)

    def call(self, folder: Path, program: str = "keval") -> str:
        """Return how the user calls keval in a folder, or another program that is installed beside it."""
        if self.manager == "uvx":
            return shlex.join([*self._uvx(), program])
        # `uv run` sets this for what it starts.
        if not self.environ.get("UV_RUN_RECURSION_DEPTH") or self.environ.get("VIRTUAL_ENV") != str(self.prefix):
            return program
        project = self.prefix.parent
        elsewhere = [] if folder.is_relative_to(project) else ["--project", str(project)]
        return shlex.join(["uv", "run", *elsewhere, program])

    def _uvx(self) -> Sequence[str]:
        return ("uvx", *self.origin.options, "--from", self.origin.requirement(self.main))

    def _target(self) -> Sequence[str]:
        """Return the options by which `uv pip` finds the environment, where it does not by itself."""
        found = self.environ.get("VIRTUAL_ENV") or str(self.here / ".venv")
        return () if found == str(self.prefix) else ("--python", self.python)

    def _receipt(self) -> tuple[str, Sequence[str]]:
        """Return the main package of a tool of uv, with its extras, and the options for what was installed with it."""
        receipt = tomllib.loads((self.prefix / "uv-receipt.toml").read_text(encoding="utf-8"))
        main, others = self.main, []
        for each in receipt["tool"]["requirements"]:
            name = each["name"] + (f"[{','.join(each['extras'])}]" if each.get("extras") else "")
            if each["name"] == self.main:
                main = name
            elif "editable" in each:
                others += ["--with-editable", each["editable"]]
            elif "git" in each:
                url, _, query = each["git"].partition("?")
                asked = dict(parse_qsl(query))
                found = _git_requirement(name, url, asked.get("rev", ""), asked.get("subdirectory", "."))
                others += ["--with", found]
            else:
                place = each.get("directory") or each.get("path") or each.get("url")
                others += ["--with", place or f"{name}{each.get('specifier', '')}"]
        return main, others


def _git_requirement(package: str, url: str, revision: str, folder: str) -> str:
    asked = f"@{revision}" if revision else ""
    inner = "" if folder == "." else f"#subdirectory={folder}"
    return f"{package} @ git+{url}{asked}{inner}"


def _with(requirements: Iterable[str], option: str = "--with") -> Sequence[str]:
    return [word for each in requirements for word in (option, each)]
