"""NumPy's floating-point warnings refer to the user's line: of the call, and for backward passes of the forward call."""

import contextvars
import inspect
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import fp_warnings
from chainrule._src.tape.tensor import wrap
from chainrule.testing.rulecheck import every_sample

PACKAGE = os.path.dirname(cr.__file__)
Z = np.array([0.0, 1.0])


def leaf():
    return cr.tensor(Z, requires_grad=True)


def backward():
    y = cr.sqrt(leaf())  # here
    y.sum().backward()


def recorded():
    x = leaf()
    y = cr.log(x + 1)
    y = cr.sqrt(x) + y  # here
    cr.autograd.grad(y.sum(), x, create_graph=True)


def overwritten():
    x = leaf()
    y = (x * 1).clamp_(0, 5).pow(0.5)  # here
    y.sum().backward()


def gradient():
    cr.grad(lambda v: np.sqrt(v).sum())(Z)  # here


def tangent():
    cr.jvp(lambda v: 1 / v, (Z,), (Z,))  # here


def each():
    cr.vmap(lambda v: 1 / v)(Z)  # here


def rows_at_once():
    x = leaf()
    with np.errstate(divide="ignore"):
        y = cr.log(x)  # here
    cr.jacobian(y, x)


def second():
    cr.hessian(lambda v: np.sqrt(v).sum())(Z)  # here


def composite():
    np.std(cr.tensor([np.inf, 1.0]))  # here


def method():
    cr.tensor([1000.0]).exp()  # here


def activation():
    cr.softmax(cr.tensor([np.inf, 1.0]), 0)  # here


def unrecorded():
    with cr.no_grad():
        leaf() / 0  # here


def product():
    cr.Array([[1e300]]) @ np.array([[1e300]])  # here


def replayed():
    compiled = cr.compile(lambda v: 1 / v)  # here, where it is not recorded
    with np.errstate(all="ignore"):
        compiled(Z)
    compiled(Z)  # here


def traced():
    def f(v):
        w = 1 / v  # here
        return (w[1] * w + np.inf * v).sum() + w[0]  # here

    cr.compile(cr.grad(f))(Z)


PROGRAMS = [
    backward, recorded, overwritten, gradient, tangent, each, rows_at_once, second, composite, method, activation,
    unrecorded, product, replayed, traced,
]  # fmt: skip


def caught(program, action="always"):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter(action)
        program()
    return [w for w in log if w.category is RuntimeWarning]


def marked(program):
    lines, first = inspect.getsourcelines(program)
    return [first + i for i, line in enumerate(lines) if "# here" in line]


@pytest.mark.parametrize("context", ["new", "current"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_line(program, context):
    """A new context has no value of NumPy's variable for the error state: NumPy's default holds, as in a new process."""
    found = contextvars.Context().run(caught, program) if context == "new" else caught(program)
    assert found
    assert {w.filename for w in found} == {__file__} and {w.lineno for w in found} <= {*marked(program)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_was_asked_for_stays(program):
    with np.errstate(all="ignore"):
        assert not caught(program)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        program()
    with pytest.raises(RuntimeWarning), warnings.catch_warnings():
        warnings.simplefilter("error")
        program()
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__)
        program()
    assert not [w for w in log if w.category is RuntimeWarning]


def test_what_is_called_and_written_to():
    calls, texts = [], []

    class Log:
        write = staticmethod(texts.append)

    with np.errstate(divide="call", invalid="ignore", call=lambda *about: calls.append(about)):
        backward()
    with np.errstate(divide="log", call=Log):
        backward()
    assert [kind for kind, _ in calls] == ["divide by zero"]
    assert texts == ["Warning: divide by zero encountered in divide\n"]


def test_each_line_warns_once_by_default():
    globals().pop("__warningregistry__", None)

    def program():
        for _ in range(3):
            backward()
        gradient()

    assert [w.lineno for w in caught(program, "default")] == [*marked(backward), *marked(gradient)]


def test_hooks_find_errors_treated_as_outside():
    found = []
    x = leaf()
    y = cr.sqrt(x)
    y.register_hook(lambda g: found.append(np.geterr()))

    class Own(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            found.append(np.geterr())
            return x * 1

        @staticmethod
        def backward(ctx, g):
            found.append(np.geterr())
            return g

    caught(lambda: (cr.eye(2, dtype=cr.float64) @ Own.apply(y)).sum().backward())
    assert len(found) == 3 and all(modes == np.geterr() for modes in found), found
    with pytest.raises(IndexError):
        cr.softmax(leaf(), 7)
    assert np.geterr()["divide"] == "warn"


def test_a_place_that_is_no_longer_loaded():
    names = {"cr": cr}
    exec(compile("x = cr.tensor([0.0], requires_grad=True)\ny = cr.sqrt(x).sum()", "gone.py", "exec"), names)
    (found,) = caught(names["y"].backward)
    assert (found.filename, found.lineno) == ("gone.py", 2)
    assert len(fp_warnings._internal_states) <= 16


SPECIAL = [0.0, np.inf, -np.inf, np.nan, -1.0, 1e308, 1.0, -0.0, 1000.0, 1e-320]


def spoiled(x, k):
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return x
    return np.resize(np.roll(SPECIAL, k), x.shape).astype(x.dtype)


def run(prim, operands, params, way):
    floats = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    full = [wrap(x.copy()) if isinstance(x, np.ndarray) else x for x in operands]

    def call(*xs):
        for i, x in zip(floats, xs, strict=True):
            full[i] = x
        return prim(*full, **params)

    leaves = [full[i] for i in floats]
    if way == "jvp":
        cr.jvp(call, tuple(leaves), tuple(cr.ones_like(x) for x in leaves))
    elif way == "vmap":
        cr.vmap(call)(*[cr.stack([x, x]) for x in leaves])
    else:
        found = call(*[x.requires_grad_() for x in leaves])
        found = [
            y for y in (found if isinstance(found, tuple) else (found,)) if isinstance(y, cr.Tensor) and y.requires_grad
        ]
        cr.autograd.grad(
            found, leaves, [cr.ones_like(y) for y in found], allow_unused=True, create_graph=way == "second"
        )


@pytest.mark.parametrize("way", ["vjp", "second", "jvp", "vmap"])
@pytest.mark.parametrize("samples", ["one", pytest.param("three", marks=pytest.mark.slow)])
def test_no_row_warns_at_a_line_of_ours(way, samples):
    elsewhere, n = set(), 0
    for number, (name, prim) in enumerate(list(TABLE.items())):
        if name in ("mm", "mv", "vm", "dot", "stack_mm"):
            continue  # their products in C warn at the innermost line, which is the user's if these are called
        first = every_sample(prim)[:3]
        for sample in [first[number % len(first)]] if samples == "one" else first:
            for k in (0, 3):
                with warnings.catch_warnings(record=True) as log:
                    warnings.simplefilter("always")
                    try:
                        run(prim, [spoiled(x, k) for x in sample.draw()], sample.params, way)
                    except (RuntimeError, ValueError, TypeError, np.linalg.LinAlgError):
                        pass
                n += len(log)
                elsewhere |= {(name, w.filename, w.lineno) for w in log if w.filename.startswith(PACKAGE)}
    assert n > 50 and not elsewhere


def test_without_the_extension():
    program = f"import sys; sys.argv = ['']; import pytest; raise SystemExit(pytest.main(['-q', '-k', 'the_line', {__file__!r}]))"
    environment = {**os.environ, "CHAINRULE_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stdout
