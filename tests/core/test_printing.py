"""Printed tensors, letter by letter: every expected text was recorded from PyTorch 2.13."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule.types import dtypes, printing


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


def case(
    title: str,
    array: np.ndarray[Any, Any],
    expected: str,
    suffixes: list[str] | None = None,
    default: str = "float32",
    options: dict[str, Any] | None = None,
) -> Any:
    return pytest.param(array, expected, suffixes or [], default, options or {}, id=title)


CASES = [
    # 0-d
    case("0-d: float", np.array(1.5, "float32"), "tensor(1.5000)"),
    case("0-d: float negative", np.array(-2.25, "float32"), "tensor(-2.2500)"),
    case("0-d: float integral", np.array(3.0, "float32"), "tensor(3.)"),
    case("0-d: float zero", np.array(0.0, "float32"), "tensor(0.)"),
    case("0-d: float negative zero", np.array(-0.0, "float32"), "tensor(-0.)"),
    case("0-d: float tiny", np.array(1e-7, "float32"), "tensor(1.0000e-07)"),
    case("0-d: float large", np.array(123456789.0, "float32"), "tensor(1.2346e+08)"),
    case("0-d: float fraction rounds", np.array(0.99999, "float32"), "tensor(1.0000)"),
    case("0-d: float nan", np.array(np.nan, "float32"), "tensor(nan)"),
    case("0-d: float inf", np.array(np.inf, "float32"), "tensor(inf)"),
    case("0-d: float -inf", np.array(-np.inf, "float32"), "tensor(-inf)"),
    case("0-d: double", np.array(0.1, "float64"), "tensor(0.1000, dtype=torch.float64)"),
    case("0-d: half", np.array(0.1, "float16"), "tensor(0.1000, dtype=torch.float16)"),
    case("0-d: int64", np.array(7), "tensor(7)"),
    case("0-d: int32", np.array(-7, "int32"), "tensor(-7, dtype=torch.int32)"),
    case("0-d: bool", np.array(True), "tensor(True)"),
    case("0-d: complex", np.array(1 + 2j, "complex64"), "tensor(1.+2.j)"),
    case("0-d: complex negative", np.array(-1.5 - 0.25j, "complex64"), "tensor(-1.5000-0.2500j)"),
    case("0-d: complex double", np.array(1j, "complex128"), "tensor(0.+1.j, dtype=torch.complex128)"),
    case("0-d: uint64", np.array(2**64 - 1, "uint64"), "tensor(18446744073709551615, dtype=torch.uint64)"),
    # empty
    case("empty: empty", np.zeros(0, "float32"), "tensor([])"),
    case("empty: empty double", np.zeros(0), "tensor([], dtype=torch.float64)"),
    case("empty: empty int64", np.zeros(0, "int64"), "tensor([], dtype=torch.int64)"),
    case("empty: empty bool", np.zeros(0, bool), "tensor([], dtype=torch.bool)"),
    case("empty: empty 2-d", np.zeros((0, 3), "float32"), "tensor([], size=(0, 3))"),
    case("empty: empty 3-d", np.zeros((2, 0, 4), "float32"), "tensor([], size=(2, 0, 4))"),
    case("empty: empty int32", np.zeros((0, 3), "int32"), "tensor([], size=(0, 3), dtype=torch.int32)"),
    case("empty: empty complex", np.zeros((0,), "complex64"), "tensor([], dtype=torch.complex64)"),
    case("empty: empty default double", np.zeros((3, 0)), "tensor([], size=(3, 0))", default="float64"),
    case(
        "empty: empty with grad",
        np.zeros((0, 3), "float32"),
        "tensor([], size=(0, 3), requires_grad=True)",
        suffixes=["requires_grad=True"],
    ),
    # 1-d
    case("1-d: integral", np.array([1.0, 2.0, 3.0], "float32"), "tensor([1., 2., 3.])"),
    case("1-d: integral negative", np.array([-1.0, 20.0, -300.0], "float32"), "tensor([  -1.,   20., -300.])"),
    case("1-d: fractions", np.array([0.5, -1.25, 10.0], "float32"), "tensor([ 0.5000, -1.2500, 10.0000])"),
    case("1-d: rounding", np.array([1 / 3, 2 / 3, 0.00005], "float32"), "tensor([3.3333e-01, 6.6667e-01, 5.0000e-05])"),
    case("1-d: zeros", np.array([0.0, 0.0], "float32"), "tensor([0., 0.])"),
    case("1-d: zero and fraction", np.array([0.0, 0.5], "float32"), "tensor([0.0000, 0.5000])"),
    case("1-d: negative zero sticks out", np.array([-0.0, 0.5], "float32"), "tensor([-0.0000, 0.5000])"),
    case("1-d: integral negative zero", np.array([-0.0, 1.0], "float32"), "tensor([-0., 1.])"),
    case("1-d: one element", np.array([1.0], "float32"), "tensor([1.])"),
    case("1-d: double", np.array([0.1, 0.2], "float64"), "tensor([0.1000, 0.2000], dtype=torch.float64)"),
    case(
        "1-d: half",
        np.array([0.1, 0.2, 65504.0], "float16"),
        "tensor([9.9976e-02, 1.9995e-01, 6.5504e+04], dtype=torch.float16)",
    ),
    case("1-d: half integral", np.array([1.0, 2.0], "float16"), "tensor([1., 2.], dtype=torch.float16)"),
    case("1-d: double is default", np.array([0.1, 0.2], "float64"), "tensor([0.1000, 0.2000])", default="float64"),
    case(
        "1-d: float beside default double",
        np.array([0.1, 0.2], "float32"),
        "tensor([0.1000, 0.2000], dtype=torch.float32)",
        default="float64",
    ),
    case("1-d: half is default", np.array([0.5], "float16"), "tensor([0.5000])", default="float16"),
    # scientific notation
    case("scientific notation: ratio at 1000", np.array([1.0, 1000.0], "float32"), "tensor([   1., 1000.])"),
    case(
        "scientific notation: ratio above 1000", np.array([1.0, 1001.0], "float32"), "tensor([1.0000e+00, 1.0010e+03])"
    ),
    case(
        "scientific notation: ratio of fractions", np.array([0.5, 500.5], "float32"), "tensor([5.0000e-01, 5.0050e+02])"
    ),
    case("scientific notation: large", np.array([1e8, 1e8], "float32"), "tensor([100000000., 100000000.])"),
    case("scientific notation: larger", np.array([2e8, 2e8], "float32"), "tensor([2.0000e+08, 2.0000e+08])"),
    case(
        "scientific notation: small", np.array([1e-4, 2e-4], "float64"), "tensor([0.0001, 0.0002], dtype=torch.float64)"
    ),
    case("scientific notation: smaller", np.array([9.9e-5, 1e-4], "float32"), "tensor([9.9000e-05, 1.0000e-04])"),
    case("scientific notation: float32 is below 1e-4", np.array([1e-4], "float32"), "tensor([1.0000e-04])"),
    case("scientific notation: negative", np.array([-1e-5, 1.0], "float32"), "tensor([-1.0000e-05,  1.0000e+00])"),
    case(
        "scientific notation: three-digit exponents",
        np.array([1e-300, 1e300], "float64"),
        "tensor([1.0000e-300, 1.0000e+300], dtype=torch.float64)",
    ),
    case(
        "scientific notation: subnormal",
        np.array([5e-324, 1.0], "float64"),
        "tensor([4.9407e-324,  1.0000e+00], dtype=torch.float64)",
    ),
    case("scientific notation: zero among", np.array([0.0, 1e-6], "float32"), "tensor([0.0000e+00, 1.0000e-06])"),
    case(
        "scientific notation: forced",
        np.array([1.5, 2.5], "float32"),
        "tensor([1.5000e+00, 2.5000e+00])",
        options={"sci_mode": True},
    ),
    case(
        "scientific notation: forced integral",
        np.array([1.0, 2.0], "float32"),
        "tensor([1.0000e+00, 2.0000e+00])",
        options={"sci_mode": True},
    ),
    case(
        "scientific notation: forbidden",
        np.array([1e-6, 1e6], "float32"),
        "tensor([      0.0000, 1000000.0000])",
        options={"sci_mode": False},
    ),
    case(
        "scientific notation: forced zeros",
        np.array([0.0, 0.0], "float32"),
        "tensor([0., 0.])",
        options={"sci_mode": True},
    ),
    case(
        "scientific notation: forced, precision 1",
        np.array([1.55, -2.5], "float32"),
        "tensor([ 1.5e+00, -2.5e+00])",
        options={"sci_mode": True, "precision": 1},
    ),
    # nan and inf
    case("nan and inf: integral", np.array([1.0, np.nan, np.inf, -np.inf], "float32"), "tensor([1., nan, inf, -inf])"),
    case(
        "nan and inf: fractions",
        np.array([1.5, np.nan, np.inf, -np.inf], "float32"),
        "tensor([1.5000,    nan,    inf,   -inf])",
    ),
    case(
        "nan and inf: scientific",
        np.array([1e-9, np.nan, np.inf, -np.inf], "float32"),
        "tensor([1.0000e-09,        nan,        inf,       -inf])",
    ),
    case("nan and inf: alone", np.array([np.nan, np.inf, -np.inf], "float32"), "tensor([nan, inf, -inf])"),
    case("nan and inf: with zero", np.array([0.0, np.nan], "float32"), "tensor([0., nan])"),
    case("nan and inf: wide", np.array([1234.0, np.nan], "float32"), "tensor([1234.,   nan])"),
    case(
        "nan and inf: 2-d",
        np.array([[np.nan, 1.0], [2.5, -np.inf]], "float32"),
        """\
