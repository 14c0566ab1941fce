"""assert_close: tolerances by dtype, and a message with the size of the difference."""

import numpy as np
import pytest

import chainrule as torch
from chainrule.testing import assert_allclose, assert_close

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize(
    "actual, expected, options",
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]), {}),
        (torch.tensor([0.0]), torch.tensor([9e-6]), {}),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), {}),
        (torch.tensor([True]), torch.tensor([True]), {}),
        (torch.tensor([inf, -inf]), torch.tensor([inf, -inf]), {}),
        (torch.tensor([nan]), torch.tensor([nan]), {"equal_nan": True}),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), {"check_dtype": False}),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 1.000001j]), {}),
        (np.ones(2), np.ones(2), {}),
        (1.0, 1.0 + 1e-8, {}),
        (1, 1, {}),
        ([torch.ones(2), 3], [torch.ones(2), 3], {}),
        ({"a": (torch.ones(2),), "b": None}, {"a": (torch.ones(2),), "b": None}, {}),
        (torch.tensor([5.0]), torch.tensor([5.4]), {"rtol": 0.0, "atol": 0.5}),
        (torch.zeros(0, 3), torch.zeros(0, 3), {}),
        (torch.ones(2, requires_grad=True), torch.ones(2), {}),
    ],
)
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    "actual, expected, message",
    [
        (
            torch.tensor([1.0, 2.0, 3.0]),
            torch.tensor([1.0, 2.1, 3.5]),
            "Tensor-likes are not close!\n\nMismatched elements: 2 / 3 (66.7%)\n"
            "Greatest absolute difference: 0.5 at index (2,) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.14285714285714285 at index (2,) (up to 1.3e-06 allowed)",
        ),
        (
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor([[1, 2], [5, 4]]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 4 (25.0%)\n"
            "Greatest absolute difference: 2 at index (1, 0)\n"
            "Greatest relative difference: 0.4 at index (1, 0)",
        ),
        (
            torch.tensor(1.0),
            torch.tensor(2.0),
            "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\n"
            "Relative difference: 0.5 (up to 1.3e-06 allowed)",
        ),
        (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (
            torch.ones(2),
            torch.ones(3),
            "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3]).",
        ),
        (
            torch.ones(2),
            torch.ones(2, dtype=torch.float64),
            "The values for attribute 'dtype' do not match: torch.float32 != torch.float64.",
        ),
        ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
        (
            {"a": 1},
            {"b": 1},
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
            "Additional keys in the actual mapping: ['a']",
        ),
        (None, 1, "None mismatch: None is not 1"),
        (True, False, "Booleans mismatch: True is not False"),
        ([[True]], [[False]], "Booleans mismatch: True is not False\n\nThe failure occurred for item [0][0]"),
    ],
)
def test_the_message_is_exact(actual, expected, message):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "actual, expected",
    [
        (torch.tensor([nan]), torch.tensor([nan])),
        (torch.tensor([inf]), torch.tensor([1.0])),
        (torch.tensor([1.0]), torch.tensor([inf])),
        (torch.tensor([inf]), torch.tensor([-inf])),
        (torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-6], dtype=torch.float64)),
        (torch.tensor([2**62]), torch.tensor([2**62 + 1])),
    ],
)
def test_not_close(actual, expected):
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 1"):
        assert_close(actual, expected)


def test_the_place_in_a_container_is_said():
    with pytest.raises(AssertionError, match=r"The failure occurred for item \['a'\]\[1\]"):
        assert_close({"a": [torch.ones(2), torch.ones(2)]}, {"a": [torch.ones(2), torch.zeros(2)]})


def test_one_tolerance_alone_is_refused():
    with pytest.raises(ValueError, match="got no atol"):
        assert_close(torch.ones(1), torch.ones(1), rtol=1e-3)
    with pytest.raises(ValueError, match="got no rtol"):
        assert_close(torch.ones(1), torch.ones(1), atol=1e-3)


def test_what_cannot_be_compared():
    for actual, expected in ((torch.ones(()), 1.0), ("a", "a"), (torch.ones(1), np.ones(1, np.float32))):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            assert_close(actual, expected)
    with pytest.raises(TypeError, match=r"'str'>.\n\nThe failure occurred for item \['a'\]"):
        assert_close({"a": "b"}, {"a": "b"})


def test_your_own_message():
    with pytest.raises(AssertionError, match=r"^so there$"):
        assert_close(1.0, 2.0, msg="so there")
    with pytest.raises(AssertionError, match=r"^context: Scalars are not close!"):
        assert_close(1.0, 2.0, msg=lambda text: "context: " + text)


def test_subclasses():
    class Mine(torch.Tensor):
        pass

    assert_close(torch.ones(2), Mine(torch.ones(2)))
    with pytest.raises(TypeError):
        assert_close(torch.ones(2), Mine(torch.ones(2)), allow_subclasses=False)


def test_strides():
    assert_close(torch.ones(2, 3), torch.ones(3, 2).t())
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match: \(3, 1\) != \(1, 2\)"):
        assert_close(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)


def test_allclose_is_wider():
    one = torch.ones(2, dtype=torch.float64)
    assert_allclose(one, one + 9e-6)
    assert_allclose(one, [1.0, 1.0])
    assert_allclose([1.0, nan], [1.0 + 9e-5, nan])
    assert_allclose(one, one.float() + 9e-5)
    assert_allclose(one, one + 0.5, rtol=0.0, atol=0.6)
    for other in (one + 2e-5, torch.ones(3)):
        with pytest.raises(AssertionError):
            assert_allclose(one, other)
    with pytest.raises(AssertionError, match="mine"):
        assert_allclose(one, one + 1, msg="mine")
    with pytest.raises(AssertionError):
        assert_allclose(one, torch.tensor([1.0, nan]), equal_nan=False)
