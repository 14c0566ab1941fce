"""Learning-rate schedulers: by factors, along curves, by a function, or when a metric stops improving.

Most schedulers multiply the current learning rate, as PyTorch's do, so that several of them (or the user) can change it.
The closed forms (``_get_closed_form_lr``) serve ``step(epoch)`` and the transitions in :class:`SequentialLR`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import Params
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Group, Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau",
    "SequentialLR", "StepLR",
]  # fmt: skip

RateFactors = Callable[[int], float] | Sequence[Callable[[int], float]]


def _set_lr(group: Group, lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].detach().fill_(float(lr))
    else:
        group["lr"] = lr


def _copy_lr(lr: float) -> float:
    return lr.detach().clone() if isinstance(lr, Tensor) else lr


def _check_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _per_group(name: str, optimizer: Optimizer, value: object) -> list[Any]:
    """Return a value for each group: the elements of a list, or one value repeated."""
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: expected {count}, got {len(values)}"
        )
    return values


class LRScheduler:
    """The base of schedulers: ``get_lr`` returns the learning rates of the groups in epoch ``last_epoch``.

    Args:
        optimizer: the optimizer whose learning rates are set.
        last_epoch: the epoch to resume from, with an optimizer whose state was loaded; -1 to start.
    """

    _is_initial = False  # True during the constructor's step
    _get_lr_called_within_step = True  # read by schedulers written for PyTorch, before they warn

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch >= 0 and "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
            group.setdefault("initial_lr", _copy_lr(group["lr"]))
        self.base_lrs = [_copy_lr(group["initial_lr"]) for group in optimizer.param_groups]
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            del self._is_initial

    def _current_lrs(self) -> list[float]:
        """Return the current learning rates."""
        return [_copy_lr(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled_lrs(self, factor: float) -> list[float]:
        """Return the current learning rates times a factor."""
        return [lr * factor for lr in self._current_lrs()]

    def get_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group, as last set by this scheduler."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or to the given one."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        find = self.get_lr if epoch is None else getattr(self, "_get_closed_form_lr", self.get_lr)
        for group, lr in zip(self.optimizer.param_groups, find(), strict=True):
            _set_lr(group, lr)
        self._last_lr = self._current_lrs()

    def state_dict(self) -> Params:
        """Return all attributes except the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: Params) -> None:
        """Resume from the state of another scheduler."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The deprecated name of the base class."""


class StepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times ``gamma`` at a multiple of ``step_size``."""
        change = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled_lrs(self.gamma) if change else self._current_lrs()

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` at each of the epochs ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times ``gamma`` for each occurrence of the epoch in ``milestones``."""
        times = self.milestones[self.last_epoch]
        return self._scaled_lrs(self.gamma**times) if times else self._current_lrs()

    def _get_closed_form_lr(self) -> list[float]:
        times = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by ``factor`` until epoch ``total_iters``."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times ``factor`` at the start and divided by it at ``total_iters``."""
        if self.last_epoch == 0:
            return self._scaled_lrs(self.factor)
        return self._scaled_lrs(1 / self.factor) if self.last_epoch == self.total_iters else self._current_lrs()

    def _get_closed_form_lr(self) -> list[float]:
        done = self.last_epoch >= self.total_iters
        return [base * (self.factor + done * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the learning rate by a factor from ``start_factor`` to ``end_factor``, over ``total_iters`` epochs."""

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
        """Return the current rates, times the ratio of this factor to the previous one."""
        if self.last_epoch == 0:
            return self._scaled_lrs(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        slope = self.end_factor - self.start_factor
        return self._scaled_lrs(1 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope))

    def _get_closed_form_lr(self) -> list[float]:
        slope, epoch = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return [base * (self.start_factor + slope * epoch / self.total_iters) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates times ``gamma``."""
        return self._current_lrs() if self._is_initial else self._scaled_lrs(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Decays the learning rate to 0 over ``total_iters`` epochs, as a power of the fraction of epochs left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times the ratio of this power to the previous one."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        left, before = (1 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._scaled_lrs((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Anneals the learning rate to ``eta_min`` over ``T_max`` epochs along half a cosine period, and then back.

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
        """Scale the part above ``eta_min`` by the ratio of this height of the cosine to the previous one."""
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._current_lrs()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the previous height was 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._current_lrs(), strict=True)]
        height, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        return [height / before * (lr - low) + low for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[float]:
        height = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneals the learning rate to ``eta_min`` along half a cosine period, then restarts from the initial rate.

    Args:
        optimizer: the optimizer whose learning rates are set.
        T_0: the number of epochs until the first restart.
        T_mult: the factor by which each period is longer than the previous one.
        eta_min: the lowest learning rate.
        last_epoch: the epoch to resume from.
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
        """Return the rates at the current position in the period."""
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to the given one, which may be a fraction: epoch + batch / batches."""
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
        """Set the length of the epoch's period and the position in it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**n
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)


class _MomentumCycle(LRScheduler):
    """The base of schedulers that also cycle the momentum, or the first of ``betas``."""

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(_MomentumCycle):
    """Raises the learning rate to ``max_lr`` and then decays it, and cycles momentum inversely (Smith and Topin, 2017).

    Args:
        optimizer: the optimizer whose learning rates are set. Its own learning rates are ignored.
        max_lr: the highest learning rate, or one for each group.
        total_steps: the number of steps; or give ``epochs`` and ``steps_per_epoch``.
        pct_start: the fraction of the steps in which the learning rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: cycle ``momentum``, or the first of ``betas``, between ``max_momentum`` and ``base_momentum``.
        div_factor: the initial learning rate is ``max_lr / div_factor``.
        final_div_factor: the final learning rate is the initial one divided by this factor.
        three_phase: decay to the initial rate in as many steps as the rise, then to the final rate.
        last_epoch: the step to resume from.
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
        #: For each phase: its last step, and the group options between which learning rate and momentum are annealed.
        self._phases = [(up, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))]
        if three_phase:
            down = float(2 * pct_start * self.total_steps) - 2
            self._phases.append((down, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")))
            self._phases.append((end, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
        else:
            self._phases.append((end, ("max_lr", "min_lr"), ("base_momentum", "max_momentum")))
        if cycle_momentum:
            self._check_momentum(optimizer)
        values = (("max_lr", max_lr), ("max_momentum", max_momentum), ("base_momentum", base_momentum))
        options = [_per_group(name, optimizer, value) for name, value in values]
        if last_epoch == -1:
            for group, highest, most, least in zip(optimizer.param_groups, *options, strict=True):
                start = highest / div_factor
                group.update({"initial_lr": start, "max_lr": highest, "min_lr": start / final_div_factor})
                if cycle_momentum:
                    self._set_momentum(group, most)
                    group.update({"max_momentum": most, "base_momentum": least})
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        """Return the rates at the step's position in its phase; also set the momentum."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        ends = [end for end, _, _ in self._phases]
        i = next((i for i, end in enumerate(ends) if step <= end), len(ends) - 1)
        start = ends[i - 1] if i else 0.0
        part, (_, lrs, momenta) = (step - start) / (ends[i] - start), self._phases[i]
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, self._anneal(group[momenta[0]], group[momenta[1]], part))
        return [self._anneal(group[lrs[0]], group[lrs[1]], part) for group in self.optimizer.param_groups]


