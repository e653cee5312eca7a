"""Cautions: what a report says before its figures, because it could change what somebody decides by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keval.records.formats import counted, number
from keval.records.trial import LIMIT, WRITTEN_CALL, WRITTEN_CALL_REMEDY
from keval_analysis.findings.effects import Contrast
from keval_analysis.findings.summary import Summary
from keval_analysis.variation import mixed_words
from keval_report import claims as say
from keval_report.blocks import Block, claims_of, grouped
from keval_report.contrasts import placebo_words
from keval_report.origin import replay_sentences
from keval_report.run_claims import JUDGE_DRIFT, interim_words, looks_words
from keval_report.totals import compliance_text, favours, remark_sentences, unrun_text
from keval_report.words import display_names, joined, one_line, rubric_name, with_interval

MANY_FAILED = 0.05
"""The share of an arm's trials from which on failures are a caution."""
MOSTLY_UNCALLED = 0.5
"""The share of an arm's trials without a call of a tool that it has, from which on that is a caution."""
LEAST_ALPHA = 2 / 3
"""Krippendorff (2004), Content Analysis, 11.4: below it not even tentative conclusions are to be drawn."""
LEAST_KAPPA = 0.4
"""Landis and Koch (1977), table 2: up to here agreement is no more than fair."""
MOST_SPREAD = 0.5
"""Half a level: from there on, a judge that grades an answer again often gives another level."""

A_REAL_MODEL = "ollama/qwen3:4b"

_NAMED = 3
"""Tools of a server that a caution names."""


def cautions(summary: Summary, blocks: Sequence[Block], *, under_way: bool = False) -> list[str]:
    """Return the cautions, a line each, the most serious first; none if the figures can be taken as they are."""
    return list(map(one_line, _cautions(summary, blocks, under_way=under_way)))


def _cautions(summary: Summary, blocks: Sequence[Block], *, under_way: bool) -> Iterator[str]:
    if summary.changed:
        yield f"{joined(summary.changed)} changed after the run ended; the figures are of what is there now"
    if told := unrun_text(summary, under_way=under_way):
        yield told
    if summary.unfinished and summary.effects:
        yield f"{interim_words(summary)}: intervals without verdicts, until the others are made"
    elif summary.effects and (told := looks_words(summary)):
        yield told
    yield from (
        f"{arm.failed} of {arm.trials} trials of {arm.agent} {arm.condition} failed; effects are of the others"
        for arm in summary.trials
        if arm.failed > MANY_FAILED * arm.trials
    )
    yield from _unscored(summary)
    yield from _lost_to_limits(summary)
    yield from _unserved(summary)
    yield from _uncalled(summary)
    if summary.placeholders:
        yield f"questions of `keval init` that are yet to be replaced by your own: {summary.placeholders:,}"
    yield from (mixed_words(label, summary.baseline, varied) for label, varied in summary.mixed.items())
    yield from _verdicts(blocks)
    yield from (told for each in summary.contrasts if each.kind == "placebo" for told in _placebo(summary, each))
    yield from (compliance_text(arm) for arm in summary.trials if favours(arm))
    yield from _judges(summary)
    yield from _anchors(summary)
    yield from _impossible_usage(summary)
    yield from _unlike_calls(summary)
    yield from _unverified(summary)
    yield from remark_sentences(summary)
    # The first one says where the answers are from, as the headline does.
    yield from [*replay_sentences(summary.replay)][1:]


def _unscored(summary: Summary) -> Iterator[str]:
    """Yield which arms have far more answers without a score by a metric than the arm that has the fewest."""
    names = display_names(entry.scorer for entry in summary.scorers)
    for scorer, arms in grouped(summary.arms, lambda arm: arm.scorer).items():
        # By identity: scores of arms hold mappings, so that they have no hash.
        made = {id(arm): arm.scored + arm.neutral + arm.unscored for arm in arms}
        shares = {id(arm): arm.unscored / made[id(arm)] for arm in arms if made[id(arm)]}
        least = min(shares.values(), default=0.0)
        for arm in arms:
            if shares.get(id(arm), 0.0) - least > MANY_FAILED:
                whose = f"{arm.unscored:,} of {made[id(arm)]:,} answers of {arm.agent} {arm.condition}"
                yield f"{names[scorer]} gives {whose} no score; effects are of the others"


def _lost_to_limits(summary: Summary) -> Iterator[str]:
    """Yield which arms lost trials to a limit, however few: what takes most is not lost by chance."""
    for arm in summary.trials:
        if count := sum(count for failure, count in arm.failures.items() if failure.endswith(f": {LIMIT}")):
            told = f"{count} of {arm.trials} trials of {arm.agent} {arm.condition} reached a limit of execution.limits"
            yield f"{told} and are lost, which favours the arm if these are its hard questions"


def _unserved(summary: Summary) -> Iterator[str]:
    """Yield how often simulated models got nothing from tools that nobody changed, and how to ask a real one."""
    arms = [arm for arm in summary.trials if arm.unserved is not None]
    unserved, trials = sum(arm.unserved or 0 for arm in arms), sum(arm.trials for arm in arms)
    if unserved > MANY_FAILED * trials:
        told = f"simulated: {unserved:,} of {counted(trials, 'trial')} called no tool or had only errors"
        yield f"{told}; says nothing of your server. Ask a real model: `-m {A_REAL_MODEL}` (or one of `keval models`)"


