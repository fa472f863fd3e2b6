"""Signed statements about the files of a release."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from podium.lib.provenance import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    PrivateKey,
    ProvenanceError,
    envelope,
    pre_authentication_encoding,
    read_private_key,
    read_public_key,
    verified_statement,
)

STATEMENT = {
    "_type": STATEMENT_TYPE,
    "subject": [{"name": "a", "digest": {"sha256": "00"}}],
    "predicateType": PREDICATE_TYPE,
    "predicate": {},
}
ED25519 = Ed25519PrivateKey.generate()
ECDSA = generate_private_key(SECP256R1())


def with_fields(content: bytes, **fields: Any) -> bytes:
    """An envelope with other fields and the same signatures."""
    return json.dumps({**json.loads(content), **fields}).encode()


def test_what_is_signed_is_what_the_specification_says() -> None:
    encoding = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pre_authentication_encoding("http://example.com/HelloWorld", b"hello world") == encoding


@pytest.mark.parametrize("key", [ED25519, ECDSA], ids=["ed25519", "ecdsa"])
def test_a_signed_statement_is_read_with_the_key(key: PrivateKey) -> None:
    private = read_private_key(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = read_public_key(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert verified_statement(envelope(STATEMENT, [private]), public) == STATEMENT


def test_one_of_several_signatures_is_enough() -> None:
    assert verified_statement(envelope(STATEMENT, [ECDSA, ED25519]), ED25519.public_key()) == STATEMENT


@pytest.mark.parametrize("keys", [[], [Ed25519PrivateKey.generate()], [ECDSA]], ids=["none", "another", "other-kind"])
def test_a_statement_without_a_signature_by_the_key_is_refused(keys: list[PrivateKey]) -> None:
    with pytest.raises(ProvenanceError, match="no signature by this key"):
        verified_statement(envelope(STATEMENT, keys), ED25519.public_key())


def test_another_payload_with_the_signature_is_refused() -> None:
    payload = base64.b64encode(json.dumps({**STATEMENT, "subject": []}).encode()).decode()
    with pytest.raises(ProvenanceError, match="no signature by this key"):
        verified_statement(with_fields(envelope(STATEMENT, [ED25519]), payload=payload), ED25519.public_key())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an envelope"),
        (b"[]", "not an envelope"),
        (b'{"payload": 1, "signatures": [], "payloadType": ""}', "not an envelope"),
        (b'{"payload": "%", "signatures": [], "payloadType": ""}', "not an envelope"),
        (with_fields(envelope(STATEMENT, [ED25519]), payloadType="text/plain"), "payloadType is 'text/plain'"),
        (envelope({**STATEMENT, "_type": "x"}, [ED25519]), "_type is not"),
        (envelope({**STATEMENT, "predicateType": "x"}, [ED25519]), "predicateType is not"),
    ],
)
def test_what_is_no_provenance_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ProvenanceError, match=reason):
        verified_statement(content, ED25519.public_key())


def test_other_keys_are_refused() -> None:
    key = X25519PrivateKey.generate()
    private_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public_pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ProvenanceError, match="neither Ed25519 nor ECDSA"):
        read_private_key(private_pem)
    with pytest.raises(ProvenanceError, match="neither Ed25519 nor ECDSA"):
        read_public_key(public_pem)
    with pytest.raises(ProvenanceError, match="not a public key in PEM"):
        read_public_key(private_pem)
    with pytest.raises(ProvenanceError, match="not a private key in PEM"):
        read_private_key(b"")