tensor([[   nan, 1.0000],
        [2.5000,   -inf]])""",
    ),
    # integers and bools
    case("integers and bools: ints", np.array([1, -20, 300]), "tensor([  1, -20, 300])"),
    case("integers and bools: int8", np.array([-128, 127], "int8"), "tensor([-128,  127], dtype=torch.int8)"),
    case("integers and bools: uint8", np.array([0, 255], "uint8"), "tensor([  0, 255], dtype=torch.uint8)"),
    case("integers and bools: int16", np.array([1, 2], "int16"), "tensor([1, 2], dtype=torch.int16)"),
    case(
        "integers and bools: int32",
        np.array([[1, 2], [3, 4]], "int32"),
        """\
tensor([[1, 2],
        [3, 4]], dtype=torch.int32)""",
    ),
    case("integers and bools: uint16", np.array([1, 65535], "uint16"), "tensor([    1, 65535], dtype=torch.uint16)"),
    case(
        "integers and bools: uint32",
        np.array([1, 2**32 - 1], "uint32"),
        "tensor([         1, 4294967295], dtype=torch.uint32)",
    ),
    case(
        "integers and bools: uint64",
        np.array([2**64 - 1, 3], "uint64"),
        "tensor([18446744073709551615,                    3], dtype=torch.uint64)",
    ),
    case("integers and bools: bools", np.array([True, False]), "tensor([ True, False])"),
    case(
        "integers and bools: bools 2-d",
        np.eye(3, dtype=bool),
        """\
