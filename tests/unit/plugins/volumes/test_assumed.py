from __future__ import annotations

from msgspec.structs import replace

from podium.objects.storage import PersistentVolume
from podium.plugins.volumes.assumed import Assumed
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import volume


def newer(item: PersistentVolume) -> PersistentVolume:
    return replace(item, metadata=replace(item.metadata, resource_version=item.metadata.resource_version + "0"))


def test_an_assumption_holds_until_the_watch_has_a_newer_state() -> None:
    volumes = Listed([volume("one")])
    assumptions, first_volume = Assumed(volumes), volume("one")
    changed_volume = replace(first_volume, status=replace(first_volume.status, phase="Bound"))
    assumptions.assume(changed_volume)
    assert assumptions.get("one") is changed_volume
    volumes._objects["one"] = newer(first_volume)
    assert assumptions.get("one") is volumes._objects["one"]


def test_assumptions_that_nobody_asks_for_again_are_not_kept() -> None:
    first, removed_volume, third = volume("one"), volume("gone"), volume("third")
    volumes = Listed([first, removed_volume, third])
    assumptions = Assumed(volumes)
    assumptions.assume(first)
    assumptions.assume(removed_volume)
    volumes._objects["one"] = newer(first)
    del volumes._objects["gone"]
    assumptions.assume(third)
    assert list(assumptions._assumed) == ["third"]
