"""Checks a plugin against the plugin contract, on random clusters.

Owns the message of a failure. Never knows any plugin. Podium's own plugins pass all checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from podium.framework.contract.plugin import Plugin
from podium.framework.profile.plugin_args import typed_args
from podium.lib.error_text import error_text
from podium.objects.node_metrics import NodeMetricsReport
from podium.testing.contract_checks import CHECKS, BrokenContract, Subject
from podium.testing.handle import RecordingHandle
from podium.testing.one_cycle import snapshot_of
from podium.testing.random_clusters import RandomCluster, random_cluster, random_metrics

__all__ = ["BrokenContract", "check_contract"]


def check_contract(plugin: type[Plugin], args: Any = None, *, clusters: int = 30, seed: int = 0) -> None:
    """Check the promises of a plugin that the framework and other plugins rely on.

    At the extension points that the plugin implements: `events_to_register` is valid, and hints return a QueueingHint;
    only asynchronous extension points are `async def`; PreEnqueue, Filter and Score give the same answers when called
    twice and in another order; both forms agree; scores are integers, between 0 and 100 once normalised; the snapshot
    is not changed; a PreFilter's state follows a removed pod, is restored when the pod is added back, and is not
    changed by dry runs; Unreserve is harmless without Reserve; every status is one that its extension point allows.

    Args:
        args: as in the configuration, a mapping, if the plugin declares `Args`; a value of that type is accepted too.
        clusters: the number of clusters, each with three incoming pods. Cost: a few milliseconds each.
        seed: the same seed gives the same clusters.

    Raises:
        BrokenContract: an AssertionError with the plugin, the rule, the seed, the cluster and the pod.
        PluginError: the args are invalid.
    """
    value = args if args is not None and not isinstance(args, Mapping) else typed_args(plugin, args)
    for number in range(clusters):
        cluster = random_cluster(Random(f"{seed}/{number}"))
        subject = _subject(plugin, value, cluster, random_metrics(Random(f"{seed}/{number}/metrics"), cluster.nodes))
        for subject.pod in cluster.incoming:
            _check(subject, f"{plugin.name}, seed {seed}, cluster {number}, pod {subject.pod.metadata.name}")


def _subject(plugin: type[Plugin], args: Any, cluster: RandomCluster, metrics: NodeMetricsReport) -> Subject:
    snapshot = snapshot_of(*cluster.nodes, *cluster.existing_pods)
    handle = RecordingHandle(snapshot, (*cluster.nodes, *cluster.existing_pods, *cluster.incoming, metrics))
    return Subject(plugin(args, handle), cluster.incoming[0], snapshot, cluster)


def _check(subject: Subject, failure_place: str) -> None:
    for kinds, check in CHECKS:
        if not isinstance(subject.plugin, kinds):
            continue
        fingerprint = subject.fingerprint()
        try:
            check(subject)
        except BrokenContract as breach:
            raise BrokenContract(f"{failure_place}: {breach}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise BrokenContract(f"{failure_place}: raised {error_text(error)}") from error
        if subject.fingerprint() != fingerprint:
            raise BrokenContract(f"{failure_place}: the snapshot was changed")
