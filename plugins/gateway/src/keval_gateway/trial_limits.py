"""The limits of one trial: counts what its attempts use, and ends it when it would use more than it may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import attrs

from keval import Transcript, Usage
from keval.errors import TrialError
from keval.records.models import Price, cost_of, dollars

_BILLIONTHS = 10**9
"""Of a US dollar: as whole numbers, sums are exact."""
_SHOWN: Mapping[str, Callable[[int], str]] = {
    "model_calls": "{:,} model calls".format,
    "tokens": "{:,} tokens".format,
    "cost": lambda billionths: dollars(billionths / _BILLIONTHS),
    "tool_calls": "{:,} tool calls".format,
}
_BY_REQUEST = frozenset({"model_calls", "tokens", "cost"})
"""What a further model request takes."""


@attrs.define
class _Replies:
    """What one side, the agent or the proxy, told of the replies of one attempt.

    A reply whose tokens or cost are unknown is `untold`, and counts as much as the largest before it. `unknown` is what
    was told that cannot be, before any count that can.
    """

    used: Counter[str] = attrs.field(factory=Counter)
    largest: Counter[str] = attrs.field(factory=Counter)
    is_told: bool = False
    unknown: str | None = None
    untold: bool = False

    def add(self, usage: Usage, price: Price | None, model_calls: int = 1) -> None:
        cost = cost_of(price, usage)
        amounts = {"tokens": usage.total, "cost": None if cost is None else round(cost * _BILLIONTHS)}
        self.used["model_calls"] += model_calls
        for name, amount in amounts.items():
            counted = max(usage.least, self.largest[name]) if name == "tokens" and amount is None else amount
            counted = self.largest[name] if counted is None else counted
            self.used[name] += counted
            self.largest[name] = max(self.largest[name], counted)
        self.untold = self.untold or usage.total is None
        self.is_told = self.is_told or bool(usage.total)
        if not self.is_told:
            self.unknown = self.unknown or usage.impossible


@attrs.define(eq=False)
class TrialMeter:
    """Counts what a trial uses over all its attempts, against its `limits`, each by its name.

    `price` is that of the agent's model, and `prices` has those of others, by `provider/name`. The entry point `limits`
    in the group `keval.meters`; see `keval.seams.use_meter`.

    An attempt that would use more is ended at once, by `expire`, and `reached` says why. Until then, a trial may use
    as much as its limits say. It is told of replies and calls by the agent, the proxy and the tap; where several tell
    of the same, what tells most counts.
    """

    limits: Mapping[str, float | None]
    price: Price | None = None
    prices: Mapping[str, Price | None] = attrs.field(factory=dict)
    reached: TrialError | None = attrs.field(default=None, init=False)
    _expire: Callable[[], object] = attrs.field(default=lambda: None, init=False)
    _before: Counter[str] = attrs.field(factory=Counter, init=False)
    _agent: _Replies = attrs.field(init=False)
    _proxy: _Replies = attrs.field(init=False)
    _calls: Counter[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.begin(self._expire)

    def begin(self, expire: Callable[[], object]) -> None:
        """Begin an attempt, which `expire` ends."""
        self._expire = expire
        self._agent, self._proxy, self._calls = _Replies(), _Replies(), Counter()

    def renew(self) -> None:
        """Begin another trial, of the same conversation."""
        self.reached, self._before = None, Counter()
        self.begin(self._expire)

    def asks(self, *, counted: bool = True) -> None:
        """Be told that a model is about to be asked; a request that is `counted` counts until it is `lost`.

        Raises:
            TrialError: of kind `limit`; the request must not be sent.
        """
        if error := self.exhausted(in_flight=counted):
            raise self._end(error)
        self._calls["requests"] += counted

    def lost(self) -> None:
        """Be told that a request that was counted brought no reply."""
        self._calls["requests"] -= 1

    def passed(self, tokens: int) -> None:
        """Be told about how many tokens a request and its reply had, before the reply; they count if it tells none."""
        self._calls["passed"] += tokens

    def replied(self, usage: Usage, model: str = "", *, to_proxy: bool = False) -> None:
        """Be told a reply of a model, by default of the agent's."""
        (self._proxy if to_proxy else self._agent).add(usage, self.prices.get(model, self.price))
        self._check()

    def called(self, *, own: bool = False) -> None:
        """Be told by the agent of a tool call, which is about to be made."""
        self._calls["own" if own else "told"] += 1
        self._check()

    def tapped(self) -> str | None:
        """Be told by the tap of a tool call; returns why it must not be made, if it must not."""
        self._calls["tapped"] += 1
        self._check()
        return None if self.reached is None else str(self.reached)

    def end(self, transcript: Transcript) -> TrialError | None:
        """End the attempt, of which the transcript may tell more; returns the limit that was reached, if one was."""
        if transcript.model_calls is not None or transcript.usage != Usage() or transcript.usage.impossible:
            whole = _Replies()
            whole.add(transcript.usage, self.price, transcript.model_calls or 0)
            if not (self._agent.used or self._proxy.used):
                self._agent.unknown = whole.unknown
            self._agent.used |= whole.used
        calls = len(transcript.own_calls) + (transcript.unlisted_calls or 0)
        self._calls["told"] = max(self._calls["told"], calls - self._calls["own"])
        self._check()
        self._before = self._used(in_flight=False)
        # Between two attempts there is nothing to end.
        self.begin(lambda: None)
        return self.reached

    def exhausted(self, *, in_flight: bool = False) -> TrialError | None:
        """Return the limit that lets the trial ask no model any more; requests that are `in_flight` may count, too."""
        return self._found(self._used(in_flight=in_flight), _BY_REQUEST)

    def _check(self) -> None:
        if error := self._found(self._used(in_flight=False), frozenset()):
            self._end(error)

    def _end(self, error: TrialError) -> TrialError:
        if self.reached is None:
            self.reached = error
            self._expire()
        return self.reached

    def _used(self, *, in_flight: bool) -> Counter[str]:
        """Return what was used by now. Requests are in flight until their replies are told."""
        # `|` takes the larger of two counts: agent and proxy tell of the same replies.
        used = self._agent.used | self._proxy.used
        if self._agent.untold or self._proxy.untold:
            least = Usage(at_least=self._calls["passed"])
            cost = round(self.price.at_least(least) * _BILLIONTHS) if self.price is not None else 0
            used |= Counter(tokens=least.least, cost=cost)
        if in_flight:
            used["model_calls"] = max(used["model_calls"], self._calls["requests"])
        # The agent and the tap tell of the same calls of servers; of the agent's own tools only the agent can tell.
        used["tool_calls"] = self._calls["own"] + max(self._calls["told"], self._calls["tapped"])
        return self._before + used

    def _found(self, used: Counter[str], needed: frozenset[str]) -> TrialError | None:
        """Return the first limit that was passed, or which does not hold any more of what is needed."""
        unknown = self._agent.unknown or self._proxy.unknown
        for name, shown in _SHOWN.items():
            limit = self.limits.get(name)
            if limit is None:
                continue
            most = round(limit * _BILLIONTHS if name == "cost" else limit)
            option = f"execution.limits.{name}"
            if used[name] > most or (name in needed and used[name] == most):
                told = f"the trial reached its limit of {shown(most)}: it used {shown(used[name])}, with all attempts"
                return TrialError(f"{told}; look at what it did, or raise {option}", kind="limit")
            if unknown and name in ("tokens", "cost"):
                told = f"the model told what cannot be a count of tokens ({unknown}), so that {option} cannot be kept"
                return TrialError(told, stage="model", kind="limit")
        return None
