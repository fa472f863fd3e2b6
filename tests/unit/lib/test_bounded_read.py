import errno
from io import BytesIO

import pytest

from podium.lib.bounded_read import read_all, read_file


def test_a_file_up_to_the_limit_is_read(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert read_file(tmp_path / "f", 5) == b"12345"


def test_a_file_beyond_the_limit_is_an_error_of_the_file_and_read_no_further():
    file = BytesIO(b"x" * 100)
    with pytest.raises(OSError, match="File too large") as error:
        read_all(file, 5)
    assert error.value.errno == errno.EFBIG
    assert file.tell() == 6


def test_a_device_without_end_is_refused():
    with pytest.raises(OSError, match="File too large"):
        read_file("/dev/zero", 1000)
