from __future__ import annotations

from msgspec.structs import replace

from podium.objects.storage import PersistentVolume
from podium.plugins.volumes.assumed import Assumed
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import volume


def newer(item: PersistentVolume) -> PersistentVolume:
    return replace(item, metadata=replace(item.metadata, resource_version=item.metadata.resource_version + "0"))


def test_an_assumption_holds_until_the_watch_has_a_newer_state() -> None:
    listed = Listed([volume("one")])
    assumed, known = Assumed(listed), volume("one")
    kept = replace(known, status=replace(known.status, phase="Bound"))
    assumed.assume(kept)
    assert assumed.get("one") is kept
    listed._objects["one"] = newer(known)
    assert assumed.get("one") is listed._objects["one"]


def test_assumptions_that_nobody_asks_for_again_are_not_kept() -> None:
    one, gone, third = volume("one"), volume("gone"), volume("third")
    listed = Listed([one, gone, third])
    assumed = Assumed(listed)
    assumed.assume(one)
    assumed.assume(gone)
    listed._objects["one"] = newer(one)
    del listed._objects["gone"]
    assumed.assume(third)
    assert list(assumed._assumed) == ["third"]
