"""``KubeSchedulerConfiguration`` v1 as frozen values; the dataclass defaults are upstream's defaults.

Owns the shape of the configuration and nothing that acts on it. Attribute names are the file's keys in snake case;
durations are seconds as float and end in ``_s``. ``KubeSchedulerConfiguration()`` is the default file before profiles
are completed; ``podium.config.default_configuration()`` is the complete one.

Source: staging kube-scheduler/config/v1/types.go, apis/config/v1/defaults.go (kube-scheduler 1.36.2)
"""

from dataclasses import dataclass, field
from typing import Final

from podium.config.args import InTreeArgs, RawArgs
from podium.config.extension_points import ExtensionPoint
from podium.config.releases import NEWEST, Release

API_GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
PROTOBUF_CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Leader election over a Lease."""

    leader_elect: bool = True
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """The connection to the API server. A negative ``qps`` disables the client's own rate limit."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = PROTOBUF_CONTENT_TYPE
    qps: float = 50.0
    burst: int = 100


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin's name in an enabled or disabled list. Weight 0 means 1 for plugins that score."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The enabled and disabled plugins of one extension point, in order."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


_FIELD_OF: Final = {point: point.name.lower() for point in ExtensionPoint}


@dataclass(frozen=True, slots=True)
class Plugins:
    """One set per extension point; ``multi_point`` applies to all of them."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def at(self, point: ExtensionPoint) -> PluginSet:
        """Return the set of one extension point."""
        plugin_set: PluginSet = getattr(self, _FIELD_OF[point])
        return plugin_set

    def enabled_names(self) -> frozenset[str]:
        """Return the names in all enabled lists: the plugins that a profile constructs."""
        return frozenset(plugin.name for field in _FIELD_OF.values() for plugin in getattr(self, field).enabled)


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A plugin's args: typed for in-tree plugins that take args, raw for all others."""

    name: str
    args: InTreeArgs | RawArgs | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """One scheduler name and the plugins for its pods. A percentage of None means the top-level one."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    release: Release = field(default=NEWEST, metadata={"set_by": "release"})

    def args_of(self, plugin: str) -> InTreeArgs | RawArgs | None:
        """Return the args of one plugin; None if it has no entry."""
        return next((entry.args for entry in self.plugin_config if entry.name == plugin), None)


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource that an extender manages."""

    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """Client TLS settings for an extender; the ``*_data`` fields hold base64 of PEM, as in the file."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


@dataclass(frozen=True, slots=True)
class Extender:
    """An HTTP extender. An empty verb means that it does not take part in that phase."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_s: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """The whole file. Units: percentages 0-100 (0 = adaptive), backoffs in whole seconds."""

    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_s: int = 1
    pod_max_backoff_s: int = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    release: Release = field(default=NEWEST, metadata={"set_by": "release"})
    """The minor whose rules apply; it is no key of the file."""

    def profile(self, scheduler_name: str) -> Profile | None:
        """Return the profile for pods with that ``spec.schedulerName``."""
        return next((entry for entry in self.profiles if entry.scheduler_name == scheduler_name), None)
