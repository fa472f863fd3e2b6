"""Named formats, and the validation of strings against them. The texts of violations are podium's own.

Source: k8s.io/apiserver/pkg/cel v0.36.2, k8s.io/apimachinery and k8s.io/kube-openapi.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, ClassVar

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, ceiling
from podium.cel.libraries.urls import is_url
from podium.cel.types import NAMED_FORMAT, Type
from podium.cel.values import NONE, Opaque, Optional

_LABEL = r"[a-z0-9](?:[-a-z0-9]*+(?<=[a-z0-9]))?"
_DNS1123_LABEL = re.compile(_LABEL)
_DNS1123_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+")
_DNS1035_LABEL = re.compile(r"[a-z](?:[-a-z0-9]*+(?<=[a-z0-9]))?")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*+(?<=[A-Za-z0-9]))?")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[tT ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})",
    re.IGNORECASE,
)
_LABEL_MAX, _SUBDOMAIN_MAX = 63, 253


class NamedFormat(Opaque):
    """A named format. `length` is the size of its pattern for costs."""

    __slots__ = ("length", "name", "violations")
    TYPE: ClassVar[Type] = NAMED_FORMAT
    IS_HASHABLE: ClassVar[bool] = False
    IS_NATIVE: ClassVar[bool] = True

    def __init__(self, name: str, violations: Callable[[str], list[str]], length: int) -> None:
        self.name = name
        self.violations = violations
        self.length = length

    def equals(self, value: NamedFormat) -> bool:
        """Tell whether both have the same name."""
        return self.name == value.name


def _pattern(pattern: re.Pattern[str], problem: str, length_max: int | None = None) -> Callable[[str], list[str]]:
    def violations(text: str) -> list[str]:
        problems = []
        if length_max is not None and len(text.encode()) > length_max:
            problems.append(f"must be no more than {length_max} bytes")
        if pattern.fullmatch(text) is None:
            problems.append(problem)
        return problems

    return violations


def _prefix(violations: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Validate the prefix of generated names, which may end in a dash."""

    def of_prefix(text: str) -> list[str]:
        return violations(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return of_prefix


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return ["a qualified name has at most one slash"]
    problems = []
    if len(parts) == 2:
        problems += ["the prefix part must not be empty"] if not parts[0] else _SUBDOMAIN(parts[0])
    if not parts[-1]:
        problems.append("the name part must not be empty")
    return problems + _pattern(_NAME, "the name part must consist of alphanumeric characters, '-', '_' or '.'", 63)(
        parts[-1]
    )


def _label_value(text: str) -> list[str]:
    return _pattern(_NAME, "must be empty or consist of alphanumeric characters, '-', '_' or '.'", 63)(text or "a")


def _date(text: str) -> list[str]:
    try:
        if _DATE.fullmatch(text) is not None:
            dt.date.fromisoformat(text)
            return []
    except ValueError:
        pass
    return ["invalid date"]


def _date_time(text: str) -> list[str]:
    return [] if _DATE_TIME.fullmatch(text) is not None and not _date(text[:10]) else ["invalid datetime"]


_LABEL_RULE = _pattern(_DNS1123_LABEL, "must be a lowercase RFC 1123 label", _LABEL_MAX)
_SUBDOMAIN = _pattern(_DNS1123_SUBDOMAIN, "must be a lowercase RFC 1123 subdomain", _SUBDOMAIN_MAX)
_OLD_LABEL_RULE = _pattern(_DNS1035_LABEL, "must be a DNS-1035 label", _LABEL_MAX)
_FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _LABEL_RULE, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _SUBDOMAIN, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _OLD_LABEL_RULE, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(_LABEL_RULE), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(_SUBDOMAIN), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(_OLD_LABEL_RULE), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", lambda text: [] if is_url(text) else ["invalid URI for request"], 1103),
    "uuid": NamedFormat("uuid", _pattern(_UUID, "does not match the UUID format"), 73),
    "byte": NamedFormat("byte", _pattern(_BASE64, "invalid base64"), 84),
    "date": NamedFormat("date", _date, 114),
    "datetime": NamedFormat("datetime", _date_time, 114),
}


def _format_by_name(name: str) -> Optional:
    named_format = _FORMATS.get(name)
    return NONE if named_format is None else Optional(named_format)


def _validate(named_format: NamedFormat, text: str) -> Optional:
    if len(text) > _LENGTH_MAX:
        raise EvaluationError("the string to validate is too long")
    violations = named_format.violations(text)
    return Optional(violations) if violations else NONE


_LENGTH_MAX = 1_000_000


def _validate_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    named_format, text = arguments
    return ceiling((1 + len(text)) * 0.1) * ceiling(named_format.length * 0.25)


def _constant(named_format: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named_format


OVERLOADS = (
    Overload("format-validate", "NamedFormat.validate(string) -> optional(list(string))", _validate, _validate_cost),
    Overload("format-named", "format::named(string) -> optional(NamedFormat)", _format_by_name),
    *(
        Overload(f"format.{name}", f"format::{name}() -> NamedFormat", _constant(named_format))
        for name, named_format in _FORMATS.items()
    ),
)
