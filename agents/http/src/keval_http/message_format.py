"""How messages are written for an endpoint, and where its replies have what keval reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
import orjson

from keval_http.templates import Template, Values, json_problem

JSON = "application/json"


@attrs.frozen
class MessageFormat:
    """The URL and the body of a request, without one for GET; and JMESPaths for a reply, or each of its `events`.

    Without `answer`, the whole of a reply is the answer. `usage` has a path for each kind of token.
    """

    method: str
    url: Template
    body: Template | None
    content_type: str
    events: Literal["sse"] | None
    answer: str | None
    session: str | None
    usage: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """What of a trial the templates use."""
        return self.url.names | (self.body.names if self.body else frozenset())

    def render(self, values: Values) -> tuple[str, bytes | None]:
        """Return the URL and the body of a request. Raises ValueError: a template fails, or the body is no JSON."""
        url = str(self.url.render(values))
        if self.body is None:
            return url, None
        body = self.body.render(values)
        if not isinstance(body, str):
            return url, orjson.dumps(body)
        if self.content_type == JSON and (problem := json_problem(body)):
            raise ValueError(f"the body is no JSON: {problem}; it is {body!r:.200}")
        return url, body.encode()
