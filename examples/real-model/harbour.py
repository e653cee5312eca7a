"""An MCP server of a harbour that was invented for this example, over stdio, with three tools."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
TIDES = {"monday": ("04:10", "16:35"), "tuesday": ("05:02", "17:28"), "wednesday": ("05:57", "18:25")}
FERRIES = {"Ferrowick": ("07:15", "12:40", "18:05"), "Stenholm": ("09:30", "21:10"), "Ulvay": ("06:50",)}
FEES = {"motor boat": 34, "sailing yacht": 21, "fishing boat": 9}

server = MCPServer("grindle-harbour", instructions="The harbour of Grindle.", log_level="WARNING")


@server.tool(annotations=READS)
def high_water(day: str) -> str:
    """Returns the two times of high water in the harbour of Grindle on a day of the week, in local time.

    Use it for every question about tides, high water or the best time to enter the harbour. `day` is the English name
    of a day, such as "Monday".
    """
    if day.lower() not in TIDES:
        raise ToolError(f"no tides for {day!r}; there are {', '.join(TIDES)}")
    return "High water at {} and {}.".format(*TIDES[day.lower()])


@server.tool(annotations=READS)
def ferries(destination: str) -> str:
    """Returns the departures of the ferries from Grindle to an island, each day alike, in local time.

    Use it for every question about when a ferry leaves. `destination` is the name of the island, such as "Ulvay".
    """
    if destination not in FERRIES:
        raise ToolError(f"no ferry to {destination!r}; there are {', '.join(FERRIES)}")
    return f"Ferries to {destination} leave at {', '.join(FERRIES[destination])}."


@server.tool(annotations=READS)
def mooring_fee(boat: str) -> str:
    """Returns what it costs to moor a boat in the harbour of Grindle for one night, in crowns.

    Use it for every question about prices and fees. `boat` is the kind of boat: "motor boat", "sailing yacht" or
    "fishing boat".
    """
    if boat not in FEES:
        raise ToolError(f"no fee for {boat!r}; there are {', '.join(FEES)}")
    return f"A night costs {FEES[boat]} crowns."


if __name__ == "__main__":
    server.run("stdio")
