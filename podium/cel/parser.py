"""Parse an expression to its syntax tree, with macros expanded.

Differs: upstream limits the depth of each grammar rule. podium limits nested expressions and chains of operators and
members, which differs for expressions more than 100 levels deep.
Source: the grammar of cel-go 0.26.0 and 0.29.2.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.cel.errors import CompileError
from podium.cel.lexer import END, Token, place, tokens
from podium.cel.literals import LiteralError, read_bytes, read_float, read_int, read_string, read_uint
from podium.cel.macros import MacroError, expand
from podium.cel.syntax import Call, Entry, Expr, Ident, ListLiteral, Literal, MapLiteral, MessageLiteral, Select

DEPTH_MAX = 250
LENGTH_MAX = 100_000
_RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    }
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_PRECEDENCE = {"||": 1, "&&": 2, **dict.fromkeys(_RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_LOGICAL = frozenset({"&&", "||"})
_READERS: dict[str, Callable[[str], object]] = {
    "int": read_int,
    "uint": read_uint,
    "float": read_float,
    "string": read_string,
    "bytes": read_bytes,
}


def parse(text: str, *, has_quoted_fields: bool = True) -> Expr:
    """Parse an expression.

    Args:
        has_quoted_fields: backquotes may quote the name of a field.

    Raises: CompileError.
    """
    if len(text) > LENGTH_MAX:
        raise CompileError(f"the expression has {len(text)} characters, more than the limit of {LENGTH_MAX}")
    parser = _Parser(text, has_quoted_fields=has_quoted_fields)
    tree = parser.expression()
    parser.expect(END)
    return tree


class _Parser:
    def __init__(self, text: str, *, has_quoted_fields: bool) -> None:
        self._text = text
        self._has_quoted_fields = has_quoted_fields
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0
        self._negative = False

    def expression(self) -> Expr:
        """Parse `a ? b : c` and everything that binds tighter."""
        # Python's own limit of recursion would be reached at other depths, depending on the caller.
        self._enter()
        tree = self._binary(1)
        if self._peek().kind == "?":
            position = self._take().position
            when_true = self._binary(1)
            self.expect(":")
            tree = Call(position, "_?_:_", None, [tree, when_true, self.expression()])
        self._depth -= 1
        return tree

    def expect(self, kind: str) -> Token:
        """Consume the next token. Raises: CompileError: the token has another kind."""
        token = self._take()
        if token.kind != kind:
            raise self._fail(token.position, f"expected {kind}, found {token.text or END}")
        return token

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CompileError(f"expression recursion limit exceeded: {DEPTH_MAX}")

    def _fail(self, position: int, problem: str) -> CompileError:
        return CompileError(f"{place(self._text, position)}: Syntax error: {problem}")

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += token.kind != END
        return token

    def _accept(self, kind: str) -> bool:
        if self._peek().kind != kind:
            return False
        self._next += 1
        return True

    def _binary(self, lowest: int) -> Expr:
        """Parse operators that bind at least as tightly as `lowest`. All are left-associative."""
        tree = self._operand()
        chained = 0
        depth: int | None = None
        while True:
            token = self._peek()
            precedence = _PRECEDENCE.get(token.kind, 0)
            if precedence < lowest or not precedence:
                return tree
            self._next += 1
            rhs = self._binary(precedence + 1)
            if token.kind in _LOGICAL:
                tree = self._logical(token, tree, rhs, continued=chained == precedence)
                chained, depth = precedence, None
                continue
            # Counted once per chain: a walk for each operator would take a square of their number.
            chained, depth = 0, _depth_of(tree) if depth is None else depth + 1
            if depth >= DEPTH_MAX:
                raise self._fail(token.position, f"max recursion depth exceeded: {DEPTH_MAX}")
            name = "@in" if token.kind == "in" else f"_{token.kind}_"
            tree = Call(token.position, name, None, [tree, rhs])

    def _logical(self, token: Token, lhs: Expr, rhs: Expr, *, continued: bool) -> Expr:
        """Make `a && b && c` one call, so that long chains do not nest."""
        if continued and isinstance(lhs, Call):
            lhs.arguments.append(rhs)
            return lhs
        return Call(token.position, f"_{token.kind}_", None, [lhs, rhs])

    def _operand(self) -> Expr:
        """Parse an expression without operators. Parentheses are parsed here, to save levels of Python's stack."""
        token = self._peek()
        if token.kind in ("!", "-"):
            return self._sign(token)
        if self._accept("("):
            tree = self.expression()
            self.expect(")")
        else:
            tree = self._primary()
        length = 0
        # In a loop, not by recursion, since chains are longer than expressions nest.
        while (token := self._peek()).kind in (".", "["):
            length += 1
            if length >= DEPTH_MAX:
                raise self._fail(token.position, f"max recursion depth exceeded: {DEPTH_MAX}")
            self._next += 1
            tree = self._index(tree, token) if token.kind == "[" else self._selection(tree, token)
        return tree

    def _sign(self, sign: Token) -> Expr:
        """Parse `!!a` and `--1`: pairs of signs cancel out, and the last minus belongs to the number."""
        count = 0
        while self._accept(sign.kind):
            count += 1
        if self._peek().kind in ("!", "-"):
            raise self._fail(self._peek().position, f"unexpected {self._peek().text}")
        if sign.kind == "-" and self._peek().kind in ("int", "float"):
            count -= 1
            # Read with its sign: the smallest int has no positive counterpart.
            self._negative = True
        tree = self._operand()
        return Call(sign.position, f"{sign.kind}_", None, [tree]) if count % 2 else tree

    def _index(self, operand: Expr, bracket: Token) -> Expr:
        name = "_[?_]" if self._accept("?") else "_[_]"
        key = self.expression()
        self.expect("]")
        return Call(bracket.position, name, None, [operand, key])

    def _selection(self, operand: Expr, dot: Token) -> Expr:
        if self._accept("?"):
            field = self._field()
            return Call(dot.position, "_?._", None, [operand, Literal(field.position, field.text)])
        field = self._field()
        if field.kind == "name" and self._peek().kind == "(":
            return self._call(self._take().position, field.text, operand)
        return Select(dot.position, operand, field.text)

    def _field(self) -> Token:
        if self._has_quoted_fields and self._peek().kind == "quoted":
            token = self._take()
            return token._replace(text=token.text[1:-1])
        return self.expect("name")

    def _call(self, position: int, name: str, target: Expr | None) -> Expr:
        call = Call(position, name, target, self._expressions(")"))
        try:
            # At once, so that a macro's arguments may hold macros that are expanded already.
            return expand(call)
        except MacroError as error:
            raise self._fail(error.position, str(error)) from error

    def _expressions(self, closing: str) -> list[Expr]:
        expressions: list[Expr] = []
        if self._accept(closing):
            return expressions
        while True:
            expressions.append(self.expression())
            if not self._accept(","):
                self.expect(closing)
                return expressions

    def _primary(self) -> Expr:
        token = self._take()
        kind = token.kind
        if kind in _READERS:
            return self._literal(token)
        if kind in _CONSTANTS:
            return Literal(token.position, _CONSTANTS[kind])
        if kind == "name" or (kind == "." and self._peek().kind == "name"):
            return self._name(token)
        if kind == "[":
            return self._list(token)
        if kind == "{":
            return self._map(token)
        raise self._fail(token.position, f"expected an expression, found {token.text or END}")

    def _literal(self, token: Token) -> Literal:
        sign, self._negative = "-" if self._negative else "", False
        try:
            return Literal(token.position - len(sign), _READERS[token.kind](sign + token.text))
        except LiteralError as error:
            raise self._fail(token.position, str(error)) from error

    def _name(self, token: Token) -> Expr:
        dot = "." if token.kind == "." else ""
        name = self._take() if dot else token
        # A message is parsed to the end, so that the error is about messages, not about a brace.
        if self._is_message():
            return self._message(token, name)
        if name.text in _RESERVED:
            raise self._fail(name.position, f"reserved identifier: {name.text}")
        if self._peek().kind == "(":
            return self._call(self._take().position, dot + name.text, None)
        return Ident(token.position, dot + name.text)

    def _is_message(self) -> bool:
        """Tell whether a name is the start of a message literal, such as `a.b.c{`."""
        ahead = self._next
        while self._tokens[ahead].kind == "." and self._tokens[ahead + 1].kind == "name":
            ahead += 2
        return self._tokens[ahead].kind == "{"

    def _message(self, token: Token, name: Token) -> Expr:
        parts = [name.text]
        while self._accept("."):
            parts.append(self._take().text)
        self.expect("{")
        while not self._accept("}"):
            self._accept("?")
            self.expect("name")
            self.expect(":")
            self.expression()
            if not self._accept(","):
                self.expect("}")
                break
        return MessageLiteral(token.position, ".".join(parts))

    def _list(self, bracket: Token) -> Expr:
        elements: list[Expr] = []
        optional = set()
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                self.expect("]")
                break
        return ListLiteral(bracket.position, elements, frozenset(optional))

    def _map(self, brace: Token) -> Expr:
        entries: list[Entry] = []
        while not self._accept("}"):
            optional = self._accept("?")
            key = self.expression()
            self.expect(":")
            entries.append(Entry(key, self.expression(), optional))
            if not self._accept(","):
                self.expect("}")
                break
        return MapLiteral(brace.position, entries)


def _depth_of(tree: Expr) -> int:
    """Count the operators and members that nest to the left."""
    depth = 0
    node: Expr | None = tree
    while isinstance(node, (Call, Select)):
        depth += 1
        node = _leftmost(node)
    return depth


def _leftmost(node: Call | Select) -> Expr | None:
    if isinstance(node, Select):
        return node.operand
    return node.target or (node.arguments[0] if node.arguments else None)
