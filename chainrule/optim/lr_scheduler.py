"""Learning rates that change from epoch to epoch: by factors, along curves, as a function says, or when nothing gets better.

Most schedules multiply what the learning rate is now, as PyTorch's do: so several of them, or the user, can change it at once.
What is said of the learning rate in closed form serves ``step(epoch)``, and where one schedule hands over to the next.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau",
    "SequentialLR", "StepLR",
]  # fmt: skip

RateFactors = Callable[[int], float] | Sequence[Callable[[int], float]]


def _set_lr(group: Group, lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].detach().fill_(float(lr))
    else:
        group["lr"] = lr


def _copied(lr: float) -> float:
    return lr.detach().clone() if isinstance(lr, Tensor) else lr


def _check_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _for_groups(name: str, optimizer: Optimizer, value: object) -> list[Any]:
    """A value for each group: what was given, if that is a list."""
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: expected {count}, got {len(values)}"
        )
    return values


class LRScheduler:
    """The base of schedules: ``get_lr`` gives the learning rates of the groups in epoch ``last_epoch``.

    Args:
        optimizer: whose learning rates these are.
        last_epoch: the epoch to go on from, with an optimizer whose state was loaded; -1 to begin.
    """

    _is_initial = False  # the step that the constructor makes
    _get_lr_called_within_step = True  # which schedules of PyTorch's users ask before they warn

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch >= 0 and "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
            group.setdefault("initial_lr", _copied(group["lr"]))
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            del self._is_initial

    def _lrs(self) -> list[float]:
        """What the learning rates are now."""
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _times(self, factor: float) -> list[float]:
        """What they are now, times a factor."""
        return [lr * factor for lr in self._lrs()]

    def get_lr(self) -> list[float]:
        """The learning rate of each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group, as it was set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """The next epoch begins, or the one that is given."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        find = self.get_lr if epoch is None else getattr(self, "_get_closed_form_lr", self.get_lr)
        for group, lr in zip(self.optimizer.param_groups, find(), strict=True):
            _set_lr(group, lr)
        self._last_lr = self._lrs()

    def state_dict(self) -> Params:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: Params) -> None:
        """Go on where another schedule was."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base's former name."""


class StepLR(LRScheduler):
    """The learning rate times ``gamma`` in every epoch that is a multiple of ``step_size``."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, or ``gamma`` times that."""
        change = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if change else self._lrs()

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The learning rate times ``gamma`` in each of the epochs ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, or ``gamma`` times that, as often as the epoch is a milestone."""
        times = self.milestones[self.last_epoch]
        return self._times(self.gamma**times) if times else self._lrs()

    def _get_closed_form_lr(self) -> list[float]:
        times = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The learning rate times ``factor`` until epoch ``total_iters``."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is; at first less, and at the end more."""
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1 / self.factor) if self.last_epoch == self.total_iters else self._lrs()

    def _get_closed_form_lr(self) -> list[float]:
        done = self.last_epoch >= self.total_iters
        return [base * (self.factor + done * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The learning rate times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, times the quotient of this factor and the last."""
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs()
        slope = self.end_factor - self.start_factor
        return self._times(1 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope))

    def _get_closed_form_lr(self) -> list[float]:
        slope, epoch = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return [base * (self.start_factor + slope * epoch / self.total_iters) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The learning rate times ``gamma`` in every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, times ``gamma``."""
        return self._lrs() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The learning rate goes to 0 in ``total_iters`` epochs, as a power of what is left of them."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What it is, times the quotient of this power and the last."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs()
        left, before = (1 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The learning rate goes to ``eta_min`` in ``T_max`` epochs along half a period of a cosine, and then back.

    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = cr.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule.step()
    >>> round(schedule.get_last_lr()[0], 12)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """What is above ``eta_min``, times the quotient of this height of the cosine and the last."""
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._lrs()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the last height was 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._lrs(), strict=True)]
        height, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        return [height / before * (lr - low) + low for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[float]:
        height = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The learning rate goes to ``eta_min`` along half a period of a cosine, and starts again from the top.

    Args:
        optimizer: whose learning rates these are.
        T_0: the epochs until the first restart.
        T_mult: how many times longer each period is than the last.
        eta_min: the lowest learning rate.
        last_epoch: the epoch to go on from.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The height of the cosine, above ``eta_min``."""
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """The next epoch begins, or the one that is given, which may be a fraction: epoch + batch / batches."""
        if epoch is None and self.last_epoch >= 0:
            epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find_period(epoch)
        super()._update_lr(math.floor(epoch))

    def _find_period(self, epoch: float) -> None:
        """Which period an epoch is in, and where in it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**n
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)


class OneCycleLR(LRScheduler):
    """The learning rate goes up to ``max_lr`` and then far down, and momentum the other way (Smith and Topin, 2017).

    Args:
        optimizer: whose learning rates these are; its own ones are not read.
        max_lr: the highest learning rate, or one for each group.
        total_steps: how many steps there will be; or ``epochs`` and ``steps_per_epoch``.
        pct_start: the part of the steps in which it goes up.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: change ``momentum``, or the first of ``betas``, between ``max_momentum`` and ``base_momentum``.
        div_factor: how many times lower than ``max_lr`` it starts.
        final_div_factor: how many times lower than that it ends.
        three_phase: go down to where it started, as long as it went up, and only then further down.
        last_epoch: the step to go on from.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_optimizer(optimizer)
        given = {"total_steps": total_steps} if total_steps is not None else {
            "epochs": epochs, "steps_per_epoch": steps_per_epoch
        }  # fmt: skip
        if None in given.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, number in given.items():
            if not isinstance(number, int) or number <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {number}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = math.prod(filter(None, given.values()))
        self.cycle_momentum, self._anneal_func_type = cycle_momentum, anneal_strategy
        up, end = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        #: the step that each phase ends at, and between which of the group's options the learning rate and momentum go
        self._phases = [(up, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))]
        if three_phase:
            down = float(2 * pct_start * self.total_steps) - 2
            self._phases.append((down, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")))
            self._phases.append((end, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
        else:
            self._phases.append((end, ("max_lr", "min_lr"), ("base_momentum", "max_momentum")))
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        values = (("max_lr", max_lr), ("max_momentum", max_momentum), ("base_momentum", base_momentum))
        options = [_for_groups(name, optimizer, value) for name, value in values]
        if last_epoch == -1:
            for group, highest, most, least in zip(optimizer.param_groups, *options, strict=True):
                start = highest / div_factor
                group.update({"initial_lr": start, "max_lr": highest, "min_lr": start / final_div_factor})
                if cycle_momentum:
                    self._set_momentum(group, most)
                    group.update({"max_momentum": most, "base_momentum": least})
        super().__init__(optimizer, last_epoch)

    def _set_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        """Between the ends of the phase that the step is in; momentum is changed on the way."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        ends = [end for end, _, _ in self._phases]
        i = next((i for i, end in enumerate(ends) if step <= end), len(ends) - 1)
        start = ends[i - 1] if i else 0.0
        part, (_, lrs, momenta) = (step - start) / (ends[i] - start), self._phases[i]
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, self._between(group[momenta[0]], group[momenta[1]], part))
        return [self._between(group[lrs[0]], group[lrs[1]], part) for group in self.optimizer.param_groups]


