"""Printed tensors, character by character: the expected text (``printed.txt``) was recorded from PyTorch 2.13."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule._src.arrays import dtypes, printing


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


def show(array: np.ndarray[Any, Any], *suffixes: str, default: str = "float32", **options: Any) -> str:
    with printing.printoptions(**options):
        return printing.tensor_repr(array, suffixes=suffixes, default_dtype=default)


#: arguments of ``show``, and its result
PRINTED = re.findall(
    r"^>>> (.*)\n((?:(?!>>> |# ).*\n)+)", (Path(__file__).parent / "printed.txt").read_text(), re.MULTILINE
)


@pytest.mark.parametrize(("arguments", "expected"), PRINTED, ids=[arguments for arguments, _ in PRINTED])
def test_repr(arguments: str, expected: str) -> None:
    assert eval(f"show({arguments})") == expected.rstrip("\n")


def test_all_that_was_recorded_was_read() -> None:
    assert len(PRINTED) == 160


def test_default_dtype_is_the_current_one() -> None:
    array = np.array([0.5])
    assert printing.tensor_repr(array) == "tensor([0.5000], dtype=torch.float64)"
    dtypes.set_default_dtype("float64")
    assert printing.tensor_repr(array) == "tensor([0.5000])"
    assert printing.tensor_repr(array.astype("float32")) == "tensor([0.5000], dtype=torch.float32)"
    assert printing.tensor_repr(np.array([1j])) == "tensor([0.+1.j])"


def test_prefix_sets_the_indentation() -> None:
    text = printing.tensor_repr(np.eye(2), prefix="MyTensor(")
    assert text == "MyTensor([[1., 0.],\n          [0., 1.]], dtype=torch.float64)"
    text = printing.tensor_repr(np.arange(9) / 4, prefix="Sub(", suffixes=["requires_grad=True"])
    assert text.endswith("2.0000],\n    dtype=torch.float64, requires_grad=True)")


def test_indent_moves_later_lines() -> None:
    text = printing.tensor_repr(np.array([[1, 2], [3, 4]]), indent=7, prefix="indices=tensor(")
    assert text == "indices=tensor([[1, 2],\n" + " " * 23 + "[3, 4]])"


def test_scalars_print_like_0d_arrays() -> None:
    assert printing.tensor_repr(np.float32(1.5)) == "tensor(1.5000)"  # type: ignore[arg-type]


def test_only_the_shown_elements_are_read() -> None:
    # 8 TB if all were formatted or copied
    huge = np.broadcast_to(np.float64(0.5), (10**6, 10**6))
    assert printing.tensor_repr(huge).startswith("tensor([[0.5000, 0.5000, 0.5000,  ..., 0.5000")
    line = np.broadcast_to(np.int64(3), 10**12)
    assert printing.tensor_repr(line) == "tensor([3, 3, 3,  ..., 3, 3, 3])"


def test_options_start_at_the_defaults() -> None:
    assert printing.get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }


def test_profiles() -> None:
    printing.set_printoptions(profile="short")
    options = printing.get_printoptions()
    assert (options["precision"], options["threshold"], options["edgeitems"]) == (2, 1000, 2)
    printing.set_printoptions(profile="full")
    options = printing.get_printoptions()
    assert (options["precision"], options["threshold"], options["edgeitems"]) == (4, math.inf, 3)
    assert "..." not in printing.tensor_repr(np.arange(2000))
    printing.set_printoptions(profile="default", precision=7)
    assert printing.get_printoptions()["precision"] == 7


def test_every_call_sets_sci_mode() -> None:
    printing.set_printoptions(sci_mode=True)
    assert printing.get_printoptions()["sci_mode"] is True
    printing.set_printoptions(precision=4)
    assert printing.get_printoptions()["sci_mode"] is None


def test_printoptions_restores() -> None:
    printing.set_printoptions(precision=3, sci_mode=True)
    before = printing.get_printoptions()
    with pytest.raises(ZeroDivisionError), printing.printoptions(profile="short", linewidth=40):
        assert printing.get_printoptions()["linewidth"] == 40
        assert printing.get_printoptions()["sci_mode"] is None
        1 / 0
    assert printing.get_printoptions() == before


def test_printoptions_rejects_unknown_names() -> None:
    with pytest.raises(TypeError, match="digits"), printing.printoptions(digits=3):
        pass


@pytest.mark.parametrize(
    ("array", "spec", "expected"),
    [
        (np.array(1.5), "", "1.5"),
        (np.array(1.5), ".3f", "1.500"),
        (np.array(0.1, "float32"), "", "0.10000000149011612"),
        (np.array(0.1, "float16"), "", "0.0999755859375"),
        (np.array(3), "5d", "    3"),
        (np.array(3), ".2f", "3.00"),
        (np.array(True), "", "True"),
        (np.array(True), ">6", "     1"),
        (np.array(1 + 2j), ".2f", "1.00+2.00j"),
        (np.array([1.0], "float32"), "", "tensor([1.])"),
    ],
)
def test_format(array: np.ndarray[Any, Any], spec: str, expected: str) -> None:
    assert printing.format_tensor(array, spec) == expected


def test_format_refuses_arrays_with_dimensions() -> None:
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor\.__format__"):
        printing.format_tensor(np.array([1.0]), ".3f")


def test_format_refuses_what_python_refuses() -> None:
    with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
        printing.format_tensor(np.array(3.5), "d")


def _random_array(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return an array of a random shape, dtype and magnitude, with some nan, inf and zeros."""
    ndim = int(rng.integers(0, 5))
    shape = tuple(int(n) for n in np.exp(rng.uniform(0, 8 / max(ndim, 1), ndim)))
    dtype = rng.choice(["float16", "float32", "float64", "complex64", "complex128", "int16", "int64", "bool"])
    values = rng.standard_normal(shape) * np.exp(rng.uniform(0, 8) * rng.standard_normal(shape))
    if rng.random() < 0.3:
        values = np.round(values)
    values = np.asarray(values)
    for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        if rng.random() < 0.1:
            values[rng.random(shape) < 0.1] = special
    if dtype in ("int16", "int64"):
        values = np.clip(np.nan_to_num(values), -(2**15), 2**15 - 1)
    with np.errstate(all="ignore"):
        if dtype.startswith("complex"):
            values = values + 1j * values[::-1] if ndim else values * (1 + 1j)
        return np.asarray(values).astype(dtype)


@pytest.mark.oracle
def test_random_arrays_print_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from torch._tensor_str import printoptions

    rng = np.random.default_rng(20)
    for _ in range(500):
        array = _random_array(rng)
        options: dict[str, Any] = {}
        if rng.random() < 0.3:
            options = {
                "precision": int(rng.integers(0, 8)),
                "edgeitems": int(rng.integers(0, 5)),
                "linewidth": int(rng.choice([20, 60, 120])),
                "threshold": int(rng.choice([10, 100, 1000])),
            }
        with printoptions(**options), printing.printoptions(**options):
            assert printing.tensor_repr(array) == repr(torch.from_numpy(array)), (array, options)
