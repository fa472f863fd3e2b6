"""Which taints a pod tolerates, and which a node will lose."""

import pytest

from podium.objects.core import Taint, Toleration
from podium.provisioner.scheduling.taints import is_ephemeral, taints_text, untolerated_taints

GPU = Taint(key="gpu", value="5", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", value="5"), True),
        (Toleration(key="gpu", operator="Gt", value="4"), True),
        (Toleration(key="gpu", operator="Gt", value="5"), False),
        (Toleration(key="gpu", operator="Lt", value="6"), True),
        (Toleration(key="gpu", operator="Lt", value="many"), False),
        (Toleration(key="cpu", operator="Gt", value="4"), False),
        (Toleration(key="gpu", operator="Gt", value="4", effect="NoExecute"), False),
    ],
)
def test_tolerations_compare_numbers_too(toleration: Toleration, tolerated: bool) -> None:
    assert (untolerated_taints([GPU], [toleration]) == []) is tolerated


def test_preferences_must_be_tolerated_like_any_taint() -> None:
    taint = Taint(key="old", effect="PreferNoSchedule")
    assert untolerated_taints([GPU, taint], []) == [GPU, taint]


def test_each_taint_is_told() -> None:
    assert taints_text([GPU, Taint(key="old", effect="NoExecute")]) == (
        "did not tolerate taint (taint=gpu=5:NoSchedule); did not tolerate taint (taint=old:NoExecute)"
    )


def test_key_and_effect_tell_a_passing_taint() -> None:
    assert is_ephemeral(Taint(key="node.kubernetes.io/not-ready", value="x", effect="NoExecute"))
    assert is_ephemeral(Taint(key="readiness.k8s.io/anything", effect="NoSchedule"))
    assert not is_ephemeral(Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"))
