"""The lower bound on the price of a purchase."""

from itertools import combinations_with_replacement
from random import Random

import pytest

from podium.provisioner.planners.price_bound import cheapest_mixture, price_bound


def test_the_bound_of_one_kind_is_its_price_for_the_amount():
    assert price_bound([2.0], [{"cpu": 4000}], {"cpu": 6000}) == pytest.approx(3.0)


def test_nothing_is_needed_for_what_is_there():
    assert price_bound([2.0], [{"cpu": 4000}], {"cpu": -1}) == price_bound([], [], {"cpu": 1}) == 0.0


def test_the_cheapest_mixture_counts():
    prices, rooms = [1.0, 1.0, 1.5], [{"cpu": 4, "memory": 4}, {"cpu": 1, "memory": 16}, {"cpu": 4, "memory": 16}]
    assert price_bound(prices, rooms, {"cpu": 8, "memory": 32}) == pytest.approx(3.0)


def test_the_mixture_has_the_amounts_for_the_price():
    prices, rooms = [1.0, 1.0, 1.5], [{"cpu": 4, "memory": 4}, {"cpu": 1, "memory": 16}, {"cpu": 4, "memory": 16}]
    demand = {"cpu": 10, "memory": 20}
    mixture = cheapest_mixture(prices, rooms, demand)
    assert sum(prices[kind] * amount for kind, amount in mixture.amounts.items()) == pytest.approx(mixture.price)
    for name, demanded_amount in demand.items():
        assert sum(rooms[kind][name] * amount for kind, amount in mixture.amounts.items()) >= demanded_amount - 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_no_purchase_is_cheaper_than_the_bound(seed: int):
    chance = Random(seed)
    names = ("cpu", "memory", "gpu")[: chance.randint(1, 3)]
    rooms = [{name: chance.randint(0, 16) for name in names} for _ in range(chance.randint(1, 5))]
    rooms.append(dict.fromkeys(names, 8))
    prices = [chance.uniform(0.5, 5) for _ in rooms]
    demand = {name: chance.randint(1, 24) for name in names}
    price_min = price_bound(prices, rooms, demand)
    enough = [
        sum(prices[index] for index in indexes)
        for size in range(5)
        for indexes in combinations_with_replacement(range(len(rooms)), size)
        if all(sum(rooms[index][name] for index in indexes) >= amount for name, amount in demand.items())
    ]
    assert min(enough) >= price_min - 1e-9
