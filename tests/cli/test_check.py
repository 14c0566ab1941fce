"""``chainrule check``: functions in files, primitives, and their errors."""

from __future__ import annotations

import pytest

MODEL = """
    import chainrule as cr
    import numpy as np
    from chainrule import primitive

    def wave(x, scale=2.0):
        return cr.sin(x) * scale

    def product(x, w):
        return cr.exp(x @ w).sum()

    def logs(x):
        return cr.log(x) + cr.sqrt(1 - x)

    def axis(x, *, dim):
        return x.sum(dim) ** 2

    def both(x, y):
        return np.sin(x) * y, x * x

    def total(*xs):
        return sum(xs)

    class Twice(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            factor = cr.ones_like(x) * 2
            factor[0, 1] = 3
            return g * x * factor

    def wrong(x):
        return Twice.apply(x)

    class FirstOnly(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() ** 2

    def first_only(x):
        return FirstOnly.apply(x)

    @primitive.elementwise(d={"x": lambda x: 3 * x * x}, formula={"x": "g * 3 * x * x"})
    def cube(x):
        "The third power."
        return x ** 3

    @primitive.elementwise(d={"x": lambda x: 3 * x * x}, formula={"x": "g * 3 * x"})
    def odd(x):
        "The third power, with a formula that is not its rule."
        return x ** 3

    def lost(x):
        return float(x.sum())

    def boom(x):
        raise ValueError("boom of mine")

    def nowhere(x):
        return x * float("nan")

    number = 3

    if __name__ == "__main__":
        raise SystemExit("ran as a script")
"""


@pytest.fixture
def check(folder):
    folder.write("model.py", MODEL)
    return lambda name, *words: folder.run("check", f"model.py::{name}", *words)


@pytest.mark.parametrize(
    "words",
    [
        ["wave"],
        ["wave", "--order", "2"],
        ["wave", "--shape", "2,3"],
        ["wave", "--shape", ""],
        ["wave", "--input", "[[1.0, 2.0]]"],
        ["wave", "--input", "[1 + 2j]"],
        ["wave", "--set", "scale=3", "--seed", "7"],
        ["wave", "--input", "[1.0]", "--input", "2.0"],
        ["product", "--shape", "2,3", "--shape", "3,4", "--order", "2"],
        ["logs"],
        ["axis", "--set", "dim=0", "--shape", "2,2"],
        ["both", "--order", "2"],
        ["total", "--shape", "3", "--shape", "3"],
        ["cube"],
    ],
)
def test_right_gradients(check, words) -> None:
    ran = check(*words)
    assert ran.code == 0 and ran.out.endswith("\nok\n") and "✗" not in ran.out and ran.err == ""
    assert ("second" in ran.out) == ("--order" in words or words == ["cube"])


def test_random_inputs_are_where_the_function_is_defined(check) -> None:
    out = check("logs").out
    numbers = [float(word) for word in out.partition("[")[2].partition("]")[0].split(",")]
    assert len(numbers) == 3 and all(0 < x < 1 for x in numbers)


def test_the_first_wrong_entry_is_shown(check) -> None:
    ran = check("wrong", "--input", "[[1.0, 5.0], [2.0, 4.0]]")
    assert ran.code == 1
    spoken = " ".join(ran.out.split())
    assert (
        "✗ backward mode ∂out[0, 1]/∂x[0, 1] is 15 by the rule and 10 by finite differences (1 of 16 entries of "
        "this Jacobian differ)"
    ) in spoken
    assert "2 of 2 checks of model.py::wrong failed" in ran.out


def test_a_custom_function_itself(check) -> None:
    assert check("Twice", "--shape", "2,2").code == 1


def test_second_derivatives_are_checked_when_asked_for(check) -> None:
    assert check("first_only").code == 0
    ran = check("first_only", "--order", "2", "--input", "[1.0, 2.0]")
    assert ran.code == 1 and "✓ backward mode" in ran.out and "✗ second order" in ran.out
    assert "∂(∂/∂x)[0]/∂x[0] is 0 by the rule and" in " ".join(ran.out.split())


def test_a_row_that_is_wrong(check) -> None:
    ran = check("odd")
    assert ran.code == 1 and "✗ formula" in ran.out and "1 of 12 checks of odd failed" in ran.out
    assert "'g * 3 * x' with respect to operand 'x'" in " ".join(ran.out.split())


def test_a_row_of_the_table(run) -> None:
    ran = run("check", "torch.tanh")
    assert ran.code == 0 and ran.out.startswith("rulecheck of tanh (elementwise), on ")
    assert run("check", "mse_loss").code == 0  # of a module that is loaded on first use


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wavee"], "Did you mean wave?"),
        (["number"], "not a function but a int"),
        (["lost"], "returned a float, not a tensor"),
        (["axis"], "--set dim="),
        (["wave", "--set", "scal=1"], "Did you mean scale?"),
        (["wave", "--set", "scale"], "not NAME=LITERAL"),
        (["wave", "--input", "[1, [2]]"], "neither a number"),
        (["wave", "--input", "print(1)"], "not a literal"),
        (["wave", "--shape", "2,x"], "not a shape"),
        (["wave", "--shape", "2,-1"], "not a shape"),
        (["wave", *["--input", "1"] * 3], "3 inputs were given"),
        (["product", "--input", "1"], "1 inputs were given"),
        (["total"], "give --shape or --input once"),
        (["nowhere"], "nan or infinite for all random inputs"),
        (["cube", "--shape", "3"], "its own samples"),
    ],
)
def test_what_cannot_be_checked(check, words, message) -> None:
    ran = check(*words)
    assert ran.code == 2 and message in ran.err and "Traceback" not in ran.err


def test_files_and_rows_that_are_not_there(run, folder) -> None:
    assert "cannot read nope.py" in run("check", "nope.py::f").err
    assert "is a directory" in run("check", ".::f").err
    ran = run("check", "tahn")
    assert ran.code == 2 and "Did you mean tan or tanh" in ran.err
    assert "composite" in run("check", "einsum").err
    assert "model.py::f" in run("check", "model.py").err


def test_the_function_raises(check) -> None:
    ran = check("boom")
    assert ran.code == 3 and "ValueError: boom of mine" in ran.err and 'model.py", line ' in ran.err
    assert "chainrule/_src/cli" not in ran.err.replace("\\", "/") and "shape (3,)" in ran.err


def test_the_file_raises(folder) -> None:
    folder.write("broken.py", "import chainrule\n1 / 0\n")
    ran = folder.run("check", "broken.py::f")
    assert ran.code == 3 and ran.err.startswith("Traceback") and "ZeroDivisionError" in ran.err
    folder.write("leaves.py", "import sys\nsys.exit(4)\n")
    ran = folder.run("check", "leaves.py::f")
    assert ran.code == 2 and "sys.exit(4)" in ran.err


def test_the_file_may_import_its_neighbours(folder) -> None:
    (folder.path / "sub").mkdir()
    folder.write("sub/neighbour_of_model.py", "K = 2.0\n")
    folder.write("sub/uses.py", "from neighbour_of_model import K\ndef f(x):\n    return K * x\n")
    assert folder.run("check", "sub/uses.py::f").code == 0
