"""Learning rate schedules compared with their formulas, and epoch by epoch with PyTorch."""

from __future__ import annotations

import copy
import math

import pytest

from behaviour import leaf, torch

optim = torch.optim


def made(library, make, lr=1.0, **options):
    """Return an optimizer and its schedule."""
    optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=lr, **options)
    return optimizer, make(library.optim.lr_scheduler, optimizer)


def rates_of(library, make, epochs, lr=1.0):
    """Return the learning rate in each epoch."""
    optimizer, schedule = made(library, make, lr)
    found = []
    for _ in range(epochs):
        found.append(optimizer.param_groups[0]["lr"])
        assert schedule.get_last_lr() == found[-1:]
        optimizer.step()
        schedule.step()
    return found


HALF = math.sqrt(0.5)
BY_FORMULA = {
    "step": (lambda s, o: s.StepLR(o, 2, 0.1), [1, 1, 0.1, 0.1, 0.01]),
    "milestones": (lambda s, o: s.MultiStepLR(o, [1, 3, 3], 0.5), [1, 0.5, 0.5, 0.125, 0.125]),
    "exponential": (lambda s, o: s.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
    "lambda": (lambda s, o: s.LambdaLR(o, lambda e: 1 / (1 + e)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
    "multiplied": (lambda s, o: s.MultiplicativeLR(o, lambda e: 1 / e), [1, 1, 1 / 2, 1 / 6, 1 / 24]),
    "constant": (lambda s, o: s.ConstantLR(o, 0.25, 2), [0.25, 0.25, 1, 1]),
    "linear": (lambda s, o: s.LinearLR(o, 0.2, 1.0, 4), [0.2, 0.4, 0.6, 0.8, 1, 1]),
    "linear down": (lambda s, o: s.LinearLR(o, 1.0, 0.0, 4), [1, 0.75, 0.5, 0.25, 0, 0]),
    "polynomial": (lambda s, o: s.PolynomialLR(o, 4, 2.0), [1, 9 / 16, 1 / 4, 1 / 16, 0, 0]),
    "cosine": (
        lambda s, o: s.CosineAnnealingLR(o, 4, 0.2),
        [0.2 + 0.4 * (1 + c) for c in (1, HALF, 0, -HALF, -1, -HALF, 0, HALF, 1, HALF)],
    ),
    "restarts": (
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2),
        [(1 + c) / 2 for c in (1, 0, 1, HALF, 0, -HALF, 1)],
    ),
    "one cycle": (
        lambda s, o: s.OneCycleLR(o, 8.0, 8, pct_start=0.5, anneal_strategy="linear", div_factor=4, final_div_factor=2),
        [2, 4, 6, 8, 8 - 7 / 4, 8 - 14 / 4, 8 - 21 / 4, 1],
    ),
    "one cycle, cosine": (
        lambda s, o: s.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=5, pct_start=0.3, div_factor=10.0),
        [0.1, 0.55, *(1e-5 + (1 - 1e-5) * (1 + math.cos(math.pi * k / 7)) / 2 for k in range(8))],
    ),
    "triangles": (
        lambda s, o: s.CyclicLR(o, 1.0, 3.0, 2, cycle_momentum=False),
        [1, 2, 3, 2, 1, 2, 3, 2, 1],
    ),
    "triangles, halved": (
        lambda s, o: s.CyclicLR(o, 1.0, 5.0, 1, 3, "triangular2", cycle_momentum=False),
        [1, 5, 1 + 8 / 3, 1 + 4 / 3, 1, 3, 1 + 4 / 3, 1 + 2 / 3, 1, 2],
    ),
    "triangles, decaying": (
        lambda s, o: s.CyclicLR(o, 1.0, 3.0, 2, mode="exp_range", gamma=0.5, cycle_momentum=False),
        [1, 1 + 0.5, 1 + 2 / 4, 1 + 1 / 8, 1],
    ),
    "triangles, scaled": (
        lambda s, o: s.CyclicLR(o, 1.0, 3.0, 1, scale_fn=lambda cycle: cycle, cycle_momentum=False),
        [1, 3, 1, 5, 1, 7],
    ),
    "warm up, then down": (
        lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.5, total_iters=2), s.ExponentialLR(o, 0.5)], [3]),
        [0.5, 0.75, 1, 1, 0.5, 0.25],
    ),
    "three in a row": (
        lambda s, o: s.SequentialLR(
            o, [s.ConstantLR(o, 0.5, 9), s.StepLR(o, 1, 0.5), s.CosineAnnealingLR(o, 2)], milestones=[1, 3]
        ),
        [0.5, 1, 0.5, 1, 0.5, 0],
    ),
    "at once": (
        lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.5)]),
        [0.5, 0.25, 0.25, 0.125],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_FORMULA)
