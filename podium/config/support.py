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
"""How many retry periods a renew deadline must exceed."""


class Severity(Enum):
    """What happens to a file that uses the feature."""

    REFUSE = "podium does not start"
    WARN = "podium starts and logs a warning"
    REFUSE_WHAT_IF = "podium starts, but commands that only predict placements refuse the file"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What prevents running a file.

    Attributes: ``refused``, reasons not to start at all; ``undecidable``, reasons why commands that only predict where
    pods would go refuse the file; ``warnings``, sentences that each name a field.
    """

    refused: tuple[FieldError, ...] = ()
    undecidable: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Row:
    """A field whose feature is missing: when that matters, and the message."""

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


def _present(path: str, loaded: Loaded) -> bool:
    return path in loaded.present


def _is_unverified(extender: Extender) -> bool:
    tls = extender.tls_config or ExtenderTLSConfig()
    return extender.enable_https and not (tls.insecure or tls.ca_data or tls.ca_file)


_ONLY_JSON: Final = "podium speaks JSON to the API server"

_ROWS: Final = (
    _Row(
        "extenders",
        Severity.REFUSE_WHAT_IF,
        lambda loaded: bool(loaded.config.extenders),
        "extenders are not asked here, so leave them out to see what the plugins alone decide",
    ),
    _Row(
        "extenders",
        Severity.WARN,
        lambda loaded: any(_is_unverified(extender) for extender in loaded.config.extenders),
        "enableHTTPS without a CA in tlsConfig does not verify certificates, as in kube-scheduler",
    ),
    _Row(
        "leaderElection.renewDeadline",
        Severity.REFUSE,
        lambda loaded: _is_unrenewable(loaded.config.leader_election),
        "must be greater than 1.2 times retryPeriod for an election to start",
    ),
    _Row(
        "leaderElection.resourceName",
        Severity.WARN,
        lambda loaded: _would_wait_for_kube_scheduler(loaded.config),
        "this is kube-scheduler's own lease: where that runs, podium waits for ever; use another name",
    ),
    _Row(
        "parallelism",
        Severity.WARN,
        lambda loaded: _present("parallelism", loaded),
        "podium decides on one thread, so the number has no effect",
    ),
    _Row(
        "enableContentionProfiling",
        Severity.WARN,
        lambda loaded: loaded.config.enable_contention_profiling and _present("enableContentionProfiling", loaded),
        "podium has no profiles of contention: it decides on one thread, without locks",
    ),
    _Row(
        "clientConnection.contentType",
        Severity.WARN,
        lambda loaded: (
            loaded.config.client_connection.content_type != "application/json"
            and _present("clientConnection.contentType", loaded)
        ),
        _ONLY_JSON,
    ),
    _Row(
        "clientConnection.acceptContentTypes",
        Severity.WARN,
        lambda loaded: loaded.config.client_connection.accept_content_types not in ("", "application/json"),
        _ONLY_JSON,
    ),
)


def unsupported(
    loaded: Loaded, implemented: Collection[str], registry: PluginRegistry = IN_TREE_PLUGINS
) -> Unsupported:
    """Check a loaded file for features that podium does not support.

    Args: ``implemented``: names of the plugins that podium implements; ``registry``: as given to ``load``.
    A plugin that the file itself enables must be implemented. A missing plugin that the defaults enable anyway, or that
    the file lists exactly as they do (``config defaults`` writes them all), is left out with a warning.
    """
    rows = [row for row in _ROWS if row.matters(loaded)]
    named = list(_named_plugins(loaded, implemented))
    plugins = tuple(error for _, error in named)
    warnings = [f"{row.path}: {row.message}" for row in rows if row.severity is Severity.WARN]
    missing = _defaulted_plugins(loaded, implemented, registry) - {name for name, _ in named}
    if missing:
        names = ", ".join(sorted(missing))
        warnings.append(f"profiles: default plugins that podium does not have yet are left out: {names}")
    return Unsupported(
        (*_refusals(rows, Severity.REFUSE, loaded), *plugins),
        (*_refusals(rows, Severity.REFUSE_WHAT_IF, loaded), *plugins),
        tuple(warnings),
    )


def _refusals(rows: Iterable[_Row], severity: Severity, loaded: Loaded) -> Iterator[FieldError]:
    for row in rows:
        if row.severity is severity:
            yield FieldError(row.path, ErrorKind.FORBIDDEN, None, row.message, loaded.present.get(row.path))


def _named_plugins(loaded: Loaded, implemented: Collection[str]) -> Iterator[tuple[str, FieldError]]:
    for i, profile in enumerate(loaded.written.profiles):
        for point in ExtensionPoint:
            for j, plugin in enumerate(profile.plugins.at(point).enabled):
                as_default = point is ExtensionPoint.MULTI_POINT and plugin in default_plugins().multi_point.enabled
                if plugin.name in implemented or as_default:
                    continue
                path = f"profiles[{i}].plugins.{point}.enabled[{j}].name"
                detail = f"podium does not have the plugin {plugin.name} yet"
                yield plugin.name, FieldError(path, ErrorKind.FORBIDDEN, None, detail, loaded.present.get(path))


def _defaulted_plugins(loaded: Loaded, implemented: Collection[str], registry: PluginRegistry) -> set[str]:
    running: set[str] = set()
    for profile in loaded.config.profiles:
        running |= expand_plugins(profile, registry).names()
    return running - set(implemented)
