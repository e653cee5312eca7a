"""The language of gates: expressions such as `accuracy >= 0.8`, read and checked against what there is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import PluginError, Problem, suggestion
from keval.plan.check import PlanCheck
from keval.plan.plan import Scorers
from keval.records.manifest import Manifest
from keval.records.scores import Scale, Scorer
from keval.seams import registry

Function: TypeAlias = Literal["mean", "low", "high", "median", "p95", "total"]
Operator: TypeAlias = Literal[">=", "<=", ">", "<"]

RESOURCES: Mapping[str, tuple[Function, ...]] = {
    "usd": ("mean", "total"),
    "tokens": ("mean", "total"),
    "seconds": ("mean", "median", "p95"),
    "tool_calls": ("mean", "total"),
    "failures": ("mean",),
    "compliance": ("mean",),
    "truncated": ("mean",),
    "judge_drift": ("mean", "low", "high"),
}
"""What trials use, the shares of trials, and how judges drift, with the functions that each can be asked for."""
DRIFT = "judge_drift"
"""By how many points a judge grades the same anchors otherwise than in an earlier run."""
SHARES = ("failures", "compliance", "truncated")

_OF_SCORES: tuple[Function, ...] = ("mean", "low", "high")
_EXAMPLE = "such as 'basic/contains >= 0.8'"
_OPERATOR = re.compile(r">=|<=|==|!=|=|>|<")
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*(?:(?P<digits>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<percent>%?)|(?P<margin>margin))"
)
_CALL = re.compile(r"(?P<function>\w+)\s*\((?P<inner>.*)\)", re.DOTALL)
_AGAINST_COMMIT = " against commit"
"""The end of a gate on the difference to the commit of `--against`."""


@attrs.frozen
class Gate:
    """A gate as it was read. `None` for agent, condition or judge means all that the gate can be about.

    `number` is the threshold as written. `is_effect` says that the gate is about the difference to the baseline, and
    `is_resource` that `metric` is one of `RESOURCES`. With `against_commit`, the difference is to what the condition
    was at the commit of `--against`.
    """

    written: str
    function: Function
    agent: str | None
    condition: str | None
    metric: str
    judge: str | None
    op: Operator
    number: str
    threshold: float
    is_effect: bool
    is_resource: bool
    against_commit: bool = False

    def about(self, agent: str, condition: str, judge: str | None = None) -> str:
        """Return the gate's text for one arm."""
        return self.text(f"{agent}:{condition}/{self.metric}{f'@{judge}' if judge else ''}")

    def text(self, subject: str) -> str:
        """Return the gate's text with this subject."""
        end = _AGAINST_COMMIT if self.against_commit else ""
        return f"{subject if self.function == 'mean' else f'{self.function}({subject})'} {self.op} {self.number}{end}"


