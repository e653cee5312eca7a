"""Leaks: what gives a golden answer away to the agent, or an arm to the judge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import attrs
import orjson

from keval import Run, Trial
from keval.records.cassettes import ModelTraffic
from keval.records.formats import counted
from keval_instrument.answer_parts import statements
from keval_instrument.check_folder import Material
from keval_instrument.findings import Defect, Examined, Figure
from keval_replay.recording import Recording

Kind: TypeAlias = Literal["golden answer", "rubric", "condition", "agent", "model"]
Place: TypeAlias = Literal[
    "question", "history", "system prompt", "tool descriptions", "tool results", "answer", "judge's request"
]

FIGURES = {
    "leaks": "In how many samples a golden answer or a rubric is given away to the agent, or an arm to the judge.",
    "in_results": "In how many samples a tool returned the golden answer word for word, as a context may.",
    "not_searched": "How many golden answers and names of arms are too short or too ordinary to be searched for.",
}

_REMEDIES: Mapping[Kind, str] = {
    "golden answer": "take it out, or ask another question",
    "rubric": "keep what answers are graded by away from agents",
    "condition": "give the condition a label that says nothing, or keep it out of texts",
    "agent": "give the agent a label that says nothing, or keep it out of texts",
    "model": "forbid it in the system prompt, alike for all agents",
}
_WORDS, _CHARACTERS = 4, 16
"""A golden answer of fewer words, and fewer characters, may stand anywhere by chance."""
_SENTENCE = 8
"""A sentence of so many words, of a golden answer or a rubric, stands nowhere else by chance."""
_SHORTEST_NAME = 4
_WORD = re.compile(r"\w+")


def examine(material: Material) -> Examined:
    """Search what the run of the evaluation kept. Raises RunError: it is damaged."""
    run = material.asked
    if run is None:
        return Examined("leaks", reason=material.reasons.get("asked", "there is no run of the evaluation"))
    search = _Search.of(run)
    for trial in run.trials():
        search.look(trial)
    return Examined("leaks", tuple(search.figures()), tuple(search.defects()))


class _Leak(NamedTuple):
    """What stands where it should not; `name` says which label or model."""

    kind: Kind
    place: Place
    name: str = ""


@attrs.frozen(eq=False)
class _Search:
    """Looks through the trials of a run, one by one.

    `needles` are by sample the golden answer and its long sentences, and `sentences` those of the rubrics. `names` are
    patterns of labels and models, by kind and label; so many more are `ordinary` words, or words of the dataset.
    `found` has the samples of each leak, and `elsewhere` the names that were found in answers of another arm, too: they
    give no arm away.
    """

    run: Run
    recording: Recording | None
    needles: Mapping[str, tuple[str, ...]]
    sentences: tuple[str, ...]
    names: Mapping[tuple[Kind, str], re.Pattern[str]]
    ordinary: int
    found: dict[_Leak, dict[str, None]] = attrs.field(factory=lambda: defaultdict(dict), init=False)
    elsewhere: set[tuple[Kind, str]] = attrs.field(factory=set, init=False)

    @classmethod
    def of(cls, run: Run) -> _Search:
        manifest = run.manifest
        rubrics = [rubric.instructions for rubric in manifest.rubrics.values()]
        known = [*rubrics, *chain.from_iterable(rubric.levels.values() for rubric in manifest.rubrics.values())]
        for sample in run.samples:
            known += [*sample.asked, sample.answer or "", *(message.text for message in sample.history)]
        names: dict[tuple[Kind, str], re.Pattern[str]] = {}
        for label in manifest.conditions if len(manifest.conditions) > 1 else ():
            names["condition", label] = _pattern(re.escape(label))
        for label, entry in manifest.agents.items():
            if len(manifest.agents) > 1:
                names["agent", label] = _pattern(re.escape(label))
            if entry.model is not None and not entry.simulated:
                names["model", label] = _of_model(entry.model.rpartition("/")[2])
        text = "\n".join(known)
        kept = {
            (kind, label): name
            for (kind, label), name in names.items()
            # A short label, and a condition's that is a word, such as `docs`, may stand anywhere.
            if len(label) >= _SHORTEST_NAME and not (kind == "condition" and label.isalpha()) and not name.search(text)
        }
        return cls(
            run,
            Recording.open(run) if manifest.recording is not None else None,
            {sample.id: _needles(sample.answer) for sample in run.samples if sample.answer},
            tuple(chain.from_iterable(map(_long_sentences, rubrics))),
            kept,
            len(names) - len(kept),
        )

    def look(self, trial: Trial) -> None:
        """Look through what the agent saw in a trial, and what a judge sees of it."""
        golden = self.needles.get(trial.sample.id, ())
        own: Mapping[Kind, str] = {"condition": trial.condition, "agent": trial.agent, "model": trial.agent}
        for place, text in _seen_by_agent(self.run, trial):
            words = _words(text)
            if any(needle in words for needle in golden):
                self._note(trial, _Leak("golden answer", place))
            if any(sentence in words for sentence in self.sentences):
                self._note(trial, _Leak("rubric", place))
            label = self.names.get(("condition", trial.condition))
            if label and place != "tool results" and label.search(text):
                self._note(trial, _Leak("condition", place, trial.condition))
        shown: list[tuple[Place, str]] = [("answer", trial.output)]
        shown += [("judge's request", text) for text in self._requests_of_judges(trial)]
        for (kind, name), pattern in self.names.items():
            where = next((place for place, text in shown if pattern.search(text)), None)
            if where is not None and own[kind] == name:
                self._note(trial, _Leak(kind, where, name))
            elif where is not None and kind != "model":
                self.elsewhere.add((kind, name))

    def figures(self) -> Iterator[Figure]:
        """Yield how many samples something is given away in."""
        leaks = self._leaks()
        samples = len(self.run.samples)
        searched = sum(map(bool, self.needles.values()))
        for kind in _REMEDIES:
            within = {sample for leak, found in leaks.items() if leak.kind == kind for sample in found}
            n = searched if kind == "golden answer" else samples
            reason = None if n else "there is no golden answer to search for"
            yield Figure("leaks", {"of": kind}, float(len(within)) if n else None, n, reason=reason, unit="count")
        results = self.found.get(_Leak("golden answer", "tool results"), {})
        reason = None if searched else "there is no golden answer to search for"
        yield Figure("in_results", {}, float(len(results)) if searched else None, searched, reason=reason, unit="count")
        short = len(self.needles) - searched
        yield Figure("not_searched", {"of": "golden answer"}, float(short), len(self.needles), unit="count")
        names = self.ordinary + len(self.names)
        yield Figure("not_searched", {"of": "name"}, float(self.ordinary), names, unit="count")

    def defects(self) -> Iterator[Defect]:
        """Yield each leak with the first of its samples."""
        for leak, found in self._leaks().items():
            what = f"the {leak.kind}{f' {leak.name!r}' if leak.name else ''}"
            told = f"{what} stands in the {leak.place} in {counted(len(found), 'sample')}; {_REMEDIES[leak.kind]}"
            yield Defect(told, next(iter(found)))

    def _leaks(self) -> dict[_Leak, dict[str, None]]:
        return {
            leak: found
            for leak, found in self.found.items()
            if leak != _Leak("golden answer", "tool results")
            and (leak.place not in ("answer", "judge's request") or (leak.kind, leak.name) not in self.elsewhere)
        }

    def _note(self, trial: Trial, leak: _Leak) -> None:
        self.found[leak][trial.sample.id] = None

    def _requests_of_judges(self, trial: Trial) -> Iterator[str]:
        """Yield the texts of what judges were asked about a trial, as far as that was recorded."""
        if self.recording is not None:
            for judge in self.run.manifest.judges:
                for each in self.recording.of_judgement(trial.id, judge, 1):
                    if isinstance(each, ModelTraffic):
                        yield "\n".join(_strings(_read(each.request.body)))


def _seen_by_agent(run: Run, trial: Trial) -> Iterator[tuple[Place, str]]:
    """Yield the texts that the agent was given; of a trial whose request was not kept, without tool descriptions."""
    transcript, sample = trial.transcript, trial.sample
    earlier = [message.text for message in sample.history]
    yield "question", "\n".join(sample.asked)
    yield "history", "\n".join(earlier)
    request = run.kept_request(transcript)
    if request is not None:
        body = _read(request)
        yield "tool descriptions", "\n".join(_strings(body.pop("tools", None)))
        rest = "\n".join(_strings(body))
        for said in (*sample.asked, *earlier):
            # The question is in the request as well, and was looked at by itself.
            rest = rest.replace(said, "")
        yield "system prompt", rest
    elif transcript is not None:
        yield "system prompt", transcript.instructions or ""
    for call in transcript.tool_calls if transcript is not None else ():
        yield "tool results", call.result or ""


def _read(body: bytes) -> dict[str, Any]:
    """Return the fields of a request but the model's name; none if it is no JSON object."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return {key: value for key, value in data.items() if key != "model"} if isinstance(data, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


# The prompt and the tools of an arm are the same in all of its trials.
@lru_cache(64)
def _words(text: str) -> str:
    """Return the words of a text in lower case, each between spaces: what stands in it, however it is written."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _needles(answer: str) -> tuple[str, ...]:
    """Return what gives a golden answer away: all of it, or a long sentence of it."""
    words = _words(answer)
    long_enough = len(words.split()) >= _WORDS or len(words.strip()) >= _CHARACTERS
    return (words, *_long_sentences(answer)) if long_enough else ()


def _long_sentences(text: str) -> list[str]:
    found = [_words(part.of(text)) for part in statements(text)]
    return [words for words in found if len(words.split()) >= _SENTENCE]


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{name})(?![\w-])", re.IGNORECASE)


def _of_model(name: str) -> re.Pattern[str]:
    """Return the pattern of a model's name, and of an answer that says to be by one of its family: "As GPT-5, I"."""
    family = re.match(r"[A-Za-z]{3,}", name)
    said = rf"(?:as {family[0]}[\w.-]*(?=,)|(?:i am|i'm|my name is) {family[0]}[\w.-]*)" if family else ""
    return _pattern("|".join(filter(None, (re.escape(name), said))))
