"""Reads untrusted YAML text: into ordinary dicts, lists and scalars, or into nodes that remember their lines.

Owns the limits: the time and memory for a text are proportional to its length, however much its aliases, merge keys and
nesting would expand to. Ignores what the text means.

It reads the parser's events with a stack of its own: PyYAML's composer is recursive C code, so deep nesting would crash
the process, and its constructor is five times slower.

Source: goyaml.v2 decode.go (merge keys, keys that are not text), by way of sigs.k8s.io/yaml.
Differs: of duplicate keys the last one counts; `read_documents` refuses tags other than those of plain values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import yaml

from podium.lib.yaml_scalars import is_not_finite, resolve_plain

try:
    from yaml import CSafeLoader as Parser
except ImportError:  # PyYAML without libyaml: slower, and with other error messages
    from yaml import SafeLoader as Parser  # type: ignore[assignment]

DEPTH_MAX: Final = 100
ALIASED_VALUES_MAX: Final = 1_000_000
"""The number of values to which the aliases of a text may expand."""

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str", f"{_TAG}timestamp"})
_RESOLVED_TAGS: Final = frozenset(_TAG + name for name in ("int", "float", "bool", "null"))
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_TAG}map", f"{_TAG}seq"})
_MERGE: Final = object()
"""Marks the merge key `<<`."""


class YamlError(ValueError):
    """The text cannot be read; `line` counts from 1, and is None if unknown."""

    def __init__(self, detail: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {detail}" if line is not None else detail)
        self.detail = detail
        self.line = line


class YamlLimitError(YamlError):
    """The text is nested too deeply, or has too many values."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line (from 1) where it begins, or where its field's name does; None if that is unknown."""

    value: bool | int | float | str | list[Node] | dict[str, Node] | None
    line: int | None = None

    def plain(self) -> Any:
        """Convert the value to ordinary lists, dicts and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


ReportDuplicate = Callable[[tuple[str | int, ...], int, int | None], None]
"""Takes the fields and indexes that lead to a duplicate field, its line, and the line that has set it before."""


def read_documents(text: bytes | str) -> Iterator[Any]:
    """Yield the value of each document. Aliased values are shared, so they must not be modified in place.

    Raises:
        YamlError: the text is not YAML, is nested too deeply, or its aliases expand to too much.
    """
    return _documents(lambda: _Reader(text))


def read_nodes(text: str, values_max: int, report_duplicate: ReportDuplicate) -> Iterator[Node]:
    """Yield the first document as nodes. Tags that no scalar needs are ignored, and mappings of later ones are empty.

    Args:
        values_max: the number of values that the first document may have, with those that its aliases repeat.
        report_duplicate: called for each duplicate field of the first document.

    Raises:
        YamlError: the text is not YAML, is nested too deeply, or has too many values.
    """
    return _documents(lambda: _NodeReader(text, values_max, report_duplicate))


def _documents(make_reader: Callable[[], _Reader]) -> Iterator[Any]:
    try:
        yield from make_reader().documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(str(error.problem or error.context), mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(" ".join(str(error).split())) from None


class _Open:
    """A collection being read, and the items of the collection around it.

    Attributes:
        height: the number of levels of collections below it.
    """

    __slots__ = ("anchor", "around", "begun_at", "height", "is_mapping", "line")

    def __init__(self, around: list[Any], anchor: str | None, begun_at: int, line: int, *, is_mapping: bool) -> None:
        self.around = around
        self.anchor = anchor
        self.begun_at = begun_at
        self.line = line
        self.is_mapping = is_mapping
        self.height = 0


class _Reader:
    """Builds ordinary values."""

    def __init__(self, text: bytes | str) -> None:
        self._parser = Parser(text)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._count = 0
        self._aliased = 0
        self._is_first_document = True

    def documents(self) -> Iterator[Any]:
        get_event: Callable[[], Any] = self._parser.get_event
        scalar: Callable[[Any], Any] = self._scalar
        items: list[Any] = []
        while (event := get_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._count += 1
                value = scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (value, 1, 0)
                items.append(value)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                items = self._begin(event, items, is_mapping=kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent:
                items = self._end(self._mapping(items, self._open[-1].line))
            elif kind is yaml.SequenceEndEvent:
                items = self._end(self._sequence(items, self._open[-1].line))
            elif kind is yaml.AliasEvent:
                items.append(self._alias(event))
            elif kind is yaml.DocumentEndEvent:
                yield self._as_text(items[0])
                items = []
                self._anchors.clear()
                self._is_first_document = False

    def _begin(self, event: Any, around: list[Any], *, is_mapping: bool) -> list[Any]:
        line = event.start_mark.line + 1
        if len(self._open) >= DEPTH_MAX:
            raise _too_deep(line)
        self._check_tag(event.tag, line)
        self._open.append(_Open(around, event.anchor, self._count, line, is_mapping=is_mapping))
        self._count += 1
        return []

    def _end(self, value: Any) -> list[Any]:
        collection = self._open.pop()
        height = collection.height + 1
        self._raise_height(height)
        if collection.anchor is not None:
            self._anchors[collection.anchor] = (value, self._count - collection.begun_at, height)
        collection.around.append(value)
        return collection.around

    def _alias(self, event: Any) -> Any:
        line = event.start_mark.line + 1
        if any(collection.anchor == event.anchor for collection in self._open):
            raise YamlError(f"anchor {event.anchor!r} contains itself", line)
        if event.anchor not in self._anchors:
            raise YamlError(f"found undefined alias {event.anchor!r}", line)
        value, size, height = self._anchors[event.anchor]
        if len(self._open) + height > DEPTH_MAX:
            raise _too_deep(line)
        self._raise_height(height)
        self._count += size
        self._aliased += size
        if self._aliased > ALIASED_VALUES_MAX:
            raise YamlLimitError(f"its aliases expand to more than {ALIASED_VALUES_MAX} values", line)
        return value

    def _raise_height(self, height: int) -> None:
        if self._open and self._open[-1].height < height:
            self._open[-1].height = height

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _COLLECTION_TAGS:
            raise YamlError(f"the tag {tag} is not read", line)

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None:
            if event.style:
                return text
            return _MERGE if text == "<<" else resolve_plain(text)
        if tag in _RESOLVED_TAGS:
            return resolve_plain(text)
        if tag in _TEXT_TAGS:
            return text
        raise YamlError(f"the tag {tag} is not read", event.start_mark.line + 1)

    def _as_text(self, value: Any) -> Any:
        """Return `<<` as ordinary text, which it is wherever it is not a key."""
        return "<<" if value is _MERGE else value

    def _sequence(self, items: list[Any], line: int) -> Any:
        del line
        return [self._as_text(item) for item in items] if _MERGE in items else items

    def _mapping(self, items: list[Any], line: int) -> Any:
        """Build a mapping from alternating keys and values; its own keys take precedence over merged ones."""
        pairs = iter(items)
        own_items: dict[str, Any] = {}
        sources: list[Any] = []
        for key, value in zip(pairs, pairs, strict=True):
            if type(key) is str:
                own_items[key] = value
            elif key is _MERGE:
                sources += value if isinstance(value, list) else [value]
            else:
                own_items[_key(key, line)] = value
        for name, value in own_items.items():
            if value is _MERGE:
                own_items[name] = "<<"
        for source in sources:
            if not isinstance(source, dict):
                raise _no_merge(line)
            for name, value in source.items():
                own_items.setdefault(name, value)
        return own_items


class _NodeReader(_Reader):
    """Builds nodes."""

    def __init__(self, text: str, values_max: int, report_duplicate: ReportDuplicate) -> None:
        super().__init__(text)
        self._values_max = values_max
        self._report_duplicate = report_duplicate

    def _end(self, value: Any) -> list[Any]:
        self._check_count(value.line)
        return super()._end(value)

    def _alias(self, event: Any) -> Any:
        node = super()._alias(event)
        self._check_count(event.start_mark.line + 1)
        return node

    def _check_count(self, line: int) -> None:
        if self._is_first_document and self._count > self._values_max:
            raise YamlLimitError(f"more than {self._values_max} values, aliases included", line)

    def _check_tag(self, tag: str | None, line: int) -> None:
        del tag, line

    def _scalar(self, event: Any) -> Node:
        line = event.start_mark.line + 1
        value: Any = event.value
        is_plain = event.tag is None and not event.style
        if is_plain and value == "<<":
            value = _MERGE
        elif is_plain or event.tag in _RESOLVED_TAGS:
            if self._is_first_document and is_not_finite(value):
                raise YamlError(f"{value} is not a number", line)
            value = resolve_plain(value)
        return Node(value, line)

    def _as_text(self, value: Node) -> Node:
        return Node("<<", value.line) if value.value is _MERGE else value

    def _sequence(self, items: list[Any], line: int) -> Node:
        return Node([self._as_text(item) for item in items], line)

    def _mapping(self, items: list[Any], line: int) -> Node:
        if not self._is_first_document:
            return Node({}, line)
        pairs = iter(items)
        own: dict[str, Node] = {}
        merge_fields: dict[str, Node] = {}
        for key, value in zip(pairs, pairs, strict=True):
            if key.value is _MERGE:
                merge_fields |= _fields_to_merge(value, key.line)
                continue
            if key.value is None:
                raise YamlError("a key must not be null", key.line)
            name = key.value if isinstance(key.value, str) else _key(key.value, key.line)
            if name in own:
                self._report_duplicate((*self._path(), name), key.line, own[name].line)
            own[name] = Node(self._as_text(value).value, key.line)
        # The names of fields are not values.
        self._count -= len(items) // 2
        return Node(merge_fields | own, line)

    def _path(self) -> tuple[str | int, ...]:
        """Return the fields and indexes that lead to the collection that ends; a merged one has its parent's."""
        path: list[str | int] = []
        for parent, collection in pairwise(self._open):
            if not parent.is_mapping:
                path.append(len(collection.around))
            elif len(collection.around) % 2 and (key := collection.around[-1].value) is not _MERGE:
                path.append(key if isinstance(key, str) else _key(key, collection.line))
        return tuple(path)


def _fields_to_merge(node: Node, line: int) -> dict[str, Node]:
    """Return the fields that `<<` merges in; of several mappings the first one takes precedence."""
    fields: dict[str, Node] = {}
    for source in node.value if isinstance(node.value, list) else [node]:
        if not isinstance(source.value, dict):
            raise _no_merge(line)
        fields = source.value | fields
    return fields


def _too_deep(line: int) -> YamlLimitError:
    return YamlLimitError(f"nested more than {DEPTH_MAX} levels deep", line)


def _no_merge(line: int) -> YamlError:
    return YamlError("map merge requires map or sequence of maps as the value", line)


def _key(key: Any, line: int) -> str:
    if isinstance(key, (dict, list)):
        raise YamlError("a key must be a scalar", line)
    return json.dumps(key)
