"""The table of all fields of ``KubeSchedulerConfiguration``: key, attribute and type.

Owns the mapping of JSON keys to attributes, and the list of empty values that upstream replaces or omits. The defaults
themselves are in the dataclasses. Nothing here validates.

Source: json tags of staging kube-scheduler/config/v1, component-base/config/v1alpha1, core/v1 (kube 1.36.2)
"""

from collections.abc import Mapping
from typing import Any, Final

from podium.config import args, types
from podium.config.document import child
from podium.config.extension_points import ExtensionPoint
from podium.config.field_errors import ErrorKind, FieldError, show
from podium.config.scalars import (
    BASE64,
    BOOL,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    OPTIONAL_DURATION,
    STRING,
)
from podium.config.shapes import (
    UNSET,
    Key,
    ListOf,
    MapOf,
    Plain,
    Reading,
    Record,
    Shape,
    read_keys,
)
from podium.lib.yaml_reader import Node

STRINGS: Final = ListOf(STRING)


def _plain(name: str, shape: Shape, *, omit_empty: bool = True) -> Key:
    return Key(name, name, shape, omit_empty=omit_empty)


# --- core/v1 fragments --------------------------------------------------------------------------------------------

_SELECTOR_REQUIREMENTS: Final = ListOf(
    Plain(
        _plain("key", STRING, omit_empty=False),
        _plain("operator", STRING, omit_empty=False),
        _plain("values", STRINGS),
    ),
)
_NODE_SELECTOR_TERM: Final = Plain(
    _plain("matchExpressions", _SELECTOR_REQUIREMENTS),
    _plain("matchFields", _SELECTOR_REQUIREMENTS),
)
NODE_AFFINITY: Final = Plain(
    _plain(
        "requiredDuringSchedulingIgnoredDuringExecution",
        Plain(_plain("nodeSelectorTerms", ListOf(_NODE_SELECTOR_TERM), omit_empty=False)),
    ),
    _plain(
        "preferredDuringSchedulingIgnoredDuringExecution",
        ListOf(
            Plain(
                _plain("weight", INT32, omit_empty=False),
                _plain("preference", _NODE_SELECTOR_TERM, omit_empty=False),
            )
        ),
    ),
)
_LABEL_SELECTOR: Final = Plain(
    _plain("matchLabels", MapOf(STRING)),
    _plain("matchExpressions", _SELECTOR_REQUIREMENTS),
)
_TOPOLOGY_SPREAD_CONSTRAINT: Final = Record(
    args.TopologySpreadConstraint,
    Key("maxSkew", "max_skew", INT32),
    Key("topologyKey", "topology_key", STRING),
    Key("whenUnsatisfiable", "when_unsatisfiable", STRING),
    Key("labelSelector", "label_selector", _LABEL_SELECTOR),
    Key("minDomains", "min_domains", INT32),
    Key("nodeAffinityPolicy", "node_affinity_policy", STRING),
    Key("nodeTaintsPolicy", "node_taints_policy", STRING),
    Key("matchLabelKeys", "match_label_keys", STRINGS, omit_empty=True),
)

# --- plugin args --------------------------------------------------------------------------------------------------

