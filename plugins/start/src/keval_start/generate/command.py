"""`keval generate`: writes questions with golden answers for a person to accept."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from keval import KevalError
from keval.cli.config_argument import config_argument, read_config
from keval.cli.console import print_json
from keval.cli.messages import foreign, redactor, tell
from keval.cli.options import budget_option
from keval.cli.session import run_to_end
from keval.config.evaluation import DatasetFile
from keval.errors import ConfigError
from keval.records.formats import counted
from keval.records.models import dollars
from keval.run.select import Selection, select
from keval_analysis.question_review import QuestionFile
from keval_mcp.served_context import ServedContext
from keval_viewer.interactive.served_model import ServedModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from keval.plugin import Evaluation
    from keval_start.generate.generator import Question

_TO = "name another one with --to, such as --to generated.jsonl"
_OWN = '  {"id": "berths", "question": "How many berths has Tarnholm?", "answer": "It has 14 berths."}'
_LOST_REPLY = "a reply of the model could not be used, asked for twice"


@attrs.frozen
class Order:
    """What `keval generate` was told to make."""

    context: str
    count: int
    unanswerable: float
    model: str | None
    about: str
    allow_writes: bool
    routing: bool


@click.command()
@config_argument
@click.option("--context", metavar="NAME", help="The context to ask about, if the config has several.")
@click.option("-n", "--count", type=click.IntRange(min=1), default=20, show_default=True, help="How many questions.")
@click.option("--model", metavar="PROVIDER/NAME", help="Who writes them.  [default: the judge's model, or the agent's]")
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, not to the dataset.")
@click.option(
    "--unanswerable",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Make this share of them unanswerable, such as 0.2.",
)
@click.option("--routing", is_flag=True, help="Write which skill or tool each needs, or needs not, and no answers.")
@click.option("--about", default="", metavar="TEXT", help="What to ask about, and what tools need, such as a path.")
@click.option("--allow-writes", is_flag=True, help="Call also tools that do not say that they only read.")
@click.option("--seed", type=int, metavar="N", help="Another seed than the config's.")
@budget_option
@click.option("--json", "as_json", is_flag=True, help="Print data for machines on stdout.")
def generate(
    *,
    config: Path,
    context: str | None,
    count: int,
    model: str | None,
    to: Path | None,
    unanswerable: float,
    routing: bool,
    about: str,
    allow_writes: bool,
    seed: int | None,
    budget: tuple[tuple[str, float], ...],
    as_json: bool,
) -> None:
    """Write questions about what a context of CONFIG knows, each with its golden answer, for a person to accept.

    A model calls the context's tools and asks about what they return. The calls that prove an answer are made again,
    and must give the same. Questions are added to the dataset with `accepted: false`: `keval run` leaves them out
    until `keval review CONFIG --questions` accepts them.
    """
    if routing and (unanswerable or allow_writes):
        raise click.UsageError("--routing calls no tool and writes no answer, so that it takes none of the other two")
    evaluation = select(read_config(config), Selection(budget=dict(budget)))
    if seed is not None:
        evaluation = attrs.evolve(evaluation, execution=attrs.evolve(evaluation.execution, seed=seed))
    file = QuestionFile.of(evaluation, remedy=_TO) if to is None else QuestionFile.at(DatasetFile(to), remedy=_TO)
    order = Order(_context(evaluation, context), count, unanswerable, model, about, allow_writes, routing)
    summary = run_to_end(_generate(evaluation, file, order))
    print_json(summary) if as_json else _print(summary, config, to)
    if summary["stopped"] or not summary["made"]:
        raise SystemExit(3)


def _context(evaluation: Evaluation, named: str | None) -> str:
    """Return the label of the context that is meant. Raises ConfigError: there are none, or several."""
    labels = [spec.label for spec in evaluation.contexts]
    if named is not None or len(labels) == 1:
        return named or labels[0]
    has = f"has {', '.join(labels)}; name one with --context" if labels else "has no context; add `contexts:`"
    raise ConfigError(f"{evaluation.source.name} {has}")


async def _generate(evaluation: Evaluation, file: QuestionFile, order: Order) -> dict[str, Any]:
    """Bring up the context and the model, and make questions; what was made is kept whatever happens then.

    Returns what was made, by which model, and why no more, if it was stopped.
    """
    from keval_start.generate.checks import KnownQuestions  # `keval --help` need not wait for these
    from keval_start.generate.generator import Generator
    from keval_start.generate.requests import Writer
    from keval_start.generate.toolbox import Toolbox

    known, dataset = KnownQuestions(), file.dataset
    for entry in (entries := file.questions()):
        known.note([entry.question])
        known.add(entry.question, entry.answer or entry.question)
    async with (
        ServedContext.open(evaluation, order.context, redactor()) as served,
        ServedModel.open(evaluation, order.model, redactor()) as model,
    ):
        toolbox = await Toolbox.of(served, allow_writes=order.allow_writes or order.routing)
        skills = served.skills if order.routing else {}

        def keep(questions: Sequence[Question]) -> None:
            records = [each.record(model.name, dataset.question_key, dataset.answer_key) for each in questions]
            # What a tool returns may hold a secret of the config.
            file.append([redactor().data(record) for record in records])

        # What a person says of the tools: for this, and to the agents that have them.
        having = {label: each for label, each in evaluation.conditions.items() if order.context in each.contexts}
        prompts = [each.system_prompt for each in having.values()]
        about = "\n\n".join(dict.fromkeys(filter(None, [order.about, *prompts])))
        dropped: Counter[str] = Counter()
        writer = Writer(
            model, toolbox.tools, toolbox.instructions, about, lambda: dropped.update([_LOST_REPLY]), skills
        )
        taken, used = {entry.id for entry in entries}, {call.tool for entry in entries for call in entry.proof}
        targets = dict.fromkeys(skills, "reads") if skills else dict.fromkeys(toolbox.tools, "calls")
        generator = Generator(toolbox, writer, known, taken, keep, tell, dropped, used, targets, [*having])
        unanswerable = round(order.count * order.unanswerable)
        stopped = ""
        try:
            routed = order.count if order.routing else 0
            await generator.run(order.count - unanswerable - routed, unanswerable, routed)
        except KevalError as error:
            if not generator.made:
                raise
            stopped = str(error)
        return {
            "file": str(file.dataset.path),
            "asked_for": order.count,
            "made": [question.id for question in generator.made],
            "unanswerable": sum(question.unanswerable for question in generator.made),
            "dropped": dict(generator.dropped.most_common()),
            "unused_tools": {} if order.routing else generator.unused,
            "left_out_tools": list(generator.toolbox.left_out),
            "calls": len(generator.calls),
            "model": model.name,
            "simulated": model.simulated,
            "model_calls": model.calls,
            "usd": None if model.cost.unknown else model.cost.usd,
            "stopped": stopped or None,
        }


def _print(summary: Mapping[str, Any], config: Path, to: Path | None) -> None:
    share = f", {summary['unanswerable']} of them unanswerable" if summary["unanswerable"] else ""
    made, wanted = len(summary["made"]), summary["asked_for"]
    path, here = Path(summary["file"]).absolute(), Path.cwd()
    where = f" in {path.relative_to(here) if path.is_relative_to(here) else path}" if made else ""
    lines = [f"{counted(made, 'question')} of {wanted}{where}{share}"]
    if summary["stopped"]:
        lines.append(f"stopped: {summary['stopped']}")
    if summary["dropped"]:
        lines.append(f"dropped {sum(summary['dropped'].values())}:")
        lines += [f"  {count}: {reason}" for reason, count in summary["dropped"].items()]
    if summary["unused_tools"]:
        lines.append("tools that no question uses:")
        reasons: dict[str, list[str]] = {}
        for name, why in summary["unused_tools"].items():
            reasons.setdefault(why, []).append(name)
        lines += [f"  {', '.join(names)}: {why}" for why, names in reasons.items()]
    cost = "cost unknown" if summary["usd"] is None else dollars(summary["usd"])
    cost = "simulated, which makes plain questions" if summary["simulated"] else cost
    lines.append(f"{summary['model']}: {counted(summary['model_calls'], 'request')}, {cost}")
    # `keval init` says by itself what is next.
    if made and click.get_current_context().find_root().invoked_subcommand == "generate":
        first = "" if to is None else f"name {to} as `dataset.path`, then "
        lines.append(f"next: {first}keval review {shlex.quote(str(config))} --questions")
    if 2 * made < wanted:
        better = ["--model names a real one, such as ollama/qwen3:4b"] if summary["simulated"] else []
        better.append("--about says what the tools must be told, such as a path or a name")
        lines.append(f"for more: {'; '.join(better)}; or write questions yourself, a line of {path.name} each:")
        lines.append(_OWN)
    for line in lines:
        click.echo(foreign(line))
