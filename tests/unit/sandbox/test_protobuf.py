import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.protobuf import MAGIC, decode_object


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value % (1 << 64))
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def varint(value):
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def envelope(api_version, kind, raw):
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_names_labels_and_numbers_are_read():
    label = field(11, field(1, "team") + field(2, "a"))
    metadata = field(1, field(1, "low") + label + field(14, "x") + field(14, "y"))
    raw = metadata + field(2, -5) + field(3, 1) + field(99, "of a later version")
    assert decode_object(envelope("scheduling.k8s.io/v1", "PriorityClass", raw)) == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low", "labels": {"team": "a"}, "finalizers": ["x", "y"]},
        "value": -5,
        "globalDefault": True,
    }


def test_lists_of_objects_bytes_quantities_and_numbers_or_text_are_read():
    secret = envelope("v1", "Secret", field(2, field(1, "key") + field(2, b"\xff")) + field(3, "Opaque"))
    assert decode_object(secret)["data"] == {"key": "/w=="}
    hard = field(1, field(1, "cpu") + field(2, field(1, "1500m")))
    assert decode_object(envelope("v1", "ResourceQuota", field(2, hard)))["spec"] == {"hard": {"cpu": "1500m"}}
    containers = field(2, field(1, "a")) + field(2, field(1, "b") + field(3, "sh") + field(3, "-c"))
    job = envelope("batch/v1", "Job", field(2, field(2, 0) + field(6, field(2, containers))))
    assert decode_object(job)["spec"] == {
        "completions": 0,
        "template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "command": ["sh", "-c"]}]}},
    }
    spec = field(1, field(1, 0) + field(2, 2)) + field(3, field(1, 1) + field(2, 0) + field(3, "10%"))
    budget = envelope("policy/v1", "PodDisruptionBudget", field(2, spec))
    assert decode_object(budget)["spec"] == {"minAvailable": 2, "maxUnavailable": "10%"}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        MAGIC,
        envelope("v1", "Pod", b""),
        envelope("v1", "Namespace", field(1, 7)),
        envelope("v1", "Namespace", field(1, field(1, "a"))[:-1]),
        MAGIC + b"\xff",
        MAGIC + varint(1 << 3 | 3),
    ],
)
def test_a_broken_or_unknown_body_is_refused(body):
    with pytest.raises(ValueError, match=r"\w"):
        decode_object(body)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_refused(raw):
    try:
        document = decode_object(envelope("v1", "ConfigMap", raw))
    except ValueError:
        return
    assert document["kind"] == "ConfigMap"
