from __future__ import annotations

import numpy as np

from podium.cluster.labels import ABSENT, VALUES_KEPT, LabelColumns
from podium.cluster.value_sums import ValueSums


def values_by_row(column) -> list[str | None]:
    return [column.values[index] for index in column.ids]


def test_column_is_built_from_the_rows_when_it_is_first_asked_for():
    columns = LabelColumns(4)
    assert columns.get("app") is None
    column = columns.build("app", [{"app": "web"}, None, {"app": "db"}, {"tier": "x"}])
    assert values_by_row(column) == ["web", None, "db", None]
    assert columns.get("app") is column


def test_equal_values_share_an_id():
    column = LabelColumns(3).build("app", [{"app": "web"}, {"app": "db"}, {"app": "web"}])
    assert column.ids[0] == column.ids[2] != column.ids[1]
    assert column.id_of("web") == column.ids[0]
    assert column.id_of("cache") is None


def test_empty_value_is_not_the_absence_of_the_label():
    column = LabelColumns(2).build("app", [{"app": ""}, {}])
    assert column.ids[0] != ABSENT
    assert column.ids[1] == ABSENT


def test_every_built_column_follows_changes_and_growth():
    columns = LabelColumns(1)
    app = columns.build("app", [{"app": "web"}])
    tier = columns.build("tier", [{"app": "web"}])
    columns.resize(3)
    columns.set(2, {"app": "db", "tier": "back"})
    columns.set(0, {"tier": "front"})
    assert values_by_row(app) == [None, None, "db"]
    assert values_by_row(tier) == ["front", None, "back"]
    assert len(columns.build("zone", [None, None, None]).ids) == 3


def churn(columns: LabelColumns, values: int, *, first: int = 0) -> None:
    """Row 1 has so many values of its own, one after the other; row 0 stays as it is."""
    for number in range(first, first + values):
        columns.set(1, {"host": f"n{number}"})
        columns.settle()


def test_values_that_no_node_has_any_more_are_forgotten():
    columns = LabelColumns(3)
    first = columns.build("host", [{"host": "stays"}, {}, {}])
    churn(columns, 10 * VALUES_KEPT)
    column = columns.get("host")
    assert column is not first
    assert len(column.values) <= VALUES_KEPT + 1
    assert values_by_row(column) == ["stays", f"n{10 * VALUES_KEPT - 1}", None]
    assert (column.id_of("stays"), column.id_of("n1")) == (column.ids[0], None)
    assert column.labelled_count() == 2


def test_values_in_use_are_kept_however_many_they_are():
    count = 3 * VALUES_KEPT
    columns = LabelColumns(count)
    column = columns.build("host", [{"host": f"n{number}"} for number in range(count)])
    columns.settle()
    assert columns.get("host") is column
    assert column.values_max == 2 * (count + 1)


def test_sums_by_value_begin_again_when_a_column_is_replaced():
    columns = LabelColumns(3)
    first = columns.build("host", [{"host": "stays"}, {}, {}])
    sums, by_row = ValueSums(), np.array([5, 7, 0])
    churn(columns, VALUES_KEPT - 2)
    sums.of(first, by_row)
    churn(columns, 3, first=VALUES_KEPT)
    columns.resize(100)
    sums.count(50, 1)
    by_row = np.append(by_row, np.zeros(97, np.int64))
    column = columns.get("host")
    assert column is not first
    assert sums.of(column, by_row)[column.id_of("stays")] == 5
