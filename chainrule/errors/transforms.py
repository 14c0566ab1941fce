"""Transformations of functions, forward mode, Jacobians and ``autograd.functional``."""

from __future__ import annotations

from typing import Any

from chainrule.errors.libraries import instead_of_arrays
from chainrule.errors.names import name_of
from chainrule.errors.places import user_line, warn
from chainrule.errors.words import shape_of, torch_size

# -- forward mode -------------------------------------------------------------------------------------------------------


def numpy_has_tangent(tensor: Any) -> RuntimeError:
    name = name_of(tensor) or "tensor"
    instead = instead_of_arrays(tensor, name) or (
        f"Where that is what you want: {name}.detach().numpy(). NumPy's own functions work on tensors and keep it: "
        f"np.sin({name}), np.sum({name}, axis=0)."
    )
    return RuntimeError(
        "Can't call numpy() on a dual Tensor: a plain array cannot carry its tangent, so the derivative would be lost "
        f"silently. {instead}"
    )


def nested_dual_level() -> RuntimeError:
    return RuntimeError(
        "Nested forward mode AD is not supported at the moment: a dual_level is open in this thread. For derivatives of "
        "tangents nest func.jvp, which has a level for each call."
    )


def dual_level_not_open() -> RuntimeError:
    return RuntimeError("Dual level must be a positive number: exit_dual_level() was called with no level open.")


def dual_level_not_last() -> RuntimeError:
    return RuntimeError(
        "Trying to exit a forward AD level that was not the last one that was created. This is not supported: leave the "
        "innermost first (dual_level, func.jvp and func.vmap each open one)."
    )


def no_dual_level() -> RuntimeError:
    return RuntimeError(
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first: write "
        "`with forward_ad.dual_level():` around it."
    )


def invalid_dual_level(level: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to access a forward AD level with an invalid index. This index was either not created or is already "
        f"deleted: level={level!r}, and only level 0 exists, inside dual_level(). Leave level= out."
    )


def dual_dtype(which: str, value: Any) -> ValueError:
    return ValueError(
        f"Expected {which} to be floating point or complex, but got: torch.{value.dtype.name}. Convert it first: .float(), "
        ".double()."
    )


def dual_not_tensor(function: str, which: str, value: Any) -> TypeError:
    return TypeError(f"{function}(): argument '{which}' must be Tensor, not {type(value).__name__}")


def dual_shape(primal: Any, tangent: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(shape_of(primal))} while the given forward gradient is of size "
        f"{list(shape_of(tangent))}: a tangent holds one number per element of its primal."
    )


def dual_complex_tangent(primal: Any, tangent: Any) -> RuntimeError:
    return RuntimeError(
        f"Trying to set a complex forward gradient ({tangent.dtype}) on a real Tensor ({primal.dtype}): a real number "
        "moves along a real direction. Use tangent.real, or make the primal complex."
    )


def dual_already(level: int = 0) -> RuntimeError:
    return RuntimeError(
        f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is not "
        "supported: use unpack_dual(x).primal, or x.detach()."
    )


def dual_tangent_moves(level: int = 0) -> RuntimeError:
    return RuntimeError(
        f"Setting a forward grad that itself has a forward gradient at the same level {level} is not supported: the "
        "tangent carries a tangent. Give unpack_dual(tangent).primal; for second derivatives nest chainrule.jvp."
    )


# -- transformations of functions ---------------------------------------------------------------------------------------


def escaped_tensor(level: Any, what: str) -> RuntimeError:
    where, here = level.where, user_line()
    called = f" (called at {where})" if where else ""
    return RuntimeError(
        f"{what}{f' ({here})' if here else ''} was given a tensor that has escaped from inside a function being "
        f"vmapped: it was made inside {level.name}{called}, which has ended, and holds the values of all examples. "
        "Return it from the function instead of keeping it in a list, a global or an attribute."
    )


def escaped_tangent(level: Any, what: str) -> RuntimeError:
    where, here = level.where, user_line()
    called = f" (called at {where})" if where else ""
    return RuntimeError(
        f"{what}{f' ({here})' if here else ''} was given a tensor that has escaped from inside a function: it was written or "
        f"made inside {level.name}{called}, which has ended, and depends on what is differentiated outside. Return it from the "
        "function instead of writing into a tensor or array of the outer function."
    )


def dynamic_shape(what: str, instead: str) -> RuntimeError:
    where = user_line()
    return RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {what}"
        f"{f' ({where})' if where else ''}: each example could give a result of another size. {instead}"
    )


def random_in_vmap() -> RuntimeError:
    where = user_line()
    return RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
        f"randomness flags on vmap or perform the randomness operation out of vmap{f' ({where})' if where else ''}: "
        "vmap(f, randomness='different') draws anew for each example, 'same' once for all."
    )


def func_integer_argument(data: Any) -> RuntimeError:
    name = name_of(data)
    subject = f"{name}, the argument to differentiate," if name else "the argument to differentiate"
    fix = f"{name}.astype(float)" if name else "x.astype(float) for an array x, x.float() for a tensor"
    return RuntimeError(
        f"only Tensors of floating point dtype can require gradients: {subject} has dtype {data.dtype}, and an integer cannot "
        f"change by a little. Pass {'1. instead of 1' if not shape_of(data) else fix}."
    )


