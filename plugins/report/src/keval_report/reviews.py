"""What the report says of judges, of anchors and of reviews by people: how far they agree, and how judges drifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import safe
from keval.errors import typed
from keval.records.formats import counted, interval, number, percent
from keval.store.run import Run
from keval_analysis.claims import UnverifiedClaim, worst_first
from keval_analysis.findings.anchors import AnchorFindings
from keval_analysis.findings.draws import Draw
from keval_analysis.findings.reviews import (
    ArmBias,
    JudgeAgreementWithPeople,
    PeopleAgreement,
    ReviewFindings,
)
from keval_analysis.findings.summary import Summary
from keval_report.claims import Level
from keval_report.words import joined, one_line, padded, rubric_name, run_name, shortened, with_interval


def judging_lines(summary: Summary) -> Iterator[str]:
    """Yield the lines; there are none if one judge graded once and flagged nothing."""
    rubrics = summary.agreement
    width = max((cell_len(rubric.metric) for rubric in rubrics), default=0)
    if any(len(rubric.judges) > 1 for rubric in rubrics):
        yield "Agreement of the judges: Krippendorff's alpha (ordinal), and weighted kappa of each pair."
        for rubric in rubrics:
            found = [_found(rubric.alpha, rubric.n, rubric.reason)]
            found += [f"{' × '.join(pair.judges)} {_found(pair.kappa, pair.n, pair.reason)}" for pair in rubric.pairs]
            yield f"  {padded(rubric.metric, width)}  {', '.join(found[:2])}"
            yield from (f"  {'':<{width}}  {pair}" for pair in found[2:])
    if any(rubric.spread for rubric in rubrics):
        yield "Standard deviation of each judge's repeated gradings of one answer:"
        for rubric in rubrics:
            spreads = (f"{spread.judge} {_found(spread.sd, spread.n, spread.reason)}" for spread in rubric.spread)
            yield f"  {padded(rubric.metric, width)}  {', '.join(spreads)}"
    for judge in summary.judges:
        took = [entry for entry in summary.judging if entry.judge == judge]
        if flagged := sum(entry.flagged for entry in took):
            told = sum(entry.told for entry in took)
            yield f"{judge} flagged unverified claims in {flagged} of {told} judgements"


def anchor_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each judge and rubric; there are none if the run has no anchors."""
    for found in summary.anchors:
        told = [_anchor_agreement(found), _drift(found)]
        if found.failed:
            told.append(f"{counted(found.failed, 'grading')} failed")
        yield one_line(f"Anchors, {rubric_name(found.metric)} by {found.judge}: {'; '.join(told)}.")


def _anchor_agreement(found: AnchorFindings) -> str:
    if found.same is None:
        return "no anchor has a label and a grade"
    bias = with_interval(found.bias, found.bias_low, found.bias_high)
    return f"{percent(found.same)} of {found.n} on the level of people, judge - people {bias}"


def _drift(found: AnchorFindings) -> str:
    drift = found.drift
    if drift.difference is None:
        return f"drift unknown ({drift.reason})"
    told = with_interval(drift.difference, drift.ci_low, drift.ci_high)
    changes = f", changed since then: {joined(drift.changes)}" if drift.changes else ""
    return f"drift {told} on {drift.n} since {drift.against}{changes}"


def claim_texts(claims: Sequence[UnverifiedClaim]) -> Sequence[str]:
    """Return the claims that no tool result is known to have, each once for a sample and an arm, the worst first."""
    told = (
        f"{one_line(each.sample)} ({each.agent} {each.condition}): {one_line(each.text)}"
        for each in worst_first(claims)
    )
    return [*dict.fromkeys(told)]


