"""What a check found, as one HTML file that needs nothing from elsewhere: all figures, defects and missed answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import attrs
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from keval.cli.messages import redactor
from keval.files import replacing
from keval.records.formats import interval
from keval_instrument.check_folder import CheckFolder, Material
from keval_instrument.examinations import figures_of
from keval_instrument.findings import Checked
from keval_instrument.table import by_kinds


@attrs.frozen
class MissedAnswer:
    """A damaged golden answer that no scorer noticed: its text, and what was done to it, as far as that is known."""

    sample: str
    condition: str
    text: str
    note: str
    golden: str


def write_page(path: Path, checked: Checked, material: Material) -> None:
    """Write the page. Raises RunError."""
    environment = Environment(
        loader=PackageLoader("keval_instrument"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["by_kinds"] = by_kinds
    environment.globals["interval"] = interval
    found = {figure.name for each in checked.examined for figure in each.figures}
    said = figures_of(each.examination for each in checked.examined)
    page = environment.get_template("check.html").render(
        checked=checked,
        unnoticed=[*_missed(material)],
        said={name: told for name, told in said.items() if name in found},
        style=Markup(files("keval_instrument").joinpath("templates/check.css").read_text(encoding="utf-8")),  # noqa: S704 - our own
    )
    with replacing(path) as file:
        # Answers may repeat a secret, and half of a surrogate pair, which UTF-8 cannot encode.
        file.write(redactor().text(page).encode("utf-8", "replace"))


def _missed(material: Material) -> Iterator[MissedAnswer]:
    """Yield the damaged answers that no scorer noticed. Raises RunError."""
    from keval_instrument.golden import unnoticed  # only a check with golden answers needs it

    run = material.damaged
    if run is None:
        return
    folder = CheckFolder.of(run)
    notes: Mapping[tuple[str, str], str] = folder.notes("damaged") if folder else {}
    missed = {*unnoticed(run)}
    for trial in run.trials():
        if (key := (trial.sample.id, trial.condition)) in missed:
            yield MissedAnswer(*key, trial.output, notes.get(key, ""), trial.sample.answer or "")
