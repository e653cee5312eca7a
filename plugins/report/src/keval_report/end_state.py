"""What a trial was given beside servers, and what it left, for the terminal: texts, checks, changes, artifacts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from keval.cli.console import safe
from keval.records.end_state import Artifact, CheckResult, EndState, GivenText
from keval.records.formats import counted, time_span
from keval.records.transcript import Transcript, is_sha256
from keval_report.words import one_line

_MOST_FILES = 20
_MOST_LINES = 40
_OUTPUT_LINES = 10
_VERDICTS = {True: ("passed", "green"), False: ("failed", "red"), None: ("unscored", "yellow")}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def verdict_word(check: CheckResult) -> str:
    """Return what a check found in a word: `passed`, `failed`, or `unscored` if it could not run."""
    return _VERDICTS[check.passed][0]


def way_words(way: str) -> str:
    """Return how a text is given: `by AGENTS.md`, `in the system prompt`."""
    return f"in the {way}" if way == "system prompt" else f"by {way}"


def given_words(text: GivenText, *, seen: bool) -> str:
    """Return how a text was given, and whether, when and by which call the model saw it.

    It is unknown unless keval has `seen` a model request of the trial.
    """
    given = f"given {way_words(text.way)}"
    if not text.read:
        return f"{given}, {'not read' if seen else 'unknown whether it was read'}"
    by = f" by {text.by}" if text.by is not None else ""
    return f"{given}, read{by}{'' if text.model_call is None else f' in model call {text.model_call}'}"


def kept_words(artifact: Artifact) -> str:
    """Return the size of an artifact and its type, or why it was not kept."""
    size = counted(artifact.size, "byte")
    return f"{size}, not kept: {artifact.left_out}" if artifact.sha256 is None else f"{size}, {artifact.media_type}"


def text_lines(transcript: Transcript) -> Iterator[Text]:
    """Yield a line for each text that contexts gave."""
    for text in transcript.texts:
        told = f"{text.name}, {given_words(text, seen=transcript.request is not None)}"
        yield Text.assemble((f"{text.kind}: ", "dim"), safe(one_line(told)))


def end_lines(end: EndState, blobs: Path, *, full: bool) -> Iterator[Text]:
    """Yield what a trial left, line by line; `blobs` is the folder of artifacts. Not in `full`, long texts are cut."""
    for check in end.checks:
        word, style = _VERDICTS[check.passed]
        took = f" in {time_span(check.duration)}" if check.duration is not None else ""
        yield Text.assemble(
            (f"{word} ", f"bold {style}"), safe(f"check {one_line(check.name)} ({one_line(check.kind)}{took}): ")
        ).append_text(safe(one_line(check.reason)))
        # The end of what a program wrote says most of why it failed.
        lines = _lines(check.output or "") if full or not check.passed else []
        shown = lines if full else lines[-_OUTPUT_LINES:]
        yield from _left_out(len(lines) - len(shown), "line")
        yield from (safe(f"  │ {one_line(line)}", "dim") for line in shown)
    changes = end.changes if full else end.changes[:_MOST_FILES]
    if end.changes:
        yield Text(f"workspace: {counted(len(end.changes), 'changed file')}", "bold")
    yield from (safe(f"  {change.kind:<7}  {one_line(change.path)}") for change in changes)
    yield from _left_out(len(end.changes) - len(changes), "changed file")
    lines = _lines(end.diff)
    shown = lines if full else lines[:_MOST_LINES]
    for line in shown:
        yield safe(f"  {line.expandtabs(4)}", _DIFF_STYLES.get(line[:1], ""))
    yield from _left_out(len(lines) - len(shown), "line of the diff", "lines of the diff")
    if end.diff_cut:
        yield Text(f"  … the run does not keep {counted(end.diff_cut, 'more character')} of the diff", "yellow")
    for artifact in end.artifacts:
        known = artifact.sha256 or ""
        where = f", {blobs / known}" if is_sha256(known) else ", damaged: no SHA-256 names its content" if known else ""
        yield safe(f"artifact {one_line(artifact.path)}: {one_line(kept_words(artifact))}{where}")
    yield from (safe(f"workspace: {one_line(note)}", "yellow") for note in end.notes)


def _lines(text: str) -> list[str]:
    """Return the lines of a text of others; only a line feed ends one, as `diff` has it."""
    return text.strip("\n").split("\n") if text.strip("\n") else []


def _left_out(count: int, one: str, several: str | None = None) -> Iterator[Text]:
    if count > 0:
        what = one if count == 1 else several or f"{one}s"
        yield Text(f"  … {count:,} more {what}; --full shows all", "dim")
