"""An exporter: one line a trial."""

from pathlib import Path

import attrs

from keval import Run
from keval.plugin import Exported


@attrs.frozen
class Tally:
    """Writes a line for every trial, in capitals if it is `loud`."""

    loud: bool = False
    prefix: str = "-"

    def export(self, run: Run, to: Path) -> Exported:
        to.mkdir(parents=True, exist_ok=True)
        lines = [f"{self.prefix} {trial.id}: {trial.output}\n" for trial in run.trials()]
        path = to / "tally.txt"
        path.write_text("".join(line.upper() if self.loud else line for line in lines), encoding="utf-8")
        return Exported((path,), ("scores are left out",))
