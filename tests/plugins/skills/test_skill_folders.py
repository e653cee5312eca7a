"""Skills are checked against the published format before a run, all problems of all skills at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from skills_ref import validate

from keval.plugin import Intervention, PluginWarning
from keval_skills import Skill
from tests.plugins.skills.folders import PDF_BODY, skill, write

ROOT = Path(__file__).parents[3]
FRONTS = {
    "pdf": "name: pdf\ndescription: Fills forms.",
    "data-2": "name: data-2\ndescription: >\n  Reads\n  tables.\nlicense: MIT\nmetadata:\n  version: 1.0",
    "lists": "name: lists\ndescription: Lists.\ncompatibility: Needs git\nallowed-tools: Read Bash(git:*)",
    "größe": "name: größe\ndescription: Measures.",
}
WRONG = {
    "PDF": ("name: PDF\ndescription: d", ":2: 'name' has lowercase letters, digits and hyphens only, got 'PDF'"),
    "-pdf": ("name: -pdf\ndescription: d", ":2: 'name' has single hyphens, and none at its ends, got '-pdf'"),
    "a--b": ("name: a--b\ndescription: d", ":2: 'name' has single hyphens"),
    "long" + "g" * 61: (f"name: long{'g' * 61}\ndescription: d", ":2: 'name' has 65 characters; the most are 64"),
    "nameless": ("description: d", ":1: the skill needs a 'name', that of its folder: `name: nameless`"),
    "vague": ("name: vague", ":1: the skill needs a 'description'"),
    "blank": ("name: blank\ndescription: ''", ":3: the skill needs a 'description'"),
    "wordy": (f"name: wordy\ndescription: {'d' * 1025}", ":3: 'description' has 1025 characters; the most are 1024"),
    "picky": (f"name: picky\ndescription: d\ncompatibility: {'c' * 501}", ":4: 'compatibility' is a text of 1 to 500"),
    "torn": ("name: torn\ndescription: Use when: torn", ":3: the front matter is no YAML: mapping values are not"),
    "twice": ("name: twice\ndescription: d\nname: twice", ":4: 'name' stands in line 2, too; keep one"),
    "flat": ("- name\n- description", ":2: the front matter is no mapping"),
}
CHOSEN = ", by which agents choose it"
OWN = {
    "deep": ("name: deep\ndescription: d\nmetadata: {a: {b: c}}", ":4: 'metadata' is a mapping of texts to texts"),
    "tools": ("name: tools\ndescription: d\nallowed-tools: {a: b}", ":4: 'allowed-tools' is a text of names"),
    "licensed": ("name: licensed\ndescription: d\nlicense: [MIT]", ":4: 'license' is a text"),
}


def written(root: Path, name: str, front: str) -> Path:
    return write(root / name, SKILL_md=f"---\n{front}\n---\n{PDF_BODY}")


@pytest.mark.parametrize("name", FRONTS)
def test_a_skill_that_the_published_validator_accepts_is_accepted(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name, FRONTS[name])

    assert [] == validate(folder)
    assert [name] == [*Skill(folder).parts()]


def test_a_skill_in_a_folder_of_another_name_has_its_own(tmp_path: Path) -> None:
    folder = written(tmp_path, "my-repository", FRONTS["pdf"])

    with pytest.warns(PluginWarning, match="agents get the skill as 'pdf', its name, though its folder is 'my-repo"):
        assert ["pdf"] == [*Skill(folder).parts()]


def test_the_skill_of_this_project_is_accepted() -> None:
    assert ["keval"] == [*Skill(ROOT / "docs" / "skill").parts()]


@pytest.mark.parametrize("name", WRONG)
def test_a_skill_that_the_published_validator_refuses_is_refused(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name, WRONG[name][0])

    with pytest.raises(ValueError, match="'path' must lead to skills") as refused:
        Skill(folder)

    assert validate(folder)
    assert f"{folder}/SKILL.md{WRONG[name][1]}" in str(refused.value)


def test_all_problems_of_all_skills_are_told_at_once(tmp_path: Path) -> None:
    for name, (front, _) in OWN.items():
        written(tmp_path, name, front)
    write(tmp_path, bare__SKILL_md="# No front matter", lower__skill_md="x", empty__SKILL_md="---\nname: empty\n---\n")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes("---\nname: latin\ndescription: Größe".encode("latin-1"))
    outside = tmp_path.parent / "missing"

    with pytest.raises(ValueError, match="'path' must lead to skills") as refused:
        Skill((tmp_path, outside, tmp_path / "bare" / "SKILL.md"))

    _, *lines = str(refused.value).split("\n  ")
    expected = [
        f"{tmp_path}/bare/SKILL.md:1: there is no front matter; begin with `---`, `name:`, `description:` and `---`",
        f"{tmp_path}/deep/SKILL.md:4: 'metadata' is a mapping of texts to texts",
        f"{tmp_path}/empty/SKILL.md:1: the skill needs a 'description': what it does and when to use it{CHOSEN}",
        f"{tmp_path}/empty/SKILL.md: there is nothing after the front matter that an agent could read",
        f"{tmp_path}/latin/SKILL.md: it is not in UTF-8 (byte 32); save it so",
        f"{tmp_path}/licensed/SKILL.md:4: 'license' is a text: the name of a license, or of its file",
        f"{tmp_path}/lower: agents look for a file SKILL.md, in capitals; rename what is there",
        f"{tmp_path}/tools/SKILL.md:4: 'allowed-tools' is a text of names with spaces between them, or a list of texts",
        f"{outside}: there is no folder",
        f"{tmp_path}/bare/SKILL.md: it is a file; give its folder, {tmp_path}/bare",
    ]
    assert expected == lines


def test_hostile_files_of_a_skill_are_refused(tmp_path: Path) -> None:
    folder = skill(tmp_path)
    (folder / "inside.md").symlink_to("SKILL.md")
    (folder / "outside.md").symlink_to("../../secret")
    (folder / "absolute.md").symlink_to(folder / "SKILL.md")
    (folder / "nowhere.md").symlink_to("gone.md")
    (folder / "circle.md").symlink_to("circle.md")
    (folder / "li\nne.md").touch()
    os.mkfifo(folder / "pipe")

    with pytest.raises(ValueError, match="must lead to skills") as refused:
        Skill(folder)

    _, *lines = str(refused.value).split("\n  ")
    expected = {
        f"{folder}: the link 'outside.md' leads out of the folder, to '../../secret'; copy the file into it",
        f"{folder}: the link 'absolute.md' leads out of the folder, to '{folder}/SKILL.md'; copy the file into it",
        f"{folder}: the link 'nowhere.md' leads nowhere; remove it",
        f"{folder}: the link 'circle.md' leads nowhere; remove it",
        f"{folder}: the name 'li\\nne.md' has characters that cannot be shown; rename the file",
        f"{folder}: 'pipe' is a pipe, a socket or a device; remove it",
    }
    assert expected == {*lines}


def test_a_skill_of_100_mb_is_refused(tmp_path: Path) -> None:
    folder = skill(tmp_path)
    with (folder / "model.bin").open("wb") as file:
        file.truncate(100_000_000)

    with pytest.raises(ValueError, match="it has more than 30 MB or 5000 files"):
        Skill(folder)


def test_keys_of_claude_code_are_known_and_slips_are_told(tmp_path: Path) -> None:
    known = written(tmp_path, "known", "name: known\ndescription: d\nmodel: opus\ndisable-model-invocation: true")
    slip = written(tmp_path, "slip", "name: slip\ndescription: d\nalowed-tools: Read")

    Skill(known)
    with pytest.warns(PluginWarning, match=r"no agent is known to read 'alowed-tools' \(.*slip/SKILL.md:4\)"):
        Skill(slip)


def test_the_digest_changes_with_all_that_is_given_and_with_nothing_else(tmp_path: Path) -> None:
    folder = write(skill(tmp_path), scripts__fields_py="print()")
    digests = [Skill(folder).digest, Skill(folder).changed([]).digest]
    for change in (
        lambda: (folder / "scripts" / "fields.py").chmod(0o700),
        lambda: write(folder, scripts__fields_py="print(1)"),
        lambda: (folder / "scripts" / "fields.py").rename(folder / "fields.py"),
        lambda: skill(tmp_path, body="Other."),
    ):
        change()
        digests.append(Skill(folder).digest)
    placebo = Skill(folder).changed([Intervention(text="scrambled")]).digest
    write(folder, fields_py="print(2)")

    assert digests[0] == digests[1]
    assert 6 == len({*digests, placebo})
    assert placebo == Skill(folder).changed([Intervention(text="scrambled")]).digest