def claim_lines(claims: Sequence[UnverifiedClaim], width: int, run: Path, level: Level = "explained") -> Iterator[Text]:
    """Yield the worst claims that judges could not verify; the others are counted, and those that are in results."""
    loose = claim_texts(claims)
    if loose and level == "first":
        yield Text(f"{counted(len(loose), 'unverified claim')}; those of the worst answers first:", "yellow")
    for told in loose[:_MOST_CLAIMS]:
        line = safe(f"  {told}")
        line.truncate(width, overflow="ellipsis")
        yield line
    if len(loose) > _MOST_CLAIMS:
        yield safe(f"  {len(loose) - _MOST_CLAIMS:,} more: {typed('show', run_name(run), '--unverified')}")
    if level == "explained" and (
        traced := Counter(claim.source.partition(" #")[0] for claim in claims if claim.source)
    ):
        tools = ", ".join(f"{one_line(tool)} {count:,}" for tool, count in traced.most_common())
        yield safe(f"claims beyond the golden answers that are in tool results: {tools}")


def _found(value: float | None, n: int, reason: str | None) -> str:
    return f"undefined ({reason})" if value is None else f"{number(value)} (n={n})"


AGREEMENT_HEADS = ("answers", "weighted kappa", "95 % interval", "alpha", "same level", "within one", "judge - people")
"""The heads of a table of judges' agreement with people, after rubric and judge."""
_HEADS = ("judges with people", "weighted kappa", "same level", "judge - people", "n")
_MOST_CLAIMS = 10
_MOST_REASONS = 3
_NOT_RANDOM = {
    "draw": "answers drawn before the run had its present questions",
    "all": "all answers, of which some are not reviewed",
    "unknown": "answers chosen in an unknown way",
}
"""Ways of choosing answers after which they may be unlike the others of the run."""


def review_lines(summary: Summary) -> Iterator[str]:
    """Yield the report's lines on reviews; there are none if nobody reviewed."""
    found = summary.reviews
    if found is None:
        return
    yield reviewed_text(found)
    if found.judges:
        rows = [_HEADS, *(_row(each) for each in found.judges)]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  " + "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if found.people:
        told = "; ".join(map(people_text, found.people))
        yield f"  people with each other, Krippendorff's alpha: {told}"
    yield from (f"  {text}" for text in (*bias_texts(found), *correction_texts(found)))
    yield from warnings(found)


def bias_texts(found: ReviewFindings) -> Iterator[str]:
    """Yield how much higher than people each judge grades, arm by arm."""
    for each in found.judges:
        if each.arms:
            arms = "; ".join(map(_arm_bias, each.arms))
            yield f"{rubric_name(each.metric)} by {one_line(each.judge)}, judge - people (blind): {arms}"


def _arm_bias(arm: ArmBias) -> str:
    bias = with_interval(arm.bias, arm.ci_low, arm.ci_high)
    told = [f"{one_line(arm.agent)} {one_line(arm.condition)} {bias} (n={arm.n})"]
    for name, rate in (("sensitivity", arm.sensitivity), ("specificity", arm.specificity)):
        if rate is not None:
            told.append(f"{name} {number(rate.share)} {interval(rate.ci_low, rate.ci_high)} (n={rate.n})")
    return ", ".join(told)


def correction_texts(found: ReviewFindings) -> Iterator[str]:
    """Yield each effect that labels correct with what the judge's bias adds to it, and the first reasons for none."""
    refused: dict[str, list[str]] = {}
    for each in found.corrected:
        against = f"{each.against.agent} {each.against.condition}"
        what = f"{rubric_name(each.metric)} by {each.judge}, {each.agent} {each.condition} against {against}"
        if each.difference is None:
            refused.setdefault(each.reason or "", []).append(what)
            continue
        how = f", {each.pairs} pairs" if each.pairs is not None else ""
        alone = "" if each.tuning else "; the judge's levels do not rise with people's, so that labels alone count"
        told = with_interval(each.difference, each.ci_low, each.ci_high)
        bias = with_interval(each.bias_difference, each.bias_low, each.bias_high)
        whole = f"{what}: corrected by {each.labels} labels{how} {told}; judge - people differs by {bias}{alone}"
        yield one_line(whole)
    for reason, effects in [*refused.items()][:_MOST_REASONS]:
        more = f" and {len(effects) - 1} more" if len(effects) > 1 else ""
        yield one_line(f"{effects[0]}{more}: no effect is corrected, because {reason}")


