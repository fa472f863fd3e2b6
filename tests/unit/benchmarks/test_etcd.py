import base64
import json
from typing import Any

from benchmarks.etcd import as_stored, key, managed_fields, puts
from benchmarks.pods import pod


def decode(requests: list[bytes]) -> list[list[tuple[str, dict[str, Any]]]]:
    """Key and object of each operation, by request."""
    return [
        [
            (
                base64.b64decode(operation["requestPut"]["key"]).decode(),
                json.loads(base64.b64decode(operation["requestPut"]["value"])),
            )
            for operation in json.loads(request)["success"]
        ]
        for request in requests
    ]


def test_objects_are_stored_where_the_api_server_looks_for_them() -> None:
    assert key(pod("web-1", "web")) == "/registry/pods/default/web-1"
    assert key({"kind": "Node", "metadata": {"name": "n1"}}) == "/registry/minions/n1"


def test_every_object_gets_a_uid_and_keeps_what_it_has() -> None:
    first, second = as_stored(pod("a", "web")), as_stored(pod("a", "web"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert first["metadata"]["labels"] == {"app": "web"}
    assert first["spec"] == second["spec"]


def test_managed_fields_name_every_field_and_list_entries_by_name() -> None:
    fields = managed_fields(pod("a", "web"))["fieldsV1"]
    assert fields["f:metadata"]["f:labels"] == {"f:app": {}}
    assert "f:image" in fields["f:spec"]["f:containers"]['k:{"name":"main"}']


def test_requests_hold_all_objects_once_and_are_bounded_in_number_and_size() -> None:
    batches = decode(list(puts(pod(f"web-{number}", "web") for number in range(250))))
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert len({name for request in batches for name, _ in request}) == 250
    note = {"note": "x" * 300_000}
    big = decode(list(puts({**pod(f"web-{number}", "web"), "status": note} for number in range(5))))
    assert [len(batch) for batch in big] == [2, 2, 1]


def test_nothing_is_asked_for_nothing() -> None:
    assert list(puts([])) == []
