"""What edits of a gang change alike, and where it is tried after them."""

from __future__ import annotations

from podium.engine.gangs import gang_of
from podium.insight.gang_states import DOMAINS_MAX, GangState, members_per_node
from tests.gang_manifests import UPSTREAM, group, member, members
from tests.manifests import ZONE, node
from tests.unit.insight.test_gang_fixes import fixes
from tests.unit.insight.test_gangs import load
from tests.workload_manifests import claim, storage


def test_members_that_differ_in_their_volume_claims_share_an_edit() -> None:
    gang = []
    for index in range(3):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{index}"}}
        gang.append(member(UPSTREAM, f"train-{index}", nodeSelector={"disk": "ssd"}, volumes=[volume]))
    claims = [claim(f"data-{index}", storage_class="slow") for index in range(3)]
    answer = fixes(load(node("n1"), *storage("20Gi"), *claims, group(UPSTREAM, 3), *gang))
    texts = [part.text for fix in answer.fixes for part in fix.edits]
    assert "drop disk=ssd from the node selector, on each of 3 pods" in texts


def test_edits_are_tried_in_the_domains_that_take_most_members_alone() -> None:
    nodes = [node(f"n{index}", "6" if index == 19 else "4", labels={ZONE: f"z{index:02}"}) for index in range(20)]
    zoned = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
    cluster = load(*nodes, group(UPSTREAM, 3, **zoned), *members(UPSTREAM, 3))
    gang = gang_of(cluster, next(pod for pod in cluster.pods if not pod.node_name))
    assert gang is not None
    start = GangState(cluster, gang)
    assert (len(start.trials), start.best.selector, members_per_node(start)) == (20, {ZONE: "z19"}, 2)
    successor = start.after(())
    assert successor is not None
    assert len(successor.trials) == DOMAINS_MAX
