"""RMSprop: divide gradients by the root of the running mean of their squares."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.tape.numbers import is_nonzero_item
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


class RMSprop(Optimizer):
    """RMSprop (Hinton's lecture 6e; Graves, 2013, with ``centered``).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        alpha: the decay rate of the running mean.
        eps: added to the root.
        weight_decay: weight_decay·w is added to the gradient.
        momentum: the factor of the previous step that is added to the current one.
        centered: divide by the standard deviation of the gradients.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        numbers = {"epsilon value": eps, "momentum value": momentum, "alpha value": alpha}
        check_options(lr, weight_decay, differentiable, **numbers)
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "momentum": momentum, "centered": centered, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        used = {"square_avg": True, "momentum_buffer": group["momentum"], "grad_avg": group["centered"]}
        count_step(state, p, *(name for name, wanted in used.items() if wanted))
        grad = add_weight_decay(grad, p, group)
        p, grad, keep = as_real(p), as_real(grad), group["alpha"]
        squares = as_real(state["square_avg"]).mul_(keep).addcmul_(grad, grad, value=1 - keep)
        if group["centered"]:
            mean = as_real(state["grad_avg"]).lerp_(grad, 1 - keep)
            squares = squares.addcmul(mean, mean, value=-1)
        root = squares.sqrt().add_(group["eps"])
        if is_nonzero_item(group, "momentum"):
            change = as_real(state["momentum_buffer"]).mul_(group_option(group, "momentum", p)).addcdiv_(grad, root)
        else:
            change = grad / root
        p.sub_(change * group_option(group, "lr", p))