tensor([[ True, False, False],
        [False,  True, False],
        [False, False,  True]])""",
    ),
    case(
        "integers and bools: all true",
        np.ones((2, 2), bool),
        """\
tensor([[True, True],
        [True, True]])""",
    ),
    case("integers and bools: int64 beside default double", np.array([1, 2]), "tensor([1, 2])", default="float64"),
    # complex
    case("complex: integral", np.array([1 + 2j, -3 - 4j], "complex64"), "tensor([ 1.+2.j, -3.-4.j])"),
    case(
        "complex: fractions",
        np.array([0.5 + 1.5j, -0.25 - 10j], "complex64"),
        "tensor([ 0.5000+1.5000j, -0.2500-10.0000j])",
    ),
    case("complex: mixed parts", np.array([1 + 0.5j, 20 - 1.5j], "complex64"), "tensor([ 1.+0.5000j, 20.-1.5000j])"),
    case(
        "complex: scientific real part",
        np.array([1e-6 + 1j, 1 - 2j], "complex64"),
        "tensor([1.0000e-06+1.j, 1.0000e+00-2.j])",
    ),
    case("complex: double", np.array([1 + 1j], "complex128"), "tensor([1.+1.j], dtype=torch.complex128)"),
    case("complex: double is default", np.array([1 + 1j], "complex128"), "tensor([1.+1.j])", default="float64"),
    case(
        "complex: nan and inf",
        np.array([complex(np.nan, np.inf), complex(1, -np.inf), complex(np.inf, np.nan)], "complex64"),
        "tensor([nan+infj, 1.-infj, inf+nanj])",
    ),
    case(
        "complex: signed zeros",
        np.array([complex(-0.0, -0.0), complex(0.0, 0.0)], "complex64"),
        "tensor([-0.-0.j, 0.+0.j])",
    ),
    case(
        "complex: 2-d",
        (np.arange(4) - 1j * np.arange(4) / 8).reshape(2, 2).astype("complex64"),
        """\
tensor([[0.+0.0000j, 1.-0.1250j],
        [2.-0.2500j, 3.-0.3750j]])""",
    ),
    case(
        "complex: wraps",
        (np.arange(7) / 4 + 1j * np.arange(7)).astype("complex64"),
        """\
tensor([0.0000+0.j, 0.2500+1.j, 0.5000+2.j, 0.7500+3.j, 1.0000+4.j, 1.2500+5.j,
        1.5000+6.j])""",
    ),
    # several dimensions
    case(
        "several dimensions: 2-d",
        np.arange(6, dtype="float32").reshape(2, 3),
        """\
