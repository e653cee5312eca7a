"""The middleware that gives the simulated coding model its script."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import attrs

from keval.plugin import ConfigError, ModelRequest, ModelResponse, Next
from keval_simulator.coder.script import Script

SCRIPT_HEADER = "x-keval-script"
"""The header of a request that names the script's file, in percent-encoding."""
_MODEL = "coder"


@attrs.frozen
class CoderScript:
    """Names the script in every request to the model `coder`, which runs in another process."""

    path: Path

    def __attrs_post_init__(self) -> None:
        try:
            Script.read(self.path)
        except ConfigError as error:
            raise ValueError("; ".join(map(str, error.problems))) from error

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        """Send a request on."""
        if request.model == _MODEL:
            named = {**request.headers, SCRIPT_HEADER: quote(str(self.path.absolute()))}
            request = attrs.evolve(request, headers=named)
        return await next(request)
