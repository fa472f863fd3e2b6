"""Hashes the names in a recording, such that it still replays to the same decisions.

Owns which texts are names. Every other text is a word of the API, a quantity, a time, or a number, and stays. A text in
a field that is not listed here counts as a name: a new field can make a replay diverge, but cannot disclose a name.

Only this process knows the key of the hash. Each run of letters and digits is hashed by itself, so that equal texts
stay equal and composed texts stay composed: the claim `web-0-data` of the pod `web-0` and its volume `data`, or the key
`default/web-0`. The order of texts is lost.

Cost: about 50 us per object, on the recorder's thread.
"""

from __future__ import annotations

import os
import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import msgspec

from podium.objects import resource_types
from podium.objects.api_errors import REASONS
from podium.recording.entries import RAISED, REFUSED, Decision

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 10
_TOKENS_KEPT: Final = 1 << 18

_TOKEN: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_OWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "csi.aws.com", "gke.io", "csi.azure.com")
"""Keys of labels and taints in these domains have a public meaning, and stay."""

_CONSTANTS: Final = frozenset(("", "latest", "true", "false", "yes", "no", "0.0.0.0", "::", "metadata.name"))
_KEPT_VALUES_OF: Final = frozenset(
    (
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "pv.kubernetes.io/migrated-to",
        "pv.kubernetes.io/provisioned-by",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/storage-provisioner",
    )
)
"""Labels and annotations whose values are operating systems, architectures, and drivers."""

_AMOUNTS: Final = frozenset(
    (
        "allocatable",
        "allocated_resources",
        "attributes",
        "capacity",
        "consumed_capacity",
        "counters",
        "limits",
        "max",
        "min",
        "min_resources",
        "overhead",
        "requests",
        "usage",
    )
)
"""Fields with amounts of resources by their names, which stay."""

_WORDS: Final = frozenset(
    (
        "access_modes",
        "action",
        "allocation_mode",
        "allocation_timestamp",
        "attacher",
        "creation_timestamp",
        "declared_features",
        "default",
        "deletion_timestamp",
        "disrupted_pods",
        "disruption_mode",
        "distinct_attribute",
        "driver",
        "effect",
        "expression",
        "extended_resource_name",
        "last_transition_time",
        "match_attribute",
        "maximum_volume_size",
        "node_affinity_policy",
        "node_taints_policy",
        "operator",
        "phase",
        "preemption_policy",
        "protocol",
        "provisioner",
        "resource_version",
        "restart_policy",
        "schedule_start_time",
        "scheduler_name",
        "source",
        "start_time",
        "step",
        "string",
        "valid_values",
        "version",
        "volume_binding_mode",
        "volume_mode",
        "when_unsatisfiable",
    )
)
"""Fields whose texts stay, in every type."""

_WORDS_OF: Final = frozenset(
    (
        ("AzureDiskVolume", "kind"),
        ("CSINodeDriver", "name"),
        ("Counter", "value"),
        ("DeviceCapacity", "value"),
        ("NodeMetric", "type"),
        # NUMA nodes are told apart by number, and their resources by name.
        ("NodeResourceTopology", "topology_policies"),
        *(("NRTAttribute", name) for name in ("name", "value")),
        ("NRTCost", "name"),
        *(("NRTResource", name) for name in ("name", "allocatable", "available")),
        *(("NRTZone", name) for name in ("name", "type")),
    )
)
"""Fields of one type whose texts stay."""

_API_WORDS: Final = REASONS | frozenset(
    (
        # Kinds of owners and of other references, which plugins tell apart; and a resource.
        *(resource.kind for resource in resource_types.ALL),
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "Node",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "pods",
        # Types of conditions.
        "ContainersReady",
        "DiskPressure",
        "DisruptionTarget",
        "Initialized",
        "MemoryPressure",
        "NetworkUnavailable",
        "PIDPressure",
        "PodGroupScheduled",
        "PodReadyToStartContainers",
        "PodResizeInProgress",
        "PodResizePending",
        "PodScheduled",
        "Ready",
        # Statuses of conditions.
        "True",
        "False",
        "Unknown",
        # Reasons: of conditions, and why pods have failed.
        "ContainersNotReady",
        "Deferred",
        "Evicted",
        "Infeasible",
        "NodeAffinity",
        "NodeShutdown",
        "PodCompleted",
        "PodFailed",
        "Preempted",
        "Preempting",
        "PreemptionByScheduler",
        "Scheduled",
        "SchedulerError",
        "SchedulingGated",
        "Terminated",
        "TerminationByKubelet",
        "UnexpectedAdmissionError",
        "Unschedulable",
    )
)
"""Words of the API that stay in fields that may hold any word."""
_OUT_OF: Final = "OutOf"
"""The prefix of a kubelet's reason when it lacks a resource for a pod. Names of resources stay."""

