"""``gradcheck`` and ``gradgradcheck``: compare gradients with central differences of the function's values.

``chainrule.autograd`` and ``chainrule.testing`` export both.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import as_tensors, in_api_of_argument
from chainrule._src.arrays.tree import tree_flatten
from chainrule._src.arrays.types import AnyFunction, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import GradcheckError
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.backward import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_ARRAYS = (np.ndarray, np.inexact, float, complex)


def _check_module() -> Any:
    """Import and return the module of the single checks; imported at the first use."""
    return importlib.import_module("chainrule._src.transforms.grad_checks")


def gradcheck(
    func: AnyFunction,
    inputs: object,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of ``func`` at ``inputs`` against central differences of its values.

    Args:
        func: a function of the inputs that returns one or more tensors.
        inputs: a tensor or a tuple. The tensors that require grad are checked, and should be float64 or complex128. If
            there is no tensor, arrays and numbers of these dtypes are checked, and ``func`` receives arrays.
        eps: the step of the differences.
        atol, rtol: every entry of the Jacobian must satisfy |analytical − numerical| ≤ atol + rtol·|numerical|.
        raise_exception: raise if a check fails; otherwise return False.
        nondet_tol: the largest allowed difference between two runs of backward.
        check_undefined_grad: also check with no gradient for one of several outputs, and in forward mode with no
            tangent for one input.
        check_grad_dtypes: require that gradients have the dtypes of their inputs.
        check_batched_grad: also compare ``grad(..., is_grads_batched=True)`` with one call for each row.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: also check forward mode.
        check_backward_ad: check backward mode.
        fast_mode: compare one random combination of the Jacobian's entries instead of all of them.
        masked: accepted for compatibility with PyTorch; chainrule has no sparse tensors.

    Returns:
        True if all checks pass.

    Raises:
        GradcheckError: a check failed.
        ValueError: no input requires grad.
        RuntimeError: elements of an input share memory, so they cannot be changed one at a time.

    >>> import chainrule as cr
    >>> from chainrule.testing import gradcheck
    >>> gradcheck(cr.sin, cr.tensor([0., 1.], dtype=cr.float64, requires_grad=True))
    True
    >>> import numpy as np
    >>> gradcheck(lambda x: np.sum(np.sin(x) * x), np.array([0., 1.]))
    True
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    func, args = _as_tensor_function(func, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))
    checks = _check_module().Checks(func, args, _differentiable(args), eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        (checks.combinations if fast_mode else checks.jacobians)(check_backward_ad, check_forward_ad)
        if check_forward_ad and check_undefined_grad:
            checks.undefined_tangents()
        if check_batched_forward_grad:
            checks.batched_forward()
        if check_batched_grad:
            checks.batched()
        if check_backward_ad:
            checks.zero_cotangents()
            if check_undefined_grad:
                checks.undefined_cotangents()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: AnyFunction,
    inputs: object,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check second derivatives: :func:`gradcheck` of the gradient as a function of ``inputs`` and ``grad_outputs``.

    Args:
        grad_outputs: the cotangents of the outputs; random by default.
        gen_non_contig_grad_outputs: make the random cotangents non-contiguous.
        check_fwd_over_rev: differentiate the gradient in forward mode.
        check_rev_over_rev: differentiate the gradient in reverse mode.
        (the other arguments are those of :func:`gradcheck`)

    >>> import chainrule as cr
    >>> from chainrule.testing import gradgradcheck
    >>> gradgradcheck(cr.sin, cr.tensor([0., 1.], dtype=cr.float64, requires_grad=True), check_fwd_over_rev=True)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, wanted in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    func, args = _as_tensor_function(func, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))
    positions = _differentiable(args)
    if grad_outputs is None:
        cotangents = tuple(
            [
                _random_cotangent(y, 97 + i, gen_non_contig_grad_outputs)
                for i, y in enumerate(_check_module().recorded_outputs(func(*args)))
            ]
        )
    else:
        cotangents = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    n = len(args)

    def first(*args: TensorLike) -> tuple[Any, ...]:
        at, gs = args[:n], args[n:]
        found = grad(
            _check_module().recorded_outputs(func(*at)),
            [at[i] for i in positions],
            gs,
            create_graph=True,
            allow_unused=True,
        )
        return tuple([g for g in found if g is not None])

    return gradcheck(
        first,
        (*args, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# ``import chainrule.autograd.gradcheck`` finds the function instead of this module, so the function has the module's
# public names as attributes.
for _name in __all__:
    setattr(gradcheck, _name, globals()[_name])


def _as_tensor_function(func: AnyFunction, args: tuple[object, ...]) -> tuple[AnyFunction, tuple[object, ...]]:
    """Convert a function of arrays to a function of tensors, and its arrays to tensors that require grad.

    The tensors have copies of the arrays, because the check changes their elements. If the arguments contain a tensor,
    return the function and the arguments unchanged.
    """
    converted = [i for i, x in enumerate(args) if isinstance(x, _ARRAYS) and np.asarray(x).dtype.kind in "fc"]
    if not converted or any(isinstance(leaf, (Tensor, ArrayLike)) for leaf in tree_flatten(args)[0]):
        return func, args

    def tensor_function(*given: Tensor) -> TensorLike:
        return as_tensors(func(*[in_api_of_argument(x, args[i]) if i in converted else x for i, x in enumerate(given)]))

    return tensor_function, tuple(
        [wrap(np.array(x)).requires_grad_() if i in converted else x for i, x in enumerate(args)]
    )


def _random_cotangent(y: Tensor, seed: int, strided: bool) -> Tensor:
    g = _check_module().normal_like(y.detach()._array(), seed)
    if strided and g.ndim:
        wide = np.zeros((*g.shape, 2), g.dtype)
        wide[..., 0] = g
        g = wide[..., 0]
    return wrap(g).requires_grad_()


def _differentiable(inputs: Sequence[Any]) -> list[int]:
    """Return the positions of the inputs to check.

    Raises:
        TypeError: an input is a container of tensors that require grad.
        ValueError: no input requires grad.
        RuntimeError: elements of an input share memory.
    """
    for i, x in enumerate(inputs):
        items = x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ()
        if any(isinstance(item, Tensor) and item.requires_grad for item in items):
            raise TypeError(
                f"gradcheck expects a flat tuple of inputs, but input {i} is a {type(x).__name__} of tensors that "
                "require grad. Pass the tensors as separate inputs: gradcheck(lambda *xs: f(list(xs)), tuple(xs))."
            )
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in wanted:
        x = inputs[i]
        if x.dtype not in (np.float64, np.complex128):
            errors.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex.",
            )
        array = x._array()
        if array.size and any(step == 0 and length > 1 for step, length in zip(array.strides, array.shape)):
            what = "has a dimension with stride 0"
        elif _overlapping(array):
            what = "has elements that share memory"
        else:
            continue
        raise RuntimeError(
            f"The {i}th input {what}. gradcheck only supports inputs that are non-overlapping to be able to compute "
            "the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
        )
    return wanted


def _overlapping(array: Any) -> bool:
    """Return whether two elements of the array share memory."""
    offsets = np.zeros((1,), np.int64)
    for length, step in zip(array.shape, array.strides):
        offsets = (offsets[:, None] + np.arange(length) * step).reshape(-1)
    return bool(len(np.unique(offsets)) < array.size)
