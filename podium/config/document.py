"""Parses YAML or JSON text into a tree of plain nodes that remember their lines.

Owns the check for duplicate keys, and the limits on size and depth. Knows no field of any schema.

libyaml parses the text. Upstream's library is a translation of libyaml, so syntax errors have the same wording.

Source: sigs.k8s.io/yaml, apimachinery serializer/json (JSON is distinguished from YAML by its opening brace)
Differs: the caller warns about a file with more than one YAML document; upstream silently reads the first.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml: slower, and with other error messages
    from yaml import SafeLoader  # type: ignore[assignment]

from podium.config.field_errors import ErrorKind, ErrorList, FieldError, show
from podium.lib.yaml_scalars import is_not_finite, resolve_plain

DEPTH_MAX: Final = 100
NODES_MAX: Final = 10_000
TEXT_LENGTH_MAX: Final = 256 * 1024
"""Together, these limits bound the cost: about 2 us per character, at most half a second before scheduling starts."""

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Longer texts are not even read in order to report their length."""

Value = None | bool | int | float | str | list["Node"] | dict[str, "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line (from 1) where it begins; JSON text has no lines."""

    value: Value
    line: int | None = None

    def plain(self) -> Any:
        """Convert the value to ordinary lists, dicts and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Document:
    """The first document of a text, and the number of documents."""

    root: Node
    documents: int = 1


class _UnreadableError(Exception):
    """The text can't be parsed at all."""

    def __init__(self, detail: str, line: int | None = None) -> None:
        super().__init__(detail)
        self.error = FieldError("", ErrorKind.SYNTAX, None, detail, line)


def parse_document(text: str, errors: ErrorList) -> Document | None:
    """Parse a text; returns None, with at least one more error, if it cannot be parsed.

    Duplicate keys are errors, but the tree (with the last value of each key) is still returned.
    """
    try:
        if len(text) > TEXT_LENGTH_MAX:
            raise _UnreadableError(f"more than {TEXT_LENGTH_MAX} characters")
        if text.lstrip().startswith("{") and (root := _parse_json(text, errors)) is not None:
            return Document(root)
        return _parse_yaml(text, errors)
    except _UnreadableError as error:
        errors.add(error.error)
    except RecursionError:
        errors.add(FieldError("", ErrorKind.SYNTAX, None, _TOO_DEEP))
    return None


# --- JSON ---------------------------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """A JSON object whose keys have not been checked for duplicates."""


def _refuse_constant(name: str) -> None:
    raise _UnreadableError(f"json: {name} is not a number")


def _parse_json(text: str, errors: ErrorList) -> Node | None:
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except ValueError:
        return None  # not JSON: YAML's flow style opens with a brace, too
    return _Builder(errors).from_json(tree, "", 0)


# --- YAML ---------------------------------------------------------------------------------------------------------

_PLAIN = "podium:plain"
_TOO_DEEP = f"nested more than {DEPTH_MAX} levels deep"


class _Loader(SafeLoader):
    """Leaves plain scalars unresolved, so that podium's own rule decides their types."""

    yaml_implicit_resolvers: dict[str, Any] = {None: [(_PLAIN, re.compile("", re.DOTALL))]}  # type: ignore[dict-item]  # noqa: RUF012


def _parse_yaml(text: str, errors: ErrorList) -> Document:
    try:
        _check_depth(text)
        composed = list(_compose_all(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # If something is missing at the end, libyaml reports the line after the last.
        line = min(mark.line + 1, len(text.splitlines())) if mark else None
        raise _UnreadableError(f"yaml: {error.problem or error.context}", line) from None
    except yaml.YAMLError as error:
        raise _UnreadableError(f"yaml: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise _UnreadableError(f"yaml: {error}") from None
    if not composed or composed[0] is None:
        return Document(Node(None, 1))
    return Document(_Builder(errors).from_yaml(composed[0], "", 0), len(composed))


def _check_depth(text: str) -> None:
    """Check the depth before the text is composed: the composer is recursive C code that would overflow the stack."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise _UnreadableError(_TOO_DEEP, event.start_mark.line + 1 if event.start_mark else None)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _compose_all(text: str) -> Iterator[yaml.Node | None]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            yield loader.get_node()
    finally:
        loader.dispose()


# --- tree ---------------------------------------------------------------------------------------------------------


class _Builder:
    """Turns either parser's tree into nodes, within the limits."""

    def __init__(self, errors: ErrorList) -> None:
        self._errors = errors
        self._count = 0

    def from_json(self, value: Any, path: str, depth: int) -> Node:
        self._spend(depth, None)
        if isinstance(value, _Pairs):
            fields: dict[str, Node] = {}
            for key, item in value:
                below = child(path, key)
                if key in fields:
                    self._duplicate(below, None, None)
                fields[key] = self.from_json(item, below, depth + 1)
            return Node(fields)
        if isinstance(value, list):
            return Node([self.from_json(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)])
        return Node(value)

    def from_yaml(self, node: yaml.Node, path: str, depth: int) -> Node:
        line = node.start_mark.line + 1
        self._spend(depth, line)
        if isinstance(node, yaml.MappingNode):
            return Node(self._mapping(node, path, depth), line)
        if isinstance(node, yaml.SequenceNode):
            items = [self.from_yaml(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(node.value)]
            return Node(items, line)
        return Node(_scalar(node, line), line)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        merge_fields: dict[str, Node] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _PLAIN and key_node.value == "<<":
                merge_fields |= self._merge_fields(value_node, path, depth, line)
                continue
            key = _key(key_node, line)
            below = child(path, key)
            if key in fields:
                self._duplicate(below, line, fields[key].line)
            value = self.from_yaml(value_node, below, depth + 1)
            fields[key] = Node(value.value, line)
        return merge_fields | fields

    def _merge_fields(self, node: yaml.Node, path: str, depth: int, line: int) -> dict[str, Node]:
        """Return the fields that ``<<`` merges in; of several mappings the first one takes precedence."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        fields: dict[str, Node] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise _UnreadableError("yaml: map merge requires map or sequence of maps as the value", line)
            self._spend(depth, line)
            fields = self._mapping(source, path, depth + 1) | fields
        return fields

    def _duplicate(self, path: str, line: int | None, first_line: int | None) -> None:
        detail = f"already set on line {first_line}" if first_line is not None else "already set"
        self._errors.add(FieldError(path, ErrorKind.DUPLICATE_FIELD, None, detail, line))

    def _spend(self, depth: int, line: int | None) -> None:
        self._count += 1
        if depth > DEPTH_MAX:
            raise _UnreadableError(_TOO_DEEP, line)
        if self._count > NODES_MAX:
            raise _UnreadableError(f"more than {NODES_MAX} values, aliases included", line)


def _key(node: yaml.Node, line: int) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _UnreadableError("yaml: a key must be a scalar", line)
    value = _scalar(node, line)
    if value is None:
        raise _UnreadableError("yaml: a key must not be null", line)
    return value if isinstance(value, str) else show(value)


_TAG = "tag:yaml.org,2002:"


def _scalar(node: yaml.Node, line: int) -> Value:
    text: str = node.value
    if node.tag in (_PLAIN, f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
        if is_not_finite(text):
            raise _UnreadableError(f"yaml: {text} is not a number", line)
        return resolve_plain(text)
    return text


def child(path: str, key: str) -> str:
    """Return the path of a field below another, ``a.b``; an empty key is shown quoted."""
    key = key or '""'
    return f"{path}.{key}" if path else key
