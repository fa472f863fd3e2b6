from __future__ import annotations

import pytest

from podium.client.server_address import Address, AddressError, base_url, host_name, proxy_from_environment, proxy_url


@pytest.mark.parametrize(
    ("text", "url", "user_info"),
    [
        ("https://host:6443/", "https://host:6443", None),
        ("https://host/prefix/?a=b#c", "https://host/prefix", None),
        ("HTTPS://host", "https://host", None),
        ("https://[::1]:6443", "https://[::1]:6443", None),
        ("https://me:p%40ss@host", "https://host", ("me", "p@ss")),
        ("https://me@host", "https://host", ("me", "")),
    ],
)
def test_user_and_password_are_kept_apart_from_the_url(text: str, url: str, user_info: tuple[str, str] | None) -> None:
    assert base_url(text, "server") == Address(url, user_info)


@pytest.mark.parametrize(
    "text", ["", "host:6443", "ftp://host", "https://", "https://host:0", "https://host:x", "https://a\nb"]
)
def test_what_is_no_address_is_refused_by_the_place_it_was_given_in(text: str) -> None:
    with pytest.raises(AddressError, match="server of context x is not an http or https URL"):
        base_url(text, "server of context x")


def test_an_error_never_holds_a_password() -> None:
    with pytest.raises(AddressError) as caught:
        proxy_url("socks5://me:secret@host", "proxy")
    assert "secret" not in str(caught.value)


def test_basic_authorization_is_made_of_user_and_password() -> None:
    assert base_url("https://me:pass@host", "server").basic_authorization == "Basic bWU6cGFzcw=="
    assert base_url("https://host", "server").basic_authorization is None


def test_a_label_of_64_characters_is_no_host() -> None:
    assert host_name("a" * 63, "name") == "a" * 63
    with pytest.raises(AddressError, match="name is not the name of a host"):
        host_name("a" * 64, "name")


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://host", {}, None),
        ("https://host", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://host", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("https://host", {"HTTP_PROXY": "http://proxy"}, None),
        ("http://host", {"HTTP_PROXY": "http://proxy"}, "http://proxy"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://proxy"}, None),
        ("https://127.0.0.9", {"HTTPS_PROXY": "http://proxy"}, None),
        ("https://api.corp", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "other,.corp"}, None),
        ("https://api.corp", {"HTTPS_PROXY": "http://proxy", "NO_PROXY": "*"}, None),
    ],
)
def test_the_environment_names_the_proxy_unless_the_server_is_near(
    server: str, environ: dict[str, str], proxy: str | None
) -> None:
    proxy_address = proxy_from_environment(server, environ)
    assert (proxy_address and proxy_address.url) == proxy
