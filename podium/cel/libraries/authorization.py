"""The functions of authorization checks. Selectors have no authorizer variable, so none of them ever runs."""

from __future__ import annotations

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload


def _unreachable(*_arguments: object) -> None:
    raise EvaluationError("device selectors have no authorizer")


_SIGNATURES = (
    ("authorizer_path", "Authorizer.path(string) -> PathCheck"),
    ("authorizer_group", "Authorizer.group(string) -> GroupCheck"),
    ("authorizer_serviceaccount", "Authorizer.serviceAccount(string, string) -> Authorizer"),
    ("authorizer_fieldselector", "ResourceCheck.fieldSelector(string) -> ResourceCheck"),
    ("authorizer_labelselector", "ResourceCheck.labelSelector(string) -> ResourceCheck"),
    ("groupcheck_resource", "GroupCheck.resource(string) -> ResourceCheck"),
    ("resourcecheck_subresource", "ResourceCheck.subresource(string) -> ResourceCheck"),
    ("resourcecheck_namespace", "ResourceCheck.namespace(string) -> ResourceCheck"),
    ("resourcecheck_name", "ResourceCheck.name(string) -> ResourceCheck"),
    ("pathcheck_check", "PathCheck.check(string) -> Decision"),
    ("resourcecheck_check", "ResourceCheck.check(string) -> Decision"),
    ("decision_allowed", "Decision.allowed() -> bool"),
    ("decision_reason", "Decision.reason() -> string"),
    ("decision_errored", "Decision.errored() -> bool"),
    ("decision_error", "Decision.error() -> string"),
)
OVERLOADS = tuple(Overload(name, signature, _unreachable) for name, signature in _SIGNATURES)
