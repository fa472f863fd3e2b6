"""Patches any object at the resource version that the change was decided on.

Owns what a lost response to such a patch means. Never guesses: the object is read again, and the patch is repeated only
if it has not been applied. Two patches with one resource version can be applied only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.binder.object_lifecycle import parsed, read_content, typed
from podium.client.answers import check_object
from podium.client.dispatcher import Dispatcher, Priority
from podium.client.requests import MERGE_PATCH
from podium.objects.api_errors import ApiError, Conflict, NotFound
from podium.objects.resource_types import ObjectT, ResourceType

_TRIES: Final = 3


async def patch_object(
    dispatcher: Dispatcher,
    resource: ResourceType[ObjectT],
    item: ObjectT,
    change: Mapping[str, Any],
    subresource: str = "",
) -> ObjectT:
    """Merge the change into the object, if it is unchanged since `item` was read.

    Args:
        subresource: `status` to change the status, which nothing else does.

    Returns:
        The object with the change applied, whether or not the server's response was received.

    Raises:
        Conflict: the object has changed since.
        NotFound: the object was deleted.
        ApiError: any other error response; one that `may_have_happened` if the outcome could not be found out.
    """
    path, version = resource.object_path(item), item.metadata.resource_version
    path = f"{path}/{subresource}" if subresource else path
    metadata = {**change.get("metadata", {}), "resourceVersion": version}
    body = msgspec.json.encode({**change, "metadata": metadata})
    doubt: ApiError | None = None
    for _ in range(_TRIES):
        try:
            answer = await dispatcher.send(
                Priority.BINDING, "PATCH", path, body, content_type=MERGE_PATCH, namespace=item.metadata.namespace
            )
            check_object(answer, resource.api_version, resource.kind, item.metadata)
            return typed(resource, parsed(answer))
        except ApiError as error:
            if doubt is None and not error.may_have_happened:
                raise
            # A later error, be it a conflict with the very write whose response was lost, says nothing about that one.
            doubt = doubt or error
        try:
            seen = await read_content(dispatcher, resource, item)
        except NotFound:
            raise
        except ApiError as error:
            doubt.add_note(f"the object could not be read again: {error}")
            raise doubt from error
        known = typed(resource, seen)
        if _contains(seen, change) and known.metadata.uid == item.metadata.uid:
            return known
        if known.metadata.resource_version != version or known.metadata.uid != item.metadata.uid:
            raise Conflict(f'{resource.plural} "{item.key}" has changed meanwhile', code=409, reason="Conflict")
    assert doubt is not None
    raise doubt


def _contains(seen: Any, change: Any) -> bool:
    """Whether the object contains everything that the change sets; an API server may have added defaults."""
    if isinstance(change, Sequence) and not isinstance(change, str):
        return isinstance(seen, list) and len(seen) == len(change) and all(map(_contains, seen, change))
    if not isinstance(change, Mapping):
        return bool(seen == change)
    return isinstance(seen, Mapping) and all(_contains(seen.get(key), value) for key, value in change.items())
