"""A trial in words: its transcript, its scores, what it was given and left, and its traffic as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import orjson
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.errors import RunError
from keval.records.end_state import Artifact, CheckResult, EndState, GivenText
from keval.records.formats import counted, number, time_span
from keval.records.manifest import Manifest, ReplayEntry, TextEntry, WorkerEntry
from keval.records.scores import Score, ScoreLine, named_band
from keval.records.transcript import ServerExchange, ToolCall, Transcript, is_sha256
from keval.records.trial import Trial
from keval.store.run import Run
from keval_replay.frames import Frames, traffic_file
from keval_report.contexts import entry_text
from keval_report.marks import marks_of
from keval_report.origin import replay_label, replay_sentences
from keval_report.terminal.console import print_sections
from keval_report.words import one_line, way_words, witnesses

Bands: TypeAlias = Mapping[str, Mapping[str, float]]
"""The bands of each metric's scale, by the metric's name."""


def print_run(manifest: Manifest, trials: Iterable[Trial], console: Console) -> None:
    """Print what a run was made of, and its trials, one per line."""
    began = safe(f" {manifest.run}, started {manifest.started}")
    console.print(Text.assemble(safe(manifest.evaluation, "bold"), began))
    for sentence in replay_sentences(manifest.replay):
        console.print(safe(f"  {sentence}", "yellow"), soft_wrap=True)
    if manifest.note:
        console.print(safe(f"  note       {one_line(manifest.note)}"), soft_wrap=True)
    for label, agent in manifest.agents.items():
        console.print(safe(f"  agent      {label}: {agent.type}, model {agent.model or 'none'}"))
    for label, condition in manifest.conditions.items():
        servers = (f"{name} ({', '.join(server.tools)})" for name, server in condition.servers.items())
        console.print(safe(f"  condition  {label}: {'; '.join(servers) or 'no servers'}"))
        for name, server in condition.servers.items():
            if told := entry_text(server):
                console.print(safe(f"  server     {name}: {told}"), soft_wrap=True)
        for name, text in condition.texts.items():
            console.print(safe(f"  text       {name}: {_text(text)}"), soft_wrap=True)
    for label, judge in manifest.judges.items():
        model = f"{judge.model or 'none'}{' (simulated)' if judge.simulated else ''}"
        console.print(safe(f"  judge      {label}: {judge.type}, model {model}"))
    if rubrics := dict.fromkeys(rubric.name for rubric in manifest.rubrics.values()):
        console.print(safe(f"  rubrics    {', '.join(rubrics)}"))
    dataset = manifest.dataset
    if manifest.play:
        console.print(safe(f"  questions  {dataset.samples}, asked by a person in a play"))
    else:
        console.print(safe(f"  dataset    {dataset.samples} samples, sha256 {(dataset.sha256 or 'unknown')[:12]}"))
    for worker in manifest.workers:
        console.print(safe(f"  worker     {_worker(worker)}"), soft_wrap=True)
    versions = (f"{name} {version}" for name, version in manifest.versions.items())
    console.print(safe(f"  versions   {', '.join(versions)}"))
    for trial in trials:
        outcome = f"failed: {trial.failure.kind}" if trial.failure else " ".join(trial.output.split())
        line = Text.assemble(safe(" ".join(trial.id.split()), "bold"), "  ", safe(outcome))
        line.truncate(console.width, overflow="ellipsis")
        console.print(line)


def _text(text: TextEntry) -> str:
    """Say of what parts a context of texts is, and how agents are given it."""
    parts = f"{text.part}s {', '.join(text.parts)}" if text.parts else f"no {text.part}s"
    return "; ".join([parts, *(f"{agent} {way_words(way)}" for agent, way in text.ways.items())])


def _worker(worker: WorkerEntry) -> str:
    parts = [f"{worker.trials} trials", f"{worker.scored} scored"]
    parts += [f"{sum(worker.failures.values())} failed"] if worker.failures else []
    parts += [f"{time_span(worker.cpu_seconds)} CPU"] if worker.cpu_seconds is not None else []
    parts += [f"{round(worker.memory_bytes / 2**20):,} MiB"] if worker.memory_bytes is not None else []
    parts += [f"lost: {worker.lost}"] if worker.lost is not None else []
    return f"{worker.name} on {worker.node}: {', '.join(parts)}"


def print_trial(
    trial: Trial,
    scores: Sequence[ScoreLine],
    bands: Bands,
    console: Console,
    *,
    replay: ReplayEntry | None = None,
    blobs: Path = Path("blobs"),
    full: bool = False,
) -> None:
    """Print one trial: prompt and texts, messages, tool calls, what else passed, time, tokens, scores, what it left.

    `replay` is that of the run, if it was replayed, and `blobs` its folder of artifacts. What the trial left is
    shortened, unless it is to be shown in `full`.
    """
    console.print(Text.assemble(safe(trial.id, "bold"), safe(f"  model {trial.model or 'none'}")))
    if replay is not None:
        console.print(safe(replay_label(replay), "yellow"))
    if trial.transcript and trial.transcript.instructions:
        console.print(Text.assemble(("system: ", "bold cyan"), safe(trial.transcript.instructions)))
    print_sections([text_lines(trial.transcript or Transcript())], console)
    for message in trial.sample.history:
        console.print(Text.assemble((f"{message.role} (earlier): ", "dim"), safe(message.text)))
    transcript = trial.transcript
    if transcript:
        for turn in range(len(trial.sample.asked)):
            said = [message for message in transcript.messages if message.turn == turn and message.role != "tool"]
            calls = [call for call in transcript.tool_calls if call.turn == turn]
            # A turn begins with the user's message; calls stand between it and what the agent said.
            for message in said[:1]:
                console.print(Text.assemble((f"{message.role}: ", "bold cyan"), safe(message.text)))
            for shown in call_lines(calls):
                console.print(shown)
            for message in said[1:]:
                if message.reasoning:
                    console.print(Text.assemble(("reasoning: ", "dim cyan"), safe(message.reasoning, "dim")))
                told = safe(message.text)
                # Offsets of marks are of the whole answer, and do not fit where `safe` has changed its length.
                if message.text == trial.output and len(told) == len(message.text):
                    for mark in (mark for line in scores for mark in marks_of(line.score, message.text)):
                        told.stylize("underline", mark.start, mark.end)
                if told or not message.reasoning:  # a model may think, call a tool, and say nothing
                    console.print(Text.assemble((f"{message.role}: ", "bold cyan"), told))
                for source in message.citations:
                    known = ": ".join(filter(None, (source.title, source.url, source.quoted)))
                    console.print(Text.assemble(("  cites ", "cyan"), safe(known, "dim")))
        for exchange in transcript.exchanges:
            console.print(_exchange(exchange))
        if transcript.unlisted_calls:
            console.print(f"  {transcript.unlisted_calls} tool calls (no details known)")
        for denied in transcript.denied:
            times = f", {denied.count:,} times" if denied.count > 1 else ""
            told = safe(f"{denied.request}: {denied.reason}")
            console.print(Text.assemble((f"not passed on to the model{times}: ", "yellow"), told))
        if trial.truncated:
            console.print(Text("the answer was cut off at a limit of length", "yellow"))
        usage = transcript.usage
        took = time_span(transcript.duration) if transcript.duration is not None else "unknown time"
        tokens = f"{_known(usage.input_tokens)} tokens in, {_known(usage.output_tokens)} out"
        tier = f", service tier {usage.service_tier}" if usage.service_tier else ""
        console.print(safe(f"{took}, {_known(transcript.model_calls)} model calls, {tokens}{tier}", "dim"))
        if spoken := ", ".join(f"{name} {revision}" for name, revision in transcript.protocols.items()):
            console.print(safe(f"MCP with the tap: {spoken}", "dim"))
        if by := witnesses(transcript):
            console.print(f"[dim]{by}[/]")
    for attempt in trial.attempts:
        counted = "" if attempt.counted else " (not counted, as another trial's call may be why)"
        console.print(Text.assemble((f"gave up an attempt{counted}: ", "yellow"), safe(attempt.failure.message)))
    if failure := trial.failure:
        console.print(Text.assemble((f"failed ({failure.stage}, {failure.kind}): ", "red"), safe(failure.message)))
    for line in scores:
        found = verdict(line.score, bands.get(line.metric, {}))
        console.print(Text.assemble((f"{found} ", "bold"), safe(f"{whose(line)}: {line.score.reason}")))
        for piece in read_pieces(line.score, trial.output):
            console.print(safe(f"  read {piece}", "dim"))
    for shown in claims(scores):
        console.print(shown)
    if transcript and transcript.end_state is not None:
        print_sections([end_lines(transcript.end_state, blobs, full=full)], console)


def whose(line: ScoreLine) -> str:
    """Return the name of a score: its metric, and for a rubric who judged, and for which time."""
    name = f"{line.metric} by {line.judge}" if line.judge else line.metric
    return f"{name}, {line.judgement.repetition}" if line.judgement and line.judgement.repetition > 1 else name


def verdict(score: Score, bands: Mapping[str, float]) -> str:
    """Return a score's value with the name of its band, or that there is no value."""
    if score.value is None:
        return "unscored"
    named = "neutral" if score.neutral else named_band(bands, score.value)
    return f"{number(score.value)} {named or ''}".strip()


