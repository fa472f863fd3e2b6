import pytest

from podium.cli.amounts import amounts_of
from podium.objects.errors import FieldError


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("cpu=500m,memory=1Gi", {"cpu": "500m", "memory": "1Gi"}),
        (" cpu = 1 , nvidia.com/gpu=2", {"cpu": "1", "nvidia.com/gpu": "2"}),
        ("hugepages-2Mi=4Mi,ephemeral-storage=0", {"hugepages-2Mi": "4Mi", "ephemeral-storage": "0"}),
    ],
)
def test_amounts_are_read_by_resource(text, amounts):
    assert amounts_of(text) == amounts


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("memroy=1Gi", "memroy: no such resource; did you mean memory?"),
        ("gpu=1", "gpu: no such resource; resources of devices have a domain, such as nvidia.com/gpu"),
        ("pods=1", "pods: no such resource"),
        ("CPU=1", "CPU: no such resource"),
        ("cpu=-1", "cpu: -1 is negative"),
        ("=1", "=1: expected NAME=AMOUNT"),
        ("cpu", "cpu: expected NAME=AMOUNT"),
        ("cpu=", "cpu=: expected NAME=AMOUNT"),
        ("", '"": expected NAME=AMOUNT'),
        ("cpu=1,", '"": expected NAME=AMOUNT'),
        ("cpu=1,cpu=2", "cpu: given twice"),
        ("cpu=1=2", 'cpu: "1=2" is not a quantity'),
        ("cpu=NaN", "cpu: "),
        ("cpu=1e400", "cpu: 1e400 is too large"),
        ("cpu=9223372036854775808m", "cpu: 9223372036854775808m is too large"),
        ("memory=1e19", "memory: 1e19 is too large"),
        ("cpu=-1e400", "cpu: -1e400 is negative"),
        ("cpu=1e99999", 'cpu: "1e99999" has an exponent beyond 4096'),
        ("nvidia.com/gpu=500m", "nvidia.com/gpu: 500m is not a whole number"),
        ("nvidia.com/=1", "nvidia.com/: name part must be non-empty"),
        ("hugepages-x=1", "hugepages-x: no such resource"),
    ],
)
def test_what_is_no_amount_of_a_resource_is_refused_by_name(text, error):
    with pytest.raises(FieldError) as failure:
        amounts_of(text)
    assert str(failure.value).startswith(error)
