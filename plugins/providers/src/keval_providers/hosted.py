"""Models behind a vendor's protocol: keys, other ways of signing in, and base URLs from environment variables."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import ClassVar

import attrs

from keval.plugin import Endpoint, PreflightError, Wire
from keval_clients.network import custom_headers, variable_problems
from keval_providers.keys import Key, find_key
from keval_providers.platform import Login, SignIn
from keval_providers.tokens import command_token


@attrs.frozen
class Way:
    """A way of signing in where no key is set.

    `opens` is `module:function`. The module is imported when the way is tried; the function is given the provider, and
    returns a `Login`, or `None` where there is nothing to sign in with. It raises PreflightError where there is
    something that cannot be used. `needs` says to a user what would make the way one, if anything is to be said.
    `extra` is that of this package with the libraries that the module imports.
    """

    name: str
    opens: str
    needs: str = ""
    extra: str = ""

    async def open(self, provider: HostedProvider) -> Login | None:
        """Try the way. Raises PreflightError, and ModuleNotFoundError: the extra is not installed."""
        module, _, function = self.opens.partition(":")
        opens: Callable[[HostedProvider], Awaitable[Login | None]] = getattr(import_module(module), function)
        return await opens(provider)


@attrs.frozen
class HostedProvider:
    """An API that speaks one or more vendors' protocols, with its key and base URL from environment variables.

    Each provider is a class, whose fields are its options in a config: `command` prints a token, which is sent as a
    bearer token, and goes before all other ways of signing in.

    `default_url` is the base URL if none of `url_variables` is set; `None` if every user has another one. `wires` has
    each protocol with what follows the base URL, from which `ending` is cut off first, as users write it with or
    without that. `families` are the beginnings of names that belong to the vendor. `key_optional` says that it may
    serve without a key, as servers on one's own machine do. A key is sent as its protocol sends it, or in `key_header`;
    what `token_variables` hold is sent as a bearer token. `ways` are tried, first to last, where none of that is set.
    `header_variables` name more headers that are the vendor's own, and `custom_headers` the variable that has any.
    `renamed` has fields of Chat Completions by OpenAI's name, each with the vendor's.
    """

    vendor: ClassVar[str]
    key_variables: ClassVar[tuple[str, ...]]
    url_variables: ClassVar[tuple[str, ...]]
    default_url: ClassVar[str | None]
    wires: ClassVar[Mapping[Wire, str]]
    ending: ClassVar[str] = ""
    families: ClassVar[tuple[str, ...]] = ()
    key_optional: ClassVar[bool] = False
    key_header: ClassVar[str | None] = None
    token_variables: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[tuple[Way, ...]] = ()
    header_variables: ClassVar[Mapping[str, str]] = {}
    custom_headers: ClassVar[str | None] = None
    renamed: ClassVar[Mapping[str, str]] = {}

    command: tuple[str, ...] = ()

    @property
    def urls(self) -> dict[Wire, str]:
        """The base URL of each protocol, as the environment says now; empty if there is none."""
        url = next((os.environ[name] for name in self.url_variables if os.environ.get(name)), self.default_url)
        if url is None:
            return {}
        root = url.rstrip("/").removesuffix(self.ending)
        # Where nothing is cut off or added, the URL stays as the user wrote it.
        return {wire: f"{root}{path}" if path or self.ending else url for wire, path in self.wires.items()}

    @classmethod
    def wires_of(cls, name: str) -> Mapping[Wire, str]:
        """Return each protocol that a model speaks, with what follows the base URL; all speak the same, as a rule."""
        return cls.wires

    def urls_of(self, name: str, login: Login) -> dict[Wire, str]:
        """Return the base URL of each protocol that a model speaks."""
        return self.urls

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError naming each variable that is wrong or not set."""
        used = ", ".join(f"{self.vendor}/{name}" for name in names)
        problems = variable_problems()
        if not self.urls:
            problems.append(f"{' or '.join(self.url_variables)} is not set; {used} needs the base URL: export it")
        try:
            login = await self.login(used)
            login = self.with_account(login)
            await login.prepare()
        except PreflightError as error:
            raise PreflightError([*problems, *error.problems]) from error
        if problems:
            raise PreflightError(problems)
        yield {
            name: Endpoint(
                name,
                self.urls_of(name, login),
                login.key,
                platform=login.platform,
                login=login.how,
                refused={"openai-chat": {**self.renamed}},
            )
            for name in names
        }

    async def login(self, used: str) -> Login:
        """Return the first way of signing in that there is; `used` names the models, for errors.

        Raises PreflightError: there is none, or one is there and cannot be used.
        """
        if self.command:
            return Login(f"the command {self.command[0]}", platform=SignIn(token=command_token(self.command)))
        variables = (*self.key_variables, *self.token_variables)
        if (key := find_key(variables, ask_keyring=not self.key_optional)) is not None:
            return self.with_key(key)
        others = []
        for way in self.ways:
            try:
                if (login := await way.open(self)) is not None:
                    return login
                others.append(way.needs)
            except ModuleNotFoundError:
                from keval.seams.installation import missing_module  # only who needs a remedy waits for it

                others.append(way.needs and f"{way.needs} with {missing_module(f'keval-providers[{way.extra}]')}")
        if self.key_optional:
            return Login("no key")
        ways = ", or ".join(filter(None, ["export it" if variables else "", *others, "choose a simulated/ model"]))
        if not variables:
            raise PreflightError(f"there is nothing to sign in with; {used} needs it: {ways}")
        wanted = " or ".join(variables)
        state = "empty" if any(name in os.environ for name in variables) else "not set"
        raise PreflightError(f"{wanted} is {state}; {used} needs it: {ways}")

    def with_account(self, login: Login) -> Login:
        """Return the login with the headers that the vendor's SDK reads from the environment, if there are any."""
        account = {head: os.environ[name] for name, head in self.header_variables.items() if os.environ.get(name)}
        custom = custom_headers(self.custom_headers) if self.custom_headers else {}
        if not (account or custom):
            return login
        return login.with_headers({**account, **custom}, tuple(custom.items()))

    def with_key(self, key: Key) -> Login:
        """Return how one is signed in by a key or a token that was found."""
        noun, headers = "key", {self.key_header: key.value} if self.key_header else {}
        if key.variable in self.token_variables:
            noun, headers = "token", {"authorization": f"Bearer {key.value}"}
        how = f"the {noun} in {key.where}"
        return Login(how, platform=SignIn(headers, secrets=((how, key.value),))) if headers else Login(how, key.value)