def func_result_type(api: str, result: Any) -> RuntimeError:
    if result is None:
        why = "Does the function end without `return`?"
    elif isinstance(result, (list, tuple, dict)):
        why = "It must be one number: with further results beside it, return (number, others) and pass has_aux=True."
    elif hasattr(getattr(result, "data", None), "requires_grad"):
        why = "What it holds is followed: return its .data."
    else:
        why = (
            "Either it does not depend on the argument, or the path to it was left: float(), .item() and the math module "
            "make plain numbers. Use NumPy or chainrule functions on the argument all the way."
        )
    return RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(result)}. {why}")


def func_result_shape(api: str, result: Any) -> RuntimeError:
    return RuntimeError(
        f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with "
        f"{len(shape_of(result))} dims (shape {shape_of(result)}). Maybe you wanted to use the vjp or jacrev APIs instead? "
        "Or return the sum() of it."
    )


def check_function(api: str, func: Any) -> None:
    """Raise where a transformation of functions is given something that is none."""
    if callable(func):
        return
    kind = type(func).__name__
    text = f"'{kind}' object is not callable: {api} takes a function, so pass f, not its result f(x)."
    if hasattr(func, "_edge"):
        y = name_of(func) or "y"
        text += (
            f"\nOf {y}, which is computed already: chainrule.jacobian({y}, x) is all of ∂{y}/∂x, and "
            f"chainrule.autograd.grad({y}, x) the gradient, if {y} is a scalar."
        )
    raise TypeError(text)


# -- Jacobians ----------------------------------------------------------------------------------------------------------


def jacobian_needs_function() -> ValueError:
    return ValueError(
        "jacobian(): mode='forward' runs the function again, so it needs the function: jacobian(f, x). Of tensors already "
        "computed there is only the graph, which is swept backward."
    )


def jacobian_of_nothing(which: str) -> ValueError:
    return ValueError(f"jacobian(): {which} holds no tensor")


def jacobian_integers(dtype: Any) -> TypeError:
    return TypeError(
        f"jacobian(): x has dtype {dtype}; only floating point and complex values have derivatives: pass 1. instead of 1, "
        "or use .astype(float) (.double() for tensors)"
    )


def jacobian_integer_output(y: Any) -> TypeError:
    cut = f" {y._cut}." if getattr(y, "_cut", None) is not None else ""
    return TypeError(
        f"jacobian(): the function returns dtype {y.dtype}: integers and booleans have no derivative.{cut}"
    )


def jacobian_output(out: Any) -> TypeError:
    return TypeError(f"jacobian(): the function must return arrays or tensors (or a tree of them), not {out!r}")


def warn_unbatched(error: Exception) -> None:
    warn(f"jacobian(): one row at a time, because the rows cannot go in one batch ({error})")


# -- autograd.functional ------------------------------------------------------------------------------------------------


def functional_type(function: str, what: str, value: Any, index: int | None = None) -> TypeError:
    where = f"the value at index {index}" if index is not None else f"the given {what}"
    return TypeError(
        f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type "
        f"{type(value)}."
    )


def functional_v_count(want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"v is a tuple of invalid length: should be {want} but got {got}: one tensor for each of what it multiplies."
        if want != 1
        else "The given v should contain a single Tensor."
    )


def functional_v_size(index: int | None, want: Any, got: Any) -> RuntimeError:
    which = "v" if index is None else f"Entry {index} in v"
    return RuntimeError(f"{which} has invalid size: should be {torch_size(want)} but got {torch_size(got)}.")


def functional_v_none(source: str) -> RuntimeError:
    return RuntimeError(
        f"The vector v can only be None if {source} a single Tensor with a single element: give v, one number per element."
    )


def functional_output_cut(index: int, output: Any) -> RuntimeError:
    cut = f"\n{output._cut}." if output._cut is not None else ""
    return RuntimeError(
        f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
        f"differentiable manner from the input when running in strict mode.{cut}"
    )


def functional_independent(subject: str, index: int, mode: str = "strict mode") -> RuntimeError:
    return RuntimeError(f"{subject} is independent of input {index}. This is not allowed in {mode}.")


def functional_hessian_independent(index: int) -> RuntimeError:
    return RuntimeError(
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        f"{index} is independent of the input. This is not allowed in strict mode: the function is linear in it, or does "
        "not use it, and its second derivatives are zero."
    )


def functional_scalar(function: str, several: bool) -> RuntimeError:
    if several:
        return RuntimeError(f"The function given to {function} should return a single Tensor, not a tuple")
    return RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def functional_strategy(hint: bool = True) -> AssertionError:
    return AssertionError(
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: "forward-mode" costs a pass per input '
        'element, "reverse-mode" one per output element.'
    )


def functional_forward_loop() -> NotImplementedError:
    return NotImplementedError(
        "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
    )


def functional_strict_vectorize() -> RuntimeError:
    return RuntimeError(
        "torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are not supported together. Please "
        "either set `strict=False` or `vectorize=False`."
    )


def warn_out_resized(have: Any, want: Any) -> None:
    warn(
        f"An output with one or more elements was resized since it had shape {list(have)}, which does not match the "
        f"required output shape {list(want)}. Give out= a tensor of the right shape, or an empty one.",
    )
