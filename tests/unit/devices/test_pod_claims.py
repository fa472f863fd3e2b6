import msgspec
import pytest

from podium.devices.pod_claims import ClaimProblem, claims_of_pod, problem_with_requests
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.meta import OwnerReference
from tests.unit.devices.cluster import CLASSES, claim, either, request

OWNER = OwnerReference(uid="u", controller=True)


def a_pod(*entries, statuses=()):
    return msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
            "spec": {"resourceClaims": list(entries)},
            "status": {"resourceClaimStatuses": list(statuses)},
        },
        Pod,
    )


def stored_claim(name="c", owners=(), deletion_time=None):
    plain_claim = claim(name=name)
    metadata = msgspec.structs.replace(
        plain_claim.metadata, owner_references=tuple(owners), deletion_timestamp=deletion_time
    )
    return msgspec.structs.replace(plain_claim, metadata=metadata)


def look_up(pod, *claims: ResourceClaim):
    return claims_of_pod(pod, {item.key: item for item in claims}.get)


NAMED = {"name": "d", "resourceClaimName": "c"}
MADE = {"name": "d", "resourceClaimTemplateName": "t"}


def test_claims_come_in_the_order_of_the_spec_even_twice():
    first, second = stored_claim("c"), stored_claim("b")
    pod = a_pod(NAMED, {"name": "e", "resourceClaimName": "b"}, {"name": "f", "resourceClaimName": "c"})
    assert look_up(pod, first, second) == (first, second, first)


def test_claim_of_a_template_must_belong_to_the_pod():
    pod = a_pod(MADE, statuses=[{"name": "d", "resourceClaimName": "c"}])
    assert look_up(pod, stored_claim(owners=[OWNER])) == (stored_claim(owners=[OWNER]),)
    text = "ResourceClaim ns/c was not created for Pod ns/web (Pod is not owner)"
    for owners in ([], [OwnerReference(uid="u")], [OwnerReference(uid="x", controller=True)]):
        assert look_up(pod, stored_claim(owners=owners)) == ClaimProblem(text)


def test_claim_that_was_named_may_belong_to_anything():
    assert look_up(a_pod(NAMED), stored_claim()) == (stored_claim(),)


def test_template_may_turn_out_to_need_no_claim():
    assert look_up(a_pod(MADE, statuses=[{"name": "d"}])) == ()


@pytest.mark.parametrize(
    ("entry", "claims", "reason"),
    [
        (MADE, (), 'pod "ns/web": ResourceClaim not created yet'),
        ({"name": "d"}, (), 'pod "ns/web", spec.resourceClaim "d": none of the supported fields are set'),
        (NAMED, (), 'could not find ResourceClaim "ns/c"'),
        (NAMED, (stored_claim(deletion_time="2026-01-01T00:00:00Z"),), 'resourceclaim "c" is being deleted'),
    ],
)
def test_claim_that_cannot_be_used_is_a_problem(entry, claims, reason):
    assert look_up(a_pod(entry), *claims) == ClaimProblem(reason)


@pytest.mark.parametrize(
    ("request_spec", "reason"),
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
def test_request_of_an_unknown_kind_is_a_problem(request_spec, reason):
    assert problem_with_requests(claim(request_spec), CLASSES.get) == (None if reason is None else ClaimProblem(reason))
