"""What podium says it needs, against the role that is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podium.cli.options.configuration import Usable, usable
from podium.cli.options.shards import as_shard
from podium.client.permissions import Permission
from podium.config import RELEASES, PodGroupRules
from podium.shards import ShardIdentity
from tests.rights import grants, needs_of

pytestmark = pytest.mark.anyio

DEPLOY = Path(__file__).parents[3] / "deploy"


def shipped_permissions(file: str = "rbac.yaml") -> Iterator[Permission]:
    return grants(yaml.safe_load_all((DEPLOY / file).read_text()))


def deployed_settings(tmp_path: Path) -> Usable:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_load((DEPLOY / "configmap.yaml").read_text())["data"]["config.yaml"])
    return usable(path)


async def test_the_shipped_roles_are_exactly_what_is_needed(tmp_path: Path) -> None:
    needs = await needs_of(deployed_settings(tmp_path))
    assert set(needs.permissions) == set(shipped_permissions())
    assert len(list(shipped_permissions())) == len(set(shipped_permissions()))


async def test_pod_groups_need_exactly_one_more_role(tmp_path: Path) -> None:
    good, rules = deployed_settings(tmp_path), PodGroupRules(are_placed_by_topology=True, are_preempted_for=True)
    extra_permissions = set((await needs_of(good, pod_groups=rules)).permissions) - set(
        (await needs_of(good)).permissions
    )
    assert extra_permissions == set(shipped_permissions("pod-groups/rbac.yaml"))


@pytest.mark.parametrize(
    ("minor", "paths"),
    [
        (
            "1.37",
            {
                "PodGroup": "/apis/scheduling.k8s.io/v1beta1/podgroups",
                "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
            },
        ),
        (
            "1.36",
            {
                "PodGroup": "/apis/scheduling.k8s.io/v1alpha2/podgroups",
                "DeviceTaintRule": "/apis/resource.k8s.io/v1beta2/devicetaintrules",
            },
        ),
    ],
)
async def test_resources_are_asked_for_in_the_version_that_the_release_serves(
    minor: str, paths: dict[str, str]
) -> None:
    good = usable(None, (), ("GenericWorkload=true,DRADeviceTaintRules=true",), release=RELEASES[minor])
    needs = await needs_of(good, pod_groups=good.pod_groups)
    assert {resource.kind: resource.path for resource in needs.resources if resource.kind in paths} == paths


async def test_rules_that_taint_devices_are_not_read_without_the_gate() -> None:
    without_gate = usable(None, (), ("DRADeviceTaintRules=false",))
    extra_permissions = set((await needs_of(usable(None))).permissions) - set(
        (await needs_of(without_gate)).permissions
    )
    assert extra_permissions == {Permission("resource.k8s.io", "devicetaintrules", verb) for verb in ("list", "watch")}


async def test_coscheduling_needs_exactly_one_more_role(tmp_path: Path) -> None:
    good, gangs = deployed_settings(tmp_path), usable(DEPLOY.parent / "examples/config/coscheduling.yaml")
    extra_permissions = set((await needs_of(gangs)).permissions) - set((await needs_of(good)).permissions)
    assert extra_permissions == set(shipped_permissions("coscheduling/rbac.yaml"))


async def test_each_need_names_who_has_it(tmp_path: Path) -> None:
    permissions = (await needs_of(deployed_settings(tmp_path))).permissions
    assert permissions[Permission("", "pods/binding", "create")] == ("DefaultBinder",)
    assert permissions[Permission("policy", "poddisruptionbudgets", "watch")] == ("DefaultPreemption",)
    assert permissions[Permission("", "nodes", "list")] [0] == "podium itself"  # fmt: skip
    assert permissions[Permission("coordination.k8s.io", "leases", "update", "kube-system", "podium")] == (
        "leader election",
    )


async def test_what_is_switched_off_needs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}, {name: VolumeBinding}]}}}]\n"
    )
    permissions = (await needs_of(usable(path), serves=False)).permissions
    for permission in (
        Permission("", "pods", "delete"),
        Permission("", "persistentvolumes", "patch"),
        Permission("policy", "poddisruptionbudgets", "list"),
        Permission("coordination.k8s.io", "leases", "create", "kube-system"),
        Permission("authentication.k8s.io", "tokenreviews", "create"),
    ):
        assert permission not in permissions
    # VolumeZone reads them still.
    assert permissions[Permission("", "persistentvolumes", "list")]


def test_the_text_of_a_permission_has_the_words_of_administrators() -> None:
    assert str(Permission("", "pods/binding", "create")) == "create pods/binding"
    permission = Permission("coordination.k8s.io", "leases", "get", "kube-system", "podium")
    assert str(permission) == "get leases.coordination.k8s.io podium in kube-system"


async def test_metrics_and_devices_need_rights_of_their_own(tmp_path: Path) -> None:
    names = ("NodeLoad", "TargetLoadPacking", "Peaks", "GpuPacking", "FragmentationGradientDescent")
    args = {"FragmentationGradientDescent": {"usualPods": [{"gpus": 1}]}, "Peaks": {"WatcherAddress": "http://watcher"}}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}},
        "pluginConfig": [{"name": name, "args": value} for name, value in args.items()],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = tmp_path / "policies.yaml"
    path.write_text(yaml.safe_dump({**head, "profiles": [profile]}))
    found = await needs_of(usable(path))
    assert found.permissions[Permission("metrics.k8s.io", "nodes", "list")] == ("NodeLoad", "TargetLoadPacking")
    assert found.permissions[Permission("", "pods", "patch")] == ("FragmentationGradientDescent", "GpuPacking")
    assert not [permission for permission in found.permissions if permission.group == "podium"]
    assert {source.name: users for source, users in found.metrics.items()} == {
        "KubernetesMetricsServer": ("NodeLoad", "TargetLoadPacking"),
        "LoadWatcher http://watcher": ("Peaks",),
    }


async def test_a_member_of_shards_also_lists_the_leases_of_the_others() -> None:
    good = as_shard(usable(None), ShardIdentity("podium", "m1", "zone"))
    needs_alone, needs_of_member = await needs_of(good), await needs_of(good, is_shard=True)
    assert needs_of_member.permissions.keys() - needs_alone.permissions.keys() == {
        Permission("coordination.k8s.io", "leases", "list", good.config.leader_election.resource_namespace)
    }
    own_lease = Permission("coordination.k8s.io", "leases", "update", "kube-system", "podium-m1")
    assert own_lease in needs_of_member.permissions
