from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from podium.estimator.server.tls import ReloadingCertificates, TlsFiles
from podium.server.serving import CertificateError, KeyPair, self_signed


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    tls_files = TlsFiles(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"), str(tmp_path / "ca.crt"))
    write(tls_files, self_signed())
    return tls_files


def write(files: TlsFiles, pair: KeyPair) -> None:
    Path(files.certificate).write_bytes(pair.certificate)
    Path(files.key).write_bytes(pair.key)
    Path(files.client_ca).write_bytes(pair.certificate)


def test_what_has_look_for_change_is_shown_once(files: TlsFiles) -> None:
    certificates = ReloadingCertificates(files)
    certificates.credentials()
    assert certificates._look_for_change() is None
    write(files, self_signed())
    assert certificates._look_for_change() is not None
    assert certificates._look_for_change() is None


def test_what_cannot_be_used_is_told_once_and_the_earlier_content_stays(files: TlsFiles) -> None:
    certificates, key_text = ReloadingCertificates(files), Path(files.key).read_bytes()
    certificates.credentials()
    Path(files.key).write_text("torn")
    with capture_logs() as logs:
        assert [certificates._look_for_change(), certificates._look_for_change()] == [None, None]
    assert [entry["error"] for entry in logs] == [f"certificates for gRPC: {files.key} holds no PEM private key"]
    Path(files.key).write_bytes(key_text)
    assert certificates._look_for_change() is None


@pytest.mark.parametrize("missing", ["certificate", "key", "client_ca"])
def test_a_missing_file_is_named(files: TlsFiles, missing: str) -> None:
    path = getattr(files, missing)
    Path(path).unlink()
    with pytest.raises(CertificateError, match=f"^certificates for gRPC: {path}: No such file or directory$"):
        ReloadingCertificates(files)
