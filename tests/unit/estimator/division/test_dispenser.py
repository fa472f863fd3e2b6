from random import Random

import pytest

from podium.estimator.division.dispenser import divide_by_weights


@pytest.mark.parametrize(
    ("replicas", "weights", "uid", "shares"),
    [
        (9, {"a": 1, "b": 2}, "", {"a": 3, "b": 6}),
        (9, {"a": 1, "b": 3}, "", {"a": 2, "b": 7}),
        (10, {"a": 1, "b": 1, "c": 1}, "", {"a": 4, "b": 3, "c": 3}),
        # The hash of this UID is odd.
        (10, {"a": 1, "b": 1, "c": 1}, "b", {"a": 3, "b": 3, "c": 4}),
        (12, {"a": 18, "b": 12, "c": 6}, "", {"a": 6, "b": 4, "c": 2}),
        (3, {"a": 0, "b": 0}, "", {}),
        (0, {"a": 1}, "", {"a": 0}),
        (3, {"a": 2, "b": -1}, "", {"a": 3, "b": 0}),
    ],
)
def test_replicas_follow_the_weights(replicas, weights, uid, shares):
    assert divide_by_weights(replicas, weights, uid) == shares


def _one_by_one(replicas, weights):
    seats = dict.fromkeys(weights, 0)
    for _ in range(replicas):
        best = min(weights, key=lambda name: (-float(weights[name]) / (2 * seats[name] + 1), seats[name], name))
        seats[best] += 1
    return seats


def test_giving_most_out_at_once_changes_nothing():
    random = Random(7)
    for _ in range(200):
        weights = {f"m{number}": random.choice([1, 1, 2, 7, 40, 2**31]) for number in range(random.randint(1, 9))}
        replicas = random.randint(0, 200)
        assert divide_by_weights(replicas, weights, "") == _one_by_one(replicas, weights)


def test_two_billion_replicas_over_huge_weights_are_divided_at_once():
    shares = divide_by_weights(2**31 - 1, {"a": 2**63 - 1, "b": 2**63 - 1, "c": 1}, "")
    assert sorted(shares.values()) == [0, 2**30 - 1, 2**30]
