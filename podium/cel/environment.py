"""The environment of device selectors: the variable, its fields, the types and the functions.

Source: k8s.io/dynamic-resource-allocation/cel and k8s.io/apiserver/pkg/cel/environment v0.36.2 and v0.37.2, for
stored expressions, with the default feature gates.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from podium.cel import types
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
from podium.cel.rules import SelectorRules
from podium.cel.types import Type

VARIABLES: Final[Mapping[str, Type]] = MappingProxyType({"device": types.DEVICE})


def attribute_type(rules: SelectorRules) -> Type:
    """Return the static type of a device's attributes: any excludes lists."""
    return types.DYN if rules.has_list_attributes else types.ANY


@functools.lru_cache
def fields_with(rules: SelectorRules) -> Mapping[Type, Mapping[str, Type]]:
    """Return the fields of each type that has some."""
    fields = {
        "driver": types.STRING,
        "allowMultipleAllocations": types.BOOL,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, attribute_type(rules))),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
    }
    return MappingProxyType({types.DEVICE: MappingProxyType(fields)})


_NAMED_TYPES = (
    types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING, types.TIMESTAMP,
    types.TYPE, types.UINT, types.IP, types.CIDR, types.list_of(types.DYN), types.map_of(types.DYN, types.DYN),
    types.optional_of(types.DYN),
)  # fmt: skip
TYPE_NAMES: Final[Mapping[str, Type]] = MappingProxyType({kind.name: kind for kind in _NAMED_TYPES})
"""The types that expressions can name."""


def _control(name: str, signature: str) -> Overload:
    """Declare a function that the planner compiles to something other than a call."""
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

_LIBRARIES = (
    arithmetic, comparisons, conversions, times, strings, regexes, lists, optionals, quantities, versions, addresses,
    urls, formats, authorization,
)  # fmt: skip
_OVERLOADS = (*_CONTROL, *chain.from_iterable(library.OVERLOADS for library in _LIBRARIES))
_CHECKED = {overload.id: overload for overload in (*strings.CHECKED, *lists.CHECKED)}
_CHARGED = {overload.id: overload for overload in (*strings.CHARGED, *lists.CHARGED, *regexes.CHARGED)}
"""The overloads that replace others of the same id."""

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(table(_OVERLOADS))
"""The functions that need no parser of quantities, in the oldest environment."""


@functools.lru_cache
def functions_with(parse_quantity: quantities.ParseQuantity, rules: SelectorRules) -> Mapping[str, Function]:
    """Return all functions, of which some parse quantities."""
    replacements = (_CHECKED if rules.checks_arguments else {}) | (_CHARGED if rules.charges_arguments else {})
    overloads = [
        replacements.get(overload.id, overload)
        for overload in _OVERLOADS
        if not (rules.checks_arguments and overload.id in conversions.UNCHECKED)
    ]
    return MappingProxyType({**table(overloads), **table(quantities.parsing_overloads(parse_quantity))})
