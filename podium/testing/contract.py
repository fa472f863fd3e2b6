"""Holding a plugin against the contract, over random clusters.

Owns which checks there are and how a failure is told. Never knows a plugin; those of podium's own pass too.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from podium.framework.contract.interface import Plugin
from podium.framework.profile.plugin_args import typed_args
from podium.lib.error_words import words_of
from podium.testing.contract_checks import CHECKS, BrokenContract, Subject
from podium.testing.handle import RecordingHandle
from podium.testing.one_cycle import snapshot_of
from podium.testing.random_clusters import RandomCluster, random_cluster

__all__ = ["BrokenContract", "check_contract"]


def check_contract(plugin: type[Plugin], args: Any = None, *, clusters: int = 30, seed: int = 0) -> None:
    """Check that a plugin does what the framework and its other plugins rely on.

    At the extension points that the plugin extends: `events_to_register` is valid, and hints answer; nothing is
    waited for but where it may be; PreEnqueue, Filter and Score answer alike when asked twice and in another order;
    both forms agree; scores are integers, between 0 and 100 once normalised; the snapshot stays as it was; what a
    PreFilter remembers follows a pod that is taken off, is as it was when that is put back, and is not reached by dry
    runs; Unreserve is harmless without Reserve; every status is one that its extension point may answer.

    Args:
        args: as in the configuration, a mapping, if the plugin declares `Args`; a value of that type will do too.
        clusters: how many; each with three incoming pods. Cost: a few milliseconds each.
        seed: the same number, the same clusters.

    Raises:
        BrokenContract: an AssertionError with the plugin, the rule, the seed, the cluster and the pod.
        PluginError: the args do not fit.
    """
    value = args if args is not None and not isinstance(args, Mapping) else typed_args(plugin, args)
    for number in range(clusters):
        cluster = random_cluster(Random(f"{seed}/{number}"))
        subject = _subject(plugin, value, cluster)
        for subject.pod in cluster.incoming:
            _check(subject, f"{plugin.name}, seed {seed}, cluster {number}, pod {subject.pod.metadata.name}")


def _subject(plugin: type[Plugin], args: Any, cluster: RandomCluster) -> Subject:
    snapshot = snapshot_of(*cluster.nodes, *cluster.placed)
    handle = RecordingHandle(snapshot, (*cluster.nodes, *cluster.placed, *cluster.incoming))
    return Subject(plugin(args, handle), cluster.incoming[0], snapshot, cluster)


def _check(subject: Subject, where: str) -> None:
    for kinds, check in CHECKS:
        if not isinstance(subject.plugin, kinds):
            continue
        before = subject.fingerprint()
        try:
            check(subject)
        except BrokenContract as broken:
            raise BrokenContract(f"{where}: {broken}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise BrokenContract(f"{where}: raised {words_of(error)}") from error
        if subject.fingerprint() != before:
            raise BrokenContract(f"{where}: the snapshot was changed")
