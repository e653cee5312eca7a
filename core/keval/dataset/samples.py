"""Samples: made of the records of a dataset, and read by position and id when they are needed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, overload
from weakref import WeakValueDictionary

import attrs

from keval.config.evaluation import DatasetFile
from keval.errors import suggestion
from keval.records.transcript import Message
from keval.records.trial import Expectation, Sample

_KEPT = 256
"""How many samples stay in memory; the trials of one sample follow each other."""


class _Ids:
    """The ids of samples and the positions of these, once for all that have the same."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = ids

    @cached_property
    def positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.ids)}


_IDS: WeakValueDictionary[tuple[object, ...], _Ids] = WeakValueDictionary()
"""The ids that are in use, by their number, the first and the last: a plan, its run and a run beside it share them."""


class Samples(Sequence[Sample]):
    """A sequence of samples whose `ids` are known. `read` returns one by its position; the latest ones are cached."""

    def __init__(self, ids: Sequence[str], read: Callable[[int], Sample]) -> None:
        key = (len(ids), *ids[:1], *ids[-1:])
        known = _IDS.get(key)
        # The key finds only a candidate: another dataset may begin and end with the same ids.
        self._ids = known if known is not None and known.ids == ids else _Ids(ids)
        _IDS[key] = self._ids
        self.ids = self._ids.ids
        self._read = lru_cache(_KEPT)(read)

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Samples:
        """Return a sequence of samples that are already in memory."""
        held = tuple(samples)
        return cls([sample.id for sample in held], held.__getitem__)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, position: int) -> Sample: ...
    @overload
    def __getitem__(self, position: slice) -> Samples: ...
    def __getitem__(self, position: int | slice) -> Sample | Samples:
        if isinstance(position, slice):
            return self.pick(range(len(self))[position])
        if not -len(self) <= position < len(self):
            raise IndexError(position)
        return self._read(position % len(self))

    def pick(self, positions: Sequence[int]) -> Samples:
        """Return only those at these positions."""
        return Samples([self.ids[position] for position in positions], lambda index: self._read(positions[index]))

    def named(self, id: str) -> Sample:
        """Return the sample of that id. Raises KeyError."""
        return self._read(self.positions[id])

    @property
    def positions(self) -> dict[str, int]:
        """The positions of samples by their ids."""
        return self._ids.positions


KNOWN_KEYS = (
    *("id", "history", "turns", "facts", "metadata", "expect", "accepted", "rejected"),
    *("workspace", "verify", "solution"),
)
"""Keys of a record that have a meaning, besides those of the question and the golden answer."""
NAMES_QUESTION_KEY = "(dataset.question_key names the key)"
"""The end of the error of a record that has nothing under the key of the question."""
_ROLES: dict[str, Literal["user", "assistant"]] = {
    "user": "user",
    "user_message": "user",
    "assistant": "assistant",
    "response": "assistant",
}


def sample_of(record: Any, file: DatasetFile) -> Sample:
    """Return the sample of a record. Raises ValueError: what is wrong with the record."""
    if not isinstance(record, dict):
        raise ValueError("expected an object with a question, such as {question: …}")
    turns = _texts(record.get("turns"), "turns")
    question = _under(file.question_key, record)
    if question is None and turns:
        question, turns = turns[0], turns[1:]
    elif turns and turns[0] == question:
        # The turns of some datasets begin with the question.
        turns = turns[1:]
    if file.question_key in record and (not isinstance(question, str) or not question.strip()):
        raise ValueError(f"the question under {file.question_key!r} is no text, or an empty one")
    if not isinstance(question, str):
        hint = suggestion(file.question_key, record, "the record has")
        raise ValueError(f"no question under {file.question_key!r}{hint} {NAMES_QUESTION_KEY}")
    answers = _answers(_under(file.answer_key, record))
    if not isinstance(record.get("accepted", True), bool):
        raise ValueError(f"'accepted' is true or false, got {record['accepted']!r}")
    metadata = {**_mapping(record.get("metadata"), "metadata")}
    proof = ["proof"] if "accepted" in record else []  # it proves a generated answer, for the person who accepts it
    for key, value in record.items():
        if key not in (*KNOWN_KEYS, file.question_key, file.answer_key, *proof):
            # What is written under `metadata` wins over a key of the same name beside it.
            metadata.setdefault(key, value)
    return Sample(
        id=_id(record),
        question=question,
        answer=answers[0] if answers else None,
        history=history_of(record.get("history")),
        turns=turns,
        facts=_mapping(record.get("facts"), "facts"),
        metadata=metadata,
        expect=expectations_of(record.get("expect")),
        workspace=None if record.get("workspace") is None else _mapping(record["workspace"], "workspace"),
        verify=_listed(record.get("verify"), "verify"),
        solution=record.get("solution"),
        other_answers=tuple(answers[1:]),
    )


