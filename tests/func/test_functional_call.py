"""Modules as functions of their parameters."""

from __future__ import annotations

import pytest

from behaviour import differs, torch

nn, func = torch.nn, torch.func


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.c = nn.Linear(2, 2), nn.Linear(2, 2)
        self.c.weight = self.a.weight
        self.register_buffer("shift", torch.zeros(2))

    def forward(self, x, *, factor=1.0):
        self.shift.add_(1)
        return factor * (self.c(self.a(x)) + self.shift)


def given(module, value=1.0):
    return {name: torch.full_like(t, value) for name, t in [*module.named_parameters(), *module.named_buffers()]}


def test_the_module_is_as_it_was():
    layer = nn.Linear(2, 2)
    before = layer.weight
    out = func.functional_call(layer, {"weight": torch.eye(2)}, (torch.ones(2),))
    assert torch.equal(out, 1 + layer.bias) and layer.weight is before and isinstance(layer.weight, nn.Parameter)

    class Fails(nn.Linear):
        def forward(self, x):
            raise KeyError("on purpose")

    layer = Fails(1, 1)
    before = layer.weight
    with pytest.raises(KeyError):
        func.functional_call(layer, {"weight": torch.zeros(1, 1)}, torch.ones(1))
    assert layer.weight is before


def test_arguments_of_the_call():
    module, x = Tied(), torch.ones(2)
    values = given(module)
    assert func.functional_call(module, values, x, {"factor": 3.0}).tolist() == [27.0, 27.0]  # 3·(1·(1+2)+1·3+1+2)
    assert values["shift"].tolist() == [2.0, 2.0] and module.shift.tolist() == [0.0, 0.0]
    parts = [{k: v for k, v in values.items() if ("weight" in k) == which} for which in (True, False)]
    assert func.functional_call(module, tuple(parts), (x,)).tolist() == [10.0, 10.0]


def test_tied_weights():
    module, x = Tied(), torch.ones(2)
    zeros = {"a.weight": torch.zeros(2, 2), "a.bias": torch.zeros(2), "c.bias": torch.zeros(2)}
    assert func.functional_call(module, zeros, x).tolist() == [1.0, 1.0]
    module = Tied()
    zeros["a.weight"], own = torch.eye(2), module.c.weight.sum(1) + 1
    assert torch.allclose(func.functional_call(module, zeros, x, tie_weights=False), own)


def test_refusals():
    layer, one = nn.Linear(1, 1), {"weight": torch.ones(1, 1)}
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Linear:\s+Missing key\(s\): 'bias'."):
        func.functional_call(layer, one, torch.ones(1), strict=True)
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple dictionaries"):
        func.functional_call(layer, (one, one), torch.ones(1))
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        func.functional_call(layer, 3, torch.ones(1))


@differs("it takes no notice")
def test_refusals_of_ours():
    with pytest.raises(AttributeError, match="Linear has no parameter or buffer 'wieght'"):
        func.functional_call(nn.Linear(1, 1), {"wieght": torch.ones(1, 1)}, torch.ones(1))
    with pytest.raises(TypeError, match=r"functional_call takes an nn.Module"):
        func.functional_call(lambda x: x, {}, torch.ones(1))


def test_transformations():
    layer, x = nn.Linear(3, 1).double(), torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    params = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(params, x):
        return func.functional_call(layer, params, (x,)).sum()

    grads = func.vmap(func.grad(loss), in_dims=(None, 0))(params, x)
    assert torch.equal(grads["weight"][:, 0], x) and grads["bias"].tolist() == [[1.0], [1.0]]
    hessian = func.hessian(lambda p: loss(p, x) ** 2)(params)
    assert torch.allclose(hessian["weight"]["weight"][0, :, 0, :], 2 * torch.outer(x.sum(0), x.sum(0)))
    _, tangent = func.jvp(lambda p: loss(p, x), (params,), ({k: torch.ones_like(v) for k, v in params.items()},))
    assert tangent == x.sum() + 2


def test_ensembles():
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.BatchNorm1d(4)).eval() for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    assert params["0.weight"].shape == (3, 4, 3) and params["0.weight"].is_leaf and params["0.weight"].requires_grad
    assert buffers["2.running_mean"].shape == (3, 4) and not buffers["2.running_mean"].requires_grad
    x = torch.randn(5, 3)
    out = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    assert torch.allclose(out, torch.stack([model(x) for model in models]))


def test_models_that_do_not_stack():
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        func.stack_module_state([])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])
    with pytest.raises(RuntimeError, match="same class"):
        func.stack_module_state([nn.Linear(1, 1), nn.ReLU()])
    with pytest.raises(RuntimeError, match=r"same \.requires_grad"):
        func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)])
