"""Creates, reads and deletes any object.

Owns the meaning of a lost response to such a request. Never guesses: an object is created under a name that was chosen
before, so that a repeated request finds it; and it is deleted by its uid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
import msgspec

from podium.client.answers import check_deleted, check_object
from podium.client.dispatcher import RETRIES_MAX, Dispatcher, Priority
from podium.objects.api_errors import AlreadyExists, ApiError, Conflict, Malformed, NotFound
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import KubeObject, ObjectT, ResourceType
from podium.objects.wire import without_nulls

_TRIES: Final = 3
_READ_PAUSES_S: Final = (0.0, 0.1, 0.5, 2.0)


async def create_object(
    dispatcher: Dispatcher,
    resource: ResourceType[ObjectT],
    item: ObjectT,
    manifest: Mapping[str, Any],
    retries_max: int = RETRIES_MAX,
) -> ObjectT:
    """Create an object.

    Args:
        item: its name and namespace, and the controller that distinguishes it from another object of its name.
        manifest: the object as it is sent.
        retries_max: how often it is sent again after a 429.

    Raises:
        AlreadyExists: another object has its name.
        ApiError: any other error response; one that `may_have_happened` if the outcome could not be found out.
    """
    metadata = item.metadata
    collection = resource.object_path(item).rpartition("/")[0]
    name = ObjectMeta(name=metadata.name, namespace=metadata.namespace)
    body = msgspec.json.encode(manifest)
    doubt: ApiError | None = None
    for _ in range(_TRIES):
        try:
            answer = await dispatcher.send(
                Priority.BINDING, "POST", collection, body, namespace=metadata.namespace, retries_max=retries_max
            )
            check_object(answer, resource.api_version, resource.kind, name)
            return convert_content(resource, parse_body(answer))
        except AlreadyExists:
            if doubt is None:
                raise
            existing_object = await read_object(dispatcher, resource, item)
            if existing_object.metadata.controller != metadata.controller:
                raise
            return existing_object
        except ApiError as error:
            if doubt is None and not error.may_have_happened:
                raise
            doubt = doubt or error
    assert doubt is not None
    raise doubt


async def read_object(dispatcher: Dispatcher, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
    """Read the object of that name as it is now; it may be a different object.

    Raises:
        NotFound: there is no such object.
        ApiError: the object cannot be read.
    """
    return convert_content(resource, await read_content(dispatcher, resource, item))


async def read_content(dispatcher: Dispatcher, resource: ResourceType[ObjectT], item: ObjectT) -> Any:
    """Return the parsed JSON of an object; otherwise like `read_object`."""
    path, metadata = resource.object_path(item), item.metadata
    name = ObjectMeta(name=metadata.name, namespace=metadata.namespace)
    failure: ApiError | None = None
    for pause_s in _READ_PAUSES_S:
        await anyio.sleep(pause_s)
        try:
            answer = await dispatcher.send(Priority.BINDING, "GET", path, namespace=metadata.namespace)
            check_object(answer, resource.api_version, resource.kind, name)
            return parse_body(answer)
        except NotFound:
            raise
        except ApiError as error:
            failure = error
    assert failure is not None
    raise failure


async def delete_object(
    dispatcher: Dispatcher, resource: ResourceType[Any], item: KubeObject, retries_max: int = RETRIES_MAX
) -> None:
    """Delete this very object. Does nothing if it is already deleted.

    Args:
        retries_max: how often the request is sent again after a 429.

    Raises:
        ApiError: the error of the last try.
    """
    metadata = item.metadata
    path, options = resource.object_path(item), {"apiVersion": "v1", "kind": "DeleteOptions"}
    body = msgspec.json.encode({**options, "preconditions": {"uid": metadata.uid}})
    doubt: ApiError | None = None
    for _ in range(_TRIES):
        try:
            answer = await dispatcher.send(
                Priority.BINDING, "DELETE", path, body, namespace=metadata.namespace, retries_max=retries_max
            )
            check_deleted(answer, resource.api_version, resource.kind, metadata)
            return
        except (NotFound, Conflict):
            return
        except ApiError as error:
            if doubt is None and not error.may_have_happened:
                raise
            doubt = doubt or error
    assert doubt is not None
    raise doubt


def parse_body(body: bytes) -> Any:
    """Parse a response from JSON, without nulls. Raises: `Malformed`."""
    try:
        return without_nulls(msgspec.json.decode(body))
    except msgspec.DecodeError as error:
        raise Malformed(f"not JSON, where an object was expected: {error}") from error


def convert_content(resource: ResourceType[ObjectT], content: Any) -> ObjectT:
    """Convert the parsed JSON to an object. Raises: `Malformed`."""
    try:
        return msgspec.convert(content, resource.type)
    except msgspec.ValidationError as error:
        raise Malformed(f"not a {resource.kind}: {error}") from error
