"""Key facts: scores how much of what can be looked up in a golden answer stands in the answer."""

from __future__ import annotations

import attrs
import regex

from keval import Score, Trial
from keval_metrics_basic.facts import comparable, facts_in, plainly_written
from keval_metrics_basic.text import NO_TRANSCRIPT, bounded, excerpt, is_place, no_reference, quoted, texts_at, tokens


@attrs.frozen
class KeyFacts:
    """Scores the share of the golden answer's facts that the answer has: numbers with units, code, paths, names.

    What the question says already does not count. A golden answer without such facts is held against the answer by its
    words. Of several golden answers, the one of which the answer has most counts.
    """

    reference: str = attrs.field(default="answer", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Look for each fact in the answer."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        question = comparable("\n".join((trial.sample.question, *trial.sample.turns)))
        facts = [_facts(golden, question) for golden in texts_at(trial.sample, self.reference)]
        if not facts or not all(facts):
            wanted = "a text with words in it or a list of such texts"
            return no_reference(trial.sample, self.reference, wanted, "`reference`, another place in the sample")
        answer = comparable(trial.output)
        held = [({fact: fact in answer for fact in each}, each) for each in facts]
        has, said = max(held, key=lambda each: sum(each[0].values()) / len(each[0]))
        found, missing = ([said[fact] for fact, there in has.items() if there is kept] for kept in (True, False))
        reason = f"{len(found)} of {len(has)} facts" + (f"; missing: {quoted(missing)}" if missing else "")
        details = {"found": [excerpt(text) for text in found[:50]], "missing": [excerpt(text) for text in missing[:50]]}
        return Score(round(len(found) / len(has), 6), reason, details=details)


def _facts(golden: str, question: str) -> dict[str, str]:
    """Return the facts of a golden answer, or else its words, comparable and as they stand there."""
    whole = comparable(golden)
    facts = {fact.key: fact.said for fact in facts_in(plainly_written(golden))}
    if new := {fact: term for fact, term in facts.items() if fact in whole and fact not in question}:
        return new
    words = {bounded(word): word for word in tokens(whole.replace("\0", "")) if regex.search(r"\w", word)}
    return {word: term for word, term in words.items() if word not in question} or words
