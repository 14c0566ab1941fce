"""Messages about arrays of other libraries (CuPy, Dask, sparse ...) that an operation cannot take, with the conversion to write."""

from __future__ import annotations

from typing import Any

from chainrule._src.messages.names import name_of


def _type(x: object) -> str:
    kind = type(getattr(x, "payload", x))
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _converted(x: Any) -> str:
    name = name_of(x.payload) or "x"
    return x.library.conversion.format(x=name)


def foreign_lacks(x: Any, function: str, error: BaseException | None = None) -> TypeError:
    """Return the error for an operation that an array's library does not implement, or that raised there."""
    library_error = f" Its error: {error}" if error is not None and str(error) else ""
    return TypeError(
        f"np.{function} is not available for a {_type(x)} of shape {tuple(x.shape)}: {x.library.name} does not compute it, and "
        f"chainrule never converts silently.{library_error}\nIf the numbers fit in memory, convert first: {_converted(x)}. Otherwise use "
        "operations that docs/operators.md lists for that type."
    )


def foreign_to_numpy(x: Any, what: str = "this operation") -> TypeError:
    return TypeError(
        f"a {_type(x)} of shape {tuple(x.shape)} would be converted to a NumPy array silently: {what} "
        f"needs the numbers in memory. Write {_converted(x)} (.numpy() of a tensor), or use another operation; "
        "docs/operators.md lists the operations that keep the type."
    )


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def sequence_operand(symbol: str, x: object, other: object) -> TypeError:
    """Return the error for an operator between a tensor and a list or tuple."""
    sign = _SIGNS.get(symbol) or _SIGNS[symbol.removeprefix("r")]
    kinds = [type(x).__name__, type(other).__name__]
    a, b = kinds if symbol in _SIGNS else kinds[::-1]
    return TypeError(
        f"unsupported operand type(s) for {sign}: '{a}' and '{b}': convert the {kinds[1]} with tensor(...)"
    )


def sparse_in_function(x: Any) -> TypeError:
    """Return the error for a SciPy sparse matrix as an argument of a NumPy function."""
    name = name_of(x) or "A"
    return TypeError(
        f"NumPy's functions do not take a {type(x).__name__} of scipy.sparse. Write {name} @ x for the product with an array or a "
        f"tensor, or {name}.toarray() if it may be dense. chainrule.sparse.like({name}, data) has differentiable entries."
    )


def lazy_function(x: Any) -> RuntimeError:
    """Return the error for a function or method of Dask that was given a tensor."""
    name = name_of(x) or "x"
    return RuntimeError(
        f"a function or method of Dask would convert {name}, of shape {tuple(x.shape)}, to plain data and drop its "
        f"derivative. NumPy's functions and operators keep it and are also lazy: np.sum({name}) for da.sum({name}), X @ {name} for "
        f"X.dot({name}), np.stack for da.stack. To cut the path: {name}.detach()."
    )


def other_librarys_array(symbol: str, x: Any, other: object) -> TypeError:
    """Return the error for an operator between a tensor (or Array) and an array whose library has no NumPy protocols."""
    sign = _SIGNS.get(symbol) or _SIGNS.get(symbol.removeprefix("r"), symbol)
    ours, theirs = f"chainrule.{type(x).__name__}", f"{_root(other)}.{type(other).__name__}"
    a, b = name_of(x) or "x", name_of(other) or "y"
    if not hasattr(other, "__dlpack__"):
        return TypeError(
            f"unsupported operand type(s) for {sign}: '{ours}' and '{theirs}', which does not implement NumPy's protocols. Write "
            f"np.asarray({b}) instead of {b}."
        )
    make = "cr.array_api.from_dlpack" if type(x).__name__ == "Array" else "cr.from_dlpack"
    return TypeError(
        f"unsupported operand type(s) for {sign}: '{ours}' and '{theirs}'. Arrays of two libraries do not mix, and chainrule never "
        f"converts silently. Write {make}({b}), which shares its memory, instead of {b}; or continue in the other library "
        f"with {_root(other)}.from_dlpack({a}.detach()), which has no derivative."
    )


def _root(x: object) -> str:
    root = type(x).__module__.partition(".")[0]
    return {"jaxlib": "jax.dlpack", "jax": "jax.dlpack"}.get(root, root)


def foreign_has_no_memory(x: Any) -> BufferError:
    return BufferError(
        f"a {_type(x)} of shape {tuple(x.shape)} has no memory to share through DLPack. If the numbers fit in "
        f"memory, convert first: {_converted(x)}."
    )


def mixed_devices(x: Any, on: int, y: Any, other: int | None) -> RuntimeError:
    """Return the error for operands on different devices."""
    first, second = f"cuda:{on}", "cpu" if other is None else f"cuda:{other}"
    a, b = name_of(x) or "x", name_of(y) or "y"
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}! {a}, of shape "
        f"{tuple(x.shape)}, is on {first}, and {b}, of shape {tuple(y.shape)}, is on {second}. Write {b}.to('{first}') (for a "
        f"NumPy array, chainrule.as_tensor(array, device='{first}')), or {a}.to('{second}'); only 0-d arrays are moved between "
        "devices silently."
    )


def explain_foreign(x: Any) -> TypeError:
    return TypeError(
        f"explain() shows the numbers of a computation, but does not load a {_type(x)} of shape {tuple(x.shape)} "
        f"silently: explain a part that fits in memory, such as {_converted(x)}."
    )


def layout_foreign(x: Any) -> TypeError:
    return TypeError(
        f"structured Jacobians and Hessians (jacobian with a layout, cr.hessian) need NumPy arrays, and chainrule never "
        f"converts silently: for a {_type(x)} of shape {tuple(x.shape)} use jacobian(f, x), func.hessian, grad, jvp, "
        f"vjp or hvp. Or convert it: {_converted(x)}."
    )


def mixed_libraries(x: Any, y: Any) -> TypeError:
    return TypeError(
        f"a {_type(x)} of shape {tuple(x.shape)} and a {_type(y)} of shape {tuple(y.shape)} in one operation: neither library "
        f"takes the other's arrays. Convert one of them: {_converted(x)} or {_converted(y)}."
    )


def foreign_write(x: Any) -> TypeError:
    return TypeError(
        f"a rule cannot write into a {_type(x)} of shape {tuple(x.shape)}: arrays of {x.library.name} have no writable "
        f"memory. Write np.where(mask, new, old), or convert first: {_converted(x)}."
    )


def foreign_into_memory(op: str, x: Any) -> TypeError:
    return TypeError(
        f"{op}: a {_type(x)} of shape {tuple(x.shape)} cannot be written into the memory of a NumPy array, and chainrule never "
        "converts silently. Convert first: w -= lr * w.grad.compute() for lazy gradients, .numpy() for any other "
        f"tensor, {_converted(x)} for the array itself."
    )


def lazy_requires_grad(tensor: object, method: str) -> RuntimeError:
    x = name_of(tensor) or "tensor"
    return RuntimeError(
        f"{method}() of a lazy tensor that requires grad: the result cannot carry the gradient of {x}, so the path would be "
        f"cut silently. Call backward() first, which is also lazy, and compute the value and the gradients in one pass: "
        f"dask.compute({x}.detach(), w.grad); or write {x}.detach().{method}()."
    )
