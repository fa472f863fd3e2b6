import pytest

from tests.virtual_time import VIRTUAL_TIME


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME
