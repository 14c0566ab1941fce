"""Learning rates that change from epoch to epoch: in steps, or as a function says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule import errors
from chainrule.optim.optimizer import Optimizer

__all__ = ["ExponentialLR", "LRScheduler", "LambdaLR", "StepLR"]


class LRScheduler:
    """The base of schedules: ``get_lr`` gives the learning rates of the groups in epoch ``last_epoch``."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch >= 0 and "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rate of each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group, as it was set."""
        return self._last_lr

    def step(self) -> None:
        """The next epoch begins."""
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule was."""
        self.__dict__.update(state_dict)


class StepLR(LRScheduler):
    """The learning rate times ``gamma`` in every epoch that is a multiple of ``step_size``."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, or ``gamma`` times that."""
        change = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [group["lr"] * self.gamma if change else group["lr"] for group in self.optimizer.param_groups]


class ExponentialLR(StepLR):
    """The learning rate times ``gamma`` in every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        super().__init__(optimizer, 1, gamma, last_epoch)


class LambdaLR(LRScheduler):
    """The first learning rate times what a function of the epoch gives.

    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = cr.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Any], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The products."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
