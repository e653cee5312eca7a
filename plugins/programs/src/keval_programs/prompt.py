"""A condition's system prompt: a sandboxed Jinja2 template over the sample, in bounds of time and size."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateRuntimeError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from keval.records.trial import Sample

_WORK = 5_000_000
"""Characters and items that one rendering may make; an iteration costs fifty."""
_ITERATION = 50
_SECONDS = 5.0
_LARGEST = 1_000_000
"""A length, a width or a count that something is asked for."""
_BITS = 20_000
_FAILURES = (TemplateError, ArithmeticError, LookupError, RecursionError, MemoryError, TypeError, ValueError)
"""What a template raises while it is rendered."""
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{6}|\*)|\{[^{}]*\d{6}")
_GROWING = frozenset(
    {
        *("batch", "center", "format", "indent", "join", "pprint", "replace", "round", "slice", "sum", "tojson"),
        *("truncate", "wordwrap", "expandtabs", "format_map", "ljust", "rjust", "to_bytes", "zfill"),
    }
)
"""Filters and methods whose result may be larger than what they are given."""


class _Generator(CodeGenerator):
    """Lets the environment join what `~` joins."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class Bounded(ImmutableSandboxedEnvironment):
    """Counts what a rendering makes, and ends it with a TemplateRuntimeError beyond its bounds."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    code_generator_class = _Generator

    def __init__(self) -> None:
        # `finalize` is called with each value that is printed.
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, finalize=self._spent)
        # It makes as much text as it is asked for, uncounted.
        self.globals.pop("lipsum")
        for name, filter_ in self.filters.items():
            self.filters[name] = self._counted(name, filter_)
        self.begin()

    def begin(self) -> None:
        """Begin a rendering."""
        self._left = _WORK
        self._until = time.monotonic() + _SECONDS

    def joined(self, parts: Iterable[Any]) -> str:
        """Join texts, as `~` does."""
        return "".join([self._spent(str(part)) for part in parts])

    def tick(self, literal: int) -> None:
        """Count an iteration, or the call of a macro, with as many characters of text."""
        self._spend(_ITERATION + literal)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Calculate, if the result is not too large."""
        for one, other in ((left, right), (right, left)):
            if operator == "*" and isinstance(one, Sized) and isinstance(other, int):
                _check(len(one) * max(other, 0) <= _LARGEST, "*")
        if isinstance(left, int) and isinstance(right, int):
            # Of what the result has at most; checked first, as one operation on long integers cannot be interrupted.
            bits = left.bit_length() * (max(right, 1) if operator == "**" else 1) + right.bit_length()
            _check(operator not in {"*", "**"} or bits <= _BITS, operator)
        if operator == "%" and isinstance(left, str | bytes):
            _check(not _WIDTH.search(str(left)), operator)
        if operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            _check(len(left) + len(right) <= _LARGEST, operator)
        return self._spent(super().call_binop(context, operator, left, right))

    def call(self, context: Any, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        name = getattr(called, "__name__", "")
        if name in _GROWING:
            # Jinja2's sandbox wraps `str.format`; the text that is formatted is the `__self__` of what is wrapped.
            _check_growth(name, (getattr(getattr(called, "__wrapped__", called), "__self__", None), *args), kwargs)
        return self._spent(super().call(context, called, *args, **kwargs))

    # Private, as Jinja2 has no public place between parsing and compiling.
    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Parse, and count in every body that may run more than once."""
        tree = super()._parse(source, name, filename)
        for repeated in tree.find_all((nodes.For, nodes.Macro, nodes.CallBlock)):
            assert isinstance(repeated, nodes.For | nodes.Macro | nodes.CallBlock)  # noqa: S101 - for mypy
            literal = sum(len(text.data) for text in repeated.find_all(nodes.TemplateData))
            tick = nodes.Call(nodes.EnvironmentAttribute("tick"), [nodes.Const(literal)], [], None, None)
            repeated.body.insert(0, nodes.ExprStmt(tick).set_lineno(repeated.lineno))
        # The nodes that were put in have none, and are compiled by it.
        tree.set_environment(self)
        return tree

    def _counted(self, name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:

        @wraps(filter_)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if name in _GROWING:
                _check_growth(name, args, kwargs)
            return self._spent(filter_(*args, **kwargs))

        return counted

    def _spent(self, value: Any) -> Any:
        self._spend(len(value) if isinstance(value, Sized) else 1)
        return value

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0 or time.monotonic() > self._until:
            raise TemplateRuntimeError(
                f"it makes more than {_WORK} characters and items, or takes more than {_SECONDS:g} s; make it smaller"
            )


def _check_growth(name: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise if a filter or method would make something too large of what it is given."""
    given = [*args, *kwargs.values()]
    texts = [len(each) for each in given if isinstance(each, Sized) and not isinstance(each, Mapping)]
    for each in given:
        _check(not isinstance(each, int | float) or abs(each) <= _LARGEST, name)
        _check(not isinstance(each, str) or name not in {"format", "format_map"} or not _WIDTH.search(each), name)
    if name in {"join", "replace", "indent"}:
        product = 1
        for length in texts:
            product *= length + 1
        _check(product <= _LARGEST * 10, name)
    if name == "sum":
        _check(not any(isinstance(each, list | tuple) for each in given[2:]), name)  # after the environment


def _check(small: bool, name: str) -> None:
    if not small:
        raise TemplateRuntimeError(f"{name!r} would make more than {_LARGEST} characters or items; make it smaller")


def compile_template(text: str) -> Callable[[Sample], str]:
    """Compile a system prompt that is a template. Raises ValueError when its syntax is wrong.

    It can use the sample's `id`, `question`, `history`, `facts` and `metadata`, but neither the golden answer nor
    withheld facts. What is returned renders it, and raises ValueError: an undefined name, or a template that fails.
    """
    environment = Bounded()
    try:
        template = environment.from_string(text)
    except (TemplateError, RecursionError, SyntaxError, MemoryError) as error:
        raise ValueError(f"the template is not valid: {error}") from error

    def render(sample: Sample) -> str:
        environment.begin()
        facts = {name: fact for name, fact in sample.facts.items() if name not in sample.withheld}
        try:
            return template.render(
                id=sample.id, question=sample.question, history=sample.history, facts=facts, metadata=sample.metadata
            )
        except _FAILURES as error:
            raise ValueError(f"for sample {sample.id!r}: {error}") from error

    return render
