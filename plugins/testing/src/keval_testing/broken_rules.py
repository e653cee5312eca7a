"""The rules that a plugin breaks, raised together."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

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
        many = "a rule" if len(self.rules) == 1 else f"{len(self.rules)} rules"
        lines = [f"{plugin} breaks {many}:"]
        for rule in self.rules:
            found = [each for each in broken if each.rule == rule]
            lines += [f"  {rule}: {each.what}" for each in found[:_MOST_SHOWN]]
            if len(found) > _MOST_SHOWN:
                lines.append(f"  {rule}: and {len(found) - _MOST_SHOWN} times more")
            lines.append(f"    -> {found[0].remedy}")
        super().__init__("\n".join(lines))

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the broken rules, each once."""
        return tuple(dict.fromkeys(each.rule for each in self.broken))
