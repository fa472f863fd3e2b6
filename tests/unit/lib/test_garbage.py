import gc

from podium.lib import garbage


def test_collector_looks_rarely_and_not_at_what_stays():
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        garbage.settle()
        assert gc.get_threshold() > (700, 10, 10)
        frozen = gc.get_freeze_count()
        stays = [[] for _ in range(1000)]
        garbage.keep_what_is_there()
        assert gc.get_freeze_count() >= frozen + len(stays)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def test_collector_does_not_look_while_modules_are_loaded():
    with garbage.off_while_loading():
        assert not gc.isenabled()
    assert gc.isenabled()
