"""A run as Markdown, for a pull request: sentences, gates, effects, what got worse, and how it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from keval.records.formats import number, signed
from keval_analysis.findings.formats import interval_of
from keval_analysis.findings.summary import Summary
from keval_report import reviews as people
from keval_report.blocks import Block
from keval_report.cautions import cautions
from keval_report.claims import Claim
from keval_report.contexts import difference_texts
from keval_report.contrasts import all_blocks
from keval_report.effects import verdict_words
from keval_report.gates import unmet_texts
from keval_report.origin import decided_on, origin_label
from keval_report.report import Report
from keval_report.routing import ROUTING_HEADS
from keval_report.sentences import sentences
from keval_report.totals import totals
from keval_report.use import TEXT_HEADS, tool_texts

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in a comment; the rest is for what others put around it."""
_LONGEST = 300
"""Characters of one text of others, such as a label or a question."""
_SENTENCE = 2_000
_MOST_WORSE = 20
"""Questions that are named as having got worse."""

_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
# What begins a list, a heading or an underline of one, or a numbered item.
_AT_START = re.compile(r"^(?=[-+=#])|^\d+(?=[.)](\s|$))")
_REFERENCE = re.compile(r"@|#|(?<=GH)-|(?<=:)//|(?<=www)\.", re.IGNORECASE)
"""What GitHub makes a mention, a reference to an issue or a link of, although it is no Markdown."""
_APART = "&#8203;"
"""A space without width. A character reference alone does not help: GitHub looks for mentions in what it shows."""


def escaped(text: str, longest: int = _LONGEST) -> str:
    """Return text of others as one line of Markdown that shows it and does nothing.

    Markup, HTML, borders of tables, mentions, links and references to issues have no effect.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    line = line if len(line) <= longest else f"{line[:longest]} …"
    # The ampersand first, as the others write one.
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _AT_START.sub(r"\g<0>\\", _MARKUP.sub(r"\\\g<0>", line))
    return _REFERENCE.sub(_taken_apart, line)


def _taken_apart(match: re.Match[str]) -> str:
    # A character reference of ours has a # of its own, so only the text's are here yet.
    return f"{match[0]}{_APART}" if match[0] in "@#" else f"{_APART}{match[0]}"


def markdown(report: Report) -> str:
    """Return a run as Markdown of less than 60,000 characters: what one decides by, and folded the rest.

    Raises RunError.
    """
    summary = report.summary
    short = all_blocks(summary, "first")
    took = escaped(" · ".join(totals(summary)), _SENTENCE)
    first = (_head(report, short), _gates(report), _effects(summary, short), [took])
    folded = (
        ("What was found, in sentences", [_items(sentences(summary))]),
        ("All effects", _effects(summary, report.blocks)),
        ("Questions that got worse", _worse(report)),
        ("Reviews by people", _reviews(summary)),
        ("Use of tools", _pairs(tool_texts(summary))),
        ("Instructions and skills", _rows(TEXT_HEADS, report.texts)),
        ("Choice of skills and tools", _rows(ROUTING_HEADS, report.routing)),
        *((escaped(name), (f"- {escaped(line, _SENTENCE)}" for line in lines)) for name, lines in report.parts),
        ("What was changed", _pairs(difference_texts(report.run))),
        ("How it was made", _made(report)),
    )
    return _cut(chain(*first, *(_folded(title, parts) for title, parts in folded)))


def _items(texts: Iterable[str]) -> str:
    """Return a list of texts of others as one block; an empty text without any."""
    return "\n".join(f"- {escaped(text, _SENTENCE)}" for text in texts)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the same of what something is told of, and what is told."""
    if told := [f"- {escaped(what)}: {escaped(text, _SENTENCE)}" for what, text in pairs]:
        yield "\n".join(told)


_END = "</details>"


def _folded(title: str, parts: Iterable[str]) -> Iterator[str]:
    """Yield parts that a reader unfolds; nothing without any."""
    if found := [*parts]:
        yield f"<details><summary>{title}</summary>"
        yield from (*found, _END)


def _cut(blocks: Iterable[str]) -> str:
    """Join blocks, each of whole lines, and stop before they become too long."""
    note = "\n\n*The rest is left out, because a comment has a maximum length; `keval report` shows all.*\n"
    text, is_folded = "", False
    for block in blocks:
        # Whole lines: half a row of a table or half a tag would break what follows.
        for line in [*block.splitlines(), ""]:
            # There is always room left for the note and the end of what is folded.
            if len(text) + len(line) + len(note) + len(_END) + 2 >= MOST_CHARACTERS:
                return text.rstrip() + (f"\n\n{_END}" if is_folded else "") + note
            text += f"{line}\n"
            is_folded = line.startswith("<details>") or (is_folded and line != _END)
    return text.rstrip() + "\n"


