"""``vmap``: apply a function of one example to all examples at once. ``chainrule.func`` exports it."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import numpy as np

from chainrule._src.api.array import Array, in_api_of_argument, is_objects
from chainrule._src.arrays.any_array import is_array as is_plain
from chainrule._src.arrays.any_array import overlaps_itself
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import (
    TreeSpec,
    broadcast_prefix,
    is_container,
    tree_flatten,
    tree_leaves,
    tree_unflatten,
)
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.messages import errors
from chainrule._src.ops.random import default_generator
from chainrule._src.tape.levels import Level, open_level, restoring_levels
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import is_read_only
from chainrule._src.transforms.arguments import (
    array_id,
    as_caller_type,
    check_randomness,
    data_if_unrecorded,
    has_tensor,
    is_array,
    names_keywords,
    tensor_in,
)
from chainrule._src.transforms.pushforward import exit_level
from chainrule._src.transforms.writing import write_back

ndarray = np.ndarray
F = TypeVar("F", bound=AnyFunction)


@names_keywords
def vmap(
    func: F,
    in_dims: object = 0,
    out_dims: object = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> F:
    """Return a function that applies ``func`` to all entries along an axis of its arguments at once.

    Args:
        func: a function of one example.
        in_dims: the axis to map over, for each argument: an int, None (all examples share the argument), or a structure
            like the arguments. A single int is used for all arguments.
        out_dims: the position of the mapped axis in the outputs: a single int for all outputs, or a structure like the
            output. None for an output that is the same for all examples: it is returned unchanged.
        randomness: the behavior of random functions (``rand``, ``dropout`` ...) inside: "error" raises, "different"
            draws other numbers for each example, "same" draws the same numbers for all.
        chunk_size: the number of examples to map over at a time, to use less memory; by default all.

    Returns:
        A function of the same arguments with one more axis. All examples share the keyword arguments.

    Raises:
        ValueError: the axes don't fit the arguments or the outputs, or have different lengths.

    >>> import chainrule as cr
    >>> cr.vmap(cr.dot)(cr.ones(3, 2), cr.ones(3, 2))
    tensor([2., 2., 2.])
    >>> per_example = cr.vmap(cr.func.grad(lambda w, x: (w @ x) ** 2), in_dims=(None, 0))
    >>> per_example(cr.ones(2), cr.tensor([[1., 0.], [2., 1.]]))
    tensor([[ 2.,  0.],
            [12.,  6.]])
    """
    errors.check_function("vmap", func)
    check_randomness(randomness)
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> Any:
        if type(out_dims) is not int:
            _check_out_dims(func, out_dims)
        leaves, spec, dims, size = _flatten_arguments(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            outputs, out_spec, _ = _call_batched(func, leaves, spec, dims, size, out_dims, randomness, kwargs)
            return tree_unflatten(outputs, out_spec)
        state = default_generator._get_state() if randomness == "same" else None
        parts = []
        for begin in range(0, size, chunk_size):
            if state is not None:
                default_generator._set_state(state)
            end = min(begin + chunk_size, size)
            some = [
                x if d is None else x[(slice(None),) * d + (slice(begin, end),)]
                for x, d in zip(leaves, dims, strict=True)
            ]
            outputs, out_spec, flat = _call_batched(func, some, spec, dims, end - begin, out_dims, randomness, kwargs)
            parts.append(outputs)
        joined = [
            pieces[0] if d is None else np.concatenate(pieces, axis=d) for d, *pieces in zip(flat, *parts, strict=True)
        ]
        return tree_unflatten(joined, out_spec)

    return wrapper  # type: ignore[return-value]


@restoring_levels
def _call_batched(
    func: AnyFunction,
    leaves: list[TensorLike],
    spec: TreeSpec,
    dims: list[int | None],
    size: int,
    out_dims: object,
    randomness: str,
    kwargs: Params,
) -> tuple[list[Any], TreeSpec, list[Any]]:
    """Return the leaves of the outputs, their structure, and the position of the mapped axis in each."""
    tensors = has_tensor(leaves)
    with open_level("vmap", Batched, size=size, randomness=randomness) as level:
        inner = []
        mapped_args = []
        for x, d in zip(leaves, dims, strict=True):
            if d is not None:
                data = data_if_unrecorded(x)
                mapped = wrap(Batched(np.moveaxis(data, d, 0) if d else data, level))
                mapped_args.append((x, d, mapped, mapped._raw))
                x = in_api_of_argument(mapped, x)
            inner.append(x)
        level.unmapped = tuple([x for x, d in zip(leaves, dims, strict=True) if d is None and isinstance(x, Tensor)])
        result = func(*tree_unflatten(inner, spec), **kwargs)
        for x, d, mapped, data in mapped_args:
            if mapped._raw is not data:
                _write_back(x, d, mapped, level)
        flat, outputs, out_spec = _output_dims(func, out_dims, result)
        foreign = {array_id(x) for x in leaves}
        for i, (y, d) in enumerate(zip(outputs, flat, strict=True)):
            outputs[i] = (
                _shared_output(func, y, level, tensors, foreign)
                if d is None
                else as_caller_type(_mapped_output(func, y, d, level, tensors), tensors, foreign)
            )
        return outputs, out_spec, flat


def _write_back(x: Any, d: int, mapped: Tensor, level: Level) -> None:
    """Apply in-place modifications to the caller's tensor; see ``transforms.writing``."""

    def enter(data: Any) -> Batched:
        return Batched(np.moveaxis(data, d, 0), level)

    write_back("vmap", x, mapped, np.moveaxis(exit_level(mapped._raw, level), 0, d), enter)


