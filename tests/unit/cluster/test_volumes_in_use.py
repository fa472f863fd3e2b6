from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster import Cache, Snapshot
from podium.cluster.volumes_in_use import ClaimKey, DiskKey, VolumesInUse, disk_key
from podium.objects.core import Pod
from podium.objects.pod_volumes import Volume
from tests.builders import cache_of, node, pod


def user_of(*volumes: dict[str, Any], name: str = "web-1", on: str = "", namespace: str = "default") -> Pod:
    named_volumes = [{"name": f"v{index}", **volume} for index, volume in enumerate(volumes)]
    return pod(name, namespace=namespace, node=on, spec={"volumes": named_volumes})


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


DATA = ClaimKey("default", "data")


def test_rows_are_known_by_the_claims_that_pods_there_name() -> None:
    index = VolumesInUse()
    index.add(3, user_of(claim("data")))
    index.add(4, user_of(claim("data"), namespace="other"))
    assert list(index.rows_using(DATA)) == [3]
    assert list(index.rows_using(ClaimKey("other", "data"))) == [4]
    assert not index.rows_using(ClaimKey("default", "logs"))


def test_a_claim_is_in_use_until_its_last_user_on_the_row_goes() -> None:
    index = VolumesInUse()
    twice = user_of(claim("data"), claim("data"))
    index.add(3, twice)
    index.add(3, user_of(claim("data"), name="web-2"))
    index.remove(3, twice)
    assert list(index.rows_using(DATA)) == [3]
    index.remove(3, user_of(claim("data"), name="web-2"))
    assert not index.rows_using(DATA)


@pytest.mark.parametrize(
    ("volume", "key"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, DiskKey("gcePersistentDisk", "d")),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, DiskKey("awsElasticBlockStore", "d")),
        ({"iscsi": {"iqn": "d"}}, DiskKey("iscsi", "d")),
        ({"rbd": {"monitors": ["m"], "pool": "p", "image": "i"}}, DiskKey("rbd", "p/i")),
    ],
)
def test_rows_are_known_by_the_inline_disks_of_pods_there(volume: dict[str, Any], key: DiskKey) -> None:
    index = VolumesInUse()
    index.add(1, user_of(volume))
    assert list(index.rows_using(key)) == [1]


def test_other_volumes_have_no_key() -> None:
    assert disk_key(Volume(name="v")) is None


def test_neither_a_copy_nor_the_original_sees_what_the_other_does() -> None:
    index = VolumesInUse()
    index.add(1, user_of(claim("data")))
    copy = index.copy()
    copy.add(2, user_of(claim("data")))
    index.remove(1, user_of(claim("data")))
    assert sorted(copy.rows_using(DATA)) == [1, 2]
    assert not index.rows_using(DATA)


def test_volumes_are_counted_by_row_where_they_name_a_claim_or_need_a_closer_look() -> None:
    index, rows = VolumesInUse(), np.arange(5)
    inline: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "d"}}
    index.add(2, user_of(claim("data"), claim("data"), {"csi": {"driver": "secrets"}}))
    index.add(4, user_of(claim("data"), claim(""), inline, {"ephemeral": {}}))
    assert index.named_claims(rows).tolist() == [0, 0, 2, 0, 1]
    assert index.unclear(rows).tolist() == [0, 0, 0, 0, 3]
    copy = index.copy()
    index.remove(4, user_of(claim("data"), claim(""), inline, {"ephemeral": {}}))
    copy.add(9, user_of(inline))
    assert (index.unclear(rows).any(), copy.unclear(rows[4:]).tolist()) == (False, [3])
    assert copy.unclear(np.array([9, 10])).tolist() == [1, 0]


def snapshot_and_cache() -> tuple[Snapshot, Cache]:
    cache = cache_of(node("n1"), user_of(claim("data"), on="n1"))
    return cache.snapshot(), cache


def test_the_snapshot_follows_pods_that_come_change_and_go() -> None:
    snapshot, cache = snapshot_and_cache()
    row = snapshot.row_of["n1"]
    assert list(snapshot.volumes_in_use.rows_using(DATA)) == [row]
    cache.update_pod(user_of(claim("logs"), on="n1"))
    cache.snapshot()
    assert not snapshot.volumes_in_use.rows_using(DATA)
    assert list(snapshot.volumes_in_use.rows_using(ClaimKey("default", "logs"))) == [row]
    cache.remove_pod(user_of(claim("logs"), on="n1"))
    cache.snapshot()
    assert not snapshot.volumes_in_use.rows_using(ClaimKey("default", "logs"))


def test_what_was_used_on_a_node_goes_with_it() -> None:
    snapshot, cache = snapshot_and_cache()
    cache.remove_node("n1")
    cache.snapshot()
    assert not snapshot.volumes_in_use.rows_using(DATA)


def test_a_fork_keeps_its_own_account() -> None:
    snapshot, _ = snapshot_and_cache()
    fork = snapshot.fork()
    fork.remove_pod(snapshot.row_of["n1"], "uid-web-1")
    assert not fork.volumes_in_use.rows_using(DATA)
    assert snapshot.volumes_in_use.rows_using(DATA)
