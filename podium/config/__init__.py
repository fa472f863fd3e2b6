"""``KubeSchedulerConfiguration`` as values: load, default, validate, expand and write back.

Owns the file format and all of its rules. Never imports a plugin, never talks to a cluster; ``load_file`` is the only
function that reads from disk.
"""

from podium.config.args import ARGS_BY_PLUGIN, InTreeArgs, RawArgs
from podium.config.defaults import complete, default_configuration, merge_plugins
from podium.config.duration import format_duration, parse_duration
from podium.config.effective import configz, effective, to_dict, to_yaml
from podium.config.emulation import emulating
from podium.config.expansion import ExpandedPlugins, expand_plugins
from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint, PluginRegistry
from podium.config.feature_gates import (
    DEFAULT_GATES,
    LOOSE_GROUPS,
    ConfigGates,
    FeatureGateError,
    PodGroupRules,
    default_gates,
    parse_feature_gates,
)
from podium.config.field_errors import ConfigError, ErrorKind, ErrorList, FieldError
from podium.config.loader import Loaded, load, load_file
from podium.config.own_names import (
    AS_DEFAULT_SCHEDULER,
    KUBE_SCHEDULERS_LEASE,
    LEASE_NAME,
    OWN_NAME,
    with_own_names,
)
from podium.config.releases import (
    EVALUATED,
    FIRST,
    NEWEST,
    OLDEST_SERVER,
    RELEASES,
    DeviceRules,
    EventRules,
    PreemptionRules,
    Release,
    release_of_server,
)
from podium.config.support import Unsupported, unsupported_features
from podium.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from podium.config.validation import validate

__all__ = [
    "API_VERSION",
    "ARGS_BY_PLUGIN",
    "AS_DEFAULT_SCHEDULER",
    "DEFAULT_GATES",
    "DEFAULT_SCHEDULER_NAME",
    "EVALUATED",
    "FIRST",
    "IN_TREE_PLUGINS",
    "KIND",
    "KUBE_SCHEDULERS_LEASE",
    "LEASE_NAME",
    "LOOSE_GROUPS",
    "NEWEST",
    "OLDEST_SERVER",
    "OWN_NAME",
    "RELEASES",
    "ClientConnection",
    "ConfigError",
    "ConfigGates",
    "DeviceRules",
    "ErrorKind",
    "ErrorList",
    "EventRules",
    "ExpandedPlugins",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "ExtensionPoint",
    "FeatureGateError",
    "FieldError",
    "InTreeArgs",
    "KubeSchedulerConfiguration",
    "LeaderElection",
    "Loaded",
    "Plugin",
    "PluginConfig",
    "PluginRegistry",
    "PluginSet",
    "Plugins",
    "PodGroupRules",
    "PreemptionRules",
    "Profile",
    "RawArgs",
    "Release",
    "Unsupported",
    "complete",
    "configz",
    "default_configuration",
    "default_gates",
    "effective",
    "emulating",
    "expand_plugins",
    "format_duration",
    "load",
    "load_file",
    "merge_plugins",
    "parse_duration",
    "parse_feature_gates",
    "release_of_server",
    "to_dict",
    "to_yaml",
    "unsupported_features",
    "validate",
    "with_own_names",
]
