"""The context `instructions`: an instruction file such as AGENTS.md, as a file in the workspace or in the prompt."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval.plugin import ContextSource, Conventions, GivenText, Intervention, Provision, ServerSpec, TrialInfo
from keval_skills.changes import changed_instructions
from keval_skills.placing import placing, writing
from keval_skills.sections import chief_sections
from keval_skills.skill_folder import read_text
from keval_skills.text_log import FollowedTexts

SYSTEM_PROMPT = "system prompt"


@attrs.frozen
class Instructions:
    """Gives agents the text of an instruction file.

    An agent that works in a folder finds it there under the name that it reads by itself, in place of the file that the
    workspace has under that name. Any other agent has it in its system prompt. `content` is what was read of the file:
    a run's manifest has it, so that the run goes on with what it began with. `text` is what agents get.
    """

    part: ClassVar[str] = "section"

    path: Path
    content: str = attrs.field()
    text: str = attrs.field(init=False)

    @content.default
    def _read(self) -> str:
        problems: list[str] = []
        text = read_text(self.path, problems)
        if text is None:
            raise ValueError(f"'path' must be a text file: {problems[0]}")
        return text

    @content.validator
    def _check(self, attribute: attrs.Attribute[str], content: str) -> None:
        if not content.strip():
            raise ValueError(f"'path' must be a file with instructions; {self.path} is empty")

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "text", self.content)

    def frozen_options(self) -> Mapping[str, Any]:
        """Return the text of the file as it was when the run began."""
        return {"content": self.content}

    def parts(self) -> Sequence[str]:
        """Return the headings of its sections of the highest level that has several."""
        return [section.name for section in chief_sections(self.text)]

    def changed(self, interventions: Sequence[Intervention]) -> Instructions:
        """Return the instructions with these changes. Raises InterventionError."""
        other = copy(self)
        object.__setattr__(other, "text", changed_instructions(self.text, interventions))
        return other

    def way(self, agent: Conventions | None) -> str:
        """Return the name of the file that the agent reads, or `system prompt`."""
        return (agent.instructions if agent else None) or SYSTEM_PROMPT

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the instructions to trials; there is nothing to bring up."""
        yield _InstructionsSource(label, self, self.text)


@attrs.frozen(eq=False)
class _InstructionsSource:
    label: str
    provider: Instructions
    text: str
    servers: Sequence[ServerSpec] = ()

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the text to one attempt at a trial. Raises TrialError."""
        way = self.provider.way(trial.conventions if trial.workspace else None)
        sha256 = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        log = FollowedTexts.of([(GivenText(self.label, "instructions", way, sha256), self.text, "")])
        with ExitStack() as stack:
            if way == SYSTEM_PROMPT or trial.workspace is None:
                yield Provision(instructions=self.text, text_log=log)
                return
            file = Path(way)
            folder = stack.enter_context(placing(trial.workspace, file.parent.as_posix(), [file.name], self.label))
            with writing(self.label):
                (folder / file.name).write_text(self.text, encoding="utf-8", newline="")
            yield Provision(text_log=log)
