"""Modules: parameters, printing, saving, copying and conversion."""

from __future__ import annotations

import copy
import inspect
import io
import math
import pickle

import numpy as np
import pytest

from behaviour import OURS, differs, torch
from chainrule.nn.stateless import _OfFunction

nn, F = torch.nn, torch.nn.functional
OF_FUNCTIONS = [layer.__name__ for layer in _OfFunction.__subclasses__()]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.Tanh(), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.register_parameter("unused", None)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale + self.shift


NAMES = ["scale", "first.weight", "first.bias", "rest.1.weight"]


def names(pairs):
    return [name for name, _ in pairs]


# -- parameters, buffers and submodules --------------------------------------------------------------------------------


def test_names_of_what_is_owned():
    net = Net()
    assert names(net.named_parameters()) == NAMES and len(list(net.parameters())) == 4
    assert names(net.named_buffers()) == ["shift", "scratch"]
    assert names(net.named_children()) == ["first", "rest"]
    assert names(net.named_modules()) == ["", "first", "rest", "rest.0", "rest.1"]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert names(net.named_parameters(prefix="net")) == [f"net.{name}" for name in NAMES]
    assert list(net.state_dict()) == ["scale", "shift", "first.weight", "first.bias", "rest.1.weight"]
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale" and net.unused is None
    assert {"first", "scale", "shift", "forward"} <= set(dir(net))


def test_shared_parameters_come_once():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    net = nn.Sequential(a, b, a)
    assert names(net.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1", "2"]
    assert len(net.state_dict()) == 6


def test_deepcopy_keeps_what_is_shared():
    a = nn.Linear(2, 2)
    net = copy.deepcopy(nn.Sequential(a, a))
    assert net[0] is net[1] and net[0] is not a and net[0].weight is not a.weight
    assert isinstance(net[0].weight, nn.Parameter)


def test_only_parameters_are_parameters():
    module = nn.Module()
    module.leaf = torch.ones(2, requires_grad=True)
    module.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    assert names(module.named_parameters()) == ["frozen"]
    assert not isinstance(module.leaf, nn.Parameter) and isinstance(module.frozen, nn.Parameter)
    for other in (copy.copy(module.frozen), copy.deepcopy(module.frozen), pickle.loads(pickle.dumps(module.frozen))):
        assert isinstance(other, nn.Parameter)
    for other in (module.frozen * 1, module.frozen.detach(), module.frozen.data):
        assert not isinstance(other, nn.Parameter)
    assert repr(module.frozen) == "Parameter containing:\ntensor([1., 1.])"


def test_assignments():
    net = Net()
    with pytest.raises(TypeError, match=r"as parameter 'scale' \(torch.nn.Parameter or None expected\)"):
        net.scale = torch.ones(2)
    with pytest.raises(TypeError, match=r"as child module 'first' \(torch.nn.Module or None expected\)"):
        net.first = 3
    net.shift = torch.ones(2)
    assert net.state_dict()["shift"].tolist() == [1.0, 1.0]
    net.shift = nn.Parameter(torch.ones(2))
    assert "shift" in names(net.named_parameters()) and "shift" not in names(net.named_buffers())
    net.scale = None
    net.number = 3
    net.number = nn.Linear(1, 1)
    assert isinstance(net.number, nn.Module) and "number" not in net.__dict__
    del net.first
    assert not hasattr(net, "first")
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing


def test_init_comes_first():
    class Hasty(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Hasty()
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


def test_containers():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.Tanh(), nn.Tanh()])
    assert len(layers) == 4 and isinstance(layers[-1], nn.Tanh) and isinstance(layers[1:3], nn.ModuleList)
    layers[1] = nn.Tanh()
    assert [type(m) for m in layers[1:]] == [nn.Tanh] * 3
    named = nn.ModuleDict({"a": nn.Linear(1, 2)})
    named["b"] = nn.ReLU()
    assert list(named) == ["a", "b"] == list(named.keys()) and "a" in named and len(named.items()) == 2
    assert names(copy.deepcopy(named).items()) == ["a", "b"]
    chain = nn.Sequential({"up": nn.Linear(1, 3), "act": nn.ReLU()}) if OURS else nn.Sequential(named.a, named.b)
    assert len(chain[:1]) == 1 and isinstance(chain[:1], nn.Sequential) and isinstance(chain[1], nn.ReLU)
    assert nn.Sequential()(3) == 3


