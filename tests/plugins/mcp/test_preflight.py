"""A server that does not come up is found before the first trial, and the error says why."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import PluginWarning, PreflightError
from keval_loopback.serving import serve
from keval_mcp import Http, Sse, Stdio
from tests.contexts import started
from tests.plugins.mcp.servers.deep import app
from tests.stdio_server import ENVIRONMENT


def _problem(provider: Any) -> str:
    async def start() -> None:
        async with started(provider, "weather"):
            pass

    with pytest.raises(PreflightError) as raised:
        asyncio.run(start())
    return str(raised.value)


def test_missing_command() -> None:
    expected = "server 'weather': command 'no-such-thing' not found; install it or give its path; `uvx NAME` starts a"

    assert _problem(Stdio(command="no-such-thing")).startswith(expected)


def test_a_command_that_is_nearly_right_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.sh").write_text("#!/bin/sh\n", encoding="utf-8")

    commands = ("pythn", "python a.py", "./server.sh", "./sever.sh", "servr.sh")
    told = [_problem(Stdio(command=each, cwd=tmp_path)) for each in commands]

    assert told == [
        "server 'weather': command 'pythn' not found; did you mean 'python'?",
        "server 'weather': command 'python a.py' not found; write command: python, args: [a.py]",
        (
            "server 'weather': command './server.sh' not found; it cannot be run: `chmod +x ./server.sh`, or write the"
            " program that runs it as the command"
        ),
        "server 'weather': command './sever.sh' not found; did you mean 'server.sh'?",
        "server 'weather': command 'servr.sh' not found; did you mean 'server.sh'?",
    ]


def test_a_program_that_ends_is_told_with_what_it_may_need(tmp_path: Path) -> None:
    (tmp_path / "harbour.py").write_text("import os; os.environ['HARBOUR_TOKEN']", encoding="utf-8")

    told = [
        _problem(Stdio(command="python", args=tuple(args), cwd=tmp_path)).splitlines()[0]
        for args in (["harbour.py"], ["habour.py"], ["harbour"], ["-c", ""], ["-c", "exit('npm error 404')"])
    ]

    ended = "server 'weather' did not come up: Connection closed; "
    variable = "write env: {HARBOUR_TOKEN: '${HARBOUR_TOKEN}'} (with `keval init`: --env HARBOUR_TOKEN)"
    assert told == [
        f"{ended}it seems to need a variable: {variable}, and export that",
        f"{ended}did you mean 'harbour.py'?",
        f"{ended}did you mean 'harbour.py'?",
        f"{ended}it wrote nothing: start its command by hand to see why",
        f"{ended}no package has that name: correct it",
    ]


def test_a_module_that_is_missing_is_laid_on_kevals_python_only_where_that_runs_the_server() -> None:
    own = _problem(Stdio(command=sys.executable, args=("-c", "import nowhere_to_be_found")))
    other = _problem(Stdio(command="sh", args=("-c", "echo ModuleNotFoundError >&2")))

    assert "is keval's own Python: activate the server's environment" in own
    assert other.endswith("its standard error ends:\nModuleNotFoundError")


def test_a_certificate_that_is_unknown_to_a_server_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ours.crt")
    said = "echo invalid peer certificate: UnknownIssuer >&2"

    told = [
        _problem(Stdio(command="sh", args=("-c", said), env=env)) for env in ({}, {"SSL_CERT_FILE": "/etc/ours.crt"})
    ]

    assert ["write env: {SSL_CERT_FILE: '${SSL_CERT_FILE}'}" in each for each in told] == [True, False]


def test_relative_command_starts_at_cwd(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "server"
    program.write_text("#!/bin/sh\necho I have run >&2\n", encoding="utf-8")
    program.chmod(0o755)

    assert "its standard error ends:\nI have run" in _problem(Stdio(command="./bin/server", cwd=tmp_path))


def test_command_is_searched_on_the_path_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\necho I have run >&2\n", encoding="utf-8")
    program.chmod(0o755)

    assert "its standard error ends:\nI have run" in _problem(Stdio(command="server", env={"PATH": str(tmp_path)}))


def test_cwd_that_is_no_folder(tmp_path: Path) -> None:
    missing = tmp_path / "harbor"
    (tmp_path / "harbour").mkdir()

    expected = f"server 'weather': cwd '{missing}' is not a folder; correct it or leave it out; did you mean 'harbour'?"
    assert expected == _problem(Stdio(command="python", cwd=missing))


def test_server_that_exits_shows_the_end_of_its_standard_error() -> None:
    code = "import sys; [print('line', n, file=sys.stderr) for n in range(50)]; sys.exit('no API key: set WEATHER_KEY')"

    first, second, *lines = _problem(Stdio(command=sys.executable, args=("-c", code))).splitlines()

    assert "server 'weather' did not come up: Connection closed; it seems to need a variable: write" in first
    assert "its standard error ends:" == second
    assert [*(f"line {n}" for n in range(31, 50)), "no API key: set WEATHER_KEY"] == lines


@pytest.mark.slow
def test_server_that_says_nothing_is_given_up(server: Callable[..., Stdio], doorbell: Callable[[], Any]) -> None:
    async def start() -> str:
        async with doorbell() as bell:  # which waits for the process to end
            with pytest.raises(PreflightError) as raised:
                async with started(server("mute", str(bell.port), startup_timeout=1), "weather"):
                    pass
            return str(raised.value)

    expected = (
        "server 'weather' did not answer within 1 s; raise its startup_timeout if it is only slow to start\n"
        "its standard error ends:\nstill loading the model"
    )
    assert expected == asyncio.run(start())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "shown"),
    [(r"b'\xff\xfe loading\n'", "\ufffd\ufffd loading"), ("b'Welcome to weather!\\n'", "Welcome to")],
)
def test_server_whose_standard_output_is_no_mcp_says_so(written: str, shown: str) -> None:
    code = f"import os, sys; os.write(1, {written}); sys.stdin.read()"

    problem = _problem(Stdio(command=sys.executable, args=("-I", "-S", "-c", code), startup_timeout=0.6))

    assert f"its standard output has what is no MCP message: '{shown}" in problem
    assert "write logs to standard error" in problem
    assert "startup_timeout" not in problem


DEEP = Path(__file__).parent / "servers" / "deep.py"
TOO_DEEP = "JSON that is nested more than 200 levels deep"


@pytest.mark.parametrize("levels", [400, 100_000])
def test_tool_that_is_nested_too_deeply_is_told_by_its_name(levels: int) -> None:
    problem = _problem(Stdio(command=sys.executable, args=(str(DEEP), str(levels))))

    told = f"{TOO_DEEP}, in its tool 'look'; have the server write flatter JSON (a schema can use $defs)"
    assert f"server 'weather' did not come up: {told}" == problem


def test_no_tool_is_blamed_for_what_is_nested_too_deeply_beside_the_tools() -> None:
    problem = _problem(Stdio(command=sys.executable, args=(str(DEEP), "0", "0", "400")))

    assert f"server 'weather' did not come up: {TOO_DEEP}; have the server write flatter JSON" in problem


@pytest.mark.parametrize(("form", "provider"), [("json", Http), ("events", Http), ("sse", Sse)])
def test_tool_that_is_nested_too_deeply_is_told_over_http(form: str, provider: Any) -> None:
    async def start() -> str:
        async with serve(app(400, form)) as base:
            with pytest.raises(PreflightError) as raised:
                async with started(provider(url=f"{base}/mcp", startup_timeout=20), "weather"):
                    pass
            return f"{raised.value}".replace(base, "")

    problem = asyncio.run(asyncio.wait_for(start(), 10))

    assert problem.startswith(f"server 'weather' at /mcp did not come up: {TOO_DEEP}")


def test_tool_that_is_nested_deeply_or_recursive_is_passed_on() -> None:
    async def start() -> list[str]:
        async with started(Stdio(command=sys.executable, args=(str(DEEP), "180")), "weather") as source:
            return [name for listing in source.tool_listings for name in listing.tools]

    assert ["first", "look", "last"] == asyncio.run(start())


NO_TOOLS = "server 'weather' lists no tools, "
NOTHING = f"{NO_TOOLS}so it changes nothing for an agent; check its configuration"
BESIDE = "it changes nothing for agents that take tools alone from MCP servers"


def _listing(capabilities: dict[str, Any], pages: str = "raise LookupError(method)") -> Stdio:
    """Describe a server that declares this, and answers `tools/list` for a `cursor` by the code of `pages`."""
    code = f"""
