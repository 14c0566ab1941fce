"""Saved values, profiles and explanations."""

from __future__ import annotations

from typing import Any

from chainrule.errors.words import dtype_word, shape_of, tensor_type


def pack_hook_wrote() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
        "modified by in-place operations, as the forward pass still uses their memory: change a clone()."
    )


def packed_was_written(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(tensor.shape)}], which a pack hook kept as it was given. Write the "
        "change out of place, or let the pack hook keep a clone()."
    )


def unpacked_differs(value: Any, shape: Any, dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"unpack_hook returned a tensor of shape {shape_of(value)} and dtype {value.dtype}, but what pack_hook was handed has "
        f"shape {tuple(shape)} and dtype {dtype}: give back the same values"
    )


def complex_into_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {dtype_word(dtype)} without overflow: it is complex; assign its .real part"
    )


def index_put_dtype(got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {dtype_word(want).capitalize()} for the "
        f"destination and {dtype_word(got).capitalize()} for the source.\nConvert the value with .to(dtype) first."
    )


# -- profiles -----------------------------------------------------------------------------------------------------------


def profiler_option(name: str) -> NotImplementedError:
    if name.startswith("with_") or name == "use_kineto":
        return NotImplementedError(
            f"profile({name}=True) is not supported: profile() records operations, backward rules and "
            "record_function() labels with their times, shapes and memory; leave it out."
        )
    return NotImplementedError(
        f"{name} is for GPUs and their vendors' tools, and everything here runs on the CPU: use profile() without it, and "
        "export_chrome_trace(path) to look at the events in a browser."
    )


def profiler_sort(given: str, known: tuple[str, ...]) -> ValueError:
    return ValueError(f"cannot sort by {given!r}: sort_by is one of {', '.join(map(repr, known))}")


def jacobian_complex_forward() -> ValueError:
    return ValueError(
        "jacobian(): the derivative of a real output along one direction of a complex input is half of what there is to "
        "say: use mode='reverse'."
    )


# -- explanations -------------------------------------------------------------------------------------------------------


def explain_inside() -> RuntimeError:
    return RuntimeError(
        "explain() was called inside a transformation (vmap, jvp or jacfwd), where values stand for many numbers at once: "
        "call it outside, on ordinary tensors or as explain(f)(x) for the function that is transformed."
    )


def explained_parameter(function: Any, name: str, known: list[str]) -> ValueError:
    f = getattr(function, "__name__", "f")
    return ValueError(
        f"explain({f}, wrt={name!r}): no floating-point argument has that name; there are {', '.join(known)}"
    )


def explained_result(function: Any, result: Any, floats: bool) -> TypeError:
    name = getattr(function, "__name__", "f")
    fix = "Return what is computed from its arguments, a tensor."
    if not floats:
        fix = "Arguments that are floats, or arrays and tensors of them, become tensors: there was none. Write 3. instead of 3."
    return TypeError(f"explain({name}): the function returned no tensor but {type(result).__name__}. {fix}")
