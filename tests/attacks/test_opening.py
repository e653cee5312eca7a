"""Whoever opens what an agent could have written does so by `keval_programs.tree`: others are found here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from keval_programs.tree import Tree

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("agents/acp", "agents/claude-code", "agents/command", "plugins/checks", "plugins/programs"),
    *("plugins/skills", "plugins/workspace"),
)
OF_FILES = {
    *("open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "read_input", "open_input", "readlink"),
    *("copyfile", "copymode", "copy2", "copytree", "rmtree", "move", "mkfifo", "symlink", "symlink_to", "hardlink_to"),
    *("exists", "lexists", "is_file", "is_dir", "is_symlink", "isfile", "isdir", "islink", "samefile"),
    *("resolve", "realpath", "stat", "lstat", "chmod", "touch", "mkdir", "makedirs", "unlink", "rmdir", "rename"),
    *("iterdir", "glob", "rglob", "walk", "fwalk", "scandir", "listdir"),
}
"""Calls that look at, open or change files by a path."""

BY_DESCRIPTOR = "the module for it, or what it stands on: relative to descriptors, without links"
USERS = "files of the user's, which the config or a command names, or which are installed"
MADE = "a folder that keval has just made, before an agent knows of it"
INSIDE = "runs inside of the sandbox, as the agent does"
OWN = "keval's own folder, in which no agent writes"

ALLOWED = {
    "keval_programs/tree.py": {
        **dict.fromkeys(("content", "_blocks", "at", "find", "write", "link", "remove"), BY_DESCRIPTOR),
        **dict.fromkeys(("_replace", "_target", "_entries", "_open"), BY_DESCRIPTOR),
    },
    "keval_programs/folder.py": {
        "at": MADE,
        **dict.fromkeys(("remove_folder", "_remove", "_emptied", "_opened", "_let_in"), BY_DESCRIPTOR),
    },
    "keval_programs/confining.py": {
        "needed": USERS,
        "of": "`Tree.walk`",
        **dict.fromkeys(("_descendants", "_own_memory", "_shared_memory"), "the kernel's, of processes"),
    },
    "keval_programs/environments.py": {"find_program": USERS, "whole_path": USERS},
    "keval_programs/setup.py": {"note": "of the folder of the run, by `open_added`"},
    "keval_claude_code/connection.py": {"find_claude": USERS},
    "keval_claude_code/conversation.py": {"_settings": "names of folders around the workspace, before the agent"},
    "keval_claude_code/launch.py": {"main": INSIDE},
    "keval_claude_code/servers.py": {"_pipe": MADE},
    "keval_checks/called_function.py": {"(module)": "of `/dev/null`"},
    "keval_checks/command.py": {"_copied": OWN, "_read_expected": USERS},
    "keval_checks/expected.py": {"_read_schema": USERS},
    "keval_checks/file.py": {"_read_whole": USERS},
    "keval_checks/program.py": {"_outside": USERS},
    "keval_checks/python.py": {"_names": "of a syntax tree", "__attrs_post_init__": USERS, "check": USERS},
    "keval_checks/sqlite.py": {"_copy": OWN},
    "keval_checks/unchanged.py": {"_paths": "`Tree.walk`"},
    "keval_skills/instructions.py": {"__attrs_post_init__": USERS},
    "keval_skills/plugin.py": dict.fromkeys(("read", "_check_path", "_filled", "_json"), USERS),
    "keval_skills/server.py": dict.fromkeys(("build_server", "_files"), OWN),
    "keval_skills/served.py": {"_take": OWN},
    "keval_skills/skill_folder.py": {
        **dict.fromkeys(("read_text", "_has_text", "write", "found", "_folders", "_read"), USERS),
    },
    "keval_skills/tree.py": dict.fromkeys(("_walk", "_looked_at", "copy", "digest"), USERS),
    "keval_workspace/copying.py": dict.fromkeys(("copy_tree", "_copy_file"), MADE),
    "keval_workspace/end.py": {"_walk": "`Tree.walk`", "of": "`Tree.walk`"},
    "keval_workspace/folder.py": {
        "_check_copy": USERS,
        "_opened": MADE,
        **dict.fromkeys(("_make_template", "_fill"), "`repository.resolve`, of a commit"),
    },
    "keval_workspace/repository.py": {"check_out": MADE},
    "keval_workspace/sandbox/bubblewrap.py": {
        **dict.fromkeys(("(module)", "_system", "prepare", "_around", "_python", "_interpreter", "add"), USERS),
        "_installed": "what no program in the sandbox writes, as it leaves that out",
        "_bind": OWN,
    },
    "keval_workspace/sandbox/inside.py": {"main": INSIDE},
    "keval_workspace/tasks/tasks.py": {"enter": "the opening of a workspace, which is no file"},
}
"""Who may call them: by module and function, with the reason."""


def calls(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in OF_FILES:
                yield name


def test_files_that_an_agent_had_are_opened_by_one_module() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in (path for package in PACKAGES for path in (ROOT / package / "src").rglob("*.py")):
        module = path.relative_to(path.parents[len(path.parts) - 1 - path.parts.index("src") - 1]).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
                if any(calls(inner)):
                    found[module].add(getattr(inner, "name", "(module)"))

    assert {module: {*functions} for module, functions in ALLOWED.items()} == {**found}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"12345")

    with Tree.at(tmp_path) as tree, tree.followed("a.txt") as entry:
        assert entry.content(5) == b"12345"
        assert entry.content(4) is None