def test_formulas(name):
    make, rates = BY_FORMULA[name]
    assert rates_of(torch, make, len(rates)) == pytest.approx(rates, abs=1e-15)
    if name != "one cycle":
        own = "cycle" in name or "triangles" in name
        assert rates_of(torch, make, len(rates), 3.0)[0] == pytest.approx(rates[0] * (1 if own else 3))


@pytest.mark.parametrize("name", BY_FORMULA)
def test_states(name):
    make, _ = BY_FORMULA[name]
    (first, one), (second, other) = made(torch, make), made(torch, make)
    for _ in range(3):
        first.step()
        one.step()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.step()
    for _ in range(3):
        one.step()
        other.step()
        assert one.get_last_lr() == other.get_last_lr() == [second.param_groups[0]["lr"]]


@pytest.mark.parametrize("name", ["step", "exponential", "linear", "cosine", "polynomial", "milestones", "multiplied"])
def test_going_on_from_an_epoch(name):
    make, _ = BY_FORMULA[name]
    optimizer, schedule = made(torch, make)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    lr, scheduler = schedule.get_last_lr(), type(schedule)
    options = {"step": (2, 0.1), "milestones": ([1, 3, 3], 0.5), "exponential": (0.5,), "linear": (0.2, 1.0, 4),
               "polynomial": (4, 2.0), "cosine": (4, 0.2), "multiplied": (lambda e: 1 / e,)}[name]  # fmt: skip
    again = scheduler(optimizer, *options, last_epoch=2)
    assert again.last_epoch == 3
    if name == "milestones":  # the recurrence multiplies again, like PyTorch's
        assert again.get_last_lr() == [lr[0] / 4]
    else:
        assert again.get_last_lr() == pytest.approx(lr)


def test_one_cycle_moves_momentum_the_other_way():
    optimizer, schedule = made(
        torch, lambda s, o: s.OneCycleLR(o, 1.0, 5, pct_start=0.6, anneal_strategy="linear", base_momentum=0.5,
                                         max_momentum=0.9), momentum=0.3
    )  # fmt: skip
    found = []
    for _ in range(5):
        found.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    assert found == pytest.approx([0.9, 0.7, 0.5, 0.7, 0.9])
    adam = optim.Adam([leaf(1.0)])
    optim.lr_scheduler.OneCycleLR(adam, 1.0, 5)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)
    with pytest.raises(ValueError, match="Tried to step 6 times"):
        schedule.step()


