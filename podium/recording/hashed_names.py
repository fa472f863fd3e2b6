"""Makes the names in a recording unreadable, so that it still replays to the same decisions.

Owns which texts are names. Every other text is one of the API's own words, a quantity, a time, or a number, and stays.
A text whose field is not listed here counts as a name: a new field can make a replay differ, and never a name readable.

The hash is keyed, with a key that only this process knows. Each run of letters and digits is hashed by itself. So texts
that are equal stay equal, and texts that are made of others stay so: the claim `web-0-data` of the pod `web-0` and its
volume `data`, or the key `default/web-0`. The order of texts is lost.

Cost: about 50 us for each object, on the recorder's thread.
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
from podium.recording import tape

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 10
_TOKENS_KEPT: Final = 1 << 18

_TOKEN: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_OWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "csi.aws.com", "gke.io", "csi.azure.com")
"""Keys of labels and taints in these domains and below have a meaning, and name nobody."""

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
        "min_resources",
        "overhead",
        "requests",
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
        "max",
        "maximum_volume_size",
        "min",
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
"""Fields whose texts stay, in whatever object."""

_WORDS_OF: Final = frozenset(
    (("AzureDiskVolume", "kind"), ("CSINodeDriver", "name"), ("Counter", "value"), ("DeviceCapacity", "value"))
)
"""Fields of one type whose texts stay."""

_API_WORDS: Final = REASONS | frozenset(
    (
        # Kinds of owners, and of what else objects refer to, by which plugins tell them apart; and a resource.
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
"""Words of the API that stay in fields which take any other word, too."""
_OUT_OF: Final = "OutOf"
"""How the reason of a kubelet begins that lacks a resource for a pod. Names of resources stay."""

_API_WORDS_IN: Final = frozenset(
    ("binding_conditions", "binding_failure_conditions", "kind", "reason", "resource", "status", "type")
)
"""Fields that have such words; what else is in them, tenants and webhooks have chosen."""

_OWN_GROUPS: Final = frozenset(("", "apps", "autoscaling", "batch", "extensions", "policy"))
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")

_NAMES_OF: Final = frozenset(
    (
        ("DeviceAllocationConfiguration", "requests"),
        ("DeviceClaimConfiguration", "requests"),
        ("DeviceConstraint", "requests"),
    )
)
"""Fields of one type with names, where others of that name have none."""

_KEYS: Final = frozenset(("finalizers", "key", "match_label_keys", "mismatch_label_keys", "topology_key"))
"""Fields with keys of labels and taints, and names of the same form."""

_VALUES: Final = frozenset(("annotations", "labels", "match_labels", "node_selector", "selector", "value", "values"))
"""Fields with values of labels and taints, by key where they are maps."""

_WHOLE: Final = frozenset(("CSIDriver",))
"""Types that name no more than drivers."""

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
"""Members of a configuration with names, and what they are."""


class NameHasher:
    """Hashes the names in the entries of one recording.

    Args:
        secret: the key; never written anywhere.
    """

    def __init__(self, secret: bytes) -> None:
        @lru_cache(_TOKENS_KEPT)
        def hashed(token: str) -> str:
            digest = blake2b(token.encode("utf-8", "surrogatepass"), key=secret, digest_size=_DIGEST_BYTES).digest()
            return b32encode(digest).decode().lower()

        self._hashed = hashed

    @classmethod
    def with_new_key(cls) -> NameHasher:
        """A hasher with a random key that nobody can know."""
        return cls(os.urandom(_KEY_BYTES))

    # ------------------------------------------------------------ texts

    def text(self, text: str) -> str:
        """A name, or a text that is made of names."""
        if text in _CONSTANTS:
            return text
        return _TOKEN.sub(lambda found: found[0] if found[0] in _CONSTANTS else self._hashed(found[0]), text)

    def key(self, text: str) -> str:
        """The key of a label or taint; those that have a meaning of their own stay."""
        domain, slash, _ = text.rpartition("/")
        return text if slash and _is_own_domain(domain) else self.text(text)

    def message(self, text: str) -> str:
        """Words for a reader, as a whole: names are in them, and only whether they are equal matters."""
        return text and self._hashed(text)

    def value(self, text: str) -> str:
        """The value of a label or taint; integers stay, since `Gt` and `Lt` compare them."""
        return text if _NUMBER.fullmatch(text) else self.text(text)

    def word(self, text: str) -> str:
        """A word of the API, which stays, or one that somebody else has chosen."""
        return text if text in _API_WORDS else self.text(text)

    def api_version(self, text: str) -> str:
        """The API version, or the group, of a kind; those of Kubernetes itself stay."""
        group, _, version = text.rpartition("/")
        is_version = _VERSION.fullmatch(version) is not None
        return text if is_version and self.api_group(group) == group else self.text(text)

    def api_group(self, text: str) -> str:
        """The API group of a kind; those of Kubernetes itself stay."""
        return text if text in _OWN_GROUPS or _is_own_domain(text) else self.text(text)

    # ------------------------------------------------------------ objects

    def item(self, item: Any) -> Any:
        """The object as values that decode to it, with its names hashed."""
        return self._struct(item)

    def values(self, item: Any) -> list[Any]:
        """The values of the object's fields in order, with its names hashed."""
        kind = type(item).__name__
        return [self._field(item, kind, name, getattr(item, name)) for name in item.__struct_fields__]

    def _struct(self, item: msgspec.Struct) -> dict[str, Any]:
        kind = type(item)
        is_whole = kind.__name__ in _WHOLE
        config, found = kind.__struct_config__, {}
        if config.tag_field is not None:
            found[config.tag_field] = config.tag
        for name, wire_name in _fields(kind):
            value = getattr(item, name)
            found[wire_name] = msgspec.to_builtins(value) if is_whole else self._field(item, kind.__name__, name, value)
        return found

    def _field(self, item: msgspec.Struct, kind: str, name: str, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, (tuple, list)):
            return [self._field(item, kind, name, each) for each in value]
        if isinstance(value, Mapping):
            return self._map(item, kind, name, value)
        if (kind, name) in _NAMES_OF:
            return self.text(value)
        if name in _WORDS or name in _AMOUNTS or (kind, name) in _WORDS_OF:
            return value
        if name in _VALUES:
            return self._labelled(getattr(item, "key", ""), value)
        return self._change_of(name)(value)

    def _change_of(self, name: str) -> Callable[[str], str]:
        """What becomes of a text in a field of that name."""
        if name in _API_WORDS_IN:
            return self.word
        if name in _KEYS:
            return self.key
        own: dict[str, Callable[[str], str]] = {
            "message": self.message,
            "api_version": self.api_version,
            "api_group": self.api_group,
        }
        return own.get(name, self.text)

    def _map(self, item: msgspec.Struct, kind: str, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
        if name in _VALUES:
            return {self.key(key): self._labelled(key, each) for key, each in value.items()}
        if name in _AMOUNTS:
            return {key: self._field(item, kind, name, each) for key, each in value.items()}
        return {self.key(key): self._field(item, kind, name, each) for key, each in value.items()}

    def _labelled(self, key: str, value: str) -> str:
        """The value under that key."""
        if key in _KEPT_VALUES_OF:
            return value
        return self.text(value) if key == "metadata.name" else self.value(value)

    # ------------------------------------------------------------ entries and descriptions

    def decided(self, decided: tape.Decided) -> tape.Decided:
        """The decision with its names hashed."""
        return decided._replace(
            uid=self.text(decided.uid),
            pod=self.text(decided.pod),
            node=self.text(decided.node),
            nominated=None if decided.nominated is None else self.text(decided.nominated),
            victims=tuple(map(self.text, decided.victims)),
        )

    def failed(self, failed: tuple[str, str, str]) -> tuple[str, str, str]:
        """The uid, the result and the message of a `FAILED` with the names hashed."""
        uid, result, message = failed
        return self.text(uid), result, self.message(message)

    def answer(self, outcome: int, value: Any) -> Any:
        """What an `ANSWER` without an object says, with the names hashed."""
        if outcome == tape.REFUSED:
            name, message, code, reason, *rest = value
            return (name, self.message(message), code, self.word(reason), *rest)
        if outcome == tape.RAISED:
            return self.message(value)
        # The value of a call may be the reason why a pod has failed.
        return self.word(value) if isinstance(value, str) and not value.startswith(_OUT_OF) else value

    def description(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """What a recording says of its scheduler, with the names hashed; of plugins' files only their own names."""
        references = [each.rpartition("/")[2] for each in described["plugins"]]
        return {**described, "config": self._config(described["config"]), "plugins": references, "names": "hashed"}

    def _config(self, value: Any, of: str = "") -> Any:
        if isinstance(value, Mapping):
            if of == "matchLabels":
                return {self.key(key): self.value(each) for key, each in value.items()}
            return {key: self._config(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self._config(each, of) for each in value]
        if isinstance(value, str) and of in _ARGS:
            change: Callable[[str], str] = getattr(self, _ARGS[of])
            return change(value)
        return value


def _is_own_domain(domain: str) -> bool:
    return any(domain == own or domain.endswith("." + own) for own in _OWN_DOMAINS)


@lru_cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, each.encode_name) for each in msgspec.structs.fields(kind))
