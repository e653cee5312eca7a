"""Made-up servers of many kinds with questions about them, and the loop of an agent that has their tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from keval_gateway import ChatMessage, ChatRequest, ChatTool
from keval_simulator.answers import Flaws
from keval_simulator.model import SimulatedModel

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
PERFECT = Flaws(overlooks=0, clutches=0, misreads=0)
STEADY = SimulatedModel(seed=1, flaws=PERFECT, guesses=0, careless=0)
Served: TypeAlias = tuple[ChatTool, Callable[..., Any]]


class ServerError(Exception):
    """What a tool says in place of a result."""


def tool(run: Callable[..., Any], name: str, about: str, properties: Mapping[str, Any], *required: str) -> Served:
    return ChatTool(name, about, {"type": "object", "properties": properties, "required": list(required)}), run


@attrs.frozen
class Talk:
    """The calls that were made, and the answer."""

    calls: list[tuple[str, dict[str, Any]]]
    answer: str


def talk(
    tools: Sequence[Served],
    question: str,
    *,
    history: Sequence[ChatMessage] = (),
    system: str = "",
    model: Callable[[ChatRequest], Any] = STEADY,
    repetition: int = 1,
) -> Talk:
    """Run an agent's loop until the model answers in words."""
    served = {each.name: run for each, run in tools}
    messages = [*history, ChatMessage("user", question)]
    made: list[tuple[str, dict[str, Any]]] = []
    for step in range(10):
        offered = tuple(each for each, _ in tools)
        reply = model(ChatRequest("gemini", "m", tuple(messages), system, offered, repetition=repetition))
        if not reply.calls:
            return Talk(made, reply.text)
        calls = [attrs.evolve(call, id=f"{step}-{index}") for index, call in enumerate(reply.calls)]
        made += [(call.name, dict(call.arguments)) for call in calls]
        messages.append(ChatMessage("assistant", calls=tuple(calls)))
        for call in calls:
            try:
                result, failed = served[call.name](**call.arguments), False
            except ServerError as error:
                result, failed = str(error), True
            text = result if isinstance(result, str) else json.dumps(result)
            messages.append(ChatMessage("tool", text, call_id=call.id, name=call.name, error=failed))
    raise AssertionError(f"no answer after {made}")


def known(values: Mapping[str, Any], key: str, problem: str) -> Any:
    """Return a value, or fail as a server does."""
    if key not in values:
        raise ServerError(problem)
    return values[key]


def rows(text: str) -> list[dict[str, Any]]:
    """Return records out of lines of values, the first of which has the names."""
    head, *lines = [line.strip().split("|") for line in text.strip().splitlines()]
    read = [
        [json.loads(value) if re.fullmatch(r"-?[\d.]+|true|false|null", value) else value for value in line]
        for line in lines
    ]
    return [dict(zip(head, values, strict=True)) for values in read]


TUGS = {each["name"]: each for each in rows("name|bollard_pull_t|built\nGrindle Ferrowick|71|1998\nOstre Vane|55|2004")}
BERTHS = rows("berth|depth_m|occupied|vessel\nB1|9.5|true|Calyx\nB2|12|false|null\nB3|7|true|Morrow")
TIDES = {"2026-03-03": {"date": "2026-03-03", "high": "04:12", "low": "10:25"}}
HARBOUR = [
    tool(
        lambda name: known(TUGS, name, f"no tug named {name!r}; valid names: {', '.join(TUGS)}"),
        "tug",
        "Data of a tug.",
        {"name": TEXT},
        "name",
    ),
    tool(lambda: BERTHS, "list_berths", "List all berths of the harbour.", {}),
    tool(
        lambda date: known(TIDES, date, "date must be in YYYY-MM-DD"),
        "tide_table",
        "Tides of a day.",
        {"date": TEXT},
        "date",
    ),
]

ORDERS = {
    each["order_id"]: each
    for each in rows("order_id|customer_id|status|total\nA-11|C-7|shipped|129.9\nA-12|C-9|pending|15")
}
CUSTOMERS = {
    each["id"]: each
    for each in rows("id|name|email|city\nC-7|Anna Schmidt|anna@x.org|Kiel\nC-9|Bo Larsen|bo@y.dk|Aarhus")
}
STATUS = {"enum": ["pending", "shipped", "all"]}
SHOP = [
    tool(
        lambda order_id: known(ORDERS, order_id, "Order not found"),
        "get_order",
        "Get an order by its number.",
        {"order_id": TEXT},
        "order_id",
    ),
    tool(
        lambda customer_id, status="all": [each for each in ORDERS.values() if each["customer_id"] == customer_id],
        "list_orders",
        "List the orders of a customer.",
        {"customer_id": TEXT, "status": STATUS},
        "customer_id",
    ),
    tool(
        lambda query: [each for each in CUSTOMERS.values() if query.lower() in each["name"].lower()],
        "search_customers",
        "Search customers by name.",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda customer_id: known(CUSTOMERS, customer_id, "unknown customer"),
        "get_customer",
        "Get a customer.",
        {"customer_id": TEXT},
        "customer_id",
    ),
    tool(
        lambda order_id: f"{order_id} is cancelled", "cancel_order", "Cancel an order.", {"order_id": TEXT}, "order_id"
    ),
]

