import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podium.telemetry.families import (
    Bounds,
    counter,
    exemplar_histogram,
    exponential,
    gauge,
    histogram,
    number,
    read_counter,
    read_gauge,
)


def parse(lines):
    text = "\n".join(lines) + "\n"
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_an_observation_on_a_bound_counts_as_below_it():
    family = histogram("wait_seconds", "Waiting.", Bounds(1, 2, 4))
    for value in (1, 1.5, 2, 5):
        family[()].observe(value)
    samples = parse(family.lines())
    assert [samples["wait_seconds_bucket", (("le", le),)] for le in ("1", "2", "4", "+Inf")] == [1, 3, 3, 4]
    assert samples["wait_seconds_sum", ()] == 9.5
    assert samples["wait_seconds_count", ()] == 4


def test_many_observations_are_each_counted_once():
    family = histogram("wait_seconds", "Waiting.", Bounds(1, 2, 4))
    for index in range(1_000):
        family[()].observe(index % 5)
        assert family[()].value == index + 1
    samples = parse(family.lines())
    assert [samples["wait_seconds_bucket", (("le", le),)] for le in ("1", "2", "4", "+Inf")] == [400, 600, 1000, 1000]
    assert samples["wait_seconds_sum", ()] == family[()].total == 2000


def test_exemplars_are_the_last_of_each_bucket_and_left_out_where_they_are_too_long():
    family = exemplar_histogram("wait_seconds", "Waiting.", Bounds(1, 2), lambda who: (("who", who),))
    for value, who in ((0.5, "a"), (0.75, 'b"'), (1.5, "c" * 200), (9, "d")):
        family[()].observe_of(value, who)
    assert list(family.lines(is_open=True))[2:] == [
        'wait_seconds_bucket{le="1.0"} 2 # {who="b\\""} 0.75',
        'wait_seconds_bucket{le="2.0"} 3',
        'wait_seconds_bucket{le="+Inf"} 4 # {who="d"} 9',
        "wait_seconds_sum 11.75",
        "wait_seconds_count 4",
    ]
    assert "#" not in "".join(list(family.lines())[2:])


def test_exponential_bounds_are_multiplied_up_one_by_one():
    assert exponential(0.001, 2, 4).values == (0.001, 0.002, 0.004, 0.008)
    # What go's ExponentialBuckets(0.00001, 1.5, 4) holds, rounding included.
    bounds = exponential(0.00001, 1.5, 4)
    assert bounds.values == (1e-05, 1e-05 * 1.5, 1e-05 * 1.5 * 1.5, 1e-05 * 1.5 * 1.5 * 1.5)
    assert bounds.texts[0] == "1e-05"


def test_a_family_without_labels_is_there_from_the_start_and_after_a_reset():
    family = counter("tries_total", "Tries.")
    assert parse(family.lines()) == {("tries_total", ()): 0}
    family[()].add(3)
    family.reset()
    assert parse(family.lines()) == {("tries_total", ()): 0}


def test_a_family_with_labels_shows_nothing_until_it_has_a_series():
    family = gauge("waiting", "Waiting.", "queue")
    assert list(family.lines()) == []
    family[("active",)].set(2)
    family[("active",)].add(-1)
    assert parse(family.lines()) == {("waiting", (("queue", "active"),)): 1}


def test_a_wrong_indexof_label_values_is_refused():
    with pytest.raises(ValueError, match="queue"):
        counter("pods_total", "Pods.", "queue", "event")[("active",)]


def test_a_read_gauge_asks_its_owner_each_time():
    family = read_gauge("waiting", "Waiting.", "queue")
    assert list(family.lines()) == []
    sizes = {"active": 1}
    family.read_from(lambda: sizes)
    assert parse(family.lines()) == {("waiting", (("queue", "active"),)): 1}
    sizes["backoff"] = 7
    assert parse(family.lines())["waiting", (("queue", "backoff"),)] == 7


def test_a_read_counter_without_a_label_shows_the_indexthat_its_owner_gives():
    family = read_counter("lost_total", "Lost.")
    assert list(family.lines()) == []
    family.read_from(lambda: 3)
    assert list(family.lines()) == ["# HELP lost_total Lost.", "# TYPE lost_total counter", "lost_total 3"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from('\\"\n')))
def test_any_label_value_reads_back_the_same(value):
    family = counter("calls_total", "Calls.", "plugin")
    family[(value,)].add()
    assert parse(family.lines()) == {("calls_total", (("plugin", value),)): 1}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_indexreads_back_the_same(value):
    assert float(number(value)) == value


@given(st.lists(st.floats(0, 100)))
def test_the_buckets_of_a_histogram_never_go_down(values):
    family = histogram("wait_seconds", "Waiting.", exponential(0.01, 2, 10))
    for value in values:
        family[()].observe(value)
    samples = [sample for (name, _), sample in parse(family.lines()).items() if name == "wait_seconds_bucket"]
    assert samples == sorted(samples)
    assert samples[-1] == len(values) == family[()].value
