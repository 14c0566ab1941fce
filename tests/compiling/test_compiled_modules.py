"""Compiled modules: they compute the same as the module, and are modules with its parameters."""

from __future__ import annotations

import copy
import pickle

import numpy as np

import chainrule as cr

nn = cr.nn


def network():
    cr.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


X = cr.tensor(np.linspace(-1, 1, 15).reshape(5, 3), dtype=cr.float32)


def test_it_is_a_module_with_the_parameters():
    plain = network()
    model = cr.compile(plain)
    assert isinstance(model, nn.Module) and model._orig_mod is plain
    assert all(a is b for a, b in zip(model.parameters(), plain.parameters(), strict=True))
    assert list(model.state_dict()) == [f"_orig_mod.{name}" for name in plain.state_dict()]
    assert cr.equal(model(X), plain(X)) and len(model.recordings) == 1
    holder = nn.ModuleList([model])
    assert len(list(holder.parameters())) == 4


def test_training_reaches_the_module():
    model, plain = cr.compile(network()), network()
    for net in (model, plain):
        optimizer = cr.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            net(X).square().mean().backward()
            optimizer.step()
    assert all(cr.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))


def test_attributes_are_the_modules():
    plain = network()
    model = cr.compile(plain)
    assert model.train() is model and plain.training and plain[1].training
    model.eval()
    assert not plain.training and not model.training and not plain[1].training
    plain.train()
    assert model.training
    model.note = 5
    assert plain.note == 5 == model.note
    del model.note
    assert not hasattr(plain, "note") and not hasattr(model, "note")
    model.double()
    assert plain[0].weight.dtype == cr.float64


def test_copies_are_compiled_modules():
    model = cr.compile(network())
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(again) is type(model) and again._orig_mod is not model._orig_mod
        assert cr.equal(again(X), model(X)) and again.recordings


def test_what_only_looks_like_a_module():
    class Looks:
        def named_parameters(self):
            return iter(())

        def __call__(self, x):
            return 2 * x

    assert cr.compile(Looks())(np.ones(1)).tolist() == [2.0]
