"""Usage: the tokens of model calls. What a vendor tells of them becomes figures here, and nowhere else."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

_Number = TypeVar("_Number", int, float)

BYTES_PER_TOKEN = 4
"""A rule of thumb for replies that tell no tokens, or what cannot be a count."""
_MOST = 10**9
"""Tokens that no trial reaches, with all its model calls."""
_MOST_OF_REPLY = 10**8
"""Tokens that no model call takes: ten times the longest context window."""
_WHOLES = {"input_tokens": "", "output_tokens": ""} | {
    "cached_tokens": "input_tokens",
    "reasoning_tokens": "output_tokens",
}
"""The counts of a usage, each with the one that it is a part of."""


def _plus(a: _Number | None, b: _Number | None) -> _Number | None:
    return None if a is None or b is None else a + b


@attrs.frozen
class Usage:
    """Tokens of one or more model calls; `None` is unknown, and a sum with an unknown part is unknown.

    `input_tokens` includes cached tokens, `output_tokens` includes reasoning. What cannot be a count becomes unknown:
    anything but a whole number, one below 0, one that no model can reach, a part that is larger than its whole.
    `impossible` has the first such, as it was told. `at_least` is no vendor's figure, but keval's own estimate of the
    total where that is unknown: about how many tokens the text of requests and replies is. `service_tier` is
    the API's word for a way to serve that has other prices than the usual one, such as `flex`; of several, the first.
    `cost` is what the provider tells that the calls cost, in US dollars, if it tells that of each of them.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    impossible: str | None = attrs.field(default=None, eq=False, metadata={"sparse": True})
    at_least: int | None = attrs.field(default=None, eq=False, metadata={"sparse": True})
    service_tier: str | None = attrs.field(default=None, eq=False, metadata={"sparse": True})
    cost: float | None = attrs.field(default=None, metadata={"sparse": True})

    def __attrs_post_init__(self) -> None:
        given, out = self.input_tokens, self.output_tokens
        cached, thought = self.cached_tokens, self.reasoning_tokens
        # Without a call where all is well, as it is for each reply. True is an int, too, but not of that class.
        if (
            (given is None or (given.__class__ is int and 0 <= given <= _MOST))
            and (out is None or (out.__class__ is int and 0 <= out <= _MOST))
            and (cached is None or (cached.__class__ is int and 0 <= cached <= (_MOST if given is None else given)))
            and (thought is None or (thought.__class__ is int and 0 <= thought <= (_MOST if out is None else out)))
        ):
            return
        for name, whole in _WHOLES.items():
            count: object = getattr(self, name)
            most = getattr(self, whole) if whole else None
            known = known_count(count, _MOST if most is None else most)
            # The record is frozen, also for its own `__attrs_post_init__`.
            object.__setattr__(self, name, known)
            if known is None and count is not None and self.impossible is None:
                object.__setattr__(self, "impossible", f"{name}: {_shown(count)}")

    @property
    def total(self) -> int | None:
        """Tokens of input and output."""
        return _plus(self.input_tokens, self.output_tokens)

    @property
    def least(self) -> int:
        """The tokens of input and output that are known, or how many there were at least."""
        return max((self.input_tokens or 0) + (self.output_tokens or 0), self.at_least or 0)

    @property
    def of_reply(self) -> Usage:
        """The same, as that of a single model call, which cannot be as large as that of many."""
        if (self.input_tokens or 0) + (self.output_tokens or 0) <= _MOST_OF_REPLY:
            return self
        return Usage(impossible=f"{self.least} tokens of one model call")

    def estimated(self, tokens: int) -> Usage:
        """Return the same, with what keval estimates where nobody tells the total."""
        return self if self.total is not None or not tokens else attrs.evolve(self, at_least=max(self.least, tokens))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _plus(self.input_tokens, other.input_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.cached_tokens, other.cached_tokens),
            _plus(self.reasoning_tokens, other.reasoning_tokens),
            self.impossible or other.impossible,
            service_tier=self.service_tier or other.service_tier,
            cost=_plus(self.cost, other.cost),
        )


@attrs.define
class ModelUse:
    """The replies of models that one side told of, the agent or the proxy; `usage` is `None` before the first."""

    calls: int = 0
    usage: Usage | None = None
    replies: list[float] = attrs.field(factory=list)
    by_model: dict[str, Usage] = attrs.field(factory=dict)

    def add(self, usage: Usage | None, at: float | None = None, model: str | None = None) -> Usage:
        """Count a reply, which came `at` seconds after the first turn began; returns what it is taken to have used."""
        spent = (usage or Usage()).of_reply
        self.calls += 1
        self.usage = spent if self.usage is None else self.usage + spent
        if model is not None:
            self.by_model[model] = self.by_model[model] + spent if model in self.by_model else spent
        if at is not None:
            self.replies.append(at)
        return spent


def _shown(count: object) -> str:
    """Return what was told in place of a count; writing a whole number of any length may take for ever."""
    if isinstance(count, int) and not -(10**15) < count < 10**15:
        return "-10^15 or less" if count < 0 else "10^15 or more"
    return f"{count!r:.40}" if isinstance(count, int | float | str) else type(count).__name__


def known_count(count: object, most: int = _MOST) -> int | None:
    """Return a count, which some write as `11.0`, and `None` for what cannot be one."""
    count = int(count) if isinstance(count, float) and count.is_integer() else count
    return count if type(count) is int and 0 <= count <= most else None


def sum_of_counts(*counts: Any) -> Any:
    """Return the sum of counts that a vendor tells apart, without those that it does not tell; `None` if it tells none.

    What cannot be a count is returned in place of the sum, for `Usage` to tell it.
    """
    told = [count for count in counts if count is not None]
    wrong = [count for count in told if known_count(count) is None]
    return wrong[0] if wrong else sum(map(int, told)) if told else None