HOURS = {"Europe/London": "10:00", "Asia/Tokyo": "19:00"}
ZONE = {"type": "string", "description": "IANA timezone name (e.g., 'America/New_York', 'Europe/London')"}
TIME = [
    tool(
        lambda timezone: {"timezone": timezone, "datetime": f"T{known(HOURS, timezone, 'Invalid timezone')}"},
        "get_current_time",
        "Get current time in a timezone",
        {"timezone": ZONE},
        "timezone",
    ),
    tool(
        lambda source_timezone, time, target_timezone: f"{time} {source_timezone} is 05:30 {target_timezone}",
        "convert_time",
        "Convert time between timezones",
        {
            "source_timezone": ZONE,
            "time": {"type": "string", "description": "24-hour format (HH:MM)"},
            "target_timezone": ZONE,
        },
        "source_timezone",
        "time",
        "target_timezone",
    ),
]

FILES = {
    "/data/box/notes.txt": "Buy 14 anchors.\nCall Marit about the keel.",
    "/data/box/plan.md": "# Plan\n\nThe launch is on 4 May. The budget is 900 crowns.",
}


def allowed(path: str) -> str:
    if not path.startswith("/data/box"):
        raise ServerError(f"Access denied - path outside allowed directories: {path} not in /data/box")
    return path


PATH = {"path": TEXT}
FOLDER = [
    tool(
        lambda path: known(FILES, allowed(path), f"ENOENT: no such file, open '{path}'"),
        "read_text_file",
        "Read the complete contents of a file as text.",
        PATH,
        "path",
    ),
    tool(
        lambda path: "[FILE] notes.txt\n[FILE] plan.md\n[DIR] old" if allowed(path) else "",
        "list_directory",
        "Get a listing of all files and directories in a path.",
        PATH,
        "path",
    ),
    tool(
        lambda: "Allowed directories:\n/data/box",
        "list_allowed_directories",
        "Returns the directories that can be accessed.",
        {},
    ),
    tool(
        lambda path, content: "written",
        "write_file",
        "Create a new file.",
        {"path": TEXT, "content": TEXT},
        "path",
        "content",
    ),
]

BOOKS = rows("id|title|year|price\n1|Fog Bell|1974|12.5\n2|Salt Line|2001|30\n3|Dry Dock|1988|8")
SQL = {"query": {"type": "string", "description": "SELECT SQL query to execute"}}
DATABASE = [
    tool(
        lambda query: str(known({"SELECT * FROM books": BOOKS}, query, "Database error: no such table")),
        "read_query",
        "Execute a SELECT query on the SQLite database",
        SQL,
        "query",
    ),
    tool(
        lambda: "[{'name': 'books'}, {'name': 'authors'}]", "list_tables", "List all tables in the SQLite database", {}
    ),
    tool(
        lambda table_name: str([{"cid": 0, "name": "id"}, {"cid": 1, "name": "title"}]),
        "describe_table",
        "Get the schema information for a table",
        {"table_name": {"type": "string", "description": "Name of the table"}},
        "table_name",
    ),
]

PAGES = {
    "retention": "# Retention\n\nThe rules keep 7 daily, 4 weekly and 12 monthly snapshots.",
    "remote": "# Remote\n\nThe server listens on port 7411. Connections are encrypted.",
}
DOCS = [
    tool(
        lambda query: (
            "\n\n".join(
                f"page: {name}\n\n{text.splitlines()[0]}"
                for name, text in PAGES.items()
                if any(word.rstrip("s") in text for word in query.split())
            )
            or "No section fits the query."
        ),
        "search_docs",
        "Search the documentation.",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda page: known(PAGES, page, f"there is no page {page!r}; there are {', '.join(PAGES)}"),
        "read_page",
        "Read one page, by the name that a search gives.",
        {"page": TEXT},
        "page",
    ),
]

UNITS = {"mile": 1609.344, "kilometer": 1000.0}


def converted(value: float, from_unit: str, to_unit: str) -> dict[str, float]:
    factors = [
        known(UNITS, unit, f"Unknown unit '{unit}'. Supported units: {', '.join(UNITS)}")
        for unit in (from_unit, to_unit)
    ]
    return {"result": round(value * factors[0] / factors[1], 3)}