tensor([[0., 1., 2.],
        [3., 4., 5.]])""",
    ),
    case(
        "several dimensions: 2-d fractions",
        np.arange(-3, 3, dtype="float32").reshape(2, 3) / 4,
        """\
tensor([[-0.7500, -0.5000, -0.2500],
        [ 0.0000,  0.2500,  0.5000]])""",
    ),
    case(
        "several dimensions: 3-d",
        np.arange(12).reshape(2, 3, 2),
        """\
tensor([[[ 0,  1],
         [ 2,  3],
         [ 4,  5]],

        [[ 6,  7],
         [ 8,  9],
         [10, 11]]])""",
    ),
    case(
        "several dimensions: 4-d",
        np.arange(8).reshape(2, 2, 1, 2),
        """\
tensor([[[[0, 1]],

         [[2, 3]]],


        [[[4, 5]],

         [[6, 7]]]])""",
    ),
    case(
        "several dimensions: 5-d",
        np.ones((2, 1, 2, 1, 1), "float32"),
        """\
tensor([[[[[1.]],

          [[1.]]]],



        [[[[1.]],

          [[1.]]]]])""",
    ),
    case(
        "several dimensions: column",
        np.arange(3, dtype="float32").reshape(3, 1),
        """\
tensor([[0.],
        [1.],
        [2.]])""",
    ),
    case(
        "several dimensions: transposed",
        np.arange(6).reshape(2, 3).T,
        """\
tensor([[0, 3],
        [1, 4],
        [2, 5]])""",
    ),
    case("several dimensions: reversed", np.arange(5)[::-1], "tensor([4, 3, 2, 1, 0])"),
    case(
        "several dimensions: 3-d double",
        np.linspace(0, 1, 8).reshape(2, 2, 2),
        """\
tensor([[[0.0000, 0.1429],
         [0.2857, 0.4286]],

        [[0.5714, 0.7143],
         [0.8571, 1.0000]]], dtype=torch.float64)""",
    ),
    # wrapping
    case(
        "wrapping: row",
        np.arange(30),
        """\
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])""",
    ),
    case(
        "wrapping: row of fractions",
        np.arange(12, dtype="float32") / 8,
        """\
tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
        1.1250, 1.2500, 1.3750])""",
    ),
    case(
        "wrapping: rows",
        np.arange(50, dtype="float32").reshape(2, 25) / 16,
        """\
tensor([[0.0000, 0.0625, 0.1250, 0.1875, 0.2500, 0.3125, 0.3750, 0.4375, 0.5000,
         0.5625, 0.6250, 0.6875, 0.7500, 0.8125, 0.8750, 0.9375, 1.0000, 1.0625,
         1.1250, 1.1875, 1.2500, 1.3125, 1.3750, 1.4375, 1.5000],
        [1.5625, 1.6250, 1.6875, 1.7500, 1.8125, 1.8750, 1.9375, 2.0000, 2.0625,
         2.1250, 2.1875, 2.2500, 2.3125, 2.3750, 2.4375, 2.5000, 2.5625, 2.6250,
         2.6875, 2.7500, 2.8125, 2.8750, 2.9375, 3.0000, 3.0625]])""",
    ),
    case(
        "wrapping: 3-d rows",
        np.arange(60).reshape(2, 1, 30) * 1000,
        """\
tensor([[[    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,  9000,
          10000, 11000, 12000, 13000, 14000, 15000, 16000, 17000, 18000, 19000,
          20000, 21000, 22000, 23000, 24000, 25000, 26000, 27000, 28000, 29000]],

        [[30000, 31000, 32000, 33000, 34000, 35000, 36000, 37000, 38000, 39000,
          40000, 41000, 42000, 43000, 44000, 45000, 46000, 47000, 48000, 49000,
          50000, 51000, 52000, 53000, 54000, 55000, 56000, 57000, 58000, 59000]]])""",
    ),
    case(
        "wrapping: narrow line",
        np.arange(6, dtype="float32"),
        """\
tensor([0., 1., 2.,
        3., 4., 5.])""",
        options={"linewidth": 20},
    ),
    case(
        "wrapping: line too narrow",
        np.arange(3) * 1000,
        """\
tensor([   0,
        1000,
        2000])""",
        options={"linewidth": 5},
    ),
    case(
        "wrapping: wide line",
        np.arange(26),
        """\
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25])""",
        options={"linewidth": 110},
    ),
    case(
        "wrapping: just fits",
        np.arange(18, dtype="float32") % 10,
        "tensor([0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 0., 1., 2., 3., 4., 5., 6., 7.])",
    ),
    case(
        "wrapping: one too many",
        np.arange(19, dtype="float32") % 10,
        """\
