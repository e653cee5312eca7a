"""What `keval review --sample` prints: the draw, how to review it, and what further labels would bring."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import counted, number
from keval.store.run import Run
from keval_analysis.findings.draws import Draw
from keval_analysis.labels.drawing import CORRELATIONS, ExpectedWidth, LabelPlan
from keval_report.words import one_line, rubric_name


def print_draw(run: Run, draw: Draw, plans: Sequence[LabelPlan], count: int, console: Console) -> None:
    """Print a draw for which `count` answers were asked. No answer's arm is named, as reviews are to be blind."""
    questions = {answer.sample for answer in draw.answers}
    arms = len(draw.frame)
    told = f"draw {draw.id}: {counted(len(draw.answers), 'answer')} to {counted(len(questions), 'question')}"
    why = "" if len(draw.answers) == count else f" (of {count} asked for, as each question is drawn in all {arms} arms)"
    if len(questions) * arms < count - arms + 1:
        why = f" (of {count} asked for: no question is left)"
    console.print(safe(f"{told}{why}, seed {draw.seed}", "bold"), soft_wrap=True)
    whose = f"the levels that {draw.judge} gave for {rubric_name(draw.metric)}"
    console.print(
        safe(f"{draw.drawn} of {draw.questions} questions are drawn now, all equally likely, spread over {whose}"),
        soft_wrap=True,
    )
    folder = run.path.parent.parent
    where = "" if str(folder) == "results" else f" -o {shlex.quote(str(folder))}"
    console.print(safe(f"to label the answers: keval view{where}, then the run, Review, and this draw"), soft_wrap=True)
    if not plans:
        console.print("the run has one condition, so there is no effect that labels would correct")
        return
    console.print()
    console.print(safe("The 95 % interval of a corrected effect would reach, with further labels:", "bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("")
    for width in plans[0].widths:
        table.add_column(f"+{width.more}" if width.more else "now", justify="right")
    several = len({plan.agent for plan in plans}) > 1
    for plan in plans:
        label = f"{plan.agent} {plan.condition}" if several else plan.condition
        table.add_row(safe(one_line(label)), *(Text(_reach(width)) for width in plan.widths))
    console.print(table)
    for reason in dict.fromkeys(width.reason for plan in plans for width in plan.widths if width.reason):
        console.print(safe(f"–: {reason}", "dim"), soft_wrap=True)
    if any(plan.is_assumed and any(width.narrow is not None for width in plan.widths) for plan in plans):
        high, low = (number(each, 1) for each in CORRELATIONS)
        console.print(
            safe(
                "from … to …: too few labels say how well judge and people agree; if their differences correlate with"
                f" {high}, and with {low}",
                "dim",
            ),
            soft_wrap=True,
        )


def _reach(width: ExpectedWidth) -> str:
    if width.narrow is None or width.wide is None:
        return "–"
    narrow, wide = number(width.narrow), number(width.wide)
    return f"±{narrow}" if narrow == wide else f"±{narrow} to ±{wide}"
