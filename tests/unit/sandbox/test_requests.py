"""What a method and a path ask for."""

import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.requests import flag, parse_request


def parsed(method, path, **query):
    made = parse_request(method, path, query)
    return made.resource.plural, made.verb, made.namespace, made.name, made.subresource


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
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
def test_a_path_names_resource_namespace_name_and_subresource(method, path, query, expected):
    assert parsed(method, path, **query) == expected


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


@pytest.mark.parametrize(
    ("value", "is_set"), [("true", True), ("yes", True), ("", True), ("False", False), ("0", False)]
)
def test_anything_but_false_and_0_sets_a_flag(value, is_set):
    assert flag({"watch": value}, "watch") is is_set


@pytest.mark.parametrize("query", [{}, {"watch": "False"}, {"watch": "0"}])
def test_false_0_and_nothing_do_not(query):
    assert not flag(query, "watch")