def _mapped_output(func: object, y: AnyArray, dim: int, level: Level, tensors: bool) -> Any:
    """Return a result with the mapped axis at ``dim``."""
    y = y if type(y) is Tensor else tensor_in(y)
    if type(y) is not Tensor and not is_array(y):
        name = _name(func)
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    if is_objects(y):
        raise errors.array_of_objects(y, f"vmap({_name(func)}, ...): expected arrays of numbers to be returned, got")
    payload = exit_level(y, level)
    if isinstance(payload, Tensor) and payload._view is not None and (not tensors or is_read_only(payload)):
        payload = np.copy(payload)  # every example has its own memory, as in a loop
    if dim:
        ndim = len(shape_of(payload))
        if not -ndim <= dim < ndim:
            raise errors.dim_range("vmap(out_dims=)", dim, ndim)
        payload = np.moveaxis(payload, 0, dim)
    read_only = type(payload) is ndarray and not payload.flags.writeable
    if read_only or (
        is_plain(payload) and 0 in payload.strides and overlaps_itself(payload)
    ):  # a value shared by all examples is broadcast
        payload = payload.copy()
    return payload


def _shared_output(func: object, y: object, level: Level, tensors: bool, foreign: set[int]) -> Any:
    """Return a result that is the same for all examples."""
    inner = tensor_in(y)
    data = inner._raw if isinstance(inner, Tensor) else inner
    if type(data) is not Batched or data.level != level:
        return y if inner is y or type(y) is Array else as_caller_type(inner, tensors, foreign)
    if not data.shared:
        name = _name(func)
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    return as_caller_type(data.payload, tensors, foreign)


def _name(func: object) -> str:
    if hasattr(func, "__name__"):
        return str(func.__name__)
    return f"functools.partial({_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


# -- in_dims and out_dims --------------------------------------------------------------------------------------------


def _is_dim(x: int | tuple[int | None, ...] | None) -> bool:
    return x is None or not is_container(x)


def _flatten_arguments(
    func: object, in_dims: object, args: tuple[object, ...]
) -> tuple[list[Any], TreeSpec, list[Any], int]:
    """Return the leaves of the arguments, their structure, the mapped axis of each (nonnegative), and its length."""

    def refuse(why: str) -> ValueError:
        return ValueError(f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): {why}")

    if not isinstance(in_dims, (int, tuple)):
        raise refuse(
            "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = [in_dims] * len(leaves) if type(in_dims) is int else broadcast_prefix(in_dims, spec, _is_dim)
    if dims is None:
        raise refuse(
            f"in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims, _is_dim)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise refuse(f"Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
        if type(x) is not Tensor and not is_array(x):
            raise refuse(
                f"Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        shape = shape_of(x)
        n = len(shape)
        if not -n <= d < n:
            raise refuse(
                f"Got in_dim={d} for some input, but that input is a Tensor of dimensionality {n} so expected in_dim to "
                f"satisfy -{n} <= in_dim < {n}." + ("" if n else " Use None for an argument that all examples share.")
            )
        dims[i] = d % n
        sizes.append(shape[d])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over: not every in_dim can be None")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return leaves, spec, dims, sizes[0]


def _check_out_dims(func: AnyFunction, out_dims: object) -> None:
    for d in tree_leaves(out_dims):
        if not isinstance(d, int):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                "representing where in the outputs the vmapped dimension should appear."
            )


def _output_dims(func: object, out_dims: object, result: object) -> tuple[list[Any], list[Any], TreeSpec]:
    """Return the position of the mapped axis for each output leaf, the leaves, and their structure. None is a leaf here."""
    if isinstance(out_dims, int) and type(result) is Tensor:
        outputs, spec = tree_flatten(result)
        return [out_dims], outputs, spec
    outputs, spec = tree_flatten(result, lambda x: x is None)
    if isinstance(out_dims, int):
        return [out_dims] * len(outputs), outputs, spec
    flat: list[Any] | None
    if is_array(result):
        flat = list(out_dims) if isinstance(out_dims, tuple) and len(out_dims) == 1 else [out_dims]
        if not isinstance(flat[0], int) and flat[0] is not None:
            flat = None
    else:
        flat = broadcast_prefix(out_dims, spec, _is_dim)
    if flat is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims, _is_dim)[1]} but outputs has structure {spec}."
        )
    return flat, outputs, spec
