from __future__ import annotations

import pytest

from podium.config import RELEASES
from podium.plugins.image_locality import ImageLocality, normalized_image_name
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle, score_nodes

MIB = 1024 * 1024
PLUGIN = ImageLocality(None, RecordingHandle())


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("reg.io:5000/nginx", "reg.io:5000/nginx:latest"),
        ("reg.io:5000/nginx:1", "reg.io:5000/nginx:1"),
        ("nginx@sha256:00", "nginx@sha256:00"),
    ],
)
def test_a_name_without_a_tag_means_latest(name: str, normalized: str) -> None:
    assert normalized_image_name(name) == normalized


def test_the_score_grows_with_the_bytes_present_weighted_by_how_many_nodes_have_them() -> None:
    snapshot = snapshot_of(
        node("big", images={"app:1": 600 * MIB}),
        node("same", images={"app:1": 600 * MIB}),
        node("bare"),
    )
    # 600 MiB on 2 of 3 nodes count as 400 MiB: 100 * (400 - 23) // (1000 - 23) = 38.
    assert score_nodes(PLUGIN, pod(images=["app:1"]), snapshot) == {"big": 38, "same": 38, "bare": 0}


def test_more_containers_raise_the_bar_and_images_add_up() -> None:
    snapshot = snapshot_of(node("n1", images={"a:1": 300 * MIB, "b:latest": 500 * MIB}))
    # 100 * (800 - 23) // (2000 - 23) = 39; of two init containers with the same image each counts.
    assert score_nodes(PLUGIN, pod(images=["a:1", "b"]), snapshot) == {"n1": 39}
    initial = pod(images=["x"], spec={"initContainers": [{"name": "i", "image": "a:1"}, {"name": "j", "image": "a:1"}]})
    assert score_nodes(PLUGIN, initial, snapshot) == {"n1": 100 * (600 - 23) // (3000 - 23)}


def test_image_volumes_add_bytes_and_raise_the_bar_since_1_37() -> None:
    snapshot = snapshot_of(node("n1", images={"a:1": 300 * MIB, "model:1": 500 * MIB}))
    mounting = pod(images=["a:1"], spec={"volumes": [{"name": "m", "image": {"reference": "model:1"}}]})
    assert score_nodes(PLUGIN, mounting, snapshot) == {"n1": 100 * (800 - 23) // (2000 - 23)}
    former = ImageLocality(None, RecordingHandle(release=RELEASES["1.36"]))
    assert score_nodes(former, mounting, snapshot) == {"n1": 100 * (800 - 23) // (1000 - 23)}


def test_the_score_is_clamped_on_both_sides() -> None:
    snapshot = snapshot_of(node("n1", images={"small:1": 23 * MIB, "huge:1": 5000 * MIB}))
    assert score_nodes(PLUGIN, pod(images=["small:1"]), snapshot) == {"n1": 0}
    assert score_nodes(PLUGIN, pod(images=["huge:1"]), snapshot) == {"n1": 100}
    assert score_nodes(PLUGIN, pod(images=["nowhere:1"]), snapshot) == {"n1": 0}


def test_it_rejects_nothing_and_so_waits_for_nothing() -> None:
    assert PLUGIN.events_to_register() == ()