_RESOURCES: Final = ListOf(
    Record(args.ResourceSpec, Key("name", "name", STRING), Key("weight", "weight", INT64, zero_is_default=True))
)
_SHAPE: Final = ListOf(
    Record(args.UtilizationShapePoint, Key("utilization", "utilization", INT32), Key("score", "score", INT32))
)
_SCORING_STRATEGY: Final = Record(
    args.ScoringStrategy,
    Key("type", "type", STRING, omit_empty=True),
    Key("resources", "resources", _RESOURCES, zero_is_default=True),
    Key(
        "requestedToCapacityRatio",
        "requested_to_capacity_ratio",
        Record(args.RequestedToCapacityRatio, Key("shape", "shape", _SHAPE, omit_empty=True)),
    ),
)
_ARGS: Final = (
    Record(
        args.DefaultPreemptionArgs,
        Key("minCandidateNodesPercentage", "min_candidate_nodes_percentage", INT32),
        Key("minCandidateNodesAbsolute", "min_candidate_nodes_absolute", INT32),
    ),
    Record(
        args.DynamicResourcesArgs,
        Key("filterTimeout", "filter_timeout_s", OPTIONAL_DURATION),
        Key("bindingTimeout", "binding_timeout_s", OPTIONAL_DURATION),
    ),
    Record(
        args.InterPodAffinityArgs,
        Key("hardPodAffinityWeight", "hard_pod_affinity_weight", INT32),
        Key("ignorePreferredTermsOfExistingPods", "ignore_preferred_terms_of_existing_pods", BOOL),
    ),
    Record(args.NodeAffinityArgs, Key("addedAffinity", "added_affinity", NODE_AFFINITY)),
    Record(
        args.NodeResourcesBalancedAllocationArgs,
        Key("resources", "resources", _RESOURCES, zero_is_default=True),
    ),
    Record(
        args.NodeResourcesFitArgs,
        Key("ignoredResources", "ignored_resources", STRINGS, omit_empty=True),
        Key("ignoredResourceGroups", "ignored_resource_groups", STRINGS, omit_empty=True),
        Key("scoringStrategy", "scoring_strategy", _SCORING_STRATEGY),
    ),
    Record(
        args.PodTopologySpreadArgs,
        Key("defaultConstraints", "default_constraints", ListOf(_TOPOLOGY_SPREAD_CONSTRAINT), omit_empty=True),
        Key("defaultingType", "defaulting_type", STRING, zero_is_default=True),
    ),
    Record(
        args.VolumeBindingArgs,
        Key("bindTimeoutSeconds", "bind_timeout_s", INT64),
        Key("shape", "shape", _SHAPE, omit_empty=True),
    ),
)
ARGS_RECORDS: Final[Mapping[type, Record]] = {record.cls: record for record in _ARGS}


class _PluginConfigShape:
    """``{name, args}``, where the name determines the type of the args."""

    zero: Final = types.PluginConfig("")
    _keys: Final = {"name": Key("name", "name", STRING), "args": Key("args", "args", STRING)}

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """Read the entry; the args of in-tree plugins are typed, all others are kept as they are."""
        # Null keeps the default in upstream's decoder, at any depth.
        if not isinstance(node.value, dict):
            return UNSET if node.value is None else reading.wrong_type(node, path, "an object")
        other_fields = Node({key: item for key, item in node.value.items() if key != "args"}, node.line)
        values = read_keys(other_fields, path, self._keys, reading)
        # The name first, since it decides how the args are read, wherever in the object they are.
        name = values.get("name", "") if isinstance(values, dict) else ""
        args_node = node.value.get("args", Node(None, node.line))
        if args_node.value is not None:
            reading.present[child(path, "args")] = args_node.line
        cls = args.ARGS_BY_PLUGIN.get(name)
        if cls is not None:
            return types.PluginConfig(name, _read_args(cls, args_node, child(path, "args"), reading))
        # Args of plugins of users are theirs to check.
        return types.PluginConfig(name, None if args_node.value is None else args.RawArgs(args_node.plain()))

    def write(self, value: types.PluginConfig) -> dict[str, Any]:
        """Write the entry as JSON; typed args include their apiVersion and kind."""
        entry: dict[str, Any] = {"name": value.name}
        if isinstance(value.args, args.RawArgs):
            entry["args"] = value.args.value
        elif value.args is not None:
            head = {"apiVersion": types.API_VERSION, "kind": type(value.args).__name__}
            entry["args"] = head | ARGS_RECORDS[type(value.args)].write(value.args)
        return entry


def _read_args(cls: type[args.InTreeArgs], node: Node, path: str, reading: Reading) -> Any:
    """Read in-tree args; apiVersion and kind may be missing but must not differ. Unreadable args become defaults."""
    record = ARGS_RECORDS[cls]
    if node.value is None:
        return record.zero
    if not isinstance(node.value, dict):
        reading.wrong_type(node, path, "an object")
        return record.zero
    node_fields = dict(node.value)
    for key, head in (("apiVersion", types.API_VERSION), ("kind", cls.__name__)):
        item = node_fields.pop(key, None)
        if item is not None and item.value not in (head, None, ""):
            detail = f"has to match plugin args, expected {show(head)}"
            error = FieldError(child(path, key), ErrorKind.INVALID, item.plain(), detail, item.line)
            reading.errors.add(error)
            if key == "kind":
                return record.zero  # the fields belong to another type
    value = record.read(Node(node_fields, node.line), path, reading)
    return record.zero if value is UNSET else value


# --- the configuration --------------------------------------------------------------------------------------------

