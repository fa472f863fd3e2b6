"""Parses YAML or JSON text into a tree of plain nodes, which remember their lines if the text is YAML.

Owns the check for duplicate keys, and the limits on size and depth. Knows no field of any schema.

libyaml parses the text (`lib.yaml_reader`). Upstream's library is a translation of libyaml, so syntax errors have the
same wording.

Source: sigs.k8s.io/yaml, apimachinery serializer/json (JSON is distinguished from YAML by its opening brace)
Differs: the caller warns about a file with more than one YAML document; upstream silently reads the first.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from podium.config.field_errors import ErrorKind, ErrorList, FieldError
from podium.lib.yaml_reader import DEPTH_MAX, Node, YamlError, YamlLimitError, read_nodes

NODES_MAX: Final = 10_000
TEXT_LENGTH_MAX: Final = 256 * 1024
"""Together, these limits bound the cost: about 2 us per character, at most half a second before scheduling starts."""

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Longer texts are not even read in order to report their length."""


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
    """Parse a text, and return None, with at least one more error, if it cannot be parsed.

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


_TOO_DEEP = f"nested more than {DEPTH_MAX} levels deep"

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
    return _Builder(errors).build(tree, "", 0)


# --- YAML ---------------------------------------------------------------------------------------------------------


def _parse_yaml(text: str, errors: ErrorList) -> Document:
    def report_duplicate(steps: tuple[str | int, ...], line: int, first_line: int | None) -> None:
        path = ""
        for step in steps:
            path = child(path, step) if isinstance(step, str) else f"{path}[{step}]"
        _add_duplicate(errors, path, line, first_line)

    try:
        documents = list(read_nodes(text, NODES_MAX, report_duplicate))
    except YamlLimitError as error:
        raise _UnreadableError(error.detail, error.line) from None
    except YamlError as error:
        # If something is missing at the end, libyaml reports the line after the last.
        line = None if error.line is None else min(error.line, len(text.splitlines()))
        raise _UnreadableError(f"yaml: {error.detail}", line) from None
    return Document(documents[0], len(documents)) if documents else Document(Node(None, 1))


# --- JSON tree ----------------------------------------------------------------------------------------------------


class _Builder:
    """Turns a tree of JSON into nodes, within the limits."""

    def __init__(self, errors: ErrorList) -> None:
        self._errors = errors
        self._count = 0

    def build(self, value: Any, path: str, depth: int) -> Node:
        self._count += 1
        if depth > DEPTH_MAX:
            raise _UnreadableError(_TOO_DEEP)
        if self._count > NODES_MAX:
            raise _UnreadableError(f"more than {NODES_MAX} values, aliases included")
        if isinstance(value, _Pairs):
            fields: dict[str, Node] = {}
            for key, item in value:
                below = child(path, key)
                if key in fields:
                    _add_duplicate(self._errors, below, None, None)
                fields[key] = self.build(item, below, depth + 1)
            return Node(fields)
        if isinstance(value, list):
            return Node([self.build(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)])
        return Node(value)


def _add_duplicate(errors: ErrorList, path: str, line: int | None, first_line: int | None) -> None:
    detail = f"already set on line {first_line}" if first_line is not None else "already set"
    errors.add(FieldError(path, ErrorKind.DUPLICATE_FIELD, None, detail, line))


def child(path: str, key: str) -> str:
    """Return the path of a field below another, ``a.b``; an empty key is shown quoted."""
    key = key or '""'
    return f"{path}.{key}" if path else key
