"""Validates ``NodeAffinityArgs.addedAffinity``: checks that its selectors parse.

Works on the plain JSON form, so that it does not depend on the API objects' types.

Source: component-helpers scheduling/corev1/nodeaffinity, apimachinery pkg/labels/selector.go (1.36)
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from podium.config.field_errors import ErrorList
from podium.config.names import label_key_errors, label_value_errors

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_INTEGER = re.compile(r"[-+]?[0-9]+")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_node_affinity(path: str, affinity: Mapping[str, Any], errors: ErrorList) -> None:
    """Check every selector of a node affinity; terms that select nothing and preferences of weight 0 are skipped."""
    terms = affinity.get(_REQUIRED, {}).get("nodeSelectorTerms", ())
    for i, term in enumerate(terms):
        _validate_term(f"{path}.{_REQUIRED}.nodeSelectorTerms[{i}]", term or {}, errors)
    for i, preference in enumerate(affinity.get(_PREFERRED, ())):
        if preference and preference["weight"] != 0:
            _validate_term(f"{path}.{_PREFERRED}[{i}]", preference.get("preference") or {}, errors)


def _validate_term(path: str, term: Mapping[str, Any], errors: ErrorList) -> None:
    for i, requirement in enumerate(term.get("matchExpressions", ())):
        _validate_expression(f"{path}.matchExpressions[{i}]", requirement or {}, errors)
    for i, requirement in enumerate(term.get("matchFields", ())):
        _validate_field(f"{path}.matchFields[{i}]", requirement or {}, errors)


def _validate_expression(path: str, requirement: Mapping[str, Any], errors: ErrorList) -> None:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values: Sequence[str] = requirement.get("values", ())
    if operator not in _OPERATORS:
        errors.not_supported(f"{path}.operator", operator, _OPERATORS)
        return
    if wrong := label_key_errors(key):
        errors.invalid(f"{path}.key", key, "; ".join(wrong))
    _validate_value_count(f"{path}.values", operator, values, errors)
    for i, value in enumerate(values):
        if operator in ("Gt", "Lt") and not _is_int64(value):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors.invalid(f"{path}.values[{i}]", value, detail)
        if wrong := label_value_errors(value):
            errors.invalid(f"{path}.values[{i}][{key}]", value, "; ".join(wrong))


def _validate_value_count(path: str, operator: str, values: Sequence[str], errors: ErrorList) -> None:
    detail = ""
    if operator in ("In", "NotIn") and not values:
        detail = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "values set must be empty for exists and does not exist"
    elif operator in ("Gt", "Lt") and len(values) != 1:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
    if detail:
        errors.invalid(path, list(values), detail)


def _validate_field(path: str, requirement: Mapping[str, Any], errors: ErrorList) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in _FIELD_OPERATORS:
        errors.not_supported(f"{path}.operator", operator, _FIELD_OPERATORS)
    elif len(values) != 1:
        errors.invalid(f"{path}.values", list(values), "must have one element")


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63
