import pytest

from podium.lib.web_sites import site_refusal


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1:6443"},
        {"Host": "localhost:6443"},
        {"Host": "podium.localhost"},
        {"Host": "[::1]:6443"},
        {"Host": "10.0.0.7"},
        {"Host": "127.0.0.1:6443", "Origin": "http://127.0.0.1:6443"},
    ],
)
def test_programs_and_the_own_page_are_served(headers):
    assert site_refusal(headers) is None


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Host": "evil.example:6443"}, "Host: 'evil.example:6443' is neither an IP address nor localhost"),
        ({"Host": "localhost.evil.example"}, "Host: 'localhost.evil.example' is neither an IP address nor localhost"),
        ({"Host": "127.0.0.1.evil.example"}, "Host: '127.0.0.1.evil.example' is neither an IP address nor localhost"),
        ({"Host": "[::1"}, "Host: '[::1' is neither an IP address nor localhost"),
        ({}, "Host: '' is neither an IP address nor localhost"),
        ({"Host": "127.0.0.1:1", "Origin": "http://evil.example"}, "Origin: 'http://evil.example' is another site"),
        ({"Host": "127.0.0.1:1", "Origin": "null"}, "Origin: 'null' is another site"),
        ({"Host": "127.0.0.1:1", "Origin": "http://127.0.0.1:2"}, "Origin: 'http://127.0.0.1:2' is another site"),
    ],
)
def test_a_request_of_another_site_is_refused(headers, reason):
    assert site_refusal(headers) == reason