_API_WORDS_IN: Final = frozenset(
    ("binding_conditions", "binding_failure_conditions", "kind", "reason", "resource", "status", "type")
)
"""Fields with such words. Their other words may come from tenants and webhooks."""

_OWN_GROUPS: Final = frozenset(("", "apps", "autoscaling", "batch", "extensions", "policy"))
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")

_NAMES_OF: Final = frozenset(
    (
        ("DeviceAllocationConfiguration", "requests"),
        ("DeviceClaimConfiguration", "requests"),
        ("DeviceConstraint", "requests"),
    )
)
"""Fields that hold names in this type, but not in others."""

_KEYS: Final = frozenset(("finalizers", "key", "match_label_keys", "mismatch_label_keys", "topology_key"))
"""Fields with keys of labels and taints, and names of the same form."""

_VALUES: Final = frozenset(("annotations", "labels", "match_labels", "node_selector", "selector", "value", "values"))
"""Fields with values of labels and taints, by key where they are maps."""

_WHOLE: Final = frozenset(("CSIDriver",))
"""Types that hold no names but those of drivers, and stay whole."""

_WHOLE_FIELDS: Final = frozenset((("NodeMetricsReport", "metadata"),))
"""Fields that stay whole: a report has the name of its source, whose address is also in the configuration."""

_MAPS_BY_NODE: Final = frozenset(("NodePowerModel", "nodePowerModel"))
"""Members of a configuration that are maps by node."""

_ARGS: Final = {
    "topologyKey": "key",
    "key": "key",
    "matchLabelKeys": "key",
    "values": "value",
    "namespace": "text",
    "resourceNamespace": "text",
    "resourceName": "text",
    "kubeconfig": "text",
}
"""Members of a configuration with names, and the method that hashes each."""


