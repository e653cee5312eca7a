"""The errors keval raises, each already explained.

Every message names the place, the problem and the remedy, so the CLI prints it without a traceback. A traceback
on the terminal therefore always means a defect, in keval or in a plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

Stage = Literal["context", "agent", "model", "mcp", "score", "replay"]
"""The part of a trial in which something went wrong; `replay` is a recording that does not fit."""

# ruff would give each of the kinds a line of its own
# fmt: off
FailureKind = Literal[
    "agent_error", "bad_answer", "bad_context", "bad_file", "bad_output", "bad_prompt", "bad_record", "bad_reply",
    "bad_request", "bad_transcript", "bad_workspace", "budget", "calls_disagree", "cancelled", "changed", "check",
    "connection", "cut_off", "denied", "error", "history_unsupported", "hook_failed", "limit", "login", "max_turns",
    "no_answer", "no_comparison", "no_plugins", "no_score", "no_solution", "no_tool_success", "no_tool_use",
    "not_placed", "out_of_scale", "outage", "output_too_large", "process", "protocol", "rate_limit", "recorded_error",
    "redirected", "refused", "replay_miss", "reply_too_large", "result_too_deep", "result_too_large", "sandbox",
    "sandbox_limit", "server_lost", "server_refused", "servers_unsupported", "setting_unknown", "skills_changed",
    "solution", "stopped", "target_failed", "terminals", "timeout", "tool_call_as_text", "tool_denied", "tools_changed",
    "tools_missing", "turns_unsupported", "unwritable", "worker_lost", "workspace",
]
# fmt: on
"""What keval and its packages call the failures of trials and scores; `docs/reliability.md` says what each means.

A plugin may have others. A status of HTTP is `http_` and its number, and an error that nobody explains has the name of
its class. Some adapters pass on a vendor's word.
"""
HINT = "; did you mean "
"""How a suggestion begins that names what may be meant."""


class KevalError(Exception):
    """An explained error; the base of all that keval raises on purpose."""


class PluginWarning(RuntimeWarning):
    """A plugin, or keval itself, tells of something wrong that does not change the results of the run."""


# A named tuple, as attrs would add a tenth to what `keval --help` takes.
class Problem(NamedTuple):
    """One thing wrong with the user's input: where it stands, what is wrong and what to do."""

    place: str
    """`file:line:column`, or as much of it as is known."""
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    def named_at(self, place: str) -> Problem:
        """Return a problem with a whole file as one at the place that names the file; another one stays."""
        return self if self.place[-1:].isdigit() else Problem(place, str(self))


class FieldError(NamedTuple):
    """One value that does not fit: its path of keys and indexes, what is wrong, and whether the key itself is wrong."""

    path: tuple[str | int, ...]
    message: str
    at_key: bool = False


class ConfigError(KevalError):
    """The configuration, the dataset or the selection is wrong; carries every problem found."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        found = [Problem("", problems)] if isinstance(problems, str) else list(problems)
        self.problems: Sequence[Problem] = found
        super().__init__("\n".join(map(str, found)))


class PluginError(KevalError):
    """A plugin is unknown, owned twice, does not import, or is no plugin of its kind."""


class PreflightError(KevalError):
    """Something the run needs is not there: a key, a server, a writable directory."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        self.problems: Sequence[str] = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class InterventionError(PreflightError):
    """What a config changes about a context does not fit what its server offers.

    The path of each error begins with the number of the intervention among those of the server, from 0.
    """

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: Sequence[FieldError] = list(errors)
        super().__init__([error.message for error in self.errors])


class MiddlewareError(KevalError):
    """A middleware failed on a model request; the message names it."""


class RunError(KevalError):
    """A run directory is missing, damaged, or does not hold what was asked for."""


class OutageError(RunError):
    """A model's endpoint, or where a run is mirrored, is down or refuses to serve; what was finished is kept here."""

    NOT_RUN = "; the remaining trials were not run"


class TrialError(KevalError):
    """What adapters and contexts raise when a trial cannot be completed.

    `kind` is a short stable name for grouping, a `FailureKind` or a plugin's own; `retryable` says that the same
    attempt may succeed later; `retry_after` is the wait in seconds that the other side asked for.
    """

    stage: Stage = "agent"
    kind: str = "error"

    def __init__(
        self,
        message: str,
        *,
        stage: Stage | None = None,
        kind: FailureKind | str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage or type(self).stage
        self.kind = kind or type(self).kind
        self.retryable = retryable
        self.retry_after = retry_after


# What the SDKs of OpenAI and Anthropic repeat by themselves, too, and 425. What a server does not implement (501) or
# which HTTP it speaks (505) stays the same; 529 is Anthropic's for an overload, 520 to 527 are Cloudflare's.
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, *range(500, 600)} - {501, 505})
"""The HTTP statuses of a model's endpoint after which the same request may succeed later."""


class ModelError(TrialError):
    """The model's endpoint refused, failed or timed out.

    Pass the HTTP status where there is one; those in `TRANSIENT_STATUSES` are retryable (408, 409, 425, 429, and from
    500 on all but 501 and 505), as is an error without a status (the connection failed).
    """

    stage: Stage = "model"

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        transient = status is None or status in TRANSIENT_STATUSES
        kind = "connection" if status is None else "rate_limit" if status == 429 else f"http_{status}"
        super().__init__(message, kind=kind, retryable=transient, retry_after=retry_after)
        self.status = status


class ToolsMissingError(TrialError):
    """The agent was not offered exactly the tools its condition gives it, so its answer would prove nothing."""

    stage: Stage = "mcp"
    kind = "tools_missing"

    def __init__(self, missing: Iterable[str], extra: Iterable[str] = (), why: str = "") -> None:
        absent, surplus = sorted(missing), sorted(extra)
        parts = [f"without {', '.join(absent)}"] if absent else []
        parts += [f"with {', '.join(surplus)}"] if surplus else []
        message = f"the agent has other tools than its condition: {' and '.join(parts)}; the trial is not scored"
        message += f" ({why})" if why else ""
        super().__init__(message, retryable=bool(absent))


class ServerLostError(TrialError):
    """An MCP server died, closed its connection or stopped answering during a trial."""

    stage: Stage = "mcp"
    kind = "server_lost"

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        super().__init__(message, kind=kind, retryable=True)


def typed(*words: object) -> str:
    """Return a command of keval as one types it, with quotes where a word needs them."""
    from shlex import join  # needed for few messages only

    return join(["keval", *map(str, words)])


def suggestion(name: str, known: Iterable[Any], listed: str = "", likeness: float = 0.6) -> str:
    """Return `; did you mean 'x'?` for the nearest of the known names.

    When none is near, return all of them after what `listed` calls them, or an empty text if it calls them nothing.
    """
    from difflib import get_close_matches  # needed for an error only

    names = [str(each) for each in known]
    if near := get_close_matches(name, names, n=1, cutoff=likeness):
        return f"{HINT}{near[0]!r}?"
    return f"; {listed}: {', '.join(names) or 'none'}" if listed else ""