PAIR = {"a": NUMBER, "b": NUMBER}
SUMS = [
    tool(
        lambda expression: f"{expression} = 395",
        "calculate",
        "Evaluate a mathematical expression.",
        {"expression": TEXT},
        "expression",
    ),
    tool(lambda a, b: {"result": a + b}, "add", "Add two numbers", PAIR, "a", "b"),
    tool(lambda a, b: {"result": a * b}, "multiply", "Multiply two numbers", PAIR, "a", "b"),
    tool(
        converted,
        "convert_units",
        "Convert a value between units.",
        {"value": NUMBER, "from_unit": TEXT, "to_unit": TEXT},
        "value",
        "from_unit",
        "to_unit",
    ),
    tool(
        lambda numbers: {"mean": sum(numbers) / len(numbers)},
        "mean",
        "Arithmetic mean",
        {"numbers": {"type": "array", "items": NUMBER}},
        "numbers",
    ),
]

GRAPH: list[dict[str, Any]] = [
    {"name": "Marit", "entityType": "person", "observations": ["works at Fjord Labs", "likes chess"]},
    {"name": "Fjord Labs", "entityType": "company", "observations": ["founded in 2011"]},
]
MEMORY = [
    tool(lambda: {"entities": GRAPH, "relations": []}, "read_graph", "Read the entire knowledge graph", {}),
    tool(
        lambda query: {"entities": [each for each in GRAPH if query.lower() in str(each).lower()], "relations": []},
        "search_nodes",
        "Search for nodes in the knowledge graph",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda names: {"entities": [each for each in GRAPH if each["name"] in names], "relations": []},
        "open_nodes",
        "Open nodes by their names",
        {"names": {"type": "array", "items": TEXT}},
        "names",
    ),
    tool(
        lambda entities: entities,
        "create_entities",
        "Create new entities",
        {"entities": {"type": "array", "items": {"type": "object"}}},
        "entities",
    ),
]

EVENTS: dict[str, dict[str, Any]] = {
    "e1": {"id": "e1", "title": "Dentist", "date": "2026-03-04", "room": "A", "minutes": 45},
    "e2": {"id": "e2", "title": "Board meeting", "date": "2026-03-05", "room": "North", "attendees": ["Ida", "Per"]},
}
DAY = {"type": "string", "format": "date"}
CALENDAR = [
    tool(
        lambda start_date, end_date=None: [
            each for each in EVENTS.values() if start_date <= str(each["date"]) <= (end_date or start_date)
        ],
        "list_events",
        "List events between two dates.",
        {"start_date": DAY, "end_date": DAY},
        "start_date",
    ),
    tool(
        lambda event_id: known(EVENTS, event_id, "No such event. Use search_events to find ids."),
        "get_event",
        "Get the details of an event: attendees, duration.",
        {"event_id": TEXT},
        "event_id",
    ),
    tool(
        lambda query: [
            {"id": each["id"], "title": each["title"]}
            for each in EVENTS.values()
            if query in str(each["title"]).lower()
        ],
        "search_events",
        "Find events by words of their title.",
        {"query": TEXT},
        "query",
    ),
]