tensor([0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 0., 1., 2., 3., 4., 5., 6., 7.,
        8.])""",
    ),
    case(
        "wrapping: scientific rows",
        10.0 ** np.arange(-8, 8),
        """\
tensor([1.0000e-08, 1.0000e-07, 1.0000e-06, 1.0000e-05, 1.0000e-04, 1.0000e-03,
        1.0000e-02, 1.0000e-01, 1.0000e+00, 1.0000e+01, 1.0000e+02, 1.0000e+03,
        1.0000e+04, 1.0000e+05, 1.0000e+06, 1.0000e+07], dtype=torch.float64)""",
    ),
    # summarised
    case("summarised: 1-d", np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    case(
        "summarised: at the threshold",
        np.arange(20).reshape(4, 5),
        """\
tensor([[ 0,  1,  2,  3,  4],
        [ 5,  6,  7,  8,  9],
        [10, 11, 12, 13, 14],
        [15, 16, 17, 18, 19]])""",
        options={"threshold": 20},
    ),
    case(
        "summarised: above the threshold",
        np.arange(21),
        "tensor([ 0,  1,  2,  ..., 18, 19, 20])",
        options={"threshold": 20},
    ),
    case(
        "summarised: 2-d",
        np.arange(1e6, dtype="float32").reshape(1000, 1000),
        """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9700e+02, 9.9800e+02,
         9.9900e+02],
        [1.0000e+03, 1.0010e+03, 1.0020e+03,  ..., 1.9970e+03, 1.9980e+03,
         1.9990e+03],
        [2.0000e+03, 2.0010e+03, 2.0020e+03,  ..., 2.9970e+03, 2.9980e+03,
         2.9990e+03],
        ...,
        [9.9700e+05, 9.9700e+05, 9.9700e+05,  ..., 9.9800e+05, 9.9800e+05,
         9.9800e+05],
        [9.9800e+05, 9.9800e+05, 9.9800e+05,  ..., 9.9900e+05, 9.9900e+05,
         9.9900e+05],
        [9.9900e+05, 9.9900e+05, 9.9900e+05,  ..., 1.0000e+06, 1.0000e+06,
         1.0000e+06]])""",
    ),
    case(
        "summarised: 2-d of fractions",
        np.arange(1e4, dtype="float32").reshape(100, 100) / 128,
        """\
tensor([[0.0000e+00, 7.8125e-03, 1.5625e-02,  ..., 7.5781e-01, 7.6562e-01,
         7.7344e-01],
        [7.8125e-01, 7.8906e-01, 7.9688e-01,  ..., 1.5391e+00, 1.5469e+00,
         1.5547e+00],
        [1.5625e+00, 1.5703e+00, 1.5781e+00,  ..., 2.3203e+00, 2.3281e+00,
         2.3359e+00],
        ...,
        [7.5781e+01, 7.5789e+01, 7.5797e+01,  ..., 7.6539e+01, 7.6547e+01,
         7.6555e+01],
        [7.6562e+01, 7.6570e+01, 7.6578e+01,  ..., 7.7320e+01, 7.7328e+01,
         7.7336e+01],
        [7.7344e+01, 7.7352e+01, 7.7359e+01,  ..., 7.8102e+01, 7.8109e+01,
         7.8117e+01]])""",
    ),
    case(
        "summarised: few rows",
        np.arange(2000.0).reshape(2, 1000),
        """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9700e+02, 9.9800e+02,
         9.9900e+02],
        [1.0000e+03, 1.0010e+03, 1.0020e+03,  ..., 1.9970e+03, 1.9980e+03,
         1.9990e+03]], dtype=torch.float64)""",
    ),
    case(
        "summarised: few columns",
        np.arange(2000).reshape(1000, 2),
        """\
tensor([[   0,    1],
        [   2,    3],
        [   4,    5],
        ...,
        [1994, 1995],
        [1996, 1997],
        [1998, 1999]])""",
    ),
    case(
        "summarised: 3-d",
        np.arange(8000).reshape(20, 20, 20),
        """\
