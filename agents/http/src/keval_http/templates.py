"""The templates of a request: Jinja2 in a sandbox, over what an agent may be told of a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import orjson
from jinja2 import StrictUndefined, TemplateError, Undefined, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from keval.plugin import suggestion

JSON = "application/json"
NAMES = ("question", "instructions", "history", "messages", "session", "servers", "id", "metadata")
"""What a template can use. Neither the golden answer nor facts are among it."""

EXAMPLE: Mapping[str, Any] = {
    "question": 'What does "as is" mean?\n',
    "instructions": 'Answer "briefly".\n',
    "history": [{"role": "user", "content": 'Say "hello".'}],
    "messages": [{"role": "user", "content": 'What does "as is" mean?\n'}],
    "session": "1",
    "servers": [{"name": "docs", "url": "http://127.0.0.1/mcp"}],
    "id": "q1",
    "metadata": {},
}
"""Values with all that JSON escapes, by which a body is tried before the run."""

Values: TypeAlias = Mapping[str, Any]

_environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)


@attrs.frozen
class Template:
    """A template: the `names` that it uses, and `render`, which raises ValueError where that fails."""

    names: frozenset[str]
    render: Callable[[Values], Any]

    @classmethod
    def of(cls, value: Any) -> Template:
        """Compile a text, or each text in a list or mapping. Raises ValueError: one is no valid template.

        A text within a list or mapping that is nothing but one expression renders to the expression's value, such as a
        list; every other text renders to a text.
        """
        if isinstance(value, Mapping):
            parts = {str(key): cls._inner(each) for key, each in value.items()}
            names = frozenset[str]().union(*(part.names for part in parts.values()))
            return cls(names, lambda values: {key: part.render(values) for key, part in parts.items()})
        if isinstance(value, list | tuple):
            items = [cls._inner(each) for each in value]
            names = frozenset[str]().union(*(item.names for item in items))
            return cls(names, lambda values: [item.render(values) for item in items])
        return cls._text(value) if isinstance(value, str) else cls(frozenset(), lambda values: value)

    @classmethod
    def _inner(cls, value: Any) -> Template:
        if isinstance(value, str) and (expression := _only_expression(value)) is not None:
            found = cls._text(value)
            evaluate = _environment.compile_expression(expression, undefined_to_none=False)
            return cls(found.names, _rendering(lambda values: _defined(evaluate(**values))))
        return cls.of(value)

    @classmethod
    def _text(cls, text: str) -> Template:
        tree = _parsed(text)
        names = frozenset(find_undeclared_variables(tree))
        if unknown := sorted(names - {*NAMES}):
            raise ValueError(f"templates have no {unknown[0]!r}{suggestion(unknown[0], NAMES, 'they have')}")
        template = _environment.from_string(text)
        return cls(names, _rendering(template.render))


def json_problem(text: str) -> str | None:
    """Return why a text is no JSON; `None` if it is."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return str(error)
    return None


def _parsed(text: str) -> nodes.Template:
    try:
        return _environment.parse(text)
    except TemplateError as error:
        raise ValueError(f"the template is not valid: {error}") from error


def _only_expression(text: str) -> str | None:
    """Return the expression that is all of a template."""
    match _parsed(text).body:
        case [nodes.Output(nodes=[inner])] if not isinstance(inner, nodes.TemplateData):
            # `-` and `+` are Jinja's marks for white space.
            return text.strip().removeprefix("{{").removesuffix("}}").strip("-+")
    return None


def _rendering(render: Callable[[Values], Any]) -> Callable[[Values], Any]:
    def rendered(values: Values) -> Any:
        try:
            return render(values)
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the template cannot be rendered: {error}") from error

    return rendered


def _defined(value: Any) -> Any:
    """Return a value; raises UndefinedError if it is none."""
    # A StrictUndefined raises when it is written.
    return str(value) if isinstance(value, Undefined) else value
