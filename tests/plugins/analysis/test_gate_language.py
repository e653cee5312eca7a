"""What a gate expression means: which of its parts is an agent, a condition, a metric and a judge."""

from __future__ import annotations

import math
import re

import attrs
import pytest

from keval import Scale
from keval_analysis.gate_language import Names, parse

NAMES = Names(
    agents=("gadk", "ms 2.0"),
    conditions=("baseline", "with_docs", "acme", "with docs+v2.1"),
    baseline="baseline",
    scorers={
        ("acme/accuracy", None): Scale(),
        ("acme/seconds", None): Scale(0, math.inf, better="lower"),
        ("accuracy", "strict"): Scale(1, 5),
        ("accuracy", "mild"): Scale(1, 5),
        ("at@home", "mild"): Scale(),
    },
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("accuracy>=2", ("mean", None, None, "accuracy", None)),
        ("with_docs/accuracy>=2", ("mean", None, "with_docs", "accuracy", None)),
        ("acme/accuracy >= 2", ("mean", None, "acme", "accuracy", None)),
        ("with_docs/acme/accuracy >= 0.8", ("mean", None, "with_docs", "acme/accuracy", None)),
        ("ms 2.0:with docs+v2.1/acme/accuracy < .5", ("mean", "ms 2.0", "with docs+v2.1", "acme/accuracy", None)),
        ("gadk : acme/accuracy >= 2", ("mean", "gadk", "acme", "accuracy", None)),
        ("high( acme/acme/accuracy) > 0.5", ("high", None, "acme", "acme/accuracy", None)),
        ("accuracy@mild > 2", ("mean", None, None, "accuracy", "mild")),
        ("acme/accuracy@strict > 2", ("mean", None, "acme", "accuracy", "strict")),
        ("at@home@mild > 0.2", ("mean", None, None, "at@home", "mild")),
        ("at@home > 0.2", ("mean", None, None, "at@home", None)),
        ("p95(gadk:seconds) <= 3e1", ("p95", "gadk", None, "seconds", None)),
        ("acme/acme/seconds <= 30", ("mean", None, "acme", "acme/seconds", None)),
        ("acme/seconds <= 30", ("mean", None, "acme", "seconds", None)),
        ("with_docs/acme/seconds <= 30", ("mean", None, "with_docs", "acme/seconds", None)),
        ("with_docs/seconds <= 30", ("mean", None, "with_docs", "seconds", None)),
        ("total(usd)<=2", ("total", None, None, "usd", None)),
    ],
)
def test_what_exists_decides_what_a_part_is(written: str, meant: tuple[str | None, ...]) -> None:
    gate = parse(written, NAMES)

    assert meant == (gate.function, gate.agent, gate.condition, gate.metric, gate.judge)


@pytest.mark.parametrize("name", ["verify/count >= 3", "verify/exit = 0", "verify/a<b"])
@pytest.mark.parametrize("op", [">=", "<"])
def test_a_check_may_have_a_comparison_in_its_name(name: str, op: str) -> None:
    names = attrs.evolve(NAMES, scorers={(name, None): Scale()})

    mean, end = parse(f"{name} {op} 0.8", names), parse(f"low(with_docs/{name}){op}+0.5", names)

    assert ("mean", name, op, 0.8) == (mean.function, mean.metric, mean.op, mean.threshold)
    assert ("low", "with_docs", name, 0.5) == (end.function, end.condition, end.metric, end.threshold)


def test_a_vendor_is_meant_where_its_name_is_no_condition() -> None:
    names = attrs.evolve(NAMES, conditions=("baseline", "with_docs"))

    gate = parse("acme/accuracy >= 0.2", names)

    assert (None, "acme/accuracy") == (gate.condition, gate.metric)


@pytest.mark.parametrize(
    ("written", "threshold", "is_effect"),
    [
        ("with_docs/accuracy >= +0.5", 0.5, True),
        ("with_docs/accuracy >= - .5", -0.5, True),
        ("with_docs/accuracy > +0", 0.0, True),
        ("with_docs/accuracy >= 1.5e0", 1.5, False),
        ("failures <= 5%", 0.05, False),
        ("acme/acme/accuracy >= +12.5 %", 0.125, True),
    ],
)
def test_a_sign_means_the_effect(written: str, threshold: float, is_effect: bool) -> None:
    gate = parse(written, NAMES)

    assert (threshold, is_effect) == (gate.threshold, gate.is_effect)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("accuracy", "has no comparison"),
        ("accuracy == 2", "has '=='; write >=, <=, > or <"),
        ("accuracy >= good", "has no number after >=: 'good'"),
        ("accuracy >= 2 3", "has no number after >=: '2 3'"),
        (">= 2", "names no metric before >="),
        ("", "has no comparison"),
        ("lov(accuracy) >= 2", "no function named 'lov'; did you mean 'low'?"),
        ("acuracy >= 2", "no metric named 'acuracy'; did you mean 'accuracy'?"),
        ("wiht_docs/accuracy >= 2", "no condition named 'wiht_docs'; did you mean 'with_docs'?"),
        ("with_docs/acuracy >= 2", "no metric named 'acuracy'; did you mean 'accuracy'?"),
        ("gdk:accuracy >= 2", "no agent named 'gdk'; did you mean 'gadk'?"),
        ("accuracy@stict >= 2", "no judge named 'stict'; did you mean 'strict'?"),
        ("accuracy@nobody >= 2", "no judge named 'nobody'; its judges: strict, mild"),
        ("acme/acme/accuracy@mild >= 0.5", "'acme/accuracy' is graded by no judge; leave out '@mild'"),
        ("seconds@mild >= 2", "'seconds' is graded by no judge"),
        ("vendor/accuracy >= 2", "no condition named 'vendor'; conditions: baseline, with_docs"),
        ("at >= 2", "no metric named 'at'"),
        ("median(accuracy) >= 2", "'accuracy' has no median; it has mean, low, high"),
        ("usd <= 1e999", "has a number that is too large"),
        ("low(usd) <= 2", "'usd' has no low; it has mean, total"),
        ("median(tokens) <= 2", "'tokens' has no median; it has mean, total"),
        ("total(usd) <= +2", "the effect on 'usd' has no total; it has mean, low, high"),
        ("accuracy >= 80", "80 is beyond the scale of 'accuracy', which goes from 1 to 5"),
        ("accuracy >= +4.5", "differences of 'accuracy', which goes from -4 to 4"),
        ("failures <= 5", "5 is beyond the scale of 'failures', which goes from 0 to 1"),
        ("baseline/accuracy >= +1", "compares with the baseline, which 'baseline' itself is"),
        ("failures <= +5%", "keval estimates none on 'failures'"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(written: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse(written, NAMES)


def test_a_vendor_is_no_metric_and_a_metric_has_its_vendor() -> None:
    names = Names(("a",), ("only",), "only", {("acme/accuracy", None): Scale()})

    with pytest.raises(ValueError, match="'acme', which is a vendor; name one of its metrics, such as 'acme/accuracy'"):
        parse("acme >= 0.5", names)
    with pytest.raises(ValueError, match="no metric named 'accuracy'; did you mean 'acme/accuracy'"):
        parse("accuracy >= 0.5", names)
    with pytest.raises(ValueError, match="'only' is the only condition; add a condition, or remove the sign"):
        parse("acme/accuracy >= +0.5", names)