_PLUGINS_LIST: Final = ListOf(Record(types.Plugin, Key("name", "name", STRING), Key("weight", "weight", INT32)))
PLUGIN_SET: Final = Record(
    types.PluginSet,
    Key("enabled", "enabled", _PLUGINS_LIST, omit_empty=True),
    Key("disabled", "disabled", _PLUGINS_LIST, omit_empty=True),
)
_PROFILE: Final = Record(
    types.Profile,
    Key("schedulerName", "scheduler_name", STRING),
    Key("percentageOfNodesToScore", "percentage_of_nodes_to_score", INT32),
    Key(
        "plugins",
        "plugins",
        Record(types.Plugins, *(Key(point.value, point.name.lower(), PLUGIN_SET) for point in ExtensionPoint)),
    ),
    Key("pluginConfig", "plugin_config", ListOf(_PluginConfigShape()), omit_empty=True),
)
_TLS_CONFIG: Final = Record(
    types.ExtenderTLSConfig,
    Key("insecure", "insecure", BOOL, omit_empty=True),
    Key("serverName", "server_name", STRING, omit_empty=True),
    Key("certFile", "cert_file", STRING, omit_empty=True),
    Key("keyFile", "key_file", STRING, omit_empty=True),
    Key("caFile", "ca_file", STRING, omit_empty=True),
    Key("certData", "cert_data", BASE64, omit_empty=True),
    Key("keyData", "key_data", BASE64, omit_empty=True),
    Key("caData", "ca_data", BASE64, omit_empty=True),
)
_MANAGED_RESOURCE: Final = Record(
    types.ExtenderManagedResource,
    Key("name", "name", STRING),
    Key("ignoredByScheduler", "ignored_by_scheduler", BOOL, omit_empty=True),
)
_EXTENDER: Final = Record(
    types.Extender,
    Key("urlPrefix", "url_prefix", STRING),
    Key("filterVerb", "filter_verb", STRING, omit_empty=True),
    Key("preemptVerb", "preempt_verb", STRING, omit_empty=True),
    Key("prioritizeVerb", "prioritize_verb", STRING, omit_empty=True),
    Key("weight", "weight", INT64, omit_empty=True),
    Key("bindVerb", "bind_verb", STRING, omit_empty=True),
    Key("enableHTTPS", "enable_https", BOOL, omit_empty=True),
    Key("tlsConfig", "tls_config", _TLS_CONFIG),
    Key("httpTimeout", "http_timeout_s", DURATION, zero_is_default=True),
    Key("nodeCacheCapable", "node_cache_capable", BOOL, omit_empty=True),
    Key("managedResources", "managed_resources", ListOf(_MANAGED_RESOURCE), omit_empty=True),
    Key("ignorable", "ignorable", BOOL, omit_empty=True),
)
_LEADER_ELECTION: Final = Record(
    types.LeaderElection,
    Key("leaderElect", "leader_elect", BOOL),
    Key("leaseDuration", "lease_duration_s", DURATION, zero_is_default=True),
    Key("renewDeadline", "renew_deadline_s", DURATION, zero_is_default=True),
    Key("retryPeriod", "retry_period_s", DURATION, zero_is_default=True),
    Key("resourceLock", "resource_lock", STRING, zero_is_default=True),
    Key("resourceName", "resource_name", STRING, zero_is_default=True),
    Key("resourceNamespace", "resource_namespace", STRING, zero_is_default=True),
)
_CLIENT_CONNECTION: Final = Record(
    types.ClientConnection,
    Key("kubeconfig", "kubeconfig", STRING),
    Key("acceptContentTypes", "accept_content_types", STRING),
    Key("contentType", "content_type", STRING, zero_is_default=True),
    Key("qps", "qps", FLOAT32, zero_is_default=True),
    Key("burst", "burst", INT32, zero_is_default=True),
)
CONFIGURATION: Final = Record(
    types.KubeSchedulerConfiguration,
    Key("parallelism", "parallelism", INT32),
    Key("leaderElection", "leader_election", _LEADER_ELECTION),
    Key("clientConnection", "client_connection", _CLIENT_CONNECTION),
    Key("enableProfiling", "enable_profiling", BOOL),
    Key("enableContentionProfiling", "enable_contention_profiling", BOOL),
    Key("percentageOfNodesToScore", "percentage_of_nodes_to_score", INT32),
    Key("podInitialBackoffSeconds", "pod_initial_backoff_s", INT64),
    Key("podMaxBackoffSeconds", "pod_max_backoff_s", INT64),
    Key("profiles", "profiles", ListOf(_PROFILE), zero_is_default=True),
    Key("extenders", "extenders", ListOf(_EXTENDER), omit_empty=True),
    Key("delayCacheUntilActive", "delay_cache_until_active", BOOL, omit_empty=True),
)
"""The file's fields except apiVersion and kind."""
