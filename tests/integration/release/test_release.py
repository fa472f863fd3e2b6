"""`python -m release` for this kind of machine: what is published, twice to the same bytes, and verified."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pytest
import yaml
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import podium
from podium.cli.main import main
from tests.helm.chart import KUBERNETES, Helm
from tests.integration.release.image import assert_schedules, images

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
TARGET = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}[platform.machine()]
URL = "https://code.example/podium"
NAME = f"podium-{podium.__version__}"


def plain(name: str) -> str:
    """A distribution's name in the spelling that all of them have in common."""
    return name.lower().replace("_", "-")


def direct_dependencies() -> set[str]:
    """Return the requirements of podium's wheel."""
    (requirement_text,) = re.findall(
        r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    return {plain(requirement) for requirement in re.findall(r'"([A-Za-z0-9-]+)', requirement_text)}


def bundled_in(command: Path) -> list[str]:
    """Name and version of each package in the single file."""
    with zipfile.ZipFile(command) as packed:
        folders = {re.match(r"site-packages/(.*)-(.*)\.dist-info/", name) for name in packed.namelist()}
    return [f"{plain(folder[1])} {folder[2]}" for folder in folders if folder is not None]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users can look into; pytest's own are closed to them."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def public_key(folder: Path) -> Path:
    """The key that the release is signed for; the private one lies beside it."""
    key = Ed25519PrivateKey.generate()
    (folder / "private.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    file = folder / "public.pem"
    file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return file


@pytest.fixture(scope="module")
def out(folder: Path, public_key: Path) -> Path:
    """All that is published for this kind of machine."""
    build = [sys.executable, "-m", "release", "--target", TARGET, "--twice", "--out", folder / "dist"]
    options = ["--key", public_key.with_name("private.pem"), "--url", URL]
    result = subprocess.run([*build, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "built twice: the same bytes" in result.stdout
    return folder / "dist"


def test_a_command_in_one_file_runs_and_the_bill_names_what_is_in_it(out: Path, tmp_path: Path) -> None:
    bill = json.loads((out / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    component_names = {plain(component["name"]) for component in bill["components"]}
    assert {"podium", *direct_dependencies()} <= component_names
    (command,) = out.glob(f"{NAME}-{TARGET}.pyz")
    bundled = bundled_in(command)
    # The code that unpacks the file is shiv's.
    assert sorted(f"{plain(component['name'])} {component['version']}" for component in bill["components"]) == sorted(
        {*bundled, f"shiv {version('shiv')}"}
    )
    licences = (out / f"{NAME}-licences.txt").read_text().splitlines()
    assert {plain(line.split()[0]) for line in licences} == component_names
    assert [line for line in licences if line.endswith(("unnamed", "not stated"))] == []

    environment = {**os.environ, "PYTHONPATH": "", "SHIV_ROOT": str(tmp_path / "unpacked")}

    def output_of(*arguments: str) -> str:
        # An interpreter that has nothing of podium.
        run = [Path(sys.base_prefix, "bin", "python3"), command, *arguments]
        result = subprocess.run(run, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert json.loads(output_of("version", "-o", "json"))["version"] == podium.__version__
    for subcommand in main.list_commands(click.Context(main)):
        output_of(subcommand, "--help")
    shop = ("-f", "clusters/shop.yaml")
    assert "fits after one edit" in output_of("why", "report", "-n", "shop", *shop, "--fix")
    assert "50 more of default/podium-web fit" in output_of("capacity", *shop, "--pod", "pods/web.yaml")
    assert json.loads(output_of("demo", "--nodes", "5", "--pods", "5", "-o", "json"))
    (plugin,) = yaml.safe_load((out / "podium.krew.yaml").read_text())["spec"]["platforms"]
    archive = out / plugin["uri"].rpartition("/")[2]
    assert plugin["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_the_package_index_gets_links_that_lead_somewhere(out: Path) -> None:
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(f"{NAME}.dist-info/METADATA").decode()
    addresses = re.findall(r"\]\(([^)]*)\)", metadata)
    assert len(addresses) > 20
    assert [address for address in addresses if not address.startswith(("https://", "#"))] == []
    assert f"Project-URL: Changelog, {URL}/blob/v{podium.__version__}/CHANGELOG.md" in metadata


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a root that cannot be written")
async def test_the_image_schedules_as_its_user_on_a_root_that_cannot_be_written(out: Path, folder: Path) -> None:
    (image,) = images(out / f"{NAME}-image.oci.tar", folder / "image", podium.__version__)
    mount = folder / "shared"
    mount.mkdir()
    await assert_schedules(image, mount)


@pytest.mark.parametrize(
    ("extra", "module"), [("otel", "opentelemetry.exporter.otlp.proto.http"), ("estimator", "grpc.aio")]
)
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a root that cannot be written")
def test_an_image_with_an_extra_imports_its_packages(out: Path, folder: Path, extra: str, module: str) -> None:
    (image,) = images(out / f"{NAME}-image.oci.tar", folder / extra, f"{podium.__version__}-{extra}")
    mount = folder / f"shared-{extra}"
    mount.mkdir()
    code = f"import {module}, podium.cli.main"
    run = ["sh", "-c", f'{image.script(mount)} "$@"', "sh", "-c", code]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    bill = json.loads((out / f"{NAME}-image-{extra}.cdx.json").read_text())
    assert {"otel": "opentelemetry-sdk", "estimator": "grpcio"}[extra] in {
        component["name"] for component in bill["components"]
    }


def test_containerd_imports_each_image_under_the_name_that_a_kubelet_uses(out: Path) -> None:
    with tarfile.open(out / f"{NAME}-image.oci.tar") as layout:
        file = layout.extractfile("index.json")
        assert file is not None
        entries = json.loads(file.read())["manifests"]
    names = [entry["annotations"]["io.containerd.image.name"] for entry in entries]
    extras = ("", "-otel", "-estimator")
    assert names == [f"docker.io/library/podium{extra}:{podium.__version__}" for extra in extras]


def test_the_images_bill_names_debians_packages_and_pythons(out: Path) -> None:
    bill = json.loads((out / f"{NAME}-image.cdx.json").read_text())
    components = {component["name"]: component for component in bill["components"]}
    assert {"libc6", "libssl3", "python3.11-minimal", "podium", *direct_dependencies()} <= {
        plain(name) for name in components
    }
    assert components["libssl3"]["purl"].startswith("pkg:deb/debian/libssl3@")


@pytest.mark.control_plane
def test_the_chart_is_the_repositorys(out: Path, helm: Helm) -> None:
    (archive,) = out.glob("podium-chart-*.tgz")
    rendered = helm.run("template", "podium", str(archive), "--namespace", "kube-system", "--kube-version", KUBERNETES)
    assert (rendered.returncode, rendered.stdout) == (0, helm.text())
    with tarfile.open(out / f"podium-chart-{podium.__version__}.oci.tar") as layout:
        file = layout.extractfile(f"blobs/sha256/{hashlib.sha256(archive.read_bytes()).hexdigest()}")
        assert file is not None
        assert file.read() == archive.read_bytes()


def flip_a_bit(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        (byte,) = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))


def test_a_changed_byte_is_named(out: Path, public_key: Path) -> None:
    def refusal() -> str:
        result = CliRunner().invoke(main, ["release", "verify", str(out), "--key", str(public_key)])
        assert isinstance(result.exit_code, int)
        return result.output if result.exit_code else ""

    assert refusal() == ""
    file = out / f"{NAME}-image.oci.tar"
    flip_a_bit(file)
    assert refusal() == f"Error: {file.name}: was changed\n"
    flip_a_bit(file)
    assert refusal() == ""
