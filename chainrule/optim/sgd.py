"""Gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.tape.numbers import nonzero
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, check_options, option, penalized


class SGD(Optimizer):
    """w ← w − lr·b, where b is the gradient, or with momentum b ← momentum·b + (1 − dampening)·gradient.

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate.
        momentum, dampening: as above; b starts as the first gradient.
        weight_decay: this times w is added to the gradient.
        nesterov: take gradient + momentum·b in place of b.
        maximize: go up.
        foreach, fused: accepted; they change no number in PyTorch.
        differentiable: True is refused.

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
        """One step of one parameter."""
        grad = penalized(grad, p, group)
        if nonzero(group, "momentum"):
            momentum = option(group, "momentum", p)
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = grad.detach().clone()
            else:
                state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            buffer = state["momentum_buffer"]
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        p.sub_(grad * option(group, "lr", p))
