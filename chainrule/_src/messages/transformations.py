"""Messages about ``vmap``, ``jvp`` and other transformations, and about forward mode."""

from __future__ import annotations

from typing import Any

from chainrule._src.messages.message_parts import called_at, shape_of, torch_size
from chainrule._src.messages.names import name_of
from chainrule._src.messages.source_locations import bracketed, user_line


def escaped_to_numpy(kind: object) -> TypeError:
    return TypeError(
        f"a value inside a transformation ({kind}) cannot be converted to a plain array: code that needs concrete "
        "numbers (np.asarray, .item(), float()) cannot run on it. Return the value from the function and convert "
        "it outside."
    )


def dynamic_shape(what: object, instead: object) -> RuntimeError:
    return RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"{what}{bracketed(user_line())}: the size of the result could differ between examples. {instead}"
    )


def unmapped_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        f"vmap: {op} is not possible: the written value is mapped over, but its target is shared by all examples "
        "(in_dims=None). Map over the target, too, or use the out-of-place operation."
    )


def nested_dual_level() -> RuntimeError:
    return RuntimeError(
        "Nested forward mode AD is not supported at the moment: a dual_level is open in this thread. For "
        "derivatives of tangents nest func.jvp, which has a level for each call."
    )


def dual_level_not_open() -> RuntimeError:
    return RuntimeError("Dual level must be a positive number: exit_dual_level() was called with no level open.")


def dual_level_not_last() -> RuntimeError:
    return RuntimeError(
        "Trying to exit a forward AD level that was not the last one that was created. This is not supported: exit "
        "the innermost level first (dual_level, func.jvp and func.vmap each open a level)."
    )


def no_dual_level() -> RuntimeError:
    return RuntimeError(
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first: "
        "write `with forward_ad.dual_level():` around it."
    )


def invalid_dual_level(level: object) -> RuntimeError:
    return RuntimeError(
        "Trying to access a forward AD level with an invalid index. This index was either not created or is "
        f"already deleted: level={level!r}, and only level 0 exists, inside dual_level(). Omit level=."
    )


def dual_dtype(which: object, value: Any) -> ValueError:
    return ValueError(
        f"Expected {which} to be floating point or complex, but got: torch.{value.dtype.name}. Convert it first: "
        ".float(), .double()."
    )


def dual_not_tensor(function: str, which: object, value: object) -> TypeError:
    return TypeError(f"{function}(): argument '{which}' must be Tensor, not {type(value).__name__}")


def dual_shape(primal: object, tangent: object) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(shape_of(primal))} while the given forward gradient is of size "
        f"{list(shape_of(tangent))}: a tangent has the shape of its primal."
    )


def dual_complex_tangent(primal: Any, tangent: Any) -> RuntimeError:
    return RuntimeError(
        f"Trying to set a complex forward gradient ({tangent.dtype}) on a real Tensor ({primal.dtype}): the "
        "tangent of a real number is real. Use tangent.real, or make the primal complex."
    )


def dual_already(level: object = 0) -> RuntimeError:
    return RuntimeError(
        f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is "
        "not supported: use unpack_dual(x).primal, or x.detach()."
    )


def dual_tangent_moves(level: object = 0) -> RuntimeError:
    return RuntimeError(
        f"Setting a forward grad that itself has a forward gradient at the same level {level} is not supported: "
        "the tangent has a tangent itself. Pass unpack_dual(tangent).primal; for second derivatives nest "
        "chainrule.jvp."
    )


def functional_v_none(source: object) -> RuntimeError:
    return RuntimeError(
        f"The vector v can only be None if {source} a single Tensor with a single element: pass v, one number per "
        "element."
    )


def functional_independent(subject: object, index: int, mode: str = "strict mode") -> RuntimeError:
    return RuntimeError(f"{subject} is independent of input {index}. This is not allowed in {mode}.")


def functional_hessian_independent(index: int) -> RuntimeError:
    return RuntimeError(
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        f"{index} is independent of the input. This is not allowed in strict mode: the function is linear in the "
        "input, or does not use it, and its second derivatives are zero."
    )


def functional_strategy(hint: bool = True) -> AssertionError:
    return AssertionError(
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: "forward-mode" costs a pass '
        'per input element, "reverse-mode" one per output element.'
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


def order_in_vmap(order: object) -> RuntimeError:
    return RuntimeError(
        f"vmap: order={order!r} depends on the memory layout of an array{bracketed(user_line())}. Elements of the "
        "examples are interleaved in memory, so the layout of a single example is not defined. Write order='C' or "
        "order='F', or map over the first axis."
    )


def random_in_vmap() -> RuntimeError:
    return RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
        f"randomness flags on vmap or perform the randomness operation out of vmap{bracketed(user_line())}: "
        "vmap(f, randomness='different') draws separately for each example, 'same' draws once for all examples."
    )


