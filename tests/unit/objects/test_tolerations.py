import pytest

from podium.objects.core import Taint, Toleration
from podium.objects.tolerations import is_tolerated, tolerates

TAINT = Taint(key="dedicated", value="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "is_covered"),
    [
        (Toleration(key="dedicated", value="gpu"), True),
        (Toleration(key="dedicated", operator="Equal", value="gpu", effect="NoSchedule"), True),
        (Toleration(key="dedicated", operator="Equal", value="cpu"), False),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(value="gpu"), True),
        (Toleration(key="dedicated", operator="exists"), False),
    ],
)
def test_which_tolerations_cover_a_taint(toleration: Toleration, is_covered: bool) -> None:
    assert tolerates(toleration, TAINT) is is_covered


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_comparisons_never_cover_a_taint(operator: str) -> None:
    taint = Taint(key="k", value="5", effect="NoSchedule")
    assert not any(tolerates(Toleration(key="k", operator=operator, value=value), taint) for value in ("1", "5", "9"))


def test_one_toleration_is_enough() -> None:
    assert is_tolerated([Toleration(key="x"), Toleration(operator="Exists")], TAINT)
    assert not is_tolerated([], TAINT)
