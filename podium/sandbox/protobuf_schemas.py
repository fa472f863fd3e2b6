"""Field numbers of the kinds that kubectl sends as protobuf, for the fields of `kubectl create`, drain and reviews.

Source: generated.proto of apimachinery and k8s.io/api (v0.36).
Differs: fields that no kubectl command sets are missing here, and are ignored if a client sends them.
"""

from __future__ import annotations

from typing import Any

# A field's type: the name of a scalar, the schema of a message, a list with its item type, or a Map of its value type.
Type = Any
Schema = dict[int, tuple[str, Type]]


class Map:
    """A map of strings to values of one type."""

    __slots__ = ("value",)

    def __init__(self, value: Type) -> None:
        self.value = value


ENVELOPE: Schema = {1: ("type", {1: ("apiVersion", "string"), 2: ("kind", "string")}), 2: ("raw", "bytes")}

_STRINGS = ["string"]
_LABELS = Map("string")
_OBJECT_META: Schema = {
    1: ("name", "string"),
    2: ("generateName", "string"),
    3: ("namespace", "string"),
    5: ("uid", "string"),
    6: ("resourceVersion", "string"),
    11: ("labels", _LABELS),
    12: ("annotations", _LABELS),
    14: ("finalizers", _STRINGS),
}
_LABEL_SELECTOR: Schema = {
    1: ("matchLabels", _LABELS),
    2: ("matchExpressions", [{1: ("key", "string"), 2: ("operator", "string"), 3: ("values", _STRINGS)}]),
}
_DELETE_OPTIONS: Schema = {
    1: ("gracePeriodSeconds", "int"),
    2: ("preconditions", {1: ("uid", "string"), 2: ("resourceVersion", "string")}),
    3: ("orphanDependents", "bool"),
    4: ("propagationPolicy", "string"),
    5: ("dryRun", _STRINGS),
}
_METADATA: Schema = {1: ("metadata", _OBJECT_META)}

_PORT: Schema = {1: ("name", "string"), 3: ("containerPort", "int"), 4: ("protocol", "string")}
_CONTAINER: Schema = {
    1: ("name", "string"),
    2: ("image", "string"),
    3: ("command", _STRINGS),
    4: ("args", _STRINGS),
    6: ("ports", [_PORT]),
    7: ("env", [{1: ("name", "string"), 2: ("value", "string")}]),
    8: ("resources", {1: ("limits", Map("quantity")), 2: ("requests", Map("quantity"))}),
    14: ("imagePullPolicy", "string"),
}
_POD_SPEC: Schema = {
    2: ("containers", [_CONTAINER]),
    3: ("restartPolicy", "string"),
    4: ("terminationGracePeriodSeconds", "int"),
    7: ("nodeSelector", _LABELS),
    8: ("serviceAccountName", "string"),
    10: ("nodeName", "string"),
    19: ("schedulerName", "string"),
    20: ("initContainers", [_CONTAINER]),
    24: ("priorityClassName", "string"),
}
_POD_TEMPLATE: Schema = {1: ("metadata", _OBJECT_META), 2: ("spec", _POD_SPEC)}
_DEPLOYMENT_SPEC: Schema = {
    1: ("replicas", "int"),
    2: ("selector", _LABEL_SELECTOR),
    3: ("template", _POD_TEMPLATE),
}
_JOB_SPEC: Schema = {
    1: ("parallelism", "int"),
    2: ("completions", "int"),
    6: ("template", _POD_TEMPLATE),
    7: ("backoffLimit", "int"),
}
_BUDGET_SPEC: Schema = {
    1: ("minAvailable", "int-or-string"),
    2: ("selector", _LABEL_SELECTOR),
    3: ("maxUnavailable", "int-or-string"),
}
_SERVICE_PORT: Schema = {
    1: ("name", "string"),
    2: ("protocol", "string"),
    3: ("port", "int"),
    4: ("targetPort", "int-or-string"),
    5: ("nodePort", "int"),
}
_SERVICE_SPEC: Schema = {
    1: ("ports", [_SERVICE_PORT]),
    2: ("selector", _LABELS),
    3: ("clusterIP", "string"),
    4: ("type", "string"),
    10: ("externalName", "string"),
}
_RULES: Schema = {
    2: (
        "rules",
        [
            {
                1: ("verbs", _STRINGS),
                2: ("apiGroups", _STRINGS),
                3: ("resources", _STRINGS),
                4: ("resourceNames", _STRINGS),
                5: ("nonResourceURLs", _STRINGS),
            }
        ],
    )
}
_SUBJECT: Schema = {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")}
_ROLE_BINDING: Schema = _METADATA | {
    2: ("subjects", [_SUBJECT]),
    3: ("roleRef", {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")}),
}

SCHEMAS: dict[str, Schema] = {
    "Namespace": _METADATA,
    "ServiceAccount": _METADATA,
    "ConfigMap": _METADATA | {2: ("data", _LABELS), 3: ("binaryData", Map("base64")), 4: ("immutable", "bool")},
    "Secret": _METADATA | {2: ("data", Map("base64")), 3: ("type", "string"), 5: ("immutable", "bool")},
    "ResourceQuota": _METADATA | {2: ("spec", {1: ("hard", Map("quantity")), 2: ("scopes", _STRINGS)})},
    "Service": _METADATA | {2: ("spec", _SERVICE_SPEC)},
    "Deployment": _METADATA | {2: ("spec", _DEPLOYMENT_SPEC)},
    "Job": _METADATA | {2: ("spec", _JOB_SPEC)},
    "PodDisruptionBudget": _METADATA | {2: ("spec", _BUDGET_SPEC)},
    "Role": _METADATA | _RULES,
    "ClusterRole": _METADATA | _RULES | {3: ("aggregationRule", {1: ("clusterRoleSelectors", [_LABEL_SELECTOR])})},
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "PriorityClass": _METADATA
    | {
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "DeleteOptions": _DELETE_OPTIONS,
    "Eviction": _METADATA | {2: ("deleteOptions", _DELETE_OPTIONS)},
    "TokenRequest": _METADATA | {2: ("spec", {1: ("audiences", _STRINGS), 4: ("expirationSeconds", "int")})},
    # The content of a review does not matter, since the answer is always yes.
    "SelfSubjectAccessReview": _METADATA,
    "SelfSubjectRulesReview": _METADATA,
    "SelfSubjectReview": _METADATA,
}
