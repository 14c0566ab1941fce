"""Format tensors as PyTorch does, from NumPy arrays.

``repr`` of a ``Tensor`` or an ``Array`` calls ``tensor_repr`` or ``array_repr``.

Printing takes three steps. ``_crop_to_edges`` crops a large array to the elements that are shown.
``_text_cells`` converts those to strings, with one number format for all of them (a complex array
has one for its real and one for its imaginary parts). ``_layout`` puts the strings in brackets,
wrapped at the line width. ``tensor_repr`` appends the suffixes: dtype, grad_fn, size.

The width of a column depends on finite nonzero numbers only, so ``inf`` next to ``1.`` sticks out
by a character. PyTorch does the same, and programs compare printed output with PyTorch's.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays import dtypes
from chainrule._src.arrays.dtypes import as_dtype, to_complex, torch_name
from chainrule._src.arrays.types import NumpyArray

# Options


_DEFAULT: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {
    "default": _DEFAULT,
    "short": {**_DEFAULT, "precision": 2, "edgeitems": 2},
    "full": {**_DEFAULT, "threshold": math.inf},
}

_options = SimpleNamespace(**_DEFAULT)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; omitted options stay unchanged, except ``sci_mode``.

    As in PyTorch, every call sets ``sci_mode``: by default, the printer chooses.
    An unknown profile is ignored, also as in PyTorch.

    Args:
        precision: digits after the point; 4 at first.
        threshold: number of elements above which an array is summarised; 1000 at first.
        edgeitems: elements shown at each end of a summarised dimension; 3 at first.
        linewidth: characters in a line; 80 at first.
        profile: ``"default"``, ``"short"`` (precision and edgeitems 2) or ``"full"`` (never
            summarise), applied before the other arguments.
        sci_mode: True or False to force or forbid scientific notation.

    Example:
        >>> import chainrule as cr
        >>> cr.set_printoptions(precision=2)
        >>> cr.tensor([1 / 3])
        tensor([0.33])
        >>> cr.set_printoptions(profile="default")
    """
    if profile in _PROFILES:
        vars(_options).update(_PROFILES[profile])
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(_options).update({name: value for name, value in options.items() if value is not None})
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current options, as keyword arguments for ``set_printoptions``.

    Example:
        >>> get_printoptions()["precision"]
        4
    """
    return dict(vars(_options))


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options within a ``with`` block.

    Args:
        **options: as for ``set_printoptions``.

    Example:
        >>> import chainrule as cr
        >>> with cr.printoptions(precision=1):
        ...     print(cr.tensor([1 / 3]))
        tensor([0.3])
        >>> cr.tensor([1 / 3])
        tensor([0.3333])
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# Numbers


class _Cells(NamedTuple):
    """The shown elements as text, in C order, and the width of the widest, which sets the column width."""

    texts: list[str]
    width: int


def _text_cells(array: NumpyArray) -> _Cells:
    kind = array.dtype.kind
    if kind == "c":
        return _complex_cells(array)
    if kind == "f":
        return _float_cells(array)
    texts = [str(value) for value in array.ravel().tolist()]
    return _pad(texts, max(map(len, texts), default=1))


def _float_cells(array: NumpyArray) -> _Cells:
    flat = array.ravel()
    counted = np.isfinite(flat) & (flat != 0)
    values = flat[counted]
    scientific = values.size > 0 and _needs_scientific(values)
    if scientific or (values != np.ceil(values)).any():
        template = f"%.{_options.precision}{'e' if scientific else 'f'}"
        texts = [template % value for value in flat.tolist()]
    else:
        texts = [f"{value:.0f}." if math.isfinite(value) else str(value) for value in flat.tolist()]
    widths = (len(t) for t, c in zip(texts, counted.tolist(), strict=True) if c)
    return _pad(texts, max(widths, default=1))


def _needs_scientific(values: NumpyArray) -> bool:
    """Decide between fixed and scientific notation for finite numbers other than zero."""
    if _options.sci_mode is not None:
        return bool(_options.sci_mode)
    magnitudes = np.abs(values)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4


def _complex_cells(array: NumpyArray) -> _Cells:
    real, imag = _float_cells(array.real), _float_cells(array.imag)
    texts = []
    for a, b in zip(real.texts, imag.texts, strict=True):
        b = b.lstrip()
        texts.append(f"{a}{b}j" if b[0] == "-" else f"{a}+{b}j")
    return _Cells(texts, real.width + imag.width + 1)


def _pad(texts: list[str], width: int) -> _Cells:
    return _Cells([text.rjust(width) for text in texts], width)


# Layout


def _crop_to_edges(array: NumpyArray, edgeitems: int) -> tuple[NumpyArray, list[bool]]:
    """Crop every dimension to its two ends. Return the array, and for each dimension whether it was cropped."""
    cut = [size > 2 * edgeitems for size in array.shape]
    ends = np.r_[0:edgeitems, -edgeitems:0]
    picks = [ends if c else np.arange(n) for n, c in zip(array.shape, cut, strict=True)]
    return array[np.ix_(*picks)], cut


def _layout(texts: list[str], shape: tuple[int, ...], cut: list[bool], indent: int, fit: int) -> str:
    """Put the cells of an array of this shape in brackets, from column ``indent`` on.

    ``fit`` is the width of one element with its comma and space.
    """
    dim = len(shape)
    if dim == 0:
        return texts[0]
    if dim == 1:
        half = shape[0] // 2
        row = [*texts[:half], " ...", *texts[half:]] if cut[0] else texts
        per_line = max(1, math.floor((_options.linewidth - indent) / fit))
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    step = len(texts) // shape[0]
    parts = [_layout(texts[i * step : (i + 1) * step], shape[1:], cut[1:], indent + 1, fit) for i in range(shape[0])]
    if cut[0]:
        parts.insert(shape[0] // 2, "...")
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(parts) + "]"


def tensor_str(array: NumpyArray, indent: int = 0) -> str:
    """Return the numbers of an array in brackets, without ``tensor(`` and suffixes.

    Args:
        array: an array of any shape.
        indent: the column the text starts at; later lines are indented to match.

    Example:
        >>> print(tensor_str(np.array([[1, 20], [300, 4]])))
        [[  1,  20],
         [300,   4]]
    """
    if array.size == 0:
        return "[]"
    cut = [False] * array.ndim
    if array.size > _options.threshold and array.ndim > 0:
        if _options.edgeitems <= 0:
            return "[...]"
        array, cut = _crop_to_edges(array, _options.edgeitems)
    cells = _text_cells(array)
    return _layout(cells.texts, array.shape, cut, indent, cells.width + 2)


def join_suffixes(text: str, suffixes: Iterable[str], indent: int) -> str:
    """Append ``, suffix`` for each suffix and close the bracket, wrapping at the line width.

    Args:
        text: the text before the suffixes, such as ``tensor([1., 2.]``.
        suffixes: texts such as ``dtype=torch.float64``.
        indent: the column at which a wrapped line starts.

    Example:
        >>> join_suffixes("tensor([1.]", ["dtype=torch.float64", "requires_grad=True"], 7)
        'tensor([1.], dtype=torch.float64, requires_grad=True)'
    """
    # Two columns are reserved for the comma before and the bracket after a suffix.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def tensor_repr(
    array: NumpyArray,
    *,
    suffixes: Iterable[str] = (),
    indent: int = 0,
    default_dtype: object = None,
    prefix: str = "tensor(",
    device: str = "",
) -> str:
    """Return the text PyTorch would print for a tensor holding this array.

    Args:
        array: an array of any shape and of any dtype PyTorch has.
        suffixes: texts after size and dtype, such as ``grad_fn=<ExpBackward0>`` or
            ``requires_grad=True``.
        indent: the column of the text; its lines after the first are indented to it.
        default_dtype: the floating dtype that is not printed; by default the one that
            ``get_default_dtype`` returns.
        prefix: the class name and opening bracket.
        device: the tensor's device, if it is to be printed.

    Example:
        >>> print(tensor_repr(np.array([1.0, 2.5]), suffixes=["grad_fn=<ExpBackward0>"]))
        tensor([1.0000, 2.5000], dtype=torch.float64, grad_fn=<ExpBackward0>)
    """
    array = np.asarray(array)
    default = dtypes.default_dtype() if default_dtype is None else as_dtype(default_dtype)
    described = [f"device='{device}'"] if device else []
    if array.size == 0:
        # An empty tensor has no elements to distinguish integers from floats, so only the default dtype is not printed.
        show_size, implied = array.ndim != 1, array.dtype == default
    else:
        show_size = not _options.edgeitems
        implied = array.dtype.kind == "b" or array.dtype in (default, to_complex(default), np.dtype(np.int64))
    if show_size:
        described.append(f"size={array.shape}")
    if not implied:
        described.append(f"dtype={torch_name(array.dtype)}")
    indent += len(prefix)
    text = prefix + tensor_str(array, indent)
    return join_suffixes(text, [*described, *suffixes], indent)


def array_repr(array: NumpyArray, suffixes: Iterable[str]) -> str:
    """Return NumPy's text for an array, followed by suffixes.

    Example:
        >>> print(array_repr(np.array([1.0, 2.5]), ["requires_grad=True"]))
        array([1. , 2.5], requires_grad=True)
    """
    return ", ".join([np.array_repr(array)[:-1], *suffixes]) + ")"


def format_tensor(array: NumpyArray, spec: str) -> str:
    """Format an array for ``format()`` and f-strings: a 0-d array as a number.

    Args:
        array: an array; only a 0-d array accepts a format.
        spec: the text after the colon.

    Raises:
        TypeError: if ``spec`` is given for an array with dimensions.

    Example:
        >>> format_tensor(np.array(2 / 3), ".2f")
        '0.67'
        >>> format_tensor(np.array([1, 2]), "")
        'tensor([1, 2])'
    """
    array = np.asarray(array)
    if array.ndim == 0:
        return format(array.item(), spec)
    if spec:
        raise TypeError(
            f"unsupported format string passed to Tensor.__format__: '{spec}' formats one number, and this tensor has "
            f"shape {array.shape}; format its elements, or set torch.set_printoptions(precision=...)"
        )
    return tensor_repr(array)
