"""Checks Kubernetes' name syntaxes that occur in a configuration, with upstream's message for each violation.

Source: apimachinery pkg/api/validate/content (kube.go, dns.go), pkg/apis/core/v1/helper (1.36)
"""

import re
from typing import Final

_LABEL_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_ALPHANUMERIC = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_EXAMPLES = ("MyName", "my.name", "123-abc")

NAME_BYTES_MAX: Final = 63
SUBDOMAIN_BYTES_MAX: Final = 253


def _rule_text(rule: str, pattern: str, *examples: str) -> str:
    example_text = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {example_text}regex used for validation is '{pattern}')"


def _too_long(text: str, bytes_max: int) -> bool:
    return len(text.encode(errors="surrogatepass")) > bytes_max


def label_key_errors(key: str) -> list[str]:
    """Return the violations of a label key, or of any other qualified name; empty if it is valid."""
    prefix, slash, name = key.rpartition("/")
    name_rule = _rule_text(_ALPHANUMERIC, _LABEL_NAME, *_NAME_EXAMPLES)
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {name_rule} {optional}"]
    errors = [f"prefix part {error}" for error in _prefix_errors(prefix)] if slash else []
    if not name:
        errors.append("name part must be non-empty")
    elif _too_long(name, NAME_BYTES_MAX):
        errors.append(f"name part must be no more than {NAME_BYTES_MAX} bytes")
    if not re.fullmatch(_LABEL_NAME, name):
        errors.append(f"name part {name_rule}")
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    return dns_subdomain_errors(prefix) if prefix else ["must be non-empty"]


def dns_subdomain_errors(name: str) -> list[str]:
    """Return the violations of a lower-case DNS subdomain; empty if it is valid."""
    errors = []
    if _too_long(name, SUBDOMAIN_BYTES_MAX):
        errors.append(f"must be no more than {SUBDOMAIN_BYTES_MAX} bytes")
    if not re.fullmatch(_SUBDOMAIN, name):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_rule_text(rule, _SUBDOMAIN, "example.com"))
    return errors


def label_value_errors(value: str) -> list[str]:
    """Return the violations of a label value; empty if it is valid."""
    errors = []
    if _too_long(value, NAME_BYTES_MAX):
        errors.append(f"must be no more than {NAME_BYTES_MAX} bytes")
    if not re.fullmatch(_LABEL_VALUE, value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(_rule_text(rule, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def is_extended_resource_name(name: str) -> bool:
    """Return whether a qualified name is outside Kubernetes' own domain and usable in a quota."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_errors(f"requests.{name}")