def claims(scores: Iterable[ScoreLine]) -> Iterator[Text]:
    """Yield what judges could not verify in an answer, and their replies that were no judgement."""
    for judge, judgement in {(line.judge, line.judgement): None for line in scores if line.judgement}:
        for claim in judgement.unverified_claims or ():
            yield Text.assemble((f"unverified claim, according to {judge}: ", "yellow"), safe(claim))
        for reply in judgement.rejected:
            yield Text.assemble((f"rejected reply of {judge}: ", "red"), safe(reply))


def read_pieces(score: Score, answer: str) -> Iterator[str]:
    """Yield what a scorer read in an answer, a line for all that it read as the same: `'coat', 'hat': items, good`."""
    found: dict[str, list[str]] = {}
    for mark in marks_of(score, answer):
        judged = mark.label if mark.kind == "neutral" else f"{mark.label}, {mark.kind}"
        found.setdefault(judged, []).append(repr(answer[mark.start : mark.end]))
    yield from (f"{', '.join(words)}: {judged}" for judged, words in found.items())


def call_lines(calls: Iterable[ToolCall]) -> Iterator[Text]:
    """Yield a line for each tool call; a bracket joins those that one reply of the model asked for."""
    for reply, group in groupby(calls, key=lambda call: call.model_call):
        together = list(group)
        for position, call in enumerate(together, start=1):
            if reply is None or len(together) == 1:
                yield _call(call, "→")
            else:
                yield _call(call, "┌" if position == 1 else "└" if position == len(together) else "├")


