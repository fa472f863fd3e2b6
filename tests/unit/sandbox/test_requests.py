"""What a method and a path ask for."""

import pytest
from aiohttp.test_utils import make_mocked_request

from podium.sandbox.errors import ApiError
from podium.sandbox.requests import flag, parse_request, read_body


def parts_of(method, path, **query):
    parts = parse_request(method, path, query)
    return parts.resource.plural, parts.verb, parts.namespace, parts.name, parts.subresource


@pytest.mark.parametrize(
    ("method", "path", "query", "parts"),
    [
        ("GET", "/api/v1/pods", {}, ("pods", "list", None, None, None)),
        ("GET", "/api/v1/pods", {"watch": "1"}, ("pods", "watch", None, None, None)),
        ("GET", "/api/v1/pods", {"watch": "0"}, ("pods", "list", None, None, None)),
        ("POST", "/api/v1/namespaces/team/pods", {}, ("pods", "create", "team", None, None)),
        ("POST", "/api/v1/namespaces/team/pods/a/binding", {}, ("pods", "create", "team", "a", "binding")),
        ("PATCH", "/api/v1/namespaces/team/pods/a/status", {}, ("pods", "patch", "team", "a", "status")),
        ("DELETE", "/api/v1/namespaces/team/pods", {}, ("pods", "deletecollection", "team", None, None)),
        ("DELETE", "/api/v1/nodes/n1", {}, ("nodes", "delete", None, "n1", None)),
        ("PUT", "/apis/apps/v1/namespaces/team/deployments/web", {}, ("deployments", "update", "team", "web", None)),
        ("GET", "/api/v1/namespaces/team", {}, ("namespaces", "get", None, "team", None)),
        ("PUT", "/api/v1/namespaces/team/status", {}, ("namespaces", "update", None, "team", "status")),
    ],
)
def test_a_path_names_resource_namespace_name_and_subresource(method, path, query, parts):
    assert parts_of(method, path, **query) == parts


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", 404),
        ("GET", "/api/v1", 404),
        ("GET", "/api/v1/unicorns", 404),
        ("GET", "/apis/apps/v1/pods", 404),
        ("GET", "/api/v1/namespaces/team/nodes", 404),
        ("GET", "/api/v1/namespaces/team/pods/a/unknown", 404),
        ("GET", "/api/v1/namespaces/team/pods/a/status/more", 404),
        ("PUT", "/api/v1/pods", 405),
        ("PATCH", "/api/v1/namespaces/team/pods", 405),
        ("TRACE", "/api/v1/pods", 405),
    ],
)
def test_other_paths_and_verbs_are_refused(method, path, code):
    with pytest.raises(ApiError) as caught:
        parse_request(method, path, {})
    assert caught.value.code == code


@pytest.mark.long
@pytest.mark.anyio
async def test_yaml_that_is_nested_too_deep_is_refused():
    request = make_mocked_request("PATCH", "/", {"Content-Type": "application/apply-patch+yaml"})
    request._read_bytes = b"[" * 5000
    with pytest.raises(ApiError, match="nested too deep"):
        await read_body(request)


@pytest.mark.parametrize("subresource", ["attach", "exec", "log", "portforward"])
def test_what_needs_a_running_container_says_that_there_is_none(subresource):
    with pytest.raises(ApiError) as caught:
        parse_request("GET", f"/api/v1/namespaces/team/pods/a/{subresource}", {})
    assert caught.value.code == 501
    assert caught.value.message == f"the sandbox runs no containers, so its pods have no {subresource}"


@pytest.mark.parametrize(
    ("value", "is_set"), [("true", True), ("yes", True), ("", True), ("False", False), ("0", False)]
)
def test_anything_but_false_and_0_sets_a_flag(value, is_set):
    assert flag({"watch": value}, "watch") is is_set


@pytest.mark.parametrize("query", [{}, {"watch": "False"}, {"watch": "0"}])
def test_false_0_and_nothing_do_not(query):
    assert not flag(query, "watch")