class NameHasher:
    """Hashes the names in the entries of one recording.

    Args:
        secret: the key, which is never stored.
    """

    def __init__(self, secret: bytes) -> None:
        @lru_cache(_TOKENS_KEPT)
        def hash_token(token: str) -> str:
            digest = blake2b(token.encode("utf-8", "surrogatepass"), key=secret, digest_size=_DIGEST_BYTES).digest()
            return b32encode(digest).decode().lower()

        self._hash_token = hash_token

    @classmethod
    def with_new_key(cls) -> NameHasher:
        """Make a hasher with a random key."""
        return cls(os.urandom(_KEY_BYTES))

    # ------------------------------------------------------------ texts

    def text(self, text: str) -> str:
        """Hash a name, or a text that is composed of names."""
        if text in _CONSTANTS:
            return text
        return _TOKEN.sub(lambda match: match[0] if match[0] in _CONSTANTS else self._hash_token(match[0]), text)

    def key(self, text: str) -> str:
        """Hash the key of a label or taint; keys with a public meaning stay."""
        domain, slash, _ = text.rpartition("/")
        return text if slash and _is_own_domain(domain) else self.text(text)

    def message(self, text: str) -> str:
        """Hash a message for people as a whole: it contains names, and only its equality matters."""
        return text and self._hash_token(text)

    def value(self, text: str) -> str:
        """Hash the value of a label or taint; integers stay, since `Gt` and `Lt` compare them."""
        return text if _NUMBER.fullmatch(text) else self.text(text)

    def word(self, text: str) -> str:
        """Hash a word, unless it is one of the API."""
        return text if text in _API_WORDS else self.text(text)

    def api_version(self, text: str) -> str:
        """Hash the API version of a kind; those of Kubernetes itself stay."""
        group, _, version = text.rpartition("/")
        is_version = _VERSION.fullmatch(version) is not None
        return text if is_version and self.api_group(group) == group else self.text(text)

    def api_group(self, text: str) -> str:
        """Hash the API group of a kind; those of Kubernetes itself stay."""
        return text if text in _OWN_GROUPS or _is_own_domain(text) else self.text(text)

    # ------------------------------------------------------------ objects

    def item(self, item: Any) -> Any:
        """Return the object with its names hashed, as values that decode to its type."""
        return self._struct(item)

    def values(self, item: Any) -> list[Any]:
        """Return the values of the object's fields in order, with its names hashed."""
        kind = type(item).__name__
        return [self._field(item, kind, name, getattr(item, name)) for name in item.__struct_fields__]

    def _struct(self, item: msgspec.Struct) -> dict[str, Any]:
        kind = type(item)
        is_whole = kind.__name__ in _WHOLE
        config, values = kind.__struct_config__, {}
        if config.tag_field is not None:
            values[config.tag_field] = config.tag
        for name, wire_name in _fields(kind):
            value = getattr(item, name)
            stays = is_whole or (kind.__name__, name) in _WHOLE_FIELDS
            values[wire_name] = msgspec.to_builtins(value) if stays else self._field(item, kind.__name__, name, value)
        return values

    def _field(self, item: msgspec.Struct, kind: str, name: str, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, (tuple, list)):
            return [self._field(item, kind, name, element) for element in value]
        if isinstance(value, Mapping):
            return self._map(item, kind, name, value)
        if (kind, name) in _NAMES_OF:
            return self.text(value)
        if name in _WORDS or name in _AMOUNTS or (kind, name) in _WORDS_OF:
            return value
        if name in _VALUES:
            return self._value_of(getattr(item, "key", ""), value)
        return self._hash_of(name)(value)

    def _hash_of(self, name: str) -> Callable[[str], str]:
        """Return the method that hashes a field of that name."""
        if name in _API_WORDS_IN:
            return self.word
        if name in _KEYS:
            return self.key
        methods: dict[str, Callable[[str], str]] = {
            "message": self.message,
            "api_version": self.api_version,
            "api_group": self.api_group,
        }
        return methods.get(name, self.text)

    def _map(self, item: msgspec.Struct, kind: str, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
        if name in _VALUES:
            return {self.key(key): self._value_of(key, text) for key, text in value.items()}
        if name in _AMOUNTS:
            return {key: self._field(item, kind, name, member) for key, member in value.items()}
        return {self.key(key): self._field(item, kind, name, member) for key, member in value.items()}

    def _value_of(self, key: str, value: str) -> str:
        """Hash the value of that label or annotation."""
        if key in _KEPT_VALUES_OF:
            return value
        return self.text(value) if key == "metadata.name" else self.value(value)

    # ------------------------------------------------------------ entries and descriptions

    def decision(self, decision: Decision) -> Decision:
        """Hash the names of a decision."""
        return decision._replace(
            uid=self.text(decision.uid),
            pod=self.text(decision.pod),
            node=self.text(decision.node),
            nominated=None if decision.nominated is None else self.text(decision.nominated),
            victims=tuple(map(self.text, decision.victims)),
        )

    def failure(self, failure: tuple[str, str, str]) -> tuple[str, str, str]:
        """Hash the names in uid, result and message of a `FAILED`."""
        uid, result, message = failure
        return self.text(uid), result, self.message(message)

    def answer(self, outcome: int, value: Any) -> Any:
        """Hash the names in the value of an `ANSWER` without an object."""
        if outcome == REFUSED:
            name, message, code, reason, *details = value
            return (name, self.message(message), code, self.word(reason), *details)
        if outcome == RAISED:
            return self.message(value)
        # A string is the reason why a pod failed, see `ApiClient.read_failure`.
        return self.word(value) if isinstance(value, str) and not value.startswith(_OUT_OF) else value

    def description(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """Hash the names in the description of a recording; reduce plugins' files to their base names."""
        references = [reference.rpartition("/")[2] for reference in description["plugins"]]
        return {**description, "config": self._config(description["config"]), "plugins": references, "names": "hashed"}

    def _config(self, value: Any, member: str = "") -> Any:
        if isinstance(value, Mapping):
            if member == "matchLabels":
                return {self.key(key): self.value(text) for key, text in value.items()}
            if member in _MAPS_BY_NODE:
                return {self.text(key): element for key, element in value.items()}
            return {key: self._config(element, key) for key, element in value.items()}
        if isinstance(value, list):
            return [self._config(element, member) for element in value]
        if isinstance(value, str) and member in _ARGS:
            method: Callable[[str], str] = getattr(self, _ARGS[member])
            return method(value)
        return value


def _is_own_domain(domain: str) -> bool:
    return any(domain == parent or domain.endswith("." + parent) for parent in _OWN_DOMAINS)


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind))