RECIPES = rows("id|title|category|minutes\n1|Leek soup|soup|35\n2|Plum cake|dessert|80\n3|Pea soup|soup|95")
COURSE = {"type": "string", "enum": ["soup", "dessert"]}
KITCHEN = [
    tool(
        lambda category, limit=10: {"recipes": [each for each in RECIPES if each["category"] == category][:limit]},
        "list_recipes",
        "List recipes of a category.",
        {"category": COURSE, "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}},
        "category",
    ),
    tool(
        lambda recipe_id: {
            **known({each["id"]: each for each in RECIPES}, recipe_id, "no such recipe"),
            "steps": ["Simmer for 20 minutes."],
        },
        "get_recipe",
        "Get a recipe with its steps.",
        {"recipe_id": WHOLE},
        "recipe_id",
    ),
]

TEXTS = [
    tool(
        lambda text: {"words": len(text.split())}, "count_words", "Count the words of a text.", {"text": TEXT}, "text"
    ),
    tool(
        lambda color: {"rgb": [int(color[at : at + 2], 16) for at in (1, 3, 5)]},
        "hex_to_rgb",
        "Convert a hex colour to RGB.",
        {"color": {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}},
        "color",
    ),
    tool(
        lambda pattern, text: {"matches": re.findall(pattern, text)},
        "regex_match",
        "Find all matches of a regular expression.",
        {"pattern": TEXT, "text": TEXT},
        "pattern",
        "text",
    ),
]

BRANCHES = {"type": "string", "description": "Whether to list local branches ('local') or remote branches ('remote')."}
LOG = (
    "Commit: 'a1b2c3d4'\nAuthor: Ida Fell\nDate: 2026-02-03\nMessage: 'Mend the rudder'\n\n"
    "Commit: 'ffee0011'\nAuthor: Per Dahl\nMessage: 'First keel'"
)
REPOSITORY = [
    tool(
        lambda repo_path: "On branch harbour",
        "git_status",
        "Shows the working tree status",
        {"repo_path": TEXT},
        "repo_path",
    ),
    tool(
        lambda repo_path, max_count=10: LOG,
        "git_log",
        "Shows the commit logs",
        {"repo_path": TEXT, "max_count": WHOLE},
        "repo_path",
    ),
    tool(
        lambda repo_path, branch_type: "* harbour\n  main",
        "git_branch",
        "List branches",
        {"repo_path": TEXT, "branch_type": BRANCHES},
        "repo_path",
        "branch_type",
    ),
]

STAFF_ROWS = rows(
    "name|department|salary|hired\nIda Fell|Sales|4100|2019-05-01\n"
    "Per Dahl|Works|5200|2021-02-11\nUna Berg|Sales|3900|2015-09-30"
)
STAFF = [
    tool(
        lambda department=None: {
            "total": 3,
            "employees": [each for each in STAFF_ROWS if department in (None, each["department"])],
        },
        "list_employees",
        "List employees, optionally of one department.",
        {"department": TEXT},
    ),
    tool(
        lambda name: known(
            {each["name"]: each for each in STAFF_ROWS}, name, f"'{name}' not found. Did you mean 'Ida Fell'?"
        ),
        "get_employee",
        "Get one employee's record.",
        {"name": TEXT},
        "name",
    ),
]

CHART = "Kelp beds lie north of Storholm.\nThe channel is 11.5 metres deep."
YES = {"type": "boolean"}


def scanned(files: list[dict[str, Any]], with_text: bool = False) -> dict[str, Any]:
    pages = {"pages": 1, "encrypted": False}
    return {"found": [{**each, **pages, "text": CHART if with_text else ""} for each in files]}


ARCHIVE = [
    tool(
        scanned,
        "scan_documents",
        "Read documents.",
        {
            "files": {"type": "array", "items": {"type": "object", "properties": {"path": TEXT}, "required": ["path"]}},
            "with_text": {**YES, "description": "Add the full text."},
        },
        "files",
    ),
    tool(lambda path: f"{path}.bak", "duplicate_document", "Create a copy of a document.", {"path": TEXT}, "path"),
]
COMMITS = (
    "History:\nCommit: 77aa\nAuthor: Una Berg\nMessage: Paint the mast\n\n"
    "Commit: 66bb\nAuthor: Per Dahl\nMessage: Caulk the hull"
)
VERSIONS = [
    tool(lambda place="": COMMITS, "show_log", "Shows the commit logs", {"place": TEXT}),
    tool(
        lambda revision: known({"HEAD": "mast.txt", "HEAD~1": "hull.txt: 4 planks"}, revision, "bad revision"),
        "show_commit",
        "Shows what a commit has changed",
        {"revision": TEXT},
        "revision",
    ),
]
DEPTHS = {"fathoms": 1.8288, "feet": 0.3048}


def reckoned(from_expr: str, to_expr: str) -> str:
    amount, _, unit = from_expr.partition(" ")
    return f"{float(amount) * known(DEPTHS, unit, f'{unit!r} is no unit') / known(DEPTHS, to_expr, 'no unit'):.4g}"


def tinted(color: str, kind: str = "warm") -> dict[str, str]:
    return {"color": color, "kind": kind, "tinted": {"warm": "#aa0000", "cold": "#0000aa"}[kind]}


WORKSHOP = [
    tool(
        reckoned,
        "reckon",
        "Convert an amount from one unit to another.",
        {
            "from_expr": {"type": "string", "description": "Quantity or unit expression, e.g. '2 feet'."},
            "to_expr": {"type": "string", "description": "Unit expression."},
        },
        "from_expr",
        "to_expr",
    ),
    tool(
        lambda query: {"query": query, "count": 0, "results": []},
        "find_units",
        "Search the units.",
        {"query": TEXT},
        "query",
    ),
    tool(
        tinted,
        "tint",
        "Tint a colour.\n\n    Kinds: warm (of a lamp), cold (of the moon), plain.\n",
        {"color": TEXT, "kind": {"type": "string", "default": "warm"}},
        "color",
    ),
    tool(
        lambda action, first, second=None: {"span" if action == "diff" else "day": 12},
        "dates",
        "Reckon with dates.",
        {
            "action": {"enum": ["weekday", "diff"], "description": "weekday: day of a week, diff: difference of dates"},
            "first": {"type": "string", "description": "Date (ISO 8601)"},
            "second": {"type": "string", "description": "Date to compare with"},
        },
        "action",
        "first",
    ),
]
SHED = {"ropes.txt": "Six ropes of hemp.", "inner/sails.txt": "The jib is 14 square metres."}
LOFT = [
    tool(
        lambda place, lines: f"{SHED[place]}" if lines[0]["start"] == 1 else "",
        "read_lines",
        "Read lines of a file.\n\n    Args:\n        place: Path of the file\n        lines: Ranges\n",
        {
            "place": TEXT,
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"start": WHOLE, "end": WHOLE}, "required": ["start"]},
            },
        },
        "place",
        "lines",
    ),
]
CREW = {
    "success": True,
    "columns": ["name", "berth"],
    "types": ["TEXT", "TEXT"],
    "rows": [["Ida", "B1"], ["Per", "B7"]],
}
LEDGER = [
    tool(
        lambda query: (
            CREW if query == "SELECT * FROM crew" else {"success": False, "error": f"no such table in {query}"}
        ),
        "run_statement",
        "Execute a SQL query.\n\n    Args:\n        query: Any SQL query (SELECT, INSERT)\n",
        {"query": TEXT},
        "query",
    ),
    tool(lambda: {"tables": [{"name": "crew"}]}, "list_tables", "List all tables", {}),
    tool(lambda path: "emptied", "clear_all", "Clear the database.", {}),
]
CHORES = [
    tool(
        lambda: {
            "count": 2,
            "chores": [
                {"id": "0", "text": "Tar the deck", "completed": False},
                {"id": "1", "text": "Mend the net", "completed": True},
            ],
        },
        "list_chores",
        "List all chores.",
        {},
    ),
    tool(lambda query: "Found no chores: none has it", "search_chores", "Search chores.", {"query": TEXT}, "query"),
    tool(lambda chore_id: "done", "complete_chore", "Mark a chore as completed.", {"chore_id": TEXT}, "chore_id"),
]

