"""Finding the configuration; what is done with it over a connection is in the integration tests."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.client.credentials import (
    ConnectionConfigError,
    for_endpoint,
    in_cluster,
    kubeconfig_paths,
    load,
    own_namespace,
)
from podium.lib.clock import ManualClock
from tests.control_plane.credentials import write_key_files

pytestmark = pytest.mark.anyio


def kubeconfig(path: Path, **changes: Any) -> str:
    content: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "http://one.test:80"}}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "nobody", "context": {"cluster": "c"}},
        ],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "current-context": "x",
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


def cluster(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "cluster": {"server": "http://one.test:80", **fields}}]


def user(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "u", "user": fields}]


async def test_a_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    credentials = await load(kubeconfig(tmp_path / "config"), ManualClock(), environ={})
    assert credentials.base_url == "http://one.test:80"
    assert await credentials.authorization() == "Bearer secret"
    assert credentials.ssl is None
    assert not await credentials.renew("Bearer secret")
    assert await credentials.renew("Bearer of somebody else")


async def test_the_context_can_be_chosen_and_may_have_no_user(tmp_path: Path) -> None:
    credentials = await load(kubeconfig(tmp_path / "config"), ManualClock(), context="nobody", environ={})
    assert await credentials.authorization() is None


async def test_an_https_server_without_a_user_needs_none(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", clusters=cluster(server="https://one.test"), users=[])
    credentials = await load(path, ManualClock(), environ={})
    assert credentials.ssl is not None
    assert await credentials.authorization() is None


async def test_name_and_password_become_basic_authorization(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", users=user(username="me", password="pw"))
    credentials = await load(path, ManualClock(), environ={})
    assert await credentials.authorization() == "Basic bWU6cHc="


async def test_a_name_without_a_password_is_enough_for_basic_authorization(tmp_path: Path) -> None:
    credentials = await load(kubeconfig(tmp_path / "config", users=user(username="me")), ManualClock(), environ={})
    assert await credentials.authorization() == "Basic bWU6"


@pytest.mark.parametrize("way", ["exec", "auth-provider", "tokenFile"])
async def test_a_way_to_a_token_that_is_null_is_none(tmp_path: Path, way: str) -> None:
    path = kubeconfig(tmp_path / "config", users=user(token="secret", **{way: None}))
    assert await (await load(path, ManualClock(), environ={})).authorization() == "Bearer secret"


async def test_master_wins_over_the_server_of_the_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config")
    credentials = await load(path, ManualClock(), master="http://two.test/", environ={})
    assert credentials.base_url == "http://two.test"
    assert await credentials.authorization() == "Bearer secret"


async def test_master_alone_means_no_credentials() -> None:
    credentials = await load(None, ManualClock(), master="http://two.test", environ={"KUBECONFIG": "/does/not/exist"})
    assert credentials.base_url == "http://two.test"
    assert await credentials.authorization() is None


@pytest.mark.parametrize(
    "url",
    [
        *("nowhere", "http://", "ftp://two.test", "https://two.test:99999", "http://[::1", "http://a..b", ""),
        *("https://two.test\n/x", "https://two test"),
    ],
)
async def test_an_address_that_is_none_is_named(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path / "config", clusters=cluster(server=url))
    with pytest.raises(ConnectionConfigError, match="server is not an http or https URL"):
        await load(path, ManualClock(), environ={})
    for kubeconfig_path in (path, None) if url else ():
        with pytest.raises(ConnectionConfigError, match="--master is not an http or https URL"):
            await load(kubeconfig_path, ManualClock(), master=url, environ={})


async def test_a_scheme_in_capitals_means_no_less_tls() -> None:
    credentials = await load(None, ManualClock(), master="HTTPS://two.test", environ={})
    assert credentials.base_url == "https://two.test"
    assert credentials.ssl is not None


async def test_the_environment_names_files_that_are_merged(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "first", users=[])
    second = kubeconfig(tmp_path / "second", clusters=[], contexts=[])
    environ = {"KUBECONFIG": f"{first}:{tmp_path}/missing:{second}"}
    credentials = await load(None, ManualClock(), environ=environ)
    assert await credentials.authorization() == "Bearer secret"


async def test_of_what_several_files_say_the_first_counts(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "first", users=user(token="mine"))
    second = kubeconfig(tmp_path / "second", **{"current-context": "nobody"})
    credentials = await load(f"{first}:{second}", ManualClock(), environ={})
    assert await credentials.authorization() == "Bearer mine"


async def test_a_relative_path_starts_from_the_file_that_holds_it(tmp_path: Path) -> None:
    cluster_file = kubeconfig(tmp_path / "a" / "config", users=[])
    user_file = kubeconfig(tmp_path / "b" / "config", users=user(tokenFile="token"), clusters=[], contexts=[])
    (tmp_path / "b" / "token").write_text("in b")
    credentials = await load(f"{cluster_file}:{user_file}", ManualClock(), environ={})
    assert await credentials.authorization() == "Bearer in b"


async def test_in_a_pod_the_service_account_is_found(tmp_path: Path) -> None:
    write_key_files(tmp_path)
    (tmp_path / "token").write_text("of the pod")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = in_cluster(ManualClock(), environ=environ, directory=tmp_path)
    assert credentials.base_url == "https://[fd00::1]:443"
    assert await credentials.authorization() == "Bearer of the pod"
    assert credentials.ssl is not None
    assert len(credentials.ssl.get_ca_certs()) == 1


async def test_certificates_may_stand_in_the_kubeconfig_itself(tmp_path: Path) -> None:
    files = write_key_files(tmp_path)
    authority, certificate, key = (
        base64.b64encode(file.read_bytes()).decode() for file in (files.authority, files.certificate, files.key)
    )
    path = kubeconfig(
        tmp_path / "config",
        clusters=cluster(server="https://one.test", **{"certificate-authority-data": authority}),
        users=user(**{"client-certificate-data": certificate, "client-key-data": key}),
    )
    credentials = await load(path, ManualClock(), environ={})
    assert credentials.ssl is not None
    assert len(credentials.ssl.get_ca_certs()) == 1


async def test_the_kubeconfig_at_home_is_the_last_before_the_cluster(tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube" / "config")
    credentials = await load(None, ManualClock(), environ={"HOME": str(tmp_path)})
    assert credentials.base_url == "http://one.test:80"


async def test_with_nothing_configured_the_error_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match=r"\.kube/config does not exist"):
        await load(None, ManualClock(), environ={"HOME": str(tmp_path)})


async def test_in_a_pod_without_a_service_account_the_error_names_the_directory(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConnectionConfigError, match=f"{tmp_path}.*token"):
        in_cluster(ManualClock(), environ=environ, directory=tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"current-context": "absent"}, "absent"),
        ({"current-context": None}, "current-context"),
        ({"current-context": ["x"]}, "current-context in .* is not text"),
        ({"clusters": []}, "object with name c in clusters"),
        ({"clusters": {}}, "clusters"),
        ({"clusters": "c"}, "clusters .* is not a list"),
        ({"contexts": [{"context": {}}]}, r"contexts\[0\]\.name"),
        ({"contexts": [{"name": "x"}]}, r"contexts\[0\]\.context"),
        ({"users": [*user(token="a"), *user(token="b")]}, r"users\[1\]\.name .* u is there twice"),
        ({"users": user(**{"client-certificate-data": "?"})}, r"users\[\]\.user\.client-certificate-data: .*base64"),
        ({"clusters": cluster(server="one.test")}, "server is not an http or https URL"),
        ({"clusters": cluster(server="https://one.test", **{"certificate-authority": "no.crt"})}, "no.crt"),
        (
            {"clusters": cluster(server="https://one.test", **{"insecure-skip-tls-verify": "false"})},
            r"clusters\[\]\.cluster\.insecure-skip-tls-verify is neither true nor false",
        ),
        (
            {"clusters": cluster(server="https://one.test", **{"tls-server-name": ".one.test"})},
            r"clusters\[\]\.cluster\.tls-server-name is not the name of a host: '\.one\.test'",
        ),
        ({"users": user(tokenFile="no-token")}, "no-token"),
        ({"users": user(token={"a": "b"})}, r"users\[\]\.user\.token is not text"),
        ({"users": user(exec=["aws"])}, r"users\[\]\.user\.exec is not a mapping"),
        ({"users": user(**{"as": "admin"})}, r"users\[\]\.user\.as: impersonation is not supported"),
        ({"users": user(exec={"apiVersion": "v1"})}, "exec.*command"),
        ({"users": user(exec={"command": "true"})}, "exec.*apiVersion"),
        ({"users": user(exec={"command": "true", "args": "a"})}, r"users\[\]\.user\.exec\.args is not a list"),
        ({"users": user(exec={"command": "true", "env": ["A=b"]})}, r"exec\.env is not a list of mappings"),
        ({"users": user(exec={"command": "true", "env": {"A": "b"}})}, r"exec\.env is not a list of mappings"),
        ({"users": user(exec={"command": "./no-plugin"})}, r"exec\.command: '\./no-plugin' is not an executable"),
        (
            {"users": user(**{"auth-provider": {"name": "azure"}})},
            r"users\[\]\.user\.auth-provider\.name: 'azure' is not supported",
        ),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_refused_by_file_and_field(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = kubeconfig(tmp_path / "config", **changes)
    with pytest.raises(ConnectionConfigError, match=words) as caught:
        await load(path, ManualClock(), environ={})
    assert path in str(caught.value)


@pytest.mark.parametrize("content", ["- a list", "clusters: [", "", "\x00"])
async def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConnectionConfigError, match=str(path)):
        await load(str(path), ManualClock(), environ={})


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="absent: no such file"):
        await load(str(tmp_path / "absent"), ManualClock(), environ={})


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://one.test", {"HTTPS_PROXY": "http://proxy.test"}, "http://proxy.test"),
        ("https://one.test", {"HTTPS_PROXY": "proxy.test:3128"}, "http://proxy.test:3128"),
        ("http://one.test", {"https_proxy": "http://proxy.test"}, None),
        ("https://one.test", {"https_proxy": "http://proxy.test", "NO_PROXY": ".test"}, None),
        ("https://127.0.0.1:6443", {"https_proxy": "http://proxy.test"}, None),
        ("https://localhost", {"https_proxy": "http://proxy.test"}, None),
    ],
)
async def test_the_environment_names_the_proxy_as_for_go(
    tmp_path: Path, server: str, environ: dict[str, str], proxy: str | None
) -> None:
    path = kubeconfig(tmp_path / "config", clusters=cluster(server=server))
    assert (await load(path, ManualClock(), environ=environ)).proxy == proxy


async def test_master_alone_is_reached_by_the_proxy_of_the_environment_too() -> None:
    credentials = await load(
        None, ManualClock(), master="https://two.test", environ={"https_proxy": "http://proxy.test"}
    )
    assert credentials.proxy == "http://proxy.test"


async def test_a_proxy_of_another_kind_is_named_without_its_password(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "a", clusters=cluster(**{"proxy-url": "socks5://proxy.test"}))
    with pytest.raises(ConnectionConfigError, match=r"proxy-url is not an http or https URL: 'socks5://proxy\.test'"):
        await load(path, ManualClock(), environ={})
    path = kubeconfig(tmp_path / "b")
    with pytest.raises(
        ConnectionConfigError, match="http_proxy in the environment is not an http or https URL: 'proxy"
    ):
        await load(path, ManualClock(), environ={"HTTP_PROXY": "socks5://me:secret@proxy.test"})


async def test_a_token_that_no_header_can_hold_is_refused_and_not_printed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\nof two lines")
    for credentials in (
        {"token": "secret\nof two lines"},
        {"token": "secret\u20ac"},
        {"tokenFile": str(tmp_path / "token")},
    ):
        path = kubeconfig(tmp_path / "config", users=user(**credentials))
        with pytest.raises(ConnectionConfigError, match="holds what no header can hold") as caught:
            await load(path, ManualClock(), environ={})
        assert "secret" not in str(caught.value)


async def test_the_error_of_a_provider_has_no_secrets(tmp_path: Path) -> None:
    provider = {"name": "oidc", "config": {"refresh-token": "secret"}}
    path = kubeconfig(tmp_path / "config", users=user(**{"auth-provider": provider}))
    with pytest.raises(ConnectionConfigError, match=r"users\[\]\.user/auth-provider") as caught:
        await load(path, ManualClock(), environ={})
    assert "secret" not in str(caught.value)


async def test_the_proxy_and_tls_name_of_the_kubeconfig_are_kept(tmp_path: Path) -> None:
    fields = {"proxy-url": "http://proxy.test", "tls-server-name": "inner.test", "insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", clusters=cluster(server="https://one.test", **fields))
    credentials = await load(path, ManualClock(), environ={"HTTPS_PROXY": "http://other.test"})
    assert (credentials.proxy, credentials.server_name) == ("http://proxy.test", "inner.test")
    assert credentials.ssl is not None
    assert not credentials.ssl.check_hostname


async def test_what_is_taken_from_others_is_all_that_matters(tmp_path: Path) -> None:
    credentials = await load(kubeconfig(tmp_path / "config"), ManualClock(), environ={})
    fields = {"server": "https://two.test", "tls-server-name": "api.test", "proxy-url": "http://ann:pw@proxy.test"}
    path = kubeconfig(tmp_path / "other", clusters=cluster(**fields), users=user(token="newer"))
    fresh = await load(path, ManualClock(), environ={})
    credentials.take(fresh)
    assert (credentials.base_url, credentials.server_name) == ("https://two.test", "api.test")
    assert (credentials.proxy, credentials.proxy_authorization) == ("http://proxy.test", fresh.proxy_authorization)
    assert credentials.ssl is fresh.ssl is not None
    assert await credentials.authorization() == "Bearer newer"
    assert credentials.generation == 1
    assert await credentials.renew("Bearer secret")


def test_where_the_kubeconfig_is(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": "a:b", "HOME": str(tmp_path)}
    assert kubeconfig_paths("mine", master="http://two.test", environ=environ) == "mine"
    assert kubeconfig_paths(None, master="http://two.test", environ=environ) == ""
    assert kubeconfig_paths(None, environ=environ) == "a:b"
    del environ["KUBECONFIG"]
    assert kubeconfig_paths(None, environ=environ) == ""
    home = kubeconfig(tmp_path / ".kube" / "config")
    assert kubeconfig_paths(None, environ=environ) == home


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "No such file or directory"), (b"\xff\xfe", "it is not text"), (b" \n", "is empty")],
)
def test_a_token_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConnectionConfigError, match=f"token file {path}:? {complaint}"):
        for_endpoint("https://one.test", ManualClock(), token_file=str(path))


@pytest.mark.parametrize(("option", "called"), [("token_file", "token file"), ("authorities", "certificate authority")])
def test_a_file_without_an_end_is_refused_before_it_fills_the_memory(option: str, called: str) -> None:
    options: Any = {option: "/dev/zero"}
    with pytest.raises(ConnectionConfigError, match=f"{called} /dev/zero: File too large"):
        for_endpoint("https://one.test", ManualClock(), **options)


def test_the_own_namespace_is_that_of_the_context_or_of_the_pod(tmp_path: Path) -> None:
    contexts = [
        {"name": "shop", "context": {"cluster": "c", "namespace": "shop"}},
        {"name": "plain", "context": {"cluster": "c"}},
    ]
    clusters = [{"name": "c", "cluster": {"server": "https://c"}}]
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({"current-context": "shop", "contexts": contexts, "clusters": clusters}))
    assert own_namespace(str(file)) == "shop"
    assert own_namespace(str(file), "plain") == "default"
    assert own_namespace(None, environ={"KUBECONFIG": str(file)}) == "shop"
    assert own_namespace(str(file), "absent") == "default"
    (tmp_path / "namespace").write_text("kube-system\n")
    inside = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert own_namespace(None, environ=inside, directory=tmp_path) == "kube-system"
    assert own_namespace(None, environ={"HOME": str(tmp_path)}, directory=tmp_path) == "default"


async def test_a_context_without_a_kubeconfig_is_refused(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConnectionConfigError, match="context 'prod': there is no kubeconfig to take it from"):
        await load(None, ManualClock(), context="prod", environ=environ)
    with pytest.raises(ConnectionConfigError, match="context 'prod'"):
        await load(None, ManualClock(), context="prod", master="http://127.0.0.1:1", environ=environ)
