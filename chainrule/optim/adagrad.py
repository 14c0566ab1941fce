"""Adagrad and Adadelta: divide gradients by the root of the sum, or of the running mean, of their squares."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.arrays.types import Params
from chainrule._src.ops import creation
from chainrule._src.tape.numbers import map_numbers
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import (
    Group,
    Optimizer,
    add_weight_decay,
    as_real,
    check_options,
    count_step,
    group_option,
)


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        lr_decay: the learning rate in step t is lr / (1 + (t − 1)·lr_decay).
        weight_decay: weight_decay·w is added to the gradient.
        initial_accumulator_value: the initial value of the sums of squares.
        eps: added to the root.
        maximize: ascend instead of descend.
        foreach, fused: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        start = initial_accumulator_value
        numbers = {"lr_decay value": lr_decay, "initial_accumulator_value value": start, "epsilon value": eps}
        check_options(lr, weight_decay, differentiable, **numbers)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "initial_accumulator_value": start, "maximize": maximize})
        for p in self._params():
            self._init_state(p, self.state[p])

    def _init_state(self, p: Tensor, state: Params) -> None:
        start = self.defaults["initial_accumulator_value"]
        state["step"] = creation.tensor(0.0)
        state["sum"] = creation.full_like(p, complex(start, start) if p.is_complex() else start)

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        if not state:
            self._init_state(p, state)
        state["step"].add_(1)
        grad = add_weight_decay(grad, p, group)
        (lr,) = map_numbers(_decayed_lr, p, (state["step"],), (group_option(group, "lr"),), group["lr_decay"])
        p, grad, squares = as_real(p), as_real(grad), as_real(state["sum"])
        squares.addcmul_(grad, grad, value=1)
        p.sub_(grad / squares.sqrt().add_(group["eps"]) * lr)


def _decayed_lr(step: float, lr: float, decay: float) -> tuple[float, ...]:
    return (lr / (1 + (step - 1) * decay),)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): scales each step by the running size of the previous steps.

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: a factor of the steps.
        rho: the decay rate of both running means.
        eps: added to both means.
        weight_decay: weight_decay·w is added to the gradient.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable, **{"epsilon value": eps})
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        count_step(state, p, "square_avg", "acc_delta")
        grad = add_weight_decay(grad, p, group)
        keep, eps, grad = group["rho"], group["eps"], as_real(grad)
        squares, steps = as_real(state["square_avg"]), as_real(state["acc_delta"])
        squares.mul_(keep).addcmul_(grad, grad, value=1 - keep)
        step = steps.add(eps).sqrt_().div_(squares.add(eps).sqrt_()).mul_(grad)
        steps.mul_(keep).addcmul_(step, step, value=1 - keep)
        as_real(p).sub_(step * group_option(group, "lr", p))
