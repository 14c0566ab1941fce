"""Averaged gradient descent: the mean of the parameters on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule.core.tensor import Tensor
from chainrule.ops import creation
from chainrule.optim.optimizer import Group, Optimizer, as_real, check_options


class ASGD(Optimizer):
    """Gradient descent whose average, ``state[w]["ax"]``, is the result (Polyak and Juditsky, 1992).

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate, which falls from step to step: lr / (1 + lambd·lr·t)^alpha.
        lambd: how much w shrinks, and how fast the learning rate falls.
        alpha: the power in which it falls.
        t0: the step from which on the average is taken.
        weight_decay: this times w is added to the gradient.
        maximize: go up.
        foreach, capturable: accepted; they change no number in PyTorch.
        differentiable: True is refused.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable)
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        """One step of one parameter."""
        lr, shrinking = group["lr"], group["lambd"]
        if not state:
            numbers = {"step": 0.0, "eta": float(lr), "mu": 1.0}
            state.update({name: creation.tensor(number) for name, number in numbers.items()}, ax=creation.zeros_like(p))
        step = state["step"].add_(1).item()
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        p, average, eta = as_real(p), as_real(state["ax"]), state["eta"].item()
        p.mul_(1 - shrinking * eta)
        p.add_(as_real(grad), alpha=-eta)
        if state["mu"].item() == 1:
            average.copy_(p)
        else:
            average.add_(p.sub(average).mul_(state["mu"]))
        state["eta"].fill_(lr / (1 + shrinking * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))
