"""The system prompt of a trial."""

from __future__ import annotations

from keval.execute.trial.worker import system_prompt
from keval.plugin import McpServer


class Framework:
    """An agent that may say that its framework shows the servers' instructions."""

    def __init__(self, *, shows: bool) -> None:
        self.shows_server_instructions = shows


SERVERS = (
    McpServer("docs", "http", instructions="Search first.\n"),
    McpServer("mute", "http"),
    McpServer("blank", "http", instructions=" \n"),
    McpServer("files", "http", instructions="Read whole files."),
)


def test_each_server_with_instructions_has_a_section() -> None:
    prompt = system_prompt(["Be brief. ", "", "Answer in English."], SERVERS, Framework(shows=False))

    assert prompt == (
        "Be brief.\n\nAnswer in English.\n\n# MCP Server Instructions\n\nThe following MCP servers have provided"
        " instructions for how to use their tools and resources:\n\n## docs\n\nSearch first.\n\n"
        "## files\n\nRead whole files."
    )


def test_servers_without_instructions_add_nothing() -> None:
    assert system_prompt(["Be brief."], SERVERS[1:3], object()) == "Be brief."


def test_a_framework_that_shows_instructions_itself_gets_none() -> None:
    assert system_prompt(["Be brief."], SERVERS, Framework(shows=True)) == "Be brief."