class CyclicLR(_MomentumCycle):
    """Varies the learning rate between two bounds after every batch, and momentum inversely (Smith, 2017).

    Args:
        optimizer: the optimizer whose learning rates are set. Its own learning rates are ignored.
        base_lr, max_lr: the bounds, or one for each group.
        step_size_up: the number of steps in which the rate rises.
        step_size_down: the number of steps in which it falls; by default ``step_size_up``.
        mode: how the amplitude decays: ``"triangular"`` (not), ``"triangular2"`` (halved in each cycle), or ``"exp_range"``
            (``gamma`` to the power of the step).
        gamma: the factor of ``"exp_range"``.
        scale_fn: a function of the cycle (from 1) or of the step that returns the amplitude, instead of a mode.
        scale_mode: the argument of ``scale_fn``, ``"cycle"`` or ``"iterations"``.
        cycle_momentum: cycle ``momentum``, or the first of ``betas``, between ``max_momentum`` and ``base_momentum``.
        last_epoch: the step to resume from.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self._scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        for group, lowest in zip(optimizer.param_groups, _per_group("base_lr", optimizer, base_lr), strict=True):
            if last_epoch == -1:
                _set_lr(group, lowest)
        self.max_lrs, self.cycle_momentum = _per_group("max_lr", optimizer, max_lr), cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = _per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = _per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                for group, most in zip(optimizer.param_groups, self.max_momentums, strict=True):
                    self._set_momentum(group, most)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _per_group("base_lr", optimizer, base_lr)

    def scale_fn(self, x: float) -> float:
        """Return the amplitude of a cycle or step."""
        if self._scale_fn is not None:
            return self._scale_fn(x)
        return {"triangular": 1.0, "triangular2": 1 / (2.0 ** (x - 1)), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        """Return the rates at the step's position in its cycle; also set the momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, least, most in bounds:
                self._set_momentum(group, most - (most - least) * height * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [lowest + (highest - lowest) * height * scale for lowest, highest in pairs]

    def state_dict(self) -> Params:
        """Return all attributes except the optimizer, and functions that are not objects with a state."""
        state = super().state_dict()
        function = state.pop("_scale_fn")
        callable_object = function is not None and not isinstance(function, FunctionType)
        return {**state, "_scale_fn": dict(vars(function)) if callable_object else None}

    def load_state_dict(self, state_dict: Params) -> None:
        """Resume from the state of another scheduler."""
        state = dict(state_dict)
        function_state = state.pop("_scale_fn", None)
        super().load_state_dict(state)
        if function_state is not None:
            vars(self._scale_fn).update(function_state)


class LambdaLR(LRScheduler):
    """Sets the learning rate to the initial one times a function of the epoch.

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
        """Return the initial rates times the factors."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """Multiplies the current learning rate by a function of the epoch."""

    def get_lr(self) -> list[float]:
        """Return the current rates times the factors."""
        if self._is_initial:
            return self._current_lrs()
        return [lr * factor(self.last_epoch) for lr, factor in zip(self._current_lrs(), self.lr_lambdas, strict=True)]


class _CompositeScheduler(LRScheduler):
    """The base of schedulers that combine several schedulers of one optimizer."""

    def _set_schedulers(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        kind = type(self).__name__
        if not schedulers:
            raise ValueError(f"{kind} expects at least one scheduler, but got no scheduler.")
        self._schedulers = list(schedulers)
        self.optimizer = optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        for i, scheduler in enumerate(self._schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{kind} does not support `ReduceLROnPlateau` scheduler as its `step` takes a metric, but got one at index "
                    f"{i}: call its step separately"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{kind} expects all schedulers to belong to the same optimizer, but the one at index {i} "
                    f"({type(scheduler).__name__}) has a different one"
                )

    def _undo_initial_steps(self) -> None:
        """Undo the initial steps of the schedulers' constructors."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, _CompositeScheduler):
                scheduler._undo_initial_steps()
            else:
                scheduler.last_epoch -= 1

    def state_dict(self) -> Params:
        """Return the scheduler's own state, with the states of the combined schedulers."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Params) -> None:
        """Resume from the state of another combined scheduler."""
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})


class ChainedScheduler(_CompositeScheduler):
    """Several schedulers that all step each epoch; their changes are applied in order."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._set_schedulers(schedulers, optimizer)
        self._last_lr = self._current_lrs()

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current_lrs()


class SequentialLR(_CompositeScheduler):
    """Schedulers that run one after the other. Each of ``milestones`` is the epoch at which the next one starts.

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
        self._set_schedulers(schedulers, optimizer)
        if len(milestones) != len(self._schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(self._schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        self._undo_initial_steps()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        mode: ``"min"``: lower numbers are better; ``"max"``: higher ones.
        factor: a factor less than 1.
        patience: the number of epochs without improvement to allow.
        threshold: the minimal improvement, relative to the best value or (``threshold_mode="abs"``) absolute.
        threshold_mode: ``"rel"`` or ``"abs"``.
        cooldown: the number of epochs to ignore after a reduction.
        min_lr: the lowest learning rate, or one for each group.
        eps: the smallest change of a learning rate to apply.

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
        self.min_lrs = _per_group("min_lr", optimizer, min_lr)
        self.last_epoch, self.cooldown_counter, self.num_bad_epochs = 0, 0, 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = self._current_lrs()

    def _is_better(self, number: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        margin = sign * self.threshold
        bound = self.best * (1 + margin) if self.threshold_mode == "rel" else self.best + margin
        return sign * number > sign * bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Finish an epoch with the value ``metrics``; reduce the learning rates if it has stopped improving."""
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
        self._last_lr = self._current_lrs()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):  # a group was added
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"there are {len(groups)} param groups and {len(self.min_lrs)} min_lrs: append a value to min_lrs for the "
                    "group that was added"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_lr(group, new)


show(globals())
