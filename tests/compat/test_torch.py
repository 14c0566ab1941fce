"""Programs that import torch, run with chainrule in its place, each in a separate process."""

from __future__ import annotations

import functools
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.compat.torch import version
from chainrule.compat.torch.torch_version import TorchVersion

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = '''
"""Fits a line with what programs for PyTorch import."""
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from functorch import jvp
from torch.autograd import Function
from torch.func import functional_call, vmap
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataset import Dataset

class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, g):
        return 2 * g

torch.manual_seed(0)
x = torch.linspace(-1, 1, 50).unsqueeze(1)
y = 3 * x + 0.5
model = nn.Sequential(nn.Linear(1, 1))
optimizer = optim.SGD(model.parameters(), lr=0.3)
schedule = StepLR(optimizer, 100, 0.5)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
for _ in range(300):
    ((x, y),) = loader
    optimizer.zero_grad()
    loss = F.mse_loss(Doubled.apply(model(x)), y)
    loss.backward()
    optimizer.step()
    schedule.step()
print([round(p.item(), 3) for p in model.parameters()], *sys.argv[1:])
params = dict(model.named_parameters())
import torch.autograd.gradcheck
assert torch.autograd.gradcheck(torch.sin, torch.ones(2, dtype=torch.float64, requires_grad=True))
print(vmap(lambda x: functional_call(model, params, x))(x).shape, sys.modules["torch.nn"] is nn)
import torch.distributed as dist
import torch.distributed.nn
from torch._vmap_internals import _vmap
from torch.autograd.functional import _as_tuple, _construct_standard_basis_for, _grad_postprocess, _tuple_postprocess
from torch.optim.lbfgs import _strong_wolfe
basis = _construct_standard_basis_for((x[:2], x[0]), (2, 1))
assert torch.cat(basis, 1).tolist() == torch.eye(3).tolist() and _as_tuple(x)[0] is False
assert _tuple_postprocess((1,), False) == 1 == _tuple_postprocess(((1,),), (False, False))
assert not _grad_postprocess((x.clone().requires_grad_() * 2,), False)[0].requires_grad
parabola = lambda at, step, d: (((at + step * d) ** 2).sum(), 2 * (at + step * d))
at, d = torch.tensor([3.0]), torch.tensor([-1.0])
f, g, step, trials = _strong_wolfe(parabola, at, 1.0, d, *parabola(at, 0, d), torch.tensor(-6.0))
assert f < 9 and trials >= 1 and abs(float(g)) < 6
assert torch.__name__ == "torch" and torch.__version__ == torch.version.__version__ >= (2, 13) and torch.version.cuda is None
assert not dist.is_available() and type(x).__module__ == "torch" and not torch._C._are_functorch_transforms_active()
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _pair
assert isinstance(nn.BatchNorm2d(1), _BatchNorm) and not isinstance(nn.LayerNorm(1), _BatchNorm) and _pair(3) == (3, 3) == _pair([3, 3])
assert torch.nn.modules.linear.Linear is nn.Linear and nn.modules.conv._ConvNd in nn.Conv2d.__mro__ and nn.modules.Module is nn.Module
torch._dynamo.config.suppress_errors = True
assert torch._dynamo.disable(torch.sin) is torch.sin and not torch._dynamo.is_compiling()
assert _vmap(lambda v: v * torch._C._functorch.is_batchedtensor(v))(torch.ones(2)).tolist() == [1, 1]
try:
    torch.linalg.inv(torch.zeros(2, 2))
except torch._C._LinAlgError:
    pass
try:
    import torch.onnx
except ImportError as error:
    print(error)
'''


