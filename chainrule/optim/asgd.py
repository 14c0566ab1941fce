"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.ops import creation
from chainrule._src.tape.numbers import map_numbers
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, add_weight_decay, as_real, check_options, group_option


class ASGD(Optimizer):
    """Gradient descent that averages the parameters in ``state[w]["ax"]`` (Polyak and Juditsky, 1992).

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the initial learning rate; it decays as lr / (1 + lambd·lr·t)^alpha.
        lambd: the decay rate of w and of the learning rate.
        alpha: the exponent of the learning rate's decay.
        t0: the step at which averaging starts.
        weight_decay: weight_decay·w is added to the gradient.
        maximize: ascend instead of descend.
        foreach, capturable: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, weight_decay, differentiable)
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        if not state:
            first = {"step": 0.0, "eta": float(group["lr"]), "mu": 1.0}
            state.update({name: creation.tensor(number) for name, number in first.items()}, ax=creation.zeros_like(p))
        state["step"].add_(1)
        items, constants = (state["step"], state["eta"]), (group["lambd"], group["alpha"], group["t0"])
        shrink, eta, following, mu = map_numbers(_factors, p, items, (group_option(group, "lr"),), *constants)
        grad = add_weight_decay(grad, p, group)
        p, average = as_real(p), as_real(state["ax"])
        p.mul_(shrink)
        p.sub_(as_real(grad) * eta)
        if state["mu"] == 1:
            average.copy_(p)
        else:
            average.add_(p.sub(average).mul_(state["mu"]))
        state["eta"].fill_(following)
        state["mu"].fill_(mu)


def _factors(step: float, eta: float, lr: float, shrinking: float, alpha: float, t0: float) -> tuple[float, ...]:
    """Return the decay factor of w, the learning rates of this step and the next, and the weight in the next average."""
    following = lr / (1 + shrinking * lr * step) ** alpha
    return 1 - shrinking * eta, eta, following, 1 / max(1, step - t0)
