"""The library's objects, used alternately in compiled and eager calls: optimizers, schedulers, modules, generators, settings."""

from __future__ import annotations

import copy
import importlib
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import function_trace
from chainrule._src.compiling.guards.watch import StateWatch
from chainrule._src.messages.source_locations import PACKAGE

nn, optim = cr.nn, cr.optim
recorded = importlib.import_module("chainrule._src.compiling.compiled")
OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "Adam, amsgrad": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.5),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p, lr=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: optim.RAdam(p, lr=0.1),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.1),
}
SCHEDULERS = {
    "StepLR": lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5),
    "ExponentialLR": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "LinearLR": lambda o: optim.lr_scheduler.LinearLR(o, total_iters=3),
    "MultiStepLR": lambda o: optim.lr_scheduler.MultiStepLR(o, [2, 3], 0.1),
    "LambdaLR": lambda o: optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (1 + k)),
    "OneCycleLR": lambda o: optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=12),
}
X = cr.tensor(np.random.default_rng(0).normal(size=(6, 3)), dtype=cr.float32)
Y = cr.tensor(np.random.default_rng(1).normal(size=(6, 1)), dtype=cr.float32)


def network():
    cr.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def trained(make, schedule, how):
    """Return weights and losses after six steps, each called as in ``how``: "c" compiled, "e" eager."""
    model = network()
    optimizer = make(model.parameters())
    scheduler = None if schedule is None else schedule(optimizer)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), Y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled, losses = cr.compile(step), []
    for kind in how:
        losses.append((compiled if kind == "c" else step)().item())
        if scheduler is not None:
            scheduler.step()
    return losses, [p.detach().clone() for p in model.parameters()], compiled


def same(found, wanted):
    assert found[0] == wanted[0]
    for a, b in zip(found[1], wanted[1], strict=True):
        assert cr.equal(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["cccccc", "ceceec", "ecccec"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, how):
    same(trained(OPTIMIZERS[name], None, how), trained(OPTIMIZERS[name], None, "eeeeee"))


OVER_A_MODEL = {
    "parameters": lambda model: sum((p**2).sum() for p in model.parameters()),
    "named parameters": lambda model: sum((p**2).sum() for name, p in model.named_parameters() if "weight" in name),
    "modules": lambda model: sum(m.weight.sum() for m in model.modules() if isinstance(m, nn.Linear)),
    "children": lambda model: sum(m.bias.sum() for m in model.children() if hasattr(m, "bias")),
    "state": lambda model: sum(x.sum() for x in model.state_dict().values()),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", OVER_A_MODEL)
def test_functions_that_go_over_a_model_are_recorded(name):
    """Duplicates are removed without comparing addresses, which cannot be recorded."""
    model, over = network(), OVER_A_MODEL[name]
    model.append(model[0])  # shared
    compiled = cr.compile(lambda: over(model))
    for _ in range(2):
        assert cr.equal(compiled(), over(model))
    assert compiled.recordings
    model[2] = nn.Linear(4, 1)
    assert cr.equal(compiled(), over(model)), "a layer that was replaced is seen"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name):
    make = lambda p: optim.SGD(p, lr=0.1, momentum=0.9)
    same(trained(make, SCHEDULERS[name], "cccecc"), trained(make, SCHEDULERS[name], "eeeeee"))


def of_layers(make, schedule, compiled, steps=20):
    """Return losses, parameters and buffers after steps with dropout, batch norm and clipping; and the calls."""
    cr.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 2), nn.BatchNorm1d(2, affine=False), nn.Dropout(0.2), nn.Linear(2, 1, bias=False)
    )
    optimizer = make(model.parameters())
    scheduler = schedule(optimizer)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    call, losses = cr.compile(step) if compiled else step, []
    for _ in range(steps):
        losses.append(call(X, Y).item())
        scheduler.step()
    return losses, [x.detach().clone() for x in (*model.parameters(), *model.buffers())], call


