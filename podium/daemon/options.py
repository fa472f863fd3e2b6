"""The daemon's settings that the configuration file lacks."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from podium.config import PodGroupRules
from podium.daemon.configuration_source import ConfigurationSource
from podium.engine.flight_recorder.recorder import MEMORY_BYTES_MIN
from podium.framework.contract.plugin import Plugin
from podium.plugins import IN_TREE
from podium.server.access_options import AccessOptions
from podium.server.tls_limits import TlsLimits
from podium.shards import ShardIdentity

RECORDER_BYTES: Final = 32 << 20
"""The memory of the flight recorder unless told otherwise."""
RECORDER_BYTES_MIN: Final = MEMORY_BYTES_MIN


@dataclass(frozen=True, slots=True)
class TracingOptions:
    """The URL, with its path, to which spans of attempts are sent, and how many attempts in a million are sampled."""

    endpoint: str
    samples_per_million: int


class ReleaseOrigin(enum.Enum):
    """Where the release that decides comes from."""

    ASKED_FOR = enum.auto()
    SERVERS = enum.auto()
    ASSUMED = enum.auto()
    """The API server did not answer at the start."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings from the command line that the configuration file lacks.

    `context` is one of the kubeconfig; None for its current one.
    A secure port of 0 disables the endpoints; without certificate files, a self-signed certificate is created.
    `is_default_scheduler` allows sharing a lease that kube-scheduler holds.
    `pod_groups` says how pods are scheduled in groups; None if each is scheduled alone. `recorder_bytes` limits the
    memory of the flight recorder; 0 turns it off. `flags` are the command line's, as /flagz shows them. `has_live_page`
    says whether /ui is served. `fix_command` prints what would make a pod fit, for that page; empty if it is not to be
    asked. `release_is` says where the release of the configuration comes from. The files of
    `source` are followed while podium runs; None if a change needs a restart. Without `tracing`, no spans are made.
    `shows_deprecated_metrics` shows those that the release hides because it has deprecated them. `shards` names the
    group of schedulers that this one is a member of, and its part in it; None if it schedules alone.
    """

    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_limits: TlsLimits = field(default_factory=TlsLimits)
    access: AccessOptions = field(default_factory=AccessOptions)
    is_default_scheduler: bool = False
    pod_max_in_unschedulable_s: float = 300.0
    preempts_pods_of_others: bool = False
    avoids_conflicts: bool = False
    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: dict(IN_TREE))
    pod_groups: PodGroupRules | None = None
    recorder_bytes: int = RECORDER_BYTES
    flags: Mapping[str, str] = field(default_factory=dict)
    has_live_page: bool = False
    fix_command: tuple[str, ...] = ()
    release_is: ReleaseOrigin = ReleaseOrigin.ASKED_FOR
    source: ConfigurationSource | None = None
    tracing: TracingOptions | None = None
    shows_deprecated_metrics: bool = False
    shards: ShardIdentity | None = None
