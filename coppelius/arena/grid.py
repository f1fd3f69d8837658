"""A grid entry is an integer or an expression in the launch's names.

Grammar: integers, names, `+ - * //`, parentheses and `ceil_div(a, b)`.  A name is a scalar parameter
(`count`) or a dimension of a pointer parameter's shape (`rows`).  Nothing else is accepted, so that an
expression read from a manifest can be evaluated without running anything.

A grid of 0 blocks launches nothing.  Left out: comparisons, and anything that is not a whole number.
"""

import re
from collections.abc import Mapping

from coppelius.isa.refusal import Refusal

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*(),]))")

_GRAMMAR = "use names, integers, + - * //, parentheses and ceil_div(a, b)"


def _tokens(expression: str) -> list[str]:
    tokens, position = [], 0
    text = expression.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].strip()
            raise Refusal(f"grid {expression!r}: cannot read {rest!r}; {_GRAMMAR}")
        tokens.append(match.group(match.lastindex or 0))
        position = match.end()
    return tokens


def names(entry: int | str) -> frozenset[str]:
    """The names that an entry needs a value for."""
    if isinstance(entry, int):
        return frozenset()
    return frozenset(t for t in _tokens(entry) if t[0].isalpha() or t[0] == "_") - {"ceil_div"}


def evaluate(entry: int | str, values: Mapping[str, int]) -> int:
    """The number of blocks, given a value for each name; refuses a missing name or a negative result."""
    result = entry if isinstance(entry, int) else _Reader(entry, values).whole()
    if result < 0:
        raise Refusal(f"grid {entry!r}: {result} blocks; a grid entry is not negative")
    return result


class _Reader:
    """Recursive descent over one expression, evaluating as it reads."""

    def __init__(self, expression: str, values: Mapping[str, int]) -> None:
        self.expression, self.values = expression, values
        self.tokens, self.position = _tokens(expression), 0

    def whole(self) -> int:
        result = self.sum()
        if self.position < len(self.tokens):
            raise self.refusal(f"unexpected {self.tokens[self.position]!r}")
        return result

    def refusal(self, what: str) -> Refusal:
        return Refusal(f"grid {self.expression!r}: {what}")

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise self.refusal("ends too early")
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        found = self.take()
        if found != token:
            raise self.refusal(f"expected {token!r}, found {found!r}")

    def sum(self) -> int:
        result = self.product()
        while self.peek() in ("+", "-"):
            result += self.product() if self.take() == "+" else -self.product()
        return result

    def product(self) -> int:
        result = self.atom()
        while self.peek() in ("*", "//"):
            result = result * self.atom() if self.take() == "*" else self.divide(result, self.atom())
        return result

    def atom(self) -> int:
        token = self.take()
        if token.isdecimal():
            return int(token)
        if token == "(":
            result = self.sum()
            self.expect(")")
            return result
        if token == "ceil_div":
            self.expect("(")
            dividend = self.sum()
            self.expect(",")
            divisor = self.sum()
            self.expect(")")
            return -self.divide(-dividend, divisor)
        if token[0].isalpha() or token[0] == "_":
            if token not in self.values:
                raise self.refusal(f"no value for {token}; known: {', '.join(sorted(self.values)) or 'none'}")
            return self.values[token]
        raise self.refusal(f"unexpected {token!r}")

    def divide(self, dividend: int, divisor: int) -> int:
        if divisor <= 0:
            raise self.refusal(f"division by {divisor}")
        return dividend // divisor
