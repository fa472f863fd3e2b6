"""Files of Kubernetes objects: YAML of any number of documents, JSON, lists within them.

Owns finding the objects and saying where each one is. Scalars mean what they mean to kubectl: there are no dates and no
sexagesimals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from podium.config import API_VERSION, KIND
from podium.engine.errors import KubeconfigGivenError, ManifestError
from podium.engine.manifests import Manifest
from podium.lib.yaml_reader import YamlError, read_documents

_JSON_BEGINS = re.compile(rb"\s*[{\[]")
_MISTAKEN = {
    ("v1", "Config"): (KubeconfigGivenError, "a kubeconfig", "--kubeconfig"),
    (API_VERSION, KIND): (ManifestError, "a scheduler's configuration", "--config"),
}
_LISTS_MAX = 5
"""How deep lists may be nested."""

OnBroken: TypeAlias = Callable[[ManifestError], None]


@dataclass(frozen=True, slots=True)
class Found:
    """An object, and where it is: `cluster.yaml: document 2: items[3]`."""

    manifest: Manifest
    where: str


def read_objects(text: bytes, name: str, on_broken: OnBroken | None = None) -> Iterator[Found]:
    """The objects of a file, including the items of lists. Empty documents are skipped.

    Args:
        name: what to call the file.
        on_broken: receives what is no object, which is then left out, instead of the caller.

    Raises:
        ManifestError: the text is neither YAML nor JSON, or something in it is not a Kubernetes object.
    """
    for number, document in enumerate(_documents(text, name), start=1):
        if document is not None:
            try:
                yield from unpack_lists(document, f"{name}: document {number}", on_broken=on_broken)
            except ManifestError as error:
                if on_broken is None:
                    raise
                on_broken(error)


def _documents(text: bytes, name: str) -> list[Any]:
    try:
        if _JSON_BEGINS.match(text):
            try:
                return [msgspec.json.decode(text)]
            except msgspec.DecodeError:
                pass  # YAML's flow style opens with a brace, too
        return list(read_documents(text))
    except YamlError as error:
        raise ManifestError(f"{name}: {error}") from None
    except RecursionError:
        raise ManifestError(f"{name}: nested too deep") from None


def unpack_lists(content: Any, where: str, lists: int = 0, on_broken: OnBroken | None = None) -> Iterator[Found]:
    """The object, or those in it, if it is a list.

    Args:
        on_broken: as in `read_objects`, for the items of the list.

    Raises:
        ManifestError: it is no object of a kind.
    """
    if not isinstance(content, dict):
        raise ManifestError(f"{where}: expected an object, got {_json_type(content)}")
    kind, version = _text(content, "kind", where), _text(content, "apiVersion", where)
    if (mistaken := _MISTAKEN.get((version, kind))) is not None:
        error, what, option = mistaken
        raise error(f"{where}: this is {what}, not an object of a cluster: give it with {option}")
    if not (kind.endswith("List") and "items" in content):
        yield Found(content, where)
        return
    if lists == _LISTS_MAX:
        raise ManifestError(f"{where}: more than {_LISTS_MAX} lists in each other")
    items = content["items"] or []
    if not isinstance(items, list):
        raise ManifestError(f"{where}: items: expected an array, got {_json_type(items)}")
    inherited = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        below = f"{where}: items[{index}]"
        whole = {**inherited, **item} if isinstance(item, dict) else item
        try:
            yield from unpack_lists(whole, below, lists + 1, on_broken)
        except ManifestError as error:
            if on_broken is None:
                raise
            on_broken(error)


def _text(content: Manifest, field: str, where: str) -> str:
    value = content.get(field)
    if value in (None, ""):
        raise ManifestError(f"{where}: {field}: required")
    if not isinstance(value, str):
        raise ManifestError(f"{where}: {field}: expected a string, got {_json_type(value)}")
    return value


def _json_type(content: Any) -> str:
    if isinstance(content, list):
        return "an array"
    return "null" if content is None else f"the value {content!r:.40}"
