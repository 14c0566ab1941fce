"""The public names: lazy loading, also concurrently, and pickling."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import types

import numpy as np
import pytest

import chainrule as cr

MODULES = ["chainrule", *(f"chainrule.{m}" for m in ("autograd", "fft", "func", "linalg", "nn.functional", "special"))]


def test_star_import():
    names = {}
    exec("from chainrule import *", names)
    assert set(cr.__all__) <= set(names)


@pytest.mark.parametrize("name", MODULES)
def test_dir_and_getmembers(name):
    module = importlib.import_module(name)
    names = dir(module)
    members = dict(inspect.getmembers(module))
    assert set(names) <= set(members)
    assert set(getattr(module, "__all__", ())) <= set(members)


@pytest.mark.parametrize("name", MODULES)
def test_functions_are_pickled_by_name(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, public)
        if isinstance(value, types.FunctionType) and not public.startswith("_"):
            assert pickle.loads(pickle.dumps(value)) is value, public


def public_modules(name="chainrule"):
    """Return the names of a public module and of all modules in its ``__all__``, and so on."""
    module = importlib.import_module(name)
    found = [name]
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, types.ModuleType) and value.__name__ == f"{name}.{public}" and value.__spec__ is not None:
            found += public_modules(value.__name__)
    return found


PUBLIC = public_modules()
#: The modules of HIPS autograd, which programs import by these names.
HIPS = [
    f"chainrule.compat.autograd{name and '.'}{name}"
    for name in (
        "", "builtins", "core", "differential_operators", "extend", "misc", "misc.fixed_points", "misc.flatten", "misc.optimizers",
        "misc.tracers", "numpy", "numpy.fft", "numpy.linalg", "numpy.numpy_boxes", "numpy.numpy_vjps", "numpy.numpy_vspaces",
        "numpy.random", "scipy", "scipy.integrate", "scipy.linalg", "scipy.signal", "scipy.special", "scipy.stats", "test_util",
        "tracer", "util", "wrap_util",
    )
]  # fmt: skip
#: Modules that also have the names of a module of NumPy or SciPy.
DELEGATING = {"chainrule.array_api", "chainrule.scipy.special"}


def test_modules_at_the_top_are_public():
    at_the_top = {module.name for module in pkgutil.iter_modules(cr.__path__) if not module.name.startswith("_")}
    assert at_the_top == {name.split(".")[1] for name in PUBLIC if "." in name}
    assert {"chainrule.nn.utils.rnn", "chainrule.scipy.sparse.linalg", "chainrule.autograd.graph"} < set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_lists_the_public_names_only(name):
    module = importlib.import_module(name)
    special = [public for public in dir(module) if public.startswith("__")]
    assert sorted({*module.__all__, *special}) == dir(module)
    assert {"__all__", "__doc__", "__name__"} <= set(special)
    for public in module.__all__:
        value = getattr(module, public)
        if name in DELEGATING or not isinstance(value, (type, types.FunctionType, types.ModuleType)):
            assert type(value).__module__ not in ("typing", "__future__"), public
            continue
        home = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        assert home.split(".")[0] == "chainrule", f"{public} is imported from {home}"


@pytest.mark.parametrize("name", HIPS)
def test_dir_of_the_modules_for_hips_programs(name):
    module = importlib.import_module(name)
    special = [public for public in dir(module) if public.startswith("__")]
    assert sorted({*module.__all__, *special}) == dir(module) and module.__name__ == name
    assert not {"annotations", "Any", "Callable", "show", "np"} & set(dir(module))
    assert [public for public in module.__all__ if not hasattr(module, public)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_unknown_names_are_errors_that_name_the_module(name):
    module = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"(?s){name}.*not_a_name|not_a_name.*{name}|special.*not_a_name"):
        module.not_a_name


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_says_where_users_find_it(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        home = getattr(value, "__module__", None)
        if isinstance(value, (type, types.FunctionType)):
            assert not home.startswith("chainrule._src"), public
            if home.startswith("chainrule."):
                assert getattr(importlib.import_module(home), value.__name__) is value, public


UNLOADED = """
import sys, numpy as np, chainrule as cr
print(type(cr.jacobian(np.sin, np.ones(3), layout="structured")), type(cr.compile(np.sin)))
print([name for name in ("chainrule.jacobians", "chainrule.compiler") if name in sys.modules])
"""


def test_a_class_says_so_before_its_module_is_loaded():
    found = subprocess.run([sys.executable, "-c", UNLOADED], check=True, capture_output=True, text=True).stdout
    assert found.splitlines() == ["<class 'chainrule.jacobians.Jacobian'> <class 'chainrule.compiler.Compiled'>", "[]"]


def _pickled():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    layer = cr.nn.Sequential(cr.nn.Linear(2, 2), cr.nn.BatchNorm1d(2))
    optimizer = cr.optim.Adam(layer.parameters())
    layer(cr.ones(3, 2)).sum().backward()
    optimizer.step()
    yield from [
        x,
        cr.ones(2),
        cr.Array(np.ones(2)),
        layer,
        layer.state_dict(),
        optimizer,
        optimizer.state_dict(),
        cr.Generator(),
    ]
    yield from [
        x.shape,
        x.dtype,
        x.device,
        cr.strided,
        cr.contiguous_format,
        cr.finfo(cr.float32),
        cr.compile(np.sin),
        cr.stats.norm,
    ]
    yield from [
        cr.max(cr.ones(2, 3), 0),
        cr.tree.tree_structure({"a": [1, 2]}),
        cr.linalg.LinAlgError("singular"),
        cr.sparse.eye_array(3),
    ]
    yield from [
        cr.jacobian(np.sin, np.ones(3), layout="structured"),
        cr.jacobian,
        cr.scan,
        cr.vmap,
        cr.autograd.grad,
        cr.Tensor,
    ]


@pytest.mark.parametrize("value", [pytest.param(x, id=type(x).__name__) for x in _pickled()])
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickles_name_public_modules(value, protocol):
    text = pickle.dumps(value, protocol)
    assert b"chainrule._src" not in text
    again = pickle.loads(text)
    assert type(again) is type(value)
    if isinstance(value, (type, types.FunctionType)):
        assert again is value
    if isinstance(value, cr.Tensor):
        assert cr.equal(again, value) and again.requires_grad == value.requires_grad


SOURCES = {
    x.__name__: x
    for x in (cr.jacobian, cr.vmap, cr.compile, cr.Tensor.backward, cr.Array.tolist, cr.nn.Linear, cr.tree)
}


@pytest.mark.parametrize("name", SOURCES)
def test_source_is_found(name):
    assert name.rpartition(".")[2] in inspect.getsource(SOURCES[name])


def test_transformations_are_at_the_top():
    from chainrule import func, grad, grad_and_value, hvp, jacfwd, jacrev, jvp, vjp

    for function in (grad, grad_and_value, hvp, jacfwd, jacrev, jvp, vjp):
        assert function is getattr(func, function.__name__)


def test_type_checkers_see_what_loads_later():
    tree = ast.parse(inspect.getsource(cr))
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "_typing.TYPE_CHECKING"
    ]
    seen = {name.name: getattr(node, "module", "") for node in block.body for name in node.names}
    assert seen == {name: f"chainrule.{module}".removesuffix(".") for name, module in cr._LAZY.items()}


def test_asking_for_a_name_looks_for_no_other(monkeypatch):
    monkeypatch.setattr("difflib.get_close_matches", lambda *_: 1 / 0)
    assert not hasattr(cr, "abslute") and not hasattr(cr.nn.functional, "rleu")
    assert not hasattr(cr.ones(2), "shap") and getattr(cr.ones(2), "partition", None) is None
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="'absolute'") as caught:
        cr.abslute
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_tensors_hint_is_about_the_line_that_raised():
    def ask(tensor):
        return tensor.partition(1)

    with pytest.raises(AttributeError) as caught:
        ask(cr.ones(3))
    different = cr.ones(3)
    assert str(caught.value).endswith(". NumPy arrays have it: tensor.detach().numpy().partition(...)"), different
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(AttributeError, match="'shape'"):
        different.shap


THREADS = """
import sys, threading
import numpy as np
sys.setswitchinterval(1e-6)
import chainrule as cr
x = cr.rand(4, 4)
uses = [
    lambda: np.kron(x, x), lambda: np.percentile(x, 50), lambda: np.fft.fft(x), lambda: cr.fft.fft(x),
    lambda: cr.func.grad(cr.sum)(x), lambda: cr.vmap(cr.exp)(x), lambda: cr.jacobian, lambda: cr.load, lambda: cr.explain,
    lambda: cr.autograd.functional.jacobian(cr.exp, x), lambda: cr.nn.functional.relu(x), lambda: cr.autograd.Function,
    lambda: np.reshape(x, -1), lambda: np.where(x > 0, x, 0), lambda: np.concatenate([x, x]), lambda: np.outer(x, x),
    lambda: cr.sort(x), lambda: x.split(2), lambda: cr.einsum("ij->ji", x), lambda: cr.func.vmap(np.sum)(x),
    lambda: cr.autograd.graph, lambda: cr.autograd.forward_ad, lambda: cr.autograd.profiler, lambda: cr.utils,
]
start, wrong = threading.Barrier(len(uses)), []
def work(first):
    start.wait()
    for i in range(len(uses)):
        try:
            uses[(first + i) % len(uses)]()
        except BaseException as error:
            wrong.append(repr(error))
threads = [threading.Thread(target=work, args=(i,)) for i in range(len(uses))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


def test_threads_that_all_load_everything():
    subprocess.run([sys.executable, "-c", THREADS], check=True)
