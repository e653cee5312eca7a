"""Ablation: runs a condition without each of its parts, so that the report can say what each part is worth."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.config.evaluation import Condition, Evaluation
from keval.config.load import read_evaluation
from keval.errors import ConfigError, Problem, suggestion
from keval.seams.workspaces import TextContext
from keval_mcp.served_context import list_tools, make_contexts

_REQUIRING = ("require_mcp_tool_use", "require_mcp_tool_success", "on_missing_tool_use")
_COMMANDS = ("setup", "cleanup")
_NOT_IN_LABELS = re.compile(r"[^\w.+-]")


@attrs.frozen
class Ablation:
    """`ablate` names conditions to run without each of their tools, sections and skills, too.

    `ablated` has the labels that this added.
    """

    ablate: tuple[str, ...] = ()
    ablated: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    def check_config(self, evaluation: Evaluation) -> Iterator[Problem]:
        """Yield the names that are of no condition with a context; what is wrong with a condition is told there."""
        written = evaluation.source.data.get("conditions")
        labels = [*written] if isinstance(written, dict) else []
        for index, label in enumerate(self.ablate):
            wrong = label not in labels or label in evaluation.conditions
            if wrong and (problem := _problem(label, evaluation.conditions)):
                yield evaluation.source.problem(("ablate", index), problem)

    @property
    def told(self) -> str:
        """What is run beside the config's own trials."""
        return "".join(f", and those of {of} without each of its parts" for of in self.ablate)

    def played(self) -> tuple[Ablation, str, Sequence[str]]:
        """Return what is left in a replay, and what that leaves out, as servers are asked for it."""
        return attrs.evolve(self, ablate=()), "the conditions that `ablate` adds to", self.ablate

    def preparation(self, evaluation: Evaluation) -> Coroutine[Any, Any, Evaluation] | None:
        """Return what makes the evaluation with the conditions that this adds; `None` if it adds none."""
        return with_ablations(evaluation) if self.ablate else None


def ablating(evaluation: Evaluation, labels: Sequence[str]) -> Evaluation:
    """Return an evaluation in which these conditions are ablated, too, as far as flags left them."""
    problems = [
        Problem(f"--ablate {label}", problem) for label in labels if (problem := _problem(label, evaluation.conditions))
    ]
    section = evaluation.section(Ablation)
    wanted = dict.fromkeys(label for label in (*section.ablate, *labels) if label in evaluation.conditions)
    changed = evaluation.with_section(attrs.evolve(section, ablate=tuple(wanted)))
    return attrs.evolve(changed, problems=(*evaluation.problems, *problems))


def _problem(label: str, conditions: Mapping[str, Condition]) -> str | None:
    """Return why a condition has nothing to leave out, as far as a config tells."""
    if label not in conditions:
        return f"no condition named {label!r}{suggestion(label, conditions, 'conditions')}"
    if not conditions[label].contexts:
        return f"{label!r} has no context, so there is nothing to leave out; name a condition that has one"
    return None


@attrs.define
class _Expansion:
    """An evaluation, and its config as plain data with what is added to it so far."""

    evaluation: Evaluation
    data: dict[str, Any]
    made: dict[str, dict[str, str]] = attrs.field(factory=dict)
    nouns: dict[str, dict[str, None]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation) -> _Expansion:
        # With `ablate` in its config, a run that is resumed would add the conditions again.
        data = {key: value for key, value in evaluation.source.data.items() if key != "ablate"}
        data["contexts"], data["conditions"] = dict(data.get("contexts") or {}), dict(data.get("conditions") or {})
        return cls(evaluation, data)

    def leave_out(self, of: str, context: str, part: str, noun: str, *, only: bool) -> None:
        """Add a copy of a condition that lacks one part of one of its contexts: a tool, a section or a skill.

        `only` says that the context has no other part; then the copy lacks the whole context.
        """
        conditions = self.data["conditions"]
        # Two contexts of a condition may have a part of the same name.
        name = part if part not in self.made.get(of, {}) else f"{context}__{part}"
        rest = [] if only else [self._context(context, part)]
        contexts = self.evaluation.conditions[of].contexts
        kept = [each for label in contexts for each in (rest if label == context else [label])]
        written = {**(conditions.get(of) or {}), "contexts": kept}
        if not kept:  # there is no tool left that could be required
            written = {key: value for key, value in written.items() if key not in _REQUIRING}
        label = _label(f"{of} without {_NOT_IN_LABELS.sub('_', name)}", conditions)
        conditions[label] = written
        self.made.setdefault(of, {})[name] = label
        self.nouns.setdefault(of, {})[noun] = None

    def finished(self) -> Evaluation:
        """Return the evaluation with all that was added; its config says so in place of `ablate`."""
        notices = []
        for of, parts in self.made.items():
            count = "1 condition" if len(parts) == 1 else f"{len(parts)} conditions"
            kinds = [*self.nouns[of]]
            started = " (its servers were started to list the tools)" if "tool" in kinds else ""
            words = (
                f"added {count}, each {of!r} without one of its {' and '.join(f'{kind}s' for kind in kinds)}{started}"
            )
            notices.append(Problem(_place(self.evaluation, of), words))
        section = self.evaluation.with_section(Ablation((), self.made))
        told = attrs.evolve(section, notices=(*self.evaluation.notices, *notices))
        added = {label: of for of, parts in self.made.items() for label in parts.values()}
        return with_conditions(told, {**self.data, "ablated": self.made}, added)

    def _context(self, context: str, part: str) -> str:
        """Add a copy of a context that lacks one part, unless there is one, and return its label."""
        wanted, contexts = {"from": context, "without": [part]}, self.data["contexts"]
        named = f"{context} without {_NOT_IN_LABELS.sub('_', part)}"
        if contexts.get(named) == wanted:
            return named
        label = _label(named, contexts)
        contexts[label] = wanted
        return label


