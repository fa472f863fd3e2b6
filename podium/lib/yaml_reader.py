"""Reads untrusted YAML text into ordinary dicts, lists and scalars.

Owns the limits: the time and memory for a text are proportional to its length, however much its aliases, merge keys and
nesting would expand to. Ignores what the text means.

It reads the parser's events with a stack of its own: PyYAML's composer is recursive C code, so deep nesting would crash
the process, and its constructor is five times slower.

Source: goyaml.v2 decode.go (merge keys, keys that are not text), by way of sigs.k8s.io/yaml.
Differs: of duplicate keys the last one counts; tags other than those of plain values are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from podium.lib.yaml_scalars import resolve_plain

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


def read_documents(text: bytes | str) -> Iterator[Any]:
    """Yield the value of each document. Aliased values are shared, so they must not be modified in place.

    Raises:
        YamlError: the text is not YAML, is nested too deeply, or its aliases expand to too much.
    """
    try:
        yield from _Reader(text).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(str(error.problem or error.context), mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from None


class _Open:
    """A collection being read: the collection around it, and the value of its anchor."""

    __slots__ = ("anchor", "around", "begun_at", "line")

    def __init__(self, around: list[Any], anchor: str | None, begun_at: int, line: int) -> None:
        self.around = around
        self.anchor = anchor
        self.begun_at = begun_at
        self.line = line


class _Reader:
    def __init__(self, text: bytes | str) -> None:
        self._parser = Parser(text)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._aliased = 0

    def documents(self) -> Iterator[Any]:
        get_event: Callable[[], Any] = self._parser.get_event
        items: list[Any] = []
        while (event := get_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._count += 1
                value = _scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (value, 1)
                items.append(value)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                items = self._begin(event, items)
            elif kind is yaml.MappingEndEvent:
                items = self._end(_mapping(items, self._open[-1].line))
            elif kind is yaml.SequenceEndEvent:
                items = self._end([_as_text(item) for item in items] if _MERGE in items else items)
            elif kind is yaml.AliasEvent:
                items.append(self._alias(event))
            elif kind is yaml.DocumentEndEvent:
                yield _as_text(items[0])
                items = []
                self._anchors.clear()

    def _begin(self, event: Any, around: list[Any]) -> list[Any]:
        line = event.start_mark.line + 1
        if len(self._open) >= DEPTH_MAX:
            raise YamlError(f"nested more than {DEPTH_MAX} levels deep", line)
        if event.tag not in _COLLECTION_TAGS:
            raise YamlError(f"the tag {event.tag} is not read", line)
        self._open.append(_Open(around, event.anchor, self._count, line))
        self._count += 1
        return []

    def _end(self, value: Any) -> list[Any]:
        collection = self._open.pop()
        if collection.anchor is not None:
            self._anchors[collection.anchor] = (value, self._count - collection.begun_at)
        collection.around.append(value)
        return collection.around

    def _alias(self, event: Any) -> Any:
        line = event.start_mark.line + 1
        if any(collection.anchor == event.anchor for collection in self._open):
            raise YamlError(f"anchor {event.anchor!r} contains itself", line)
        if event.anchor not in self._anchors:
            raise YamlError(f"found undefined alias {event.anchor!r}", line)
        value, size = self._anchors[event.anchor]
        self._count += size
        self._aliased += size
        if self._aliased > ALIASED_VALUES_MAX:
            raise YamlError(f"its aliases expand to more than {ALIASED_VALUES_MAX} values", line)
        return value


def _scalar(event: Any) -> Any:
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


def _as_text(value: Any) -> Any:
    """Return `<<` as ordinary text, which it is wherever it is not a key."""
    return "<<" if value is _MERGE else value


def _mapping(items: list[Any], line: int) -> dict[str, Any]:
    """Builds a mapping from alternating keys and values; the mapping's own keys take precedence over merged ones."""
    pairs = iter(items)
    own: dict[str, Any] = {}
    sources: list[Any] = []
    for key, value in zip(pairs, pairs, strict=True):
        if type(key) is str:
            own[key] = value
        elif key is _MERGE:
            sources += value if isinstance(value, list) else [value]
        else:
            own[_key(key, line)] = value
    for name, value in own.items():
        if value is _MERGE:
            own[name] = "<<"
    for source in sources:
        if not isinstance(source, dict):
            raise YamlError("map merge requires map or sequence of maps as the value", line)
        for name, value in source.items():
            own.setdefault(name, value)
    return own


def _key(key: Any, line: int) -> str:
    if isinstance(key, (dict, list)):
        raise YamlError("a key must be a scalar", line)
    return json.dumps(key)
