"""Checking the body of an answer before a 2xx code is trusted.

Owns the check that an answer has the requested kind and object. A proxy's login page, an empty body, a failure `Status`
or another object are no valid answer: the request may or may not have taken effect.

Differs: client-go trusts the code of an answer to a write if it does not need the body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct, field

from podium.objects.api_errors import Malformed
from podium.objects.meta import ObjectMeta
from podium.objects.wire import NOT_DECODED, room_for_nesting

T = TypeVar("T")

_SHOWN_BYTES = 100


class _Success(Struct):
    kind: Literal["Status"]
    status: Literal["Success"]
    api_version: Literal["v1", "meta.k8s.io/v1"] = field(default="v1", name="apiVersion")


class _Meta(Struct):
    name: str
    namespace: str = ""
    uid: str = ""


class _Object(Struct):
    api_version: str = field(name="apiVersion")
    kind: str
    metadata: _Meta


_decode_success = msgspec.json.Decoder(_Success).decode
_decode_object = msgspec.json.Decoder(_Object).decode


def check_success(answer: bytes) -> None:
    """Check that the answer is a `Status` of success. Cost: below 1 us.

    Raises: `Malformed`.
    """
    try:
        _decode_success(answer)
    except NOT_DECODED as error:
        raise _malformed_answer("a Status of success", answer, error) from error


def check_object(answer: bytes, api_version: str, kind: str, metadata: ObjectMeta) -> None:
    """Check that the answer is that object. The uid is compared if `metadata` has one.

    Raises: `Malformed`.
    Cost: below 1 us without a uid, if the answer begins as every API server writes an object; else it is decoded.
    """
    if not metadata.uid and metadata.namespace and answer.endswith((b"}", b"}\n")):
        beginning = (
            f'{{"kind":"{kind}","apiVersion":"{api_version}",'
            f'"metadata":{{"name":"{metadata.name}","namespace":"{metadata.namespace}",'
        )
        if answer.startswith(beginning.encode()):
            return

    def describe() -> str:
        return f"{kind} {metadata.namespace}/{metadata.name}".replace(" /", " ")

    value = read(_decode_object, answer, describe)
    meta = value.metadata
    if value.api_version != api_version or value.kind != kind:
        raise Malformed(f"the answer is not {describe()}: it is a {value.kind!r:.100} of {value.api_version!r:.100}")
    if meta.name != metadata.name or meta.namespace != metadata.namespace or metadata.uid not in ("", meta.uid):
        raise Malformed(
            f"the answer is not {describe()}: it is about {meta.namespace!r:.100} {meta.name!r:.300} {meta.uid!r:.100}"
        )


def check_deleted(answer: bytes, api_version: str, kind: str, metadata: ObjectMeta) -> None:
    """Check the answer to a delete: a `Status` of success, or the object, which may live on until its grace is over.

    Raises: `Malformed`.
    """
    try:
        _decode_success(answer)
    except NOT_DECODED:
        check_object(answer, api_version, kind, metadata)


def read(decode: Callable[[bytes], T], answer: bytes, describe: Callable[[], str]) -> T:
    """Decode an answer of any nesting depth that an API server allows; `describe` says what was expected.

    Raises: `Malformed`.
    """
    try:
        return decode(answer)
    except RecursionError:
        pass
    except NOT_DECODED as error:
        raise _malformed_answer(describe(), answer, error) from error
    try:
        with room_for_nesting():
            return decode(answer)
    except NOT_DECODED as error:
        raise _malformed_answer(describe(), answer, error) from error


def _malformed_answer(expected: str, answer: bytes, error: Exception) -> Malformed:
    return Malformed(f"the answer is not {expected}: {error}: {answer[:_SHOWN_BYTES]!r}")
