"""The rules that a plugin breaks, collected while it is checked and raised together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from keval.errors import suggestion

_MOST_SHOWN = 3
"""How often a message shows a rule that is broken again and again."""


@attrs.frozen
class BrokenRule:
    """A rule of a seam that a plugin breaks: its name, what was seen, and how to mend it."""

    rule: str
    what: str
    remedy: str


class BrokenRulesError(AssertionError):
    """A plugin breaks rules of its seam. `broken` has each of them; the message says what was seen and the remedies."""

    def __init__(self, plugin: str, broken: Sequence[BrokenRule]) -> None:
        self.plugin, self.broken = plugin, tuple(broken)
        super().__init__("\n".join([f"{plugin} breaks {_counted(self.rules)}:", *_lines(self.broken)]))

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the broken rules, each once."""
        return tuple(dict.fromkeys(each.rule for each in self.broken))


def _counted(rules: Sequence[str]) -> str:
    return "a rule" if len(rules) == 1 else f"{len(rules)} rules"


def _lines(broken: Sequence[BrokenRule]) -> list[str]:
    lines: list[str] = []
    for rule in dict.fromkeys(each.rule for each in broken):
        found = [each for each in broken if each.rule == rule]
        lines += [f"  {rule}: {each.what}" for each in found[:_MOST_SHOWN]]
        if len(found) > _MOST_SHOWN:
            lines.append(f"  {rule}: and {len(found) - _MOST_SHOWN} times more")
        lines.append(f"    -> {found[0].remedy}")
    return lines


@attrs.define
class Checklist:
    """The rules of one seam, by name with the remedy of each, and what a plugin was seen to break.

    Those that it `cannot` keep, which have the reason in place of a remedy, are not noted.
    """

    plugin: str
    remedies: Mapping[str, str]
    cannot: Mapping[str, str] = attrs.field(factory=dict)
    found: list[BrokenRule] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for rule in self.cannot:
            if rule not in self.remedies:
                raise ValueError(f"there is no rule {rule!r}{suggestion(rule, self.remedies, 'the rules are')}")

    def broken(self, rule: str, what: str) -> None:
        """Note that the plugin breaks a rule. The same finding is noted once."""
        entry = BrokenRule(rule, what, self.remedies[rule])
        if rule not in self.cannot and entry not in self.found:
            self.found.append(entry)

    def finish(self) -> None:
        """Raise BrokenRulesError if a rule was broken."""
        if self.found:
            raise BrokenRulesError(self.plugin, self.found)
