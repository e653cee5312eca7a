"""Secrets of a config: the variables of the environment whose values are neither printed nor written.

A variable is secret by its own name, by the name of an option that it stands in or below, or because it stands in a
longer text. Paths, models, names and numbers are not, nor is a default that is written out, nor what `public:` lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.config.variables import VARIABLE, texts, variable
from keval.errors import Problem, suggestion
from keval.redaction import SHORTEST, Redactor

# `max_tokens` counts and `author` names a person, so neither is a secret.
_SECRET_OPTION = re.compile(
    r"env(?:ironment)?|headers?|args?|arguments|(?:.*_)?(?:url|uri|dsn|proxy|webhook|connection_?string)s?"
    r"|(?:.*[_-])?keys?(?:[_-].*)?|.*(?:api_?key|token(?!s)|secret|passw|passphrase|credential|auth(?!ors?$)|cookie).*",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"key|tok(?!ens)|secret|passw|credential|auth|cookie", re.IGNORECASE)
_PLAIN_NAME = re.compile(r".*_(?:file|path|dir|folder|model)", re.IGNORECASE)
_PLAIN_OPTION = re.compile(
    r"(?:.*_)?(?:type|name|label|model|path|file|folder|dir|directory|root|cwd|command|version)s?"
    r"|question_key|answer_key|description",
    re.IGNORECASE,
)
"""Options whose texts are paths, models and names, also where a variable is only a part of them."""
_LABELLED = {("agents",), ("contexts",), ("conditions",), ("judges",)}
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def learn_config(redactor: Redactor, evaluation: Evaluation) -> None:
    """Let a redactor know the secrets of an evaluation's config."""
    found = secret_variables(evaluation.source.data)
    redactor.learn((f"${{{name}}}", variable(name) or "") for name in dict.fromkeys(name for _, name in found))


def secret_variables(data: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield the secret variables of a config that are set, each with every path at which it stands."""
    public = data.get("public") if isinstance(data, dict) else None
    shown = public if isinstance(public, list) else ()
    for path, name, secret in _variables(data):
        if secret and name not in shown and variable(name):
            yield path, name


def secret_notices(evaluation: Evaluation) -> Iterator[Problem]:
    """Yield what a user should know: secrets that are too short to replace, and entries of `public` without effect."""
    data = evaluation.source.data
    told: set[str] = set()
    for path, name in secret_variables(data):
        if len(variable(name) or "") < SHORTEST and name not in told:
            told.add(name)
            yield Problem(
                evaluation.source.place(path),
                f"the value of ${{{name}}} is shorter than {SHORTEST} characters, so it is not replaced in what keval"
                f" writes; use a longer one, or add `public: [{name}]` if it is no secret",
            )
    used = {name for _, name, _ in _variables(data)}
    for index, name in enumerate(evaluation.header.public):
        if name not in used:
            place = evaluation.source.place(("public", index))
            yield Problem(place, f"no value uses ${{{name}}}, so this entry has no effect{suggestion(name, used)}")


def _variables(data: Any) -> Iterator[tuple[KeyPath, str, bool]]:
    """Yield every variable with its path, and whether it is secret there."""
    for path, text in texts(data):
        # An item of a list goes by the key of the list.
        last = next((step for step in reversed(path) if isinstance(step, str)), "")
        for match in VARIABLE.finditer(text):
            if (name := match["name"]) is not None:
                value = variable(name) or ""
                number = bool(_NUMBER.fullmatch(value))
                named = bool(_SECRET_NAME.search(name)) and not _PLAIN_NAME.fullmatch(name) and not number
                # A short number within a text is a port or a count, as in `http://localhost:${PORT}`.
                part = match[0] != text and not _plain(last) and not (number and len(value) < SHORTEST)
                yield path, name, named or part or _below_secret(path)


def _below_secret(path: KeyPath) -> bool:
    """Return whether a path leads through an option that says that what is below it is secret."""
    for depth, step in enumerate(path):
        # Labels and the names of plugins stand above options.
        option = path[:depth] not in _LABELLED and (depth != 2 or not isinstance(path[1], int))
        if isinstance(step, str) and option and not _plain(step) and _SECRET_OPTION.fullmatch(step):
            return True
    return False


def _plain(option: str) -> bool:
    return bool(_PLAIN_OPTION.fullmatch(option))
