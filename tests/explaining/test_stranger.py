"""Typical user programs: names and lines that are found are correct, or none are found."""

import linecache
import textwrap

import numpy as np
import pytest

import chainrule as cr


def run(tmp_path, text, **more):
    file = str(tmp_path / "program.py")
    text = textwrap.dedent(text)
    with open(file, "w", encoding="utf-8") as written:
        written.write(text)
    linecache.checkcache(file)
    variables = {"cr": cr, "np": np, "__name__": "__main__", **more}
    exec(compile(text, file, "exec"), variables)
    return variables


def test_most_lines_are_found(tmp_path):
    variables = run(
        tmp_path,
        """
        W, h, x = cr.ones(3, 3, requires_grad=True), cr.zeros(3), cr.ones(3)
        for i in range(5):
            h = cr.tanh(W @ h + x)
        y = x = h * 2
        x = x.exp()
        steps = cr.explain(x).steps
        """,
    )
    assert [step.source_line.line for step in variables["steps"]] == [6, 5, *[4] * 15]


def test_an_attribute_that_a_method_gave(tmp_path):
    ran = run(
        tmp_path,
        """
        class Net:
            def __init__(self):
                self.W = cr.ones(2, 2, requires_grad=True)
            def forward(self, x):
                self.h = x @ self.W
                return self.h.tanh()
        net = Net()
        y = net.forward(cr.ones(1, 2))
        graph = y.graph()
        """,
    )
    values = [node for node in ran["graph"].nodes if node.line and node.kind == "value"]
    assert {node.label: node.line.line for node in values} == {"net.W": 4, "net.h": 6, "y": 7}


def test_only_passes_since_the_tensor_was_made_count(tmp_path):
    ran = run(
        tmp_path,
        """
        a = cr.ones(3, requires_grad=True)
        (a * a).sum().backward()
        a = cr.ones(3, requires_grad=True)
        for i in range(3):
            (a[i] * a[i]).backward()
        why = a.why()
        """,
    )
    assert str(ran["why"]).startswith("a.grad is the sum of 3 backward() calls (program.py:6 in a loop).")


def test_passes_on_something_else_do_not_count(tmp_path):
    ran = run(
        tmp_path,
        """
        a, b = cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True)
        y, z = (a * a).sum(), (b * b).sum()
        y.backward()
        z.backward()
        why = a.why()
        """,
    )
    assert "from 1 backward() call (program.py:4)." in str(ran["why"])


SECOND = {
    "before the loop": (
        """
        y = x.exp()
        y.sum().backward()
        for i in range(2):
            y.sum().backward()
        """,
        "were freed by `y.sum().backward()` (program.py:4).",
    ),
    "on something else before the loop": (
        """
        y, q = x.exp(), x * x
        q.sum().backward()
        for i in range(2):
            y.sum().backward()
        """,
        "were freed by this line, in an earlier iteration of the loop (program.py:5).",
    ),
    "on something else": (
        """
        y, q = x.exp(), x * x
        y.sum().backward()
        q.sum().backward()
        y.sum().backward()
        """,
        "were freed by `y.sum().backward()` (program.py:4).",
    ),
    "before it was computed": (
        """
        y = x.exp()
        y.sum().backward()
        y = x.exp()
        def once():
            y.sum().backward()
        once()
        y.sum().backward()
        """,
        "The saved values of exp (program.py:5) (ExpBackward0) were freed by `y.sum().backward()` (program.py:7).",
    ),
    "in a function": (
        """
        def f():
            y = x.exp()
            y.sum().backward()
            return y
        y = f()
        y.sum().backward()
        """,
        "were freed by `y.sum().backward()` (program.py:5).",
    ),
}


@pytest.mark.parametrize("case", SECOND)
def test_who_freed_the_graph(tmp_path, case):
    text, words = SECOND[case]
    with pytest.raises(RuntimeError) as raised:
        run(tmp_path, "x = cr.ones(3, requires_grad=True)\n" + textwrap.dedent(text))
    assert words in str(raised.value)


def cells(*texts, name="<ipython-input-{}-0958047e392{}>"):
    """Run the cells of a session, with their source where IPython stores it."""
    variables = {"cr": cr, "np": np, "__name__": "__main__"}
    for i, text in enumerate(texts, 1):
        file = name.format(i, i)
        text = textwrap.dedent(text).lstrip()
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), variables)
    return variables