def _uncalled(summary: Summary) -> Iterator[str]:
    """Yield which arms hardly used their tools: whether these help is not what their scores tell."""
    simulated = {arm.agent for arm in summary.trials if arm.unserved is not None}
    written = [(arm, arm.failures.get(f"model: {WRITTEN_CALL}", 0)) for arm in summary.trials]
    if whose := [f"{count:,} of {arm.trials:,} of {arm.agent} {arm.condition}" for arm, count in written if count]:
        yield f"answers that write calls of tools as texts are lost: {', '.join(whose)}; {WRITTEN_CALL_REMEDY}"
    for arm, count in written:
        # A call that was written as text is no call, and was told of above, as were simulated models.
        silent = (arm.uncalled or 0) - count if arm.agent not in simulated else 0
        if silent > 0 and silent >= MOSTLY_UNCALLED * arm.trials:
            yield f"{arm.agent} {arm.condition} called no tool in {silent:,} of {counted(arm.trials, 'trial')}"


def _impossible_usage(summary: Summary) -> Iterator[str]:
    """Yield whose models told tokens that cannot be true."""
    arms = (
        (f"{arm.agent} {arm.condition}", each) for arm in summary.trials for each in (arm.usage, arm.given_up.usage)
    )
    judges = ((f"the judge {judging.judge}", judging.usage) for judging in summary.judging)
    for whose, impossible in {whose: usage.impossible for whose, usage in (*arms, *judges) if usage.impossible}.items():
        yield f"the model of {whose} told what cannot be a count of tokens ({impossible}), so that they are unknown"


def _verdicts(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield which verdicts could be others, by block if several blocks have any."""
    decided = [
        block for block in blocks if any(not claim.is_open or say.HANGS_ON_LOST.holds(claim) for claim in block.claims)
    ]
    for statement in (say.JUDGE_COULD_DECIDE, say.LOST_COULD_DECIDE, say.UNLIKE_QUESTIONS, say.ONE_COULD_DECIDE):
        # A verdict that does not exist cannot be another one.
        for block in decided:
            if names := dict.fromkeys(claim.name for claim in block.claims if statement.holds(claim)):
                of = f" ({block.title})" if len(decided) > 1 else ""
                yield statement.says.format(metrics=f"{', '.join(names)}{of}")


def _placebo(summary: Summary, contrast: Contrast) -> Iterator[str]:
    """Yield for each agent that a placebo does as well as the real context, or better."""
    if summary.unfinished:
        return
    real, placebo = contrast.against, contrast.condition
    found = claims_of(contrast.effects, summary.scorers, {summary.run: summary.arms}, lambda effect: effect.agent)
    by_agent = grouped((claim for claim in found if claim.effect.difference is not None), lambda claim: claim.label)
    for agent, claims in by_agent.items():
        whose = f" ({agent})" if len(by_agent) > 1 else ""
        if say.NO_CLEAR_INFORMATION.holds(claims):
            told = f"{real} is not clearly better than its placebo {placebo}{whose}"
            yield f"{told}: its information may not be what helps"
        if harmed := [claim for claim in claims if say.BETTER.holds(claim)]:
            metrics = ", ".join(claim.name for claim in harmed)
            where = placebo_words(contrast)[0]
            yield say.INFORMATION_HARMS.says.format(metrics=f"{metrics}{whose}", where=where).rstrip(".")


def _judges(summary: Summary) -> Iterator[str]:
    for rubric in summary.agreement:
        name = rubric_name(rubric.metric)
        if rubric.alpha is not None and rubric.alpha < LEAST_ALPHA:
            yield f"judges hardly agree on {name}: Krippendorff's alpha {number(rubric.alpha)}"
        for spread in rubric.spread:
            if spread.sd is not None and spread.sd >= MOST_SPREAD:
                yield f"{spread.judge} grades {name} of the same answer differently, by {number(spread.sd)} levels (sd)"
    for each in summary.reviews.judges if summary.reviews else ():
        if each.kappa is not None and each.kappa <= LEAST_KAPPA:
            name = rubric_name(each.metric)
            yield f"{each.judge} hardly agrees with people on {name}: weighted kappa {number(each.kappa)}"


def _anchors(summary: Summary) -> Iterator[str]:
    for found in summary.anchors:
        drift = found.drift
        if JUDGE_DRIFT.holds(drift):
            yield JUDGE_DRIFT.says.format(
                drift=with_interval(drift.difference, drift.ci_low, drift.ci_high),
                anchors=counted(drift.n, "anchor"),
                run=drift.against,
                rubric=rubric_name(found.metric),
                judge=found.judge,
                changes=f"; changed since then: {joined(drift.changes)}" if drift.changes else "",
            )
    for each in summary.same_vendor:
        yield f"the judge {each.judge} is of the same vendor as {joined(each.agents)} ({each.vendor}) and may favour it"


def _unverified(summary: Summary) -> Iterator[str]:
    names = dict.fromkeys(
        name for servers in summary.servers.values() for name, sharing in servers.items() if not sharing.verified
    )
    if names:
        yield f"trials share the server {joined([*names])}, and whether it keeps them apart is not verified"


def _unlike_calls(summary: Summary) -> Iterator[str]:
    """Yield which shared servers answered equal calls of different trials with different results."""
    for server, tools in grouped(summary.unlike_calls, lambda each: each.server).items():
        counts = [f"{each.tool} {each.unlike:,} of {each.compared:,}" for each in tools[:_NAMED]]
        more = [f"{len(tools) - _NAMED} more"] if len(tools) > _NAMED else []
        told = f"trials share the server {server}, and equal calls gave other results than in an earlier trial"
        yield f"{told} ({', '.join([*counts, *more])}): it remembers, or its data changed"
