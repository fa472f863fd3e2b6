from __future__ import annotations

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

import podium
from podium.server.serving.status_pages import status_pages

pytestmark = pytest.mark.anyio

PATHS = ("/metrics", "/healthz")
FLAGS = {"secure-port": "10259", "config": "podium.yaml"}


async def response_of(path: str, accept: str | None = None) -> web.Response:
    headers = {} if accept is None else {"Accept": accept}
    response = await status_pages(PATHS, FLAGS, "1.36")[path](make_mocked_request("GET", path, headers=headers))
    assert isinstance(response, web.Response)
    return response


async def document(path: str, accept: str | None = None) -> dict[str, object]:
    response = await response_of(path, accept)
    assert response.content_type == "application/json"
    assert isinstance(response.body, bytes)
    return dict(json.loads(response.body))


async def test_the_index_lists_every_path() -> None:
    assert await document("/") == {"paths": ["/flagz", "/healthz", "/metrics", "/statusz"]}


@pytest.mark.parametrize("accept", [None, "", "text/plain", "*/*", "text/html, */*;q=0.8", "image/png,text/*"])
async def test_people_get_text(accept: str | None) -> None:
    flags, status = (await response_of("/flagz", accept)).text, (await response_of("/statusz", accept)).text
    assert flags is not None
    assert flags.startswith("\npodium flagz\nWarning: This endpoint is not meant to be machine parseable")
    assert flags.endswith("\n\nconfig: podium.yaml\nsecure-port: 10259\n")
    assert status is not None
    assert f"\nBinary version: {podium.__version__}\nEmulation version: 1.36\n" in status
    assert "\nUp: 0 hr 00 min 00 sec\n" in status
    assert status.endswith("\nPaths: /flagz /healthz /metrics /statusz\n")


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
async def test_programs_get_the_object_that_they_name(version: str) -> None:
    accept = f"image/png, application/json;v={version};g=config.k8s.io;as=Flagz"
    answer = {"kind": "Flagz", "apiVersion": f"config.k8s.io/{version}", "metadata": {"name": "podium"}, "flags": FLAGS}
    assert await document("/flagz", accept) == answer
    assert ("Warning" in (await response_of("/flagz", accept)).headers) == (version == "v1alpha1")
    status = await document("/statusz", accept.replace("Flagz", "Statusz"))
    assert set(status) >= {"startTime", "uptimeSeconds", "binaryVersion", "emulationVersion", "paths"}
    assert status["emulationVersion"] == "1.36"


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json;v=v1;g=config.k8s.io;as=Flagz",
        "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
        "application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz",
        ";;=,=;as",
    ],
)
async def test_other_forms_are_not_acceptable(accept: str) -> None:
    with pytest.raises(web.HTTPNotAcceptable) as error:
        await response_of("/flagz", accept)
    assert error.value.text == (
        "only the following media types are accepted: text/plain, application/json;v=v1beta1;g=config.k8s.io;as=Flagz\n"
    )