def test_hooks():
    layer, seen = nn.Linear(2, 1), []
    handle = layer.register_forward_hook(lambda m, args, out: seen.append((m is layer, len(args), out.shape)))
    before = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    assert layer(torch.ones(2)).tolist() == layer.bias.tolist() and seen == [(True, 1, (1,))]
    handle.remove()
    before.remove()
    with layer.register_forward_hook(lambda m, args, out: out * 0):
        assert layer(torch.ones(2)).tolist() == [0.0]
    assert layer(torch.ones(2)).tolist() != [0.0] and len(seen) == 1


def doubled():
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return layer


def gradients_seen(register, change=None):
    """Return the arguments of a layer's hook and x's gradient, after the hook may have changed it."""
    layer, seen, x = doubled(), [], torch.ones(1, 2, requires_grad=True)
    show = lambda gradients: [None if g is None else g.flatten().tolist() for g in gradients]

    def hook(module, *gradients):
        seen.append([show(g) for g in gradients])
        return None if change is None else change(gradients[0])

    getattr(layer, register)(hook)
    layer(x).sum().backward()
    return seen, show([x.grad]), layer.weight.grad.flatten().tolist()


def test_backward_hooks():
    full, before = "register_full_backward_hook", "register_full_backward_pre_hook"
    assert gradients_seen(full) == ([[[[4.0, 6.0]], [[1.0, 1.0]]]], [[4.0, 6.0]], [1.0] * 4)
    assert gradients_seen(full, lambda g: (g[0] * 10,))[1:] == ([[40.0, 60.0]], [1.0] * 4)
    assert gradients_seen(full, lambda g: (None,))[1] == [None]
    assert gradients_seen(before) == ([[[[1.0, 1.0]]]], [[4.0, 6.0]], [1.0] * 4)
    assert gradients_seen(before, lambda g: (g[0] * 3,))[1:] == ([[12.0, 18.0]], [3.0] * 4)
    for register, what in ((full, "grad_input, got 2"), (before, "grad_output, got 2")):
        with pytest.raises(RuntimeError, match=f"returned an invalid number of {what}, but expected 1"):
            gradients_seen(register, lambda g: (g[0], g[0]))


def test_backward_hooks_of_several_values():
    class Product(nn.Module):
        def forward(self, a, b, factor):
            return a * b * factor, a.sum()

    seen, a, b = [], torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    module = Product()
    for name in "mid", "last":
        module.register_full_backward_hook(lambda m, at_inputs, at_outputs, name=name: seen.append(name))
    module.register_full_backward_hook(lambda m, *gradients: seen.append(gradients), prepend=True)
    module(a, b, 2.0)[1].backward()
    ((at_inputs, at_outputs), *names) = seen
    assert names == ["mid", "last"] and at_outputs[0] is None and at_outputs[1].item() == 1
    assert at_inputs[0].tolist() == [1.0, 1.0] and at_inputs[1].tolist() == [0.0, 0.0] and at_inputs[2] is None


def test_backward_hooks_without_gradients_of_inputs():
    layer, seen = doubled(), []
    handle = layer.register_full_backward_hook(lambda m, *gradients: seen.append(gradients))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        layer(torch.ones(1, 2)).sum().backward()
    assert seen[0][0] == (None,)
    with torch.no_grad():
        assert not layer(torch.ones(1, 2)).requires_grad
    handle.remove()
    layer(torch.ones(1, 2)).sum().backward()
    assert len(seen) == 1
    if OURS:
        with pytest.raises(NotImplementedError, match="register_full_backward_hook"):
            layer.register_backward_hook(print)


@pytest.mark.skipif(not OURS, reason="PyTorch refuses")
def test_backward_hooks_in_transformations():
    layer = doubled()
    layer.register_full_backward_hook(lambda m, at_inputs, at_outputs: (at_inputs[0] * 10,))
    slope = torch.func.grad(lambda x: (layer(x) ** 2).sum())
    X = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    expected = [[[200.0, 280.0]], [[280.0, 400.0]]]
    assert torch.vmap(slope)(X).tolist() == expected == torch.stack([slope(x) for x in X]).tolist()


@pytest.mark.skipif(not OURS, reason="of chainrule's compile")
def test_modules_with_backward_hooks_are_not_compiled():
    layer, seen, x = doubled(), [], torch.ones(1, 2, requires_grad=True)
    layer.register_full_backward_hook(lambda m, *gradients: seen.append(gradients))
    call = torch.compile(lambda x: layer(x).sum())
    with pytest.warns(UserWarning, match="has backward hooks"):
        call(x).backward()
    call(x).backward()
    assert len(seen) == 2 and x.grad.tolist() == [[8.0, 12.0]]


# -- state -----------------------------------------------------------------------------------------------------------


