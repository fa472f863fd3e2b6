import ssl
from pathlib import Path

import yaml

from tests.control_plane.credentials import ADMIN_TOKEN, write_key_files, write_kubeconfig


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str | None:
    """The protocol both ends agreed on, or None when they never got there."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=name)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client_side.version() if client_side.getpeercert() else None


def test_a_client_that_verifies_strictly_trusts_the_serving_certificate(tmp_path: Path) -> None:
    files = write_key_files(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    client = ssl.create_default_context(cafile=files.authority)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert _handshake(server, client, "127.0.0.1") == "TLSv1.3"


def test_a_kubeconfig_names_the_server_and_carries_the_token(tmp_path: Path) -> None:
    files = write_key_files(tmp_path)
    path = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443", files.authority, ADMIN_TOKEN)
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert config["users"][0]["user"] == {"token": ADMIN_TOKEN}
