"""Three times ten servers that are held back, whose questions were asked when the simulated model was done.

Their data was written by people who have not read the simulated model's code, nor the other servers' questions.
"""

from __future__ import annotations

from real_servers import Server

_TODO = """(A) Call the plumber about the boiler +house @phone due:2026-03-09
(B) Sow 24 tomato seeds +allotment @garden due:2026-03-15
(C) Renew the library card +errands @town
(A) Send the tax form to Ingrid +papers @computer due:2026-04-30
(B) Buy three bags of compost +allotment @shop
x 2026-02-27 2026-02-12 Prune the apple tree +allotment @garden
"""
_BIB = """@article{kiln-temps, author={Brandt, Hedda}, title={Firing Curves of Wood Kilns},
  journal={Ceramics Quarterly}, volume={31}, pages={112--140}, year={1994}, doi={10.5555/cq.31.112}}
@book{ash-glazes, author={Okafor, Chidi}, title={A Handbook of Ash Glazes}, publisher={Quern Press}, year={2008}}
@article{salt-firing, author={Lindqvist, Maja}, title={Salt Firing on Small Islands}, journal={Studio Potter},
  volume={12}, year={2013}, doi={10.5555/sp.12.7}}
@inproceedings{clay-survey, author={Tamm, Eerik}, title={A Survey of Blue Clays}, booktitle={Earthenware Days},
  year={1987}, address={Tartu}}
@book{brick-tax, author={Pell, Agnes}, title={The Brick Tax}, publisher={Marsh and Sons}, year={1961}}
@phdthesis{slipware, author={Corrigan, Niamh}, title={Slipware after 1700}, school={Galway}, year={2019}}
"""
_LOAVES = """loaf,flour,grams,price,sold
Farmhouse,wheat,800,4.20,61
Dark Rye,rye,1250,5.90,33
Seeded,spelt,650,,27
Baguette,wheat,310,2.10,148
Farmhouse,wheat,800,4.20,61
Emmer,emmer,700,6.40,12
"""
_LOAVES_MAY = """loaf,flour,grams,price,sold,oven
Farmhouse,wheat,800,4.40,58,2
Dark Rye,rye,1250,6.10,36,1
Baguette,wheat,310,2.20,139,2
"""
_RAIN = """station,month,millimetres,frost_days
Birkhope,January,88,14
Birkhope,February,61,17
Sandwater,January,54,6
Sandwater,February,41,9
Calder Moor,January,133,19
Calder Moor,February,97,21
"""
_DECK = {"presentation_id": "presentation_1"}
_BULLETS = {**_DECK, "placeholder_idx": 1}
HELD_BACK: tuple[Server, ...] = (
    Server("time-npm", "npm:time-mcp", ("time-mcp",), ()),
    Server("lucide", "npm:lucide-icons-mcp", ("lucide-icons-mcp", "--stdio"), ()),
    Server("business-day", "pypi:business-day-mcp", ("business-day-mcp",), ()),
    Server(
        "todo-txt", "pypi:todo-txt-mcp mcp<2", ("todo-txt-mcp", "{folder}/todo.txt"), (), files={"todo.txt": _TODO},
    ),
    Server("bibtex", "pypi:bibtex-file-mcp mcp<2", ("bibtex-mcp-server",), (), files={"pottery.bib": _BIB}),
    Server(
        "data-profiler", "pypi:data-profiler-mcp mcp<2", ("data-profiler-mcp",), (),
        files={"loaves.csv": _LOAVES, "loaves_may.csv": _LOAVES_MAY},
    ),
    Server("csv-editor", "pypi:csv-mcp-server mcp<2", ("csv-editor",), (), files={"rain.csv": _RAIN}),
    Server(
        "agent-toolkit", "pypi:agent-toolkit-mcp-server mcp<2", ("agent-toolkit-mcp-server",),
        (
            ("note_write", {"name": "sourdough", "tags": "baking,bread",
                            "content": "# Sourdough\n\n## Starter\n\nFeed it with 90 g of rye at 21:00.\n\n"
                                       "## Baking\n\nBake for 42 minutes at 235 degrees, then let it cool.\n"}),
            ("note_write", {"name": "bicycle", "tags": "repairs",
                            "content": "# Bicycle\n\nThe chain is a KMC X11.\nFrame number WT-58213.\n"
                                       "The next service is on 2026-05-22 at Fennick's.\n"}),
            ("note_write", {"name": "wifi", "tags": "home", "content": "# Wifi\n\nThe guest network is Heronsgate.\n"}),
            ("todo_create", {"text": "Descale the espresso machine", "tags": "kitchen"}),
            ("todo_create", {"text": "Book the cabin at Lake Orrin for July", "tags": "travel"}),
            ("todo_create", {"text": "Return Aunt Petra's ladder", "tags": "errands"}),
        ),
        env={"HOME": "{folder}"},
    ),
    Server(
        "powerpoint", "pypi:office-powerpoint-mcp-server mcp<2", ("ppt_mcp_server",),
        (
            ("create_presentation", {"id": "presentation_1"}),
            ("set_core_properties", {**_DECK, "title": "Winter season", "author": "Sunniva Holt",
                                     "subject": "Plans of the ski school"}),
            ("add_slide", {**_DECK, "layout_index": 1, "title": "Courses"}),
            ("add_bullet_points", {**_BULLETS, "slide_index": 0,
                                   "bullet_points": ["Beginners start on 9 January", "A week costs 310 euros"]}),
            ("add_slide", {**_DECK, "layout_index": 1, "title": "Instructors"}),
            ("add_bullet_points", {**_BULLETS, "slide_index": 1,
                                   "bullet_points": ["Head: Tobias Renn", "Fourteen instructors, three of them new"]}),
            ("add_slide", {**_DECK, "layout_index": 1, "title": "Lifts"}),
            ("add_bullet_points", {**_BULLETS, "slide_index": 2,
                                   "bullet_points": ["The Kestrel lift opens at 08:40", "The Goat lift is closed"]}),
            ("save_presentation", {**_DECK, "file_path": "{folder}/winter.pptx"}),
        ),
    ),
    Server(
        "duckdb", "pypi:mcp-server-duckdb mcp<2", ("mcp-server-duckdb", "--db-path", "{folder}/museum.duckdb"),
        (
            ("query", {"query": "CREATE TABLE painters (id INTEGER, name TEXT, born INTEGER, country TEXT)"}),
            ("query", {"query": "INSERT INTO painters VALUES (1, 'Ilse Marr', 1871, 'Austria'), "
                                "(2, 'Jonas Vik', 1902, 'Norway'), (3, 'Rosa Temple', 1888, 'Ireland')"}),
            ("query", {"query": "CREATE TABLE paintings (title TEXT, painter INTEGER, year INTEGER, room TEXT, "
                                "value INTEGER)"}),
            ("query", {"query": "INSERT INTO paintings VALUES ('The Ropewalk', 3, 1921, 'North', 84000), "
                                "('Fog at Six', 2, 1947, 'Garden', 131000), ('Two Boats', 2, 1933, 'North', 56500), "
                                "('The Miller', 1, 1904, 'Tower', 27300)"}),
        ),
    ),
)  # fmt: skip

