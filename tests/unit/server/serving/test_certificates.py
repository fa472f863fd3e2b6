import ssl
import tempfile

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from podium.lib import private_file
from podium.server.serving import CertificateError, load, self_signed, serving_tls


def write(directory, pair):
    certificate, key = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return str(certificate), str(key)


def names(pair):
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(alternative.value) for alternative in alternatives]


def handshake(context, trusted, host, at_most=ssl.TLSVersion.MAXIMUM_SUPPORTED):
    """Do a TLS handshake in memory and return the client's side; it verifies as strictly as Python can."""
    client_context = ssl.create_default_context(cadata=trusted.decode())
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    client_context.maximum_version = at_most
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    return client


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "node-1.example", "10.1.2.3"])
def test_a_client_that_trusts_a_self_signed_certificate_reaches_all_its_names(host):
    pair = self_signed("10.1.2.3", host_name="node-1.example")
    assert handshake(pair.context(), pair.certificate, host).version() == "TLSv1.3"


def test_other_names_are_not_covered():
    pair = self_signed(host_name="node-1")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(pair.context(), pair.certificate, "node-2")


def test_an_unspecified_address_and_a_name_beyond_ascii_are_left_out():
    assert names(self_signed("0.0.0.0", host_name="knöten")) == ["localhost", "127.0.0.1", "::1"]


def test_old_protocols_and_ciphers_without_forward_secrecy_are_off():
    context = self_signed().context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    older = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert older
    assert all(name.startswith("ECDHE-") and ("GCM" in name or "POLY1305" in name) for name in older)


def test_a_key_does_not_show_in_its_representation():
    pair = self_signed()
    assert "PRIVATE" not in repr(pair)


def test_files_are_served(tmp_path):
    pair = self_signed(host_name="node-1")
    context = serving_tls(*write(tmp_path, pair)).context
    handshake(context, pair.certificate, "node-1")


def test_without_files_a_certificate_is_made():
    assert serving_tls(bind_address="127.0.0.1").context.get_ciphers()


def test_where_there_are_no_files_in_memory_the_temporary_one_is_removed(tmp_path, monkeypatch):
    monkeypatch.delattr(private_file.os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pair = self_signed()
    handshake(pair.context(), pair.certificate, "localhost")
    assert list(tmp_path.iterdir()) == []


def test_one_file_without_the_other_is_refused(tmp_path):
    certificate, key = write(tmp_path, self_signed())
    with pytest.raises(CertificateError, match=r"^--tls-cert-file needs --tls-private-key-file too"):
        serving_tls(certificate, "")
    with pytest.raises(CertificateError, match=r"^--tls-private-key-file needs --tls-cert-file too"):
        serving_tls("", key)


def test_a_missing_file_is_named(tmp_path):
    certificate, _ = write(tmp_path, self_signed())
    with pytest.raises(CertificateError, match=r"absent\.key: No such file or directory"):
        serving_tls(certificate, str(tmp_path / "absent.key"))


def test_files_in_the_wrong_order_are_refused(tmp_path):
    certificate, key = write(tmp_path, self_signed())
    with pytest.raises(CertificateError, match=r"tls\.key holds no PEM certificate"):
        load(key, certificate)
    with pytest.raises(CertificateError, match=r"tls\.crt holds no PEM private key"):
        load(certificate, certificate)


def test_a_key_of_another_certificate_is_refused(tmp_path):
    certificate, key = write(tmp_path, self_signed())
    (tmp_path / "tls.key").write_bytes(self_signed().key)
    with pytest.raises(CertificateError, match="the private key does not belong to the certificate"):
        serving_tls(certificate, key)


def test_an_encrypted_key_is_refused_instead_of_asking_on_the_terminal(tmp_path):
    pair = self_signed()
    certificate, key = write(tmp_path, pair)
    encrypted = serialization.load_pem_private_key(pair.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    (tmp_path / "tls.key").write_bytes(encrypted)
    with pytest.raises(CertificateError, match="is encrypted"):
        serving_tls(certificate, key)