_RAIN = {"rows": 6, "columns": ["station", "millimetres"]}
_UNLOADED = "invalid session, or no data loaded"
SESSIONS = [
    tool(lambda path: {"session_id": f"s-{path}"}, "load_csv", "Load a CSV file.", {"path": TEXT}, "path"),
    tool(lambda: {"message": "0 active sessions", "sessions": []}, "list_sessions", "List the sessions.", {}),
    tool(
        lambda session_id: known({"s-/data/rain.csv": _RAIN}, session_id, _UNLOADED),
        "get_session_info",
        "Get the number of rows and the columns of the loaded data.",
        {"session_id": TEXT},
        "session_id",
    ),
]
SLIDES = [
    tool(lambda path: {"deck_id": "deck_1", "slides": 3}, "open_deck", "Open a deck.", {"path": TEXT}, "path"),
    tool(
        lambda deck_id="": known({"deck_1": "A week costs 310 crowns."}, deck_id, "no deck is open"),
        "extract_deck_text",
        "Extract the text of all slides.",
        {"deck_id": TEXT},
    ),
]
_COLUMNS = {"painters": ("name", "country"), "paintings": ("title", "room", "value")}
_CATALOGUE = str([(table, column) for table, columns in _COLUMNS.items() for column in columns])
GALLERY = [
    tool(
        lambda query: known(
            {
                "SELECT table_name, column_name FROM information_schema.columns": _CATALOGUE,
                "SELECT * FROM paintings": "[('Two Boats', 'North', 84000), ('Fog at Six', 'Garden', 131000)]",
                "SELECT * FROM painters": "[('Ilse Marr', 'Austria'), ('Rosa Temple', 'Ireland')]",
            },
            query,
            "syntax error",
        ),
        "query",
        "Execute a query.",
        {"query": {"type": "string", "description": "The SQL query to execute"}},
        "query",
    ),
]
_TITLES = ("Winter season", "Instructors", "Prices")


def _slide(slide_index: int, deck_id: str = "") -> dict[str, Any]:
    if deck_id != "deck_1":
        raise ServerError("No deck is currently loaded, or the id is invalid")
    return {"title": _TITLES[slide_index]}


DECKS = [
    tool(lambda file_path: {"deck_id": "deck_1"}, "open_deck", "Open a deck.", {"file_path": TEXT}, "file_path"),
    tool(
        _slide,
        "get_slide_text",
        "Get the title and the text of a slide.",
        {"slide_index": WHOLE, "deck_id": TEXT},
        "slide_index",
    ),
]
_STAMP = {"type": "string", "description": "Date and time, e.g. 2025-03-23 12:30:00"}
ALMANAC = [
    tool(
        lambda date="": f"{29 if date[:7] == '2028-02' else 30} days",
        "days_in_month",
        "Days in a month.",
        {"date": TEXT},
    ),
    tool(lambda time="now": f"{time} is 42", "get_timestamp", "Get the timestamp of a time.", {"time": TEXT}),
    tool(
        lambda time, zone: "16:15" if time == "2026-06-03 09:15:00" else "Invalid Date",
        "convert_time",
        "Convert a time to a zone.",
        {"time": _STAMP, "zone": TEXT},
        "time",
        "zone",
    ),
    tool(
        lambda year, month: f"{month} of {year}: Easter",
        "list_holidays",
        "List the holidays of a month.",
        {"year": WHOLE, "month": WHOLE},
        "year",
        "month",
    ),
]
NOTES = {"sourdough": "Bake for 42 minutes.", "bicycle": "The chain is a KMC X11."}
NOTEBOOK = [
    tool(lambda: {"total": 2, "items": [{"name": each} for each in NOTES]}, "note_list", "List the notes.", {}),
    tool(lambda name: known(NOTES, name, "no such note"), "note_read", "Read a note.", {"name": TEXT}, "name"),
    tool(
        lambda name, query: {"matches": []},
        "note_find",
        "Find text in a note.",
        {"name": TEXT, "query": TEXT},
        "name",
        "query",
    ),
    tool(lambda: {"count": 1, "items": [{"id": "a1", "text": "Descale the kettle"}]}, "todo_list", "List todos.", {}),
]
_ICONS = {"Anchor": ["Transportation"], "Umbrella": ["Weather"]}
ICONS = [
    tool(
        lambda category: (
            f'No icons found in category "{category}". Available categories: Accessibility, Accounts, Animals'
        ),
        "list_icons_by_category",
        "List the icons of a category.",
        {"category": TEXT},
        "category",
    ),
    tool(
        lambda query: [{"name": each, "categories": kinds} for each, kinds in _ICONS.items() if each == query],
        "search_icons",
        "Search icons by name.",
        {"query": TEXT},
        "query",
    ),
]
LOANS = [
    tool(
        lambda principal, annual_rate, years: f"{principal} at {annual_rate} for {years}",
        "loan_payment",
        "Monthly payment of a loan.",
        {"annual_rate": {"type": "number", "description": "As a decimal"}, "years": WHOLE, "principal": NUMBER},
        "annual_rate",
        "years",
        "principal",
    ),
]