def _under(key: str, record: dict[str, Any]) -> Any:
    """Return what a record has under a key, or under parts of a key with dots, one in the other."""
    first, _, rest = key.partition(".")
    inner = None if key in record else record.get(first)
    return _under(rest, inner) if isinstance(inner, dict) else record.get(key)


def _answers(value: Any) -> list[str]:
    """Return the golden answers of a record: one, or each of a list. What is no text is written as JSON."""
    items = value if isinstance(value, list) else [value]
    told = (item if isinstance(item, str | None) else json.dumps(item, ensure_ascii=False) for item in items)
    # As in a CSV file, where an empty cell is no value.
    return list(dict.fromkeys(text for text in told if text is not None and text.strip()))


def _id(record: Mapping[str, Any]) -> str:
    given = record.get("id")
    if given is None:
        # To add these changes nothing that is asked, so a run has to find its sample under the same id.
        changing_nothing = ("expect", "accepted", "rejected", "verify", "solution")
        asked = {key: value for key, value in record.items() if key not in changing_nothing}
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


def _listed(value: Any, key: str) -> tuple[Any, ...]:
    if not isinstance(value, list | None):
        raise ValueError(f"{key!r} is a list")
    return tuple(value or ())


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key!r} is an object with named values")
    return value


def history_of(value: Any) -> tuple[Message, ...]:
    """Read earlier messages: {role, content} each, or {user, assistant}, or {user_message, response}.

    Raises ValueError: what is wrong.
    """
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


_TEXTS = ("contains", "not_contains", "regex", "tool_called", "reads", "not_reads", "calls", "not_calls")
_KEYS = tuple(attrs.fields_dict(Expectation))
_LONGEST_PATTERN, _LARGEST_PATTERN = 10_000, 1_000_000
"""Characters, with and without repetitions: compiling cannot be interrupted, as matching can, and takes memory."""


def expectations_of(value: Any) -> tuple[Expectation, ...]:
    """Read one mapping of expectations, or a list of them. Raises ValueError: what is wrong."""
    if value is None:
        return ()
    return tuple(map(_expectation, value if isinstance(value, list) else [value]))


def _expectation(value: Any) -> Expectation:
    if not isinstance(value, dict):
        raise ValueError(f"'expect' is a mapping, or a list of mappings, with {', '.join(_KEYS)}")
    for key in value:
        if key not in _KEYS:
            raise ValueError(f"unknown key {key!r} in 'expect'{suggestion(str(key), _KEYS, 'known keys')}")
    if not any(key in value for key in _KEYS if key != "conditions"):
        raise ValueError(f"'expect' expects nothing; add one of {', '.join(_KEYS[:-1])}")
    found = Expectation(
        **{key: _expected_texts(value[key], key) for key in (*_TEXTS, "conditions") if key in value},
        max_seconds=_seconds(value.get("max_seconds")),
    )
    for pattern in found.regex:
        _check_pattern(pattern)
    return found


def _expected_texts(value: Any, key: str) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str) or not text:
            raise ValueError(f"'expect.{key}' is a text or a list of texts, none of them empty, got {text!r}")
    if not texts:
        raise ValueError(f"'expect.{key}' is an empty list; name something, or leave it out")
    return tuple(texts)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value > 0 and math.isfinite(value)):
        raise ValueError(f"'expect.max_seconds' is a number above 0, got {value!r}")
    return float(value)


def _check_pattern(pattern: str) -> None:
    import regex  # needed only where a pattern is expected

    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"a pattern of 'expect.regex' has {len(pattern)} characters, more than {_LONGEST_PATTERN}")
    # A part is compiled as often as it must occur at least, and counts after groups multiply. With (?x), space and
    # comments may stand before a count and in it.
    size = single = 1.0
    for before, told in regex.findall(r"(?<=((?s:.)))\{(?=((?:[0-9\s\x1c-\x1f]|#.*\n)+))", pattern):
        count = float("0" + regex.sub(r"#.*|[^0-9]", "", told))
        size, single = (size * max(count, 1), single) if before.strip() in ")" else (size, max(count, single))
    if len(pattern) * size * single > _LARGEST_PATTERN:
        raise ValueError(f"'expect.regex' has {pattern!r:.100}, which repeats too much for memory; use smaller counts")
    try:
        regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"'expect.regex' has {pattern!r:.100}, which is no regular expression: {error}") from error