def test_state_goes_from_one_module_to_another():
    a, b, x = Net(), Net(), torch.randn(5, 3)
    kept = b.first.weight
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(a(x), b(x)) and b.first.weight is kept
    assert a.state_dict()["scale"].data_ptr() == a.scale.data_ptr() and not a.state_dict()["scale"].requires_grad
    assert a.state_dict(keep_vars=True)["scale"] is a.scale
    b.load_state_dict({k: v.double() for k, v in a.state_dict().items()}, assign=True)
    assert b.first.weight.dtype == torch.float64 and isinstance(b.first.weight, nn.Parameter)


def test_states_that_do_not_fit():
    state = Net().state_dict()
    state["more"] = state.pop("scale")
    state["first.bias"] = torch.ones(5)
    with pytest.raises(RuntimeError) as caught:
        Net().load_state_dict(state)
    assert str(caught.value).splitlines() == [
        "Error(s) in loading state_dict for Net:",
        '\tMissing key(s) in state_dict: "scale". ' if not OURS else '\tMissing key(s) in state_dict: "scale".',
        '\tUnexpected key(s) in state_dict: "more". ' if not OURS else '\tUnexpected key(s) in state_dict: "more".',
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([5]) from checkpoint, the shape in current "
        "model is torch.Size([4]).",
    ]
    state["first.bias"] = torch.ones(4)
    keys = Net().load_state_dict(state, strict=False)
    assert keys.missing_keys == ["scale"] and keys.unexpected_keys == ["more"]


@pytest.mark.skipif(not OURS, reason="files of ours")
@pytest.mark.parametrize("format", ["npz", "safetensors"])
def test_files(format):
    if format == "safetensors":
        pytest.importorskip("safetensors")
    a, b, file = Net(), Net(), io.BytesIO()
    optimizer = torch.optim.Adam(a.parameters(), lr=0.1)
    a(torch.ones(3)).sum().backward()
    optimizer.step()
    torch.save({"model": a.state_dict(), "optimizer": optimizer.state_dict()}, file, format=format)
    file.seek(0)
    loaded = torch.load(file)
    b.load_state_dict(loaded["model"])
    other = torch.optim.Adam(b.parameters(), lr=0.5)
    other.load_state_dict(loaded["optimizer"])
    for net, how in ((a, optimizer), (b, other)):
        net.zero_grad()
        net(torch.ones(3)).sum().backward()
        how.step()
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_modes_and_gradients():
    net = Net()
    assert net.training and not net.eval().rest[0].training and net.train().rest[1].training
    net(torch.ones(3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.abs().sum() == 0 and net.scale.grad is not None
    net.zero_grad()
    assert net.scale.grad is None
    assert not net.requires_grad_(False)(torch.ones(3)).requires_grad
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Tanh", "Linear", "Sequential", "Net"]


def test_conversion():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = net[0].weight
    net(torch.ones(2, 2)).sum().backward()
    assert net.double() is net and net[0].weight is weight and weight.dtype == torch.float64 == weight.grad.dtype
    assert net[1].running_mean.dtype == torch.float64 and net[1].num_batches_tracked.dtype == torch.int64
    assert net.to(torch.float32)(torch.ones(2, 2)).dtype == torch.float32 and net.to("cpu").float() is net
    assert isinstance(net[0].weight, nn.Parameter)


def test_other_conversions():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = net[0].weight
    net(torch.ones(2, 2)).sum().backward()
    assert net.half() is net and weight.dtype == torch.float16 == weight.grad.dtype
    assert net[1].num_batches_tracked.dtype == torch.int64
    assert net.type(torch.float64)[0].weight is weight and weight.dtype == torch.float64 == weight.grad.dtype
    assert (
        net[1].num_batches_tracked.dtype == torch.float64
        and net.type("torch.FloatTensor")[1].weight.dtype == torch.float32
    )
    assert net.cpu() is net and net._get_name() == "Sequential"
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError), match=r"(?i)cuda"):
            net.cuda()


def test_padded_sequences():
    rnn = nn.utils.rnn
    a, b = torch.arange(4.0).reshape(2, 2).requires_grad_(), torch.ones(3, 2)
    padded = rnn.pad_sequence([a, b], padding_value=7.0)
    assert padded.shape == (3, 2, 2) and padded[:, 0].tolist() == [[0, 1], [2, 3], [7, 7]]
    padded.sum().backward()
    assert a.grad.tolist() == [[1, 1], [1, 1]]
    left = rnn.pad_sequence([a, b], batch_first=True, padding_side="left")
    assert left.shape == (2, 3, 2) and left[0].tolist() == [[0, 0], [0, 1], [2, 3]]
    for batch_first in (False, True):
        parts = rnn.unpad_sequence(rnn.pad_sequence([a, b], batch_first), torch.tensor([2, 3]), batch_first)
        assert torch.equal(parts[0], a) and torch.equal(parts[1], b)
    assert rnn.pad_sequence([torch.tensor([1]), torch.tensor([2, 3])]).dtype == torch.int64
    for wrong in ([], [a, torch.ones(2, 3)]):
        with pytest.raises(RuntimeError):
            rnn.pad_sequence(wrong)
    with pytest.raises(RuntimeError, match="padding_side"):
        rnn.pad_sequence([a, b], padding_side="top")


