"""Messages about Jacobians: layouts, patterns, products and solutions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.messages.kinds import LinAlgError
from chainrule._src.messages.message_parts import function_name, reason_of_cut
from chainrule._src.messages.source_locations import bracketed, user_line, warn


def jacobian_constant_written(op: str, operand: object) -> RuntimeError:
    return RuntimeError(
        f"one of the values needed for the Jacobian was modified by an inplace operation: operand {operand!r} of "
        f"{op}{bracketed(user_line())}.\n"
        "Write the change out of place (y = y + 1 instead of y += 1), or modify a clone()."
    )


def jacobian_of_captured(what: object) -> RuntimeError:
    return RuntimeError(
        "jacobian(): the entries depend on an array or tensor from outside of the function that requires grad, and "
        f"{what} would treat it as a constant. layout='structured' and layout='dense' keep the entries on the "
        "tape; for a constant, pass x.detach()."
    )


def jacobian_layout_needs_function(layout: object) -> ValueError:
    return ValueError(
        f"jacobian(): layout={layout!r} and strategy= need the function, because its operations propagate the "
        f"structure: call jacobian(f, x, layout={layout!r}). The Jacobian of a tensor that is already computed is "
        "dense."
    )


def jacobian_choice(api: str, option: str, given: object, known: Iterable[object]) -> ValueError:
    return ValueError(f"{api}(): {option} is one of {', '.join(map(repr, known))}, not {given!r}")


def hessian_options() -> ValueError:
    return ValueError(
        "hessian(): layout= and the other options need a point, hessian(f, x, layout='csr'), or no argnums: hessian(f, "
        "layout='csr') is a function of the point. hessian(f, argnums) is a function that computes dense Hessians."
    )


def jacobian_layout_create_graph(api: str, layout: object) -> ValueError:
    return ValueError(
        f"{api}(): layout={layout!r} returns a SciPy array, which cannot be on the tape: to differentiate it "
        "(with create_graph=True, or inside grad) use layout='structured', whose entries are tensors, or "
        "layout='dense'."
    )


def jacobian_unstructured(
    api: str, reason: object, rows: object, columns: object, size: object, limit: object
) -> RuntimeError:
    return RuntimeError(
        f"{api}(): {reason}. The dense matrix has {rows} × {columns} numbers, {size}, and memory= allows "
        f"{limit}.\n"
        "layout='operator' computes products with vectors only; with a larger memory= the dense matrix is computed."
    )


def jacobian_check(
    where: object, what: object, place: object, found: object, wanted: object, bad: object, size: object
) -> RuntimeError:
    return RuntimeError(
        f"jacobian(check=True): the product with a random vector is {found} at element {place} of {where}, and "
        f"the {what} of the function is {wanted} there ({bad} of {size} elements differ). Entries are missing "
        "or wrong. Possible causes: a pattern (sparsity=) without all entries, a custom function whose backward is "
        "not linear in its cotangent, or a function that is not deterministic."
    )


def jacobian_check_complex() -> ValueError:
    return ValueError(
        "jacobian(check=True): products of complex functions depend on a convention. Check the function as one of "
        "real and imaginary parts."
    )


def jacobian_sparsity(what: object) -> ValueError:
    return ValueError(
        "jacobian(): sparsity= is the pattern of the matrix of one output and one input, computed by products with "
        f"vectors; {what}."
    )


def jacobian_other_point(api: str, what: str, got: object, expected: object) -> ValueError:
    return ValueError(
        f"prepared {api}: {what} is {got}, and it was prepared for {expected}. Call prepare_{api.lower()}() again for "
        "other shapes, dtypes or structures, because the pattern depends on them."
    )


def jacobian_prepared_inside(api: str, what: str) -> RuntimeError:
    return RuntimeError(
        f"prepared {api}: {what} is on the tape, or inside a transformation, but a prepared {api} records nothing: "
        f"pass x.detach(), or call chainrule.{api.lower()}(f, x) there."
    )


def jacobian_pattern_changed(api: str, before: object, now: object, where: object) -> RuntimeError:
    return RuntimeError(
        f"prepared {api}: at this point the function runs other operations than at the point of preparation, "
        f"because it reads values ({where}), and the pattern differs ({now} entries instead of {before}, or "
        f"other positions). With prepare_{api.lower()}(..., on_change='record') each new pattern is computed once "
        "and cached."
    )


def jacobian_several(name: str, count: object) -> TypeError:
    return TypeError(
        f"{name}(f, x) takes one x, but got {count}. Pass several arguments of f as a tuple: {name}(f, (x, y))."
    )


def jacobian_dense_only(layout: object) -> ValueError:
    return ValueError(
        f"jacobian(): mode and chunk_size apply to the rows or columns of a dense Jacobian, and layout={layout!r} "
        "computes none. Choose with strategy='forward terms' or 'reverse terms'."
    )


def jacobian_memory(memory: object) -> TypeError:
    return TypeError(f"jacobian(): memory is a number of bytes, such as 2**30, not {memory!r}")


def jacobian_needs_scipy() -> ImportError:
    return ImportError(
        "a sparse array needs SciPy, which is not installed: pip install chainrule[scipy]. layout='structured' "
        "needs only NumPy."
    )


def jacobian_too_large(
    m: object, n: object, y_shape: object, x_shape: object, size: object, limit: object, hint: object
) -> ValueError:
    return ValueError(
        f"a dense Jacobian of {m} rows (the elements of y, of shape {y_shape}) and {n} columns (x, of shape "
        f"{x_shape}) takes {size}, more than the limit of {limit}. {hint}"
    )


def jacobian_operand(call: object, have: object, want: object, of: object, other: object, where: object) -> ValueError:
    return ValueError(
        f"{call}: the operand has shape {have}. J is dy/dx, so the operand must have the shape of {of}, {want}, "
        f"or be flat, with any further axes {where}. (The other shape of J is {other}.)"
    )


def jacobian_product(left: Any, right: Any) -> ValueError:
    return ValueError(
        f"J1 @ J2: J1 is with respect to a value of shape {left.in_shape}, and J2 is of a value of shape "
        f"{right.out_shape}. In the chain rule, dz/dy @ dy/dx, both are the same value y."
    )


def jacobian_sum(left: Any, right: Any) -> ValueError:
    return ValueError(
        f"cannot add Jacobians of different shapes: {left.out_shape} by {left.in_shape}, and {right.out_shape} "
        f"by {right.in_shape}"
    )


def jacobian_compiled(prepare: str) -> TypeError:
    J, product = ("J", "jvp(f, (x,), (v,))") if prepare == "prepare_jacobian" else ("H", "hvp(f, (x,), (v,))")
    return TypeError(
        f"layout='csr' is a SciPy array of plain numbers, and compile traces values{bracketed(user_line())}. Write "
        f"{J} = chainrule.{prepare}(f, x) once, and call {J}(x): it finds the sparsity pattern once and compiles the computation "
        f"of the entries. Inside a compiled function use layout='dense', or compute a product by chainrule.func.{product}."
    )


def jacobian_inside(what: object) -> TypeError:
    return TypeError(
        f"{what} needs plain numbers, and the entries of this Jacobian belong to a transformation such as vmap, "
        f"jvp or compile{bracketed(user_line())}. Inside a transformation use layout='structured' or "
        "layout='dense'."
    )


def jacobian_not_square(J: Any) -> LinAlgError:
    return LinAlgError(
        f"J.solve(b) needs as many equations as unknowns, and J has {J.matrix_shape[0]} rows (y of shape "
        f"{J.out_shape}) and {J.matrix_shape[1]} columns (x of shape {J.in_shape}). For least squares use "
        "scipy.sparse.linalg.lsqr(J.to_scipy(), b) or np.linalg.lstsq."
    )


def jacobian_singular(J: Any, why: object) -> LinAlgError:
    return LinAlgError(f"J.solve(b): the Jacobian, of shape {J.out_shape} by {J.in_shape}, is singular: {why}")


def jacobian_spy() -> ImportError:
    return ImportError(
        "J.spy() draws with matplotlib, which is not installed: pip install matplotlib. print(J.spy_text()) needs "
        "nothing."
    )


def jacobian_needs_function() -> ValueError:
    return ValueError(
        "jacobian(): mode='forward' runs the function again, so it needs the function: jacobian(f, x). A tensor "
        "that is already computed has only its graph, which allows reverse mode only."
    )


def jacobian_of_nothing(which: object, api: str = "jacobian") -> ValueError:
    return ValueError(f"{api}(): {which} contains no tensor")


def jacobian_no_result(function: object, result: object) -> ValueError:
    return ValueError(
        f"jacobian(): {function_name(function)} returned no array or tensor but {type(result).__name__}, so there "
        "is nothing to differentiate. Is a `return` missing?"
    )


def jacobian_of_value(value: object) -> TypeError:
    return TypeError(
        f"jacobian(): y is of type {type(value).__name__}, which has no recorded history. Pass the function, "
        "jacobian(f, x), or compute y from tensors that require grad."
    )


def jacobian_integers(dtype: object, api: str = "jacobian") -> TypeError:
    return TypeError(
        f"{api}(): x has dtype {dtype}; only floating point and complex values have derivatives: pass 1. instead "
        "of 1, or use .astype(float) (.double() for tensors)"
    )


def jacobian_output(out: object) -> TypeError:
    return TypeError(f"jacobian(): the function must return arrays or tensors (or a tree of them), not {out!r}")


def warn_unbatched(error: object) -> None:
    warn(f"jacobian(): computing one row at a time, because the rows cannot be batched ({error})")


def jacobian_integer_output(y: Any) -> TypeError:
    return TypeError(
        f"jacobian(): the function returns dtype {y.dtype}: integers and booleans have no derivative.{reason_of_cut(y)}"
    )


def jacobian_complex_forward() -> ValueError:
    return ValueError(
        "jacobian(): the derivative of a real output along one direction of a complex input is only half of the "
        "derivative: use mode='reverse'."
    )
