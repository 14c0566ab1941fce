"""Forward mode on tensors, with the API of ``torch.autograd.forward_ad``.

``chainrule.autograd.forward_ad`` exports the public names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule._src.api.grad_mode import ModeContext
from chainrule._src.interpreters.dual import FORWARD, Dual
from chainrule._src.messages import errors
from chainrule._src.table.shape import alias
from chainrule._src.tape.levels import STACK, open_level
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.arguments import interpreter_content


def enter_dual_level() -> int:
    """Open the level of forward mode, and return its number, 0. :class:`dual_level` opens and closes it.

    Raises:
        RuntimeError: a level is open already.
    """
    if FORWARD.level:
        raise errors.nested_dual_level()
    FORWARD.level = open_level("forward_ad.dual_level", Dual, lift_leaves=False)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level. Dual tensors that are still alive become ordinary tensors: their primals.

    Raises:
        RuntimeError: no level is open, or ``level`` is not the open one.
    """
    if not FORWARD.level:
        raise errors.dual_level_not_open()
    inner = FORWARD.level in STACK.levels and STACK.levels[-1] is not FORWARD.level
    if inner or level not in (None, 0):
        raise errors.dual_level_not_last()
    FORWARD.level.close()
    FORWARD.end()


class dual_level(ModeContext):
    """A context manager (or decorator) inside of which tensors can have tangents.

    >>> import chainrule as cr
    >>> from chainrule.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cr.tensor([1., 2.]), cr.tensor([1., 0.]))
    ...     forward_ad.unpack_dual(x ** 3).tangent
    tensor([3., 0.])
    """

    __module__ = "chainrule.autograd.forward_ad"

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: a tensor without its tangent, and the tangent (or None)."""

    primal: Tensor
    tangent: Tensor | None


UnpackedDualTensor.__module__ = "chainrule.autograd.forward_ad"


def _check_level(level: int | None) -> None:
    if level not in (None, 0):
        raise errors.invalid_dual_level(level)
    if not FORWARD.level:
        raise errors.no_dual_level() if level is None else errors.invalid_dual_level(level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the values of ``tensor`` and a tangent, the direction of differentiation.

    Both keep their history: primals and tangents of results can be differentiated with respect to ``tensor`` and ``tangent``.

    Args:
        tensor: of a floating or complex dtype.
        tangent: of the same shape; it is cast to the same dtype.

    Raises:
        RuntimeError: no level is open; the shapes differ; ``tensor`` or ``tangent`` already has a tangent; or a real tensor
            has a complex tangent.
        ValueError: a dtype is integer or boolean.
        TypeError: an argument is not a tensor.

    >>> import chainrule as cr
    >>> from chainrule.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     forward_ad.make_dual(cr.tensor([1., 2.]), cr.tensor([3., 4.])).exp()
    tensor([2.7183, 7.3891], tangent=tensor([ 8.1548, 29.5562]))
    """
    _check_level(level)
    for which, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise errors.dual_not_tensor("make_dual", which, value)
        if value.dtype.kind not in "fc":
            raise errors.dual_dtype(which, value)
    if tensor.shape != tangent.shape:
        raise errors.dual_shape(tensor, tangent)
    if tangent.dtype != tensor.dtype:
        if tensor.dtype.kind != "c" and tangent.dtype.kind == "c":
            raise errors.dual_complex_tangent(tensor, tangent)
        tangent = tangent.to(tensor.dtype)
    if LOCAL.mode.inference:
        return alias(tensor)
    if _has_tangent(tensor):
        raise errors.dual_already()
    if _has_tangent(tangent):
        raise errors.dual_tangent_moves()
    return wrap(Dual(_part(tensor, primal=True), _part(tangent), FORWARD.level))


def _dual_of(tensor: Tensor) -> Any:
    data = tensor._raw
    return data if type(data) is Dual and data.level == FORWARD.level and FORWARD.level else None


def _has_tangent(tensor: Tensor) -> bool:
    dual = _dual_of(tensor)
    return dual is not None and dual.tangent is not None


def _part(tensor: Tensor, primal: bool = False) -> Any:
    """Return a tensor as a part of a Dual: the tensor if it is on the tape, else its data."""
    dual = _dual_of(tensor)
    if dual is not None:
        inner = dual.primal
        return alias(inner) if primal and isinstance(inner, Tensor) and inner.requires_grad else inner
    return alias(tensor) if primal and tensor._edge is not None else interpreter_content(tensor)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal and the tangent of a tensor, as a named tuple.

    Returns:
        ``(primal, tangent)``; the tangent is None if the tensor has none, and outside of a level.

    >>> import chainrule as cr
    >>> from chainrule.autograd import forward_ad
    >>> forward_ad.unpack_dual(cr.tensor(1.))
    UnpackedDualTensor(primal=tensor(1.), tangent=None)
    """
    if not isinstance(tensor, Tensor):
        raise errors.dual_not_tensor("unpack_dual", "dual", tensor)
    dual = _dual_of(tensor)
    if dual is None:
        return UnpackedDualTensor(tensor, None)
    tangent = dual.tangent if _is_fwd_grad_enabled() else None
    if ACTIVE_MODES and LOCAL.watch is not None:
        LOCAL.watch.result_tangent(tangent)
    return UnpackedDualTensor(tensor_of(dual.primal), None if tangent is None else tensor_of(tangent))


def _is_fwd_grad_enabled() -> bool:
    return FORWARD.enabled and not LOCAL.mode.inference


class _set_fwd_grad_enabled(ModeContext):
    """Switch the computation of tangents on or off inside ``dual_level``."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.previous = FORWARD.enabled
        FORWARD.enabled = mode

    def clone(self) -> ModeContext:
        return _set_fwd_grad_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        FORWARD.enabled = self.previous
