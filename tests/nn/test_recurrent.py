"""Recurrent layers: their loops, shapes and errors, and comparisons with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import differs, torch

nn = torch.nn
LAYERS = [
    ("RNN(3, 2)", (4, 5, 3)),
    ("RNN(3, 2, nonlinearity='relu', bias=False)", (4, 3)),
    ("RNN(3, 2, 2, 'tanh', True, True)", (5, 4, 3)),
    ("LSTM(3, 2)", (4, 5, 3)),
    ("LSTM(3, 2, num_layers=2, bidirectional=True)", (4, 5, 3)),
    ("LSTM(3, 2, bidirectional=True, batch_first=True, bias=False)", (5, 4, 3)),
    ("GRU(3, 2, 2, dropout=0.5)", (4, 5, 3)),
    ("GRU(3, 2, bidirectional=True)", (4, 3)),
]
CELLS = ["RNNCell(3, 2)", "RNNCell(3, 2, nonlinearity='relu')", "LSTMCell(3, 2)", "GRUCell(3, 2, bias=False)"]


def made(library, text):
    layer = eval(text, {name: getattr(library.nn, name) for name in (text.split("(")[0],)}).double().eval()
    rng = np.random.default_rng(2)
    for p in layer.parameters():
        p.data = library.tensor(rng.uniform(-1, 1, tuple(p.shape)))
    return layer


def parts(out):
    return [t for part in out for t in parts(part)] if isinstance(out, tuple) else [out]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_layer_is_a_loop_of_its_cell(kind):
    layer, cell = made(torch, f"{kind}(3, 2)"), made(torch, f"{kind}Cell(3, 2)")
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x, state = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(4, 2, 3), None
    out, last = layer(x)
    for t in range(4):
        state = cell(x[t], state)
        assert torch.allclose(out[t], parts(state)[0])
    assert all(torch.allclose(a[0], b) for a, b in zip(parts(last), parts(state), strict=True))
    once, _ = layer(x[:2])
    again, _ = layer(x[2:], layer(x[:2])[1])
    assert torch.allclose(torch.cat([once, again]), out)


def test_of_one_number():
    w, u, x = 0.5, -0.3, [1.0, 2.0]
    layer = nn.RNN(1, 1, bias=False).double()
    with torch.no_grad():
        layer.weight_ih_l0.fill_(w)
        layer.weight_hh_l0.fill_(u)
    first = np.tanh(w * x[0])
    out, h = layer(torch.tensor(x, dtype=torch.float64).reshape(2, 1, 1))
    assert (
        out.flatten().tolist() == pytest.approx([first, np.tanh(w * x[1] + u * first)]) and h.item() == out[-1].item()
    )


def test_names_and_shapes():
    layer = nn.LSTM(3, 4, 2, bidirectional=True)
    names = [
        f"{n}_l{i}{d}"
        for i in (0, 1)
        for d in ("", "_reverse")
        for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    assert list(layer.state_dict()) == names and layer.weight_ih_l1.shape == (16, 8)
    assert [len(weights) for weights in layer.all_weights] == [4] * 4 and layer.flatten_parameters() is None
    out, (h, c) = layer(torch.zeros(5, 2, 3))
    assert out.shape == (5, 2, 8) and h.shape == c.shape == (4, 2, 4)
    assert repr(layer) == "LSTM(3, 4, num_layers=2, bidirectional=True)"
    assert repr(nn.RNNCell(3, 2, bias=False, nonlinearity="relu")) == "RNNCell(3, 2, bias=False, nonlinearity=relu)"
    assert max(p.detach().abs().max().item() for p in layer.parameters()) <= 0.5


@pytest.mark.parametrize("text", ["LSTM(2, 2, 2, bidirectional=True)", "GRU(2, 2)", "RNN(2, 2)"])
def test_gradients(text):
    layer = made(torch, text)
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 2, 2).requires_grad_()
    names = [name for name, _ in layer.named_parameters()]
    params = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def f(x, *params):
        return torch.func.functional_call(layer, dict(zip(names, params, strict=True)), (x,))[0]

    assert torch.autograd.gradcheck(f, (x, *params), fast_mode=True)


@pytest.mark.parametrize(
    ("run", "kind", "words"),
    [
        (lambda: nn.RNN(3, 2)(torch.zeros(4, 2, 5)), RuntimeError, "input.size.-1. must be equal to input_size"),
        (lambda: nn.LSTM(3, 2)(torch.zeros(3)), ValueError, "Expected input to be 2D or 3D"),
        (lambda: nn.GRU(3, 2)(torch.zeros(4, 5, 3), torch.zeros(1, 5, 7)), RuntimeError, "Expected hidden size"),
        (lambda: nn.GRU(3, 2)(torch.zeros(0, 5, 3)), RuntimeError, "Expected sequence length to be larger than 0"),
        (lambda: nn.RNN(3, 2, nonlinearity="sin"), ValueError, "Unknown nonlinearity 'sin'"),
        (lambda: nn.RNN(3, 2, dropout=2.0), ValueError, "dropout should be a number in range"),
        (lambda: nn.RNN(3, 0), ValueError, "hidden_size must be greater than zero"),
    ],
)
def test_refusals(run, kind, words):
    with pytest.raises(kind, match=words):
        run()


@differs("it has projections")
def test_projections_are_not_here():
    with pytest.raises(NotImplementedError, match="proj_size"):
        nn.LSTM(3, 2, proj_size=1)


@pytest.mark.oracle
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize(("text", "shape"), [*LAYERS, *((cell, (5, 3)) for cell in CELLS)])
def test_the_same_numbers_as_pytorchs(text, shape, with_state):
    real = pytest.importorskip("torch")
    import chainrule as cr

    found = []
    for library in (real, cr):
        layer, rng = made(library, text), np.random.default_rng(3)
        x = library.tensor(rng.normal(size=shape), requires_grad=True)
        state = None
        if with_state:
            shapes = [tuple(h.shape) for h in parts(layer(x) if "Cell" in text else layer(x)[1])]
            drawn = tuple(library.tensor(rng.normal(size=h)) for h in shapes)
            state = drawn if len(drawn) > 1 else drawn[0]
        out = parts(layer(x, state))
        sum(t.pow(3).sum() for t in out).backward()
        found.append([t.detach().numpy() for t in (*out, x.grad, *(p.grad for p in layer.parameters()))])
    assert repr(made(real, text)) == repr(made(cr, text))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
