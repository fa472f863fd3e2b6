"""An object as it is after a manifest has been applied to it, by `kubectl apply`.

Fields that the manifest does not mention stay, since defaults and other writers have set them; those that the last
applied manifest mentioned go. Items of lists are told apart by what names them, if anything does.
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


def applied(live: Manifest, manifest: Manifest) -> Manifest:
    """The live object with the manifest applied to it."""
    before = mapping_at(live, "metadata", "annotations").get(_LAST_APPLIED)
    try:
        last = msgspec.json.decode(before) if isinstance(before, str) else None
    except msgspec.DecodeError:
        last = None
    merged = _merged(live, manifest, last)
    return merged if isinstance(merged, Mapping) else manifest


def _merged(live: Any, manifest: Any, last: Any) -> Any:
    if isinstance(live, Mapping) and isinstance(manifest, Mapping):
        removed = (last.keys() - manifest.keys()) if isinstance(last, Mapping) else ()
        kept = {name: value for name, value in live.items() if name not in removed}
        before = last if isinstance(last, Mapping) else {}
        return {**kept, **{name: _merged(live.get(name), value, before.get(name)) for name, value in manifest.items()}}
    if isinstance(live, Sequence) and isinstance(manifest, Sequence) and not isinstance(manifest, str):
        named, live_named = _by_name(manifest), _by_name(live)
        if named is None or live_named is None:
            return manifest
        last_named = (_by_name(last) if isinstance(last, Sequence) else None) or {}
        kept = {name: item for name, item in live_named.items() if name not in last_named or name in named}
        return list(
            {
                **kept,
                **{name: _merged(kept.get(name), item, last_named.get(name)) for name, item in named.items()},
            }.values()
        )
    return manifest


def _by_name(items: Sequence[Any]) -> dict[tuple[Any, ...], Any] | None:
    """The items by what names them; None if nothing tells them apart."""
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


def is_same(one: Any, other: Any, *, is_amount: bool = False) -> bool:
    """Whether two parts of manifests mean the same: amounts are compared by value, absent and empty are equal."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        left, right = mapping_at(one), mapping_at(other)
        if (one and not left) or (other and not right):
            return False
        return all(
            is_same(left.get(name), right.get(name), is_amount=name in _AMOUNTS or is_amount)
            for name in left.keys() | right.keys()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if is_amount and isinstance(one, str | int | float) and isinstance(other, str | int | float):
        try:
            return parse(one).nano_value == parse(other).nano_value
        except QuantityError:
            return bool(one == other)
    return bool(one == other) or (not one and not other and not isinstance(one, int) and not isinstance(other, int))
