"""The number decides between singular and plural."""

from __future__ import annotations

import pytest

from podium.lib.plurals import count_of


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods"), (12345, "12,345 pods")])
def test_a_count_has_its_noun_in_the_number_that_fits(count: int, text: str) -> None:
    assert count_of(count, "pod") == text
