"""Strategic merge patch: lists of objects are merged by a key that the type defines.

Source: apimachinery pkg/util/strategicpatch (v0.36); the `patchMergeKey` tags of k8s.io/api.
Differs: an element that $setElementOrder does not name comes after those it names.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

# field name -> merge key. Other lists (tolerations, taints, affinity terms, ...) are replaced as a whole.
MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "secrets": "name",
    "hostAliases": "ip",
    "podIPs": "ip",
    "hostIPs": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "resourceClaimStatuses": "name",
    "ownerReferences": "uid",
}
_KEYS_OF_KIND = {"Service": MERGE_KEYS | {"ports": "port"}}
_PRIMITIVE_MERGE = {"finalizers", "podCIDRs"}
_DELETE_PRIMITIVE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(target: Json, patch: Json, kind: str) -> Json:
    """Apply a strategic merge patch to an object of a kind. `target` stays unchanged."""
    return _merge_map(target, patch, _KEYS_OF_KIND.get(kind, MERGE_KEYS))


def _merge_map(target: Json, patch: Json, keys: dict[str, str]) -> Json:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    result: Json = {} if directive == "replace" else dict(target)
    if (names_retained := patch.get("$retainKeys")) is not None:
        result = {name: value for name, value in result.items() if name in names_retained}
    for name, value in patch.items():
        if name.startswith(_DELETE_PRIMITIVE):
            field = name.removeprefix(_DELETE_PRIMITIVE)
            result[field] = [item for item in result.get(field) or () if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_value(name, result.get(name), value, keys)
    for name, order in patch.items():
        if name.startswith(_ORDER):
            _reorder(result, name.removeprefix(_ORDER), order, keys)
    return result


def _merge_value(name: str, current: Any, value: Any, keys: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return _merge_map(current if isinstance(current, dict) else {}, value, keys)
    if isinstance(value, list):
        return _merge_list(name, current if isinstance(current, list) else [], value, keys)
    return value


def _merge_list(name: str, current: list[Any], patch: list[Any], keys: dict[str, str]) -> list[Any]:
    if name in _PRIMITIVE_MERGE:
        return current + [item for item in patch if item not in current]
    key = keys.get(name)
    plain = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    if key is None or not all(isinstance(item, dict) for item in current + patch):
        return plain
    directives = [item for item in patch if "$patch" in item]
    if any(item["$patch"] == "replace" for item in directives):
        return [_merge_map({}, item, keys) for item in plain]
    deleted_keys = [item.get(key) for item in directives if item["$patch"] == "delete"]
    result = [item for item in current if item.get(key) not in deleted_keys]
    positions = {item.get(key): index for index, item in enumerate(result)}
    for item in plain:
        position = positions.get(item.get(key))
        if position is None:
            positions[item.get(key)] = len(result)
            result.append(_merge_map({}, item, keys))
        else:
            result[position] = _merge_map(result[position], item, keys)
    return result


def _reorder(result: Json, name: str, order: list[Any], keys: dict[str, str]) -> None:
    items, key = result.get(name), keys.get(name)
    if not isinstance(items, list):
        return
    order_keys = [entry.get(key) if isinstance(entry, dict) else entry for entry in order]
    rank = {entry: index for index, entry in enumerate(order_keys)}

    def position(item: Any) -> int:
        return rank.get(item.get(key) if isinstance(item, dict) else item, len(rank))

    result[name] = sorted(items, key=position)
