from __future__ import annotations

from podium.cluster.labels import ABSENT, LabelColumns


def shown(column) -> list[str | None]:
    return [column.values[index] for index in column.ids]


def test_column_is_built_from_the_rows_when_it_is_first_asked_for():
    columns = LabelColumns(4)
    assert columns.get("app") is None
    column = columns.build("app", [{"app": "web"}, None, {"app": "db"}, {"tier": "x"}])
    assert shown(column) == ["web", None, "db", None]
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
    assert shown(app) == [None, None, "db"]
    assert shown(tier) == ["front", None, "back"]
    assert len(columns.build("zone", [None, None, None]).ids) == 3
