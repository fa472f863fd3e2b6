from __future__ import annotations

import numpy as np

from podium.cluster.matching.lookup import Lookup


def test_each_entry_of_a_growing_table_is_judged_once() -> None:
    judged: list[str] = []

    def length(entry: str) -> int:
        judged.append(entry)
        return len(entry)

    lookup = Lookup(length, np.int64)
    table = ["a", "bbb"]
    assert lookup.over(table).tolist() == [1, 3]
    table.append("cc")
    assert lookup.over(table).tolist() == [1, 3, 2]
    assert lookup.over(table).tolist() == [1, 3, 2]
    assert judged == ["a", "bbb", "cc"]


def test_another_table_is_judged_anew_even_where_it_is_equal() -> None:
    judged: list[str] = []
    lookup = Lookup(lambda entry: not judged.append(entry), np.bool_)
    lookup.over(["a"])
    lookup.over(["a"])
    assert judged == ["a", "a"]
