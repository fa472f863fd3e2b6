"""Pods with claims, whose volumes are bound and made while podium waits, replay to the same decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.recording.entries import ANSWER, DECIDED, OBJECT
from podium.recording.replay import entries_of
from podium.recording.segments import open_segments
from podium.sandbox.store import Store
from tests.manifests import HOSTNAME, node, pod
from tests.planted.lives import Json, creating, deleting, record
from tests.unit.cli.commands import run
from tests.workload_manifests import claim

SELECTED_NODE = "volume.kubernetes.io/selected-node"
API = "storage.k8s.io/v1"
PENDING = {"phase": "Pending"}


def storage_class(name: str, provisioner: str) -> Json:
    mode = "WaitForFirstConsumer"
    metadata = {"name": name}
    return {
        "apiVersion": API,
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def volume(name: str, node_name: str, class_name: str, claim: Json | None = None) -> Json:
    on = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node_name]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on]}},
            **({"claimRef": claim} if claim else {}),
        },
        "status": {"phase": "Available"},
    }


def user(name: str, *claims: str) -> Json:
    return pod(name, volumes=[{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims])


def controllers(store: Store) -> None:
    """Bind claims to the volumes that podium has kept for them, and make those that it wants made."""
    for stored_claim in store.list("persistentvolumeclaims"):
        item = json.loads(json.dumps(stored_claim))
        metadata = item["metadata"]
        volumes = [volume for volume in store.list("persistentvolumes") if _is_kept_for(volume, metadata["name"])]
        node_name = metadata.get("annotations", {}).get(SELECTED_NODE)
        if volumes and not item["spec"].get("volumeName"):
            item["spec"]["volumeName"] = volumes[0]["metadata"]["name"]
            metadata.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
            store.update(item)
        elif node_name and not volumes:
            reference = {"namespace": "default", "name": metadata["name"], "uid": metadata["uid"]}
            store.create(volume(f"made-for-{metadata['name']}", node_name, "made", reference))


def _is_kept_for(item: Json, name: str) -> bool:
    reference = item["spec"].get("claimRef")
    return bool(reference) and reference["name"] == name


@pytest.mark.parametrize("hashed", [False, True])
def test_pods_with_claims_replay_to_the_same_decisions(hashed: bool, tmp_path: Path) -> None:
    objects = [
        *(node(f"n{at}") for at in range(3)),
        storage_class("local", "kubernetes.io/no-provisioner"),
        storage_class("made", "csi.example.com"),
        *(volume(f"local-{at}", f"n{at}", "local") for at in range(3)),
        *(claim(f"c{at}", storage_class="local", status=PENDING) for at in range(3)),
        *(claim(f"d{at}", storage_class="made", status=PENDING) for at in range(2)),
    ]
    pair = user("b", "c1", "d0")
    steps = [
        creating(user("a", "c0")),
        controllers,
        creating(pair, user("c", "d1")),
        controllers,
        controllers,
        creating(user("d", "missing")),
        creating(claim("missing", storage_class="local", status=PENDING), user("e", "c2")),
        controllers,
        deleting(pair),
    ]
    config = tmp_path / "config.yaml"
    profiles = [{"schedulerName": "podium"}]
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "profiles": profiles,
            }
        )
    )
    record(tmp_path / "recording", config, (), objects, steps, hashes_names=hashed)
    assert run("replay", tmp_path / "recording", "--expect").exit_code == 0
    entries = list(entries_of(open_segments(tmp_path / "recording")))
    assert sum(entry[0] == DECIDED for entry in entries) >= 6
    writes = [entry for entry in entries if entry[0] == ANSWER and entry[2] == OBJECT]
    assert len(writes) == 5
