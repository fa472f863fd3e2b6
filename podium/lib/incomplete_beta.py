"""The regularized incomplete beta function: the share of a beta distribution that lies below a value.

Source: the continued fraction of Numerical Recipes, section 6.4, evaluated by Lentz's method.
"""

from __future__ import annotations

import math
from typing import Final

_ACCURACY: Final = 1e-15
_TINY: Final = 1e-300
_STEPS_MAX: Final = 10_000


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b) for x from 0 to 1 and a, b above 0, good to 1e-12; 0 if it does not converge."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _continued_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _continued_fraction(b, a, 1 - x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d
    for step in range(1, _STEPS_MAX):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _ACCURACY:
            return result
    return 0.0


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
