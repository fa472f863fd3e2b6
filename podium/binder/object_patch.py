"""Patches any object at the resource version on which the change was decided.

Owns the meaning of a lost response to such a patch. Never guesses: the object is read again, and the patch is repeated
only if it has not been applied. Of two patches with one resource version, the server applies only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.binder.object_lifecycle import convert_content, parse_body, read_content
from podium.client.answers import check_object
from podium.client.dispatcher import RETRIES_MAX, Dispatcher, Priority
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
    retries_max: int = RETRIES_MAX,
) -> ObjectT:
    """Merge the change into the object, if it is unchanged since `item` was read.

    Args:
        subresource: `status` to change the status, which needs it.
        retries_max: how often the change is sent again after a 429.

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
                Priority.BINDING,
                "PATCH",
                path,
                body,
                content_type=MERGE_PATCH,
                namespace=item.metadata.namespace,
                retries_max=retries_max,
            )
            check_object(answer, resource.api_version, resource.kind, item.metadata)
            return convert_content(resource, parse_body(answer))
        except ApiError as error:
            if doubt is None and not error.may_have_happened:
                raise
            # A later error does not decide it: a conflict may be with the very write whose response was lost.
            doubt = doubt or error
        try:
            content = await read_content(dispatcher, resource, item)
        except NotFound:
            raise
        except ApiError as error:
            doubt.add_note(f"the object could not be read again: {error}")
            raise doubt from error
        current_object = convert_content(resource, content)
        if _contains(content, change) and current_object.metadata.uid == item.metadata.uid:
            return current_object
        if current_object.metadata.resource_version != version or current_object.metadata.uid != item.metadata.uid:
            raise Conflict(f'{resource.plural} "{item.key}" has changed meanwhile', code=409, reason="Conflict")
    assert doubt is not None
    raise doubt


def _contains(content: Any, change: Any) -> bool:
    """Return whether the object contains everything that the change sets; an API server may have added defaults."""
    if isinstance(change, Sequence) and not isinstance(change, str):
        return isinstance(content, list) and len(content) == len(change) and all(map(_contains, content, change))
    if not isinstance(change, Mapping):
        return bool(content == change)
    return isinstance(content, Mapping) and all(_contains(content.get(key), value) for key, value in change.items())