def test_old_names_of_first_numbers():
    w = torch.empty(2, 3)
    with pytest.warns(FutureWarning, match="constant_"):
        assert nn.init.constant(w, 2.0) is w
    assert w.tolist() == [[2.0] * 3] * 2
    with pytest.raises(AttributeError):
        nn.init.kaiming


def test_paths():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    assert net.get_submodule("") is net and net.get_submodule("1.0") is net[1][0]
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("1.0.running_mean") is net[1][0].running_mean
    for ask, path in [
        (net.get_submodule, "2"),
        (net.get_submodule, "0.weight"),
        (net.get_parameter, "0.w"),
        (net.get_parameter, "1.0.running_mean"),
        (net.get_buffer, "0.weight"),
        (net.get_buffer, "3.x"),
    ]:
        with pytest.raises(AttributeError, match=path.rpartition(".")[2] if "3" not in path else "3"):
            ask(path)


def test_copies_have_parameters_of_their_own():
    net, x = Net(), torch.ones(3)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x)) and names(other.named_parameters()) == NAMES
        with torch.no_grad():
            other.scale.zero_()
        assert net.scale.sum() == 2


# -- layers ----------------------------------------------------------------------------------------------------------

PRINTED = """Net(
  (first): Linear(in_features=3, out_features=4, bias=True)
  (rest): Sequential(
    (0): Tanh()
    (1): Linear(in_features=4, out_features=2, bias=False)
  )
)"""


