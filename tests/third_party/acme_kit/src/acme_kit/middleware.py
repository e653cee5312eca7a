"""Middleware that writes down who asks a model what."""

from pathlib import Path

import attrs

from keval.plugin import ModelRequest, ModelResponse, Next


@attrs.frozen
class Count:
    """Appends a line to `journal` for every model request."""

    journal: str

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        self._note(f"{request.asker.role} {request.asker.label} {request.asker.trial} {request.wire}\n")
        return await next(request)

    def _note(self, line: str) -> None:
        with Path(self.journal).open("a", encoding="utf-8") as journal:
            journal.write(line)