from tests.stdio_server import answer_each, NoAnswerError
def answer(method, params):
    cursor = params.get("cursor", 0)
    if method == "initialize":
        info = {{"name": "weather", "version": "1"}}
        return {{"protocolVersion": "2025-06-18", "capabilities": {capabilities!r}, "serverInfo": info}}
    {pages}
answer_each("weather", answer, begins=False)
"""
    return Stdio(command="python", args=("-c", code), env=ENVIRONMENT)


@pytest.mark.parametrize(
    ("capabilities", "pages", "problem"),
    [
        ({"tools": {}}, 'return {"tools": []}', NOTHING),
        ({}, "raise LookupError(method)", NOTHING),
        ({"tools": {}}, "raise LookupError(method)", "server 'weather' did not come up: no such method: tools/list"),
    ],
)
def test_server_without_tools(capabilities: dict[str, Any], pages: str, problem: str) -> None:
    assert problem == _problem(_listing(capabilities, pages))


@pytest.mark.parametrize(
    ("capabilities", "pages", "others"),
    [
        # A server that is asked for tools although it declares none need not answer.
        ({"resources": {}}, "raise NoAnswerError", "resources"),
        ({"prompts": {}, "tools": None}, "raise NoAnswerError", "prompts"),
        ({"resources": {}, "prompts": {}, "tools": {}}, 'return {"tools": []}', "prompts and resources"),
    ],
)
def test_server_with_nothing_but_resources_or_prompts_is_told(
    capabilities: dict[str, Any], pages: str, others: str
) -> None:
    async def start() -> list[tuple[str, ...]]:
        async with started(_listing(capabilities, pages), "weather") as source:
            return [listing.tools for listing in source.tool_listings]

    with pytest.warns(PluginWarning, match=f"^{NO_TOOLS}only {others}: {BESIDE}$"):
        assert [()] == asyncio.run(start())
    alone = attrs.evolve(_listing(capabilities, pages), offer="tools")
    assert NOTHING == _problem(alone)


def test_server_that_declares_nothing_may_have_tools() -> None:
    async def start() -> list[tuple[str, ...]]:
        page = 'return {"tools": [{"name": "look", "inputSchema": {}}]}'
        async with started(_listing({}, page), "weather") as source:
            return [listing.tools for listing in source.tool_listings]

    assert [("look",)] == asyncio.run(start())


@pytest.mark.parametrize(
    ("cursor", "problem"),
    [
        ('"next"', "has no end: page 2 leads on to an earlier one, by nextCursor 'next'; have the server leave"),
        ('""', "has no end: page 2 leads on to an earlier one, by nextCursor ''; have the server leave"),
        (
            "(cursor + 1) % 7 or 1",
            "has no end: page 7 leads on to an earlier one, by nextCursor 1; have the server leave",
        ),
        ("cursor + 1", "has more than 1000 pages; have the server list more on each"),
    ],
)
def test_list_of_tools_without_end(cursor: str, problem: str) -> None:
    page = f'return {{"tools": [], "nextCursor": {cursor}}}'

    assert f"server 'weather' did not come up: its list of tools {problem}" in _problem(_listing({"tools": {}}, page))


@pytest.mark.parametrize("provider", [Http, Sse])
def test_url_where_nobody_listens(provider: Any) -> None:
    told = "All connection attempts failed; nothing listens there: start it, or correct the host and the port"
    expected = f"server 'weather' at http://127.0.0.1:9/mcp did not come up: {told}"

    assert expected == _problem(provider(url="http://user:secret@127.0.0.1:9/mcp?key=secret"))


@pytest.mark.parametrize("provider", [Http, Sse])
def test_url_of_another_page(lasting_http: str, provider: Any) -> None:
    url = lasting_http.replace("/mcp", "/elsewhere")

    problem = _problem(provider(url=url))

    assert problem.startswith(f"server 'weather' at {url} did not come up: ")
    assert "404 Not Found" in problem
    assert f"; try {lasting_http}{' with `type: http`' * (provider is Sse)}" in problem


def test_https_where_nothing_is_encrypted(lasting_http: str) -> None:
    problem = _problem(Http(url=lasting_http.replace("http:", "https:")))

    assert "; it does not speak TLS: write http:// in its URL" in problem


def test_another_transport(lasting_http: str) -> None:
    assert "; if it speaks streamable HTTP, write `type: http`" in _problem(Sse(url=lasting_http))
