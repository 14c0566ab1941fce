"""``chainrule explain``: scripts, variables, output files, and side effects of scripts."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest

import chainrule as cr

SEED = """
    import chainrule as torch

    X = torch.tensor([[2., 1., -3], [-3, 4, 2]], requires_grad=True)
    W = torch.tensor([[3., 2., 1., -1], [2, 1, 3, 2], [3, 2, 1, -2]], requires_grad=True)
    Y = torch.exp(torch.matmul(X, W))
    G = torch.tensor([[2, 3, -3, 9], [-8, 1, 4, 6]])
    Y.backward(G)
    print("shape", X.grad.shape)
    parts = {"x": X, "ys": [Y]}
    text = "no tensor"
"""
ANSWER = [[-3648.6118, 7197.792, -7279.4707], [229369.625, 729282.0625, 222789.8281]]

TRAIN = """
    import argparse
    import chainrule as torch

    def loss_of(w, x):
        return ((x * w - 1) ** 2).mean()

    def train(steps):
        w = torch.tensor([0.5, 2.0], requires_grad=True)
        x = torch.tensor([1.0, 2.0])
        for _ in range(steps):
            loss = loss_of(w, x)
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
        print("trained", steps)

    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=3)
    train(options.parse_args().steps)
"""


@pytest.fixture
def explain(folder):
    folder.write("seed.py", SEED)
    folder.write("train.py", TRAIN)
    return lambda *words: folder.run("explain", *words)


@pytest.fixture
def data(folder, explain):
    """Return the output of ``--json``."""

    def of(*words):
        ran = explain(*words[:1], "--json", "e.json", *words[1:])
        assert ran.code == 0, ran.err
        return json.loads(folder.read("e.json"))

    return of


def gradients(e):
    return {e["values"][id]["name"]: e["gradients"][id]["data"] for id in e["gradients"]}


def test_the_answer_for_a_script(explain) -> None:
    ran = explain("seed.py", "--out", "Y", "--wrt", "X", "--grad", "G")
    assert ran.code == 0
    assert ran.err.startswith("chainrule: running seed.py\n")
    assert ran.out.startswith("shape torch.Size([2, 3])\n")  # the script's output comes first
    for word in ("Y", "X", "-3648.6", "seed.py:6", "✓"):
        assert word in ran.out


@pytest.mark.parametrize(
    "words, found",
    [
        (["train.py", "--at-backward", "1", "--by", "line"], "train.py:6"),
        (["terms.py", "--by", "term"], "0.5 * size"),
        (["terms.py", "--by", "line"], "size = (w * w).sum()"),
        (["terms.py", "--by", "module"], "100.00%"),
    ],
)
def test_what_a_gradient_is_made_of(explain, folder, words, found) -> None:
    folder.write(
        "terms.py",
        """
    import chainrule as cr
    w = cr.tensor([3.0, 4.0], requires_grad=True)
    fit = (w - 1).square().sum()
    size = (w * w).sum()
    loss = fit + 0.5 * size
    loss.backward()
    """,
    )
    ran = explain(*words)
    assert ran.code == 0, ran.err
    assert f"by {words[-1]}" in ran.out and found in ran.out and "Step 1" not in ran.out


def test_a_script_that_ran_backward_itself(data) -> None:
    e = data("seed.py", "--out", "Y", "--wrt", "X", "--grad", "G")
    np.testing.assert_allclose(gradients(e)["X"], ANSWER, rtol=1e-6)
    assert [step["op"] for step in e["steps"]] == ["exp", "mm"]
    assert e["steps"][0]["line"]["text"] == "Y = torch.exp(torch.matmul(X, W))"
    assert e["check"]["ok"] and not e["default_seed"]


def test_defaults(data) -> None:
    e = data("seed.py")  # the script's Y.backward(G), all leaves
    assert [e["values"][id]["name"] for id in e["outputs"]] == ["Y"]
    assert sorted(gradients(e)) == ["W", "X"] and not e["default_seed"]
    np.testing.assert_allclose(gradients(e)["X"], ANSWER, rtol=1e-6)
    assert gradients(data("seed.py", "--out", "Y")) == gradients(e)


LAST = """
import chainrule as cr
x = cr.tensor([1., 2.], requires_grad=True)
first, later = x * 2, x * 3
first.backward(cr.tensor([5., 7.]))
"""


@pytest.mark.parametrize(
    ("more", "words", "out", "gradient"),
    [
        ("", [], "first", [10, 14]),
        ("", ["--out", "first"], "first", [10, 14]),
        ("", ["--grad", "ones"], "first", [2, 2]),
        ("", ["--out", "later"], "later", [3, 3]),
        (
            "x.sum().backward()",
            [],
            "later",
            [3, 3],
        ),  # no variable refers to the root of that pass: use ones for the newest tensor
        ("loss = later.sum()\nloss.backward()", [], "loss", [3, 3]),
    ],
)
def test_the_scripts_own_last_backward(folder, data, more, words, out, gradient) -> None:
    folder.write("last.py", LAST + more)
    e = data("last.py", *words)
    assert [e["values"][id]["name"] for id in e["outputs"]] == [out]
    assert gradients(e)["x"] == gradient
    assert e["default_seed"] == (out == "later" or out == "loss")


@pytest.mark.parametrize("wrt", [["--wrt", "X", "--wrt", "W"], ["--wrt", "X,W"], ["--wrt", "parts['x']", "--wrt", "W"]])
def test_several_inputs(data, wrt) -> None:
    assert set(gradients(data("seed.py", *wrt))) == {"X", "W"}


@pytest.mark.parametrize(
    ("given", "seed"),
    [
        ("ones", [[1.0] * 4] * 2),
        ("[[1, 0, 0, 0], [0, 0, 0, 2.5]]", [[1, 0, 0, 0], [0, 0, 0, 2.5]]),
        ("G", [[2, 3, -3, 9], [-8, 1, 4, 6]]),
    ],
)
def test_gradients_by_name_and_as_literals(data, given, seed) -> None:
    e = data("seed.py", "--out", "parts['ys'][0]", "--grad", given)
    assert next(iter(e["seed"].values()))["data"] == seed and not e["default_seed"]


def test_a_variable_may_be_called_ones(folder, data) -> None:
    folder.write("ones.py", "import chainrule as cr\nx = cr.ones(2, requires_grad=True)\ny = 2 * x\nones = [5, 6]\n")
    assert gradients(data("ones.py", "--grad", "ones")) == {"x": [10, 12]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "y"], "seed.py has no variable 'y'. Did you mean Y?"),
        (["--out", "Z", "--wrt", "X"], "seed.py has no variable 'Z'"),
        (["--wrt", "x"], "Did you mean X?"),
        (["--out", "text"], "--out text: expected a tensor, but it is of type str"),
        (["--out", "parts['z']"], "does not exist: KeyError"),
        (["--out", "print('ran')"], "is not a variable"),
        (["--wrt", "G"], "does not require grad"),
        (["--out", "G"], "does not require grad"),
        (["--grad", "[1, 2, 3]"], "shape"),
        (["--grad", "[1, [2]]"], "different lengths"),
        (["--grad", "text"], "expected an array of numbers"),
        (["--grad", "Gg"], "Did you mean G?"),
        (["--grad", "__import__('os')"], "not a literal"),
        (["--html", "nowhere/page.html"], "there is no directory nowhere"),
        (["--svg", "."], "it is a directory"),
        (["--html", "seed.py"], "that is the script itself"),
        (["--json", "./nowhere/../seed.py"], "there is no directory"),
        (["--dot", "other.py"], "use other.py.dot"),
        (["--html", "page", "--svg", "./page"], "would be written there, too"),
        (["--at-backward", "0"], "counts from 1"),
        (["--at-backward", "2"], "seed.py ended after 1 backward pass"),
    ],
)
def test_what_is_not_there(explain, words, message) -> None:
    ran = explain("seed.py", *words)
    assert ran.code == 2 and message in ran.err and "Traceback" not in ran.err
    assert "ran" not in ran.out


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_script_is_not_overwritten_under_another_name(folder, explain, link) -> None:
    before = folder.read("seed.py")
    link(folder.path / "seed.py", folder.path / "page.html")
    ran = explain("seed.py", "--html", "page.html")
    assert ran.code == 2 and "that is the script itself" in ran.err and folder.read("seed.py") == before


def test_bad_files_are_found_before_the_script_runs(explain) -> None:
    assert "running" not in explain("seed.py", "--html", "nowhere/page.html").err
    assert explain("nope.py").err == "chainrule explain: cannot read nope.py: No such file or directory\n"


def test_nothing_to_explain(folder) -> None:
    folder.write("plain.py", "import chainrule as cr\nx = cr.ones(3)\ny = x * 2\n")
    ran = folder.run("explain", "plain.py")
    assert ran.code == 2 and "requires_grad=True" in ran.err


# -- scripts --------------------------------------------------------------------------------------------------------------


def test_a_script_that_raises(folder) -> None:
    folder.write("fails.py", "import chainrule\n\ndef f():\n    return 1 / 0\n\nf()\n")
    ran = folder.run("explain", "fails.py", "--out", "y")
    assert ran.code == 3 and "chainrule: running fails.py" in ran.err
    trace = ran.err.partition("\n")[2]
    fails = folder.path / "fails.py"
    assert trace.startswith(f'Traceback (most recent call last):\n  File "{fails}", line 6, in <module>\n')
    assert trace.endswith("ZeroDivisionError: division by zero\n") and "cli" not in trace


def test_a_script_with_a_syntax_error(folder) -> None:
    folder.write("bad.py", "x = (1,\n")
    ran = folder.run("explain", "bad.py")
    assert ran.code == 3 and "SyntaxError" in ran.err and "cli" not in ran.err


@pytest.mark.parametrize(("code", "expected"), [("", 0), ("0", 0), ("None", 0), ("5", 3), ("'went wrong'", 3)])
def test_a_script_that_exits(folder, code, expected) -> None:
    folder.write(
        "ends.py", f"import sys, chainrule as cr\nx = cr.ones(2, requires_grad=True)\ny = x * 2\nsys.exit({code})\n"
    )
    ran = folder.run("explain", "ends.py")
    assert ran.code == expected
    assert ("sys.exit" in ran.err) == (expected == 3) and ("went wrong\n" in ran.err) == ("went" in code)


def test_a_script_finds_the_world_as_python_would_show_it(folder) -> None:
    (folder.path / "inner").mkdir()
    folder.write("inner/beside_the_script.py", "import chainrule as cr\nx = cr.ones(2, requires_grad=True)\n")
    folder.write(
        "inner/script.py",
        """
        import os, sys, pickle
        from dataclasses import dataclass
        from beside_the_script import x

        @dataclass
        class Point:
            a: int

        assert Point.__annotations__ == {"a": int}
        assert __name__ == "__main__" and sys.modules["__main__"].Point is Point
        assert sys.argv == [os.path.join("inner", "script.py"), "--flag", "out"]
        assert __file__ == os.path.abspath(sys.argv[0])
        assert sys.path[0] == os.path.dirname(os.path.realpath(__file__))
        assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
        y = x * 3
        os.chdir("inner")
        """,
    )
    before = list(sys.argv), list(sys.path), sys.modules["__main__"]
    script = os.path.join("inner", "script.py")
    ran = folder.run("explain", script, "--out", "y", "--json", "y.json", "--", "--flag", "out")
    assert ran.code == 0, ran.err
    assert json.loads(folder.read("y.json"))["steps"][0]["line"]["text"] == "y = x * 3"
    assert before == (sys.argv, sys.path, sys.modules["__main__"])


def test_the_script_meets_no_other_rules(folder) -> None:
    """Keeping graphs for the explanation is not visible: a second backward still raises."""
    folder.write(
        "twice.py",
        """
        import chainrule as cr
        x = cr.ones(2, requires_grad=True)
        y = x.exp().sum()
        y.backward()
        try:
            y.backward()
        except RuntimeError as error:
            assert "second time" in str(error)
        else:
            raise AssertionError
        assert x.grad.tolist() == cr.ones(2).exp().tolist()
        """,
    )
    assert folder.run("explain", "twice.py", "--out", "y").code == 0


def test_backward_through_a_custom_function(folder) -> None:
    folder.write(
        "custom.py",
        """
        import chainrule as cr

        class Square(cr.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 2 * g * x

        x = cr.ones(2, requires_grad=True)
        y = Square.apply(x).sum()
        y.backward()
        """,
    )
    ran = folder.run("explain", "custom.py", "--out", "y")
    assert ran.code == 0 and "✓" in ran.out


def test_backward_in_another_thread_is_not_seen(folder) -> None:
    folder.write(
        "threads.py",
        """
        import threading
        import chainrule as cr
        x = cr.ones(2, requires_grad=True)
        y = x.exp().sum()
        thread = threading.Thread(target=y.backward)
        thread.start()
        thread.join()
        """,
    )
    ran = folder.run("explain", "threads.py", "--out", "y")
    assert ran.code == 2 and "second time" in ran.err and "Another thread" in ran.err


def test_a_script_may_leave_modes_behind(folder) -> None:
    folder.write(
        "modes.py",
        """
        import chainrule as cr
        x = cr.ones(2, requires_grad=True)
        y = x.exp().sum()
        cr.set_grad_enabled(False)
        """,
    )
    try:
        assert folder.run("explain", "modes.py", "--out", "y").code == 0
    finally:
        cr.set_grad_enabled(True)


def test_the_mode_is_as_it_was_afterwards(explain) -> None:
    explain("seed.py")
    x = cr.ones(2, requires_grad=True)
    y = x.exp().sum()
    assert "line" not in y.grad_fn.metadata
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_memory_of_graphs_that_are_gone_is_gone(folder) -> None:
    """Old graphs of a training loop are not kept."""
    folder.write(
        "loop.py",
        """
        import weakref
        import chainrule as cr
        x = cr.ones(1000, requires_grad=True)
        nodes = []
        for i in range(5):
            y = (x * i).exp().sum()
            nodes.append(weakref.ref(y.grad_fn))
            y.backward()
        assert [ref() is None for ref in nodes] == [True] * 4 + [False]
        """,
    )
    assert folder.run("explain", "loop.py", "--out", "y").code == 0


def test_names_with_markup(folder) -> None:
    name = "[bold]<script>alert(1)</script>[nope].py".replace("/", "_") if os.name != "nt" else "[bold]x.py"
    folder.write(name, "import chainrule as cr\nμ = cr.ones(2, requires_grad=True)\nyʹ_1 = μ * 2\n")
    ran = folder.run("explain", name, "--html", "[i]page.html")
    assert ran.code == 0, ran.err
    assert f"running {name}" in ran.err and "wrote [i]page.html" in ran.err and "yʹ_1" in ran.out
    assert "<script>alert" not in folder.read("[i]page.html")


# -- passes ---------------------------------------------------------------------------------------------------------------


def test_an_update_in_place_hides_the_graph_and_the_message_says_how_to_see_it(folder) -> None:
    folder.write(
        "update.py",
        """
        import chainrule as cr
        w = cr.ones(2, requires_grad=True)
        loss = (w * w).sum()
        loss.backward()
        with cr.no_grad():
            w -= w.grad
        """,
    )
    ran = folder.run("explain", "update.py", "--out", "loss")
    assert ran.code == 2 and "inplace operation" in ran.err and "update.py --at-backward 1" in ran.err
    assert folder.run("explain", "update.py", "--at-backward", "1").code == 0


def test_a_pass_inside_a_function(explain) -> None:
    ran = explain("train.py")
    assert ran.code == 2 and "trained 3" in ran.out and "--at-backward 1" in ran.err


@pytest.mark.parametrize(("number", "w"), [("1", [0.5, 2.0]), ("2", [0.55, 1.4])])
def test_the_nth_pass(data, number, w) -> None:
    e = data("train.py", "--at-backward", number)
    assert gradients(e)["w"] == pytest.approx([(w[0] - 1), (2 * w[1] - 1) * 2], rel=1e-5)
    assert [e["values"][id]["name"] for id in e["outputs"]] == ["loss"]
    assert e["steps"][0]["line"]["text"] == "return ((x * w - 1) ** 2).mean()"


def test_a_pass_stops_the_script(explain) -> None:
    assert "trained" not in explain("train.py", "--at-backward", "1").out
    ran = explain("train.py", "--at-backward", "3", "--", "--steps", "2")
    assert ran.code == 2 and "trained 2" in ran.out and "ended after 2 backward passes" in ran.err


def test_a_pass_with_the_gradient_that_the_script_gave(data) -> None:
    e = data("seed.py", "--at-backward", "1", "--wrt", "X")
    np.testing.assert_allclose(gradients(e)["X"], ANSWER, rtol=1e-6)
    e = data("seed.py", "--at-backward", "1", "--grad", "ones")
    assert next(iter(e["seed"].values()))["data"] == [[1.0] * 4] * 2


def test_a_pass_of_an_output_without_a_name(folder, data) -> None:
    folder.write(
        "unnamed.py",
        """
        import chainrule as cr
        x = cr.ones(2, requires_grad=True)
        x.register_hook(lambda g: g)
        a, b = (x * 2), (x * 3)
        cr.autograd.backward([a.exp(), b], [cr.ones(2), cr.tensor([5., 6.])])
        """,
    )
    e = data("unnamed.py", "--at-backward", "1")
    assert len(e["outputs"]) == 2
    assert gradients(e)["x"] == pytest.approx([2 * np.exp(2) + 15, 2 * np.exp(2) + 18], rel=1e-6)


@pytest.mark.parametrize(
    ("program", "words", "message"),
    [
        ("y = 2 * x\ny.sum().backward()", ["--out", "yy"], "has no variable 'yy'. Did you mean y"),
        ("y = 2 * x\ny.sum().backward()", ["--grad", "[1, 2]"], "shape"),
        ("cr.vmap(cr.func.grad(lambda t: t ** 3))(x)", [], "inside a transformation"),
        ("cr.autograd.backward(cr.autograd.graph.get_gradient_edge(x * 2), cr.ones(2))", [], "starts from an edge"),
    ],
)
def test_what_cannot_be_explained_of_a_pass(folder, program, words, message) -> None:
    """Also if the program catches all errors."""
    program = "\n    ".join(program.split("\n"))
    text = f"import chainrule as cr\nx = cr.ones(2, requires_grad=True)\ntry:\n    {program}\nexcept Exception:\n    pass\n"
    folder.write("odd.py", text)
    ran = folder.run("explain", "odd.py", "--at-backward", "1", *words)
    assert ran.code == 2 and message in ran.err and "Traceback" not in ran.err


# -- files ----------------------------------------------------------------------------------------------------------------


def test_all_files_at_once(folder, explain) -> None:
    words = [word for kind in ("html", "svg", "dot", "json") for word in (f"--{kind}", f"e.{kind}")]
    ran = explain("seed.py", "--grad", "G", *words)
    assert ran.code == 0 and ran.err.count("chainrule: wrote e.") == 4
    assert "<html" in folder.read("e.html") and "<svg" in folder.read("e.svg")
    assert "digraph" in folder.read("e.dot")
    assert json.loads(folder.read("e.json"))["version"] == 1


def test_a_file_on_the_terminal_alone(explain) -> None:
    ran = explain("seed.py", "--json", "-")
    assert json.loads(ran.out)["version"] == 1  # the script's output is omitted, too
    assert "shape torch.Size([2, 3])" in ran.err


def test_the_page_is_opened(explain, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert explain("seed.py", "--open").code == 0
    assert explain("seed.py", "--html", "a page.html", "--open").code == 0
    assert opened[0].startswith("file:///") and opened[0].endswith(".html") and opened[1].endswith("/a%20page.html")
    os.remove(opened[0].removeprefix("file://"))


def test_a_check_that_fails_is_an_exit_code(folder) -> None:
    """A rule that is wrong at the second call: the gradients differ from the Jacobian."""
    folder.write(
        "moody.py",
        """
        import chainrule as cr

        class Moody(cr.autograd.Function):
            calls = 0

            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                Moody.calls += 1
                return g * Moody.calls

        x = cr.ones(3, requires_grad=True)
        y = Moody.apply(x)
        """,
    )
    ran = folder.run("explain", "moody.py")
    assert ran.code == 1 and ran.out.strip()
