"""Adam and AdamW: divide the running mean of the gradients by the root of the running mean of their squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.arrays.types import TensorLike
from chainrule._src.ops import elementwise
from chainrule._src.tape.numbers import map_numbers, number_part
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import (
    Group,
    Optimizer,
    add_weight_decay,
    as_real,
    check_betas,
    check_options,
    count_step,
    first_beta,
    group_option,
    update_mean,
)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        betas: the decay rates of the two running means.
        eps: added to the root.
        weight_decay: weight_decay·w is added to the gradient.
        amsgrad: divide by the largest running mean of squares so far.
        maximize: ascend instead of descend.
        decoupled_weight_decay: scale w by 1 − lr·weight_decay instead (AdamW).
        foreach, capturable, fused: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.

    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = cr.optim.Adam([w], lr=0.1)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     (w ** 2).sum().backward()
    ...     optimizer.step()
    >>> bool((w.abs() < 0.01).all())
    True
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable, **{"epsilon value": eps})
        check_betas(betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**options, "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        count_step(state, p, "exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"])
        beta1, beta2, weight_decay = first_beta(group), number_part(group, "betas", 1), group["weight_decay"]
        shrink, bias, rate = map_numbers(
            _factors, p, (state["step"],), (group_option(group, "lr"), beta1), beta2, weight_decay
        )
        if weight_decay and group["decoupled_weight_decay"]:
            p.mul_(shrink)
        else:
            grad = add_weight_decay(grad, p, group)
        mean, squares, grad = as_real(state["exp_avg"]), as_real(state["exp_avg_sq"]), as_real(grad)
        update_mean(mean, grad, beta1)
        squares.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            largest = as_real(state["max_exp_avg_sq"])
            squares = largest.copy_(elementwise.maximum(largest, squares))
        denominator = (squares.sqrt() / bias).add_(group["eps"])
        as_real(p).sub_(mean / denominator * rate)


def _factors(step: float, lr: TensorLike, beta1: float, beta2: float, weight_decay: float) -> tuple[TensorLike, ...]:
    """Return the weight-decay factor of w, the bias correction of the root, and the step size."""
    return 1 - lr * weight_decay, (1 - beta2**step) ** 0.5, lr / (1 - beta1**step)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017); arguments are those of :class:`Adam`."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **{**options, "decoupled_weight_decay": True})
