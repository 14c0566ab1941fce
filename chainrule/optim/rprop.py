"""Rprop: steps that depend only on the signs of the gradients."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, as_real, check_options


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993): steps grow while a sign persists, and shrink when it changes.

    Args:
        params: the parameters (see :class:`Optimizer`).
        lr: the size of the first step.
        etas: the factors by which steps shrink and grow.
        step_sizes: the smallest and the largest step.
        maximize: ascend instead of descend.
        capturable, foreach: accepted and ignored; results in PyTorch do not depend on them.
        differentiable: True raises an error.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_options(lr, 0, differentiable)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, group: Group, state: dict[str, Tensor]) -> None:
        """Update one parameter."""
        if not state:
            lr = float(group["lr"])
            first = creation.full_like(p, complex(lr, lr) if p.is_complex() else lr)
            state.update({"step": creation.tensor(0.0), "prev": creation.zeros_like(p), "step_size": first})
        state["step"].add_(1)
        less, more = group["etas"]
        grad, last, sizes = as_real(grad), as_real(state["prev"]), as_real(state["step_size"])
        same = grad.mul(last).sign()
        factors = creation.ones_like(sizes).masked_fill(same > 0, more).masked_fill(same < 0, less)
        sizes.mul_(factors).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(same < 0, 0)
        as_real(p).addcmul_(grad.sign(), sizes, value=-1)
        last.copy_(grad)
