"""Optimizers: their formulas, groups and states; and comparisons with PyTorch step by step."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from behaviour import OURS, leaf, torch

optim = torch.optim


def stepped(w, optimizer, steps=1):
    """Return the parameter after steps with the loss w² (so the gradient is 2w)."""
    for _ in range(steps):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w.tolist()


def test_descent():
    w = leaf(1.0, -2.0)
    assert stepped(w, optim.SGD([w], lr=0.1)) == pytest.approx([0.8, -1.6])
    w = leaf(1.0)
    assert stepped(w, optim.SGD([w], lr=0.1, maximize=True)) == pytest.approx([1.2])
    w = leaf(1.0)
    assert stepped(w, optim.SGD([w], lr=0.1, weight_decay=0.5)) == pytest.approx([1 - 0.1 * 2.5])


def test_momentum():
    w = leaf(1.0)
    optimizer = optim.SGD([w], lr=0.1, momentum=0.5, dampening=0.2)
    assert stepped(w, optimizer) == pytest.approx([0.8])  # the first gradient is not dampened
    assert stepped(w, optimizer) == pytest.approx([0.8 - 0.1 * (0.5 * 2 + 0.8 * 1.6)])
    w = leaf(1.0)
    assert stepped(w, optim.SGD([w], lr=0.1, momentum=0.5, nesterov=True)) == pytest.approx([1 - 0.1 * (2 + 0.5 * 2)])
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero dampening"):
        optim.SGD([w], lr=0.1, nesterov=True)


def test_adam():
    w = leaf(1.0, -3.0)
    assert stepped(w, optim.Adam([w], lr=0.1)) == pytest.approx([0.9, -2.9])  # the first step is lr for any gradient
    w = leaf(1.0)
    optimizer = optim.Adam([w], lr=0.1, betas=(0.5, 0.5))
    stepped(w, optimizer)
    mean, squares = 0.5 * 1.0 + 0.5 * 1.8, 0.5 * 2.0 + 0.5 * 1.8**2
    step = 0.1 * (mean / 0.75) / (math.sqrt(squares / 0.75) + 1e-8)
    assert stepped(w, optimizer) == pytest.approx([0.9 - step])
    w = leaf(2.0)
    assert stepped(w, optim.AdamW([w], lr=0.1, weight_decay=0.5)) == pytest.approx([2.0 * (1 - 0.05) - 0.1])


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("Adagrad", {"lr": 0.1}, 1 - 0.1),  # for any optimizer that divides by the gradient, the first step is lr
        ("Adamax", {"lr": 0.1}, 1 - 0.1),
        ("Rprop", {"lr": 0.1}, 1 - 0.1),
        ("Adadelta", {"lr": 0.5}, 1 - 0.5 * 2 * math.sqrt(1e-6 / (0.1 * 4 + 1e-6))),
        ("ASGD", {"lr": 0.1, "lambd": 0.5}, 1 - 0.5 * 0.1 - 0.1 * 2),
        ("RAdam", {"lr": 0.1}, 1 - 0.1 * 2),  # without a root at first
        ("NAdam", {"lr": 0.1, "momentum_decay": 0}, 1 - 0.1 * (0.55 / 0.55 + 0.45 * 0.1 / (1 - 0.45**2))),
    ],
)
def test_the_first_step_of_others(name, options, wanted):
    w = leaf(1.0)
    assert stepped(w, getattr(optim, name)([w], **options)) == pytest.approx([wanted])


def test_rprop_turns_back():
    w = leaf(1.0)
    optimizer = optim.Rprop([w], lr=0.8)
    assert stepped(w, optimizer) == pytest.approx([0.2])
    assert stepped(w, optimizer) == pytest.approx([0.2 - 0.96])  # the sign is unchanged
    assert stepped(w, optimizer) == pytest.approx(
        [0.2 - 0.96]
    )  # the sign has changed: no step, and half the step size from now on
    assert stepped(w, optimizer) == pytest.approx([0.2 - 0.96 + 0.48])


def test_asgd_averages():
    w = leaf(1.0)
    optimizer = optim.ASGD([w], lr=0.25, lambd=0.0, t0=0)
    values = [stepped(w, optimizer)[0] for _ in range(3)]
    average = optimizer.state[w]["ax"].item()
    assert values == [0.5, 0.25, 0.125] and average == pytest.approx(sum([0.25, 0.125]) / 2)


def test_lbfgs_finds_the_minimum_of_a_parabola():
    w = leaf(3.0, -4.0)
    scales = torch.tensor([1.0, 50.0], dtype=torch.float64)
    optimizer = optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=30)

    def closure():
        optimizer.zero_grad()
        loss = (scales * w * w).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9 + 50 * 16
    assert w.abs().max() < 1e-6 and optimizer.state_dict()["state"][0]["func_evals"] < 30


def test_lbfgs_refusals():
    w = leaf(1.0)
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": [w]}, {"params": [leaf(2.0)]}])
    with pytest.raises(TypeError):
        optim.LBFGS([w]).step()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer = optim.LBFGS([w], line_search_fn="armijo")
        (w * w).sum().backward()
        optimizer.step(lambda: (w * w).sum())


def test_groups():
    v, w = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([{"params": v, "lr": 0.5}, {"params": [w]}], lr=0.1)
    (v + w).sum().backward()
    optimizer.step()
    assert v.tolist() == pytest.approx([0.5]) and w.tolist() == pytest.approx([0.9])
    optimizer.add_param_group({"params": [leaf(3.0)], "lr": 1.0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1, 1.0]
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [w]})


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        (lambda: [], ValueError, "optimizer got an empty parameter list"),
        (
            lambda: leaf(1.0),
            TypeError,
            "params argument given to the optimizer should be an iterable of Tensors or dicts",
        ),
        (lambda: [3], TypeError, "optimizer can only optimize Tensors, but one of the params is"),
        (lambda: [leaf(1.0) * 2], ValueError, "can't optimize a non-leaf Tensor"),
    ],
)
def test_what_cannot_be_optimized(params, kind, words):
    with pytest.raises(kind, match=words):
        optim.SGD(params(), lr=0.1)


@pytest.mark.parametrize(
    ("name", "options"),
    [("Adadelta", {"rho": 2.0}), ("Adagrad", {"lr_decay": -1.0}), ("Adamax", {"betas": (0.9, 1.0)}),
     ("NAdam", {"momentum_decay": -1.0}), ("RAdam", {"eps": -1.0}), ("Rprop", {"etas": (0.5, 0.9)})],
)  # fmt: skip
def test_bad_numbers_of_others(name, options):
    with pytest.raises(ValueError, match="Invalid"):
        getattr(optim, name)([leaf(1.0)], **options)


@pytest.mark.parametrize("options", [{"lr": -1.0}, {"weight_decay": -1.0}, {"betas": (1.0, 0.9)}, {"eps": -1.0}])
def test_bad_numbers(options):
    with pytest.raises(ValueError, match="Invalid"):
        optim.Adam([leaf(1.0)], **options)


def test_parameters_without_gradients_stay():
    v, w = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([v, w], lr=0.1, momentum=0.9)
    (v * v).sum().backward()
    optimizer.step()
    assert w.tolist() == [1.0] and list(optimizer.state_dict()["state"]) == [0]
    optimizer.zero_grad(set_to_none=False)
    assert v.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert v.grad is None


def test_closures_are_recorded():
    w = leaf(3.0)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9
    assert w.tolist() == pytest.approx([2.4])


def test_states():
    w, v = leaf(1.0), leaf(1.0)
    one = optim.Adam([w], lr=0.1, amsgrad=True)
    stepped(w, one, 3)
    other = optim.Adam([v], lr=0.7, amsgrad=True)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    with torch.no_grad():
        v.copy_(w)
    assert stepped(v, other, 2) == stepped(w, one, 2) and other.param_groups[0]["lr"] == 0.1
    assert set(one.state_dict()["state"][0]) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.Adam([leaf(1.0), leaf(2.0)]).load_state_dict(one.state_dict())


def test_printing():
    text = repr(optim.SGD([leaf(1.0)], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n") and "    lr: 0.1\n" in text


def test_ones_own_optimizer():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(group["lr"] * p.grad.sign())

    w = leaf(1.0, -3.0)
    assert stepped(w, Sign([w], 0.5)) == [0.5, -2.5]


def test_complex_parameters():
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    optimizer = optim.Adam([z], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (z * z.conj()).real.sum().backward()
        optimizer.step()
    assert z.item() == pytest.approx(0.8 + 1.8j, abs=1e-2)


# -- compared with PyTorch -----------------------------------------------------------------------------------------------

WAYS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
    "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.05},
    "Adam amsgrad": {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True, "betas": (0.8, 0.9)},
    "AdamW": {"lr": 0.05, "weight_decay": 0.1, "maximize": True},
    "RMSprop": {"lr": 0.01},
    "RMSprop centered": {"lr": 0.01, "centered": True, "momentum": 0.8, "weight_decay": 0.1, "alpha": 0.9},
    "Adagrad": {"lr": 0.1},
    "Adagrad decay": {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True},
    "Adadelta": {},
    "Adadelta decay": {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1},
    "Adamax": {"lr": 0.05},
    "Adamax decay": {"betas": (0.7, 0.9), "weight_decay": 0.1},
    "NAdam": {"lr": 0.05, "weight_decay": 0.1},
    "NAdam decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1},
    "RAdam": {"lr": 0.05},
    "RAdam decay": {"betas": (0.8, 0.9), "weight_decay": 0.1},
    "RAdam decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True},
    "ASGD": {"lr": 0.1},
    "ASGD averaged": {"lr": 0.1, "t0": 5, "lambd": 0.01, "weight_decay": 0.1},
    "Rprop": {},
    "Rprop bounded": {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)},
    "LBFGS": {"lr": 0.1},
    "LBFGS wolfe": {"line_search_fn": "strong_wolfe"},
    "LBFGS few": {"lr": 0.5, "max_iter": 7, "max_eval": 9, "history_size": 3, "line_search_fn": "strong_wolfe"},
}


def losses(library, way, dtype, complex_parameter):
    """Return the losses of a small network, step by step."""
    rng = np.random.default_rng(0)

    def drawn(*shape):
        return library.tensor(rng.normal(size=shape), dtype=getattr(library, dtype))

    x, y = drawn(30, 4), drawn(30, 3)
    net = library.nn.Sequential(library.nn.Linear(4, 5), library.nn.Tanh(), library.nn.Linear(5, 3, bias=False))
    net.to(getattr(library, dtype)).load_state_dict(
        {"0.weight": drawn(5, 4), "0.bias": drawn(5), "2.weight": drawn(3, 5)}
    )
    z = library.view_as_complex(drawn(3, 2)).requires_grad_(complex_parameter)
    params = [*net.parameters(), *[z] * complex_parameter]
    optimizer, found = getattr(library.optim, way.split()[0])(params, **WAYS[way]), []

    def closure():
        optimizer.zero_grad()
        loss = library.nn.functional.mse_loss(net(x) + z.real, y) + z.imag.pow(2).sum()
        loss.backward()
        found.append(loss.item())
        return loss

    while len(found) < 30:
        optimizer.step(closure)
    return found[:30]


@pytest.mark.oracle
@pytest.mark.parametrize("complex_parameter", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("way", WAYS)
def test_the_same_steps_as_pytorchs(way, dtype, complex_parameter):
    real = pytest.importorskip("torch")
    import chainrule as cr

    ours, theirs = (losses(library, way, dtype, complex_parameter) for library in (cr, real))
    # rounding errors grow with the steps of L-BFGS
    growth = 1e4 if way.startswith("LBFGS") else 100
    np.testing.assert_allclose(ours, theirs, rtol=growth * np.finfo(dtype).eps)


@pytest.mark.skipif(not OURS, reason="PyTorch takes a dictionary alone")
def test_defaults_by_name():
    class Descent(optim.Optimizer):
        def __init__(self, params, lr, power=1):
            super().__init__(params, lr=lr, power=power)

        def update(self, p, grad, group, state):
            p.sub_(group["lr"] * grad ** group["power"])

    w = leaf(1.0)
    assert stepped(w, Descent([{"params": [w], "power": 2}], 0.1)) == pytest.approx([0.6])


@pytest.mark.skipif(not OURS, reason="PyTorch's steps can be differentiated")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam",
                                  "ASGD", "Rprop"])  # fmt: skip
def test_steps_are_not_differentiated(name):
    with pytest.raises(NotImplementedError, match="differentiable=True"):
        getattr(optim, name)([leaf(1.0)], differentiable=True)
    getattr(optim, name)([leaf(1.0)], differentiable=False, foreach=False)


@pytest.mark.skipif(not OURS, reason="names that are not here")
def test_what_is_not_here():
    with pytest.raises(AttributeError, match="has no attribute 'Adafactor': optim has SGD, Adam"):
        optim.Adafactor([leaf(1.0)])


def test_options_that_have_to_be_given():
    required = torch.optim.optimizer.required
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        torch.optim.Optimizer([torch.ones(1, requires_grad=True)], {"lr": required})
    groups = [{"params": [torch.ones(1, requires_grad=True)], "lr": 0.1}]
    assert torch.optim.Optimizer(groups, {"lr": required}).param_groups[0]["lr"] == 0.1
