from dataclasses import dataclass

from benchmarks.medians import medians


@dataclass(frozen=True)
class Row:
    name: str
    size: int
    seconds: float
    bytes: float


def test_each_figure_is_the_median_of_its_own_and_names_stay() -> None:
    rows = [Row("a", 5, 1.0, 9.0), Row("a", 5, 3.0, 7.0), Row("a", 5, 2.0, 8.5)]
    assert medians(rows, lambda row: row.name) == [Row("a", 5, 2.0, 8.5)]


def test_keys_stay_in_the_order_of_their_first_rows() -> None:
    rows = [Row("b", 1, 1.0, 1.0), Row("a", 1, 4.0, 1.0), Row("b", 1, 3.0, 1.0)]
    assert medians(rows, lambda row: row.name) == [Row("b", 1, 2.0, 1.0), Row("a", 1, 4.0, 1.0)]
