"""The incomplete beta function, held against closed forms and its symmetry."""

from __future__ import annotations

import math

import pytest

from podium.lib.incomplete_beta import incomplete_beta


@pytest.mark.parametrize("x", [0.0, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0])
def test_values_with_a_closed_form_are_exact(x):
    assert incomplete_beta(1, 1, x) == pytest.approx(x, abs=1e-12)
    assert incomplete_beta(2, 1, x) == pytest.approx(x * x, abs=1e-12)
    assert incomplete_beta(1, 3, x) == pytest.approx(1 - (1 - x) ** 3, abs=1e-12)
    assert incomplete_beta(0.5, 0.5, x) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.01, 30), (7, 0.2), (400, 1000), (2e5, 3e5)])
def test_it_is_symmetric_and_rises(a, b):
    values = [incomplete_beta(a, b, at / 50) for at in range(51)]
    assert values == sorted(values)
    for at, value in enumerate(values):
        assert incomplete_beta(b, a, 1 - at / 50) == pytest.approx(1 - value, abs=1e-10)
