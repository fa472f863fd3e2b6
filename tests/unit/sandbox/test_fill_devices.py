"""The sample pods with claims keep their promise: they ask for at most half of the devices."""

import pytest

from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.fill_devices import device_claims_and_pods, no_such_device
from podium.sandbox.store import Store


@pytest.mark.parametrize(("nodes", "count"), [(5, 1), (5, 4), (7, 8), (6, 128)])
def test_all_claims_together_ask_for_at_most_half_of_the_devices(nodes, count):
    claims, pods = device_claims_and_pods([DeviceKind("gpu", count)], nodes)
    claims_by_name = {claim["metadata"]["name"]: claim for claim in claims}
    counts = {}
    for pod in pods:
        [entry] = pod["spec"]["resourceClaims"]
        template = entry.get("resourceClaimTemplateName")
        key = pod["metadata"]["name"] if template else entry["resourceClaimName"]
        claim_spec = claims_by_name[template or key]["spec"]
        [request] = claim_spec.get("spec", claim_spec)["devices"]["requests"]
        counts[key] = request.get("exactly", {}).get("count", 1)
    assert pods
    assert sum(counts.values()) <= nodes * count / 2
    assert sum(counts.values()) <= 10 * nodes
    assert count >= 4 or not any(name.startswith("pair") for name in counts)


def test_an_api_server_accepts_them():
    store = Store()
    claims, pods = device_claims_and_pods([DeviceKind("gpu", 8), DeviceKind("nic", 2)], 5)
    for item in [*claims, *pods, *no_such_device(DeviceKind("gpu", 8))]:
        store.create(item)