tensor([[[   0,    1,    2,  ...,   17,   18,   19],
         [  20,   21,   22,  ...,   37,   38,   39],
         [  40,   41,   42,  ...,   57,   58,   59],
         ...,
         [ 340,  341,  342,  ...,  357,  358,  359],
         [ 360,  361,  362,  ...,  377,  378,  379],
         [ 380,  381,  382,  ...,  397,  398,  399]],

        [[ 400,  401,  402,  ...,  417,  418,  419],
         [ 420,  421,  422,  ...,  437,  438,  439],
         [ 440,  441,  442,  ...,  457,  458,  459],
         ...,
         [ 740,  741,  742,  ...,  757,  758,  759],
         [ 760,  761,  762,  ...,  777,  778,  779],
         [ 780,  781,  782,  ...,  797,  798,  799]],

        [[ 800,  801,  802,  ...,  817,  818,  819],
         [ 820,  821,  822,  ...,  837,  838,  839],
         [ 840,  841,  842,  ...,  857,  858,  859],
         ...,
         [1140, 1141, 1142,  ..., 1157, 1158, 1159],
         [1160, 1161, 1162,  ..., 1177, 1178, 1179],
         [1180, 1181, 1182,  ..., 1197, 1198, 1199]],

        ...,

        [[6800, 6801, 6802,  ..., 6817, 6818, 6819],
         [6820, 6821, 6822,  ..., 6837, 6838, 6839],
         [6840, 6841, 6842,  ..., 6857, 6858, 6859],
         ...,
         [7140, 7141, 7142,  ..., 7157, 7158, 7159],
         [7160, 7161, 7162,  ..., 7177, 7178, 7179],
         [7180, 7181, 7182,  ..., 7197, 7198, 7199]],

        [[7200, 7201, 7202,  ..., 7217, 7218, 7219],
         [7220, 7221, 7222,  ..., 7237, 7238, 7239],
         [7240, 7241, 7242,  ..., 7257, 7258, 7259],
         ...,
         [7540, 7541, 7542,  ..., 7557, 7558, 7559],
         [7560, 7561, 7562,  ..., 7577, 7578, 7579],
         [7580, 7581, 7582,  ..., 7597, 7598, 7599]],

        [[7600, 7601, 7602,  ..., 7617, 7618, 7619],
         [7620, 7621, 7622,  ..., 7637, 7638, 7639],
         [7640, 7641, 7642,  ..., 7657, 7658, 7659],
         ...,
         [7940, 7941, 7942,  ..., 7957, 7958, 7959],
         [7960, 7961, 7962,  ..., 7977, 7978, 7979],
         [7980, 7981, 7982,  ..., 7997, 7998, 7999]]])""",
    ),
    case(
        "summarised: 3-d, middle shown",
        np.arange(4000).reshape(20, 4, 50),
        """\
tensor([[[   0,    1,    2,  ...,   47,   48,   49],
         [  50,   51,   52,  ...,   97,   98,   99],
         [ 100,  101,  102,  ...,  147,  148,  149],
         [ 150,  151,  152,  ...,  197,  198,  199]],

        [[ 200,  201,  202,  ...,  247,  248,  249],
         [ 250,  251,  252,  ...,  297,  298,  299],
         [ 300,  301,  302,  ...,  347,  348,  349],
         [ 350,  351,  352,  ...,  397,  398,  399]],

        [[ 400,  401,  402,  ...,  447,  448,  449],
         [ 450,  451,  452,  ...,  497,  498,  499],
         [ 500,  501,  502,  ...,  547,  548,  549],
         [ 550,  551,  552,  ...,  597,  598,  599]],

        ...,

        [[3400, 3401, 3402,  ..., 3447, 3448, 3449],
         [3450, 3451, 3452,  ..., 3497, 3498, 3499],
         [3500, 3501, 3502,  ..., 3547, 3548, 3549],
         [3550, 3551, 3552,  ..., 3597, 3598, 3599]],

        [[3600, 3601, 3602,  ..., 3647, 3648, 3649],
         [3650, 3651, 3652,  ..., 3697, 3698, 3699],
         [3700, 3701, 3702,  ..., 3747, 3748, 3749],
         [3750, 3751, 3752,  ..., 3797, 3798, 3799]],

        [[3800, 3801, 3802,  ..., 3847, 3848, 3849],
         [3850, 3851, 3852,  ..., 3897, 3898, 3899],
         [3900, 3901, 3902,  ..., 3947, 3948, 3949],
         [3950, 3951, 3952,  ..., 3997, 3998, 3999]]])""",
    ),
    case(
        "summarised: six are not cut",
        np.arange(6 * 200).reshape(6, 200),
        """\
tensor([[   0,    1,    2,  ...,  197,  198,  199],
        [ 200,  201,  202,  ...,  397,  398,  399],
        [ 400,  401,  402,  ...,  597,  598,  599],
        [ 600,  601,  602,  ...,  797,  798,  799],
        [ 800,  801,  802,  ...,  997,  998,  999],
        [1000, 1001, 1002,  ..., 1197, 1198, 1199]])""",
    ),
    case(
        "summarised: seven are cut",
        np.arange(7 * 200).reshape(7, 200),
        """\
