"""Files of Kubernetes objects: YAML of any number of documents, JSON, lists within them.

Owns finding the objects and saying where each stands. Scalars mean what they mean to kubectl: there are no dates and
no sexagesimals.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from podium.config.document import resolve_plain
from podium.config.field_errors import show
from podium.whatif.errors import ManifestError
from podium.whatif.manifests import Manifest

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

_PLAIN, _TEXT = "podium:plain", "tag:yaml.org,2002:str"
_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """An object, and where it stands: `cluster.yaml: document 2: items[3]`."""

    manifest: Manifest
    where: str


class _Loader(SafeLoader):
    """Reads unquoted scalars by the rules of the configuration's reader; every key is text."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012
        "<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))],
        None: [(_PLAIN, re.compile("", re.DOTALL))],  # type: ignore[dict-item]
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, `1: a` as `"1": a`."""
        self.flatten_mapping(node)
        for key, _ in node.value:
            if key.tag == _PLAIN and not isinstance(value := _resolved(key.value), str):
                key.tag, key.value = _TEXT, show(value)
        return super().construct_mapping(node, deep)


def _plain(loader: _Loader, node: yaml.ScalarNode) -> Any:
    del loader
    return _resolved(node.value)


def _resolved(text: str) -> Any:
    """What an unquoted scalar means; no field that a scheduler reads takes what is no finite number."""
    return text if _NOT_FINITE.fullmatch(text) else resolve_plain(text)


_Loader.add_constructor(_PLAIN, _plain)


def read_objects(text: bytes, name: str) -> Iterator[Found]:
    """The objects of a file, those in lists one by one; empty documents are passed over.

    Args:
        name: what to call the file.

    Raises:
        ManifestError: the text is neither YAML nor JSON, or something in it is no object of a kind.
    """
    for number, document in enumerate(_documents(text, name), start=1):
        if document is not None:
            yield from _unfolded(document, f"{name}: document {number}")


def _documents(text: bytes, name: str) -> list[Any]:
    try:
        if text.lstrip()[:1] in (b"{", b"["):
            try:
                return [msgspec.json.decode(text)]
            except msgspec.DecodeError:
                pass  # YAML's flow style opens with a brace, too
        return list(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ManifestError(f"{name}: {line}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"{name}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ManifestError(f"{name}: nested too deep") from None


def _unfolded(content: Any, where: str) -> Iterator[Found]:
    if not isinstance(content, dict):
        raise ManifestError(f"{where}: expected an object, got {_json_type(content)}")
    kind, version = content.get("kind"), content.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise ManifestError(f"{where}: kind: required")
    if not isinstance(version, str) or not version:
        raise ManifestError(f"{where}: apiVersion: required")
    if not (kind.endswith("List") and "items" in content):
        yield Found(content, where)
        return
    items = content["items"] or []
    if not isinstance(items, list):
        raise ManifestError(f"{where}: items: expected an array, got {_json_type(items)}")
    inherited = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        below = f"{where}: items[{index}]"
        yield from _unfolded({**inherited, **item} if isinstance(item, dict) else item, below)


def _json_type(content: Any) -> str:
    if isinstance(content, list):
        return "an array"
    return "null" if content is None else f"the value {content!r:.40}"
