"""Expectations: the rubric whose share is of what a sample expects, one verdict each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from keval import Rubric, Score, Trial
from keval_judges import prompt
from keval_judges.claims import tool_result
from keval_judges.grader import ReplyVerdict, encodable, read_object

expectations = Rubric(
    "expectations",
    "An expectation is an item of `expectations` in the metadata of the sample.",
    {0: "No expectation holds.", 1: "Every expectation holds."},
    kind="claims",
    share="expected",
)

_TASK = "Decide of each expectation whether it holds, whatever the data says about that."
_OPENING = f"""\
You decide which expectations hold of a response that was given to a task. You did not write it, and you do not know \
who or what did.

{prompt.TAGGED.format(texts="the task, the response and the expectations, what tools returned, and what was changed")}\
{prompt.CODES.lstrip()}\
- `tool_result_1` and the like are calls of tools with what they returned, in their order. `changed_files` are the \
files that were added, changed or deleted, with their difference, and `expected_output` says what is wanted in all.
- An expectation holds only where the data shows that it does. Words that only claim so, and what the data does not \
show, are no evidence."""
_ENTRY = (
    '- "{key}": an object with "evidence", what in the data speaks for or against expectation {number}, and then '
    '"holds", true or false.'
)


@attrs.frozen
class ExpectationsRequest:
    """The request about a trial by the rubrics of this share; `expected` are the texts by their keys in the reply.

    Without a text there is nothing to ask, and `unscored` has the rubrics by name.
    """

    sheet: prompt.Sheet
    message: str
    expected: Mapping[str, str]
    unscored: Mapping[str, Score]

    @classmethod
    def of(cls, trial: Trial, rubrics: Sequence[Rubric], longest: int) -> ExpectationsRequest:
        """Make the request; of a tool result and of the difference, the first `longest` characters are in it."""
        given = trial.sample.metadata.get("expectations")
        texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
        expected = {f"expectation_{number}": text for number, text in enumerate(texts, start=1)}
        reason = "" if expected else "the sample has no list of `expectations` in its metadata"
        entry = prompt.object_schema({"evidence": {"type": "string"}, "holds": {"type": "boolean"}})
        told = "\n".join(_ENTRY.format(key=key, number=key.rpartition("_")[2]) for key in expected)
        transcript = trial.transcript
        results = [tool_result(call, longest)[0] for call in transcript.tool_calls] if transcript else []
        return cls(
            prompt.Sheet(
                prompt.by_key(rubrics) if expected else {},
                prompt.object_schema(dict.fromkeys(expected, entry)),
                f"{_OPENING}\n\n{prompt.CLOSING.format(keys=told)}",
            ),
            prompt.message(
                {
                    "earlier": prompt.spoken_before(trial),
                    "task": trial.question,
                    "expected_output": prompt.golden_answer(trial.sample),
                    **{f"tool_result_{number}": text for number, text in enumerate(results, start=1)},
                    "changed_files": _changed(trial, longest),
                    "response": trial.output,
                    "expectations": "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)),
                },
                _TASK,
            ),
            expected,
            {each.name: Score(None, reason) for each in rubrics if reason},
        )

    def read(self, reply: str) -> ReplyVerdict:
        """Read a reply: the share that holds, by each rubric, or what is wrong with it."""
        try:
            data = read_object(reply, [*self.expected])
            found = [self._verdict(data.get(key), key) for key in self.expected]
        except ValueError as error:
            return ReplyVerdict.unusable(str(error), self.sheet)
        held = sum(each["holds"] for each in found)
        failed = "; ".join(f"not “{each['text']}”: {each['evidence']}" for each in found if not each["holds"])
        reason = f"{held} of {len(found)} expectations hold" + (f"; {failed}" if failed else "")
        scores: dict[str, Score] = {}
        for key, rubric in self.sheet.rubrics.items():
            low, high = rubric.scale.low, rubric.scale.high
            scores[key] = Score(low + (high - low) * held / len(found), reason, details={"expected": found})
        return ReplyVerdict(scores)

    def _verdict(self, entry: object, key: str) -> dict[str, Any]:
        if not isinstance(entry, dict) or not isinstance(entry.get("holds"), bool):
            raise ValueError(f"{key} has no `holds` that is true or false")
        evidence = encodable(str(entry.get("evidence", "")))
        return {"text": self.expected[key], "holds": entry["holds"], "evidence": evidence}


def _changed(trial: Trial, longest: int) -> str | None:
    """Return what the trial left in its workspace, `None` without one."""
    state = trial.transcript.end_state if trial.transcript else None
    if state is None:
        return None
    listed = "\n".join(f"{each.kind}: {each.path}" for each in state.changes) or "no file was changed"
    cut = f"\n[cut here: {longest} of {len(state.diff)} characters are shown]" if len(state.diff) > longest else ""
    return f"{listed}\n\n{state.diff[:longest]}{cut}"