def test_cells_are_called_by_their_number():
    ran = cells(
        "x = cr.ones(2, requires_grad=True)",
        """
        y = x * 2
        z = y.exp()
        """,
        "z.sum().backward()",
        "why, graph = x.why(), z.graph()",
    )
    assert "(In[3]:1)" in str(ran["why"])
    assert [node.line.line for node in ran["graph"].nodes if node.label == "z"] == [2]
    with pytest.raises(
        RuntimeError,
        match=r"The saved values of exp \(In\[2\]:2\) .* were freed by `z.sum\(\).backward\(\)` \(In\[3\]:1\)\.\n",
    ):
        cells(
            "x = cr.ones(2, requires_grad=True)",
            "y = x * 2\nz = y.exp()",
            "z.sum().backward()",
            "z.sum().backward()",
        )
    with pytest.raises(RuntimeError, match=r"were freed by `z.sum\(\).backward\(\)` \(In\[3\]:1\)\.\n"):
        cells(
            "x = cr.ones(2, requires_grad=True)",
            "y = x * 2\nz = y.exp()",
            "z.sum().backward()",
            "for i in range(2):\n    z.sum().backward()",
        )


def test_a_cell_whose_name_ends_in_many_digits():
    ran = cells(
        "x = cr.ones(2, requires_grad=True)", "y = x.exp()", "line = y.graph()", name="<ipython-input-{}-99999999999{}>"
    )
    assert str(ran["line"].nodes[-1].line) == "In[2]:1"


@pytest.mark.parametrize("file", ["<stdin>", "<string>"])
def test_typed_code_has_no_places(file):
    linecache.cache.pop(file, None)
    program = "y = x.exp()\ny += 1\ny.sum().backward()"
    with pytest.raises(RuntimeError, match="exp saved y for its backward rule, and then add_ overwrote it"):
        exec(compile(program, file, "exec"), {"x": cr.ones(2, requires_grad=True)})
    with pytest.raises(RuntimeError) as raised:
        program = "with cr.no_grad():\n    y = x * 2\ny.sum().backward()"
        exec(compile(program, file, "exec"), {"x": cr.ones(2, requires_grad=True), "cr": cr})
    assert "file" not in str(raised.value) and "<s" not in str(raised.value)
    made = {"x": cr.ones(2, requires_grad=True), "cr": cr}
    exec(compile("y = x * 2", file, "exec"), made)
    assert made["y"].graph().nodes[-1].line is None


def test_advice_for_attributes_and_items(tmp_path):
    with pytest.raises(RuntimeError, match=r"Otherwise: write `net.W = net.W - 0.1`"):
        run(
            tmp_path,
            """
            class Net:
                W = cr.ones(3, requires_grad=True)
            net = Net()
            net.W -= 0.1
            """,
        )
    with pytest.raises(RuntimeError, match=r"Write `ys\[1\] = ys\[1\] \+ 1`"):
        run(
            tmp_path,
            """
            ys = [cr.ones(3, requires_grad=True).exp() for _ in range(3)]
            ys[1] += 1
            sum(ys).sum().backward()
            """,
        )
    with pytest.raises(RuntimeError, match=r"Write to a copy: insert `y = y.clone\(\)`"):
        run(
            tmp_path,
            """
            y = cr.ones(3, requires_grad=True).exp()
            y[1] += 1
            y.sum().backward()
            """,
        )


def test_numbers_that_were_collected_in_a_list(tmp_path):
    with pytest.raises(RuntimeError, match=r"`\(w \* i\).sum\(\).item\(\)` \(program.py:5\) is a plain number"):
        run(
            tmp_path,
            """
            w, losses = cr.ones(3, requires_grad=True), []
            for i in range(3):
                _ = i
                losses.append((w * i).sum().item())
            total = cr.tensor(losses).mean()
            total.backward()
            """,
        )


def test_a_parameter_that_was_rebound_by_its_step(tmp_path):
    with pytest.warns(UserWarning, match=r"w was rebound .* write in place: `with no_grad\(\): w -= lr \* w.grad`"):
        run(
            tmp_path,
            """
            w = cr.ones(3, requires_grad=True)
            w.sum().backward()
            w = w - 0.1 * w.grad
            w.grad
            """,
        )


