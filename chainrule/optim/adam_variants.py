"""Variants of Adam: with the largest gradient in place of the mean square (Adamax), with Nesterov's momentum (NAdam), and with
the root left out until it is reliable (RAdam)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.ops import creation, elementwise
from chainrule._src.tape.numbers import numbers, part
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import (
    Group,
    Optimizer,
    as_real,
    check_betas,
    check_options,
    count,
    first_beta,
    move,
    option,
    penalized,
)


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2014).

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate.
        betas: how much of the mean, and of the largest gradient, is kept in a step.
        eps: is added to gradients before they are compared.
        weight_decay: this times w is added to the gradient.
        maximize: go up.
        foreach, capturable: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
        """One step of one parameter."""
        count(state, p, "exp_avg", "exp_inf")
        grad = penalized(grad, p, group)
        beta1, beta2 = first_beta(group), part(group, "betas", 1)
        grad, mean, largest = as_real(grad), as_real(state["exp_avg"]), as_real(state["exp_inf"])
        move(mean, grad, beta1)
        largest.copy_(elementwise.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        (rate,) = numbers(_rate, p, (state["step"],), (option(group, "lr"), beta1))
        as_real(p).sub_(mean / largest * rate)


def _rate(step: float, lr: float, beta1: float) -> tuple[float, ...]:
    return (lr / (1 - beta1**step),)


def _kept(lr: Any, weight_decay: float) -> tuple[Any, ...]:
    return (1 - lr * weight_decay,)


class _OfMoments(Optimizer):
    """A variant that keeps Adam's two means."""

    def _means(
        self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The parameter, its gradient and both means after this step; complex numbers as pairs of real ones."""
        count(state, p, "exp_avg", "exp_avg_sq")
        beta1, beta2 = first_beta(group), part(group, "betas", 1)
        p, grad, mean, squares = as_real(p), as_real(grad), as_real(state["exp_avg"]), as_real(state["exp_avg_sq"])
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p.mul_(*numbers(_kept, p, (), (option(group, "lr"),), group["weight_decay"]))
        else:
            grad = penalized(grad, p, group)
        move(mean, grad, beta1)
        squares.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return p, grad, mean, squares


class NAdam(_OfMoments):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate.
        betas: how much of each mean is kept in a step.
        eps: is added to the root.
        weight_decay: this times w is added to the gradient.
        momentum_decay: how fast the momentum comes to beta1.
        decoupled_weight_decay: shrink w by lr·weight_decay instead.
        maximize: go up.
        foreach, capturable: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
        """One step of one parameter."""
        if not state:
            state["mu_product"] = creation.tensor(1.0)
        p, grad, mean, squares = self._means(p, grad, group, state)
        product, step = state["mu_product"], state["step"]
        rest = first_beta(group), part(group, "betas", 1), group["momentum_decay"]
        product.mul_(*numbers(_momentum, product, (step,), rest))
        bias, of_grad, of_mean = numbers(_rates, p, (product, step), (option(group, "lr"), *rest))
        root = squares.div(bias).sqrt().add_(group["eps"])
        p.sub_(grad / root * of_grad)
        p.sub_(mean / root * of_mean)


def _momentum(step: float, beta1: float, beta2: float, decay: float) -> tuple[float, ...]:
    return (beta1 * (1 - 0.5 * 0.96 ** (step * decay)),)


def _rates(product: float, step: float, lr: float, beta1: float, beta2: float, decay: float) -> tuple[float, ...]:
    """What the mean of squares is divided by, and what the gradient and the mean are multiplied with."""
    (mu,), (following,) = (_momentum(t, beta1, beta2, decay) for t in (step, step + 1))
    return 1 - beta2**step, lr * (1 - mu) / (1 - product), lr * following / (1 - product * following)


class RAdam(_OfMoments):
    """Adam that takes plain steps until the mean of squares has been taken over enough of them (Liu and others, 2019).

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the learning rate.
        betas: how much of each mean is kept in a step.
        eps: is added to the root.
        weight_decay: this times w is added to the gradient.
        decoupled_weight_decay: shrink w by lr·weight_decay instead.
        maximize: go up.
        foreach, capturable: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
        """One step of one parameter."""
        p, _, mean, squares = self._means(p, grad, group, state)
        bias, root, reliable, rectified = numbers(
            _factors, p, (state["step"],), (first_beta(group),), part(group, "betas", 1)
        )
        change = mean / bias * option(group, "lr", p)
        if reliable:
            change = change * (squares.sqrt().add_(group["eps"]).reciprocal() * root) * rectified
        p.sub_(change)


def _factors(step: float, beta1: float, beta2: float) -> tuple[float, ...]:
    """What the means are divided by, whether that of squares is reliable, and what corrects for how many steps it is over."""
    left = 1 - beta2**step
    most = 2 / (1 - beta2) - 1  # steps that the mean of squares can be over
    length = most - 2 * step * beta2**step / left  # and is
    reliable = length > 5
    rectified = ((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) ** 0.5 if reliable else 1.0
    return 1 - beta1**step, left**0.5, float(reliable), rectified
