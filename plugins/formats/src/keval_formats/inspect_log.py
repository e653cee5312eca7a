"""Logs of Inspect: `.eval`, a ZIP file with a member for each sample and epoch, and `.json`, in one piece.

Source: Inspect, Eval logs, and its `EvalLog` and `value_to_float` (version 2 of logs, inspect-ai 0.3).
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from struct import unpack
from typing import Any
from zipfile import BadZipFile, ZipFile

from keval.errors import ConfigError, Problem
from keval.files import open_input
from keval.plugin import missing_module
from keval_formats.log import Entry, Log

_ZSTD = 93
"""How newer versions compress members, which `zipfile` knows from Python 3.14 on."""
_MOST_BYTES = 2**30
"""Of a member, as a small file may unpack to more than a machine has."""
_ATTACHMENT = re.compile(r"attachment://(\w+)")
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MEANS = ("mean", "accuracy", "stderr", "std", "var", "bootstrap_stderr")


def read(path: Path) -> Log | None:
    """Return the log in a file, `None` if a file is none. Raises ConfigError: it is broken, or a library is missing."""
    parts = _parts(path)
    header = next(parts, None)
    if not isinstance(header, dict) or not isinstance(told := header.get("eval"), dict) or "model" not in told:
        return None
    config, dataset = told.get("config") or {}, told.get("dataset") or {}
    notices, unmatched = [], []
    if (status := header.get("status", "started")) != "success":
        planned = (dataset.get("samples") or 0) * (config.get("epochs") or 1)
        notices.append(f"the log has the status {status!r}, and {sum(1 for _ in parts)} of {planned} samples")
    if reducers := set(config.get("epochs_reducer") or ()) - {"mean"}:
        unmatched.append(f"how epochs are reduced: {', '.join(sorted(reducers))}")
    scores = (header.get("results") or {}).get("scores") or ()
    if others := {name for score in scores for name in score.get("metrics") or ()} - {*_MEANS}:
        unmatched.append(f"metrics over all samples: {', '.join(sorted(others))}")
    task, model = str(told.get("task")), str(told["model"])
    read_sample = partial(_entries, model)
    return Log(path, "Inspect", task, model, partial(_samples, path), read_sample, notices=notices, unmatched=unmatched)


def _parts(path: Path) -> Iterator[Any]:
    """Yield what is told of the log, then each sample."""
    try:
        with open_input(path) as content:
            if path.suffix == ".json":
                log = json.load(content)
                yield log
                yield from (log.get("samples") or ()) if isinstance(log, dict) else ()
                return
            with ZipFile(content) as archive:
                names = archive.namelist()
                # Of a log that was never finished there is only what stood there when it began.
                yield _member(path, archive, "header.json" if "header.json" in names else "_journal/start.json")
                yield from (_member(path, archive, name) for name in names if name.startswith("samples/"))
    except (BadZipFile, KeyError, ValueError, EOFError, RecursionError, zlib.error) as error:
        raise ConfigError([Problem(str(path), f"no log of Inspect can be read: {error}")]) from error


def _member(path: Path, archive: ZipFile, name: str) -> Any:
    info = archive.getinfo(name)
    if info.file_size > _MOST_BYTES:
        raise ValueError(f"{name} has {info.file_size} bytes, more than {_MOST_BYTES}")
    if info.compress_type != _ZSTD:
        return json.loads(archive.read(info))
    try:
        from zstandard import ZstdDecompressor, ZstdError  # an extra, which few need
    except ModuleNotFoundError as error:
        told = f"logs of this version of Inspect need {missing_module('keval-formats[inspect]')}"
        raise ConfigError([Problem(str(path), told)]) from error
    with open_input(path) as content:
        content.seek(info.header_offset + 26)  # where a member's header has the lengths of its name and of more
        content.seek(sum(unpack("<HH", content.read(4))), 1)
        try:
            with ZstdDecompressor().stream_reader(content, read_across_frames=True) as member:
                return json.loads(member.read(info.file_size))
        except ZstdError as error:
            raise BadZipFile(f"{name}: {error}") from error


def _samples(path: Path) -> Iterator[Any]:
    return islice(_parts(path), 1, None)


def _entries(model: str, sample: dict[str, Any]) -> Iterator[Entry]:
    name, texts, output = str(sample["id"]), sample.get("attachments") or {}, sample.get("output") or {}
    raw = json.dumps([sample["input"], sample.get("messages") or [], output.get("choices") or []])
    filled = _ATTACHMENT.sub(lambda found: json.dumps(texts.get(found[1], found[0]))[1:-1], raw)
    asked, passed, choices = json.loads(filled)
    untold: list[str] = []
    asked = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    asked = [_said(each, untold) for each in asked if each["role"] in ("user", "assistant")]
    last = max(index for index, each in enumerate(asked) if each["role"] == "user")
    earlier = [each for each in passed if each["role"] in ("user", "assistant")][:last]
    question = {
        "id": name,
        "question": asked[last]["content"],
        "answer": sample.get("target"),
        "history": [{"role": each["role"], "content": each["content"]} for each in asked[:last]],
        "metadata": (sample.get("metadata") or {}) | ({"choices": told} if (told := sample.get("choices")) else {}),
    }
    used, scores = sample.get("model_usage") or {}, dict(_scores(sample.get("scores") or {}))
    untold += [f"tokens of {other}" for other in used if other != model]
    if limit := sample.get("limit"):
        untold.append(f"that a limit ended the sample: {limit.get('type')}")
    if error := sample.get("error"):
        ended = {"error": str(error.get("message") or "unknown")}
        untold += ["scores of a sample with an error"] if scores else []
    else:
        said = choices[0]["message"] if choices else {"content": output.get("completion")}
        ended = {"response": _said({"role": "assistant", **said}, [])["content"]}
    answer = {
        "id": name,
        **ended,
        "response_time": sample.get("working_time") or sample.get("total_time"),
        "tool_calls": [*_calls(passed, sample.get("events") or [])],
        "messages": [_said(each, untold) for each in passed if each not in earlier],
        "usage": _usage(used.get(model) or {}),
        "model_calls": sum(each.get("source") == "generate" for each in passed) or None,
        "truncated": any(each.get("stop_reason") in ("max_tokens", "model_length") for each in choices[:1]),
        "scores": scores,
    }
    yield Entry(question, answer, [*dict.fromkeys(untold)])


def _said(message: dict[str, Any], untold: list[str]) -> dict[str, str]:
    """Return a message as keval has it; content of another kind than text is named in its place."""
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    thought = [each.get("reasoning") or each.get("summary") or "" for each in parts if each["type"] == "reasoning"]
    told = [each for each in parts if each["type"] != "reasoning"]
    untold += [f"content of the kind {each['type']}" for each in told if each["type"] != "text"]
    text = "\n".join(each["text"] if each["type"] == "text" else f"[{each['type']}]" for each in told)
    return {"role": message["role"], "content": text, "reasoning": "\n".join(thought)}


def _calls(messages: list[dict[str, Any]], events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tool calls, each with its result."""
    seconds = {each.get("id"): each.get("working_time") for each in events if each.get("event") == "tool"}
    returned = {each.get("tool_call_id"): each for each in messages if each["role"] == "tool"}
    for call in (call for message in messages for call in message.get("tool_calls") or ()):
        made = {"name": call["function"], "arguments": call.get("arguments"), "duration": seconds.get(call["id"])}
        if (result := returned.get(call["id"])) is None:
            yield made
        elif error := result.get("error"):
            yield {**made, "error": error.get("message") or error.get("type") or "unknown"}
        else:
            yield {**made, "result": _said(result, [])["content"]}


def _usage(told: dict[str, Any]) -> dict[str, Any]:
    """Return tokens; Inspect's `input_tokens` are without those of the cache."""
    given = [told.get(key) for key in ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")]
    kept = {key: told.get(key) for key in ("output_tokens", "reasoning_tokens")}
    return {**kept, "input_tokens": sum(each or 0 for each in given) if told else None, "cached_tokens": given[1]}


def _scores(scores: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each score as a number; a value of several has one of each."""
    for name, score in scores.items():
        value, reason = score.get("value"), score.get("explanation") or ""
        several = dict(enumerate(value)) if isinstance(value, list) else value
        named = {f"{name}.{key}": each for key, each in several.items()} if isinstance(several, dict) else {name: value}
        for each, part in named.items():
            number = _number(part)
            yield (
                each,
                {"value": number, "reason": reason if number is not None else f"the value {part!r} is no number"},
            )


def _number(value: Any) -> float | None:
    told = _VALUES.get(value, _VALUES.get(value.lower(), value)) if isinstance(value, str) else value
    try:
        return float(told) if math.isfinite(float(told)) else None
    except (TypeError, ValueError):
        return None
