"""Well known, restricted and old labels."""

from __future__ import annotations

import pytest

from podium.provisioner.apis.labels import KWOK_WELL_KNOWN, WELL_KNOWN, current_name, is_restricted_label

KNOWN = WELL_KNOWN | KWOK_WELL_KNOWN | {"karpenter.kwok.sh/reservation-id"}


@pytest.mark.parametrize(
    ("old", "current"),
    [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("example.com/team", "example.com/team"),
    ],
)
def test_old_names_become_current_ones(old: str, current: str) -> None:
    assert current_name(old) == current


@pytest.mark.parametrize(
    "key",
    ["kubernetes.io/hostname", "karpenter.sh/custom", "a.b.karpenter.sh/custom", "karpenter.kwok.sh/custom"],
)
def test_labels_that_karpenter_sets_itself_are_restricted(key: str) -> None:
    assert is_restricted_label(key, KNOWN)


@pytest.mark.parametrize(
    "key",
    [
        "karpenter.sh/nodepool",
        "karpenter.sh/capacity-type",
        "karpenter.kwok.sh/instance-cpu",
        "karpenter.kwok.sh/reservation-id",
        "topology.kubernetes.io/zone",
        "example.com/team",
        "notkarpenter.sh/custom",
        "karpenter.sh",
        "team",
    ],
)
def test_well_known_labels_and_labels_of_other_domains_are_not_restricted(key: str) -> None:
    assert not is_restricted_label(key, KNOWN)
