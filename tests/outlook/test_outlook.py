"""A few of the clusters that `python -m tests.outlook` asks about."""

from __future__ import annotations

import pytest

from tests.outlook.played import check_outlooks


# In the last one a pod needs another near it, which waits too, and comes there only if that node's pods leave first.
@pytest.mark.parametrize("seed", [*range(1, 7), 115027])
def test_what_the_outlook_says_of_each_pod_is_what_then_comes(seed: int) -> None:
    checked = check_outlooks(seed)
    assert checked.verdicts
    assert checked.faults == []
