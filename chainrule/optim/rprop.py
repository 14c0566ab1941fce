"""Rprop: steps that depend on the signs of the gradients alone."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer, as_real, check_options


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993): a step grows while the sign stays, and shrinks where it changes.

    Args:
        params: what to optimize (see :class:`Optimizer`).
        lr: the first step.
        etas: the factors by which steps shrink and grow.
        step_sizes: the smallest and the largest step.
        maximize: go up.
        capturable, foreach: accepted; they change no number in PyTorch.
        differentiable: True is refused.
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
        """One step of one parameter."""
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
