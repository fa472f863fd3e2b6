"""What the handle offers beside listers: dry runs, nominations, the kubeconfig."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import CycleState, PluginError, ScorePlugin
from podium.testing import node, pod, schedule_once

SMALL = pod("small", cpu="1", node="n1")


class PrefersNodesThatCouldBeCleared(ScorePlugin):
    """Scores the number of pods without which the pod fits still better: all but those it needs room of."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        with self.handle.dry_run(state, node.row) as dry_run:
            existing_pods = list(dry_run.node.pods)
            for existing_pod in existing_pods:
                dry_run.remove(existing_pod)
            assert dry_run.status() is None
            assert not list(dry_run.node.pods)
        return len(existing_pods)


class Nominates(ScorePlugin):
    """Nominates the pod that it scores for."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        nominator = self.handle.nominator
        nominator.add(pod, node.name)
        assert nominator.node_of(pod.uid) == node.name
        nominator.delete(pod)
        assert nominator.node_of(pod.uid) is None
        return 0


def test_a_plugin_may_try_the_filters_without_some_pods() -> None:
    result = schedule_once(pod("web"), [node("n1"), node("n2")], [SMALL], plugins=[PrefersNodesThatCouldBeCleared])
    assert result.scores["PrefersNodesThatCouldBeCleared"] == {"n1": 1, "n2": 0}


def test_there_is_no_dry_run_without_an_attempt() -> None:
    with pytest.raises(PluginError, match="no attempt is under way"):
        schedule_once(pod("web"), [node("n1")]).handle.dry_run(CycleState(), 0)


def test_a_plugin_may_nominate_pods() -> None:
    assert schedule_once(pod("web"), [node("n1"), node("n2")], plugins=[Nominates]).node_name


def test_offline_nothing_is_missing_and_there_is_no_kubeconfig() -> None:
    handle = schedule_once(pod("web"), [node("n1")]).handle
    assert handle.kubeconfig is None
