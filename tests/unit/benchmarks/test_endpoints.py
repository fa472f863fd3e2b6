import math

import pytest

from benchmarks.endpoints import Histogram, histogram, total

PAGE = """\
# HELP attempt_seconds How long.
# TYPE attempt_seconds histogram
attempt_seconds_bucket{profile="a",le="0.001"} 10
attempt_seconds_bucket{profile="a",le="0.002"} 30
attempt_seconds_bucket{profile="a",le="+Inf"} 40
attempt_seconds_sum{profile="a"} 1.5
attempt_seconds_count{profile="a"} 40
attempt_seconds_bucket{profile="b",le="0.001"} 0
attempt_seconds_bucket{profile="b",le="0.002"} 10
attempt_seconds_bucket{profile="b",le="+Inf"} 10
attempt_seconds_sum{profile="b"} 0.2
attempt_seconds_count{profile="b"} 10
# HELP other_seconds Something else.
# TYPE other_seconds histogram
other_seconds_bucket{le="+Inf"} 7
other_seconds_sum 7
other_seconds_count 7
"""


def test_a_histogram_is_the_sum_over_all_labels() -> None:
    assert histogram(PAGE, "attempt_seconds") == Histogram((0.001, 0.002, math.inf), (10, 40, 50))


def test_a_histogram_of_some_labels_leaves_out_the_others() -> None:
    assert histogram(PAGE, "attempt_seconds", profile="b") == Histogram((0.001, 0.002, math.inf), (0, 10, 10))


def test_what_was_there_before_does_not_count() -> None:
    durations = Histogram((1.0, 2.0, math.inf), (10, 40, 45))
    assert durations.since(Histogram((1.0, 2.0, math.inf), (10, 20, 25))) == Histogram(
        (1.0, 2.0, math.inf), (0, 20, 20)
    )
    assert durations.since(Histogram((), ())) == durations


def test_a_quantile_lies_on_a_straight_line_within_its_bucket() -> None:
    durations = Histogram((1.0, 2.0, 4.0, math.inf), (10, 40, 50, 50))
    assert durations.quantile(0.2) == 1.0
    assert durations.quantile(0.5) == pytest.approx(1.5)
    assert durations.quantile(0.9) == pytest.approx(3.0)


def test_what_is_beyond_the_last_bound_is_taken_for_it() -> None:
    assert Histogram((1.0, math.inf), (5, 10)).quantile(0.99) == 1.0


def test_what_is_above_a_bound_is_counted() -> None:
    durations = Histogram((1.0, 2.0, math.inf), (10, 40, 45))
    assert (durations.above(1.0), durations.above(2.0)) == (35, 5)
    assert Histogram((), ()).above(1.0) == 0


@pytest.mark.parametrize("empty", [Histogram((), ()), Histogram((1.0, math.inf), (0, 0))])
def test_nothing_has_no_quantile(empty: Histogram) -> None:
    assert math.isnan(empty.quantile(0.5))


def test_samples_are_added_up_over_the_labels_that_do_not_matter() -> None:
    assert total(PAGE, "attempt_seconds_sum") == pytest.approx(1.7)
    assert total(PAGE, "attempt_seconds_sum", profile="b") == 0.2
    assert total(PAGE, "unheard_of") == 0.0
