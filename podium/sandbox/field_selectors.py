r"""Field selectors: which fields of a resource can be selected by, and the conditions that a query states on them.

A resource accepts only the field labels that its API version converts; the sandbox refuses every other label, with the
API server's words. A label may be accepted and match nothing, as `status.podIPs` does.

Source: 1.37, apimachinery pkg/fields and pkg/runtime/conversion.go; AddFieldLabelConversionFunc in kubernetes
pkg/apis/*/conversion.go, ToSelectableFields in pkg/registry; apiextensions-apiserver pkg/apiserver/conversion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from podium.sandbox.errors import ApiError, bad_request
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]

_OPERATOR = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPED: Final = "\\,="


@dataclass(frozen=True, slots=True)
class SelectableField:
    """The place in a stored object that holds the value of a field label.

    Args:
        paths: the value is that of the first path at which the object has one.
        absent: the value of an object that has none.
    """

    paths: tuple[tuple[str, ...], ...]
    absent: str = ""

    def text(self, obj: Json) -> str:
        """Return the value of an object, as selectors compare it."""
        for path in self.paths:
            value: Any = obj
            for part in path:
                value = value.get(part) if isinstance(value, dict) else _first(value)
            if value not in (None, ""):
                return str(value).lower() if isinstance(value, bool) else str(value)
        return self.absent


def _first(value: Any) -> Any:
    """Return the first item of a list, whatever part of a path stands for it."""
    return value[0] if isinstance(value, list) and value else None


def _field(*paths: str, absent: str = "") -> SelectableField:
    return SelectableField(tuple(tuple(path.split(".")) for path in paths), absent)


def _same(*labels: str, absent: str = "") -> dict[str, SelectableField]:
    """Return fields whose labels are their paths."""
    return {label: _field(label, absent=absent) for label in labels}


def _unsupported_label(label: str) -> str:
    return f"field label not supported: {label}"


@dataclass(frozen=True, slots=True)
class SelectableFields:
    """The field labels of one resource in one API version, and the words that refuse any other label."""

    fields: Mapping[str, SelectableField]
    refusal: Callable[[str], str] = _unsupported_label


_NAME: Final = _same("metadata.name")
_NAMESPACED: Final = _same("metadata.name", "metadata.namespace")
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _default_refusal(label: str) -> str:
    return f'{_quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def _quote(label: str) -> str:
    return json.dumps(label, ensure_ascii=False)


_DEFAULT: Final = SelectableFields(_NAMESPACED, _default_refusal)
_CUSTOM: Final = SelectableFields(_NAMESPACED)
_CUSTOM_OF_CLUSTER: Final = SelectableFields(_NAME)

# API version, plural
_SELECTABLE: Final[dict[tuple[str, str], SelectableFields]] = {
    ("v1", "pods"): SelectableFields(
        _NAMESPACED
        | _same("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName")
        | _same("spec.hostNetwork", absent="false")
        | _same("status.phase", "status.nominatedNodeName")
        | {
            "spec.host": _field("spec.nodeName"),
            "status.podIP": _field("status.podIP", "status.podIPs.0.ip"),
            # The label is accepted, and pods have no value for it.
            "status.podIPs": SelectableField(()),
        }
    ),
    ("v1", "nodes"): SelectableFields(_NAME | _same("spec.unschedulable", absent="false")),
    ("v1", "namespaces"): SelectableFields(_NAME | _same("status.phase")),
    ("v1", "secrets"): SelectableFields(_NAMESPACED | _same("type")),
    ("v1", "services"): SelectableFields(_NAMESPACED | _same("spec.clusterIP", "spec.type")),
    ("v1", "replicationcontrollers"): SelectableFields(_NAMESPACED | _same("status.replicas", absent="0")),
    ("v1", "events"): SelectableFields(
        _NAMESPACED
        | _same(*[f"involvedObject.{name}" for name in _REFERENCE], "reason", "reportingComponent", "type")
        | {"source": _field("source.component", "reportingComponent")}
    ),
    # Events are stored in their core/v1 form.
    ("events.k8s.io/v1", "events"): SelectableFields(
        _NAMESPACED
        | {f"regarding.{name}": _field(f"involvedObject.{name}") for name in _REFERENCE}
        | {"reportingController": _field("reportingComponent")}
        | _same("reason", "type")
    ),
    ("batch/v1", "jobs"): SelectableFields(
        _NAMESPACED | {"status.successful": _field("status.succeeded", absent="0")},
        lambda label: f"field label {_quote(label)} not supported for Job",
    ),
    ("resource.k8s.io/v1", "resourceslices"): SelectableFields(
        _NAME | _same("spec.nodeName", "spec.driver", "spec.pool.name"),
        lambda label: f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
    ),
    # Custom resources, whose definitions have no selectableFields.
    ("appgroup.diktyo.x-k8s.io/v1alpha1", "appgroups"): _CUSTOM,
    ("cluster.karmada.io/v1alpha1", "clusters"): _CUSTOM_OF_CLUSTER,
    ("kueue.x-k8s.io/v1beta1", "workloads"): _CUSTOM,
    ("networktopology.diktyo.x-k8s.io/v1alpha1", "networktopologies"): _CUSTOM,
    ("scheduling.x-k8s.io/v1alpha1", "elasticquotas"): _CUSTOM,
    ("scheduling.x-k8s.io/v1alpha1", "podgroups"): _CUSTOM,
    ("security-profiles-operator.x-k8s.io/v1beta1", "seccompprofiles"): _CUSTOM,
    ("topology.node.k8s.io/v1alpha2", "noderesourcetopologies"): _CUSTOM_OF_CLUSTER,
}


def selectable_fields(resource: ResourceType) -> SelectableFields:
    """Return the fields that can restrict lists and watches of a resource: at least the name."""
    return _SELECTABLE.get((resource.api_version, resource.plural), _DEFAULT)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on a field."""

    field: SelectableField
    value: str
    equal: bool

    def matches(self, obj: Json) -> bool:
        """Return whether the field's text equals (or differs from) the value."""
        return (self.field.text(obj) == self.value) is self.equal


