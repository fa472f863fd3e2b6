from pathlib import Path

import pytest

from tests.control_plane import catalogue

APISERVER = next(tool for tool in catalogue.TOOLS if tool.name == "kube-apiserver")


def test_versions_are_read_from_go_mod() -> None:
    assert {tool.name: catalogue.required_version(tool) for tool in catalogue.TOOLS} == {
        "etcd": "3.7.0",
        "kube-apiserver": "1.37.2",
        "kube-controller-manager": "1.37.2",
        "kube-scheduler": "1.37.2",
        "kubectl": "1.37.2",
    }
    assert catalogue.required_go() == (1, 26, 0)


def test_every_tool_is_declared_in_go_mod() -> None:
    lines = (catalogue.GO_MODULE_DIR / "go.mod").read_text().splitlines()
    tools = lines[lines.index("tool (") + 1 : lines.index(")")]
    assert {line.strip() for line in tools} == {tool.package for tool in catalogue.TOOLS}


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("1.37.2", (1, 37, 2)), ("1.37.0-rc.1", (1, 37, 0)), ("1.26.8 X:nocoverageredesign", (1, 26, 8)), ("devel", ())],
)
def test_release_is_the_numbers_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    assert catalogue.release(version) == numbers


@pytest.mark.parametrize(
    ("version", "acceptable"),
    [("1.37.2", True), ("1.37.9", True), ("1.3.6", False), ("1.38.0", False), (None, False)],
)
def test_only_the_same_minor_release_is_acceptable(version: str | None, acceptable: bool) -> None:
    assert catalogue.is_acceptable(APISERVER, version) is acceptable


def test_the_cache_key_names_the_version_and_follows_the_go_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_key = catalogue.cache_key()
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((catalogue.GO_MODULE_DIR / name).read_bytes())
    monkeypatch.setattr(catalogue, "GO_MODULE_DIR", tmp_path)
    assert catalogue.cache_key() == first_key
    assert first_key.startswith("v1.37.2-")

    with (tmp_path / "go.sum").open("a") as sums:
        sums.write("example.invalid/more v1.0.0 h1:0=\n")
    assert catalogue.cache_key() != first_key


def test_the_version_is_stamped_into_servers_and_kubectl() -> None:
    linker = catalogue.build_flags()[-1]
    assert "-X=k8s.io/component-base/version.gitVersion=v1.37.2" in linker
    assert "-X=k8s.io/client-go/pkg/version.gitMinor=37" in linker
