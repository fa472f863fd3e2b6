import pytest

from podium.objects.amounts import distinct_texts


@pytest.mark.parametrize(
    ("resource", "amounts", "texts"),
    [
        ("cpu", (3000, 2500), ["3", "2.5"]),
        ("cpu", (100, 0), ["0.1", "0"]),
        ("memory", (2 << 30, 3 << 29), ["2Gi", "1.5Gi"]),
        ("memory", (1 << 30, (1 << 30) - 1), ["1Gi", "1023.99Mi"]),
        ("memory", ((1 << 30) + 1, 1 << 30), ["1073741825", "1Gi"]),
        ("example.com/gpu", (1, 0), ["1", "0"]),
    ],
)
def test_amounts_are_readable_and_different_ones_stay_different(resource, amounts, texts):
    assert distinct_texts(resource, *amounts) == texts