def _head(report: Report, blocks: Sequence[Block]) -> Iterator[str]:
    summary = report.summary
    yield f"## keval: {escaped(summary.evaluation)}"
    if summary.simulated:
        names = ", ".join(map(escaped, summary.simulated))
        yield f"**SIMULATED**: {names}. The figures show that keval works, not what a model can do."
    if note := report.summary.note:
        yield escaped(note, _SENTENCE)
    if origin := origin_label(summary):
        yield f"**{escaped(origin)}**"
    if told := cautions(summary, blocks):
        yield "\n".join(f"- **caution**: {escaped(text, _SENTENCE)}" for text in told)


def _gates(report: Report) -> Iterator[str]:
    if not report.gates:
        return
    rows = [
        (row.verdict if row.verdict == "held" else f"**{row.verdict}**", escaped(row.gate), escaped(row.detail))
        for row in report.gates
    ]
    yield _table(("verdict", "gate", "found"), rows)
    if told := decided_on(report.summary.replay):
        yield f"*{escaped(told)}*"
    if unmet := unmet_texts(report.summary.unmet):
        yield "Expectations that were not met:"
        yield "\n".join(f"- {escaped(text)}" for text in unmet)


def _effects(summary: Summary, blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        yield f"#### {escaped(block.title)}"
        if block.claims:
            heads = ["metric", "for", "means", "difference", "95 % interval", "n", "verdict"]
            rows = [_row(claim) for claim in block.claims]
            if not block.labelled:
                heads, rows = [*heads[:1], *heads[2:]], [[*row[:1], *row[2:]] for row in rows]
            yield _table(heads, rows)
        if block.remarks:
            yield _items(f"{heading}: {told}" for heading, told in block.remarks)
    if not summary.effects:
        yield "Nothing is compared in this run."


def _row(claim: Claim) -> list[str]:
    effect, words = claim.effect, verdict_words(claim)
    means = ""
    if effect.mean is not None and effect.against_mean is not None:
        means = f"{number(effect.against_mean)} → {number(effect.mean)}"
    verdict = f"**{words}**" if effect.verdict in ("better", "worse") else words
    figures = [means, signed(effect.difference), interval_of(effect) or "–", str(effect.n)]
    return [escaped(claim.name), escaped(claim.label), *figures, "; ".join(filter(None, (verdict, claim.correction)))]


def _worse(report: Report) -> Iterator[str]:
    """Yield the questions that got worse with a condition; with another agent, if there is one condition only."""
    if report.comparisons[0].against is None:
        return
    known = [each for each in report.comparisons if not each.ablation]
    conditions = [each for each in known if each.against and each.arm[0] == each.against[0]]
    blocks = []
    for comparison in conditions or known:
        fallen = [
            (worst, question)
            for number, question in enumerate(report.outline.questions)
            if comparison.got_worse(number) and (worst := comparison.worst(number)) is not None
        ]
        if not fallen:
            continue
        rows = [
            (escaped(each.id), escaped(f"{report.names[worst.scorer]} {signed(worst.value)}"), escaped(each.asked, 120))
            for worst, each in sorted(fallen, key=lambda item: item[0].share)
        ]
        more = f"\n\n{len(rows) - _MOST_WORSE} more questions got worse." if len(rows) > _MOST_WORSE else ""
        blocks.append(f"#### {escaped(comparison.label)}")
        blocks.append(_table(("question", "what fell most", "asked"), rows[:_MOST_WORSE]) + more)
    yield from blocks or ["None."]


def _reviews(summary: Summary) -> Iterator[str]:
    """Yield what people said of answers, and how far judges agree with them."""
    found = summary.reviews
    if found is None:
        return
    yield escaped(people.reviewed_text(found), _SENTENCE)
    if found.judges:
        rows = [(escaped(each.metric), escaped(each.judge), *people.agreement_cells(each)) for each in found.judges]
        yield _table(("rubric", "judge", *people.AGREEMENT_HEADS), rows)
    alpha = (f"people with each other, Krippendorff's alpha: {people.people_text(each)}" for each in found.people)
    judges = (*people.bias_texts(found), *people.correction_texts(found))
    if told := _items([*alpha, *judges, *people.warnings(found)]):
        yield told


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table of texts of others, such as how often instructions were read; nothing without rows."""
    if rows:
        yield _table(heads, [[escaped(cell) for cell in row] for row in rows])


def _made(report: Report) -> Iterator[str]:
    manifest = report.run.manifest
    agents = (f"{label} ({agent.type}, {agent.model or 'no model'})" for label, agent in manifest.agents.items())
    digest = "" if manifest.play else f", sha256 {(manifest.dataset.sha256 or 'unknown')[:12]}"
    questions = f"{manifest.dataset.samples} questions{digest}"
    version = f"keval {manifest.versions.get('keval', 'of unknown version')}"
    yield escaped("; ".join([f"run {manifest.run}", questions, ", ".join(agents), version]), _SENTENCE)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
