"""Variants of Adam.

Adamax uses a decaying maximum of the gradients instead of the mean of squares, NAdam uses Nesterov momentum, and RAdam
omits the root until enough steps have been averaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.ops import creation, elementwise
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


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2014).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        betas: the decay rates of the running mean and of the running maximum.
        eps: added to the gradients' absolute values before the maximum.
        weight_decay: weight_decay·w is added to the gradient.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable, **{"epsilon value": eps})
        check_betas(betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        count_step(state, p, "exp_avg", "exp_inf")
        grad = add_weight_decay(grad, p, group)
        beta1, beta2 = first_beta(group), number_part(group, "betas", 1)
        grad, mean, largest = as_real(grad), as_real(state["exp_avg"]), as_real(state["exp_inf"])
        update_mean(mean, grad, beta1)
        largest.copy_(elementwise.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        (rate,) = map_numbers(_rate, p, (state["step"],), (group_option(group, "lr"), beta1))
        as_real(p).sub_(mean / largest * rate)


def _rate(step: float, lr: float, beta1: float) -> tuple[float, ...]:
    return (lr / (1 - beta1**step),)


def _shrink_factor(lr: Any, weight_decay: float) -> tuple[Any, ...]:
    return (1 - lr * weight_decay,)


class _MomentOptimizer(Optimizer):
    """The base of variants that keep Adam's two running means."""

    def _update_moments(
        self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Update both means; return the parameter, its gradient and the means, as real views of complex tensors."""
        count_step(state, p, "exp_avg", "exp_avg_sq")
        beta1, beta2 = first_beta(group), number_part(group, "betas", 1)
        p, grad, mean, squares = as_real(p), as_real(grad), as_real(state["exp_avg"]), as_real(state["exp_avg_sq"])
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p.mul_(*map_numbers(_shrink_factor, p, (), (group_option(group, "lr"),), group["weight_decay"]))
        else:
            grad = add_weight_decay(grad, p, group)
        update_mean(mean, grad, beta1)
        squares.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return p, grad, mean, squares


class NAdam(_MomentOptimizer):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        betas: the decay rates of the two running means.
        eps: added to the root.
        weight_decay: weight_decay·w is added to the gradient.
        momentum_decay: the rate at which the momentum approaches beta1.
        decoupled_weight_decay: scale w by 1 − lr·weight_decay instead.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[object], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_options(
            lr, weight_decay, differentiable, **{"epsilon value": eps, "momentum_decay value": momentum_decay}
        )
        check_betas(betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        more = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **more})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        if not state:
            state["mu_product"] = creation.tensor(1.0)
        p, grad, mean, squares = self._update_moments(p, grad, group, state)
        product, step = state["mu_product"], state["step"]
        rest = first_beta(group), number_part(group, "betas", 1), group["momentum_decay"]
        product.mul_(*map_numbers(_momentum, product, (step,), rest))
        bias, of_grad, of_mean = map_numbers(_rates, p, (product, step), (group_option(group, "lr"), *rest))
        root = squares.div(bias).sqrt().add_(group["eps"])
        p.sub_(grad / root * of_grad)
        p.sub_(mean / root * of_mean)


def _momentum(step: float, beta1: float, beta2: float, decay: float) -> tuple[float, ...]:
    return (beta1 * (1 - 0.5 * 0.96 ** (step * decay)),)


def _rates(product: float, step: float, lr: float, beta1: float, beta2: float, decay: float) -> tuple[float, ...]:
    """Return the bias correction of the mean of squares, and the factors of the gradient and of the mean."""
    (mu,), (following,) = (_momentum(t, beta1, beta2, decay) for t in (step, step + 1))
    return 1 - beta2**step, lr * (1 - mu) / (1 - product), lr * following / (1 - product * following)


class RAdam(_MomentOptimizer):
    """Adam without the division by the root until the mean of squares averages enough steps (Liu and others, 2019).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the learning rate.
        betas: the decay rates of the two running means.
        eps: added to the root.
        weight_decay: weight_decay·w is added to the gradient.
        decoupled_weight_decay: scale w by 1 − lr·weight_decay instead.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable, **{"epsilon value": eps})
        check_betas(betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        p, _, mean, squares = self._update_moments(p, grad, group, state)
        bias, root, reliable, rectified = map_numbers(
            _factors, p, (state["step"],), (first_beta(group),), number_part(group, "betas", 1)
        )
        change = mean / bias * group_option(group, "lr", p)
        if reliable:
            change = change * (squares.sqrt().add_(group["eps"]).reciprocal() * root) * rectified
        p.sub_(change)


def _factors(step: float, beta1: float, beta2: float) -> tuple[float, ...]:
    """Return both bias corrections, whether the mean of squares is reliable, and the rectification factor."""
    bias = 1 - beta2**step
    limit = 2 / (1 - beta2) - 1  # limit of the number of averaged steps, ρ∞ in the paper
    length = limit - 2 * step * beta2**step / bias  # current number of averaged steps, ρₜ
    reliable = length > 5
    rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5 if reliable else 1.0
    return 1 - beta1**step, bias**0.5, float(reliable), rectified
