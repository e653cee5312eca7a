"""`--against`: conditions also run as they were at another commit, in real Git repositories."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from tests.conftest import Outcome, Project
from tests.stdio_server import ENVIRONMENT

SERVER = f"""\
import sys
sys.path.append({ENVIRONMENT["PYTHONPATH"]!r})
from tests.stdio_server import Tool, serve, text
from words import TOOLS
tool = Tool(lambda arguments, meta: text("7"), {{}}, (), "Look it up.")
serve("pages", lambda: dict.fromkeys(TOOLS, tool))
"""
CONFIG = f"""
dataset: {{path: questions.jsonl}}
agents: {{scripted: {{}}}}
contexts:
  pages:
    {{type: stdio, command: {sys.executable}, args: [../server/server.py], watch: [../server], isolation: condition}}
  terse: {{from: pages, describe: {{search: Finds.}}}}
  notes: {{type: instructions, path: notes.md}}
conditions:
  baseline: {{system_prompt: "Hm."}}
  with_pages: {{system_prompt: "Hm.", contexts: [pages]}}
  with_terse: {{system_prompt: "Hm.", contexts: [terse]}}
  with_notes: {{system_prompt: "Hm.", contexts: [notes]}}
metrics: [{{basic/contains: {{none_of: [xyz]}}}}]
"""


@pytest.fixture
def repository(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with a commit on `main`, whose folder `evals` is the current one."""
    temporary, evals = project.root / "temporary", project.root / "repo" / "evals"
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for folder in (temporary, evals, project.root / "repo" / "server"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(evals)
    there = Project(evals)
    there.write(eval_yaml=CONFIG, questions_jsonl=json.dumps({"id": "q", "question": "How?"}), notes_md="Look twice.\n")
    (evals.parent / "server" / "server.py").write_text(SERVER)
    (evals.parent / "server" / "words.py").write_text("TOOLS = ['search']\n")
    (evals.parent / ".gitignore").write_text("results\n__pycache__\n")
    git(evals.parent, "init", "--quiet", "--initial-branch=main")
    commit(there, "first")
    return there


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(project: Project, subject: str) -> str:
    git(project.root, "add", "--all", "..")
    git(project.root, "commit", "--quiet", "--message", subject)
    return git(project.root, "rev-parse", "HEAD")[:7]


def planned(project: Project, *more: str, ref: str = "main") -> tuple[Outcome, str]:
    """What --dry-run says, and its notices on one line."""
    found = project.keval("run", "eval.yaml", "--against", ref, "--dry-run", *more, env={"COLUMNS": "400"})
    return found, " ".join(found.stderr.split())


def left(project: Project) -> list[str]:
    """The temporary folders and worktrees that are left."""
    worktrees = git(project.root, "worktree", "list").splitlines()[1:]
    return [*(each.name for each in (project.root.parent.parent / "temporary").iterdir()), *worktrees]


def test_a_changed_server_is_run_as_it_was_at_a_commit_beside_what_it_is_now(repository: Project) -> None:
    then = git(repository.root, "rev-parse", "main")[:7]
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = ['search', 'find']\n")
    chosen = ("--condition", "baseline", "--condition", "with_pages")
    page = (
        (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8").partition("## Against a commit")[2]
    )
    command = page.partition("```console\n")[2].partition("\n")[0].split()[1:]
    outcome = repository.keval(*command, *chosen, env={"COLUMNS": "120"})
    after = left(repository)
    manifest = repository.read("manifest.json")
    resumed = repository.keval("resume", "latest", "--add-repetitions", "1")
    data = repository.keval("report", "latest", "--json").data

    base = f"with_pages (main@{then})"
    assert (0, 0, [], []) == (outcome.code, resumed.code, after, left(repository)), outcome.stderr + resumed.stderr
    tools = {label: entry["servers"].get("pages", {}).get("tools") for label, entry in manifest["conditions"].items()}
    assert {"baseline": None, "with_pages": ["search", "find"], base: ["search"]} == tools
    assert f"note: --against main: added '{base}'" in outcome.stderr
    assert f"with_pages against {base}" in outcome.stdout
    assert "  changed: pages: server/words.py\n" in outcome.stdout
    assert [("revision", "with_pages", base, 1)] == [
        (each["kind"], each["condition"], each["against"], each["effects"][0]["n"]) for each in data["contrasts"]
    ]
    assert {"with_pages"} == {each["condition"] for each in data["effects"]}, "the base is held against nothing else"
    assert 6 == len(repository.lines("trials.jsonl"))


def test_prompts_texts_and_changed_contexts_are_held_against_what_they_were(repository: Project) -> None:
    then = git(repository.root, "rev-parse", "main")[:7]
    text = CONFIG.replace('with_notes: {system_prompt: "Hm."', 'with_notes: {system_prompt: "Well."')
    repository.write(eval_yaml=text.replace("Finds.", "Finds pages."), notes_md="Look once.\n")
    chosen = ("--condition", "baseline", "--condition", "with_terse", "--condition", "with_notes")
    outcome = repository.keval("run", "eval.yaml", "--against", then, *chosen)
    conditions, config = (repository.read("manifest.json")[key] for key in ("conditions", "config"))

    assert 0 == outcome.code, outcome.stderr
    assert {"system_prompt": "Hm.", "contexts": [f"notes ({then})"]} == config["conditions"][f"with_notes ({then})"]
    now, before = (conditions[f"with_notes{name}"]["texts"] for name in ("", f" ({then})"))
    assert now["notes"]["sha256"] != before[f"notes ({then})"]["sha256"]
    told = {f"with_notes{name}": conditions[f"with_notes{name}"]["contexts"] for name in ("", f" ({then})")}
    assert {"with_notes": ["notes"], f"with_notes ({then})": [f"notes ({then})"]} == told
    changed = {name: conditions[f"with_terse{name}"]["servers"]["pages"] for name in ("", f" ({then})")}
    assert [{"describe": {"search": {"description": "Finds pages."}}}] == changed[""]["interventions"]
    assert [{"describe": {"search": {"description": "Finds."}}}] == changed[f" ({then})"]["interventions"]
    assert changed[""]["original_sha256"] == changed[f" ({then})"]["original_sha256"], "the server itself is the same"
    differing = {"with_terse": ["terse"], "with_notes": ["system_prompt", "notes: evals/notes.md"]}
    assert differing == config["against"]["changed"]


def test_what_is_held_against_nothing_is_told(repository: Project) -> None:
    text = CONFIG.replace(", watch: [../server]", "").replace("conditions:", "conditions:\n  other: {}")
    same, told_same = planned(repository)
    for name in "abcd":
        (repository.root / f"{name}.py").write_text("")
    repository.write(eval_yaml=text)
    commit(repository, "second")
    new, told_new = planned(repository, ref="main~1")
    (repository.root / "eval.yaml").rename(repository.root / "others.yaml")
    repository.write(notes_md="Look once.\n")
    moved = repository.keval("run", "others.yaml", "--against", "main", "--dry-run", "--json")

    assert (0, 0, 0) == (same.code, new.code, moved.code)
    assert "--against main: no condition differs from what it was then, so nothing is held against it" in told_same
    assert "note: --against main~1: 'other' is new since then, and held against nothing" in told_new
    told = "changed files that nothing names: evals/a.py, evals/b.py, evals/c.py, 1 more"
    assert f"{told}; if one is code of 'pages', name it there by `watch: [PATH]`" in told_new
    told = "note: --against main: others.yaml is not there, so only files that it names are compared"
    assert told in " ".join(moved.stderr.split())
    assert f"with_notes (main@{git(repository.root, 'rev-parse', 'main')[:7]})" in moved.stdout
    assert [] == left(repository)


def test_what_cannot_be_held_against_a_commit_is_refused(repository: Project) -> None:
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = []\n")
    unknown, told_unknown = planned(repository, ref="mian")
    alone = repository.keval("run", "eval.yaml", "--against-setup", "true", "--dry-run")
    failing, told_failing = planned(repository, "--against-setup", "echo no; exit 4")
    repository.write(eval_yaml=CONFIG.replace("args: [../server/server.py]", "args: [-m, installed_server]"))
    commit(repository, "second")
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = ['search']\n")
    installed, told_installed = planned(repository)
    recorded = repository.keval("run", "eval.yaml", "--record", "--condition", "baseline")
    elsewhere = repository.keval("run", "eval.yaml", "--against", "main", "--dry-run", "--replay", "latest")

    assert [0, 2, 2, 2, 2, 0] == [each.code for each in (recorded, unknown, alone, failing, installed, elsewhere)]
    assert "--against mian: the repository has no commit 'mian'; did you mean 'main'?" in told_unknown
    assert "--against-setup prepares the checkout of --against REF; add that" in alone.stderr
    assert "--against-setup: 'echo no; exit 4' exits with 4: no" in told_failing
    told = "the context 'pages' would be today's: nothing in its entry leads to the checkout; start it by a path, or"
    assert f"--against main: {told} give its `cwd:`" in told_installed
    assert "note: --against main: a replay plays what was recorded, so this has no effect" in elsewhere.stderr
    assert [] == left(repository)


def test_a_command_prepares_the_checkout(repository: Project) -> None:
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = []\n")
    seen = repository.root.parent.parent / "seen"
    outcome, _ = planned(repository, "--against-setup", f"pwd > {seen}; cat ../server/words.py >> {seen}")

    folder, words = seen.read_text().splitlines()
    assert (0, "evals", "TOOLS = ['search']") == (outcome.code, Path(folder).name, words), outcome.stderr
    assert Path(folder).is_relative_to(repository.root.parent.parent / "temporary")


def test_a_shallow_clone_is_told_how_to_fetch(repository: Project) -> None:
    git(repository.root, "branch", "topic")
    repository.write(notes_md="Look once.\n")
    commit(repository, "second")
    git(repository.root.parent.parent, "clone", "--quiet", "--depth=1", f"file://{repository.root.parent}", "clone")
    shallow = Project(repository.root.parent.parent / "clone" / "evals")
    config = str(shallow.root / "eval.yaml")
    outcome = shallow.keval("run", config, "--against", "topic", "--dry-run")
    told = " ".join(outcome.stderr.split())
    subprocess.run(told.split("`")[1], shell=True, cwd=shallow.root, check=True)
    fetched = shallow.keval("run", config, "--against", "origin/topic", "--dry-run", "--json")

    assert (2, 0) == (outcome.code, fetched.code), fetched.stderr
    remedy = "`git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'` brings all, as `fetch-depth: 0` of"
    assert f"the repository has no commit 'topic'; this clone is shallow: {remedy} actions/checkout does" in told
    assert "with_notes (origin_topic@" in fetched.stdout


def test_a_submodule_and_a_folder_without_git_are_refused(repository: Project, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet", "--initial-branch=main")
    (library / "server.py").write_text(SERVER)
    git(library, "add", "--all")
    git(library, "commit", "--quiet", "--message", "first")
    git(repository.root.parent, "submodule", "--quiet", "add", str(library), "library")
    repository.write(eval_yaml=CONFIG.replace("../server", "../library"))
    commit(repository, "with a submodule")
    (repository.root.parent / "library" / "server.py").write_text(f"{SERVER}\n")
    inside, told = planned(repository)
    bare = Project(tmp_path)
    bare.write(eval_yaml=CONFIG)
    outside = bare.keval("run", str(tmp_path / "eval.yaml"), "--against", "main", "--dry-run")

    assert (2, 2) == (inside.code, outside.code), told
    assert "the context 'pages' is in the submodule library, which is not checked out" in told
    assert "--against main: Git refuses" in outside.stderr
    told = " ".join(outside.stderr.split())
    assert "not a git repository" in told
    assert told.endswith("; put the config into a clone of its repository")


def test_what_a_killed_run_has_left_is_removed_by_the_next(repository: Project, tmp_path: Path) -> None:
    for name in ("keval-base-dead", "keval-base-alive"):
        (tmp_path / "temporary" / name).mkdir()
        git(repository.root, "worktree", "add", "--detach", str(tmp_path / "temporary" / name / "tree"))
    with FileLock(tmp_path / "temporary" / "keval-base-alive" / "lock"):
        outcome, _ = planned(repository)

    assert 0 == outcome.code
    assert {"keval-base-alive"} == {path.name for path in (tmp_path / "temporary").iterdir()}
    assert 2 == len(git(repository.root, "worktree", "list").splitlines())


def since(project: Project, *more: str, ref: str = "main") -> tuple[list[str], int, str]:
    """What --changed-since leaves: the conditions, how many questions, and what it says on one line."""
    found = project.keval("run", "eval.yaml", "--changed-since", ref, "--dry-run", "--json", *more)
    assert 0 == found.code, found.stderr
    labels, samples = (found.data["conditions"], found.data["samples"]) if found.stdout else ([], 0)
    return [*labels], samples, " ".join(found.stderr.split())


def test_only_what_changed_since_a_commit_is_run(repository: Project) -> None:
    questions = [{"id": name, "question": "How?"} for name in ("q1", "q2", "q3")]
    everything = ["baseline", "with_pages", "with_terse", "with_notes"]
    repository.write(questions_jsonl="".join(f"{json.dumps(each)}\n" for each in questions))
    commit(repository, "second")
    none = since(repository)
    repository.write(notes_md="Look once.\n")
    skill = since(repository)
    commit(repository, "third")
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = ['find']\n")
    server = since(repository)
    new_file = repository.root.parent / "server" / "more.py"
    git(repository.root, "checkout", "..")
    new_file.write_text("")
    untracked = since(repository)
    new_file.unlink()
    repository.write(eval_yaml=CONFIG.replace("Finds.", "Finds pages."))
    derived = since(repository)
    repository.write(eval_yaml=CONFIG.replace('with_notes: {system_prompt: "Hm."', 'with_notes: {system_prompt: "Ah."'))
    prompt = since(repository)
    repository.write(eval_yaml=CONFIG.replace("xyz", "xyzz"))
    metric = since(repository)
    repository.write(eval_yaml=CONFIG.replace('baseline: {system_prompt: "Hm."}', "baseline: {}"))
    baseline = since(repository)
    questions[1]["question"] = "Why?"
    repository.write(eval_yaml=CONFIG, questions_jsonl="".join(f"{json.dumps(each)}\n" for each in questions[1:]))
    question = since(repository)
    repository.write(notes_md="Look.\n")
    both = since(repository)

    text = CONFIG.replace("metrics:", "workspace: {copy: metrics}\nmetrics:").replace(
        "[{basic/", "[own.py:one, {basic/"
    )
    repository.write(eval_yaml=text, own_py="def one(output, answer):\n    return 1.0\n")
    (repository.root / "metrics").mkdir()
    (repository.root / "metrics" / "a.txt").write_text("")
    commit(repository, "with files")
    repository.write(own_py="def one(output, answer):\n    return 0.5\n")
    of_file = since(repository)
    git(repository.root, "checkout", ".")
    (repository.root / "metrics" / "a.txt").write_text("a")
    of_folder = since(repository)

    assert ([], 0) == none[:2]
    assert "note: nothing that eval.yaml names has changed since main, so nothing is run" in none[2]
    assert (["baseline", "with_notes"], 3) == skill[:2]
    assert "--changed-since main: with_notes changed (notes: evals/notes.md)" in skill[2]
    assert (["baseline", "with_pages", "with_terse"], 3) == server[:2] == untracked[:2]
    assert "with_pages changed (pages: server/more.py)" in untracked[2]
    assert (["baseline", "with_pages", "with_terse"], 3) == derived[:2], "with_pages is its control"
    assert "main: with_terse changed (terse)" in derived[2]
    assert (["baseline", "with_notes"], 3) == prompt[:2]
    assert (everything, 3) == metric[:2] == baseline[:2]
    assert "all is run, as what all depends on changed: metrics" in metric[2]
    assert "all depends on changed: system_prompt" in baseline[2]
    assert (everything, 1) == question[:2]
    assert "--changed-since main: 1 question changed (q2)" in question[2]
    assert (everything, 2) == both[:2]
    assert "all depends on changed: conditions and questions" in both[2]
    assert (everything, 2) == of_file[:2] == of_folder[:2]
    assert "all depends on changed: evals/own.py" in of_file[2]
    assert "all depends on changed: evals/metrics/a.txt" in of_folder[2]
    assert [] == left(repository)


def test_what_has_not_changed_is_shown_from_an_earlier_run_and_compared_with_nothing(repository: Project) -> None:
    with (repository.root.parent / ".gitignore").open("a") as ignored:
        ignored.write("words.py\n")
    git(repository.root, "rm", "--cached", "../server/words.py")
    now = commit(repository, "with an ignored file")
    whole = repository.keval("run", "eval.yaml")
    earlier = repository.read("manifest.json")["run"]
    repository.write(notes_md="Look once.\n")
    part = repository.keval("run", "eval.yaml", "--changed-since", "main", "--against", "main", env={"COLUMNS": "400"})
    latest = repository.keval("report", "latest", "--json").data
    shown = repository.keval("report", "latest", "--markdown").stdout
    resumed = repository.keval("resume", "latest", "--add-repetitions", "1", env={"COLUMNS": "400"})
    (repository.root.parent / "server" / "words.py").write_text("TOOLS = ['search', 'find']\n")
    listed = since(repository)

    assert (0, 0, 0) == (whole.code, part.code, resumed.code), part.stderr + resumed.stderr
    told = f"with_pages, as at main@{now}; the run {earlier} had scripted basic/contains 1.00 n=1, which is compared"
    assert f"{told} with nothing" in " ".join(part.stdout.split())
    assert f"{told} with nothing" in " ".join(resumed.stdout.split())
    assert told.partition(";")[0].replace("_", "\\_").replace("@", "@&#8203;") in shown
    assert {"with_notes"} == {each["condition"] for each in latest["effects"]}
    assert [("with_notes", f"with_notes (main@{now})")] == [
        (each["condition"], each["against"]) for each in latest["contrasts"]
    ]
    assert ["baseline", "with_pages", "with_terse", "with_notes"] == listed[0]
    assert f"with_pages changed (pages has other tools than in the run {earlier})" in listed[2]


def test_what_evaluates_a_skill_is_no_part_of_it(repository: Project) -> None:
    config = CONFIG.replace("{type: instructions, path: notes.md}", "{type: skill, path: ..}")
    repository.write(eval_yaml=config)
    skill = repository.root.parent / "SKILL.md"
    skill.write_text("---\nname: repo\ndescription: Read pages.\n---\nRead.\n")
    commit(repository, "a skill")
    repository.write(notes_md="Look once.\n")
    none = since(repository)[0]
    skill.write_text(f"{skill.read_text()}Slowly.\n")

    assert ([], ["baseline", "with_notes"]) == (none, since(repository)[0])


def test_a_branch_is_held_against_the_commit_that_it_began_at(repository: Project) -> None:
    git(repository.root, "branch", "topic")
    repository.write(notes_md="Look once.\n")
    commit(repository, "meanwhile")
    git(repository.root, "checkout", "--quiet", "topic")
    left = since(repository, ref="main")[0], since(repository, ref="main...")[0]
    repository.write(notes_md="Look.\n")
    began = git(repository.root, "merge-base", "main", "topic")[:7]
    told = planned(repository, ref="main...")[1]
    git(repository.root, "checkout", "--quiet", "--orphan", "apart")
    commit(repository, "without a past")
    apart = repository.keval("run", "eval.yaml", "--changed-since", "main...")

    assert (["baseline", "with_notes"], []) == left
    assert f"added 'with_notes (main@{began})'" in told
    assert "--changed-since main...: the repository has no commit 'main...'" in apart.stderr


def test_a_commit_that_is_not_there_cannot_be_compared_with(repository: Project, tmp_path: Path) -> None:
    (repository.root / "eval.yaml").rename(repository.root / "others.yaml")
    renamed = repository.keval("run", "others.yaml", "--changed-since", "main", "--dry-run")
    unknown = repository.keval("run", "others.yaml", "--changed-since", "mian")
    bare = Project(tmp_path)
    bare.write(eval_yaml=CONFIG)
    outside = bare.keval("run", str(tmp_path / "eval.yaml"), "--changed-since", "main")

    assert (0, 2, 2) == (renamed.code, unknown.code, outside.code)
    assert "all is run, as what all depends on changed: others.yaml" in " ".join(renamed.stderr.split())
    assert "--changed-since mian: the repository has no commit 'mian'; did you mean 'main'?" in unknown.stderr
    assert "--changed-since main: Git refuses" in outside.stderr


def test_gates_are_about_what_a_change_does_and_not_about_what_was_there_before(repository: Project) -> None:
    gates = ["basic/contains >= 0.5", "basic/contains >= -0.5 against commit"]
    setup = {"command": 'echo "$KEVAL_CONDITION" >> seen', "conditions": ["with_notes"]}
    lines = [json.dumps({"id": name, "question": "How?", "expect": [{"not_contains": "xyz"}]}) for name in "ab"]
    text = f"{CONFIG}\ngates: {json.dumps(gates)}\nsetup: {{condition: {json.dumps(setup)}}}\n"
    repository.write(eval_yaml=text, questions_jsonl="\n".join(lines))
    commit(repository, "second")
    chosen = ("--condition", "baseline", "--condition", "with_notes")
    alone = repository.keval("run", "eval.yaml", *chosen, "--json")
    same = repository.keval("run", "eval.yaml", *chosen, "--against", "main", "--strict", "--json")
    (repository.root / "seen").unlink()
    repository.write(notes_md="Look once.\n")
    gain = "--fail-under=with_notes/basic/contains >= +0.5 against commit"
    changed = repository.keval("run", "eval.yaml", *chosen, "--against", "main", gain, "--json")
    unsigned = repository.keval("run", "eval.yaml", "--dry-run", "--fail-under", "basic/contains >= 0.5 against commit")

    assert (0, 0, 1, 2) == (alone.code, same.code, changed.code, unsigned.code), changed.stderr
    about, label = "basic/contains >= -0.5 against commit", "with_notes"
    verdicts = [(each["verdict"], each["reason"]) for each in (found.data["gates"][1] for found in (alone, same))]
    lacks = "the run is held against no commit; `keval run --against REF` does that"
    nothing = "no condition of the gate differs from what it was at main"
    assert [("undecided", lacks), ("held", nothing)] == verdicts
    assert [
        ("basic/contains >= 0.5", "held", label),
        (about, "held", label),
        ("with_notes/basic/contains >= +0.5 against commit", "failed", label),
        ("expect", "held", None),
    ] == [(each["gate"], each["verdict"], each["condition"]) for each in changed.data["gates"]]
    assert "4 of 4 expectations met" == changed.data["gates"][-1]["reason"], "the answers of then are not counted"
    then = git(repository.root, "rev-parse", "main")[:7]
    assert [label, f"{label} (main@{then})"] == sorted((repository.root / "seen").read_text().splitlines())
    assert "is of a difference, which has a sign; write one, such as '>= +0', or '>= -margin'" in unsigned.stderr