def reviewed_text(found: ReviewFindings) -> str:
    """Return in a sentence how much was reviewed, by whom, and how."""
    names = [f"{one_line(each.reviewer)} {each.answers}" for each in found.reviewers]
    people = "1 person" if len(names) == 1 else f"{len(names)} people"
    parts = [f"{counted(found.answers, 'answer')} reviewed by {people} ({', '.join(shortened(names, 5))})"]
    if found.notes:
        parts.append(counted(found.notes, "note"))
    if found.reviews:
        parts.append("all blind" if found.blind == found.reviews else f"{found.blind} of {found.reviews} blind")
    return "; ".join(parts if found.answers else ["No answer of this run has a review"]) + "."


def warnings(found: ReviewFindings) -> Iterator[str]:
    """Yield what makes figures about reviews less than they seem."""
    if found.outdated:
        told = f"{counted(found.outdated, 'review')} {'is' if found.outdated == 1 else 'are'} ignored, because"
        yield f"{told} the trials were run again and have new answers."
    if found.drawn:
        drawn = (
            f"{arm.agent} {arm.condition} {arm.reviewed} of {arm.drawn}"
            + (f", and skipped {arm.skipped}" if arm.skipped else "")
            for arm in found.drawn
        )
        yield f"Of the answers drawn at random, people reviewed: {'; '.join(map(one_line, drawn))}."
    if found.uncounted:
        shares = [
            f"{count} of {found.reviews} reviews {'is' if count == 1 else 'are'} of {_NOT_RANDOM[name]}"
            for name, count in found.uncounted.items()
        ]
        yield f"{joined(shares)}, so the figures on judges leave them out."


def people_text(found: PeopleAgreement) -> str:
    """Return how far people agree on a rubric."""
    alpha = number(found.alpha) if found.alpha is not None else f"undefined ({found.reason})"
    return f"{rubric_name(found.metric)} {alpha} (n={found.n})"


def agreement_cells(found: JudgeAgreementWithPeople) -> Sequence[str]:
    """Return the cells of a judge's row, below AGREEMENT_HEADS."""
    agreement = number(found.kappa), interval(found.ci_low, found.ci_high) or "–", number(found.alpha)
    return (str(found.n), *agreement, percent(found.same), percent(found.near), _bias(found))


def _bias(found: JudgeAgreementWithPeople) -> str:
    """Return how much higher than people a judge grades, with its interval."""
    return with_interval(found.bias, found.bias_low, found.bias_high)


def _row(found: JudgeAgreementWithPeople) -> tuple[str, ...]:
    kappa = f"{number(found.kappa)} {interval(found.ci_low, found.ci_high)}".rstrip()
    whose = f"{rubric_name(found.metric)} by {one_line(found.judge)}"
    told = f"undefined ({found.reason})" if found.kappa is None else kappa
    return (whose, told, percent(found.same), _bias(found), str(found.n))


def print_draw(run: Run, draw: Draw, count: int, console: Console) -> None:
    """Print a draw for which `count` answers were asked. No answer's arm is named, as reviews are to be blind."""
    questions = {answer.sample for answer in draw.answers}
    arms = len(draw.frame)
    told = f"draw {draw.id}: {counted(len(draw.answers), 'answer')} to {counted(len(questions), 'question')}"
    why = "" if len(draw.answers) == count else f" (of {count} asked for, as each question is drawn in all {arms} arms)"
    if len(questions) * arms < count - arms + 1:
        why = f" (of {count} asked for: no question is left)"
    console.print(safe(f"{told}{why}, seed {draw.seed}", "bold"), soft_wrap=True)
    whose = f"the levels that {draw.judge} gave for {rubric_name(draw.metric)}"
    told = f"{draw.drawn} of {draw.questions} questions are drawn now, all equally likely, spread over {whose}"
    console.print(safe(told), soft_wrap=True)
    folder = run.path.parent.parent
    # `keval view` looks there by itself.
    view = typed("view", *([] if str(folder) == "results" else [folder]))
    console.print(safe(f"to label the answers: {view}, then the run, Review, and this draw"), soft_wrap=True)