tensor([[   0,    1,    2,  ...,  197,  198,  199],
        [ 200,  201,  202,  ...,  397,  398,  399],
        [ 400,  401,  402,  ...,  597,  598,  599],
        ...,
        [ 800,  801,  802,  ...,  997,  998,  999],
        [1000, 1001, 1002,  ..., 1197, 1198, 1199],
        [1200, 1201, 1202,  ..., 1397, 1398, 1399]])""",
    ),
    case(
        "summarised: format from the ends",
        np.where(np.arange(2000) == 1000, 1e-9, 1.0).astype("float32"),
        "tensor([1., 1., 1.,  ..., 1., 1., 1.])",
    ),
    case("summarised: bool", np.arange(2000) % 2 == 0, "tensor([ True, False,  True,  ..., False,  True, False])"),
    case(
        "summarised: complex",
        (np.arange(2000) * (1 - 0.5j)).astype("complex64"),
        """\
tensor([0.0000e+00+0.0000e+00j, 1.0000e+00-5.0000e-01j, 2.0000e+00-1.0000e+00j,
         ..., 1.9970e+03-9.9850e+02j, 1.9980e+03-9.9900e+02j,
        1.9990e+03-9.9950e+02j])""",
    ),
    case(
        "summarised: nan at an end",
        np.where(np.arange(2000) == 0, np.nan, 0.5).astype("float32"),
        "tensor([   nan, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000])",
    ),
    case("summarised: edgeitems 1", np.arange(2000), "tensor([   0,  ..., 1999])", options={"edgeitems": 1}),
    case("summarised: edgeitems 0", np.arange(2000), "tensor([...], size=(2000,))", options={"edgeitems": 0}),
    case(
        "summarised: edgeitems 0, short",
        np.arange(2, dtype="float32"),
        "tensor([0., 1.], size=(2,))",
        options={"edgeitems": 0},
    ),
    case("summarised: edgeitems 0, 0-d", np.array(1.0, "float32"), "tensor(1., size=())", options={"edgeitems": 0}),
    case(
        "summarised: edgeitems 5",
        np.arange(3000).reshape(3, 1000),
        """\
tensor([[   0,    1,    2,    3,    4,  ...,  995,  996,  997,  998,  999],
        [1000, 1001, 1002, 1003, 1004,  ..., 1995, 1996, 1997, 1998, 1999],
        [2000, 2001, 2002, 2003, 2004,  ..., 2995, 2996, 2997, 2998, 2999]])""",
        options={"edgeitems": 5},
    ),
    case("summarised: threshold 0", np.arange(10), "tensor([0, 1, 2,  ..., 7, 8, 9])", options={"threshold": 0}),
    case(
        "summarised: wrapped",
        np.arange(2000, dtype="float32") + 0.5,
        """\
tensor([5.0000e-01, 1.5000e+00,
        2.5000e+00,  ...,
        1.9975e+03, 1.9985e+03,
        1.9995e+03])""",
        options={"linewidth": 40},
    ),
    case(
        "summarised: half with dtype",
        np.ones((40, 40), "float16"),
        """\
tensor([[1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        ...,
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.]], dtype=torch.float16)""",
    ),
    case(
        "summarised: 4-d",
        np.ones((10, 1, 10, 20), "float32"),
        """\
