"""CEL types as values, and their notation."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple


class Type(NamedTuple):
    """A type. Equal types are equal tuples. `kind` selects the rules of the checker."""

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind == "type" and not self.parameters:
            return "type"
        if self.parameters:
            return f"{self.name}({', '.join(map(str, self.parameters))})"
        return self.name


DYN, ANY, ERROR = Type("dyn", "dyn"), Type("any", "any"), Type("error", "!error!")
NULL = Type("null", "null_type")
BOOL, INT, UINT, DOUBLE = Type("bool", "bool"), Type("int", "int"), Type("uint", "uint"), Type("double", "double")
STRING, BYTES = Type("string", "string"), Type("bytes", "bytes")
DURATION = Type("duration", "google.protobuf.Duration")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
TYPE = Type("type", "type")
QUANTITY, SEMVER = Type("struct", "kubernetes.Quantity"), Type("struct", "kubernetes.Semver")
URL, NAMED_FORMAT = Type("struct", "kubernetes.URL"), Type("struct", "kubernetes.NamedFormat")
IP, CIDR = Type("opaque", "net.IP"), Type("opaque", "net.CIDR")
DEVICE = Type("struct", "kubernetes.DRADevice")
AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    Type("struct", f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps with these types of keys and values."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of values that may be absent."""
    return Type("opaque", "optional_type", (value,))


def type_of(instance_type: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "type", (instance_type,))


def parameter(name: str) -> Type:
    """Return a type variable."""
    return Type("parameter", name)


def is_optional(candidate: Type) -> bool:
    """Tell whether this is an optional type."""
    return candidate.kind == "opaque" and candidate.name == "optional_type"


_WRITTEN = {
    "dyn": DYN, "bool": BOOL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES,
    "duration": DURATION, "timestamp": TIMESTAMP, "Quantity": QUANTITY, "Semver": SEMVER, "URL": URL, "IP": IP,
    "CIDR": CIDR, "NamedFormat": NAMED_FORMAT, "Authorizer": AUTHORIZER, "PathCheck": PATH_CHECK,
    "GroupCheck": GROUP_CHECK, "ResourceCheck": RESOURCE_CHECK, "Decision": DECISION,
}  # fmt: skip
_TOKEN = re.compile(r"\w+|[(),]")


@functools.cache
def read_type(text: str) -> Type:
    """Parse a type of a signature, such as `map(K, list(int))`. A single capital letter is a type variable."""
    tokens = _TOKEN.findall(text)
    result = _read(tokens)
    assert not tokens, f"{text}: not a type"
    return result


def _read(tokens: list[str]) -> Type:
    name = tokens.pop(0)
    parameters = []
    if tokens and tokens[0] == "(":
        while tokens.pop(0) != ")":
            parameters.append(_read(tokens))
    match name, parameters:
        case "list", [element]:
            return list_of(element)
        case "map", [key, value]:
            return map_of(key, value)
        case "optional", [value]:
            return optional_of(value)
        case "type", [instance_type]:
            return type_of(instance_type)
        case _:
            return _WRITTEN[name] if name in _WRITTEN else parameter(name)
