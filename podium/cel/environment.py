"""The environment of device selectors: the variable, its fields, the types and the functions.

Source: k8s.io/dynamic-resource-allocation/cel and k8s.io/apiserver/pkg/cel/environment v0.36.2, for stored
expressions, with the default feature gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from podium.cel.functions import Function, Overload, table
from podium.cel.libraries import (
    addresses,
    arithmetic,
    authorization,
    comparisons,
    conversions,
    formats,
    lists,
    optionals,
    quantities,
    regexes,
    strings,
    times,
    urls,
    versions,
)  # fmt: skip
from podium.cel.types import (
    ANY,
    BOOL,
    BYTES,
    CIDR,
    DEVICE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)  # fmt: skip

VARIABLES: Final[Mapping[str, Type]] = MappingProxyType({"device": DEVICE})

FIELDS: Final[Mapping[Type, Mapping[str, Type]]] = MappingProxyType(
    {
        DEVICE: MappingProxyType(
            {
                "driver": STRING,
                "allowMultipleAllocations": BOOL,
                "attributes": map_of(STRING, map_of(STRING, ANY)),
                "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
            }
        )
    }
)

TYPE_NAMES: Final[Mapping[str, Type]] = MappingProxyType(
    {
        each.name: each
        for each in (
            BOOL,
            BYTES,
            DOUBLE,
            DURATION,
            INT,
            NULL,
            STRING,
            TIMESTAMP,
            TYPE,
            UINT,
            IP,
            CIDR,
            list_of(DYN),
            map_of(DYN, DYN),
            optional_of(DYN),
        )
    }
)
"""The types that expressions can name."""


def _control(name: str, signature: str) -> Overload:
    """A function that the planner compiles to something other than a call."""
    return Overload(name, signature, lambda *_values: None)


_CONTROL = (
    _control("conditional", "_?_:_(bool, A, A) -> A"),
    _control("logical_and", "_&&_(bool, bool) -> bool"),
    _control("logical_or", "_||_(bool, bool) -> bool"),
    _control("equals", "_==_(A, A) -> bool"),
    _control("not_equals", "_!=_(A, A) -> bool"),
    _control("not_strictly_false", "@not_strictly_false(bool) -> bool"),
    _control("@mapInsert_map_key_value", "cel::@mapInsert(map(K, V), K, V) -> map(K, V)"),
    _control("@mapInsert_map_map", "cel::@mapInsert(map(K, V), map(K, V)) -> map(K, V)"),
    _control("index_list", "_[_](list(A), int) -> A"),
    _control("index_map", "_[_](map(A, B), A) -> B"),
    _control("optional_list_index_int", "_[_](optional(list(V)), int) -> optional(V)"),
    _control("optional_map_index_value", "_[_](optional(map(K, V)), K) -> optional(V)"),
    _control("list_optindex_optional_int", "_[?_](list(V), int) -> optional(V)"),
    _control("optional_list_optindex_optional_int", "_[?_](optional(list(V)), int) -> optional(V)"),
    _control("map_optindex_optional_value", "_[?_](map(K, V), K) -> optional(V)"),
    _control("optional_map_optindex_optional_value", "_[?_](optional(map(K, V)), K) -> optional(V)"),
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    table(
        (
            *_CONTROL,
            *arithmetic.OVERLOADS,
            *comparisons.OVERLOADS,
            *conversions.OVERLOADS,
            *times.OVERLOADS,
            *strings.OVERLOADS,
            *regexes.OVERLOADS,
            *lists.OVERLOADS,
            *optionals.OVERLOADS,
            *quantities.OVERLOADS,
            *versions.OVERLOADS,
            *addresses.OVERLOADS,
            *urls.OVERLOADS,
            *formats.OVERLOADS,
            *authorization.OVERLOADS,
        )
    )
)
