"""The ten servers of the half that is held back, whose questions were asked when the simulated model was done.

Their data was written by somebody who has not read the simulated model's code, nor the other servers' questions.
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
