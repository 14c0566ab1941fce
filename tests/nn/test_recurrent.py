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


PACKED = [
    "RNN(3, 2)",
    "LSTM(3, 2, 2, bidirectional=True)",
    "GRU(3, 2, bidirectional=True, bias=False)",
    "LSTM(3, 2, batch_first=True)",
]


@pytest.mark.parametrize("text", PACKED)
@pytest.mark.parametrize("lengths", [[4, 4, 2, 1], [1, 3, 4, 3]])
def test_packed_sequences_are_run_one_by_one(text, lengths):
    layer, rnn = made(torch, text), nn.utils.rnn
    x = torch.linspace(-1, 1, 48, dtype=torch.float64).reshape(4, 4, 3).sin().requires_grad_()
    sequences = [row[:n] for row, n in zip(x, lengths, strict=True)]
    shape = (layer.num_layers * (1 + layer.bidirectional), 4, 2)
    first = [torch.linspace(-1, 1, shape[0] * 8, dtype=torch.float64).reshape(shape).cos() * k for k in (1, 2)]
    for state in (None, first[: 1 + (layer.mode == "LSTM")]):
        given = None if state is None else tuple(state) if layer.mode == "LSTM" else state[0]
        out, last = layer(rnn.pack_sequence(sequences, enforce_sorted=False), given)
        assert isinstance(out, rnn.PackedSequence)
        for i, (sequence, found) in enumerate(zip(sequences, rnn.unpack_sequence(out), strict=True)):
            one = None if state is None else [h[:, i].contiguous() for h in state]
            alone, alone_last = layer(sequence, None if one is None else tuple(one) if layer.mode == "LSTM" else one[0])
            torch.testing.assert_close(found, alone)
            for h, expected in zip(parts(last), parts(alone_last), strict=True):
                torch.testing.assert_close(h[:, i], expected)
            grads = [torch.autograd.grad(out.pow(3).sum(), x, retain_graph=True)[0][i] for out in (found, alone)]
            torch.testing.assert_close(*grads)


def test_packing():
    rnn = nn.utils.rnn
    x = torch.arange(12.0).reshape(3, 4)  # (time, batch)
    packed = rnn.pack_padded_sequence(x, torch.tensor([1, 3, 2, 2]), enforce_sorted=False)
    assert packed.data.tolist() == [1, 2, 3, 0, 5, 6, 7, 9] and packed.batch_sizes.tolist() == [4, 3, 1]
    assert packed.sorted_indices.tolist() == [1, 2, 3, 0] and packed.unsorted_indices.tolist() == [3, 0, 1, 2]
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1.0, total_length=4)
    assert lengths.tolist() == [1, 3, 2, 2] and padded.tolist() == [
        [0, 1, 2, 3], [-1, 5, 6, 7], [-1, 9, -1, -1], [-1, -1, -1, -1]
    ]  # fmt: skip
    again = rnn.pack_padded_sequence(padded.T, lengths, batch_first=True, enforce_sorted=False)
    assert again.data.tolist() == packed.data.tolist()
    assert [s.tolist() for s in rnn.unpack_sequence(rnn.pack_sequence([x[:2, 0], x[:1, 1]]))] == [[0, 4], [1]]
    wide = packed.double()
    assert wide.data.dtype == torch.float64 == packed.to(torch.float64).data.dtype and not packed.is_cuda
    assert type(wide) is rnn.PackedSequence and wide.float().cpu().data.dtype == torch.float32
    data, batch_sizes, *_ = packed
    assert rnn.PackedSequence(data, batch_sizes).sorted_indices is None


@pytest.mark.parametrize(
    ("lengths", "words"),
    [([1, 2], "enforce_sorted"), ([2, 0], "greater than 0"), ([2], "len.lengths.")],
)
def test_packing_refuses(lengths, words):
    with pytest.raises(RuntimeError, match=words):
        nn.utils.rnn.pack_padded_sequence(torch.zeros(3, 2, 1), lengths)


@differs("it reads beyond the padded length")
def test_packing_refuses_lengths_beyond_the_padding():
    with pytest.raises(RuntimeError, match="at most 3"):
        nn.utils.rnn.pack_padded_sequence(torch.zeros(3, 2, 1), [9, 1])


def test_unpacking_refuses_short_lengths():
    with pytest.raises(ValueError, match="total_length"):
        nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([torch.zeros(3)]), total_length=2)


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