CYCLE = {**SCHEDULERS, "OneCycleLR": lambda o: optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=40)}
STEPS = [
    *[(name, "ExponentialLR") for name in OPTIMIZERS],
    *[(name, "OneCycleLR") for name in ("SGD, momentum", "Adam", "NAdam")],
]


@pytest.mark.parametrize(("name", "schedule"), STEPS)
def test_a_training_step_is_recorded_once(name, schedule, monkeypatch):
    runs = []
    monkeypatch.setattr(
        recorded, "trace_function", lambda *args: runs.append(1) or function_trace.trace_function(*args)
    )
    found = of_layers(OPTIMIZERS[name], CYCLE[schedule], True)
    same(found, of_layers(OPTIMIZERS[name], CYCLE[schedule], False))
    assert not found[2]._eager and 1 <= len(found[2].recordings) <= 2 and len(runs) <= 3


def test_other_options_than_numbers_are_seen():
    """A learning rate that becomes a tensor, a weight decay, and an additional group."""

    def run(compiled):
        w, v = cr.ones(3, requires_grad=True), cr.ones(2, requires_grad=True)
        optimizer = optim.Adam([w], lr=0.1)

        def step():
            optimizer.zero_grad()
            ((w * w).sum() + (v**4).sum()).backward()
            optimizer.step()

        call, found = cr.compile(step) if compiled else step, []
        group = optimizer.param_groups[0]
        changes = (
            lambda: group.update(lr=0.3), lambda: group.update(lr=1), lambda: group.update(lr=cr.tensor(0.05)),
            lambda: group["lr"].fill_(0.5), lambda: group.update(lr=0.1, weight_decay=0.2),
            lambda: group.update(betas=(0.5, 0.9)), lambda: optimizer.add_param_group({"params": [v], "lr": 0.01}),
            lambda: optimizer.load_state_dict(optimizer.state_dict()),
        )  # fmt: skip
        for change in changes:
            for _ in range(3):
                call()
                found.append((w.detach().clone(), v.detach().clone()))
            change()
        return found

    for a, b in zip(run(True), run(False), strict=True):
        assert cr.equal(a[0], b[0]) and cr.equal(a[1], b[1])


def test_parameters_without_axes():
    for name in OPTIMIZERS:
        ways = []
        for compiled in (True, False):
            w = cr.tensor(0.7, requires_grad=True)
            optimizer = OPTIMIZERS[name]([w])

            def step():
                optimizer.zero_grad()  # noqa: B023
                (w * w * 0.3).backward()  # noqa: B023
                optimizer.step()  # noqa: B023

            call = cr.compile(step) if compiled else step
            ways.append([(call(), w.item())[1] for _ in range(8)])
        assert ways[0] == ways[1], name


def test_modules_are_compiled_in_place():
    model, twin = network(), network()
    model.compile()
    ours, theirs = optim.Adam(model.parameters()), optim.Adam(twin.parameters())
    for _ in range(4):
        for each, optimizer in ((model, ours), (twin, theirs)):
            optimizer.zero_grad()
            nn.functional.mse_loss(each(X), Y).backward()
            optimizer.step()
        assert all(map(cr.equal, model.parameters(), twin.parameters()))
    assert list(model.state_dict()) == list(twin.state_dict()) and model._compiled_call.recordings
    assert copy.deepcopy(model)._compiled_call is None
    outside = cr.compile(twin)
    assert len(list(outside.parameters())) == 4 and outside.eval().training is twin.training is False


def test_parameters_are_told_apart_while_a_step_is_recorded():
    model = network()

    def step():
        model.zero_grad()
        nn.functional.mse_loss(model(X), Y).backward()
        return sum(p.grad.sum() for p in model.parameters())

    compiled = cr.compile(step)
    assert [compiled().item() for _ in range(3)] == [step().item()] * 3 and compiled.recordings


