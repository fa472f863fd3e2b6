from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.daemon.live_page.tables import Row, Table


def changes(table: Table, since: int) -> Any:
    return orjson.loads(table.changes(since))


def test_a_new_reader_is_sent_everything() -> None:
    table = Table("cpu")
    table.replace({"n1": (1,), "n2": (2,)})
    assert changes(table, 0) == {"reset": True, "put": [{"key": "n1", "cpu": 1}, {"key": "n2", "cpu": 2}], "gone": []}


def test_later_only_what_has_changed_is_sent() -> None:
    table = Table("cpu")
    table.replace({"n1": (1,), "n2": (2,), "n3": (3,)})
    version = table.version
    table.replace({"n1": (1,), "n2": (5,), "n4": (4,)})
    assert changes(table, version) == {"put": [{"key": "n2", "cpu": 5}, {"key": "n4", "cpu": 4}], "gone": ["n3"]}


def test_nothing_is_new_where_nothing_has_changed() -> None:
    table = Table("cpu")
    table.replace({"n1": (1,)})
    version = table.version
    table.replace({"n1": (1,)})
    assert (table.version, changes(table, version)) == (version, {"put": [], "gone": []})


def test_a_row_that_came_back_is_not_gone() -> None:
    table = Table("cpu")
    table.replace({"n1": (1,)})
    version = table.version
    table.replace({})
    table.replace({"n1": (1,)})
    assert changes(table, version) == {"put": [{"key": "n1", "cpu": 1}], "gone": []}


ROWS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 2)), max_size=6)


@pytest.mark.long
@given(st.lists(ROWS, min_size=1, max_size=12), st.data())
def test_whoever_applies_the_changes_has_the_table_however_long_they_did_not_look(
    steps: list[dict[str, Row]], data: st.DataObject
) -> None:
    table, client_rows, version = Table("cpu", gone_kept=2), {}, 0
    for rows in steps:
        table.replace(rows)
        if data.draw(st.booleans()):
            changes_read = changes(table, version)
            client_rows = (
                {}
                if changes_read.get("reset")
                else {key: row for key, row in client_rows.items() if key not in changes_read["gone"]}
            )
            client_rows |= {row["key"]: (row["cpu"],) for row in changes_read["put"]}
            version = table.version
            assert client_rows == rows
            assert len(table) == len(rows)
