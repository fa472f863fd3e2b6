"""A lower bound on the price of nodes that have room for some requests: the linear relaxation of buying them.

Owns no rule of scheduling: nodes are bought in fractions, and pods are poured into them, resource by resource. What
podium really needs costs as much or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from podium.objects.requests import Requests

_Floats: TypeAlias = npt.NDArray[np.float64]
_EPSILON: Final = 1e-9
_STEPS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Mixture:
    """The cheapest purchase of nodes in fractions.

    Attributes:
        price: what every purchase costs at least.
        amounts: how many nodes of each kind, by its index.
    """

    price: float
    amounts: Mapping[int, float]


def price_bound(prices: Sequence[float], rooms: Sequence[Requests], demand: Requests) -> float:
    """Return the least price for which the amounts of the demand can be bought. Args: as `cheapest_mixture`."""
    return cheapest_mixture(prices, rooms, demand).price


def cheapest_mixture(prices: Sequence[float], rooms: Sequence[Requests], demand: Requests) -> Mixture:
    """Return the cheapest nodes, in fractions, that have the amounts of the demand.

    The dual is solved: a price for each resource, so that no kind of node has room worth more than it costs. Each of
    its solutions is a bound, so that it does not matter where the simplex method ends.

    Args:
        prices: of each kind of node.
        rooms: what each kind has for pods.
        demand: what is needed of each resource beyond what is there. Some node has each of them.
    """
    names = sorted(name for name, amount in demand.items() if amount > 0)
    if not names or not prices or min(prices) <= 0:
        return Mixture(0.0, {})
    # In shares of the demand: bytes beside cores would drown in rounding.
    scale = np.array([demand[name] for name in names], dtype=np.float64)
    rooms_scaled = np.array([[max(room.get(name, 0), 0) for name in names] for room in rooms], dtype=np.float64) / scale
    # Of hundreds of kinds of nodes a few matter: those that are the best buy for some mixture of resources.
    per_price = rooms_scaled / np.array(prices, dtype=np.float64)[:, None]
    active = list(dict.fromkeys(map(int, per_price.argmax(axis=0))))
    while True:
        duals, expenses = _largest(per_price[active])
        worth = per_price @ duals
        best = int(worth.argmax())
        if worth[best] <= 1 + _EPSILON or best in active:
            # Rounding may leave a node with room for slightly more than its price; the bound has to hold nevertheless.
            amounts = {kind: float(expense) / prices[kind] for kind, expense in zip(active, expenses, strict=True)}
            return Mixture(float(duals.sum() / max(worth[best], 1.0)), amounts)
        active.append(best)


def _largest(coefficients: _Floats) -> tuple[_Floats, _Floats]:
    """Return values, none negative, with the largest sum for which `coefficients @ values` is at most 1 in each row.

    Returns: the values, and by row how much the sum would grow if 1 were 2 there.

    Source: G. B. Dantzig's simplex method, with R. G. Bland's rule against cycles.
    """
    rows, columns = coefficients.shape
    tableau = np.hstack([coefficients, np.eye(rows), np.ones((rows, 1))])
    gains = np.concatenate([np.ones(columns), np.zeros(rows + 1)])
    basis = np.arange(columns, columns + rows)
    for _ in range(_STEPS_MAX):
        improving = np.flatnonzero(gains[:-1] > _EPSILON)
        if not len(improving):
            break
        column = improving[0]
        bounded = np.flatnonzero(tableau[:, column] > _EPSILON)
        if not len(bounded):
            break
        ratios = tableau[bounded, -1] / tableau[bounded, column]
        ties = bounded[ratios <= ratios.min() + _EPSILON]
        row = ties[np.argmin(basis[ties])]
        tableau[row] /= tableau[row, column]
        other_rows = np.arange(rows) != row
        tableau[other_rows] -= np.outer(tableau[other_rows, column], tableau[row])
        gains = gains - gains[column] * tableau[row]
        basis[row] = column
    # Variables outside the basis are 0, and so are those of a slack.
    values = np.zeros(columns)
    in_basis = basis < columns
    values[basis[in_basis]] = tableau[in_basis, -1].clip(0)
    return values, -gains[columns:-1].clip(max=0)