tensor([[[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]],


        [[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]],


        [[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]],


        ...,


        [[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]],


        [[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]],


        [[[1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          ...,
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.],
          [1., 1., 1.,  ..., 1., 1., 1.]]]])""",
    ),
    # precision and profiles
    case(
        "precision and profiles: precision 2",
        np.array([1 / 3, 100.0], "float32"),
        "tensor([  0.33, 100.00])",
        options={"precision": 2},
    ),
    case(
        "precision and profiles: precision 0",
        np.array([1.5, 2.5], "float32"),
        "tensor([2, 2])",
        options={"precision": 0},
    ),
    case(
        "precision and profiles: precision 8",
        np.array([0.1, 0.2], "float32"),
        "tensor([0.10000000, 0.20000000])",
        options={"precision": 8},
    ),
    case(
        "precision and profiles: precision 10, double",
        np.array([1 / 3], "float64"),
        "tensor([0.3333333333], dtype=torch.float64)",
        options={"precision": 10},
    ),
    case(
        "precision and profiles: precision, integral",
        np.array([1.0, 2.0], "float32"),
        "tensor([1., 2.])",
        options={"precision": 2},
    ),
    case(
        "precision and profiles: precision, scientific",
        np.array([1e-9, 1.0], "float32"),
        "tensor([1.00e-09, 1.00e+00])",
        options={"precision": 2},
    ),
    case(
        "precision and profiles: short",
        np.arange(2000, dtype="float32") / 3,
        "tensor([0.00e+00, 3.33e-01,  ..., 6.66e+02, 6.66e+02])",
        options={"profile": "short"},
    ),
    case(
        "precision and profiles: profile, then precision",
        np.array([1 / 3], "float32"),
        "tensor([0.333333])",
        options={"profile": "short", "precision": 6},
    ),
    case(
        "precision and profiles: unknown profile",
        np.array([1 / 3], "float32"),
        "tensor([0.3333])",
        options={"profile": "nonsense"},
    ),
    # suffixes
    case(
        "suffixes: requires_grad",
        np.array([1.0, 2.0], "float32"),
        "tensor([1., 2.], requires_grad=True)",
        suffixes=["requires_grad=True"],
    ),
    case(
        "suffixes: grad_fn",
        np.array([1.0, 2.5], "float32"),
        "tensor([1.0000, 2.5000], grad_fn=<CloneBackward0>)",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: 0-d grad_fn",
        np.array(6.0, "float32"),
        "tensor(6., grad_fn=<MulBackward0>)",
        suffixes=["grad_fn=<MulBackward0>"],
    ),
    case(
        "suffixes: 0-d double grad_fn",
        np.array(6.0, "float64"),
        "tensor(6., dtype=torch.float64, grad_fn=<CloneBackward0>)",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: dtype and grad_fn",
        np.array([0.1, 0.2, 0.3], "float64"),
        "tensor([0.1000, 0.2000, 0.3000], dtype=torch.float64, grad_fn=<AddBackward0>)",
        suffixes=["grad_fn=<AddBackward0>"],
    ),
    case(
        "suffixes: moves to a new line",
        np.arange(9, dtype="float32") / 4,
        """\
tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000],
       grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: moves after dtype",
        np.arange(7, dtype="float64") / 4,
        """\
tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000],
       dtype=torch.float64, grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: both move",
        np.arange(9, dtype="float64") / 4,
        """\
tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000],
       dtype=torch.float64, grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: 2-d",
        np.arange(4, dtype="float32").reshape(2, 2).T,
        """\
tensor([[0., 2.],
        [1., 3.]], grad_fn=<TransposeBackward0>)""",
        suffixes=["grad_fn=<TransposeBackward0>"],
    ),
    case(
        "suffixes: 2-d moves",
        np.arange(18, dtype="float64").reshape(2, 9),
        """\
tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.],
        [ 9., 10., 11., 12., 13., 14., 15., 16., 17.]], dtype=torch.float64,
       grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: 3-d",
        np.arange(8, dtype="float32").reshape(2, 2, 2),
        """\
tensor([[[0., 1.],
         [2., 3.]],

        [[4., 5.],
         [6., 7.]]], grad_fn=<SqueezeBackward1>)""",
        suffixes=["grad_fn=<SqueezeBackward1>"],
    ),
    case(
        "suffixes: summarised",
        np.ones((50, 50), "float32"),
        """\
tensor([[1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        ...,
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.],
        [1., 1., 1.,  ..., 1., 1., 1.]], grad_fn=<ExpandBackward0>)""",
        suffixes=["grad_fn=<ExpandBackward0>"],
    ),
    case(
        "suffixes: wrapped row",
        np.arange(20, dtype="float32"),
        """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19.], grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: empty",
        np.array([], "float32"),
        "tensor([], grad_fn=<CloneBackward0>)",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: complex",
        np.array([1 + 1j], "complex128"),
        "tensor([1.+1.j], dtype=torch.complex128, grad_fn=<CloneBackward0>)",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
    case(
        "suffixes: narrow line",
        np.array([1.0], "float64"),
        """\
tensor([1.],
       dtype=torch.float64,
       grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
        options={"linewidth": 24},
    ),
    case(
        "suffixes: row ends at 38",
        np.full(6, 10.5, "float32"),
        """\
tensor([10.5000, 10.5000, 10.5000, 10.5000, 10.5000, 10.5000],
       grad_fn=<CloneBackward0>)""",
        suffixes=["grad_fn=<CloneBackward0>"],
    ),
]


@pytest.mark.parametrize(("array", "expected", "suffixes", "default", "options"), CASES)
def test_repr(
    array: np.ndarray[Any, Any], expected: str, suffixes: list[str], default: str, options: dict[str, Any]
) -> None:
    with printing.printoptions(**options):
        assert printing.tensor_repr(array, suffixes=suffixes, default_dtype=default) == expected


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
    # 8 TB, were they all formatted or copied
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
    """An array of a random shape, dtype and magnitude, with some nan, inf and zeros."""
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
