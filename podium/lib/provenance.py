"""Where the files of a release come from: an in-toto statement in a signed envelope (DSSE).

Source: in-toto Attestation Framework 1.0, SLSA provenance 1.0, DSSE 1.0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"

PublicKey = Ed25519PublicKey | EllipticCurvePublicKey
PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey


class ProvenanceError(Exception):
    """A key, an envelope or a statement that is not what it should be."""


def read_public_key(pem: bytes) -> PublicKey:
    """Read an Ed25519 or ECDSA public key.

    Raises:
        ProvenanceError: it is another key or none.
    """
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ProvenanceError("not a public key in PEM") from error
    if not isinstance(key, PublicKey):
        raise ProvenanceError("the key is neither Ed25519 nor ECDSA")
    return key


def read_private_key(pem: bytes) -> PrivateKey:
    """Read an Ed25519 or ECDSA private key without a password.

    Raises:
        ProvenanceError: it is another key or none.
    """
    try:
        key = load_pem_private_key(pem, None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ProvenanceError(f"not a private key in PEM without a password: {error}") from error
    if not isinstance(key, PrivateKey):
        raise ProvenanceError("the key is neither Ed25519 nor ECDSA")
    return key


def envelope(statement: Mapping[str, Any], keys: Sequence[PrivateKey]) -> bytes:
    """Return the statement with a signature by each key."""
    payload = orjson.dumps(statement)
    signed = pre_authentication_encoding(PAYLOAD_TYPE, payload)
    return orjson.dumps(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"sig": base64.b64encode(_signature(key, signed)).decode()} for key in keys],
        },
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def verified_statement(content: bytes, key: PublicKey) -> dict[str, Any]:
    """Return the statement of an envelope that the key has signed.

    Raises:
        ProvenanceError: the envelope cannot be read, says something else, or has no signature by the key.
    """
    try:
        document = orjson.loads(content)
        payload = base64.b64decode(document["payload"], validate=True)
        signatures = [base64.b64decode(entry["sig"], validate=True) for entry in document["signatures"]]
        payload_type = document["payloadType"]
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise ProvenanceError("not an envelope (DSSE)") from error
    if payload_type != PAYLOAD_TYPE:
        raise ProvenanceError(f"payloadType is {payload_type!r}, not {PAYLOAD_TYPE!r}")
    if not any(
        _is_signed_by(key, signature, pre_authentication_encoding(payload_type, payload)) for signature in signatures
    ):
        raise ProvenanceError("it has no signature by this key")
    # Nothing in the payload is looked at before its signature is.
    try:
        statement = orjson.loads(payload)
    except ValueError as error:
        raise ProvenanceError("the payload is not JSON") from error
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise ProvenanceError(f"_type is not {STATEMENT_TYPE!r}")
    if statement.get("predicateType") != PREDICATE_TYPE:
        raise ProvenanceError(f"predicateType is not {PREDICATE_TYPE!r}")
    return statement


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return what is signed: DSSE's encoding of the type and the payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _signature(key: PrivateKey, content: bytes) -> bytes:
    return key.sign(content) if isinstance(key, Ed25519PrivateKey) else key.sign(content, ECDSA(SHA256()))


def _is_signed_by(key: PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, content)
        else:
            key.verify(signature, content, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