def same_random_numbers(name: str) -> RuntimeError:
    return RuntimeError(
        "Vmap does not currently support same randomness with a batched tensor input: the parameters of "
        f"{name}{bracketed(user_line())} differ between examples, and its samples depend on them. Use vmap(f, "
        "randomness='different')."
    )


def recorded_elsewhere(level: Any) -> RuntimeError:
    return RuntimeError(
        f"this array or tensor{bracketed(user_line())} belongs to a function that another thread is tracing, in "
        f"the first call of the result of {level.name}{called_at(level)}: call that result once before threads "
        "share its tensors"
    )


def escaped_recording(level: Any) -> RuntimeError:
    return RuntimeError(
        f"this array or tensor{bracketed(user_line())} has escaped from a function that "
        f"{level.name}{called_at(level)} traced, through a list, a global or an attribute. Return it from the "
        "function. To keep a value from call to call, write it in place into a tensor of the outer program."
    )


def escaped_tensor(level: Any, what: object) -> RuntimeError:
    return RuntimeError(
        f"{what}{bracketed(user_line())} was given a tensor that has escaped from inside a function being vmapped: "
        f"it was made inside {level.name}{called_at(level)}, which has returned, and holds the values of all "
        "examples. Return it from the function instead of storing it in a list, a global or an attribute."
    )


def escaped_tangent(level: Any, what: object) -> RuntimeError:
    return RuntimeError(
        f"{what}{bracketed(user_line())} was given a tensor that has escaped from inside a function: it was "
        f"written or made inside {level.name}{called_at(level)}, which has returned, and depends on the "
        "differentiated arguments. Return it from the function instead of writing into a tensor or array of the "
        "outer function."
    )


def func_result_shape(api: str, result: object) -> RuntimeError:
    return RuntimeError(
        f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {len(shape_of(result))} dims (shape "
        f"{shape_of(result)}). Maybe you wanted to use the vjp or jacrev APIs instead? Or return the sum() of the "
        "result."
    )


def func_integer_argument(data: Any) -> RuntimeError:
    name = name_of(data)
    subject = f"{name}, the argument to differentiate," if name else "the argument to differentiate"
    fix = f"{name}.astype(float)" if name else "x.astype(float) for an array x, x.float() for a tensor"
    if getattr(data.dtype, "kind", "") in "OSU":
        return RuntimeError(
            f"only Tensors of floating point dtype can require gradients: {subject} holds {data.dtype.type.__name__}, not "
            "numbers. Make an array of numbers first: np.asarray(x, dtype=float)."
        )
    number = "" if shape_of(data) else str(data)
    if number.lstrip("-").isdigit():
        fix = f"{number}. instead of {number}"
    return RuntimeError(
        f"only Tensors of floating point dtype can require gradients: {subject} has dtype {data.dtype}, and integers have no "
        f"derivatives. Pass {fix}."
    )


def func_result_type(api: str, result: object) -> RuntimeError:
    if result is None:
        why = "Is a `return` missing in the function?"
    elif isinstance(result, (list, tuple, dict)):
        why = "The result must be one number: for further results, return (number, others) and pass has_aux=True."
    elif hasattr(getattr(result, "magnitude", None), "requires_grad"):
        why = "It wraps a tensor: return its .magnitude."
    elif hasattr(getattr(result, "data", None), "requires_grad"):
        why = "It wraps a tensor: return its .data."
    else:
        why = (
            "Either the result does not depend on the argument, or the path to it was cut: float(), .item() and the math "
            "module return plain numbers. Use only NumPy or chainrule functions on the argument."
        )
    return RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(result)}. {why}")


def functional_type(function: str, what: str, value: object, index: int | None = None) -> TypeError:
    where = f"the value at index {index}" if index is not None else f"the given {what}"
    return TypeError(
        f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type "
        f"{type(value)}."
    )


def functional_v_count(want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"v is a tuple of invalid length: should be {want} but got {got}: pass one tensor for each factor."
        if want != 1
        else "The given v should contain a single Tensor."
    )


def functional_v_size(index: int | None, want: object, got: object) -> RuntimeError:
    which = "v" if index is None else f"Entry {index} in v"
    return RuntimeError(f"{which} has invalid size: should be {torch_size(want)} but got {torch_size(got)}.")


def functional_output_cut(index: int, output: Any) -> RuntimeError:
    cut = f"\n{output._cut}." if output._cut is not None else ""
    return RuntimeError(
        f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
        f"differentiable manner from the input when running in strict mode.{cut}"
    )


def functional_scalar(function: str, several: bool) -> RuntimeError:
    if several:
        return RuntimeError(f"The function given to {function} should return a single Tensor, not a tuple")
    return RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