VAULT = [
    tool(
        lambda query: "People/Dag Elvestad.md" if query == "phone" else "Nothing found",
        "search_notes",
        "Search the notes.",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda path: known({"People/Dag Elvestad.md": "Phone number: 555-0147"}, path, f"File not found: {path}"),
        "read_note",
        "Read a note.",
        {"path": TEXT},
        "path",
    ),
]
MODES = {"type": "string", "enum": ["create", "delete", "list"]}
BRANCHING = [
    tool(
        lambda operation: "winter, summer" if operation == "list" else "done",
        "manage_branches",
        "Manage branches: create, delete or list them.",
        {"operation": MODES},
        "operation",
    ),
]
DONATIONS = rows("donor|town|amount|email\nBea|Tornby|200|null\nOle|Tornby|25|ole@x.org\nUna|Vik|70|una@x.org")
CHARITY = [
    tool(lambda: {"status": "ok", "tables": [{"name": "shows"}, {"name": "donations"}]}, "list_tables", "Tables.", {}),
    tool(
        lambda query: known(
            {"SELECT * FROM shows": [{"show": "Reel", "host": "Per"}], "SELECT * FROM donations": DONATIONS},
            query,
            "no",
        ),
        "execute_sql",
        "Run a SQL query.",
        {"query": TEXT},
        "query",
    ),
]
EMOJI = [
    tool(
        lambda query: f"## Found: {query}\n\n| Emoji | Name |\n|---|---|\n| a | high-speed train |\n| b | train |",
        "emoji_search",
        "Search emojis.",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda slug: known({"train": "Codepoint U+1F686"}, slug, f"Emoji not found: {slug}"),
        "emoji_lookup",
        "Look an emoji up.",
        {"slug": TEXT},
        "slug",
    ),
    tool(
        lambda emoji: known({"🦉": "`&#x1F989;`"}, emoji, "unknown"),
        "html_entity",
        "Get the HTML entity.",
        {"emoji": TEXT},
        "emoji",
    ),
]
BOARD = [
    tool(
        lambda query: {"items": [{"id": 5, "title": "Sell tickets"}], "count": 1},
        "search",
        "Search the items.",
        {"query": TEXT},
        "query",
    ),
    tool(
        lambda item_id: {"item": {"id": item_id, "status": "backlog"}},
        "get_item",
        "Get an item.",
        {"item_id": WHOLE},
        "item_id",
    ),
    tool(
        lambda item_id: {"decisions": [{"choice": "bank transfer"}]},
        "get_decisions",
        "Get what was decided for an item.",
        {"item_id": WHOLE},
        "item_id",
    ),
    tool(
        lambda request: {"status": "error", "message": "Request not found"},
        "get_request",
        "Get a request of an item.",
        {"request": TEXT},
        "request",
    ),
]
DAYS_APART = [
    tool(lambda days: f"today and {days} days", "add_days", "Add days to today.", {"days": WHOLE}, "days"),
    tool(
        lambda start, end: f"{end} minus {start}",
        "date_diff",
        "Calculate the number of days between two dates.",
        {
            "start": {"type": "string", "description": "Start date"},
            "end": {"type": "string", "description": "End date"},
        },
        "start",
        "end",
    ),
]
CONVERTER = [
    tool(lambda expression: f"[{expression}]", "convert", "Convert between units.", {"expression": TEXT}, "expression")
]
KEPT_FILES = {"decisions.md": "We chose PostgreSQL.", "progress.md": "Notifications are not started."}
PROJECTS = [
    tool(
        lambda project: ",".join(KEPT_FILES),
        "list_project_files",
        "List the files of a project.",
        {"project": TEXT},
        "project",
    ),
    tool(
        lambda project, file_name: known(KEPT_FILES, file_name, "no such file"),
        "read_file",
        "Read a file of a project.",
        {"project": TEXT, "file_name": TEXT},
        "project",
        "file_name",
    ),
]
SPENT = rows("date|amount|category|note\n2026-04-05|820|rent|April\n2026-04-02|54.3|food|\n2026-04-19|63.1|food|")
EXPENSES = [
    tool(
        lambda start_date, end_date: [each for each in SPENT if start_date <= str(each["date"]) <= end_date],
        "list_expenses",
        "List expenses within a range of dates.",
        {"start_date": TEXT, "end_date": TEXT},
        "start_date",
        "end_date",
    )
]
ROOF = {
    "entities": [{"name": "Roof repair", "kind": "project", "observations": ["budget is 3400 euros"]}],
    "relations": [{"from": "Ansgar", "to": "Roof repair", "type": "leads"}, {"from": "Ansgar", "to": "x", "type": "y"}],
}
ROOFS = [
    tool(
        lambda query: ROOF if "roof" in query.lower() else {"entities": [], "relations": []},
        "search_nodes",
        "Search nodes.",
        {"query": TEXT},
        "query",
    ),
    tool(lambda: ROOF, "read_graph", "Read the whole graph.", {}),
]

