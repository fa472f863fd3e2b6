from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from podium.framework.contract import Code
from podium.plugins.shared.preemption_rows import rows_to_try
from tests.builders import node, snapshot_of


class Codes:
    def codes(self) -> Any:
        return np.array([Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE])


@pytest.mark.parametrize(
    ("loops_on", "names", "held_back"),
    [
        ((), ["a", "c"], []),
        (("c", "b", "gone"), ["a"], ["c"]),
        (("a", "c"), [], ["a", "c"]),
    ],
)
def test_evictions_are_tried_where_they_may_help_and_end_in_no_loop(loops_on, names, held_back) -> None:
    snapshot = snapshot_of(node("a"), node("b"), node("c"))
    rows = rows_to_try(cast(Any, Codes()), snapshot, loops_on)
    assert [sorted(snapshot.nodes[row].name for row in part) for part in rows] == [names, held_back]
