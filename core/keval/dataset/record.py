"""Making a sample of a dataset's record: question, golden answer, history, facts, metadata, expectations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from keval.config.evaluation import DatasetFile
from keval.dataset.expectations import expectations_of
from keval.errors import suggestion
from keval.records import Message, Sample

__all__ = ["KNOWN_KEYS", "sample_of"]

KNOWN_KEYS = ("id", "history", "turns", "facts", "metadata", "expect")
"""Keys of a record that have a meaning, besides those of the question and the golden answer."""
_ROLES: dict[str, Literal["user", "assistant"]] = {
    "user": "user",
    "user_message": "user",
    "assistant": "assistant",
    "response": "assistant",
}


def sample_of(record: Any, file: DatasetFile) -> Sample:
    """Return the sample of a record. Raises ValueError: what is wrong with the record."""
    if not isinstance(record, dict):
        raise ValueError("expected an object with a question")
    turns = _texts(record.get("turns"), "turns")
    question = record.get(file.question_key)
    if question is None and turns:
        question, turns = turns[0], turns[1:]
    elif turns and turns[0] == question:
        turns = turns[1:]
    if file.question_key in record and (not isinstance(question, str) or not question.strip()):
        raise ValueError(f"the question under {file.question_key!r} is no text, or an empty one")
    if not isinstance(question, str):
        hint = suggestion(file.question_key, record) or f"; the record has {', '.join(map(repr, record)) or 'nothing'}"
        raise ValueError(f"no question under {file.question_key!r}{hint} (dataset.question_key names the key)")
    answer = record.get(file.answer_key)
    if answer is not None and not isinstance(answer, str):
        answer = json.dumps(answer, ensure_ascii=False)
    elif answer is not None and not answer.strip():
        answer = None  # as in a CSV file, where an empty cell is no value
    metadata = {**_mapping(record.get("metadata"), "metadata")}
    for key, value in record.items():
        if key not in (*KNOWN_KEYS, file.question_key, file.answer_key):
            metadata.setdefault(key, value)
    return Sample(
        id=_id(record),
        question=question,
        answer=answer,
        history=_history(record.get("history")),
        turns=turns,
        facts=_mapping(record.get("facts"), "facts"),
        metadata=metadata,
        expect=expectations_of(record.get("expect")),
    )


def _id(record: Mapping[str, Any]) -> str:
    given = record.get("id")
    if given is None:
        asked = {key: value for key, value in record.items() if key != "expect"}  # which changes no question
        canonical = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ValueError(f"an id is a text or a whole number, got {given!r}")
    return str(given)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError(f"{key!r} is a list of texts: what the user says, in order")
    return tuple(value)


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key!r} is an object with named values")
    return value


def _history(value: Any) -> tuple[Message, ...]:
    """Read earlier messages: {role, content} each, or {user, assistant}, or {user_message, response}."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("'history' is a list of messages {role, content} or of exchanges {user, assistant}")
    return tuple(message for item in value for message in _earlier(item))


def _earlier(item: Any) -> Iterator[Message]:
    if isinstance(item, dict):
        text = item.get("content", item.get("text"))
        if item.get("role") in ("user", "assistant") and isinstance(text, str):
            yield Message(item["role"], text)
            return
        spoken = [(_ROLES[key], said) for key, said in item.items() if key in _ROLES and isinstance(said, str)]
        if len(spoken) == len(item) and [role for role, _ in spoken] in (["user"], ["user", "assistant"]):
            yield from (Message(role, said) for role, said in spoken if said)
            return
    raise ValueError("each item of 'history' is {role: user or assistant, content} or {user, assistant}")