MODULES = {
    "Dropout": lambda: nn.Dropout(0.5),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "LayerNorm": lambda: nn.LayerNorm(3),
    "Linear": lambda: nn.Linear(3, 3),
    "Sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.3), nn.BatchNorm1d(3)),
}
CHANGES = {
    "eval": lambda m: m.eval(),
    "train": lambda m: m.train(),
    "weights in place": lambda m: [p.data.mul_(2) for p in m.parameters()],
    "weights replaced": lambda m: [setattr(p, "data", p.data + 1) for p in m.parameters()],
    "requires_grad_": lambda m: m.requires_grad_(False),
    "a hook": lambda m: m.register_forward_hook(lambda module, args, out: out * 3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, change):
    def outputs(compiled):
        cr.manual_seed(0)
        model = MODULES[name]()
        called = cr.compile(lambda x: model(x)) if compiled else model
        found = []
        for k in range(6):
            if k == 3:
                CHANGES[change](model)
            found.append(called(X).detach())
        return found, [b.clone() for b in model.buffers()]

    for found, wanted in zip(outputs(True), outputs(False), strict=True):
        for a, b in zip(found, wanted, strict=True):
            assert cr.equal(a, b)


def test_a_weight_that_is_replaced_and_an_attribute_that_forward_names():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.k = nn.Linear(3, 1), 2.0

        def forward(self, x):
            return self.layer(x) * self.k

    net = Net()
    compiled = cr.compile(net)
    for change in (lambda: None, lambda: setattr(net, "k", 5.0), lambda: setattr(net, "layer", nn.Linear(3, 1)),
                   lambda: setattr(net.layer, "weight", nn.Parameter(cr.ones(1, 3)))):  # fmt: skip
        change()
        for _ in range(3):
            assert cr.equal(compiled(X), net(X))


def test_generators_and_settings():
    own = cr.Generator()
    f = lambda x: x + cr.rand(3) * cr.rand(3, generator=own) + cr.tensor(0.1)

    def drawn(called):
        found = []
        for k in range(6):
            if k % 2 == 0:
                cr.manual_seed(k), own.manual_seed(k)
            cr.set_default_dtype(cr.float64 if k > 3 else cr.float32)
            found.append(called(cr.zeros(3)))
        cr.set_default_dtype(cr.float32)
        return found

    for a, b in zip(drawn(cr.compile(f)), drawn(f), strict=True):
        assert a.dtype == b.dtype and cr.equal(a, b)


def test_a_recording_that_fails_leaves_all_as_it_was():
    w = cr.ones(2, requires_grad=True)
    twin = cr.ones(2, requires_grad=True)
    calls = []

    def make(p):
        optimizer = optim.Adam([p], lr=0.1)

        def step(fail):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
            if fail:
                raise ValueError("no")
            calls.append(1)
            return p.detach().clone()

        return step, optimizer

    (ours, first), (theirs, second) = make(w), make(twin)
    compiled = cr.compile(ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fail in (True, False, True, False):
            for step in (compiled, theirs):
                try:
                    step(fail)
                except ValueError:
                    pass
            assert cr.equal(w, twin) and len(calls) % 2 == 0
            assert repr(first.state_dict()["state"]) == repr(second.state_dict()["state"])


def test_rules_that_chainrule_compiles_are_not_watched(monkeypatch):
    watched, enter = [], StateWatch.enter

    def noted(watch, frame):
        result = enter(watch, frame)
        watched.extend([frame.f_code.co_filename] if result else [])
        return result

    monkeypatch.setattr(StateWatch, "enter", noted)
    x = np.linspace(0.1, 0.9, 3)
    derivative = cr.hessian(lambda x: np.sum(np.sin(x) ** 3))
    assert np.array_equal(cr.compile(derivative)(x), derivative(x))
    assert watched and not [name for name in watched if name.startswith(PACKAGE)]
