"""Two times ten servers that are held back, whose questions were asked when the simulated model was done.

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
