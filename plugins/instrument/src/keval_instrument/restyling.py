"""Answers of agents, restyled: what they say stays, and how they say it changes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random
from typing import NamedTuple

from keval import Run
from keval_instrument.answer_parts import is_data, is_english, statements
from keval_instrument.check_folder import WrittenAnswer
from keval_instrument.rewording import padded

PLAIN = "plain"
WAYS: Mapping[str, str] = {
    "padded": "twice as long, by sentences that say nothing",
    "format": "prose as a list, or a list as prose",
    "style": "with the label, the opening and the closing of another agent",
}
"""How answers are restyled; `plain` has them as they were."""

_MOST = 40
"""Samples of which an answer is restyled."""


class _Habits(NamedTuple):
    """What an agent's answers usually begin and end with."""

    opening: str = "Certainly! Here is what you wanted to know."
    closing: str = "I hope this helps. Let me know if you have any other questions."


_OTHER = "another assistant"
_FEWEST_PARTS = 3
"""An answer of fewer statements has no opening and closing besides what it says."""


def restyled_answers(asked: Run, *, seed: int) -> Iterator[WrittenAnswer]:
    """Yield one answer of each sample, of an arm and a repetition drawn at random, as it was and restyled.

    What cannot be made of an answer is left out: JSON and code are not restyled, and sentences are added only to
    English. Raises RunError: the run is damaged.
    """
    rng = Random(seed)
    by_sample: dict[str, list[str]] = defaultdict(list)
    spoken: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for trial in asked.trials():
        if trial.failure is None and trial.output.strip():
            by_sample[trial.sample.id].append(trial.id)
            spoken[trial.agent].append((trial.sample.id, trial.output))
    habits = {agent: _habits_of(answers) for agent, answers in spoken.items()}
    for sample in sorted(rng.sample([*by_sample], min(_MOST, len(by_sample)))):
        trial = asked.trial(rng.choice(by_sample[sample]))
        others = [agent for agent in habits if agent != trial.agent]
        other = rng.choice(others) if others else _OTHER
        made = {
            PLAIN: trial.output,
            "padded": padded(trial.output, rng),
            "format": _reformatted(trial.output),
            "style": _styled(trial.output, other, habits.get(other, _Habits())),
        }
        for condition, text in made.items():
            if text is not None:
                note = f"an answer of {trial.agent!r} under {trial.condition!r}"
                yield WrittenAnswer(sample, condition, text, note, of=trial.id)


def _habits_of(answers: list[tuple[str, str]]) -> _Habits:
    """Return the first and the last sentence of a third of the samples' answers, or usual ones of assistants."""
    ends: tuple[dict[str, set[str]], dict[str, set[str]]] = (defaultdict(set), defaultdict(set))
    for sample, text in answers:
        parts = statements(text)
        if len(parts) >= _FEWEST_PARTS:
            for found, part in zip(ends, (parts[0], parts[-1]), strict=True):
                found[part.of(text)].add(sample)
    # A sentence that begins a single answer says something about its question.
    enough = max(2, len({sample for sample, _ in answers}) / 3)
    opening, closing = (max(found, key=lambda said: len(found[said]), default="") for found in ends)
    usual = _Habits()
    return _Habits(
        opening if len(ends[0][opening]) >= enough else usual.opening,
        closing if len(ends[1][closing]) >= enough else usual.closing,
    )


def _styled(text: str, other: str, habits: _Habits) -> str | None:
    """Return a text as another agent might have put it; `None` if it is no English prose."""
    if is_data(text) or not is_english(text):
        return None
    return f"Answer by {other}:\n\n{habits.opening}\n\n{text.strip()}\n\n{habits.closing}"


_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_MARKER = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#:]*$")
_STRONG = re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)")


def _reformatted(text: str) -> str | None:
    """Return a text without Markdown, or as a list under a heading if it has none; `None` if that changes nothing."""
    if is_data(text):
        return None
    plain = _without_markdown(text)
    if plain != text.strip():
        return plain
    found = [part.of(text) for part in statements(text)]
    return "## Answer\n\n" + "\n".join(f"- {said}" for said in found) if found else None


def _without_markdown(text: str) -> str:
    """Return a text whose headings and list items are sentences, without emphasis; lines of code and tables stay."""
    lines: list[str] = []
    in_code = in_list = False
    for line in text.strip().splitlines():
        if _FENCE.match(line):
            in_code, in_list = not in_code, False
            continue
        if in_code:
            lines.append(line)
            continue
        heading, marker = _HEADING.match(line), _MARKER.match(line)
        said = f"{heading[1]}:" if heading else line[marker.end() :] if marker else line
        said = _STRONG.sub(r"\1", said)
        if marker and in_list:
            lines[-1] += f" {said}" if re.search(r"[.!?:;,]$", lines[-1]) else f"; {said}"
        else:
            lines.append(said)
        in_list = bool(marker)
    return "\n".join(lines)
