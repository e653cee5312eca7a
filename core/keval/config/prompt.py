"""A condition's system prompt: a sandboxed Jinja2 template over the sample."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from keval.records import Sample

__all__ = ["Prompt", "compile_prompt"]


@attrs.frozen
class Prompt:
    """A system prompt, ready to be rendered for a sample.

    It can use the sample's `id`, `question`, `history`, `facts` and `metadata`, but neither the golden answer nor
    withheld facts.
    """

    text: str
    _render: Callable[[Sample], str] | None = attrs.field(default=None, eq=False, repr=False)

    def render(self, sample: Sample) -> str:
        """Return the prompt for this sample. Raises ValueError: an undefined name, or a template that fails."""
        return self._render(sample) if self._render else self.text

    @property
    def varies(self) -> bool:
        """Whether it is a template, and may differ between samples."""
        return self._render is not None


def compile_prompt(text: str) -> Prompt:
    """Compile a template. Raises ValueError when its syntax is wrong."""
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return Prompt(text)
    # Jinja2 is imported only for a prompt that is a template.
    from jinja2 import TemplateError

    from keval.config.template import Bounded

    environment = Bounded()
    try:
        template = environment.from_string(text)
    except (TemplateError, RecursionError, SyntaxError, MemoryError) as error:
        raise ValueError(f"the template is not valid: {error}") from error

    def render(sample: Sample) -> str:
        environment.begin()
        try:
            return template.render(
                id=sample.id,
                question=sample.question,
                history=sample.history,
                facts={name: fact for name, fact in sample.facts.items() if name not in sample.withheld},
                metadata=sample.metadata,
            )
        except (
            TemplateError,
            ArithmeticError,
            LookupError,
            RecursionError,
            MemoryError,
            TypeError,
            ValueError,
        ) as error:
            raise ValueError(f"for sample {sample.id!r}: {error}") from error

    return Prompt(text, render)
