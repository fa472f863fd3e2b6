import gc

import pytest

from podium.lib import garbage_collection


@pytest.fixture(autouse=True)
def podiums_own_collector(monkeypatch):
    """Outside these tests podium freezes nothing. The tests stay frozen: a collection would walk over them."""
    monkeypatch.setattr(garbage_collection, "gc", gc)
    yield
    gc.freeze()


@pytest.fixture
def nothing_frozen(podiums_own_collector):
    """Nothing is frozen, not even the tests."""
    gc.unfreeze()


def test_collections_are_rare_after_settling_and_skip_exempted_objects():
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        garbage_collection.settle()
        assert gc.get_threshold() > (700, 10, 10)
        freeze_count = gc.get_freeze_count()
        lasting_objects = [[] for _ in range(1000)]
        garbage_collection.exempt_present_objects()
        assert gc.get_freeze_count() >= freeze_count + len(lasting_objects)
    finally:
        garbage_collection.thaw()
        gc.set_threshold(*thresholds)


def test_collection_is_disabled_within_the_context_only():
    with garbage_collection.collection_disabled():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_objects_created_while_collection_is_disabled_are_not_in_the_young_generation(nothing_frozen):
    with garbage_collection.collection_disabled():
        lasting_objects = [[] for _ in range(2_000)]
    assert len(gc.get_objects(0)) < len(lasting_objects)
    assert gc.get_freeze_count() == 0


def test_frozen_objects_stay_frozen():
    garbage_collection.exempt_present_objects()
    try:
        frozen_count = gc.get_freeze_count()
        with garbage_collection.collection_disabled():
            pass
        assert gc.get_freeze_count() == frozen_count
    finally:
        garbage_collection.thaw()
    with garbage_collection.collection_disabled():
        pass
    assert gc.get_freeze_count() == 0


def test_collection_that_was_disabled_before_the_context_stays_disabled():
    gc.disable()
    try:
        with garbage_collection.collection_disabled():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_rare_collections_end_with_the_context():
    # An earlier test may have raised the thresholds already.
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        with garbage_collection.rare_collections():
            assert gc.get_threshold() > (700, 10, 10)
            assert gc.get_freeze_count() > 0
        assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)
    finally:
        gc.set_threshold(*thresholds)
