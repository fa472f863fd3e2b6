from pathlib import Path

import pytest

from tests.control_plane import catalogue
from tests.control_plane.locate import FullEvaluation, cache_root, evaluate_all

RIGHT = {"etcd": "etcd Version: 3.7.0", "kubectl": "Client Version: v1.37.2"}


def _install(directory: Path, *names: str, says: str | None = None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = directory / name
        path.write_text(f"#!/bin/sh\necho '{says or RIGHT.get(name, 'Kubernetes v1.37.2')}'\n")
        path.chmod(0o755)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "PATH": str(tmp_path / "bin"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def _origins(evaluation: FullEvaluation) -> dict[str, str]:
    return {name: location.origin for name, location in evaluation.locations.items()}


def test_assets_come_before_path_and_path_before_the_cache(tmp_path: Path, environ: dict[str, str]) -> None:
    _install(tmp_path / "assets", "etcd")
    _install(tmp_path / "bin", "etcd", "kubectl")
    _install(cache_root(environ) / catalogue.cache_key(), "etcd", "kubectl", "kube-scheduler")

    evaluation = evaluate_all(environ)

    assert _origins(evaluation) == {"etcd": "KUBEBUILDER_ASSETS", "kubectl": "PATH", "kube-scheduler": "cache"}
    assert evaluation.passed_over == ()


def test_nothing_is_found_on_a_bare_machine(environ: dict[str, str]) -> None:
    assert evaluate_all(environ) == FullEvaluation({}, ())


def test_a_binary_of_another_minor_release_is_passed_over_by_name(tmp_path: Path, environ: dict[str, str]) -> None:
    _install(tmp_path / "bin", "kubectl", says="Client Version: v1.32.4-dispatcher")
    _install(cache_root(environ) / catalogue.cache_key(), "kubectl")

    evaluation = evaluate_all(environ)

    assert _origins(evaluation) == {"kubectl": "cache"}
    passed_over = f"passed over {tmp_path}/bin/kubectl: it is version 1.32.4-dispatcher, 1.37 is needed"
    assert evaluation.passed_over == (passed_over,)


def test_a_binary_that_cannot_run_is_passed_over(tmp_path: Path, environ: dict[str, str]) -> None:
    _install(tmp_path / "bin", "etcd")
    (tmp_path / "bin" / "etcd").write_text("#!/bin/sh\necho 'etcd Version: 3.7.0'\nexit 3\n")

    evaluation = evaluate_all(environ)

    assert evaluation.locations == {}
    assert evaluation.passed_over == (f"passed over {tmp_path}/bin/etcd: it does not tell its version, 3.7 is needed",)


def test_another_patch_release_is_as_good(tmp_path: Path, environ: dict[str, str]) -> None:
    _install(tmp_path / "assets", "kube-apiserver", says="Kubernetes v1.37.0")
    assert _origins(evaluate_all(environ)) == {"kube-apiserver": "KUBEBUILDER_ASSETS"}


def test_the_cache_is_under_the_home_directory_unless_xdg_says_otherwise() -> None:
    assert cache_root({"HOME": "/home/ada"}) == Path("/home/ada/.cache/podium/control-plane")
    assert cache_root({"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/cache"}) == Path("/var/cache/podium/control-plane")