def test_printing():
    assert repr(Net()) == PRINTED


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: nn.ReLU(), "ReLU()"),
        (lambda: nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (lambda: nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (lambda: nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (lambda: nn.Softmax(dim=1), "Softmax(dim=1)"),
        (lambda: nn.Dropout(0.2), "Dropout(p=0.2, inplace=False)"),
        (lambda: nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (lambda: nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (lambda: nn.Identity(3), "Identity()"),
        (lambda: nn.Conv2d(1, 6, 5), "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))"),
        (
            lambda: nn.Conv1d(2, 4, 3, 2, 1, groups=2, bias=False),
            "Conv1d(2, 4, kernel_size=(3,), stride=(2,), padding=(1,), groups=2, bias=False)",
        ),
        (lambda: nn.ConvTranspose2d(4, 2, 3), "ConvTranspose2d(4, 2, kernel_size=(3, 3), stride=(1, 1))"),
        (
            lambda: nn.BatchNorm2d(3),
            "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
        ),
        (lambda: nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
        (lambda: nn.Embedding(5, 2, padding_idx=-1), "Embedding(5, 2, padding_idx=4)"),
        (lambda: nn.Embedding(5, 2, max_norm=1.0, sparse=True), "Embedding(5, 2, max_norm=1.0, sparse=True)"),
        (lambda: nn.EmbeddingBag(5, 2), "EmbeddingBag(5, 2, mode='mean')"),
        (
            lambda: nn.EmbeddingBag(5, 2, 1.0, 1.0, True, "sum", padding_idx=-1),
            "EmbeddingBag(5, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='sum', padding_idx=4)",
        ),
        (lambda: nn.RMSNorm(3), "RMSNorm((3,), eps=None, elementwise_affine=True)"),
        (
            lambda: nn.ParameterList([torch.ones(2, 3), 4]),
            "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Object of type: int\n)",
        ),
        (
            lambda: nn.ParameterDict({"a": torch.ones(2)}),
            "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2])",
        ),
        (lambda: nn.PReLU(), "PReLU(num_parameters=1)"),
    ],
)
def test_printed_layers(layer, text):
    assert repr(layer()) == text


INPUTS = {
    "CosineSimilarity": ((2, 3), (2, 3)),
    "PairwiseDistance": ((2, 3), (2, 3)),
    "GaussianNLLLoss": ((2, 3), (2, 3), (2, 3)),
    "MarginRankingLoss": ((3,), (3,), (3,)),
    "CosineEmbeddingLoss": ((2, 3), (2, 3), (2,)),
    "TripletMarginLoss": ((2, 3), (2, 3), (2, 3)),
    "TripletMarginWithDistanceLoss": ((2, 3), (2, 3), (2, 3)),
    "Fold": ((1, 4, 4),),
    "Unfold": ((1, 2, 3, 3),),
    "GLU": ((2, 4),),
    "PixelShuffle": ((1, 4, 2, 2),),
    "PixelUnshuffle": ((1, 1, 4, 4),),
    "ChannelShuffle": ((1, 4, 2, 2),),
    "Upsample": ((1, 1, 2, 2),),
    "LocalResponseNorm": ((2, 3, 4),),
}
OPTIONS = {
    "Threshold": (0.1, 2.0),
    "PixelShuffle": (2,),
    "PixelUnshuffle": (2,),
    "ChannelShuffle": (2,),
    "Fold": ((3, 3), 2),
    "Unfold": (2,),
    "LocalResponseNorm": (2,),
    "Upsample": (4,),
    "Softmax": (1,),
    "LogSoftmax": (1,),
    "Softmin": (1,),
}
CLASSES = {"CrossEntropyLoss": (4,), "NLLLoss": (4,), "MultiMarginLoss": (4,), "MultiLabelMarginLoss": (4, 3)}


def call(name):
    """Return constructor arguments of a module, and arguments for its call."""
    axes = int(name[-2]) if name.endswith("d") and name[-2].isdigit() else 0
    image = (2, 2, *[6] * axes) if axes else (4, 3)
    made = OPTIONS.get(name, (2,) if "Pool" in name else ())
    made = (2.0, 2) if name.startswith("LPPool") else made
    rng = np.random.default_rng(0)
    data = [torch.tensor(rng.uniform(0.1, 0.9, shape)) for shape in INPUTS.get(name, (image,))]
    if name in CLASSES:
        data.append(torch.tensor(rng.integers(0, 3, CLASSES[name])))
    elif name.endswith("Loss") and len(data) == 1:
        data.append(torch.tensor(rng.uniform(0.1, 0.9, image)).round() if "Multi" in name else data[0] * 0.5)
    return made, data


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name", [n for n in OF_FUNCTIONS if "Unpool" not in n and "ropout" not in n])
def test_modules_of_functions(name):
    made, data = call(name)
    x = data[0].requires_grad_()
    module = getattr(nn, name)(*made).eval()
    out = module(*data)
    out = out[0] if isinstance(out, tuple) else out
    keys = {function.replace("_", ""): function for function in dir(F) if not function.endswith("_")}
    key = name.lower().replace("bce", "binarycrossentropy").replace("upsample", "interpolate")
    function = getattr(F, keys.get(key) or keys[key.removesuffix("loss")])
    again = function(*data, *made)
    assert torch.equal(out, again[0] if isinstance(again, tuple) else again)
    assert torch.autograd.grad(out.sum(), x)[0].shape == x.shape
    assert not list(module.parameters()) and type(module).__name__ == name


def test_max_unpool():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    values, where = nn.MaxPool2d(2, return_indices=True)(x)
    assert nn.MaxUnpool2d(2)(values, where).sum() == values.sum()


def test_dropout_reads_the_mode():
    layer, x = nn.Dropout(0.5), torch.ones(1000)
    assert 300 < (layer(x) == 0).sum() < 700 and torch.equal(layer.eval()(x), x)


def test_weights_of_losses_are_buffers():
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
    assert list(loss.state_dict()) == ["weight"] and loss.double().weight.dtype == torch.float64


def seeded(module, seed=0):
    """Return the module with parameters that are the same for every library."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.tensor(rng.uniform(-1, 1, tuple(p.shape))))
    return module.double()


LAYERS = [
    ("Linear(3, 2)", (4, 3)),
    ("Linear(3, 2, bias=False)", (3,)),
    ("Conv1d(2, 3, 2)", (1, 2, 5)),
    ("Conv2d(2, 4, (2, 3), stride=2, padding=1, groups=2)", (2, 2, 5, 6)),
    ("Conv2d(1, 2, 3, padding='same')", (1, 4, 4)),
    ("Conv3d(1, 2, 2, dilation=2)", (1, 1, 3, 4, 3)),
    ("ConvTranspose1d(2, 3, 2)", (1, 2, 3)),
    ("ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2)", (1, 2, 3, 3)),
    ("BatchNorm1d(3)", (4, 3)),
    ("BatchNorm1d(3, affine=False, momentum=None)", (4, 3, 2)),
    ("BatchNorm2d(3, track_running_stats=False)", (4, 3, 2, 2)),
    ("BatchNorm3d(1)", (2, 1, 2, 2, 2)),
    ("LayerNorm((2, 3))", (4, 2, 3)),
    ("LayerNorm(3, bias=False)", (4, 3)),
    ("LayerNorm(3, elementwise_affine=False)", (4, 3)),
    ("GroupNorm(2, 4)", (2, 4, 3)),
    ("RMSNorm(3)", (4, 3)),
    ("RMSNorm((2, 3), eps=0.1)", (4, 2, 3)),
    ("RMSNorm(3, elementwise_affine=False)", (4, 3)),
    ("PReLU(3)", (2, 3)),
    ("RNNCell(3, 2, nonlinearity='relu')", (4, 3)),
    ("GRUCell(3, 2, bias=False)", (3,)),
]


def made(text):
    return eval(text, vars(nn) | {name: getattr(nn, name) for name in dir(nn)})


@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_gradients_of_layers(text, shape):
    layer = seeded(made(text))
    x = torch.tensor(np.random.default_rng(1).uniform(-1, 1, shape), requires_grad=True)
    names = list(dict(layer.named_parameters()))

    def f(x, *params):
        fresh = copy.deepcopy(layer)  # with the original running statistics
        return torch.func.functional_call(fresh, dict(zip(names, params, strict=True)), x)

    inputs = (x, *(p.detach().clone().requires_grad_() for p in layer.parameters()))
    assert torch.autograd.gradcheck(f, inputs)


def test_batch_norm_tracks():
    layer, x = nn.BatchNorm1d(2), torch.tensor([[0.0, 1.0], [2.0, 5.0]])
    layer(x)
    assert layer.running_mean.tolist() == pytest.approx([0.1, 0.3])
    assert layer.running_var.tolist() == pytest.approx([0.9 + 0.2, 0.9 + 0.8])
    assert layer.num_batches_tracked == 1
    still = layer.eval()(x)
    assert torch.allclose(still[0], (x[0] - layer.running_mean) / (layer.running_var + 1e-5).sqrt())
    assert layer.num_batches_tracked == 1
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        layer(torch.ones(1, 2, 1, 1))


def test_embedding():
    layer = nn.Embedding(4, 2, padding_idx=1)
    out = layer(torch.tensor([[0, 1], [3, 3]]))
    assert out.shape == (2, 2, 2) and out[0, 1].tolist() == [0.0, 0.0]
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]


@pytest.mark.parametrize("text", ["Linear(100, 50)", "Conv2d(4, 8, 5)", "ConvTranspose2d(10, 40, 3)"])
def test_first_numbers(text):
    layer = made(text)
    bound = 1 / math.sqrt(math.prod(layer.weight.shape[1:]))
    assert layer.bias.abs().max() <= bound and 0.95 * bound < layer.weight.abs().max() <= bound
    assert abs(layer.weight.mean()) < 0.1 * bound


@differs("it pads in the layer")
def test_padding_modes():
    with pytest.raises(NotImplementedError, match=r"nn.functional.pad first"):
        nn.Conv1d(1, 1, 3, padding_mode="circular")


# -- init and utils --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "std", "bound"),
    [
        ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(2 / (60 + 120)), math.sqrt(3)),
        ("xavier_normal_", {}, math.sqrt(2 / (60 + 120)), None),
        ("kaiming_uniform_", {"a": math.sqrt(5)}, math.sqrt(2 / 6 / 60), math.sqrt(3)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 120), None),
        ("normal_", {"mean": 0.0, "std": 3.0}, 3.0, None),
        ("uniform_", {"a": -1.0, "b": 1.0}, 1 / math.sqrt(3), math.sqrt(3)),
        ("trunc_normal_", {"std": 2.0, "a": -2.0, "b": 2.0}, 2 * 0.5396, 2 / (2 * 0.5396)),
    ],
)
def test_distributions(name, options, std, bound):
    w = nn.Parameter(torch.empty(40, 20, 3))
    assert getattr(nn.init, name)(w, **options) is w and w.is_leaf and w.requires_grad
    assert float(w.detach().std()) == pytest.approx(std, rel=0.1) and abs(float(w.detach().mean())) < 0.2 * std
    if bound:
        assert 0.95 * bound * std < float(w.detach().abs().max()) <= 1.001 * bound * std


def test_fixed_numbers():
    w = torch.empty(2, 3)
    assert nn.init.eye_(w).tolist() == [[1, 0, 0], [0, 1, 0]] and nn.init.constant_(w, 3.0).sum() == 18
    assert nn.init.ones_(w).sum() == 6 and nn.init.zeros_(w).sum() == 0
    q = nn.init.orthogonal_(torch.empty(4, 2, 3, dtype=torch.float64), gain=2.0).reshape(4, 6)
    assert torch.allclose(q @ q.mT, 4 * torch.eye(4, dtype=torch.float64))
    assert nn.init.calculate_gain("relu") == math.sqrt(2) and nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        nn.init.xavier_uniform_(torch.ones(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("swish")


def test_vectors_of_parameters():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (6,) and vector.requires_grad
    nn.utils.vector_to_parameters(torch.arange(6.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3]] and net.bias.tolist() == [4, 5]


def test_clipping():
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    v = torch.tensor([12.0], requires_grad=True)
    ((w * w).sum() / 2 + (v * v).sum() / 2).backward()
    assert nn.utils.clip_grad_norm_([w, v], 1.3) == 13 and v.grad.item() == pytest.approx(1.2)
    nn.utils.clip_grad_value_([w, v], 0.35)
    assert w.grad.tolist() == pytest.approx([0.3, 0.35])
    assert nn.utils.clip_grad_norm_([w], 10.0, norm_type=math.inf) == pytest.approx(0.35)
    w.grad[0] = math.nan
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


@pytest.mark.skipif(not OURS, reason="messages of ours")
def test_messages_name_parameters_by_their_modules():
    net = Net()
    with pytest.raises(RuntimeError, match=r"would overwrite net.rest.1.weight, a leaf that requires grad"):
        net.rest[1].weight += 1
    assert "net.scale.grad is None" in str(net.scale.why())


@pytest.mark.skipif(not OURS, reason="of PyTorch's, tensors there have no numbers")
def test_the_meta_device_changes_nothing():
    net = Net()
    assert net.to("meta") is net and net.to(device="meta").scale.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["DataParallel"])
def test_one_device_is_no_reason_to_divide(kind):
    layer = nn.Linear(2, 1)
    assert torch.equal(getattr(nn, kind)(layer)(torch.ones(3, 2)), layer(torch.ones(3, 2)))


class Other:
    def __init__(self, *args, **kwargs):
        self.given = args, kwargs


def test_arguments_of_the_base():
    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(1, two=2).given == ((1,), {"two": 2})
    for args, kwargs in (((1,), {}), ((), {"two": 2})):
        with pytest.raises(TypeError):
            nn.Module(*args, **kwargs)


# -- parameters in lists and dictionaries; bags --------------------------------------------------------------------------


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
        self.by_name = nn.ParameterDict({"a": torch.ones(3)})


def test_parameters_in_lists_and_dictionaries_belong_to_the_module():
    net = Held()
    assert list(net.state_dict()) == ["list.0", "list.1", "by_name.a"]
    assert [p.requires_grad and p.is_leaf for p in net.parameters()] == [True] * 3
    with torch.no_grad():
        net.list[0].fill_(5.0)
    other = Held()
    other.load_state_dict(net.state_dict())
    assert other.list[0].tolist() == [5, 5] and copy.deepcopy(net).list[0].tolist() == [5, 5]


def test_lists_of_parameters():
    ones = nn.Parameter(torch.ones(2))
    params = nn.ParameterList([ones])
    params += [torch.zeros(1)]
    assert params.append("word") is params and len(params) == 3 and params[0] is ones and params[-1] == "word"
    assert isinstance(params[1], nn.Parameter) and len(list(params.parameters())) == 2
    assert isinstance(params[:2], nn.ParameterList) and len(params[1:]) == 2
    params[-1] = torch.ones(4)
    assert [p.numel() for p in params] == [2, 1, 4]
    for bad, kind in [(lambda: params[3], IndexError), (lambda: params[-4], IndexError), (lambda: params(), RuntimeError),
                      (lambda: params.extend(torch.ones(2)), TypeError), (lambda: params.extend(3), TypeError)]:  # fmt: skip
        with pytest.raises(kind):
            bad()


def test_dictionaries_of_parameters():
    ones = nn.Parameter(torch.ones(2))
    params = nn.ParameterDict([("b", ones), ("a", torch.zeros(1))])
    assert list(params) == ["b", "a"] == list(params.keys()) and list(reversed(params)) == ["a", "b"]
    assert params["b"] is ones and params.b is ones and isinstance(params["a"], nn.Parameter) and "c" not in params
    assert params.get("c") is None and params.get("c", 3) == 3 and params.setdefault("c", torch.ones(1)).numel() == 1
    assert [p.numel() for p in params.values()] == [2, 1, 1] and len(params) == 3 and dict(params.items())["b"] is ones
    assert params.pop("a").numel() == 1 and params.popitem()[0] == "c" and list(params.state_dict()) == ["b"]
    both = params | {"d": torch.ones(5)}
    assert list(both) == ["b", "d"] and list(params) == ["b"] and list(params.copy()) == ["b"]
    params |= {"e": torch.ones(1)}
    params.update(nn.ParameterDict({"b": torch.zeros(9)}))
    assert list(params) == ["b", "e"] and params["b"].numel() == 9
    del params["b"]
    params.clear()
    assert len(params) == 0 and not list(params.parameters())
    for bad, kind in [(lambda: params["x"], (KeyError, AttributeError)), (lambda: params.popitem(), KeyError),
                      (lambda: params.update(3), TypeError), (lambda: params(), (RuntimeError, TypeError)),
                      (lambda: params.__setitem__(3, ones), TypeError)]:  # fmt: skip
        with pytest.raises(kind):
            bad()


def test_bags():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.0]])
    indices, offsets = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 3])
    for mode in ("sum", "mean", "max"):
        bags = nn.EmbeddingBag.from_pretrained(rows, mode=mode)
        assert not bags.weight.requires_grad
        assert torch.equal(bags(indices, offsets), F.embedding_bag(indices, rows, offsets, mode=mode))
    bags = nn.EmbeddingBag(3, 2, mode="sum", _weight=rows, include_last_offset=True)
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    bags(indices, torch.tensor([0, 4]), weights).sum().backward()
    assert bags.weight.grad.tolist() == [[1, 1], [2, 2], [7, 7]]
    assert nn.EmbeddingBag(5, 2, padding_idx=1).weight[1].tolist() == [0, 0]
    kept = nn.Embedding.from_pretrained(rows, freeze=False)
    assert kept.weight.requires_grad and kept(torch.tensor(1)).tolist() == [3, 4]


# -- compared with PyTorch ---------------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_layers_compute_what_pytorchs_do(text, shape):
    real = pytest.importorskip("torch")
    import chainrule as cr

    data, found = np.random.default_rng(1).uniform(-1, 1, shape), []
    for library in (real, cr):
        layer = eval(text, {name: getattr(library.nn, name) for name in (text.split("(")[0],)})
        rng = np.random.default_rng(2)
        for p in layer.parameters():
            p.data = library.tensor(rng.uniform(-1, 1, tuple(p.shape)))
        layer.double()
        x = library.tensor(data, requires_grad=True)
        out = layer(x)
        out.pow(3).sum().backward()
        state = {k: v.numpy() for k, v in layer.state_dict().items()}
        after = layer.eval()(x).detach().numpy()
        found.append((out.detach().numpy(), after, x.grad.numpy(), state, repr(layer)))
    (out, after, grad, state, text), (ours, our_after, our_grad, our_state, our_text) = found
    np.testing.assert_allclose(ours, out, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(our_after, after, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(our_grad, grad, rtol=1e-8, atol=1e-10)
    assert our_state.keys() == state.keys() and our_text == text
    for name, value in state.items():
        np.testing.assert_allclose(our_state[name], value, rtol=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_constructors_take_what_pytorchs_take(name):
    real = pytest.importorskip("torch")
    import chainrule as cr

    def of(library):
        parameters = inspect.signature(getattr(library.nn, name)).parameters.values()
        return {p.name: p.default for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}

    theirs, ours = of(real), of(cr)
    for outdated in ("min_value", "max_value", "recompute_scale_factor"):
        theirs.pop(outdated, None)
    assert list(ours.items())[: len(theirs)] == list(theirs.items())


def test_hooks_change_a_state_dict_before_it_is_loaded():
    class Renamed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)
            self.inner._register_load_state_dict_pre_hook(self.rename)
            self.calls = []

        def rename(self, state_dict, prefix, metadata, strict, missing, unexpected, messages):
            self.calls.append((prefix, strict, missing, unexpected, messages))
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")

    net = Renamed()
    old = {"inner.w": torch.ones(1, 1), "inner.bias": torch.zeros(1)}
    loaded = []
    handle = net.register_load_state_dict_post_hook(
        lambda module, keys: loaded.append((module is net, keys.missing_keys))
    )
    assert net.load_state_dict(old).missing_keys == [] and "inner.w" in old and net.inner.weight.item() == 1
    assert net.calls == [("inner.", True, [], [], [])] and loaded == [(True, [])]
    handle.remove()
    seen = []
    handle = net.inner.register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append(module is net.inner))
    net.load_state_dict(old)
    assert seen == [True] and len(loaded) == 1
    handle.remove()
    net.inner.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: rest[-1].append("refused"))
    with pytest.raises(RuntimeError, match="refused"):
        net.load_state_dict(old)