def test_a_program_as_it_is(tmp_path: Path):
    (tmp_path / "fit.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "chainrule.compat.torch", str(tmp_path / "fit.py"), "and", "arguments"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    fitted, shape, missing = done.stdout.splitlines()
    assert fitted == "[1.5, 0.25] and arguments" and shape == "torch.Size([50, 1]) True"
    assert missing.startswith("No module named 'torch.onnx': chainrule replaces it")


NAMES = """
import sys
import warnings
warnings.simplefilter("error")
import torch
from torch import SymInt, nn, sparse_coo_tensor
from torch._jit_internal import _copy_to_script_wrapper
from torch.distributions.gamma import Gamma
from torch.distributions.half_normal import HalfNormal
from torch.distributions.multivariate_normal import MultivariateNormal
from torch.distributions.relaxed_categorical import ExpRelaxedCategorical
from torch.distributions.utils import _standard_normal, broadcast_all, lazy_property
from torch.futures import Future, collect_all
from torch.jit import script_if_tracing, trace_module
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parallel.scatter_gather import scatter
from torch.nn.utils.stateless import functional_call
from torch.serialization import MAP_LOCATION, safe_globals
from torch.torch_version import TorchVersion
from torch.types import Device, Number, _size
from torch.utils._pytree import tree_all, tree_any, tree_flatten, tree_leaves, tree_map, tree_map_only, tree_structure, tree_unflatten
from torch.utils.cpp_extension import load
from torch.utils.hooks import RemovableHandle
import torch.fx, torch.multiprocessing as mp
from importlib.util import find_spec
assert find_spec("torch") and find_spec("torch.fx") and find_spec("torch.nn") and find_spec("torch.utils.hooks")

def refused(use, *words):
    try:
        use()
    except NotImplementedError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(words)

try:
    import torch.distributions.gama
except ImportError as error:
    assert "No module named 'torch.distributions.gama'" in str(error)
assert Gamma is torch.distributions.Gamma and Future[int] is Future
refused(lambda: Future(), "torch.futures.Future is not supported", "concurrent.futures")
refused(lambda: collect_all([]), "torch.futures.collect_all")
refused(lambda: torch.fx.symbolic_trace(nn.Linear(1, 1)), "torch.fx.symbolic_trace", "chainrule.compile")
refused(lambda: mp.spawn(print), "torch.multiprocessing.spawn", "multiprocessing")
refused(lambda: scatter(1, []), "torch.nn.parallel.scatter_gather.scatter", "one process")
refused(lambda: DistributedDataParallel(nn.Linear(1, 1)), "DistributedDataParallel")
refused(lambda: load("name", []), "cpp_extension.load", "chainrule.primitive")
refused(lambda: safe_globals([]), "serialization.safe_globals")
refused(lambda: torch.sparse.FloatTensor(1), "torch.sparse.FloatTensor", "chainrule.sparse")
refused(lambda: torch.cuda.sparse.DoubleTensor(1), "torch.cuda.sparse.DoubleTensor")
refused(lambda: sparse_coo_tensor([[0]], [1.0]), "torch.sparse_coo_tensor", "dense")
assert not isinstance(torch.ones(1), (torch.sparse.FloatTensor, SymInt, torch.fx.Proxy))
assert torch.fx is sys.modules["torch.fx"]
assert issubclass(type("Own", (torch.fx.Interpreter,), {}), torch.fx.Interpreter) and torch.sparse.csr_array

layer = nn.Linear(2, 1)
for wrapper in (DataParallel(layer), nn.DataParallel(layer)):
    assert wrapper(torch.ones(3, 2)).equal(layer(torch.ones(3, 2))) and list(wrapper.state_dict()) == ["module.weight", "module.bias"]
assert functional_call(layer, {"bias": torch.ones(1), "weight": torch.zeros(1, 2)}, (torch.ones(1, 2),)).item() == 1
handle = layer.register_forward_hook(print)
assert isinstance(handle, RemovableHandle) and script_if_tracing(handle) is handle is _copy_to_script_wrapper(handle)
handle.remove()
calls = []
layer.double_of = lambda x: calls.append(torch.jit.is_tracing()) or 2 * x
assert trace_module(layer, {"double_of": torch.ones(1), "forward": torch.ones(1, 2)}) is layer and calls == [True]

import collections, dataclasses
@dataclasses.dataclass
class Leaf:
    x: int
tree = {"b": [1, None], "a": (Leaf(2), collections.namedtuple("P", "p")(3))}
leaves, spec = tree_flatten(tree)
assert leaves == [1, None, Leaf(2), 3] == tree_leaves(tree) and tree_unflatten(leaves, spec) == tree and spec == tree_structure(tree)
assert tree_map(lambda x, y: (x, y), [1, None], [2, 3]) == [(1, 2), (None, 3)] and tree_map_only(int, lambda x: -x, [1, None]) == [-1, None]
assert tree_any(lambda x: x is None, tree) and not tree_all(lambda x: x is None, tree)
assert torch._C._infer_size((2, 1), (3,)) == (2, 3) and torch._C._get_tracing_state() is None
assert torch._is_all_true(torch.ones(2, dtype=torch.bool)) and MAP_LOCATION and Device and Number and _size
torch.manual_seed(0)
a = torch.tensor([2.0, 3.0], requires_grad=True)
drawn = torch.stack([torch._standard_gamma(a) for _ in range(4000)])
assert (drawn.mean(0) - a).abs().max() < 0.15 and abs(torch.autograd.grad(drawn[:, 0].mean(), a)[0][0] - 1) < 0.1
assert abs(torch._sample_dirichlet(a.expand(4000, 2)).mean(0)[0] - 0.4) < 0.02
try:
    from torch import flor
except ImportError as error:
    assert "Did you mean 'floor'" in str(error)
assert not hasattr(torch, "flor")
print("all")
"""


def test_names_that_other_libraries_import(tmp_path: Path):
    (tmp_path / "names.py").write_text(NAMES)
    command = [sys.executable, "-m", "chainrule.compat.torch", str(tmp_path / "names.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stdout == "all\n", done.stderr


NUMBERS = """
import warnings
import torch
import chainrule

def warned(use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = use()
    assert all(w.category is UserWarning and w.filename == __file__ for w in caught), caught
    return result, [str(w.message) for w in caught]

a = torch.tensor(1.5, requires_grad=True)
b = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
v = torch.ones(2, requires_grad=True)
for make in (torch.tensor, torch.as_tensor):
    for data, expected in (([a, b], [1.5, 2.0]), ((a, 3.0), [1.5, 3.0]), ([[b], [a.sin() * 0]], [[2.0], [0.0]])):
        result, (message,) = warned(lambda: make(data))
        assert result.tolist() == expected and not result.requires_grad, result
        assert message.startswith("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior")
        assert f"torch.{make.__name__}" in message and "torch.stack" in message
    assert make([a, b]).dtype == torch.float64 and make([a, 3.0]).dtype == torch.float32
    result, messages = warned(lambda: make([b.detach(), a.detach()]))
    assert result.shape == (2,) and not messages
    assert warned(lambda: make([1.0, 2.0]))[1] == []
    for data, maker in (([v, v], make), ([a, a], getattr(chainrule, make.__name__))):
        try:
            warned(lambda: maker(data))
        except RuntimeError as error:
            assert "Use stack([" in str(error)
        else:
            raise AssertionError(maker)
assert torch.tensor([a, a], requires_grad=True).grad_fn is None and torch.tensor(data=[1.0]).tolist() == [1.0]
(torch.tensor([a, a * 2]) * a).sum().backward()
assert a.grad == 4.5
print("all")
"""


def test_numbers_of_tensors_in_lists_are_copied_with_a_warning(tmp_path: Path):
    (tmp_path / "copied.py").write_text(NUMBERS)
    command = [sys.executable, "-m", "chainrule.compat.torch", str(tmp_path / "copied.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stdout == "all\n", done.stderr


def test_the_version_is_that_of_the_release_that_is_compared_with():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["oracle"] == [f"torch=={version.__version__}"]


def test_versions_compare_by_their_numbers():
    found = TorchVersion("2.13.0")
    assert found == "2.13" == found and found != "2.13.0+cpu" and found == (2, 13) and hash(found) == hash("2.13.0")
    assert "2.9" < found <= "2.13.0" and found > "2.13.0rc1" and found < "2.13.0.post1" and found < ("2", "14")
    assert found >= (1, 10) and not found > (2, 13, 0) and found != 2
    for wrong in (2, None):
        with pytest.raises(TypeError):
            assert found < wrong
    with pytest.raises(ValueError, match="Invalid version: 'new'"):
        assert found < "new"


def test_decorators_of_scripts_leave_functions_as_they_are():
    jit = cr.jit

    def double(x):
        return 2 * x

    assert jit.script(double) is jit.unused(double) is jit.export(double) is jit.ignore(double) is double
    assert jit.ignore(drop=True)(double) is double and not jit.is_scripting() and not jit.is_tracing()
    assert not isinstance(jit.script(double), (jit.ScriptFunction, jit.ScriptModule))
    assert jit.trace(double, cr.ones(2), check_trace=False)(cr.ones(1)).item() == 2
    assert issubclass(jit.TracerWarning, Warning)
    with pytest.raises(AttributeError, match=r"has no attribute 'freeze': use chainrule.compile"):
        jit.freeze(double)


def test_the_call_of_jit_names_compile():
    with pytest.raises(TypeError, match=r"'module' object is not callable: use chainrule\.compile\(f\)"):
        cr.jit(np.sin)
    with pytest.raises(TypeError, match=r"needs no static_argnums="):

        @functools.partial(cr.jit, static_argnums=1)
        def double(x, n):
            return 2 * x


def test_a_function_is_traced_on_its_example_inputs():
    seen = []

    def f(x, y=1):
        seen.append((x.tolist(), y, cr.jit.is_tracing()))
        return x

    cr.jit.trace(f, cr.ones(1))
    cr.jit.trace(f, (cr.ones(1), 2))
    cr.jit.trace(f, example_kwarg_inputs={"x": cr.ones(1)})(cr.zeros(1))
    assert seen == [([1.0], 1, True), ([1.0], 2, True), ([1.0], 1, True), ([0.0], 1, True)]
    with pytest.raises(TypeError):
        cr.jit.trace(f, (cr.ones(1), 2, 3))
    module = cr.nn.Linear(1, 1)
    assert cr.jit.trace(module, cr.ones(1)) is module and not cr.jit.is_tracing()


def test_compiled_functions_are_what_they_are_without():
    compiler = cr.compiler

    @compiler.disable
    def double(x):
        return 3 * x if compiler.is_compiling() or compiler.is_exporting() or compiler.is_dynamo_compiling() else 2 * x

    f = compiler.compile(lambda x: double(x) + 1)
    assert [f(cr.ones(1)).item() for _ in range(3)] == [3.0] * 3
    assert compiler.disable(recursive=False)(double) is compiler.allow_in_graph(double) is double
    assert compiler.reset() is compiler.cudagraph_mark_step_begin() is None
    with pytest.raises(AttributeError, match="has no attribute 'set_stance'"):
        compiler.set_stance("default")


def test_the_accelerator_is_the_gpu():
    count = cr.cuda.device_count()
    assert cr.accelerator.is_available() == (count > 0) and cr.accelerator.device_count() == count
    assert (cr.accelerator.current_accelerator() is None) == (count == 0)
