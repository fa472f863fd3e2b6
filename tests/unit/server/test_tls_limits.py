import re
import ssl

import pytest

from podium.server.tls_limits import TlsLimits
from tests.unit.server.serving.test_certificates import handshake, self_signed

AES_256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


def version_and_suite(limits, *, at_most):
    """Version and suite with a client that knows nothing newer."""
    pair = self_signed(host_name="node-1")
    client = handshake(pair.context(limits), pair.certificate, "node-1", at_most)
    return client.version(), client.cipher()[0]


def test_only_the_suites_that_are_named_are_spoken_in_tls_12():
    assert version_and_suite(TlsLimits(cipher_suites=(AES_256,)), at_most=ssl.TLSVersion.TLSv1_2) == (
        "TLSv1.2",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    )


@pytest.mark.parametrize(
    "limits",
    [TlsLimits("VersionTLS13"), TlsLimits(cipher_suites=("TLS_AES_128_GCM_SHA256",))],
    ids=["version", "suites"],
)
def test_tls_12_is_off_where_the_version_or_the_suites_leave_nothing_of_it(limits):
    assert version_and_suite(limits, at_most=ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        version_and_suite(limits, at_most=ssl.TLSVersion.TLSv1_2)


def test_suites_of_tls_13_are_there_whatever_is_named():
    assert version_and_suite(TlsLimits(cipher_suites=(AES_256,)), at_most=ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3"


@pytest.mark.parametrize(
    ("version", "suites", "name"), [("VersionTLS11", (), "VersionTLS11"), ("VersionTLS12", ("NULL",), "NULL")]
)
def test_what_is_not_served_is_named(version, suites, name):
    with pytest.raises(ValueError, match=re.escape(f"{name} is not served, only ")):
        TlsLimits(version, suites)
