"""Features in a valid file that podium does not support yet, or not here: refused or warned about, never ignored.

Owns one table of missing features; a feature that is added removes its row. The existing plugins are passed in.
A file refused here is still valid for kube-scheduler, so this is not part of loading.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podium.config.defaults import default_plugins
from podium.config.expansion import expand_plugins
from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint, PluginRegistry
from podium.config.field_errors import ErrorKind, FieldError
from podium.config.loader import Loaded
from podium.config.types import (
    DEFAULT_SCHEDULER_NAME,
    Extender,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
)

RENEW_DEADLINE_FACTOR: Final = 1.2
"""The number of retry periods that a renew deadline must exceed."""


class Severity(Enum):
    """The consequence for a file that uses the feature."""

    REFUSE = "podium does not start"
    WARN = "podium starts and logs a warning"
    REFUSE_WHAT_IF = "podium starts, but commands that only predict placements refuse the file"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The features of a file that podium does not support.

    Attributes: ``refusals``, reasons not to start at all; ``undecidable``, reasons why commands that only predict
    placements refuse the file; ``warnings``, sentences that each name a field.
    """

    refusals: tuple[FieldError, ...] = ()
    undecidable: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Row:
    """A field whose feature is missing, the condition under which that matters, and the message."""

    path: str
    severity: Severity
    matters: Callable[[Loaded], bool]
    message: str


def _is_unrenewable(election: LeaderElection) -> bool:
    return election.leader_elect and election.renew_deadline_s <= RENEW_DEADLINE_FACTOR * election.retry_period_s


def _would_wait_for_kube_scheduler(config: KubeSchedulerConfiguration) -> bool:
    election, usual = config.leader_election, LeaderElection()
    is_same = (election.resource_namespace, election.resource_name) == (usual.resource_namespace, usual.resource_name)
    return election.leader_elect and is_same and config.profile(DEFAULT_SCHEDULER_NAME) is None


def _present(path: str, file: Loaded) -> bool:
    return path in file.present


def _is_unverified(extender: Extender) -> bool:
    tls = extender.tls_config or ExtenderTLSConfig()
    return extender.enable_https and not (tls.insecure or tls.ca_data or tls.ca_file)


_ONLY_JSON: Final = "podium speaks JSON to the API server"

_ROWS: Final = (
    _Row(
        "extenders",
        Severity.REFUSE_WHAT_IF,
        lambda file: bool(file.config.extenders),
        "extenders are not asked here, so leave them out to see what the plugins alone decide",
    ),
    _Row(
        "extenders",
        Severity.WARN,
        lambda file: any(_is_unverified(extender) for extender in file.config.extenders),
        "enableHTTPS without a CA in tlsConfig does not verify certificates, as in kube-scheduler",
    ),
    _Row(
        "leaderElection.renewDeadline",
        Severity.REFUSE,
        lambda file: _is_unrenewable(file.config.leader_election),
        "must be greater than 1.2 times retryPeriod for an election to start",
    ),
    _Row(
        "leaderElection.resourceName",
        Severity.WARN,
        lambda file: _would_wait_for_kube_scheduler(file.config),
        "this is kube-scheduler's own lease: where that runs, podium waits for ever; use another name",
    ),
    _Row(
        "parallelism",
        Severity.WARN,
        lambda file: _present("parallelism", file),
        "podium decides on one thread, so the number has no effect",
    ),
    _Row(
        "enableContentionProfiling",
        Severity.WARN,
        lambda file: file.config.enable_contention_profiling and _present("enableContentionProfiling", file),
        "podium has no profiles of contention: it decides on one thread, without locks",
    ),
    _Row(
        "clientConnection.contentType",
        Severity.WARN,
        lambda file: (
            file.config.client_connection.content_type != "application/json"
            and _present("clientConnection.contentType", file)
        ),
        _ONLY_JSON,
    ),
    _Row(
        "clientConnection.acceptContentTypes",
        Severity.WARN,
        lambda file: file.config.client_connection.accept_content_types not in ("", "application/json"),
        _ONLY_JSON,
    ),
)


def unsupported_features(
    file: Loaded, plugin_names: Collection[str], registry: PluginRegistry = IN_TREE_PLUGINS
) -> Unsupported:
    """Check a loaded file for features that podium does not support.

    Args: ``plugin_names``: names of the plugins that podium implements; ``registry``: as given to ``load``.
    A plugin that the file itself enables must be implemented. A missing plugin that the defaults enable anyway, or that
    the file lists exactly as they do (``config defaults`` writes them all), is left out with a warning.
    """
    rows = [row for row in _ROWS if row.matters(file)]
    plugin_errors = list(_named_plugins(file, plugin_names))
    plugins = tuple(error for _, error in plugin_errors)
    warnings = [f"{row.path}: {row.message}" for row in rows if row.severity is Severity.WARN]
    # Defaults that are missing only warn: the file's author has not chosen them.
    missing = _defaulted_plugins(file, plugin_names, registry) - {name for name, _ in plugin_errors}
    if missing:
        names = ", ".join(sorted(missing))
        warnings.append(f"profiles: default plugins that podium does not have yet are left out: {names}")
    return Unsupported(
        (*_refusals(rows, Severity.REFUSE, file), *plugins),
        (*_refusals(rows, Severity.REFUSE_WHAT_IF, file), *plugins),
        tuple(warnings),
    )


def _refusals(rows: Iterable[_Row], severity: Severity, file: Loaded) -> Iterator[FieldError]:
    for row in rows:
        if row.severity is severity:
            yield FieldError(row.path, ErrorKind.FORBIDDEN, None, row.message, file.present.get(row.path))


def _named_plugins(file: Loaded, plugin_names: Collection[str]) -> Iterator[tuple[str, FieldError]]:
    for i, profile in enumerate(file.file_config.profiles):
        for point in ExtensionPoint:
            for j, plugin in enumerate(profile.plugins.at(point).enabled):
                # A file that lists the defaults, as /configz prints them, asks for no more than an empty one.
                as_default = point is ExtensionPoint.MULTI_POINT and plugin in default_plugins().multi_point.enabled
                if plugin.name in plugin_names or as_default:
                    continue
                path = f"profiles[{i}].plugins.{point}.enabled[{j}].name"
                detail = f"podium does not have the plugin {plugin.name} yet"
                yield plugin.name, FieldError(path, ErrorKind.FORBIDDEN, None, detail, file.present.get(path))


def _defaulted_plugins(file: Loaded, plugin_names: Collection[str], registry: PluginRegistry) -> set[str]:
    running: set[str] = set()
    for profile in file.config.profiles:
        running |= expand_plugins(profile, registry).names()
    return running - set(plugin_names)
