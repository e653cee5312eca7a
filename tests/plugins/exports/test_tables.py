"""`keval export --format csv` and `--format parquet`: every value comes back as it was, and no formula runs."""

from __future__ import annotations

import csv
import re
import sys
import tracemalloc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keval import Run
from keval.plugin import missing_module
from keval.seams.exporters import Exporter
from keval_exports.tables import SCORE_COLUMNS, TRIAL_COLUMNS, Csv, Parquet, score_row, trial_row
from tests.conftest import Project
from tests.kits.exporter_kit import check_exporter
from tests.plugins.exports.conftest import CONFIG, FORMULAS, prepare


def told(run: Run) -> dict[str, tuple[Mapping[str, str], list[dict[str, Any]]]]:
    """The columns and rows that the tables of a run have."""
    return {
        "trials": (TRIAL_COLUMNS, [trial_row(trial) for trial in run.trials()]),
        "scores": (SCORE_COLUMNS, [score_row(line) for line in run.scores()]),
    }


def test_no_cell_is_a_formula_unless_that_is_asked_for(project: Project, hostile: Run) -> None:
    outcomes = [
        project.keval("export", str(hostile.path), "--format", "csv", "--to", folder, *options)
        for folder, options in (("guarded", ()), ("as_is", ("--no-guard",)))
    ]

    assert [0, 0] == [outcome.code for outcome in outcomes]
    cells = {
        folder: [text for row in csv_rows(project.root / folder / "trials.csv") for text in row.values()]
        for folder in ("guarded", "as_is")
    }
    # Those that begin with an apostrophe have another one, so that the guard can be undone.
    assert [f"'{text}" if text.startswith(tuple("=+-@\t\r\n＝＋－＠'")) else text for text in cells["as_is"]] == cells[
        "guarded"
    ]
    assert {*FORMULAS} <= {*cells["as_is"]}


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("table", ["trials", "scores"])
@pytest.mark.parametrize("exporter", [Csv(guard=False), Parquet()], ids=["csv", "parquet"])
def test_duckdb_reads_the_tables(hostile: Run, tmp_path: Path, exporter: Exporter, table: str) -> None:
    exporter.export(hostile, tmp_path)
    columns, rows = told(hostile)[table]

    if isinstance(exporter, Csv):
        found = duckdb.read_csv(str(tmp_path / f"{table}.csv"), allow_quoted_nulls=False)
    else:
        found = duckdb.read_parquet(str(tmp_path / f"{table}.parquet"))

    assert [*columns] == found.columns
    assert [tuple(row[name] for name in columns) for row in rows] == found.fetchall()


def test_duckdb_finds_the_types_of_columns(hostile: Run, tmp_path: Path) -> None:
    Csv().export(hostile, tmp_path)
    Parquet().export(hostile, tmp_path)

    types = {
        suffix: duckdb.sql(
            f"SELECT typeof(value), typeof(neutral), typeof(repetition), typeof(reason), typeof(judge_repetition)"
            f" FROM '{tmp_path}/scores.{suffix}' LIMIT 1"
        ).fetchone()
        for suffix in ("csv", "parquet")
    }

    assert ("DOUBLE", "BOOLEAN", "BIGINT", "VARCHAR", "BIGINT") == types["csv"] == types["parquet"]


@pytest.mark.parametrize("exporter", [Csv(), Parquet()], ids=["csv", "parquet"])
def test_a_run_without_trials_has_tables_without_rows(project: Project, exporter: Exporter) -> None:
    run = prepare(project, questions=[{"id": "only", "question": "?", "says": "!", "level": 1}])
    run.trials_file.write_bytes(b"")
    run.scores_file.path.write_bytes(b"")

    exported = exporter.export(run, project.root / "out")

    counts = [duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall() for path in exported.files]
    assert [[(0,)], [(0,)]] == counts


@pytest.mark.slow
@pytest.mark.parametrize("exporter", [Csv(), Parquet()], ids=["csv", "parquet"])
def test_a_run_is_not_held_in_memory(project: Project, exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_exports.tables._MOST_CHARACTERS", 500_000)
    long = {"id": "long", "question": "How long?", "says": "very " * 20_000, "level": 1}
    run = prepare(project, CONFIG.replace("num_repetitions: 2", "num_repetitions: 40"), [long])

    Parquet().export(run, project.root / "before")  # pyarrow imports pandas, where it is installed: 25 MB
    tracemalloc.start()
    exporter.export(run, project.root / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 16_000_000 < run.trials_file.stat().st_size
    assert peak < 4_000_000


def test_parquet_without_pyarrow_says_what_to_install(
    project: Project, hostile: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    outcome = project.keval("export", str(hostile.path), "--format", "parquet", "--to", "out")

    remedy = f"error: Parquet files need {missing_module('pyarrow')}\n"
    assert (2, "", remedy) == (outcome.code, outcome.stdout, outcome.stderr)
    assert [] == [*(project.root / "out").iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["csv", "eee", "html", "junit", "otlp", "parquet"])
def test_exporters_keep_the_rules(name: str) -> None:
    check_exporter(name)


def test_a_folder_that_cannot_be_written_is_refused(project: Project, hostile: Run) -> None:
    (project.root / "full").write_text("a file, where a folder is wanted", encoding="utf-8")

    outcomes = [
        project.keval("export", str(hostile.path), "--format", name, "--to", "full/deeper")
        for name in ("csv", "eee", "junit", "otlp", "parquet")
    ]

    assert [(2, "")] * 5 == [(outcome.code, outcome.stdout) for outcome in outcomes]
    assert all(outcome.stderr.startswith("error: the export cannot be written: ") for outcome in outcomes)


def columns_of(page: str, heading: str) -> Iterable[str]:
    part = page.partition(heading)[2].partition("\n\n**")[0]
    rows = [line.partition(": ")[0] for line in part.splitlines() if line.startswith("- `")]
    return [name for row in rows for name in re.findall("`(.+?)`", row)]


def test_the_columns_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text(encoding="utf-8")

    assert [*TRIAL_COLUMNS] == columns_of(page, "**trials**")
    assert [*SCORE_COLUMNS] == columns_of(page, "**scores**")
