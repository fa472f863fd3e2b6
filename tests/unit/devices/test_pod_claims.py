import msgspec
import pytest

from podium.devices.pod_claims import ClaimProblem, claims_of_pod, problem_with_requests
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.meta import OwnerReference
from tests.unit.devices.cluster import CLASSES, claim, either, request

OWNER = OwnerReference(uid="u", controller=True)


def a_pod(*entries, made=()):
    return msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
            "spec": {"resourceClaims": list(entries)},
            "status": {"resourceClaimStatuses": list(made)},
        },
        Pod,
    )


def stored(name="c", owners=(), deleted=None):
    found = claim(name=name)
    metadata = msgspec.structs.replace(found.metadata, owner_references=tuple(owners), deletion_timestamp=deleted)
    return msgspec.structs.replace(found, metadata=metadata)


def look_up(pod, *claims: ResourceClaim):
    return claims_of_pod(pod, {each.key: each for each in claims}.get)


NAMED = {"name": "d", "resourceClaimName": "c"}
MADE = {"name": "d", "resourceClaimTemplateName": "t"}


def test_claims_come_in_the_order_of_the_spec_even_twice():
    one, other = stored("c"), stored("b")
    pod = a_pod(NAMED, {"name": "e", "resourceClaimName": "b"}, {"name": "f", "resourceClaimName": "c"})
    assert look_up(pod, one, other) == (one, other, one)


def test_claim_of_a_template_must_belong_to_the_pod():
    pod = a_pod(MADE, made=[{"name": "d", "resourceClaimName": "c"}])
    assert look_up(pod, stored(owners=[OWNER])) == (stored(owners=[OWNER]),)
    text = "ResourceClaim ns/c was not created for Pod ns/web (Pod is not owner)"
    for owners in ([], [OwnerReference(uid="u")], [OwnerReference(uid="x", controller=True)]):
        assert look_up(pod, stored(owners=owners)) == ClaimProblem(text)


def test_claim_that_was_named_may_belong_to_anything():
    assert look_up(a_pod(NAMED), stored()) == (stored(),)


def test_template_may_turn_out_to_need_no_claim():
    assert look_up(a_pod(MADE, made=[{"name": "d"}])) == ()


@pytest.mark.parametrize(
    ("entry", "claims", "reason"),
    [
        (MADE, (), 'pod "ns/web": ResourceClaim not created yet'),
        ({"name": "d"}, (), 'pod "ns/web", spec.resourceClaim "d": none of the supported fields are set'),
        (NAMED, (), 'could not find ResourceClaim "ns/c"'),
        (NAMED, (stored(deleted="2026-01-01T00:00:00Z"),), 'resourceclaim "c" is being deleted'),
    ],
)
def test_claim_that_cannot_be_used_is_a_problem(entry, claims, reason):
    assert look_up(a_pod(entry), *claims) == ClaimProblem(reason)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (request(), None),
        (request(deviceClassName="tpu"), "request r: device class tpu does not exist"),
        (
            either("r", request("a"), request("b", deviceClassName="tpu")),
            "request r/b: device class tpu does not exist",
        ),
        ({"name": "r"}, "resource claim ns/c, request r: unknown request type"),
    ],
)
def test_request_that_nobody_can_fulfil_is_a_problem(wanted, reason):
    assert problem_with_requests(claim(wanted), CLASSES.get) == (None if reason is None else ClaimProblem(reason))
