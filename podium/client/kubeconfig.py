"""Kubeconfig files: the cluster and the user that a context names.

Owns reading and merging the files. kubernetes-asyncio is not used for this: importing its 900 modules costs 0.3 s and
75 MB. Never makes a token, and never checks a certificate.

Source: client-go v0.36 tools/clientcmd/loader.go and client_config.go.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from podium.client.client_tls import Pem
from podium.lib.bounded_read import read_file
from podium.lib.error_text import UserFacingError
from podium.lib.yaml_reader import YamlError, read_documents

_BYTES_MAX: Final = 16 * 1024 * 1024
_ENTRIES: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}


class KubeconfigError(UserFacingError, ValueError):
    """A kubeconfig has no usable value for a field. The message names the field."""


@dataclass(frozen=True, slots=True)
class Section:
    """The fields of a cluster, context or user, its name in errors, and the base directory of its relative paths."""

    called: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    directory: Path = Path()

    def text(self, name: str) -> str:
        """Return the value of a field; empty if it is absent. Raises: KubeconfigError."""
        value = self.fields.get(name)
        return "" if value is None else _text(value, f"{self.called}.{name}")

    def flag(self, name: str) -> bool:
        """Return whether a field is true. Raises: KubeconfigError."""
        value = self.fields.get(name) or False
        if not isinstance(value, bool):
            raise KubeconfigError(f"{self.called}.{name} is neither true nor false")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return the mapping in a field; empty if it is absent. Raises: KubeconfigError."""
        value = self.fields.get(name) or {}
        if not isinstance(value, dict):
            raise KubeconfigError(f"{self.called}.{name} is not a mapping")
        return value

    def path(self, name: str) -> Path | None:
        """Return the file that a field names. Raises: KubeconfigError."""
        text = self.text(name)
        return self.directory / text if text else None

    def pem(self, name: str) -> Pem | None:
        """Return the content of the field's `-data` variant, otherwise the file that the field names.

        Raises: KubeconfigError.
        """
        data = self.text(f"{name}-data")
        if not data:
            path = self.path(name)
            return None if path is None else Pem(str(path))
        try:
            return Pem(text=base64.b64decode("".join(data.split()), validate=True))
        except ValueError as error:
            raise KubeconfigError(f"{self.called}.{name}-data: {error}") from error


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cluster, user and namespace of a context; the namespace is "" if it names none."""

    context: str
    cluster: Section
    user: Section
    namespace: str


def choose(paths: str, context: str | None) -> Chosen:
    """Return the cluster and user of that context, by default the current one, in files separated as in $KUBECONFIG.

    If several files define the same entry, the first one counts.

    Raises: KubeconfigError.
    """
    sections: dict[str, dict[str, Section]] = {section: {} for section in _ENTRIES}
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    present = [file for file in files if file.exists()]
    if not present:
        raise KubeconfigError("no such file")
    for file in present:
        content = _content(file, f"{file}: " if len(present) > 1 else "")
        context = context or _text(content.get("current-context") or "", f"current-context in {file}")
        for section, entries in sections.items():
            entries.update({**_sections(file, content, section), **entries})
    if not context:
        raise KubeconfigError("current-context is missing")
    context_section = _entry(sections, "contexts", context)
    user = sections["users"].get(context_section.text("user"), Section(_entry_name("users")))
    cluster = _entry(sections, "clusters", context_section.text("cluster"))
    return Chosen(context, cluster, user, context_section.text("namespace"))


def content_of(file: Path) -> Mapping[str, Any]:
    """Return the content of a kubeconfig. Raises: KubeconfigError."""
    return _content(file, "")


def context_names(file: Path) -> list[str]:
    """Return the names of the contexts in a kubeconfig. Raises: KubeconfigError, also if there are none."""
    contexts = content_of(file).get("contexts")
    if not isinstance(contexts, list):
        contexts = []
    names = [entry["name"] for entry in contexts if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    if not names:
        raise KubeconfigError("it has no contexts")
    return names


def _content(file: Path, prefix: str) -> Mapping[str, Any]:
    try:
        content = next(read_documents(read_file(file, _BYTES_MAX)), None)
    except IsADirectoryError:
        raise KubeconfigError(f"{prefix}this is a directory, not a kubeconfig file") from None
    except OSError as error:
        raise KubeconfigError(f"{prefix}{error.strerror}") from error
    except YamlError as error:
        raise KubeconfigError(f"{prefix}{error}") from error
    if content is None:
        raise KubeconfigError(f"{prefix}the file is empty")
    if not isinstance(content, dict):
        raise KubeconfigError(f"{prefix}this is not a kubeconfig: it is not a mapping")
    if content.get("kind", "Config") != "Config":
        raise KubeconfigError(f"{prefix}this is not a kubeconfig: its kind is {content['kind']!r:.40}, not Config")
    return content


def _sections(file: Path, content: Mapping[str, Any], section: str) -> dict[str, Section]:
    entry = _ENTRIES[section]
    items = content.get(section) or []
    if not isinstance(items, list):
        raise KubeconfigError(f"{section} in {file} is not a list")
    sections: dict[str, Section] = {}
    for index, item in enumerate(items):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise KubeconfigError(f"{section}[{index}].name in {file} is missing")
        fields = item.get(entry) or ({} if section == "users" else None)
        if not isinstance(fields, dict):
            raise KubeconfigError(f"{section}[{index}].{entry} in {file} is missing")
        if name in sections:
            raise KubeconfigError(f"{section}[{index}].name in {file}: {name} is there twice")
        sections[name] = Section(_entry_name(section), fields, file.absolute().parent)
    return sections


def _entry_name(section: str) -> str:
    return f"{section}[].{_ENTRIES[section]}"


def _text(value: object, called: str) -> str:
    if not isinstance(value, str):
        raise KubeconfigError(f"{called} is not text")
    return value


def _entry(sections: Mapping[str, Mapping[str, Section]], section: str, name: str) -> Section:
    try:
        return sections[section][name]
    except KeyError:
        raise KubeconfigError(f"no object with name {name} in {section}") from None
