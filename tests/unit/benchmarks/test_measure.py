from benchmarks.measure import Progress


def test_a_scheduler_that_does_nothing_for_a_minute_has_stalled() -> None:
    progress = Progress()
    assert not progress.is_stalled(5, cpu_s=1.0, now_s=100.0)
    assert not progress.is_stalled(5, cpu_s=1.1, now_s=160.0)
    assert progress.is_stalled(5, cpu_s=1.1, now_s=160.1)


def test_every_pod_that_is_bound_begins_a_new_minute() -> None:
    progress = Progress()
    assert not progress.is_stalled(5, cpu_s=1.0, now_s=100.0)
    assert not progress.is_stalled(6, cpu_s=1.0, now_s=159.0)
    assert not progress.is_stalled(6, cpu_s=1.0, now_s=210.0)


def test_a_busy_scheduler_has_five_minutes() -> None:
    progress = Progress()
    assert not progress.is_stalled(5, cpu_s=0.0, now_s=0.0)
    assert not progress.is_stalled(5, cpu_s=100.0, now_s=299.0)
    assert progress.is_stalled(5, cpu_s=100.0, now_s=301.0)
