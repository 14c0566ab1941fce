"""Stochastic gradient descent, with optional momentum."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.tape.numbers import is_nonzero_item
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, add_weight_decay, check_options, group_option


class SGD(Optimizer):
    """Gradient descent: w ← w − lr·b, where b is the gradient. With momentum, b ← momentum·b + (1 − dampening)·gradient.

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        momentum, dampening: see above; b is initialized with the first gradient.
        weight_decay: weight_decay·w is added to the gradient.
        nesterov: use gradient + momentum·b instead of b.
        maximize: ascend instead of descend.
        foreach, fused: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.

    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = cr.optim.SGD([w], lr=0.1)
    >>> (w ** 2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable, **{"momentum value": momentum})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**options, "nesterov": nesterov, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        grad = add_weight_decay(grad, p, group)
        if is_nonzero_item(group, "momentum"):
            momentum = group_option(group, "momentum", p)
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = grad.detach().clone()
            else:
                state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            buffer = state["momentum_buffer"]
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        p.sub_(grad * group_option(group, "lr", p))