_VAULT = {
    "Recipes/Lentil soup.md": """---
tags: [soup, winter]
serves: 6
---
# Lentil soup

Rinse 400 g of red lentils. Simmer them with the carrots for 35 minutes, then add the lemon.
""",
    "Recipes/Rye waffles.md": """---
tags: [breakfast]
serves: 4
---
# Rye waffles

Let the batter rest overnight.
""",
    "Projects/Shed roof.md": """---
status: waiting
budget: 640
---
# Shed roof

Borrow the long ladder from Morten. The felt comes in rolls of 10 metres.
""",
    "Projects/Family tree.md": """---
status: active
---
# Family tree

Ask the parish in Odda for the book of 1871.
""",
    "People/Dag Elvestad.md": "# Dag Elvestad\n\nPlays the double bass. Phone: 555-0147. Birthday on 9 October.\n",
    "Journal/2026-04-18.md": "Heard the first cuckoo. Wrote to Dag about the concert.\n",
    "Journal/2026-04-21.md": "Rain all day. Finished the puzzle with Ylva.\n",
}
_SHOWS = """show,host,weekday,start,minutes,listeners
Night Train,Petra Holm,Friday,22:00,120,840
Kitchen Table,Sam Ode,Monday,11:30,45,1310
Old Vinyl,Petra Holm,Sunday,16:00,90,975
Harbour News,Lin Tran,Tuesday,07:15,30,2260
Silent Hour,Sam Ode,Wednesday,21:00,60,310
"""
_DONATIONS = """donor,town,amount,day,email
Arne Falk,Tornby,40,2026-02-03,arne@falk.example
Bea Lindt,Hirtsby,25,2026-02-11,
Carl Ong,Tornby,120,2026-02-19,carl@ong.example
Dora Pym,Vester,15,2026-03-02,dora@pym.example
Emil Roth,Tornby,65,2026-03-08,
"""
_FERRY = """openapi: 3.0.3
info:
  title: Ferry booking
  version: 2.3.1
  description: Sailings and bookings of the Oyster Island ferry.
servers:
  - url: https://ferry.example/v2
paths:
  /sailings:
    get:
      operationId: listSailings
      summary: List the sailings of a day
      parameters:
        - {name: date, in: query, required: true, schema: {type: string, format: date}}
        - {name: harbour, in: query, required: false, schema: {type: string}}
      responses:
        "200": {description: The sailings}
  /bookings:
    post:
      operationId: createBooking
      summary: Book a sailing
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Booking"}
      responses:
        "201": {description: The booking was made}
        "409": {description: The sailing is full}
  /bookings/{id}:
    delete:
      operationId: cancelBooking
      summary: Cancel a booking, until two hours before the sailing
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
      responses:
        "204": {description: Cancelled}
components:
  schemas:
    Booking:
      type: object
      required: [sailing, passengers]
      properties:
        sailing: {type: string}
        passengers: {type: integer, minimum: 1, maximum: 9}
        vehicle: {type: string, enum: [none, bicycle, car, camper]}
        status: {type: string, enum: [reserved, paid, boarded, cancelled]}
  securitySchemes:
    HarbourKey: {type: apiKey, in: header, name: X-Harbour-Key}
"""
_GIT_AT = {"path": "{folder}"}
_RUTA = {"author": {"name": "Ruta Blom", "email": "ruta@blom.example"}}
_JON = {"author": {"name": "Jon Aske", "email": "jon@aske.example"}}
SECOND_HELD_BACK: tuple[Server, ...] = (
    Server(
        "vault", "pypi:light-obsidian-mcp mcp<2", ("light-obsidian-mcp",), (), files=_VAULT,
        env={"OBSIDIAN_VAULT": "{folder}"},
    ),
    Server(
        "task-manager", "npm:@kazuph/mcp-taskmanager", ("mcp-taskmanager",),
        (
            ("request_planning", {"originalRequest": "Move the bike shop", "tasks": [
                {"title": "Pack the spare parts", "description": "Forty boxes, labelled by size"},
                {"title": "Rent a van", "description": "Ask Tveit, phone 555-0182, for the long one"},
                {"title": "Tell the regulars", "description": "The new address is 14 Brenner Lane"},
                {"title": "Hand over the keys", "description": "At noon, to the landlord"},
            ]}),
            ("request_planning", {"originalRequest": "Spring newsletter", "tasks": [
                {"title": "Write the editorial", "description": "300 words, by Nele"},
                {"title": "Choose a cover photo", "description": "Landscape, 1800 pixels wide"},
                {"title": "Send it to the printer", "description": "As a PDF, with bleed"},
            ]}),
            ("mark_task_done", {"requestId": "req-1", "taskId": "task-1", "completedDetails": "All are labelled"}),
            ("approve_task_completion", {"requestId": "req-1", "taskId": "task-1"}),
        ),
        env={"TASK_MANAGER_FILE_PATH": "{folder}/tasks.json"},
    ),
    Server(
        "kanban", "pypi:kanban-mcp mcp<2", ("kanban-mcp",),
        (
            ("new_item", {"item_type": "feature", "title": "Print the concert programme", "priority": 2,
                          "description": "Two pages in A5"}),
            ("new_item", {"item_type": "issue", "title": "Umlauts are missing in the PDF", "priority": 1}),
            ("new_item", {"item_type": "todo", "title": "Ask the organist for a biography"}),
            ("new_item", {"item_type": "todo", "title": "Measure the stage"}),
            ("new_item", {"item_type": "feature", "title": "Sell tickets online", "priority": 3}),
            ("add_relationship", {"source_id": 2, "target_id": 1, "relationship_type": "blocks"}),
            ("set_status", {"item_id": 2, "status": "in_progress"}),
            ("add_tag", {"item_id": 1, "tag_name": "print"}),
            ("add_tag", {"item_id": 2, "tag_name": "print"}),
            ("add_tag", {"item_id": 5, "tag_name": "money"}),
            ("add_decision", {"item_id": 5, "choice": "Pay by bank transfer", "rejected_alternatives": "Credit cards",
                              "rationale": "The fees of cards are too high"}),
            ("add_update", {"content": "The second page is with the printer until Friday"}),
        ),
        env={"HOME": "{folder}", "KANBAN_PROJECT_DIR": "{folder}"},
    ),
    Server(
        "assistant", "pypi:mcp-personal-assistant mcp<2", ("mcp-personal-assistant",),
        (
            ("create_project", {"name": "Harbour fair", "status": "in_progress", "priority": "high",
                                "start_date": "2026-03-01", "end_date": "2026-06-14"}),
            ("add_project_task", {"project_id": "{id}", "title": "Book the brass band", "status": "blocked"}),
            ("add_project_task", {"project_id": "{id}", "title": "Print the posters", "status": "done"}),
            ("add_project_task", {"project_id": "{id}", "title": "Rent twelve stalls", "status": "in_progress"}),
            ("create_project", {"name": "Website relaunch", "status": "on_hold", "priority": "medium"}),
            ("create_project", {"name": "Attic insulation", "status": "not_started", "priority": "low"}),
            ("create_todo", {"title": "Water the seedlings", "priority": "low", "due_date": "2026-05-02"}),
            ("create_todo", {"title": "Renew the van insurance", "priority": "urgent", "due_date": "2026-05-12"}),
            ("create_todo", {"title": "Reply to Ines", "priority": "medium", "due_date": "2026-05-05"}),
            ("create_calendar_event", {"title": "Dentist", "location": "Kirkegata 9",
                                       "start_time": "2026-05-06T08:20:00", "end_time": "2026-05-06T09:00:00"}),
            ("create_calendar_event", {"title": "Choir rehearsal", "location": "Town hall",
                                       "start_time": "2026-05-07T19:30:00", "end_time": "2026-05-07T21:00:00"}),
            ("create_calendar_event", {"title": "Flight to Riga", "location": "Terminal 2",
                                       "start_time": "2026-06-02T06:55:00", "end_time": "2026-06-02T09:10:00"}),
        ),
        env={"HOME": "{folder}"},
    ),
    Server(
        "git-npm", "npm:@cyanheads/git-mcp-server", ("git-mcp-server",),
        (
            ("git_add", {**_GIT_AT, "paths": ["fees.txt"]}),
            ("git_commit", {**_GIT_AT, **_RUTA, "message": "List the camping fees"}),
            ("git_tag", {**_GIT_AT, "mode": "create", "tagName": "v1.0", "message": "First edition",
                         "annotated": True}),
            ("git_add", {**_GIT_AT, "paths": ["map.txt", "legend.txt"]}),
            ("git_commit", {**_GIT_AT, **_JON, "message": "Draw the map"}),
            ("git_branch", {**_GIT_AT, "mode": "create", "branchName": "winter-opening"}),
            ("git_add", {**_GIT_AT, "paths": ["rules.md"]}),
            ("git_commit", {**_GIT_AT, **_RUTA, "message": "Forbid fires after ten"}),
            ("git_tag", {**_GIT_AT, "mode": "create", "tagName": "v1.1", "message": "With the map and new rules",
                         "annotated": True}),
        ),
        files={".git": "", "fees.txt": "Tent: 14\nCaravan: 29\n", "map.txt": "North field\n",
               "legend.txt": "W: water\n", "rules.md": "# Rules\n\nNo fires after ten.\n",
               "scratch.txt": "Ask about the gate.\n"},
        env={"GIT_COMMITTER_NAME": "Ruta Blom", "GIT_COMMITTER_EMAIL": "ruta@blom.example",
             "GIT_SIGN_COMMITS": "false"},
    ),
    Server(
        "csv-database", "pypi:mcp-csv-database mcp<2", ("mcp-csv-database", "--csv-folder", "{folder}"), (),
        files={"shows.csv": _SHOWS, "donations.csv": _DONATIONS},
    ),
    Server("openapi", "pypi:openapi-tools-mcp mcp<2", ("openapi-tools-mcp",), (), files={"ferry.yaml": _FERRY}),
    Server("finance", "pypi:finance-calc-mcp mcp<2", ("finance-calc-mcp",), ()),
    Server("mathematics", "pypi:mcp-mathematics mcp<2", ("mcp-mathematics",), ()),
    Server("emoji", "pypi:emojifyi[mcp] mcp<2", ("python", "-m", "emojifyi.mcp_server"), ()),
)  # fmt: skip
_APP_LOG = """2026-05-04 08:12:03 INFO  server started on port 8431
2026-05-04 08:15:47 WARN  slow query on table invoices: 4820 ms
2026-05-04 09:02:10 ERROR payment 7719 rejected: card expired
2026-05-04 09:40:55 INFO  backup finished, 318 files
2026-05-04 11:26:31 ERROR mail to quill@halden.example bounced
2026-05-04 13:07:08 WARN  disk /data at 91 percent
2026-05-04 15:55:20 ERROR payment 7740 rejected: limit reached
"""
_ORDERS = """MAX_ITEMS = 36


def total(prices):
    # TODO: round to two decimals
    return sum(prices[:MAX_ITEMS])
"""
_MAILER = """SENDER = "desk@halden.example"


def send_receipt(order):
    # TODO: try again when the host is down
    return f"From: {SENDER}"
"""
_SETUP = """# Setup

Install Python 3.12 and run `make all`.
Backups run every night at 02:45 and are kept for 21 days.
Ask Ines Calder for the password of the staging machine.
"""
_MEETING = """Meeting of the allotment club, 12 May 2026
Present: Sunniva Rask, Pell Ahearn, Odd Lie
Absent: Mina Torvald
Water is turned on from 1 April to 15 October.
The rent of a plot goes up from 85 to 92 euros.
Odd Lie repairs the shed roof before 30 June.
Next meeting: 9 September at 19:30 in the village hall.
"""
_SETTINGS = """[server]
host = seedling.example
port = 6142

[mail]
sender = club@seedling.example
retries = 4
"""
_BANK = {
    "parcel-tracker/projectbrief.md": """# Parcel tracker

Shows where a parcel is, for small couriers. The customer is Marlow Freight; the contact there is Tove Anker.
Launch is planned for 14 September 2026.
""",
    "parcel-tracker/decisions.md": """# Decisions

- Database: PostgreSQL, since we need geographic queries.
- Positions are kept for 90 days, then deleted.
- Maps are drawn with Leaflet.
""",
    "parcel-tracker/progress.md": """# Progress

Done: login, list of parcels.
In progress: the map.
Not started: notifications by SMS.
""",
    "tide-clock/projectbrief.md": "# Tide clock\n\nA clock for the wall that shows high and low water at Ulvsund.\n",
    "tide-clock/hardware.md": """# Hardware

- Board: ESP32-C3
- Motor: 28BYJ-48
- Power: 5 V, at most 350 mA
""",
}
_DB = {"full_db_path": "{folder}/library.db"}
THIRD_HELD_BACK: tuple[Server, ...] = (
    Server(
        "grep", "pypi:mcp-grep mcp<2", ("mcp-grep-server",), (),
        files={
            "logs/app.log": _APP_LOG, "src/orders.py": _ORDERS, "src/mailer.py": _MAILER,
            "src/tax.py": "RATE = 0.19\n", "docs/setup.md": _SETUP,
        },
    ),
    Server(
        "text-editor", "pypi:mcp-text-editor mcp<2", ("mcp-text-editor",), (),
        files={
            "notes/meeting.txt": _MEETING, "settings.ini": _SETTINGS,
            "prices-2025.txt": "Compost, bag: 6.80\nOnion sets, 500 g: 3.20\nTwine, roll: 2.95\n",
            "prices-2026.txt": "Compost, bag: 7.45\nOnion sets, 500 g: 3.20\nTwine, roll: 3.10\n",
        },
    ),
    Server(
        "memory-libsql", "npm:mcp-memory-libsql", ("mcp-memory-libsql",),
        (
            ("create_entities", {"entities": [
                {"name": "Ansgar Feld", "entityType": "person",
                 "observations": ["lives in Kiel", "works as a tiler", "birthday is on 17 November"]},
                {"name": "Bettina Roe", "entityType": "person",
                 "observations": ["allergic to hazelnuts", "plays the cello"]},
                {"name": "Joris Haas", "entityType": "person", "observations": ["moved to Ghent in 2021"]},
                {"name": "Halden Tools", "entityType": "company",
                 "observations": ["lends machines to neighbours", "founded in 2009", "open on Saturdays"]},
                {"name": "Roof repair", "entityType": "project",
                 "observations": ["budget is 3400 euros", "must be finished by 30 September 2026"]},
            ]}),
            ("create_relations", {"relations": [
                {"source": "Joris Haas", "target": "Halden Tools", "type": "owns"},
                {"source": "Ansgar Feld", "target": "Halden Tools", "type": "works_for"},
                {"source": "Bettina Roe", "target": "Roof repair", "type": "pays_for"},
                {"source": "Ansgar Feld", "target": "Roof repair", "type": "leads"},
            ]}),
        ),
        env={"LIBSQL_URL": "file:{folder}/memory.db"},
    ),
    Server(
        "memory-bank", "npm:@allpepper/memory-bank-mcp", ("mcp-server-memory-bank",), (),
        files=_BANK, env={"MEMORY_BANK_ROOT": "{folder}"},
    ),
    Server("math", "pypi:mcp-server-math mcp<2", ("mcp-server-math",), ()),
    Server(
        "todo-kit", "pypi:todo-mcp-server-kit mcp<2", ("todo-mcp-server", "--project-root", "{folder}"),
        (
            ("add_todo", {"text": "Repair the bicycle lamp", "priority": "high", "due": "2027-01-15",
                          "tags": ["bike"]}),
            ("add_todo", {"text": "Order 40 candles", "due": "2027-02-01", "tags": ["choir"]}),
            ("add_todo", {"text": "Return the ladder to Ebba", "priority": "low", "tags": ["house"]}),
            ("add_todo", {"text": "Write the programme of the spring concert", "priority": "high",
                          "due": "2027-02-20", "tags": ["choir", "writing"]}),
            ("add_todo", {"text": "Paint the garden gate", "priority": "low", "due": "2027-04-10", "tags": ["house"]}),
            ("add_todo", {"text": "Copy the alto parts", "tags": ["choir"]}),
            ("mark_done", {"id": 6}),
        ),
    ),
    Server(
        "sqlite-manager", "pypi:mcp-sqlite-manager mcp<2", ("mcp-sqlite-manager",),
        (
            ("create_table", {**_DB, "table_sql":
                "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, author TEXT, year INTEGER, shelf TEXT)"}),
            ("create_table", {**_DB, "table_sql":
                "CREATE TABLE loans (id INTEGER PRIMARY KEY, book_id INTEGER, borrower TEXT, due_on TEXT)"}),
            ("write_query", {**_DB, "query":
                "INSERT INTO books VALUES (11, 'The Salt Road', 'Ilse Marrow', 1887, 'C4'), "
                "(12, 'Lamps of the North', 'Edvin Storm', 1931, 'A2'), "
                "(13, 'A Field of Rye', 'Ilse Marrow', 1893, 'C4'), "
                "(14, 'The Clockmaker of Brenn', 'Noor Castell', 1956, 'B7'), "
                "(15, 'Winter Bees', 'Noor Castell', 1972, 'B7'), "
                "(16, 'Letters from Skagen', 'Edvin Storm', 1899, 'A3')"}),
            ("write_query", {**_DB, "query":
                "INSERT INTO loans VALUES (21, 14, 'Frida Holm', '2026-07-03'), "
                "(22, 11, 'Matteo Serra', '2026-07-11'), "
                "(23, 15, 'Frida Holm', '2026-07-19')"}),
        ),
    ),
    Server("converter", "pypi:mcp-server-converter mcp<2", ("mcp-server-converter",), ()),
    Server("dates", "pypi:casual-mcp-server-time mcp<2", ("casual-mcp-server-time",), ()),
    Server(
        "expenses", "pypi:iflow-mcp-expense-tracker mcp<2", ("mcp-expense-tracker",),
        tuple(
            ("add_expense", {"date": date, "amount": amount, "category": category, "note": note})
            for date, amount, category, note in (
                ("2026-04-02", 54.30, "groceries", "market"),
                ("2026-04-05", 820, "rent", "April"),
                ("2026-04-11", 18.75, "transport", "train to Lier"),
                ("2026-04-19", 63.10, "groceries", "supermarket"),
                ("2026-04-23", 37.50, "leisure", "concert"),
                ("2026-05-03", 49.95, "groceries", "market"),
                ("2026-05-06", 820, "rent", "May"),
                ("2026-05-14", 112, "transport", "bicycle tyres"),
                ("2026-05-28", 26.40, "leisure", "museum"),
            )
        ),
        env={"TMPDIR": "{folder}"},
    ),
)  # fmt: skip