def name_requirement(name: str) -> FieldRequirement:
    """Return the condition that an object has this name."""
    return FieldRequirement(_NAME["metadata.name"], name, True)


def parse_field_selector(text: str, resource: ResourceType) -> tuple[FieldRequirement, ...]:
    r"""Parse `a.b=c,d!=e`; `\,`, `\=` and `\\` stand for themselves in a value.

    Raises:
        ApiError: 400, the text is not a field selector, or the resource cannot be selected by one of its labels.
    """
    selectable = selectable_fields(resource)
    # The API server sorts the terms, so that of several mistakes it names the same one.
    terms = [_parsed_term(term, text) for term in sorted(_terms(text)) if term]
    requirements = []
    for label, operator, value in terms:
        if label not in selectable.fields:
            raise bad_request(selectable.refusal(label))
        requirements.append(FieldRequirement(selectable.fields[label], value, operator != "!="))
    return tuple(requirements)


def _terms(text: str) -> list[str]:
    """Return the parts between commas that no backslash escapes."""
    return re.findall(r"(?:\\.|\\\Z|[^,\\])+", text, re.DOTALL)


def _parsed_term(term: str, text: str) -> tuple[str, str, str]:
    """Label, operator and value."""
    parts = _OPERATOR.fullmatch(term)
    if parts is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    label, operator, value = parts.groups()
    return label, operator, _unescape(value)


def _unescape(value: str) -> str:
    characters = iter(value)
    plain = []
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            if not character or character not in _ESCAPED:
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
        elif character in _ESCAPED:
            raise _unescaped_character(character)
        plain.append(character)
    return "".join(plain)


def _unescaped_character(character: str) -> ApiError:
    return bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