class LambdaLR(LRScheduler):
    """The first learning rate times what a function of the epoch gives.

    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = cr.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: RateFactors, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The products."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The learning rate of the last epoch times what a function of the epoch gives."""

    def get_lr(self) -> list[float]:
        """The products."""
        if self._is_initial:
            return self._lrs()
        return [lr * factor(self.last_epoch) for lr, factor in zip(self._lrs(), self.lr_lambdas, strict=True)]


class _Schedules(LRScheduler):
    """What is made of several schedules of one optimizer."""

    def _hold(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        kind = type(self).__name__
        if not schedulers:
            raise ValueError(f"{kind} expects at least one scheduler, but got no scheduler.")
        self._schedulers = list(schedulers)
        self.optimizer = optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        for i, scheduler in enumerate(self._schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{kind} does not support `ReduceLROnPlateau` scheduler as its `step` takes what is measured, but got one "
                    f"at index {i}: call that one's step beside this one's"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{kind} expects all schedulers to belong to the same optimizer, but the one at index {i} "
                    f"({type(scheduler).__name__}) has another"
                )

    def _undo(self) -> None:
        """Go back before the first steps, which the schedules' constructors made."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, _Schedules):
                scheduler._undo()
            else:
                scheduler.last_epoch -= 1

    def state_dict(self) -> Params:
        """The states of the schedules, and this one's own."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Params) -> None:
        """Go on where another one of such schedules was."""
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})


class ChainedScheduler(_Schedules):
    """Several schedules at once: each changes what the one before it made of the learning rate."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._hold(schedulers, optimizer)
        self._last_lr = self._lrs()

    def step(self) -> None:  # type: ignore[override]
        """The next epoch begins."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()


class SequentialLR(_Schedules):
    """One schedule after the other: each of ``milestones`` is the epoch in which the next one starts, as from its epoch 0.

    >>> import chainrule as cr
    >>> from chainrule.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    >>> phases = [ConstantLR(optimizer, factor=0.5), ExponentialLR(optimizer, gamma=0.5)]
    >>> schedule, found = SequentialLR(optimizer, phases, milestones=[2]), []
    >>> for _ in range(5):
    ...     found += schedule.get_last_lr()
    ...     schedule.step()
    >>> found
    [0.5, 0.5, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._hold(schedulers, optimizer)
        if len(milestones) != len(self._schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(self._schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """The next epoch begins."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """The learning rate times ``factor`` whenever a number has not got better for more than ``patience`` epochs.

    Args:
        optimizer: whose learning rates these are.
        mode: ``"min"``: lower numbers are better; ``"max"``: higher ones.
        factor: below 1.
        patience: how many epochs may pass without getting better.
        threshold: what is better is so by this part of the best, or with ``threshold_mode="abs"`` by this difference.
        threshold_mode: ``"rel"`` or ``"abs"``.
        cooldown: how many epochs after a change do not count.
        min_lr: no learning rate gets below this, or of each group.
        eps: smaller changes are not made.

    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = cr.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        _check_optimizer(optimizer)
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _for_groups("min_lr", optimizer, min_lr)
        self.last_epoch, self.cooldown_counter, self.num_bad_epochs = 0, 0, 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = self._lrs()

    def _is_better(self, number: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        margin = sign * self.threshold
        bound = self.best * (1 + margin) if self.threshold_mode == "rel" else self.best + margin
        return sign * number > sign * bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """An epoch is over, in which ``metrics`` was measured."""
        number = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(number):
            self.best, self.num_bad_epochs = number, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._lrs()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):  # a group was added
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"there are {len(groups)} param groups and {len(self.min_lrs)} min_lrs: give min_lrs one for the group "
                    "that was added"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_lr(group, new)


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
