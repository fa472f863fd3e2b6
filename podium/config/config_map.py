"""Finds the configuration inside a ConfigMap, where a cluster keeps the file of a scheduler that runs in it.

Owns the choice of the ConfigMap and its key. Other objects in the text, such as that scheduler's Deployment, are
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from podium.config.document import TEXT_LENGTH_MAX
from podium.config.field_errors import ConfigError, ErrorKind, FieldError
from podium.config.types import KIND
from podium.lib.yaml_reader import YamlError, read_documents

_MAYBE: Final = re.compile(r"""\bkind["']?\s*:\s*["']?(?:ConfigMap|List)\b""")
_CONFIGURATION: Final = re.compile(rf"""\bkind["']?\s*:\s*["']?{KIND}\b""")


class _Key(NamedTuple):
    config_map: str
    key: str
    text: str

    @property
    def where(self) -> str:
        owner = f"ConfigMap {self.config_map}" if self.config_map else "a ConfigMap without a name"
        return f"{owner}: data[{self.key}]"


def configuration_in(text: str, source: str) -> tuple[str, str]:
    """Return the text of the configuration, and its name in messages.

    If the text contains ConfigMaps, the result is the text of the one key that holds a configuration. Any other text
    is returned as it is.

    Raises:
        ConfigError: no key holds a configuration, or several do. The message names the keys.
    """
    if _MAYBE.search(text) is None or len(text) > TEXT_LENGTH_MAX:
        return text, source
    try:
        documents = [document for document in read_documents(text) if isinstance(document, dict)]
    except YamlError:
        return text, source
    if not documents or documents[0].get("kind") == KIND:
        return text, source
    keys = [key for document in documents for key in _keys_of(document)]
    if not keys:
        return text, source
    holding = [key for key in keys if _CONFIGURATION.search(key.text)]
    if len(holding) > 1:
        places = ", ".join(key.where for key in holding)
        raise _refusal(f"expected one {KIND}, found {len(holding)}: {places}: give a file with one of them", source)
    # A single key is read as the configuration, so that the error names the missing fields.
    candidates = holding or (keys if len(keys) == 1 else [])
    if not candidates:
        places = ", ".join(key.where for key in keys)
        raise _refusal(f"no key of a ConfigMap holds a {KIND}: there are {places}", source)
    (candidate,) = candidates
    return candidate.text, f"{source}: {candidate.where}" if source else candidate.where


def _refusal(detail: str, source: str) -> ConfigError:
    return ConfigError([FieldError("", ErrorKind.SYNTAX, None, detail)], source)


def _keys_of(document: Any, lists: int = 0) -> Iterator[_Key]:
    """Yield the text keys of a ConfigMap, or of the ConfigMaps in a list."""
    if not isinstance(document, dict):
        return
    data = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, dict):
        metadata = document.get("metadata")
        names = [metadata.get(field) for field in ("namespace", "name")] if isinstance(metadata, dict) else []
        name = "/".join(part for part in names if isinstance(part, str) and part)
        yield from (_Key(name, key, value) for key, value in data.items() if isinstance(value, str))
    items = document.get("items")
    if isinstance(items, list) and not lists:
        for item in items:
            yield from _keys_of(item, lists + 1)
