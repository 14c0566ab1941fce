"""``import chainrule`` loads only the modules that tensors need; the others load on first use and change nothing that is visible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import chainrule as cr
from chainrule._src.messages import errors
from chainrule._src.ops.array import METHODS_BY_SHAPE
from chainrule._src.ops.deferred_names import NAMES
from chainrule._src.tape.protocol import BY_SHAPE, LATER, find, import_implementations

#: public modules that a plain import loads; of ``_src``, all packages below ``ops`` and the backward pass
LOADED = {"_src"}
PACKAGES = {
    "api",
    "arrays",
    "config",
    "interpreters",
    "messages",
    "native",
    "ops",
    "rules",
    "table",
    "tape",
    "transforms",
}
#: modules that are slow to import, or that few programs need
NOT_LOADED = (
    *NAMES,
    "chainrule._src.transforms.gradcheck",
    *(f"chainrule._src.messages.{name}" for name in vars(errors)["MODULES"]),
    *(name for names in LATER.values() for name in names),
    "chainrule._src.arrays.gpu",
    "chainrule._src.rules.rule_text",
    "chainrule._src.table.functional_scatter",
    "chainrule._src.table.linalg",
    "chainrule._src.tape.regions",
    "chainrule._src.transforms.dense",
    "chainrule._src.transforms.vmap",
    "difflib",
    "numpy.random",
    "random",
    "hashlib",
    "dataclasses",
    "subprocess",
)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def modules_after(code: str) -> set[str]:
    return set(
        run(f"import numpy, sys\nbefore = {{*sys.modules}}\n{code}\nprint(*sys.modules.keys() - before)").split()
    )


def test_a_plain_import_loads_what_tensors_need() -> None:
    loaded = modules_after("import chainrule")
    assert loaded & set(NOT_LOADED) == set()
    ours = [name.split(".") for name in loaded if name.startswith("chainrule.")]
    assert {parts[1] for parts in ours} == LOADED
    assert {parts[2] for parts in ours if parts[1] == "_src" and len(parts) > 2} == PACKAGES


def test_a_gradient_loads_no_deferred_module() -> None:
    loaded = modules_after("import chainrule as cr\ncr.grad(lambda x: numpy.sum(numpy.sin(x) * x))(numpy.arange(3.0))")
    assert loaded & set(NOT_LOADED) == {"chainrule._src.ops.numpy_reductions"}


def test_a_backward_pass_loads_no_deferred_module() -> None:
    code = "import chainrule as cr\nx = cr.tensor([1.0, 2.0], requires_grad=True)\n(x * x).sum().backward()"
    assert modules_after(code) & set(NOT_LOADED) == set()


def test_methods_of_arrays_are_cached_by_shape_as_their_functions() -> None:
    assert all(find(function) is not None for function in (numpy.sum, numpy.dot, numpy.ravel))  # loads their modules
    methods = {name for name in vars(cr.Array) if any(getattr(numpy, name, None) is function for function in BY_SHAPE)}
    assert methods == {*METHODS_BY_SHAPE, "reshape", "transpose", "copy"}


_DECLARING = """
from chainrule._src.tape.protocol import FUNCTIONS, implements
def function(): ...
@implements(function)
def implementation(): ...
found_early = function in FUNCTIONS
"""


def test_a_function_is_found_when_its_module_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "declaring.py").write_text(_DECLARING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(LATER, "declaring", ("declaring",))
    assert list(import_implementations("declaring")) == ["declaring"]
    declaring = sys.modules["declaring"]
    assert not declaring.found_early and find(declaring.function) is declaring.implementation


def test_the_first_call_of_a_ufunc_promotes_as_later_calls() -> None:
    call = "numpy.float_power(cr.tensor([2.0], dtype=cr.float32), numpy.float64(2.0)).dtype"
    first, later = run(f"import numpy, chainrule as cr\nprint({call}, {call})").split()
    assert first == later


def test_linear_algebra_of_other_modules_is_found_first() -> None:
    assert run("import numpy, chainrule as cr\nprint(numpy.linalg.vecdot(cr.ones(3), cr.ones(3)).item())") == "3.0\n"


_EACH_ALONE = """
import importlib, os, sys
import chainrule as cr
from chainrule._src.api.declare import DeferredMethod
from chainrule._src.ops.deferred_names import NAMES
for module, names in NAMES.items():
    for name in names.split():
        head, _, last = name.rpartition(".")
        if os.fork() == 0:
            if head == "Tensor":
                assert type(vars(cr.Tensor)[last]) is DeferredMethod, name
                getattr(cr.Tensor, last)
                assert type(vars(cr.Tensor)[last]) is not DeferredMethod, name
            else:
                home = importlib.import_module(f"chainrule.{head}".rstrip("."))
                assert last in dir(home) and getattr(home, last) is getattr(home, last), name
            assert module in sys.modules, (name, module)
            os._exit(0)
        assert os.wait()[1] == 0, name
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the names are tried in processes that share one import")
def test_each_deferred_name_loads_its_module() -> None:
    run(_EACH_ALONE)


def test_tables_look_complete() -> None:
    code = (
        "from chainrule._src.rules.primitive import TABLE\n"
        "from chainrule._src.api.declare import OPERATIONS\n"
        "import pickle, sys\n"
        "assert 'chainrule._src.table.linalg' not in sys.modules\n"
        "{}\n"
    )
    primitive = b"cchainrule._src.rules.primitive\n_find\n(Vsvd\ntR."
    for statement in (
        "assert TABLE['svd'].name == 'svd' and TABLE.get('no such') is None",
        "assert 'svd' in TABLE and 'no such' not in TABLE",
        "assert len(TABLE.present()) < len(TABLE) == len(TABLE.present())",
        "assert 'svd' in [*TABLE] and 'svd' in TABLE.keys() and 'svd' in dict(TABLE.items())",
        "assert 'linalg.inv' in OPERATIONS and OPERATIONS['special.erf'].names[0] == 'erf'",
        f"assert pickle.loads({primitive!r}).name == 'svd'",
    ):
        run(code.format(statement))


def test_a_method_that_the_user_replaced_stays() -> None:
    code = "import chainrule as cr\ncr.Tensor.unique = 'replaced'\ncr.unique\nassert cr.Tensor.unique == 'replaced'"
    run(code)


def test_methods_are_inherited_before_their_modules_load() -> None:
    code = (
        "import chainrule as cr\n"
        "class Mine(cr.Tensor):\n"
        "    def gather(self, *args):\n"
        "        return super().gather(*args)\n"
        "x = cr.arange(3.0).as_subclass(Mine)\n"
        "print(x.gather(0, cr.tensor([2])).tolist(), x.erf_().shape, hasattr(x, 'no_such'))\n"
    )
    assert run(code) == "[2.0] torch.Size([3]) False\n"


def test_public_functions_are_made_once() -> None:
    assert cr.sum is cr.sum and cr.Tensor.sum is cr.Tensor.sum and cr.Tensor.erf_ is cr.Tensor.erf_
    assert "sum" in dir(cr) and "sum" in dir(cr.Tensor) and "gather" in dir(cr.Tensor)
