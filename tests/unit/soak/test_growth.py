from __future__ import annotations

import os

from tests.soak.growth import Sample, growth, sample


def at(pods: int, rss_mib: float = 100.0, tasks: int = 19, descriptors: int = 9) -> Sample:
    return Sample(1.0, pods, rss_mib, tasks, 2, descriptors)


def test_what_stays_within_five_percent_from_a_fifth_on_has_not_grown() -> None:
    samples = [at(100_000, 50.0), at(200_000, 100.0), at(500_000, 110.0), at(1_000_000, 104.9, descriptors=13)]
    assert growth(samples) == []


def test_memory_tasks_and_descriptors_are_each_found_to_grow() -> None:
    assert growth([at(200_000), at(1_000_000, 106.0, 20, 14)]) == [
        "RSS has grown by 6.0%, from 100.0 MiB",
        "tasks have grown from 19 to 20",
        "descriptors have grown from 9 to 14",
    ]


def test_what_fills_the_caches_is_no_growth() -> None:
    assert growth([at(10_000, 50.0), at(20_000, 100.0), at(30_000, 104.9)]) == []


def test_a_run_that_ends_before_the_caches_are_full_tells_nothing() -> None:
    too_few = "12,000 pods are too few to tell: caches fill until there have been 20,000"
    assert growth([at(5_000), at(12_000)]) == [too_few]


def test_a_sample_is_of_the_process_that_was_asked_for() -> None:
    last_sample = sample(os.getpid(), seconds=1.0, pods=2, tasks=3)
    assert last_sample.rss_mib > 10
    assert last_sample.threads >= 1
    assert last_sample.descriptors >= 3