PLATEAUS = {
    "low": ({"patience": 1}, [5, 4, 4, 4, 4, 4, 1], [1, 1, 1, 0.1, 0.1, 0.01, 0.01]),
    "high": ({"mode": "max", "patience": 0, "factor": 0.5}, [1, 2, 2, 3, 1], [1, 1, 0.5, 0.5, 0.25]),
    "cooldown": ({"patience": 0, "cooldown": 2, "factor": 0.5}, [1, 1, 1, 1, 1], [1, 0.5, 0.5, 0.5, 0.25]),
    "relative": ({"patience": 0, "factor": 0.5, "threshold": 0.1}, [1, 0.95, 0.89], [1, 0.5, 0.5]),
    "absolute": (
        {"patience": 0, "factor": 0.5, "threshold": 0.1, "threshold_mode": "abs"},
        [10, 9.95, 9.8], [1, 0.5, 0.5],
    ),
    "bounded": ({"patience": 0, "min_lr": 0.3}, [1, 1, 1], [1, 0.3, 0.3]),
    "nan": ({"patience": 0, "factor": 0.5}, [1, math.nan, 0.5], [1, 0.5, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateaus(name):
    options, numbers, rates = PLATEAUS[name]
    optimizer, schedule = made(torch, lambda s, o: s.ReduceLROnPlateau(o, **options))
    assert schedule.get_last_lr() == [1.0]
    found = []
    for number in numbers:
        schedule.step(torch.tensor(number))
        found += schedule.get_last_lr()
    assert found == pytest.approx(rates) and optimizer.param_groups[0]["lr"] == found[-1]
    _, again = made(torch, lambda s, o: s.ReduceLROnPlateau(o, **options))
    again.load_state_dict(schedule.state_dict())
    assert (again.best, again.num_bad_epochs, again.last_epoch) == (
        schedule.best, schedule.num_bad_epochs, len(numbers)
    )  # fmt: skip


def test_several_groups_and_rates_that_are_tensors():
    rate = torch.tensor(0.5)
    optimizer = optim.SGD([{"params": [leaf(1.0)], "lr": 2.0}, {"params": [leaf(1.0)]}], lr=rate)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    schedule.step()
    assert schedule.get_last_lr() == [1.0, 0.25] and optimizer.param_groups[1]["lr"] is rate and rate == 0.25
    with pytest.raises(ValueError, match=r"same length|max_lr"):
        optim.lr_scheduler.OneCycleLR(optimizer, [1.0, 2.0, 3.0], 5)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda s, o: s.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda s, o: s.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda s, o: s.LinearLR(o, 0.0), ValueError, "Starting multiplicative factor expected"),
        (lambda s, o: s.LinearLR(o, 0.1, 2.0), ValueError, "Ending multiplicative factor expected"),
        (lambda s, o: s.ConstantLR(o, 2.0), ValueError, "Constant multiplicative factor expected"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda s, o: s.ReduceLROnPlateau(o, "least"), ValueError, "mode least is unknown"),
        (lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown"),
        (lambda s, o: s.OneCycleLR(o, 1.0), ValueError, "You must define either total_steps OR"),
        (lambda s, o: s.OneCycleLR(o, 1.0, -1), ValueError, "Expected positive integer total_steps"),
        (lambda s, o: s.OneCycleLR(o, 1.0, 9, pct_start=2.0), ValueError, "Expected float between 0 and 1 pct_start"),
        (lambda s, o: s.OneCycleLR(o, 1.0, 9, anneal_strategy="x"), ValueError, "anneal_strategy must be"),
        (lambda s, o: s.CyclicLR(o, 0.1, 1.0, mode="square"), ValueError, "mode is invalid and scale_fn is None"),
        (lambda s, o: s.CyclicLR(o, [0.1, 0.2], 1.0), ValueError, "must have the same length"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0"),
        (lambda s, o: s.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "one more than the number of milestone"),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError, "does not support `ReduceLROnPlateau`"),
        (lambda s, o: s.ExponentialLR(o, 0.5, last_epoch=3), KeyError, "initial_lr"),
    ],
)
def test_refusals(make, kind, words):
    with pytest.raises(kind, match=words):
        made(torch, make)


def test_triangles_move_momentum_the_other_way():
    optimizer, schedule = made(
        torch, lambda s, o: s.CyclicLR(o, 0.1, 1.0, 2, base_momentum=0.5, max_momentum=0.9), momentum=0.3
    )
    found = []
    for _ in range(5):
        found.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    assert found == pytest.approx([0.9, 0.7, 0.5, 0.7, 0.9])


class Amplitude:
    """An amplitude with a state."""

    factor = 1.0

    def __call__(self, cycle):
        return self.factor


def test_the_state_of_an_amplitude_is_saved():
    make = lambda s, o: s.CyclicLR(o, 1.0, 3.0, 1, scale_fn=Amplitude(), cycle_momentum=False)
    (_, one), (_, other) = made(torch, make), made(torch, make)
    one._scale_fn_custom = one.__dict__.get("_scale_fn_custom")  # PyTorch's name
    (one._scale_fn_custom or one._scale_fn).factor = 2.0
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert other.scale_fn(1) == 2


def test_ones_own_schedule():
    class Halves(optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            assert self._get_lr_called_within_step
            return [base * 0.5**self._step_count for base in self.base_lrs]

    optimizer, schedule = made(torch, lambda s, o: Halves(o))
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.25]


AGAINST = {
    **{name: make for name, (make, _) in BY_FORMULA.items() if name != "one cycle"},
    "cosine odd": lambda s, o: s.CosineAnnealingLR(o, 3, 0.01),
    "restarts longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.05),
    "three phases": lambda s, o: s.OneCycleLR(o, 0.7, 23, three_phase=True),
    "cycle": lambda s, o: s.OneCycleLR(o, 0.7, 23),
    "triangles of other lengths": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 3, 4, "exp_range", 0.9, cycle_momentum=False),
    "warm cosine": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.01, total_iters=5), s.CosineAnnealingLR(o, 15)], milestones=[5]
    ),
    "restarts in a row": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o), s.CosineAnnealingWarmRestarts(o, 4), s.PolynomialLR(o)], milestones=[4, 12]
    ),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", AGAINST)
def test_the_same_numbers_as_pytorchs(name):
    real = pytest.importorskip("torch")
    import chainrule as cr

    epochs = 10 if name == "one cycle, cosine" else 23
    assert rates_of(cr, AGAINST[name], epochs, 0.3) == rates_of(real, AGAINST[name], epochs, 0.3)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["step", "milestones", "exponential", "constant", "linear", "polynomial", "cosine"])
def test_the_same_numbers_at_any_epoch(name):
    real = pytest.importorskip("torch")
    import chainrule as cr

    def at(library):
        _, schedule = made(library, BY_FORMULA[name][0], 0.3)
        found = []
        for epoch in (7, 2, 0, 5):
            schedule.step(epoch)
            found += schedule.get_last_lr()
        return found

    assert at(cr) == at(real)