def test_long_expressions_are_not_repeated(tmp_path):
    with pytest.raises(RuntimeError) as raised:
        run(tmp_path, "def model(x):\n    return x * 2\nmodel(cr.ones(3, requires_grad=True)).backward()")
    assert "y = mul (program.py:2) has shape (3,)" in str(raised.value) and "jacobian(y, x)" in str(raised.value)
    name = "w" * 90
    with pytest.raises(RuntimeError) as raised:
        run(tmp_path, f"{name} = cr.ones(3, requires_grad=True)\nb = {name} * 2\nb.backward()")
    assert max(len(line) - line.count(name) * 90 for line in str(raised.value).splitlines()) < 100


def test_a_function_that_returns_no_tensor():
    with pytest.raises(TypeError, match="the function returned int, not a tensor"):
        cr.explain(lambda x: x * 2)(3)
    with pytest.raises(TypeError, match="Return a tensor that is computed from the arguments"):
        cr.explain(lambda x: 3)(3.0)


@pytest.mark.parametrize(
    ("grad", "words"), [("a", "not 'a'"), ([[1, 2], [3]], r"not \[\[1, 2\], \[3\]\]"), ("a" * 99, "which is a str")]
)
def test_a_gradient_that_is_no_numbers(grad, words):
    with pytest.raises(TypeError, match=f"argument 'grad' must be numbers.*{words}"):
        cr.explain(cr.ones(3, requires_grad=True) * 2, grad=grad)


def test_keys_with_quotes_and_values_passed_to_a_constructor(tmp_path):
    ran = run(
        tmp_path,
        """
        from types import SimpleNamespace as S
        x = cr.ones(3, requires_grad=True)
        d = {'a "b"': x * 2, "c": x * 3}
        s = S(v=x * 5, w=x.exp())
        names = [node.label for node in (d['a "b"'] + d["c"]).graph().nodes]
        lines = [node.line.line for node in (s.v + s.w).graph().nodes if node.label in ("s.v", "s.w")]
        """,
    )
    assert {"d['a \"b\"']", 'd["c"]'} < set(ran["names"])
    assert ran["lines"] == [5, 5]


def test_words_for_jacobians_of_sums():
    x = cr.ones(2, 5, requires_grad=True)
    words = {cr.explain(y).steps[0].structure for y in (x.sum(), x.sum(0), x.mean(), x.mean(1))}
    assert words == {"ones", "rows of ones", "all 1/10", "rows of 1/5"}
    assert cr.explain(x * cr.ones(2, 1, requires_grad=True)).steps[0].arrows[1].structure == "stretched diagonal"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "W = x + 1; x @ cr.ones(2, 3)",
            "x @ cr.ones(2, 3) is (2, 3) @ (2, 3), inner sizes 3 ≠ 2. x @ cr.ones(2, 3).T has",
        ),
        ("cr.matmul(x * 2, x)", "matmul: (x * 2) @ x is (2, 3) @ (2, 3)"),
        ("(x @ x.T @ cr.ones(3)).sum()", "(x @ x.T) @ cr.ones(3) is (2, 2) @ (3,)"),
        ("b = 3; x[0] + cr.ones(4)", "For all pairs: x[0][:, None] and cr.ones(4) give (3, 4)."),
    ],
)
def test_operands_without_a_name_are_called_as_they_are_written(tmp_path, code, words):
    with pytest.raises(RuntimeError) as raised:
        run(tmp_path, f"x = cr.ones(2, 3, requires_grad=True)\n{code}")
    assert words in str(raised.value)


def test_why_of_something_deep(tmp_path):
    ran = run(
        tmp_path,
        """
        class Model:
            def __init__(self):
                self.p = {"w": cr.ones(3, requires_grad=True)}
        m = Model()
        why = m.p["w"].why()
        """,
    )
    assert str(ran["why"]).startswith("m.p['w'].grad is None: no backward() has reached m.p['w'].")


def test_explaining_what_backward_has_freed(tmp_path):
    with pytest.raises(
        RuntimeError, match=r"(?s)were freed by `y.sum\(\).backward\(\)`.*Call explain\(\) before backward\(\)"
    ):
        run(tmp_path, "y = cr.ones(3, requires_grad=True).exp()\ny.sum().backward()\nprint(cr.explain(y))")


@pytest.mark.filterwarnings("error")
def test_a_page_of_numbers_that_are_not_finite():
    x = cr.tensor([1.0, np.nan, np.inf], requires_grad=True)
    with np.errstate(all="ignore"):
        assert "nan" in cr.explain((x * x).sum()).to_html()