ASKED: dict[str, tuple[list[Served], dict[str, str]]] = {
    "harbour": (
        HARBOUR,
        {
            "What is the bollard pull of the tug Grindle Ferrowick?": "71",
            "When was the ferrowick built?": "1998",
            "How many berths are there?": "There are 3",
            "Which berth is the deepest?": "B2",
            "Which vessel is at berth B3?": "Morrow",
            "When is high tide on 3 March 2026?": "04:12",
            "Which is stronger, Ostre Vane or Grindle Ferrowick?": "55",
        },
    ),
    "sessions": (SESSIONS, {"How many rows has /data/rain.csv?": "6"}),
    "slides": (SLIDES, {"Open /data/winter.pptx. What does a week cost?": "310"}),
    "gallery": (
        GALLERY,
        {
            "In which room is the painting Fog at Six?": "Garden",
            "From which country is the painter Rosa Temple?": "Ireland",
            "Which painting has the highest value?": "Fog at Six",
            "Which tables are there?": "paintings",
        },
    ),
    "shop": (
        SHOP,
        {
            "What is the status of order A-11?": "shipped",
            "What is Anna Schmidt's email?": "anna@x.org",
            "Which orders has Bo Larsen placed?": "A-12",
            "What is the total of Anna Schmidt's order?": "129.9",
            "Compare the totals of orders A-11 and A-12.": "15",
            "Cancel order A-12 please": "A-12 is cancelled",
        },
    ),
    "time": (
        TIME,
        {
            "What time is it in Tokyo?": "19:00",
            "If it is 2:30 pm in Tokyo, what time is it in London?": "14:30 Asia/Tokyo is 05:30 Europe/London",
        },
    ),
    "folder": (
        FOLDER,
        {
            "How many anchors should be bought according to notes.txt?": "14",
            "What does plan.md say about the budget?": "900",
            "Which files are in /data/box?": "plan.md",
            "How many files are in the directory /data/box?": "There are 2",
            "When is the launch?": "4 May",
        },
    ),
    "database": (
        DATABASE,
        {
            "How many books are in the database?": "There are 3",
            "What is the price of the book Salt Line?": "30",
            "Which tables does the database have?": "authors",
            "Which book is the oldest?": "Fog Bell",
            "What is the average price of the books?": "16.8",
        },
    ),
    "docs": (
        DOCS,
        {"Which port does the server listen on?": "7411", "How many weekly snapshots are kept?": "4 weekly"},
    ),
    "sums": (
        SUMS,
        {
            "What is 17 * 23 + sqrt(16)?": "17 * 23 + sqrt(16) = 395",
            "What is 1734 plus 289?": "2023",
            "Convert 5 miles to kilometers": "8.047",
            "How many kilometers are 10 miles?": "16.093",
            "What is the mean of 4, 8 and 15?": "is 9",
            "What is 12 times 12?": "144",
        },
    ),
    "memory": (
        MEMORY,
        {
            "What does Marit like?": "chess",
            "When was Fjord Labs founded?": "2011",
            "How many entities are in the graph?": "There are 2",
        },
    ),
    "calendar": (
        CALENDAR,
        {
            "Which events are on 2026-03-05?": "Board",
            "Who attends the board meeting?": "Ida",
            "How long does the dentist appointment last?": "45",
        },
    ),
    "kitchen": (
        KITCHEN,
        {
            "How many soup recipes are there?": "There are 2",
            "Which soup takes the longest?": "Pea",
            "How long must the leek soup simmer?": "20",
        },
    ),
    "texts": (
        TEXTS,
        {
            "How many words are in 'the old grey harbour'?": "is 4",
            "What is #ff8800 in RGB?": "136",
            "Which matches does the pattern '[0-9]+' have in the text 'a12b7'?": "12, 7",
        },
    ),
    "repository": (
        REPOSITORY,
        {
            "Who wrote the commit 'First keel' in the repository /srv/boat?": "Per Dahl",
            "Which branches does the repository /srv/boat have?": "main",
        },
    ),
    "archive": (ARCHIVE, {"How deep is the channel, by /srv/charts/north.pdf?": "11.5"}),
    "versions": (
        VERSIONS,
        {
            "Who made the latest commit?": "Una Berg",
            "What did the commit before HEAD (HEAD~1) change?": "4 planks",
        },
    ),
    "workshop": (
        WORKSHOP,
        {
            "How many feet are 3 fathoms?": "18",
            "How does #cc3311 look in the cold kind?": "#0000aa",
            "How many days are there between 2026-03-01 and 2026-03-13?": "span for diff",
        },
    ),
    "loft": (
        LOFT,
        {
            "What are the ropes made of, by ropes.txt?": "hemp",
            "How large is the jib by sails.txt in the inner folder?": "14",
        },
    ),
    "ledger": (LEDGER, {"At which berth does Per live?": "B7"}),
    "chores": (CHORES, {"Which chores are completed?": "Mend the net"}),
    "decks": (DECKS, {"What is the title of the second slide of /srv/winter.pptx?": "Instructors"}),
    "almanac": (
        ALMANAC,
        {
            "How many days does February 2028 have?": "29",
            "What is the timestamp of 2026-01-01 00:00:00?": "2026-01-01 00:00:00 is 42",
            "When it is 09:15 on 2026-06-03, what time is it in Asia/Tokyo?": "16:15",
            "Which holidays are in March 2026?": "3 of 2026",
        },
    ),
    "notebook": (
        NOTEBOOK,
        {"Which notes do I have?": "sourdough", "For how many minutes do I bake the sourdough?": "42"},
    ),
    "icons": (ICONS, {"Which categories does the icon Anchor belong to?": "Transportation"}),
    "loans": (
        LOANS,
        {
            "What is the monthly payment for a loan of $2,000 at 5% over 10 years?": "2000 at 0.05 for 10",
            "How much is the payment over 12 years with 4.5% interest on a 30000 loan?": "30000 at 0.045 for 12",
        },
    ),
    "vault": (
        VAULT,
        {
            "What is the phone number in the note People/Dag Elvestad.md?": "555-0147",
            "Which phone number does Dag have?": "555-0147",
        },
    ),
    "branches": (BRANCHING, {"Which branches are there?": "winter"}),
    "charity": (
        CHARITY,
        {"How much money came from Tornby in total?": "225", "Which donors have not given an email?": "Bea"},
    ),
    "emoji": (
        EMOJI,
        {
            "Which emojis have 'train' in their name?": "high-speed train",
            "What is the HTML entity of 🦉?": "&#x1F989;",
            "What is the codepoint of the train emoji?": "U+1F686",
        },
    ),
    "board": (BOARD, {"What did we decide for the item 'Sell tickets'?": "bank transfer"}),
    "dates": (
        DAYS_APART,
        {
            "How many days are there from 2026-03-14 to 2026-11-02?": "2026-11-02 minus 2026-03-14",
            "How many days lie between 3 January and 20 April 2026?": "2026-04-20 minus 2026-01-03",
            "How many days lie between 10 and 25 April 2026?": "2026-04-25 minus 2026-04-10",
        },
    ),
    "converter": (
        CONVERTER,
        {
            "How many miles are 42.195 km?": "[42.195 km to miles]",
            "The oven should have 375 degrees Fahrenheit. What's that in Celsius?": "[375 Fahrenheit to Celsius]",
        },
    ),
    "bank": (
        PROJECTS,
        {
            "Which database did we choose for the project parcels?": "PostgreSQL",
            "What has not been started in the project parcels?": "Notifications",
        },
    ),
    "expenses": (
        EXPENSES,
        {
            "How much did I spend on food in April 2026?": "117.4",
            "What did I spend the most on in 2026?": "820",
        },
    ),
    "graph": (
        ROOFS,
        {"How big is the budget for the roof repair, and who leads it?": "3400", "Which projects do you know?": "Roof"},
    ),
    "staff": (
        STAFF,
        {
            "How many employees work in Sales?": "There are 2",
            "Who has the highest salary?": "Per",
            "What does Ida earn?": "4100",
            "What is the sum of the salaries in the Sales department?": "8000",
            "Who was hired first?": "Una",
        },
    ),
}
"""By the name of a server: its tools, and questions with what an answer must have."""
