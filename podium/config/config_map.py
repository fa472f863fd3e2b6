"""Finds the configuration inside a ConfigMap, as a cluster holds the file of a scheduler that runs in it.

Owns which key of which ConfigMap is read. Other objects of the text, as that scheduler's Deployment, are ignored.
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
        named = f"ConfigMap {self.config_map}" if self.config_map else "a ConfigMap without a name"
        return f"{named}: data[{self.key}]"


def configuration_in(text: str, source: str) -> tuple[str, str]:
    """The text of the configuration, and what to call it.

    That is the text of the one key that holds a configuration, if the text is that of a ConfigMap, or of several
    objects with ConfigMaps among them. Any other text is returned as it is.

    Raises:
        ConfigError: no key holds a configuration, or several do. The message names the keys.
    """
    if _MAYBE.search(text) is None or len(text) > TEXT_LENGTH_MAX:
        return text, source
    try:
        documents = [each for each in read_documents(text) if isinstance(each, dict)]
    except YamlError:
        return text, source
    if not documents or documents[0].get("kind") == KIND:
        return text, source
    keys = [key for document in documents for key in _keys_of(document)]
    if not keys:
        return text, source
    holding = [each for each in keys if _CONFIGURATION.search(each.text)]
    if len(holding) > 1:
        places = ", ".join(each.where for each in holding)
        raise _refused(f"expected one {KIND}, found {len(holding)}: {places}: give a file with one of them", source)
    # A single key is taken for the configuration, so that what it lacks is named.
    chosen = holding or (keys if len(keys) == 1 else [])
    if not chosen:
        places = ", ".join(each.where for each in keys)
        raise _refused(f"no key of a ConfigMap holds a {KIND}: there are {places}", source)
    (found,) = chosen
    return found.text, f"{source}: {found.where}" if source else found.where


def _refused(detail: str, source: str) -> ConfigError:
    return ConfigError([FieldError("", ErrorKind.SYNTAX, None, detail)], source)


def _keys_of(document: Any, lists: int = 0) -> Iterator[_Key]:
    """The keys with a text of the ConfigMap, or of those in the list."""
    if not isinstance(document, dict):
        return
    data = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, dict):
        metadata = document.get("metadata")
        names = [metadata.get(each) for each in ("namespace", "name")] if isinstance(metadata, dict) else []
        name = "/".join(each for each in names if isinstance(each, str) and each)
        yield from (_Key(name, key, value) for key, value in data.items() if isinstance(value, str))
    items = document.get("items")
    if isinstance(items, list) and not lists:
        for item in items:
            yield from _keys_of(item, lists + 1)
