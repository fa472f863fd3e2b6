"""Validates a completed configuration: every rule, every error, in Kubernetes' format.

Owns the rules that concern the file alone. ``podium.config.expansion`` checks whether its profiles can be built.

Source: apis/config/validation/validation.go, component-base/config/validation (kube-scheduler 1.36.2)
Differs: contradicting TLS settings of an extender are reported here; upstream reports them when it creates the client.
``Duplicate value`` of a schedulerName shows the name; upstream prints an empty struct.
"""

from collections.abc import Sequence

from podium.config.args import NodeResourcesFitArgs, RawArgs
from podium.config.duration import format_duration
from podium.config.extension_points import REMOVED_PLUGINS, ExtensionPoint
from podium.config.feature_gates import DEFAULT_GATES, ConfigGates
from podium.config.field_errors import ErrorList, FieldError
from podium.config.names import is_extended_resource_name, label_key_errors
from podium.config.schema import PLUGIN_SET
from podium.config.types import (
    API_VERSION,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Profile,
)
from podium.config.validation_args import ARGS_VALIDATORS

_REMOVED = f'was invalid in version "{API_VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
_UNCHECKED_POINTS = {ExtensionPoint.MULTI_POINT, ExtensionPoint.PLACEMENT_GENERATE, ExtensionPoint.PLACEMENT_SCORE}
"""Extension points at which upstream does not look for removed plugins, but reports them as unknown."""
_CHECKED_POINTS = tuple(point for point in ExtensionPoint if point not in _UNCHECKED_POINTS)


def validate(config: KubeSchedulerConfiguration, gates: ConfigGates = DEFAULT_GATES) -> tuple[FieldError, ...]:
    """Return an error for every rule that a completed configuration violates."""
    errors = ErrorList()
    if config.client_connection.burst < 0:
        errors.invalid("clientConnection.burst", config.client_connection.burst, "must be non-negative")
    # As upstream: the values do not matter without an election.
    if config.leader_election.leader_elect:
        _leader_election("leaderElection", config.leader_election, errors)
    if config.parallelism <= 0:
        errors.invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    _profiles("profiles", config.profiles, gates, errors)
    _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score, errors)
    if config.pod_initial_backoff_s <= 0:
        errors.invalid("podInitialBackoffSeconds", config.pod_initial_backoff_s, "must be greater than 0")
    if config.pod_max_backoff_s < config.pod_initial_backoff_s:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.invalid("podMaxBackoffSeconds", config.pod_max_backoff_s, detail)
    _extenders("extenders", config.extenders, errors)
    return errors.errors


def _leader_election(path: str, election: LeaderElection, errors: ErrorList) -> None:
    durations = {
        "leaseDuration": election.lease_duration_s,
        "renewDeadline": election.renew_deadline_s,
        "retryPeriod": election.retry_period_s,
    }
    for key, seconds in durations.items():
        if seconds <= 0:
            errors.invalid(f"{path}.{key}", format_duration(seconds), "must be greater than zero")
    if election.lease_duration_s <= election.renew_deadline_s:
        deadline = format_duration(election.renew_deadline_s)
        errors.invalid(f"{path}.leaseDuration", deadline, "must be greater than `RenewDeadline`")
    # Both errors for an empty lock, as upstream.
    if not election.resource_lock:
        errors.required(f"{path}.resourceLock")
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.invalid(f"{path}.resourceLock", election.resource_lock, detail)
    if not election.resource_namespace:
        errors.required(f"{path}.resourceNamespace")
    if not election.resource_name:
        errors.required(f"{path}.resourceName")


def _percentage(path: str, percentage: int | None, errors: ErrorList) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        errors.invalid(path, percentage, "not in valid range [0-100]")


def _profiles(path: str, profiles: Sequence[Profile], gates: ConfigGates, errors: ErrorList) -> None:
    if not profiles:
        errors.required(path)
        return
    names: set[str] = set()
    for i, profile in enumerate(profiles):
        _profile(f"{path}[{i}]", profile, gates, errors)
        if profile.scheduler_name in names:
            errors.duplicate(f"{path}[{i}].schedulerName", profile.scheduler_name)
        # Only the later ones are duplicates.
        names.add(profile.scheduler_name)
    _common_queue_sort(path, profiles, errors)


def _profile(path: str, profile: Profile, gates: ConfigGates, errors: ErrorList) -> None:
    if not profile.scheduler_name:
        errors.required(f"{path}.schedulerName")
    _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score, errors)
    for point in _CHECKED_POINTS:
        for i, plugin in enumerate(profile.plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                errors.invalid(f"{path}.plugins.{point}.enabled[{i}]", plugin.name, _REMOVED)
    names: set[str] = set()
    for i, entry in enumerate(profile.plugin_config):
        entry_path = f"{path}.pluginConfig[{i}]"
        if entry.name in names:
            errors.duplicate(entry_path, entry.name)
        names.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            errors.invalid(entry_path, entry.name, _REMOVED)
        # NodeResourcesFit's args are upstream's exception: they are validated when the plugin is built
        elif not isinstance(entry.args, RawArgs | NodeResourcesFitArgs | None):
            ARGS_VALIDATORS[type(entry.args)](f"{entry_path}.args", entry.args, gates, errors)


def _common_queue_sort(path: str, profiles: Sequence[Profile], errors: ErrorList) -> None:
    """Check that all profiles sort alike, since one queue serves them all."""
    first = profiles[0]
    canon = first.plugins.queue_sort
    # Upstream takes the first profile for the right one, and compares all others with it.
    if len(canon.enabled) > 1:
        # The capital letter is in upstream's path, and parity tests compare errors by path
        queue_sort_path = f"{path}[0].plugins.queueSort.Enabled"
        errors.invalid(queue_sort_path, len(canon.enabled), "only one queue sort plugin can be enabled")
    name = canon.enabled[0].name if canon.enabled else None
    for i, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != canon:
            value = PLUGIN_SET.write(profile.plugins.queue_sort)
            errors.invalid(f"{path}[{i}].plugins.queueSort", value, "must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != first.args_of(entry.name):
                args = entry.args.value if isinstance(entry.args, RawArgs) else None
                detail = "queueSort must be the same for all profiles"
                errors.invalid(f"{path}[{i}].pluginConfig.args", args, detail)


def _extenders(path: str, extenders: Sequence[Extender], errors: ErrorList) -> None:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.invalid(f"{path}[{i}].weight", extender.weight, detail)
        tls = extender.tls_config
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            detail = "specifying a root certificates file with the insecure flag is not allowed"
            errors.invalid(f"{path}[{i}].tlsConfig.insecure", True, detail)
        for j, resource in enumerate(extender.managed_resources):
            name_path = f"{path}[{i}].managedResources[{j}].name"
            _extended_resource_name(name_path, resource.name, errors)
            if resource.name in managed:
                errors.invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    # Whichever of several came first would bind the pod, and the others would never know.
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        errors.invalid(path, value, "only one extender can implement bind")


def _extended_resource_name(path: str, name: str, errors: ErrorList) -> None:
    wrong = label_key_errors(name)
    for detail in wrong:
        errors.invalid(path, name, detail)
    if not wrong and not is_extended_resource_name(name):
        errors.invalid(path, name, "is an invalid extended resource name")
