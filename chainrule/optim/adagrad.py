"""Adagrad and Adadelta: gradients over the root of the sum, or of the mean, of their squares."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.arrays.types import Params
from chainrule._src.ops import creation
from chainrule._src.tape.numbers import numbers
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, as_real, check_options, count, option, penalized


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate.
        lr_decay: in step t it is lr / (1 + (t − 1)·lr_decay).
        weight_decay: this times w is added to the gradient.
        initial_accumulator_value: what the sums of squares start from.
        eps: is added to the root.
        maximize: go up.
        foreach, fused: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
            self._begin(p, self.state[p])

    def _begin(self, p: Tensor, state: Params) -> None:
        start = self.defaults["initial_accumulator_value"]
        state["step"] = creation.tensor(0.0)
        state["sum"] = creation.full_like(p, complex(start, start) if p.is_complex() else start)

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """One step of one parameter."""
        if not state:
            self._begin(p, state)
        state["step"].add_(1)
        grad = penalized(grad, p, group)
        (lr,) = numbers(_decayed, p, (state["step"],), (option(group, "lr"),), group["lr_decay"])
        p, grad, squares = as_real(p), as_real(grad), as_real(state["sum"])
        squares.addcmul_(grad, grad, value=1)
        p.sub_(grad / squares.sqrt().add_(group["eps"]) * lr)


def _decayed(step: float, lr: float, decay: float) -> tuple[float, ...]:
    return (lr / (1 + (step - 1) * decay),)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps as large as the last ones were, in proportion to the gradient.

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: a factor of the steps.
        rho: how much of each mean is kept in a step.
        eps: is added to both means.
        weight_decay: this times w is added to the gradient.
        maximize: go up.
        foreach, capturable: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
        """One step of one parameter."""
        count(state, p, "square_avg", "acc_delta")
        grad = penalized(grad, p, group)
        keep, eps, grad = group["rho"], group["eps"], as_real(grad)
        squares, steps = as_real(state["square_avg"]), as_real(state["acc_delta"])
        squares.mul_(keep).addcmul_(grad, grad, value=1 - keep)
        step = steps.add(eps).sqrt_().div_(squares.add(eps).sqrt_()).mul_(grad)
        steps.mul_(keep).addcmul_(step, step, value=1 - keep)
        as_real(p).sub_(step * option(group, "lr", p))
