"""Reads the objects in the text of one file: YAML documents, consecutive JSON documents, and lists within them.

Owns finding the objects and naming the place of each. Scalars mean what they mean to kubectl: there are no dates and no
sexagesimals. `engine.object_files` decides which files are read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from podium.config import API_VERSION, KIND
from podium.engine.errors import KubeconfigGivenError, ManifestError, NoObjectError
from podium.engine.manifests import Manifest
from podium.engine.versions import current_form
from podium.lib.yaml_reader import YamlError, read_documents

_JSON_BEGINS = re.compile(rb"\s*[{\[]")
_MISTAKEN: Final = {
    ("v1", "Config"): (KubeconfigGivenError, "a kubeconfig", "--kubeconfig"),
    (API_VERSION, KIND): (NoObjectError, "a scheduler's configuration", "--config"),
}
_LISTS_MAX: Final = 5
"""The maximum depth of nested lists."""
_ENCODINGS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SPACE: Final = re.compile(r"\s*")

OnBroken: TypeAlias = Callable[[ManifestError], None]


@dataclass(frozen=True, slots=True)
class LocatedManifest:
    """An object, and its place in the input, such as `cluster.yaml: document 2: items[3]`."""

    manifest: Manifest
    location: str


def read_objects(
    text: bytes, name: str, on_broken: OnBroken | None = None, on_no_object: OnBroken | None = None
) -> Iterator[LocatedManifest]:
    """Yield the objects of a file, including the items of lists. Empty documents are skipped.

    Args:
        name: what to call the file.
        on_broken: receives the errors of documents that are no objects, which are left out; by default they are raised.
        on_no_object: receives documents that do not look like objects, instead of `on_broken`.

    Raises:
        ManifestError: the text is neither YAML nor JSON, or something in it is not a Kubernetes object.
    """
    for number, document in enumerate(_documents(text, name), start=1):
        if document is not None:
            # A broken document must not hide the others of a file.
            try:
                yield from unpack_lists(document, f"{name}: document {number}", on_broken=on_broken)
            except ManifestError as error:
                receiver = on_no_object or on_broken if isinstance(error, NoObjectError) else on_broken
                if receiver is None:
                    raise
                receiver(error)


def _documents(text: bytes, name: str) -> list[Any]:
    try:
        text = _without_mark(text)
        # JSON is tried first: msgspec reads it far faster than the reader of YAML, of which it is a part.
        if _JSON_BEGINS.match(text):
            try:
                return [msgspec.json.decode(text)]
            except msgspec.DecodeError:
                if (documents := _json_documents(text, name)) is not None:
                    return documents
        return list(read_documents(text))
    except (YamlError, UnicodeDecodeError) as error:
        raise ManifestError(f"{name}: {error}") from None
    except RecursionError:
        raise ManifestError(f"{name}: nested too deep") from None


def _without_mark(text: bytes) -> bytes:
    """Return the text in UTF-8 without a byte order mark, which shells of Windows put before it."""
    for mark, encoding in _ENCODINGS:
        if text.startswith(mark):
            return text.removeprefix(mark).decode(encoding).encode()
    return text


def _json_documents(text: bytes, name: str) -> list[Any] | None:
    """Decode consecutive JSON documents, on a line each or not; return None if the text is YAML instead.

    Raises:
        ManifestError: a document after the first is not JSON.
    """
    try:
        return msgspec.json.Decoder().decode_lines(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    content, documents, position = text.decode(), [], 0
    decoder = json.JSONDecoder()
    while (position := _SPACE.match(content, position).end()) < len(content):  # type: ignore[union-attr]
        try:
            _, end = decoder.raw_decode(content, position)
            documents.append(msgspec.json.decode(content[position:end].encode()))
        except (ValueError, msgspec.DecodeError) as error:
            # YAML's flow style opens with a brace, too, and a document of YAML may follow one in JSON.
            if not documents or content[position] not in "{[":
                return None
            line = content.count("\n", 0, getattr(error, "pos", position)) + 1
            detail = getattr(error, "msg", str(error))
            raise ManifestError(f"{name}: document {len(documents) + 1}: not JSON: line {line}: {detail}") from None
        position = end
    return documents


def unpack_lists(
    content: Any, source: str, lists: int = 0, on_broken: OnBroken | None = None
) -> Iterator[LocatedManifest]:
    """Yield the object, or the items of a list.

    Args:
        on_broken: as in `read_objects`, for the items of the list.

    Raises:
        ManifestError: the content has no kind, or is not an object.
    """
    has_objects = isinstance(content, list) and any(isinstance(entry, dict) and "kind" in entry for entry in content)
    if has_objects and lists < _LISTS_MAX:
        yield from _items(content, {}, source, lists, on_broken)
        return
    if not isinstance(content, dict):
        raise NoObjectError(f"{source}: expected an object, got {_json_type(content)}")
    # A document with one of the two is taken for an object with a mistake; without both it is something else.
    if not content.get("kind") and not content.get("apiVersion"):
        raise NoObjectError(f"{source}: kind: required")
    kind, version = _text(content, "kind", source), _text(content, "apiVersion", source)
    if (mistaken := _MISTAKEN.get((version, kind))) is not None:
        error, description, option = mistaken
        raise error(f"{source}: this is {description}, not an object of a cluster: give it with {option}")
    if not (kind.endswith("List") and "items" in content):
        yield LocatedManifest(current_form(content, source), source)
        return
    if lists == _LISTS_MAX:
        raise ManifestError(f"{source}: more than {_LISTS_MAX} lists in each other")
    items = content["items"] or []
    if not isinstance(items, list):
        raise ManifestError(f"{source}: items: expected an array, got {_json_type(items)}")
    # Items of a typed list, as API servers return them, have neither kind nor apiVersion.
    inherited = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
    yield from _items(items, inherited, f"{source}: items", lists, on_broken)


def _items(
    items: list[Any], inherited: Manifest, source: str, lists: int, on_broken: OnBroken | None
) -> Iterator[LocatedManifest]:
    for index, item in enumerate(items):
        entry = {**inherited, **item} if isinstance(item, dict) else item
        try:
            yield from unpack_lists(entry, f"{source}[{index}]", lists + 1, on_broken)
        except ManifestError as error:
            if on_broken is None:
                raise ManifestError(str(error)) from None
            on_broken(error)


def _text(content: Manifest, field: str, source: str) -> str:
    value = content.get(field)
    if value in (None, ""):
        raise ManifestError(f"{source}: {field}: required")
    if not isinstance(value, str):
        raise ManifestError(f"{source}: {field}: expected a string, got {_json_type(value)}")
    return value


def _json_type(content: Any) -> str:
    if isinstance(content, list):
        return "an array"
    return "null" if content is None else f"the value {content!r:.40}"