def _call(call: ToolCall, mark: str) -> Text:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    took = f" in {time_span(call.duration)}" if call.duration is not None else ""
    ran = {None: "", 0: ", never ran", 1: ""}.get(call.executions, f", ran {call.executions} times")
    ran += f", {', '.join(call.dropped)} not shown to the model" if call.dropped else ""
    ran += ", on purpose" if call.error_kind == "injected" else f", {call.changed}" if call.changed else ""
    outcome = ("error: " + call.error) if call.error is not None else (call.result or "")
    head = Text.assemble((f"  {mark} ", "green"), safe(f"{call.name}({arguments})"), (f"{took}{ran}: ", "dim"))
    return head.append_text(safe(" ".join(outcome.split())))


def _exchange(exchange: ServerExchange) -> Text:
    sender = exchange.server if exchange.sender == "server" else "the agent"
    if exchange.answered_by is None:
        head, told = f"notification from {sender}: {exchange.method}", exchange.params
    else:
        by = exchange.server if exchange.answered_by == "server" else f"the {exchange.answered_by}"
        if exchange.sampled is not None:
            by = f"{exchange.sampled.model} ({_known(exchange.sampled.usage.total)} tokens, none of the agent's)"
        head, told = f"request from {sender}, answered by {by}: {exchange.method}", exchange.result or {}
    said = f"error: {exchange.error}" if exchange.error is not None else json.dumps(told, ensure_ascii=False)
    return Text.assemble(("  ⇄ ", "green"), safe(head), safe(f" {said}", "dim"))


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def describe_traffic(run: Run, trial: str) -> dict[str, Any]:
    """Return the traffic of a trial and its judgements as plain data: the lines of the recording, by who asked.

    Judgements come by judge and repetition. Raises RunError: the run has no such trial, or no traffic of it.
    """
    run.trial(trial)  # raises if there is none
    if run.manifest.recording is None:
        raise RunError(f"{run.path} has no recording; `keval run --record` makes one")
    frames = Frames(traffic_file(run.path))
    keys = [key for key in frames.keys if key.trial == trial]
    if not keys:
        since = run.manifest.recording.since
        raise RunError(f"the recording of {run.path} has no traffic of {trial!r}: it began at {since}")
    judgements = sorted(
        (key for key in keys if key.role == "judge"), key=lambda key: (key.judge or "", key.repetition or 0)
    )
    return {
        "trial": trial,
        "traffic": [line for key in keys if key.role == "agent" for line in frames.read(key, orjson.loads)],
        "judgements": [
            {"judge": key.judge, "repetition": key.repetition, "traffic": frames.read(key, orjson.loads)}
            for key in judgements
        ],
    }


_MOST_FILES = 20
_MOST_LINES = 40
_OUTPUT_LINES = 10
_VERDICTS = {True: ("passed", "green"), False: ("failed", "red"), None: ("unscored", "yellow")}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def verdict_word(check: CheckResult) -> str:
    """Return what a check found in a word: `passed`, `failed`, or `unscored` if it could not run."""
    return _VERDICTS[check.passed][0]


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
        # What a check that passed wrote is of no interest.
        lines = _lines_of(check.output or "") if full or not check.passed else []
        shown = lines if full else lines[-_OUTPUT_LINES:]
        yield from _left_out(len(lines) - len(shown), "line")
        yield from (safe(f"  │ {one_line(line)}", "dim") for line in shown)
    changes = end.changes if full else end.changes[:_MOST_FILES]
    if end.changes:
        yield Text(f"workspace: {counted(len(end.changes), 'changed file')}", "bold")
    yield from (safe(f"  {change.kind:<7}  {one_line(change.path)}") for change in changes)
    yield from _left_out(len(end.changes) - len(changes), "changed file")
    lines = _lines_of(end.diff)
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


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text of others; only a line feed ends one, as `diff` has it."""
    return text.strip("\n").split("\n") if text.strip("\n") else []


def _left_out(count: int, one: str, several: str | None = None) -> Iterator[Text]:
    if count > 0:
        what = one if count == 1 else several or f"{one}s"
        yield Text(f"  … {count:,} more {what}; --full shows all", "dim")
