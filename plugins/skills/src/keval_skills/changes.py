"""What a config changes about texts: other words, sections or skills left out, another description."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import attrs
from markdown_it.common.html_blocks import block_names

from keval.plugin import FieldError, FixedText, Intervention, InterventionError, suggestion
from keval_skills.front_matter import head_length
from keval_skills.sections import sections_of, text_without
from keval_skills.skill_folder import SkillFolder, description_problems

TextChange: TypeAlias = Literal["scrambled", "empty"] | FixedText
_FORM = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+)?(?:"  # in a quotation or a list, too
    r"(?:`{3,}|~{3,})[^\n\r]*"  # a fence of code, with its language
    r"|\d{1,9}[.)](?=[ \t])"  # the number of an item
    r"|\[[xX]\](?=[ \t]))"  # a task that is done
    rf"|</?(?i:{'|'.join((*block_names, 'pre', 'script', 'style', 'textarea'))})(?=[\s/>])",  # a block of HTML
    re.MULTILINE,
)
_KEY = re.compile(r"^[ \t]*(?:- )?[\w-]+:", re.MULTILINE)


def changed_instructions(text: str, interventions: Sequence[Intervention]) -> str:
    """Return instructions with what a config changes about them, first to last. Raises InterventionError."""
    for number, change in enumerate(interventions):
        errors = _unfitting(change, number, ("text", "without"), "instructions")
        sections = sections_of(text)
        chosen = _left_out(change, number, [section.name for section in sections], _no_section, errors)
        if errors:
            raise InterventionError(errors)
        if change.without:
            text = text_without(text, [section for section in sections if section.name in chosen])
            if not text.strip():
                told = "nothing would be left of the instructions; leave their context out instead"
                raise InterventionError([FieldError((number, "without"), told)])
        if change.text is not None:
            text = changed_text(text, change.text)
    return text


def changed_skills(skills: Sequence[SkillFolder], interventions: Sequence[Intervention]) -> tuple[SkillFolder, ...]:
    """Return skills with what a config changes about them, first to last. Raises InterventionError.

    `text` changes the body of each SKILL.md. The skill is then given without its other files, as a placebo that leads
    to the real ones would be none.
    """
    kept = {skill.name: skill for skill in skills}
    for number, change in enumerate(interventions):
        errors = _unfitting(change, number, ("text", "without", "describe"), "skills")
        left_out = _left_out(change, number, [*kept], _no_skill, errors)
        if change.without and left_out == {*kept}:
            told = "no skill would be left; leave the context out instead"
            errors.append(FieldError((number, "without"), told))
        for name in change.describe:
            errors += _description_errors(change, number, name, kept, left_out)
        if errors:
            raise InterventionError(errors)
        kept = {name: skill for name, skill in kept.items() if name not in left_out}
        for name, words in change.describe.items():
            kept[name] = kept[name].described(words.description or "")
        if change.text is not None:
            kept = {
                name: attrs.evolve(skill, body=changed_text(skill.body, change.text), alone=True)
                for name, skill in kept.items()
            }
    return tuple(kept.values())


def changed_text(text: str, change: TextChange) -> str:
    """Return the text that takes the place of another one."""
    if isinstance(change, FixedText):
        return change.fixed
    return "" if change == "empty" else scrambled(text)


def scrambled(text: str) -> str:
    """Return a text of the same length and form, with unreadable words in place of its own.

    Headings, lists, tables, code fences with their languages, numbers of items and the keys of a front matter stay
    where they are. A word becomes the same one wherever it stands, and in every text.
    """
    from keval_mcp import Words  # with it comes the MCP SDK, which takes 0.4 s

    # A fixed key, so that the same text is scrambled alike in every run.
    words = Words(hashlib.blake2b(b"keval-skills text", digest_size=32).digest())
    front = head_length(text)
    return "".join(
        piece if is_form else words.scramble(piece)
        for part, form in ((text[:front], _KEY), (text[front:], _FORM))
        for piece, is_form in _pieces(part, form)
    )


def _pieces(text: str, form: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Split a text into what belongs to its form and what does not."""
    end = 0
    for found in form.finditer(text):
        yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    yield text[end:], False


def _unfitting(change: Intervention, number: int, fitting: Sequence[str], of: str) -> list[FieldError]:
    """Return an error for each key that changes something else than texts."""
    return [
        FieldError((number, key), f"{key!r} cannot be changed of {of}, only {', '.join(fitting)}", at_key=True)
        for key in change.as_config()
        if key not in fitting
    ]


def _description_errors(
    change: Intervention, number: int, name: str, kept: dict[str, SkillFolder], left_out: set[str]
) -> Iterator[FieldError]:
    words, path = change.describe[name], (number, "describe", name)
    if name not in kept:
        yield FieldError(path, _no_skill(name, kept), at_key=True)
    elif name in left_out:
        told = f"the skill {name!r} is left out here, so nothing else can be changed about it"
        yield FieldError(path, told, at_key=True)
    elif words.parameters:
        yield FieldError((*path, "parameters"), "a skill has no parameters; give a description alone", at_key=True)
    else:
        yield from (FieldError(path, problem) for problem in description_problems(words.description))


def _left_out(
    change: Intervention,
    number: int,
    names: Sequence[str],
    missing: Callable[[str, Sequence[str]], str],
    errors: list[FieldError],
) -> set[str]:
    """Return the names that `without` means; a name that is there is no pattern. What means none adds an error."""
    found: set[str] = set()
    for index, wanted in enumerate(change.without):
        matching = [wanted] if wanted in names else [name for name in names if fnmatchcase(name, wanted)]
        if not matching:
            errors.append(FieldError((number, "without", index), missing(wanted, names)))
        found.update(matching)
    return found


def _no_section(wanted: str, names: Sequence[str]) -> str:
    same = [name for name in names if re.fullmatch(re.escape(wanted) + r" \(\d+\)", name)]
    if same:
        return f"{len(same)} sections have the heading {wanted!r}; write {' or '.join(map(repr, same))}"
    hint = suggestion(wanted, names) or f"; headings: {', '.join(names) or 'none'}"
    return f"the instructions have no section {wanted!r}{hint}"


def _no_skill(wanted: str, names: Iterable[str]) -> str:
    names = list(names)
    return f"there is no skill {wanted!r}{suggestion(wanted, names) or '; skills: ' + (', '.join(names) or 'none')}"
