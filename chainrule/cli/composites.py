"""Operations without a row of their own: what they are made of, found by running them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.watch import Watch

_TENSORS = ("rand(2, 3)", "rand(3, 3)", "rand(3)", "rand(2, 3, 4)", "rand(2, 3, 3)")

#: What to call a function with, by the names of its parameters; others are tensors.
_PARAMETERS = {
    "dim": "0",
    "exponent": "2.0",
    "index": "tensor([0, 1])",
    "k": "2",
    "mask": "tensor([[True, False, True], [False, True, False]])",
    "max": "0.5",
    "min": "0.5",
    "n": "3",
    "normalized_shape": "3",
    "q": "0.5",
    "repeats": "2",
    "sizes": "3, 2",
    "value": "1.0",
}

#: What to call a function with where its parameters' names do not tell (of two functions of one name, either).
_SAMPLES = {
    "adaptive_avg_pool1d": "rand(1, 2, 6), 2",
    "adaptive_avg_pool2d": "rand(1, 2, 4, 4), 2",
    "adaptive_avg_pool3d": "rand(1, 1, 4, 4, 4), 2",
    "adaptive_max_pool1d": "rand(1, 2, 6), 2",
    "adaptive_max_pool2d": "rand(1, 2, 4, 4), 2",
    "adaptive_max_pool3d": "rand(1, 1, 4, 4, 4), 2",
    "addbmm": "rand(2, 4), rand(5, 2, 3), rand(5, 3, 4)",
    "addmm": "rand(2, 4), rand(2, 3), rand(3, 4)",
    "addmv": "rand(2), rand(2, 3), rand(3)",
    "addr": "rand(2, 3), rand(2), rand(3)",
    "affine_grid": "rand(1, 2, 3), (1, 1, 2, 3)",
    "alias_copy": "rand(2, 3)",
    "as_strided_copy": "rand(4, 4), (2, 2), (4, 1)",
    "as_strided_scatter": "rand(4, 4), rand(2, 2), (2, 2), (4, 1)",
    "avg_pool1d": "rand(1, 2, 6), 2",
    "avg_pool2d": "rand(1, 2, 4, 4), 2",
    "avg_pool3d": "rand(1, 1, 4, 4, 4), 2",
    "baddbmm": "rand(5, 2, 4), rand(5, 2, 3), rand(5, 3, 4)",
    "batch_norm": "rand(2, 3), zeros(3), ones(3), training=True",
    "bilinear": "rand(2, 3), rand(2, 4), rand(5, 3, 4)",
    "bincount": "tensor([0, 2, 2])",
    "broadcast_shapes": "(2, 1), (3,)",
    "broadcast_tensors": "rand(2, 1), rand(3)",
    "broadcast_to": "rand(3), (2, 3)",
    "bucketize": "rand(2, 3), tensor([0.2, 0.8])",
    "cartesian_prod": "rand(2), rand(3)",
    "chain_matmul": "rand(2, 3), rand(3, 4), rand(4, 5)",
    "channel_shuffle": "rand(1, 4, 2), 2",
    "cholesky_solve": "rand(3, 2), eye(3)",
    "chunk": "rand(4, 3), 2",
    "constant_pad_nd": "rand(2, 3), (1, 1)",
    "conv1d": "rand(1, 2, 5), rand(3, 2, 3)",
    "conv2d": "rand(1, 2, 4, 5), rand(3, 2, 2, 3)",
    "conv3d": "rand(1, 1, 3, 3, 3), rand(2, 1, 2, 2, 2)",
    "conv_transpose1d": "rand(1, 2, 5), rand(2, 3, 3)",
    "conv_transpose2d": "rand(1, 2, 2, 3), rand(2, 3, 2, 2)",
    "conv_transpose3d": "rand(1, 1, 2, 2, 2), rand(1, 2, 2, 2, 2)",
    "cosine_embedding_loss": "rand(2, 3), rand(2, 3), tensor([1, -1])",
    "detach_copy": "rand(2, 3)",
    "diagonal_copy": "rand(3, 3)",
    "diagonal_scatter": "rand(3, 3), rand(3)",
    "dsplit": "rand(2, 3, 4), 2",
    "einsum": "'ij,jk->ik', rand(2, 3), rand(3, 4)",
    "embedding": "tensor([0, 2]), rand(3, 4)",
    "embedding_bag": "tensor([[0, 2], [1, 1]]), rand(3, 4)",
    "expand_copy": "rand(2, 1), (2, 3)",
    "fold": "rand(1, 8, 4), 3, 2",
    "glu": "rand(2, 4)",
    "grid_sample": "rand(1, 2, 3, 4), rand(1, 2, 2, 2)",
    "group_norm": "rand(2, 4, 3), 2",
    "householder_product": "rand(4, 2), rand(2)",
    "histogramdd": "rand(4, 2), [2, 3]",
    "hsplit": "rand(2, 4), 2",
    "index_add": "rand(2, 3), 0, tensor([0, 1]), rand(2, 3)",
    "index_copy": "rand(2, 3), 0, tensor([0, 1]), rand(2, 3)",
    "index_reduce": "rand(2, 3), 0, tensor([0, 1]), rand(2, 3), 'prod'",
    "instance_norm": "rand(2, 3, 4)",
    "interpolate": "rand(1, 2, 4), 6, mode='linear'",
    "local_response_norm": "rand(1, 4, 2), 3",
    "lp_pool1d": "rand(1, 2, 6), 2, 3",
    "lp_pool2d": "rand(1, 4, 4), 2, 2",
    "lp_pool3d": "rand(1, 1, 2, 4, 4), 2, 2",
    "lu_solve": "rand(3, 3), tensor([1, 2, 3]).int(), rand(3, 2)|rand(3, 2), rand(3, 3), tensor([1, 2, 3]).int()",
    "lu_unpack": "rand(3, 3), tensor([1, 2, 3]).int()",
    "matmul": "rand(5, 2, 3), rand(3, 4)",
    "max_pool1d": "rand(1, 2, 6), 2",
    "max_pool2d": "rand(1, 2, 4, 4), 2",
    "max_pool3d": "rand(1, 1, 4, 4, 4), 2",
    "max_unpool1d": "rand(1, 2, 3), zeros(1, 2, 3).long(), 2",
    "max_unpool2d": "rand(1, 2, 2, 2), zeros(1, 2, 2, 2).long(), 2",
    "max_unpool3d": "rand(1, 1, 2, 2, 2), zeros(1, 1, 2, 2, 2).long(), 2",
    "meshgrid": "rand(2), rand(3), indexing='ij'",
    "moveaxis": "rand(2, 3, 4), 0, 2",
    "movedim": "rand(2, 3, 4), 0, 2",
    "multi_dot": "[rand(2, 3), rand(3, 4), rand(4, 5)]",
    "multi_margin_loss": "rand(2, 3), tensor([0, 2])",
    "multigammaln": "rand(3) + 2, 2",
    "multilabel_margin_loss": "rand(1, 3), tensor([[2, 0, -1]])",
    "mvlgamma": "rand(3) + 2, 2",
    "narrow": "rand(4, 3), 0, 1, 2",
    "narrow_copy": "rand(4, 3), 0, 1, 2",
    "nonzero_static": "rand(2, 3), size=6",
    "one_hot": "tensor([0, 2])",
    "orgqr": "rand(4, 2), rand(2)",
    "permute_copy": "rand(2, 3), (1, 0)",
    "pixel_shuffle": "rand(1, 4, 2, 3), 2",
    "pixel_unshuffle": "rand(1, 2, 4, 6), 2",
    "prelu": "rand(2, 3), rand(3)",
    "put": "rand(2, 3), tensor([0, 4]), rand(2)",
    "renorm": "rand(2, 3), 2, 0, 1.0",
    "scaled_dot_product_attention": "rand(2, 4, 3), rand(2, 5, 3), rand(2, 5, 3)",
    "scatter_reduce": "rand(2, 3), 0, tensor([[0, 1, 0]]), rand(1, 3), 'sum'",
    "searchsorted": "tensor([0.2, 0.8]), rand(2, 3)",
    "select": "rand(2, 3), 0, 1",
    "select_copy": "rand(2, 3), 0, 1",
    "select_scatter": "rand(2, 3), rand(3), 0, 1",
    "slice_copy": "rand(4, 3), 0, 1, 3",
    "split": "rand(4, 3), 2",
    "split_copy": "rand(4, 3), 2",
    "split_with_sizes": "rand(4, 3), [1, 3]",
    "split_with_sizes_copy": "rand(4, 3), [1, 3]",
    "squeeze_copy": "rand(2, 1)",
    "t_copy": "rand(2, 3)",
    "take_along_dim": "rand(2, 3), tensor([[0, 2]]), 1",
    "tensor_split": "rand(4, 3), 2",
    "tensordot": "rand(2, 3), rand(3, 4), 1",
    "tensorinv": "rand(2, 3, 6)",
    "tensorsolve": "rand(2, 3, 6), rand(2, 3)",
    "tile": "rand(3), (2, 2)",
    "transpose_copy": "rand(2, 3), 0, 1",
    "unbind_copy": "rand(2, 3)",
    "unflatten": "rand(2, 6), 1, (2, 3)",
    "unfold_copy": "rand(4), 0, 2, 1",
    "unravel_index": "tensor([4, 5]), (2, 3)",
    "unsafe_chunk": "rand(4, 3), 2",
    "unsafe_split": "rand(4, 3), 2",
    "unsafe_split_with_sizes": "rand(4, 3), [1, 3]",
    "unsqueeze_copy": "rand(2, 3), 0",
    "upsample": "rand(1, 2, 4), 6",
    "upsample_bilinear": "rand(1, 2, 3, 4), (4, 6)",
    "upsample_nearest": "rand(1, 2, 4), 6",
    "vander": "rand(3)",
    "view_as_complex_copy": "rand(3, 2)",
    "view_as_real_copy": "rand(2) * 1j",
    "view_copy": "rand(2, 3), (6,)",
    "vsplit": "rand(4, 3), 2",
}


class Part(NamedTuple):
    """An operation that ran: its name, the shapes of its operands, and those of what it computed."""

    name: str
    operands: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        into = ", ".join(map(_shape, self.operands))
        return f"{into} → {', '.join(map(_shape, self.outputs))}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


class _Parts(Watch):
    """Notes what runs."""

    def __init__(self) -> None:
        self.found: list[Part] = []

    def forward(self, prim: Any, datas: Any, params: dict[str, Any]) -> Any:
        out = super().forward(prim, datas, params)
        outs = out if isinstance(out, tuple) else (out,)
        shapes = [x.shape for x in _flat(datas) if hasattr(x, "shape")]
        self.found.append(Part(prim.name, tuple(shapes), tuple(np.shape(x) for x in outs)))
        return out


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def parts_of(name: str, function: Callable[..., Any]) -> tuple[str, list[Part]] | None:
    """Run an operation on a sample: the arguments as text, and what ran. None: no sample is known to fit it.

    >>> from chainrule.cli.composites import parts_of
    >>> import chainrule as cr
    >>> arguments, parts = parts_of("outer", cr.outer)
    >>> arguments, [part.name for part in parts]
    ('rand(3), rand(3)', ['unsqueeze', 'mul'])
    """
    for arguments in _candidates(name, function):
        with warnings.catch_warnings(), np.errstate(all="ignore"), _Parts() as watch:
            warnings.simplefilter("ignore")
            try:
                eval(f"function({arguments})", {"function": function, **_vocabulary()})
            except Exception:  # the sample does not fit: there may be another
                continue
        return arguments, watch.found
    return None


def _vocabulary() -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def rand(*shape: int) -> Tensor:
        return wrap(0.1 + 0.8 * rng.random(shape)).requires_grad_()

    def real(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *shape: make(*shape, dtype=chainrule.float64)

    makers = {name: real(getattr(chainrule, name)) for name in ("zeros", "ones", "eye")}
    return {"rand": rand, "tensor": chainrule.tensor, **makers}


def _candidates(name: str, function: Callable[..., Any]) -> Iterator[str]:
    if name in _SAMPLES:
        yield from _SAMPLES[name].split("|")
        return
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for tensor in _TENSORS:
        words = []
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL and p.name not in _PARAMETERS:
                words += [tensor, tensor]
            elif p.name in ("tensors", "matrices"):
                words.append(f"[{tensor}, {tensor}]")
            elif p.kind is not p.VAR_KEYWORD:
                words.append(_PARAMETERS.get(p.name, tensor))
        yield ", ".join(words)
