"""Environment variables in place of secrets, so that no config holds one."""

from __future__ import annotations

import os
import re
from itertools import chain, count
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import attrs

_REFERENCE = re.compile(r"\$\{(\w+)(:-[^}]*)?\}")
_WORD = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
_SECRET_WORD = re.compile(
    r".*(key|token|secret|pass(word|wd|phrase)?|pwd|pat|credential|auth(orization)?|bearer|cookie|dsn)s?", re.IGNORECASE
)
_HARMLESS = re.compile(
    r"|true|false|yes|no|on|off|\d{1,6}|trace|debug|info|warn|warning|error|critical|silent|production|development"
    r"|test|stdio|utf-?8|https?://[\w.:-]+/?",
    re.IGNORECASE,
)
_PLAIN_HEADERS = ("accept", "accept-language", "content-type", "user-agent")
# What looks drawn by chance: 20 characters or more with digits and letters, or what begins as tokens of vendors do.
_RANDOM = re.compile(
    r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[\w+=~-]{20,}|(?:sk|pk|ghp|gho|github_pat|glpat|xox[abp])[-_][\w-]{8,}"
)
_SCHEME = re.compile(r"(?i:(bearer|basic|token)\s+)(\S.*)")
_LONG_OPTION = re.compile(r"(--?[\w-]+|\w+)=(.*)", re.DOTALL)


@attrs.define
class Variables:
    """The variables that take the place of what a client's file has, or that it refers to, by name.

    The value is what stood in the file; `None` where the file itself refers to a variable.
    """

    values: dict[str, str | None] = attrs.field(factory=dict)

    @property
    def known(self) -> dict[str, str]:
        """The variables whose values are known."""
        return {name: value for name, value in self.values.items() if value is not None}

    @property
    def unset(self) -> list[str]:
        """The variables that neither the environment nor a file has."""
        return [name for name, value in self.values.items() if value is None and name not in os.environ]

    def setting(self, owner: str, name: str, value: str) -> str:
        """Return the value of an environment variable of the server `owner` as the config has it."""
        return self._referred(value) or (value if _harmless(name, value) else self._hidden(owner, name, value))

    def header(self, owner: str, name: str, value: str) -> str:
        """Return the value of a header as the config has it; `Bearer` and the like stay readable."""
        if (found := self._referred(value)) or _harmless(name, value) or name.lower() in _PLAIN_HEADERS:
            return found or value
        scheme = _SCHEME.fullmatch(value)
        hidden = self._hidden(owner, f"{owner}_{name}", scheme[2] if scheme else value)
        return f"{scheme[1]} {hidden}" if scheme else hidden

    def arguments(self, owner: str, words: list[str]) -> list[str]:
        """Return the arguments of a command as the config has them."""
        kept: list[str] = []
        for index, word in enumerate(words):
            before = words[index - 1] if index else ""
            named = _LONG_OPTION.fullmatch(word)
            if (referred := self._referred(word)) is not None:
                kept.append(referred)
            elif "://" in word:
                kept.append(self.url(owner, word))
            elif named and (_is_secret(named[1]) or _RANDOM.fullmatch(named[2])):
                kept.append(f"{named[1]}={self._hidden(owner, named[1], named[2])}")
            elif before in ("--header", "-H") and ":" in word:
                name, _, value = word.partition(":")
                kept.append(f"{name}:{' ' * value.startswith(' ')}{self.header(owner, name, value.strip())}")
            elif before.startswith("-") and _is_secret(before) and "=" not in before and not word.startswith("-"):
                kept.append(self._hidden(owner, before, word))
            else:
                kept.append(self._hidden(owner, f"{owner}_secret", word) if _RANDOM.fullmatch(word) else word)
        return kept

    def url(self, owner: str, url: str) -> str:
        """Return a URL without passwords, values of its query, and parts of its path that look drawn by chance."""
        if (referred := self._referred(url)) is not None:
            return referred
        before, parts = len(self.values), urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        name, colon, password = user.partition(":")
        if at:
            hidden = self._hidden(owner, f"{owner}_password", password or name)
            host = f"{name}:{hidden}@{host}" if colon else f"{hidden}@{host}"
        path = "/".join(
            self._hidden(owner, f"{owner}_path", step) if _RANDOM.fullmatch(step) else step
            for step in parts.path.split("/")
        )
        query = [
            (key, value if _harmless(key, value) else self._hidden(owner, f"{owner}_{key}", quote(value)))
            for key, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        if len(self.values) == before:
            return url
        # References stay readable, and values were quoted already.
        return parts._replace(netloc=host, path=path, query=urlencode(query, safe="${}%/:")).geturl()

    def _referred(self, text: str) -> str | None:
        """Return the text if it refers to variables, which are noted, and without secret defaults; else `None`."""

        def noted(match: re.Match[str]) -> str:
            name, default = match[1], (match[2] or "").removeprefix(":-")
            if default and not _is_secret(name) and not _RANDOM.fullmatch(default):
                return match[0]
            # These are set wherever a program runs.
            if name not in ("HOME", "USER", "PATH"):
                self.values[name] = default or self.values.get(name)
            return f"${{{name}}}"

        found, count = _REFERENCE.subn(noted, text)
        return found if count else None

    def _hidden(self, owner: str, name: str, value: str) -> str:
        """Return a reference to a new variable with this value, named after what it is of."""
        wanted = f"{owner}_{name}"
        labels = chain((name, wanted), (f"{wanted}_{number}" for number in count(2)))
        names = (re.sub(r"^(?=\d)", "_", re.sub(r"\W+", "_", label).strip("_").upper()) for label in labels)
        # One server or two may have different values under one name.
        named = next(each for each in names if self.values.get(each, value) == value)
        self.values[named] = value
        return f"${{{named}}}"


def looks_secret(name: str, value: str) -> bool:
    """Return whether a value may be a secret, by the name of what has it or by its own form."""
    return _is_secret(name) or _RANDOM.search(value) is not None


def _is_secret(name: str) -> bool:
    """Return whether what has this name is a secret, such as `DB_PASSWORD`, `--api-key` or `apiKey`."""
    return any(_SECRET_WORD.fullmatch(word) for word in _WORD.findall(name))


def _harmless(name: str, value: str) -> bool:
    """Return whether a value may stand in a config: one of a few words, or a number, that no secret's name has."""
    return not _is_secret(name) and bool(_HARMLESS.fullmatch(value))