def with_conditions(evaluation: Evaluation, data: dict[str, Any], made: Mapping[str, str]) -> Evaluation:
    """Return the evaluation with conditions of other data, what these need, and new problems of the data.

    They are made of others: commands of `setup` and `cleanup` for these are for them, too.
    """
    commands = {key: _also_for(made, data[key]) for key in _COMMANDS if isinstance(data.get(key), dict)}
    source = evaluation.source.moved({**data, **commands}, {})
    found, known = read_evaluation(source), read_evaluation(evaluation.source).problems
    added = {label: found.conditions[label] for label in made if label in found.conditions}
    for section in found.sections:
        evaluation = evaluation.with_section(section) if hasattr(section, "cleanup") else evaluation
    kept = {spec.label: spec for spec in evaluation.contexts}  # flags may have left some out
    used = found.with_bases({name for condition in added.values() for name in condition.contexts})
    return attrs.evolve(
        evaluation,
        source=source,
        contexts=(*kept.values(), *(spec for spec in found.contexts if spec.label in used - kept.keys())),
        conditions={**evaluation.conditions, **added},
        problems=(*evaluation.problems, *(each for each in found.problems if each not in known)),
    )


def _also_for(made: Mapping[str, str], scopes: Mapping[str, Any]) -> dict[str, Any]:
    """Return commands of which each that is for a condition is also for those that are made of it."""
    found = dict(scopes)
    for scope, command in scopes.items():
        if isinstance(command, dict) and (own := command.get("conditions")):
            found[scope] = {**command, "conditions": [*own, *(label for label, of in made.items() if of in own)]}
    return found


def _label(wanted: str, taken: Mapping[str, Any]) -> str:
    label, number = wanted, 1
    while label in taken:
        number += 1
        label = f"{wanted} {number}"
    return label


async def with_ablations(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with a condition for each part of the conditions that `ablate` names, without that part.

    Parts are the tools of servers, the sections of instructions, and skills. Servers are started to list their tools,
    and stopped again. What is added stands in the config as if it had been
    written there, so that a run can be resumed, and run elsewhere, without that.

    Raises:
        ConfigError: the evaluation is wrong, or a condition has no part to leave out.
        PreflightError: a server does not come up; with every problem.
    """
    ablate = [of for of in evaluation.section(Ablation).ablate if of in evaluation.conditions]
    if not ablate:
        return evaluation
    wanted = [label for of in ablate for label in evaluation.conditions[of].contexts]
    made = make_contexts(evaluation, tuple(dict.fromkeys(wanted)))
    texts = {each.label: each.plugin for each in made if isinstance(each.plugin, TextContext)}
    parts: dict[str, list[str]] = {}
    # The skills of a server are known once it was asked.
    asked = [each for each in made if each.label not in texts or not texts[each.label].parts()]
    for offered in await list_tools(asked, evaluation) if asked else ():
        tools = (tool for tool_listing in offered.tool_listings for tool in tool_listing.tools)
        parts[offered.label] = [*dict.fromkeys(tools)]
    parts |= {label: [*text.parts()] for label, text in texts.items()}
    expansion = _Expansion.of(evaluation)
    problems = []
    for of in ablate:
        for context in evaluation.conditions[of].contexts:
            noun = texts[context].part if context in texts else "tool"
            for part in parts[context]:
                expansion.leave_out(of, context, part, noun, only=len(parts[context]) == 1)
        if of not in expansion.made:
            told = f"the condition {of!r} has nothing to leave out; name one with a server, instructions or skills"
            problems.append(Problem(_place(evaluation, of), told))
    if problems:
        raise ConfigError(problems)
    return expansion.finished()


def _place(evaluation: Evaluation, of: str) -> str:
    """Return the place, in the config or among the flags, that asks to ablate a condition."""
    written = evaluation.source.data.get("ablate")
    if isinstance(written, list) and of in written:
        return evaluation.source.place(("ablate", written.index(of)))
    return f"--ablate {of}"
