"""How often texts were read, in a line for each: arms that are alike share it, and what `ablate` added has none."""

from __future__ import annotations

from typing import Any

from keval_analysis.findings.effects import Contrast
from keval_analysis.findings.summary import Activation, Summary
from keval_report.use import activation_rows, activation_texts


def read(condition: str, rate: float = 0.5, agent: str = "ada", **more: Any) -> Activation:
    fields = {"text": "pdf", "kind": "skill", "way": ".agents/skills", **more}
    return Activation(
        agent, condition, trials=4, unknown=0, read=2, n=4, rate=rate, ci_low=0.2, ci_high=0.8, model_call=1.5, **fields
    )


def lines(*activations: Activation, **more: Any) -> list[str]:
    return [*activation_texts(Summary("r", "e", "b", "omit", 4, activations=activations, **more))]


def test_arms_that_are_alike_share_a_line_and_others_are_named() -> None:
    share = "50 % [20 %, 80 %] n=4"

    assert [f"skill pdf read in trials: {share}"] == lines(read("one"), read("two"))
    assert [f"skill pdf read in trials: one, three {share}; two 10 % [20 %, 80 %] n=4"] == lines(
        read("one"), read("two", 0.1), read("three")
    )
    assert [f"skill pdf read in trials: ada {share}; bob given by keval (read_skill), {share}"] == lines(
        read("one"), read("one", agent="bob", way="read_skill")
    )


def test_a_first_report_names_few_texts_and_none_of_an_ablation() -> None:
    many = [read("one", text=f"skill-{number}") for number in range(7)]
    lacking = Contrast("ablation", "one without a", "one", left_out="a", part="skill", added=True)
    summary = Summary("r", "e", "b", "omit", 4, activations=(read("one"), read("one without a")), contrasts=(lacking,))

    assert "and 2 more" == lines(*many)[-1]
    assert 6 == len(lines(*many))
    assert ["one"] == [row[2] for row in activation_rows(summary)]
    assert 1 == len([*activation_texts(summary)])
