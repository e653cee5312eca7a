"""`--changed-since REF`: only conditions and questions that are not as they were at a commit are run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from keval.config.evaluation import Evaluation
from keval.dataset.read import NO_DATASET, read_dataset
from keval.dataset.samples import Samples
from keval.errors import ConfigError, RunError
from keval.files import DAMAGE, read_json
from keval.records.formats import counted, interval, number
from keval.redaction import Redactor
from keval.seams.workspaces import TextContext
from keval.store.run import Run, list_runs
from keval_mcp.against.against import Against, Base, Comparison, shortened
from keval_mcp.against.sources import files_in, touched
from keval_mcp.served_context import list_tools, make_contexts

_APART = ("contexts", "conditions", "dataset", "name", "version", "description")
"""Keys of a config that are looked at by condition or by question, or that no answer depends on."""


async def only_changed(evaluation: Evaluation, config: Path, base: Base, root: Path, redactor: Redactor) -> Evaluation:
    """Return an evaluation of what is not as it was at the base; without any condition if everything is.

    Conditions run with the baseline and those that they derive from, as both sides of a difference come from one run.
    Servers that seem unchanged are started, to compare what they list with the latest run in `root`. Raises ConfigError
    and PreflightError.
    """
    if evaluation.problems:
        return evaluation
    found, conditions = Comparison.of(evaluation, config, base, "--changed-since"), evaluation.conditions
    changed = {label: told for label in conditions if (told := _of_condition(found, label))}
    whole, asked = [*_of_all(found)], _questions(found)
    latest = _latest(root / evaluation.folder)
    if not whole:
        seeming = {label: latest[label] for label in conditions if label in latest and label not in changed}
        changed |= await _listing_others(evaluation, seeming, redactor)
        whole += changed.get(evaluation.baseline, ()) or (["conditions and questions"] if changed and asked else [])
    found.tell_unknown()
    kept, not_run = {*conditions} if whole or asked else _with_controls(evaluation, changed), list[str]()
    if whole:
        found.tell(f"all is run, as what all depends on changed: {', '.join(dict.fromkeys(whole))}")
    elif kept:
        each = "; ".join(f"{label} changed ({', '.join(told)})" for label, told in changed.items())
        found.tell(each or f"{counted(len(asked), 'question')} changed ({', '.join(shortened(asked))})")
        not_run += [f"questions that are as at {found.name}"] if asked else []
        not_run += [f"{x}, as at {found.name}{_means(latest.get(x), x)}" for x in conditions if x not in kept]
    section = attrs.evolve(evaluation.section(Against), not_run=tuple(not_run))
    used = evaluation.with_bases({name for label in kept for name in conditions[label].contexts})
    return attrs.evolve(
        evaluation.with_section(section),
        source=evaluation.source.moved({**evaluation.source.data, "not_run": not_run}, {}),
        conditions={label: each for label, each in conditions.items() if label in kept},
        contexts=tuple(spec for spec in evaluation.contexts if spec.label in used),
        sample_ids=evaluation.sample_ids if whole else tuple(asked) or evaluation.sample_ids,
        problems=tuple(found.problems),
        notices=(*evaluation.notices, *found.notices),
    )


def _of_condition(found: Comparison, label: str) -> list[str]:
    """Return what differs of a condition, with its tasks."""
    now, before = found.now.conditions[label], found.before.conditions.get(label)
    if before is None:
        return ["it is new"]
    tasks = shortened(touched(found.files, [*files_in([now.workspace], found.here)]))
    return [*found.of_condition(label), *(["workspace"] if now.workspace != before.workspace else tasks)]


def _of_all(found: Comparison) -> Iterator[str]:
    """Yield what differs that all trials are made of: keys of the config, and files that these name."""
    yield from [found.now.source.name] if found.is_new else []
    now, before = found.now.source.data, found.before.source.data
    keys = [key for key in {**before, **now} if key not in _APART]
    yield from (key for key in keys if now.get(key) != before.get(key))
    yield from shortened(touched(found.files, [*files_in({key: now.get(key) for key in keys}, found.here)]))
    ours, theirs = (each.dataset and attrs.evolve(each.dataset, path=Path()) for each in (found.now, found.before))
    yield from ["dataset"] if ours != theirs else []


def _questions(found: Comparison) -> list[str]:
    """Return the ids of the questions that differ, of those that flags have left. Raises ConfigError."""
    now, before, wanted = _samples(found.now), NO_DATASET.samples, found.now.sample_ids
    with suppress(ConfigError):  # all are new if those of then cannot be read
        before = _samples(found.before)
    return [
        each.id
        for each in now
        if (not wanted or each.id in wanted)
        and (
            each.id not in before.positions
            or each != before.named(each.id)
            or touched(found.files, [*files_in([each.workspace, each.verify, each.solution], found.here)])
        )
    ]


def _samples(evaluation: Evaluation) -> Samples:
    return read_dataset(evaluation.dataset).samples if evaluation.dataset else NO_DATASET.samples


def _with_controls(evaluation: Evaluation, changed: Iterable[str]) -> set[str]:
    """Return conditions with those that they are compared with: the baseline, and those that they derive from."""
    kept = {*changed}
    for own in (evaluation.conditions[label].contexts for label in changed):
        bases = evaluation.with_bases(own)
        alike = ((x, {*each.contexts}) for x, each in evaluation.conditions.items() if len(each.contexts) == len(own))
        kept |= {evaluation.baseline, *(x for x, theirs in alike if theirs and theirs <= bases)}
    return kept


def _latest(folder: Path) -> dict[str, Run]:
    """Return the latest finished run in a folder that has a condition, by condition."""
    found: dict[str, Run] = {}
    for run in list_runs(folder.parent):
        # What cannot be read tells nothing of what changed.
        with suppress(RunError):
            if run.path.parent == folder and (run.path / "summary.json").is_file():
                found |= dict.fromkeys(run.manifest.conditions, run)
    return found


def _means(run: Run | None, label: str) -> str:
    """Say what an earlier run found for a condition; nothing if it cannot be read."""
    found: list[str] = []
    with suppress(RunError, *DAMAGE):
        for arm in read_json(run.path / "summary.json")["arms"] if run else ():
            if arm["condition"] == label and arm["mean"] is not None:
                judge, ends = arm["judge"], interval(arm.get("ci_low"), arm.get("ci_high"))
                metric = f"{arm['agent']} {arm['metric']}{f'@{judge}' if judge else ''}"
                found.append(f"{metric} {number(arm['mean'])}{f' {ends}' if ends else ''} n={arm.get('n')}")
    return f"; the run {run.id} had {', '.join(found)}, which is compared with nothing" if run and found else ""


async def _listing_others(
    evaluation: Evaluation, latest: Mapping[str, Run], redactor: Redactor
) -> Mapping[str, list[str]]:
    """Return the conditions whose servers list other tools than in the latest run. Raises PreflightError."""
    labels = {name for label in latest for name in evaluation.conditions[label].contexts}
    made = make_contexts(evaluation, [*labels]) if labels else ()
    servers = [each for each in made if not isinstance(each.plugin, TextContext)]
    listed = {each.label: each.tool_listings for each in await list_tools(servers, evaluation, redactor)}
    found = defaultdict[str, list[str]](list)
    for label, run in latest.items():
        then = run.manifest.conditions[label].servers
        for each in (each for name in evaluation.conditions[label].contexts for each in listed.get(name, ())):
            if each.server in then and then[each.server].sha256 != each.digest:
                found[label].append(f"{each.server} has other tools than in the run {run.id}")
    return found
