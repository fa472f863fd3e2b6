import gc

from podium.lib import garbage_collection


def test_collector_looks_rarely_and_not_at_what_stays():
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        garbage_collection.settle()
        assert gc.get_threshold() > (700, 10, 10)
        frozen = gc.get_freeze_count()
        stays = [[] for _ in range(1000)]
        garbage_collection.exempt_present_objects()
        assert gc.get_freeze_count() >= frozen + len(stays)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def test_collector_does_not_look_while_modules_are_loaded():
    with garbage_collection.collection_disabled():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_objects_made_without_collections_are_not_scanned_as_young_ones():
    with garbage_collection.collection_disabled():
        lasting = [[] for _ in range(2_000)]
    assert len(gc.get_objects(0)) < len(lasting)
    assert gc.get_freeze_count() == 0


def test_frozen_objects_stay_frozen():
    gc.freeze()
    try:
        frozen_count = gc.get_freeze_count()
        with garbage_collection.collection_disabled():
            pass
        assert gc.get_freeze_count() == frozen_count
    finally:
        gc.unfreeze()


def test_a_collector_that_was_disabled_before_stays_disabled():
    gc.disable()
    try:
        with garbage_collection.collection_disabled():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collections_are_rare_during_one_piece_of_work():
    # An earlier test may have left collections as rare as they get.
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        with garbage_collection.rare_collections():
            assert gc.get_threshold() > (700, 10, 10)
            assert gc.get_freeze_count() > 0
        assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)
    finally:
        gc.set_threshold(*thresholds)
