import pytest

from podium.config.names import (
    dns_subdomain_errors,
    is_extended_resource_name,
    label_key_errors,
    label_value_errors,
)

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/x", "a" * 63, f"{'a' * 253}/x"])
def test_good_label_key(key):
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "errors"),
    [
        ("bad key!", [f"name part {NAME_RULE}"]),
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("/x", ["prefix part must be non-empty"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        (
            "a/b/c",
            [f"a valid label key {NAME_RULE} {OPTIONAL_PREFIX}"],
        ),
        (f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"]),
        ("x\n", [f"name part {NAME_RULE}"]),
    ],
)
def test_bad_label_key_gets_an_error_for_every_broken_rule(key, errors):
    assert label_key_errors(key) == errors


def test_subdomain_is_lower_case():
    assert dns_subdomain_errors("example.com") == []
    assert dns_subdomain_errors("Example.com")[0].startswith("a lowercase RFC 1123 subdomain must consist of")


def test_label_value_may_be_empty_but_not_long_or_odd():
    assert label_value_errors("") == []
    assert label_value_errors("a" * 64) == ["must be no more than 63 bytes"]
    assert label_value_errors("-a")[0].startswith("a valid label must be an empty string or consist of")


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        ("sub.kubernetes.io/x", False),
        ("requests.example.com/x", False),
        (f"{'a' * 250}.io/x", False),
    ],
)
def test_extended_resource_is_outside_kubernetes_own_domain(name, extended):
    assert is_extended_resource_name(name) is extended
