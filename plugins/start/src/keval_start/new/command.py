"""The command `keval new`."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path

import attrs
import click
from jinja2 import Environment, PackageLoader, StrictUndefined

from keval.cli.messages import tell
from keval.plugin import ConfigError, Problem, explained
from keval.seams.installation import Installation


@attrs.frozen
class _Kind:
    """A kind of plugin: its entry-point group, how a run uses one, and what its package and its tests need besides."""

    group: str
    use: str
    needs: tuple[str, ...] = ()
    test_needs: tuple[str, ...] = ()


KINDS: Mapping[str, _Kind] = {
    "metric": _Kind("keval.metrics", "keval run eval.yaml --metric {plugin}"),
    "agent": _Kind(
        "keval.agents",
        "keval run eval.yaml  # with `agents: {{mine: {{type: {plugin}}}}}`",
        (),
        ("keval-mcp",),
    ),
    "judge": _Kind(
        "keval.judges",
        "keval run eval.yaml  # with `judges: {{mine: {{type: {plugin}, model: openai/gpt-4o-mini}}}}`",
        ("keval-clients",),
    ),
    "context": _Kind("keval.contexts", "keval run eval.yaml  # with `contexts: {{mine: {{type: {plugin}}}}}`"),
    "exporter": _Kind("keval.exporters", "keval export latest --format {plugin}"),
    "hook": _Kind("keval", "keval run eval.yaml -p {plugin}"),
}

_NAME = re.compile(r"(?P<vendor>[a-z][a-z0-9]*)[-/](?P<thing>[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)")


@attrs.frozen
class Package:
    """The package of one plugin. `vendor` and `thing` are lower-case words; those of `thing` are joined by `_`."""

    kind: str
    vendor: str
    thing: str

    @classmethod
    def of(cls, kind: str, name: str) -> Package:
        """Return the package of a plugin named `vendor/thing` or `vendor-thing`.

        Raises:
            ConfigError: that is no name, or one that is in use.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            told = "a name is a vendor and a thing in lower case, such as acme/brevity or acme-brevity"
            raise ConfigError([Problem(f"NAME {name!r}", told)])
        package = cls(kind, match["vendor"], match["thing"].replace("-", "_"))
        if problem := package._clash():
            raise ConfigError([Problem(f"NAME {name!r}", problem)])
        return package

    @property
    def plugin(self) -> str:
        """The name in a config."""
        return f"{self.vendor}/{self.thing}"

    @property
    def module(self) -> str:
        """The name by which Python imports it."""
        return f"{self.vendor}_{self.thing}"

    @property
    def distribution(self) -> str:
        """The name by which it is installed."""
        return self.module.replace("_", "-")

    @property
    def class_name(self) -> str:
        """The name of the plugin's class."""
        return "".join(word.capitalize() for word in self.module.split("_"))

    @property
    def use(self) -> str:
        """The command that uses it."""
        return KINDS[self.kind].use.format(plugin=self.plugin)

    def commands(self, folder: Path, installation: Installation) -> Sequence[str]:
        """Return the commands that install it beside keval, test it, and use it."""
        place = str(folder) if folder.is_absolute() else f"./{folder}"
        needed = ("keval-testing", *KINDS[self.kind].needs, *KINDS[self.kind].test_needs)
        if installation.manager in ("pip", "uv pip", "uv project"):
            test = installation.call(folder, "pytest")
            return (installation.line(*needed, editable=f"{place}[test]"), f"{test} {shlex.quote(place)}", self.use)
        alone = ["uv", "run", "--no-project", *installation.origin.options]
        for each in needed:
            alone += ["--with", installation.origin.requirement(each)]
        test = shlex.join([*alone, "--with-editable", f"{place}[test]", "pytest", place])
        return (test, installation.line(editable=place), self.use)

    def files(self) -> Mapping[str, str]:
        """Return the content of each file, by its path in the package's folder."""
        templates = Environment(
            loader=PackageLoader("keval_start.new"),
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            autoescape=False,  # noqa: S701 - it writes Python and TOML, and no HTML
        )
        names = {"pyproject.toml": "pyproject.toml", "README.md": "README.md", "__init__.py": f"{self.kind}.py"}
        names["test.py"] = f"test_{self.kind}.py"
        made = {
            to: templates.get_template(f"{name}.j2").render(
                package=self,
                kind=KINDS[self.kind],
                keval=_range(version("keval-core")),
            )
            for to, name in names.items()
        }
        source = f"src/{self.module}"
        return {
            "pyproject.toml": made["pyproject.toml"],
            "README.md": made["README.md"],
            f"{source}/__init__.py": made["__init__.py"],
            f"{source}/py.typed": "",
            f"tests/test_{self.thing}.py": made["test.py"],
        }

    def write(self, folder: Path) -> list[Path]:
        """Write all files, or none, and return their paths.

        Raises:
            ConfigError: the folder is there already.
            RunError: it cannot be written.
        """
        if folder.exists():
            raise ConfigError([Problem(str(folder), "it exists already; give another folder with --to, or remove it")])
        with explained(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Beside the folder, as a rename works on one disk only.
            made = Path(tempfile.mkdtemp(prefix=".keval-new-", dir=folder.parent))
            try:
                files = self.files()
                for name, text in files.items():
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    (made / name).write_text(text, encoding="utf-8")
                # `mkdtemp` lets nobody else in.
                made.chmod(0o755)
                made.rename(folder)
            except BaseException:
                shutil.rmtree(made)
                raise
        return [folder / name for name in files]

    def _clash(self) -> str | None:
        """Return what else has one of its names, and what to do."""
        group = KINDS[self.kind].group
        for point in entry_points(group=group, name=self.plugin):
            owner = point.dist.name if point.dist else "another package"
            return f"{owner} has a {self.kind} of this name already; choose another name, or uninstall it"
        if find_spec(self.module) is not None:
            return f"Python has a module {self.module} already; choose another name, or uninstall it"
        return None


def _range(installed: str) -> str:
    """Return the versions of keval that the package is for: those of the installed minor version."""
    major, minor, *_ = installed.split(".")
    return f">={major}.{minor},<{major}.{int(minor) + 1}"


@click.command("new")
@click.argument("kind", type=click.Choice([*KINDS]))
@click.argument("name", metavar="NAME")
@click.option(
    "-d",
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    help="The folder to write.  [default: VENDOR-THING]",
)
def new(*, kind: str, name: str, folder: Path | None) -> None:
    """Write the package of a plugin, a KIND named NAME: `acme/brevity` or `acme-brevity`.

    It has a small example to change, and a test that checks it by the rules of its seam. The folder must not exist.
    """
    package = Package.of(kind, name)
    where = folder or Path(package.distribution)
    installation = Installation.here_and_now()
    for path in package.write(where):
        click.echo(path)
    commands = (f"    {each}" for each in package.commands(where, installation))
    tell("\n".join([f"{package.plugin} is written; next:", *commands]))
