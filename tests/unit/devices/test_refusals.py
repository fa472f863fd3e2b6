from podium.devices.refusals import Holder, Mismatch, NodeRefusal


def test_long_selectors_are_cut():
    text = Mismatch("the request", "x" * 1000, 3, ("model: a100 on 3",)).text
    assert text == f"the request refuses 3 by {'x' * 160}… (model: a100 on 3)"


def test_many_devices_and_pods_are_counted():
    devices = tuple(f"d/p{index // 10}/gpu-{index}" for index in range(12))
    holder = Holder("ns/c", tuple(f"pod-{index}" for index in range(9)), devices)
    names = ", ".join(f"gpu-{index}" for index in range(8))
    pods = ", ".join(f"pod-{index}" for index in range(8))
    text = f"{names} and 2 more of d/p0, gpu-10, gpu-11 of d/p1: taken by claim ns/c (pods {pods} and 1 more)"
    assert holder.text == text


def test_devices_with_unknown_holders_count_as_taken():
    assert Holder("", (), ("d/p/gpu-0",)).text == "gpu-0 of d/p: taken by an allocation that cannot be read"


def test_a_refusal_has_only_what_there_is():
    assert NodeRefusal(error="too long").as_dict() == {"requests": [], "error": "too long"}
    pools = NodeRefusal(broken_pools=("pool d/p: 1 of 2 slices", "pool d/q: 3 of 2 slices"))
    assert pools.text == "2 pools offer nothing, as slices are missing or wrong"
    assert pools.details == pools.broken_pools
