"""The context `instructions`: an instruction file such as AGENTS.md, as a file in the workspace or in the prompt."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import ClassVar

import attrs

from keval.plugin import ContextSource, Conventions, GivenText, Intervention, Provision, ServerSpec, TrialInfo
from keval_mcp import FollowedTexts
from keval_skills.changes import changed_instructions
from keval_skills.placing import placing, writing
from keval_skills.sections import chief_sections
from keval_skills.skill_folder import read_text
from keval_skills.tree import place

SYSTEM_PROMPT = "system prompt"


@attrs.frozen
class Instructions:
    """Gives agents the text of an instruction file.

    An agent that works in a folder finds it there under the name that it reads by itself, in place of the file that the
    workspace has under that name. Any other agent has it in its system prompt. `text` is what agents get.
    """

    part: ClassVar[str] = "section"

    path: Path
    text: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        problems: list[str] = []
        text = read_text(self.path, problems)
        if text is None or not text.strip():
            told = problems[0] if problems else f"{place(self.path)}: it is empty"
            raise ValueError(f"'path' must lead to a file with instructions: {told}")
        object.__setattr__(self, "text", text)

    @property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    def parts(self) -> Sequence[str]:
        """Return the headings of its sections of the highest level that has several."""
        return [section.name for section in chief_sections(self.text)]

    def texts(self) -> Mapping[str, str]:
        """Return the text, as `instructions`."""
        return {"instructions": self.text}

    def changed(self, interventions: Sequence[Intervention]) -> Instructions:
        """Return the instructions with these changes. Raises InterventionError."""
        # `attrs.evolve` would construct it anew, and read the file without the changes.
        other = copy(self)
        object.__setattr__(other, "text", changed_instructions(self.text, interventions))
        return other

    def way(self, agent: Conventions | None) -> str:
        """Return the name of the file that the agent reads, or `system prompt`."""
        return (agent.instructions if agent else None) or SYSTEM_PROMPT

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the instructions to trials; there is nothing to bring up."""
        yield _InstructionsSource(label, self)


@attrs.frozen(eq=False)
class _InstructionsSource:
    label: str
    provider: Instructions
    servers: Sequence[ServerSpec] = ()

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the text to one attempt at a trial. Raises TrialError."""
        way = self.provider.way(trial.conventions if trial.workspace else None)
        given = GivenText(self.label, "instructions", way, self.provider.digest)
        log = FollowedTexts.of([(given, self.provider.text, "")])
        with ExitStack() as stack:
            if way == SYSTEM_PROMPT or trial.workspace is None:
                yield Provision(instructions=self.provider.text, text_log=log)
                return
            file = Path(way)
            folder = stack.enter_context(placing(trial.workspace, file.parent.as_posix(), [file.name], self.label))
            with writing(self.label):
                folder.write(file.name, self.provider.text.encode())
            yield Provision(text_log=log)
