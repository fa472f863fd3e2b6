"""The parts of values.schema.json about the configuration and the feature gates, made from podium's own tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from podium.config.args import ARGS_BY_PLUGIN
from podium.config.releases import RELEASES, Gate
from podium.config.scalars import BOOL, FLOAT32, INT32, INT64
from podium.config.schema import ARGS_RECORDS, CONFIGURATION
from podium.config.shapes import Key, ListOf, MapOf, Plain, Record, Shape
from podium.config.types import API_VERSION
from tests.helm.chart import CHART, Json

SCHEMA: Final = CHART / "values.schema.json"
_NUMBERS_AND_BOOLEANS: Final = {BOOL: "boolean", INT32: "integer", INT64: "integer", FLOAT32: "number"}
_NAME: Final = {"pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}
_LIMITS: Final[Mapping[str, Json]] = {
    "profiles": {"minItems": 1},
    "schedulerName": {"minLength": 1},
    "percentageOfNodesToScore": {"minimum": 0, "maximum": 100},
    "resourceName": _NAME,
    "resourceNamespace": _NAME,
    "enabled": {"items": {"required": ["name"]}},
    "disabled": {"items": {"required": ["name"]}},
}
"""What is said of values by helm, rather than by podium when it starts."""


def schema_text() -> str:
    """The file as it should be."""
    schema = json.loads(SCHEMA.read_text())
    configuration_schema = _object({**_HEAD, **_properties(CONFIGURATION.keys)})
    configuration_schema["properties"]["profiles"]["items"]["required"] = ["schedulerName"]
    schema["properties"]["configuration"] = {**configuration_schema, "required": ["profiles"]}
    schema["properties"]["featureGates"] = _feature_gates()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _feature_gates() -> Json:
    """The gates of all releases, without the values with which podium would start on none of them."""
    gates: dict[str, list[Gate]] = {}
    needs: dict[str, dict[str, None]] = {}
    for release in RELEASES.values():
        for name, gate in release.gates.items():
            gates.setdefault(name, []).append(gate)
        for name, needed in release.gate_needs.items():
            needs.setdefault(name, {}).update(dict.fromkeys(needed))
    return {
        **_object({name: _gate(rows) for name, rows in sorted(gates.items())}),
        "allOf": [
            {"if": _is_on(name), "then": _demand(gate, is_default=all(row.default for row in gates[gate]))}
            for name, needed in sorted(needs.items())
            for gate in needed
        ],
    }


def _gate(rows: Sequence[Gate]) -> Json:
    values = {row.default for row in rows}
    is_open = any(row.is_switchable for row in rows) or len(values) > 1
    return {"type": "boolean"} if is_open else {"type": "boolean", "const": rows[0].default}


def _demand(gate: str, *, is_default: bool) -> Json:
    """The gate is on: said so, or, where that is its default, not said otherwise."""
    required: Json = {} if is_default else {"required": [gate]}
    return {**required, "properties": {gate: {"const": True}}}


def _is_on(name: str) -> Json:
    return {"required": [name], "properties": {name: {"const": True}}}


_HEAD: Final = {"apiVersion": {"const": API_VERSION}, "kind": {"const": "KubeSchedulerConfiguration"}}


def _object(properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _properties(keys: Mapping[str, Key]) -> Json:
    return {name: _merge(_schema(name, key.shape), _LIMITS.get(name, {})) for name, key in keys.items()}


def _merge(schema: Json, extension: Json) -> Json:
    merged_keys = {key: _merge(schema[key], extension[key]) for key in schema.keys() & extension.keys()}
    return {**schema, **extension, **merged_keys}


def _schema(name: str, shape: Shape) -> Json:
    match shape:
        case Record() | Plain():
            return _object(_properties(shape.keys))
        case ListOf():
            item = _plugin_config() if name == "pluginConfig" else _schema("", shape.item)
            return {"type": "array", "items": item}
        case MapOf():
            return {"type": "object", "additionalProperties": _schema("", shape.item)}
        case _:
            return {"type": _NUMBERS_AND_BOOLEANS.get(shape, "string")}  # type: ignore[call-overload]


def _plugin_config() -> Json:
    """Args of podium's own plugins have just their fields, those of others may have any."""
    return {
        **_object({"name": {"type": "string"}, "args": {"type": "object"}}),
        "required": ["name"],
        "allOf": [
            {
                "if": {"properties": {"name": {"const": plugin}}},
                "then": {"properties": {"args": _args(kind)}},
            }
            for plugin, kind in sorted(ARGS_BY_PLUGIN.items())
        ],
    }


def _args(kind: type) -> Json:
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind.__name__}}
    return _object({**head, **_properties(ARGS_RECORDS[kind].keys)})
