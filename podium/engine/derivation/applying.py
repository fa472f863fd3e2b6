"""Applies a manifest to an object as `kubectl apply` does.

Fields that the manifest does not mention are kept, since defaults and other writers have set them. Fields that only the
last applied manifest mentions are removed. Items of lists are matched by their naming fields, if they have any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.engine.derivation.control_objects import mapping_at
from podium.engine.manifests import Manifest
from podium.objects.quantity import QuantityError, parse

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ITEM_NAMES: Final = (
    ("name",),
    ("metadata", "name"),
    ("containerPort", "protocol"),
    ("mountPath",),
    ("topologyKey", "whenUnsatisfiable"),
)
_AMOUNTS: Final = ("requests", "limits", "capacity", "overhead")


def apply_manifest(live: Manifest, manifest: Manifest) -> Manifest:
    """Return the live object with the manifest applied to it."""
    text = mapping_at(live, "metadata", "annotations").get(_LAST_APPLIED)
    try:
        last = msgspec.json.decode(text) if isinstance(text, str) else None
    except msgspec.DecodeError:
        last = None
    result = _merge(live, manifest, last)
    return result if isinstance(result, Mapping) else manifest


def _merge(live: Any, manifest: Any, last: Any) -> Any:
    if isinstance(live, Mapping) and isinstance(manifest, Mapping):
        dropped_names = (last.keys() - manifest.keys()) if isinstance(last, Mapping) else ()
        values = {name: value for name, value in live.items() if name not in dropped_names}
        last_values = last if isinstance(last, Mapping) else {}
        return {
            **values,
            **{name: _merge(live.get(name), value, last_values.get(name)) for name, value in manifest.items()},
        }
    if isinstance(live, Sequence) and isinstance(manifest, Sequence) and not isinstance(manifest, str):
        items, live_named = _by_name(manifest), _by_name(live)
        if items is None or live_named is None:
            return manifest
        last_named = (_by_name(last) if isinstance(last, Sequence) else None) or {}
        values = {name: item for name, item in live_named.items() if name not in last_named or name in items}
        return list(
            {
                **values,
                **{name: _merge(values.get(name), item, last_named.get(name)) for name, item in items.items()},
            }.values()
        )
    return manifest


def _by_name(items: Sequence[Any]) -> dict[tuple[Any, ...], Any] | None:
    """Return the items by the values of their naming fields; None if no fields identify all of them."""
    for fields in _ITEM_NAMES:
        names = [_name_of(item, fields) for item in items]
        if all(name is not None for name in names) and len(set(names)) == len(names):
            return {name: item for name, item in zip(names, items, strict=True) if name is not None}
    return None


def _name_of(item: Any, fields: tuple[str, ...]) -> tuple[Any, ...] | None:
    if fields == ("metadata", "name"):
        item, fields = mapping_at(item, "metadata"), ("name",)
    if not isinstance(item, Mapping) or fields[0] not in item:
        return None
    return (fields, *(str(item.get(field) or "TCP") for field in fields))


def is_same(first: Any, second: Any, *, is_amount: bool = False) -> bool:
    """Return whether parts of manifests mean the same: amounts compare by value, and absent equals empty."""
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        first_fields, right = mapping_at(first), mapping_at(second)
        if (first and not first_fields) or (second and not right):
            return False
        return all(
            is_same(first_fields.get(name), right.get(name), is_amount=name in _AMOUNTS or is_amount)
            for name in first_fields.keys() | right.keys()
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    if is_amount and isinstance(first, str | int | float) and isinstance(second, str | int | float):
        try:
            return parse(first).nano_value == parse(second).nano_value
        except QuantityError:
            return bool(first == second)
    return bool(first == second) or (
        not first and not second and not isinstance(first, int) and not isinstance(second, int)
    )