@attrs.frozen
class Names:
    """What a gate can name. A scorer's scale is `None` if it is not known."""

    agents: tuple[str, ...]
    conditions: tuple[str, ...]
    baseline: str
    scorers: dict[Scorer, Scale | None]

    @classmethod
    def of(cls, manifest: Manifest) -> Names:
        """Return the names of a run."""
        scorers: dict[Scorer, Scale | None] = {entry.scorer: entry.scale for entry in manifest.scorers}
        return cls((*manifest.agents,), (*manifest.conditions,), manifest.baseline, scorers)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics and rubrics, each once."""
        return (*dict.fromkeys(metric for metric, _ in self.scorers),)

    def judges(self, metric: str) -> list[str]:
        """Return the judges that grade by a rubric."""
        return [judge for name, judge in self.scorers if name == metric and judge is not None]

    def scale(self, metric: str) -> Scale | None:
        """Return the scale of a metric or rubric."""
        return next((scale for (name, _), scale in self.scorers.items() if name == metric), None)


def read_gates(written: Iterable[tuple[str, str]], names: Names) -> tuple[list[Gate], list[Problem]]:
    """Read gates, each given with its place; returns those that can be read, and what is wrong with the others."""
    gates: list[Gate] = []
    problems: list[Problem] = []
    for text, place in written:
        try:
            gates.append(parse(text, names))
        except ValueError as error:
            problems.append(Problem(place, str(error)))
    return gates, problems


def parse(text: str, names: Names) -> Gate:
    """Read a gate. Raises ValueError: what is wrong with it, and what to write."""
    # A gate of a YAML file may be folded over lines.
    written = " ".join(text.split())
    # A check may have such a sign in its name, before the one that compares.
    compared = written.removesuffix(_AGAINST_COMMIT)
    found = next(reversed([*_OPERATOR.finditer(compared)]), None)
    if found is None:
        raise ValueError(
            f"the gate {written!r} has no comparison; write a metric, one of >=, <=, > and <, and a number, {_EXAMPLE}"
        )
    subject, operator, right = compared[: found.start()].strip(), found[0], compared[found.end() :].strip()
    op: Operator | None = next((known for known in get_args(Operator) if known == operator), None)
    if op is None:
        raise ValueError(f"the gate {written!r} has {operator!r}; write >=, <=, > or <")
    number = _NUMBER.fullmatch(right)
    if number is None:
        raise ValueError(f"the gate {written!r} has no number after {op}: {right!r}; write one, {_EXAMPLE}")
    # The margin is that of the metric, which is read below.
    threshold = 0.0 if number["margin"] else float(number["sign"] + number["digits"])
    threshold /= 100 if number["percent"] else 1
    if not math.isfinite(threshold):
        raise ValueError(f"the gate {written!r} has a number that is too large; write a smaller one")
    if not subject:
        raise ValueError(f"the gate {written!r} names no metric before {op}; write one, {_EXAMPLE}")
    function, inner = _call(subject, names)
    agent, condition, metric, judge = _reference(inner, names)
    if number["margin"]:
        threshold = _margin(number["sign"], metric, written, names)
    # Only a sign tells an effect from a mean: `+0.1` against `0.1`.
    is_effect, is_resource = bool(number["sign"]), metric not in names.metrics
    told = right.replace(" ", "")
    gate = Gate(written, function, agent, condition, metric, judge, op, told, threshold, is_effect, is_resource)
    gate = attrs.evolve(gate, against_commit=compared != written)
    _check(gate, names)
    return gate


def _margin(sign: str, metric: str, written: str, names: Names) -> float:
    """Return the margin of a metric as a threshold. Raises ValueError: the gate is of no effect, or there is none."""
    if not sign:
        raise ValueError(f"the gate {written!r} holds a mean against a margin, which is of effects; write -margin")
    scale = names.scale(metric)
    if metric not in names.metrics or (scale is not None and math.isinf(scale.least)):
        raise ValueError(f"the gate {written!r} is of {metric!r}, which has no margin; name it under `margin:`")
    least = 0.0 if scale is None else scale.least
    return -least if sign == "-" else least


def _call(subject: str, names: Names) -> tuple[Function, str]:
    """Split `low(x)` into its function and `x`."""
    called = _CALL.fullmatch(subject)
    # A metric may have parentheses in its name.
    if called is None or subject in names.metrics:
        return "mean", subject
    function: Function | None = next((known for known in get_args(Function) if known == called["function"]), None)
    if function is None:
        raise ValueError(_absent("function", called["function"], get_args(Function)))
    return function, called["inner"].strip()


def _absent(what: str, name: str, known: Sequence[str], told: str = "") -> str:
    """Say that there is nothing of a name, and what there is."""
    hint = suggestion(name, known) or f"; {told or what}s: {', '.join(known)}"
    return f"no {what} named {name!r}{hint}"


def _reference(text: str, names: Names) -> tuple[str | None, str | None, str, str | None]:
    """Return agent, condition, metric and judge of `[agent:][condition/]metric[@judge]`.

    Any of the signs may be part of a name, so the first reading of which every part exists is meant; a label of an
    agent or a condition goes before a metric's vendor.
    """
    known = {*names.metrics, *RESOURCES}
    for agent, left in _prefixed(text, ":", names.agents):
        for condition, name in _prefixed(left, "/", names.conditions):
            if name in known:
                return agent, condition, name, None
            metric, _, judge = (part.strip() for part in name.rpartition("@"))
            if metric in known and judge in names.judges(metric):
                return agent, condition, metric, judge
    raise ValueError(_unknown(text, names))


@attrs.frozen
class NamedEffect:
    """An effect that a config names: that of a condition for an agent, by a scorer; `text` is how it was written."""

    text: str
    agent: str
    condition: str
    scorer: Scorer


def read_effect(text: str, names: Names) -> NamedEffect:
    """Read one effect, written as in gates. Raises ValueError: what is wrong with it, and what to write."""
    written = " ".join(text.split())
    agent, condition, metric, judge = _reference(written, names)
    if metric not in names.metrics:
        raise ValueError(f"keval does not look at {metric!r} while a run goes on; name a metric or a rubric")
    others = [each for each in names.conditions if each != names.baseline]
    if not others:
        raise ValueError(f"{names.baseline!r} is the only condition, so there is no effect; add another condition")
    if condition == names.baseline:
        raise ValueError(f"{condition!r} is the baseline itself; name another condition: {', '.join(others)}")
    judges = names.judges(metric)
    for what, named, labels, example in (
        ("agents", agent, names.agents, f"{names.agents[0]}:{written}"),
        ("conditions", condition, others, f"{others[0]}/{written}"),
        ("judges", judge, judges, f"{written}@{judges[0] if judges else ''}"),
    ):
        if named is None and len(labels) > 1:
            raise ValueError(f"{written!r} could be of several {what}; name one, such as {example!r}")
    judge = judge or next(iter(judges), None)
    return NamedEffect(written, agent or names.agents[0], condition or others[0], (metric, judge))


def _prefixed(text: str, sign: str, labels: Iterable[str]) -> Iterator[tuple[str | None, str]]:
    """Yield a label and the rest, if the text begins with a label; then no label, and the text as it is."""
    label, found, rest = (part.strip() for part in text.partition(sign))
    if found and label in labels:
        yield label, rest
    yield None, text


def _unknown(text: str, names: Names) -> str:
    """Say which part of a reference does not exist."""
    agent, colon, left = (part.strip() for part in text.partition(":"))
    if colon and agent not in names.agents:
        return _absent("agent", agent, names.agents)
    left = left if colon else text
    known = (*names.metrics, *RESOURCES)
    label, slash, metric = (part.strip() for part in left.partition("/"))
    in_condition = slash and label in names.conditions
    name = metric if in_condition else left
    graded, at, judge = (part.strip() for part in name.rpartition("@"))
    if at and graded in known:
        judges = names.judges(graded)
        if not judges:
            return f"{graded!r} is graded by no judge; leave out '@{judge}'"
        return _absent("judge", judge, judges, "its judge")
    if slash and not in_condition and metric.partition("@")[0].strip() in known:
        return _absent("condition", label, names.conditions)
    return f"no metric named {name!r}{_hint(graded if at else name, known)}"


def _hint(name: str, known: Sequence[str]) -> str:
    """Return a hint at the metric that may be meant, be it of a vendor that was left out or named alone."""
    of_vendor = [metric for metric in known if metric.startswith(f"{name}/")]
    if of_vendor:
        return f", which is a vendor; name one of its metrics, such as {of_vendor[0]!r}"
    meant = [metric for metric in known if metric.endswith(f"/{name}")]
    if meant:
        return f"; did you mean {meant[0]!r}?"
    return suggestion(name, known) or f"; known are {', '.join(known)}"


def _check(gate: Gate, names: Names) -> None:
    """Raise ValueError where a gate asks for what there cannot be."""
    functions = _OF_SCORES if gate.is_effect or not gate.is_resource else RESOURCES[gate.metric]
    if gate.function not in functions:
        whose = f"the effect on {gate.metric!r}" if gate.is_effect else repr(gate.metric)
        raise ValueError(f"{whose} has no {gate.function}; it has {', '.join(functions)}")
    if gate.metric == DRIFT and gate.is_resource and (gate.is_effect or gate.agent or gate.condition):
        raise ValueError(f"{DRIFT!r} is of judges: it takes neither an agent, nor a condition, nor a sign")
    if gate.against_commit and not gate.is_effect:
        told = f"the gate {gate.written!r} is of a difference, which has a sign"
        raise ValueError(f"{told}; write one, such as '{gate.op} +0', or '{gate.op} -margin'")
    if gate.is_effect:
        _check_effect(gate, names)
    scale = Scale() if gate.metric in SHARES and gate.is_resource else names.scale(gate.metric)
    if scale is None or (gate.is_resource and gate.metric not in SHARES):
        return
    span = scale.high - scale.low
    low, high = (-span, span) if gate.is_effect else (scale.low, scale.high)
    if not low <= gate.threshold <= high:
        what = f"differences of {gate.metric!r}" if gate.is_effect else repr(gate.metric)
        raise ValueError(f"{gate.number} is beyond the scale of {what}, which goes from {low:g} to {high:g}")


def _check_effect(gate: Gate, names: Names) -> None:
    told = f"{gate.number} has a sign, so the gate {gate.written!r} compares with the baseline"
    if len(names.conditions) < 2 and not gate.against_commit:
        raise ValueError(f"{told}, and {names.baseline!r} is the only condition; add a condition, or remove the sign")
    if gate.condition == names.baseline and not gate.against_commit:
        raise ValueError(f"{told}, which {gate.condition!r} itself is; name another condition, or remove the sign")
    if gate.is_resource and gate.metric in SHARES:
        raise ValueError(f"{told}, and keval estimates none on {gate.metric!r}; remove the sign")


def check_primary(check: PlanCheck, primary: Sequence[str]) -> None:
    """Check the names of primary metrics."""
    known = names_of(check.evaluation, check.scorers, check.scorers.scales()).metrics
    for position, name in enumerate(primary):
        if name not in known:
            check.problem(("primary", position), f"no metric or rubric named {name!r}{_hint(name, known)}")


def check_gates(check: PlanCheck, written: Sequence[tuple[str, str]], scales: Mapping[Scorer, Scale]) -> None:
    """Check gates, each given with its place; `scales` are those of the scorers, with their margins."""
    names = names_of(check.evaluation, check.scorers, scales)
    if check.manifest is not None:  # of a run that is scored again
        run = Names.of(check.manifest)
        # The run's own scorers can be named as well as those that score it again.
        names = attrs.evolve(run, scorers=run.scorers | names.scorers)
    check.problems.extend(read_gates(written, names)[1])
    if check.manifest is None:
        check.notices.extend(_gate_notices(written, names))


def _gate_notices(written: Sequence[tuple[str, str]], names: Names) -> Iterator[Problem]:
    """Yield the gates that are to show an effect of less than the margin, and that chance holds where there is none."""
    for text, place in written:
        for gate in read_gates([(text, place)], names)[0]:
            rises = gate.op in (">", ">=")
            wanted, scale = gate.threshold if rises else -gate.threshold, names.scale(gate.metric)
            least = 0.0 if scale is None or math.isinf(scale.least) else scale.least
            if gate.is_effect and gate.function == "mean" and (wanted == 0 or 0 < wanted < least):
                end = attrs.evolve(gate, function="low" if rises else "high")
                subject = gate.written[: gate.written.rindex(gate.op)].strip()
                often = "holds it in half of the runs" if gate.threshold == 0 else "may hold it"
                yield Problem(
                    place,
                    f"the gate {gate.written!r} decides on the mean, so that chance {often} without any effect;"
                    f" {end.text(subject)!r} is held by an effect that is sure",
                )


def names_of(evaluation: Evaluation, scorers: Scorers, scales: Mapping[Scorer, Scale]) -> Names:
    """Return what the config names, and what flags add to it; `scales` are those of the scorers."""
    data = evaluation.source.data
    known: dict[Scorer, Scale | None] = {(metric, None): None for metric in _metrics(data)}
    conditions, made = evaluation.labels("conditions"), {judge.label for judge in scorers.judges}
    # A judge that was not made may grade by any rubric.
    others = [judge for judge in evaluation.labels("judges") if judge not in made]
    known |= {(rubric.name, judge): rubric.scale for rubric in scorers.rubrics for judge in others}
    baseline = str(data.get("baseline") or next(iter(conditions), ""))
    return Names(evaluation.labels("agents"), conditions, baseline, {**known, **scales})


def _metrics(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics that a config lists, those of a vendor one by one."""
    listed = data.get("metrics")
    for entry in listed if isinstance(listed, list) else ():
        name = next(iter(entry)) if isinstance(entry, dict) and entry else entry
        try:
            yield from (component.name for component in registry.select("keval.metrics", str(name)))
        except PluginError:  # which is reported where the metric is listed
            yield str(name)
