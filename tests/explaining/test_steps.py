"""Explanations of all kinds of graphs: the numbers equal those of backward, and there are no side effects."""

from __future__ import annotations

import json

import numpy as np
import pytest

import chainrule as cr
from chainrule.primitive import elementwise, opaque
from chainrule.utils.checkpoint import checkpoint

BAR = "\u02c9"


def sound(e, *leaves):
    """Check that all numbers of an explanation agree with each other, and with backward."""
    by_value = {}
    for step in e.steps:
        for value, g in zip(step.outputs, step.upstreams):
            if not any("hooks" in note for note in step.notes):
                terms = e.terms_of(value)
                assert terms
                np.testing.assert_allclose(sum(t[2] for t in terms), g, rtol=1e-5)
        for arrow in step.arrows:
            by_value.setdefault(arrow.input.id, []).append(arrow.downstream)
            assert arrow.downstream.shape == arrow.input.shape
            assert arrow.jacobian_shape == (*step.output.shape, *arrow.input.shape)
            if arrow.rule_numpy and not arrow.words:
                with np.errstate(all="ignore"):
                    found = eval(arrow.rule_numpy, arrow.environment())
                np.testing.assert_allclose(found, arrow.downstream, rtol=1e-5, atol=1e-7)
            whole = arrow.jacobian()
            if whole is not None and len(step.outputs) == 1 and not step.notes and whole.dtype.kind == "f":
                found = np.tensordot(step.upstream, whole, step.upstream.ndim)
                np.testing.assert_allclose(found, arrow.downstream, rtol=1e-5, atol=1e-6)
    json.dumps(e.to_dict(), allow_nan=False)
    assert max(len(line.replace(BAR, "")) for line in str(e).split("\n")) <= 80
    assert e.check(), str(e.check())
    for leaf in leaves:
        assert leaf.grad is None
    if leaves:
        cr.autograd.backward(e._tensors, [cr.tensor(s) for s in e.seeds])
        for leaf in leaves:
            value = next(v for v in e.wrt if v.edge is leaf._edge)
            np.testing.assert_allclose(leaf.grad.numpy(), value.gradient, rtol=1e-6)
    return e


def leaf(*shape, dtype=cr.float64):
    data = np.linspace(-1.3, 1.7, int(np.prod(shape))).reshape(shape)
    return cr.tensor(data, dtype=dtype, requires_grad=True)


def test_names_shapes_and_sums():
    x, w, b = leaf(2, 3), leaf(3, 4), leaf(4)
    h = cr.tanh(x @ w + b)
    loss = (h * h).mean()
    e = sound(cr.explain(loss), x, w, b)
    assert [v.name for v in e.wrt] == ["x", "w", "b"]
    assert [s.op for s in e.steps] == ["mean", "mul", "tanh", "add", "mm"]
    assert [s.output.name for s in e.steps] == ["loss", "t3", "h", "t2", "t1"]
    mul = e.steps[1]
    assert [a.sign for a in mul.arrows] == ["=", "+="]
    assert [(i, o) for i, o, _ in e.steps[2].terms] == [(2, "x"), (2, "y")]
    assert e.steps[2].source_line is not None and "tanh" in e.steps[2].source_line.text
    assert e.values["w"].role == "leaf" and e.values["loss"].role == "output"


def test_values_that_were_not_kept_are_computed_again():
    x = leaf(3)
    y = (x + x).exp().sum()  # add saves nothing
    e = cr.explain(y)
    np.testing.assert_allclose(e.values["t1"].data, 2 * x.detach().numpy())
    np.testing.assert_allclose(e.values["t2"].data, np.exp(2 * x.detach().numpy()))


def test_nothing_is_touched():
    x = leaf(3)
    y = x * x
    z = y.sum()
    y.retain_grad()
    x.retain_grad()
    calls = []
    x.register_post_accumulate_grad_hook(calls.append)
    version = x._version
    e = cr.explain(z)
    e.check(), str(e), e.to_dict()
    assert x.grad is None and y.grad is None and not calls
    assert x._version == version
    z.backward()
    assert calls


def test_explanations_do_not_change_afterwards():
    x = leaf(3)
    y = x * x
    e = cr.explain(y)
    before = e.to_dict()["values"]
    with cr.no_grad():
        x *= 10
    assert e.to_dict()["values"] == before
    (arrow, _) = e.steps[0].arrows
    np.testing.assert_allclose(eval(arrow.rule_numpy, arrow.environment()), arrow.downstream)
    np.testing.assert_allclose(np.diag(arrow.jacobian()), arrow.downstream)


def test_wrt_chooses():
    x, w = leaf(3), leaf(3)
    y = x * x
    z = (y * w).sum()
    e = sound(cr.explain(z, wrt=y))
    assert list(e.gradients) == ["y"] and [s.op for s in e.steps] == ["sum", "mul"]
    (constant,) = e.steps[1].constants
    assert constant.name == "w" and "wrt" in constant.why_constant
    both = cr.explain(z, wrt=[w, x])
    assert list(both.gradients) == ["w", "x"]
    with pytest.raises(RuntimeError, match="does not require grad"):
        cr.explain(z, wrt=cr.ones(3))


def test_several_outputs():
    x = leaf(3)
    y, z = x * 2, x.sum()
    e = sound(cr.explain((y, z), (np.ones(3), None)), x)
    assert [v.name for v in e.outputs] == ["y", "z"]
    np.testing.assert_array_equal(e.gradients["x"], [3, 3, 3])
    with pytest.raises(RuntimeError, match="2 tensors and 1 gradients"):
        cr.explain((y, z), (np.ones(3),))


def test_an_operation_with_several_results():
    a = cr.tensor(np.array([[2.0, 1.0], [1.0, 3.0]]), requires_grad=True)
    w, v = cr.linalg.eigh(a)
    (only,) = sound(cr.explain(w)).steps
    assert [o.name for o in only.outputs] == ["w"]
    e = sound(cr.explain((w, v), (np.ones(2), np.ones((2, 2)))), a)
    (step,) = e.steps
    assert [o.name for o in step.outputs] == ["w", "v"]


def test_complex_numbers():
    z = cr.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    m = cr.tensor([[1 + 1j, 2], [0, 1j]], requires_grad=True)
    loss = ((m @ z) * z.conj()).abs().sum()
    e = sound(cr.explain(loss), z, m)
    rules = [a.rule_numpy for s in e.steps for a in s.arrows if s.op == "mv"]
    assert all("np.conj" in rule for rule in rules)


def test_views_and_writes_in_place():
    x = leaf(3, 4)
    y = x * 2
    y[0] = cr.sin(x[1])
    y.T[2] += x[:, 0]
    sound(cr.explain(y.sum()), x)
    x = leaf(3, 4)
    part = x.T[1:].reshape(-1)[::2]
    e = sound(cr.explain(part * part), x)
    getitem = next(s for s in e.steps if s.op == "getitem")
    assert "where" in getitem.arrows[0].rule_index
    assert getitem.arrows[0].structure == "selection"


def test_composites_are_their_parts():
    x, w = leaf(2, 3, 4), leaf(4, 5)
    e = sound(cr.explain(cr.einsum("bij,jk->bik", x, w)), x, w)
    assert {s.op for s in e.steps} <= {
        "view",
        "permute",
        "bmm",
        "mm",
        "unsqueeze",
        "stack_mm",
        "unsafe_view",
        "squeeze",
        "sum",
    }


class Scaled(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x)
        ctx.s = s
        return x * x * s

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * ctx.s, None


class Two(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return 2 * a + 3 * b


def test_custom_functions():
    x = leaf(2)
    e = sound(cr.explain(Scaled.apply(x, 3).sum()), x)
    arrow = e.steps[1].arrows[0]
    assert arrow.rule_numpy is None and arrow.rule_index is None and arrow.rule_latex is None
    assert "Scaled.backward" in arrow.words and "Scaled.backward" in str(e)
    x = leaf(2)
    a, b = Two.apply(x)
    sound(cr.explain((a * b).sum()), x)


@elementwise(d={"x": lambda x: 3 * x * x}, formula={"x": "g * 3 * x * x"})
def cube(x):
    """The third power."""
    return x * x * x


def test_a_users_own_row():
    x = leaf(2)
    (step,) = sound(cr.explain(cube(x)), x).steps
    assert step.doc == "The third power."
    assert step.arrows[0].rule_numpy == f"t1{BAR} * 3 * x * x"


def test_hooks_are_applied_and_noted():
    x = leaf(2)
    y = x * x
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    z = y.sum()
    e = cr.explain(z)
    notes = " ".join(note for step in e.steps for note in step.notes)
    assert "hooks on y ran" in notes and "hooks on x ran" in notes
    assert "hooks" in str(e.check())
    z.backward()
    np.testing.assert_array_equal(x.grad.numpy(), e.gradients["x"])


@pytest.mark.parametrize("reentrant", [False])
def test_checkpoints(reentrant):
    x = leaf(3)
    sound(cr.explain(checkpoint(lambda x: cr.sin(x) * x, x, use_reentrant=reentrant)), x)


@pytest.mark.parametrize("make", [lambda x: x**3, lambda x: (x * x).reshape(1, 1), lambda x: x.expand(2)])
def test_zero_dimensions(make):
    x = cr.tensor(2.0, requires_grad=True)
    sound(cr.explain(make(x)), x)


def test_nothing_at_all():
    x = cr.zeros(0, 3, requires_grad=True)
    e = sound(cr.explain((x * 2).sum(0)), x)
    assert e.gradients["x"].shape == (0, 3)


def test_the_output_itself_is_a_leaf():
    x = leaf(2)
    e = cr.explain(x, grad=[1, 2])
    assert e.steps == []
    np.testing.assert_array_equal(e.gradients["x"], [1, 2])
    assert e.check()
    str(e), e.to_dict()


def test_where_a_formula_does_not_hold_it_is_said():
    x = cr.tensor([0.0, 2.0, 3.0], requires_grad=True)
    e = cr.explain(x.prod())
    (arrow,) = e.steps[0].arrows
    np.testing.assert_array_equal(e.gradients["x"], [6, 0, 0])
    assert "special case" in arrow.words and arrow.rule_index is None and arrow.numbers is None


def test_nan_and_infinity_survive():
    x = cr.tensor([0.0, -1.0, 1.0], requires_grad=True)
    with np.errstate(all="ignore"):
        e = cr.explain(cr.sqrt(x).sum())
        data = e.to_dict()
        text = str(e)
    assert json.dumps(data, allow_nan=False)
    gradient = next(iter(data["gradients"].values()))["data"]
    assert gradient[:2] == ["inf", "nan"] and "nan" in text


def test_a_loss_that_is_summed_in_a_loop_keeps_its_name():
    def total(w):
        loss = 0.0
        for row in np.eye(3):
            loss += np.sum((row * w) ** 2)
        return loss

    e = cr.explain(total)(np.ones(3))
    assert [value.name for value in e.outputs] == ["loss"] and "What loss.backward() computes for w" in str(e)


def test_small_numbers_of_the_text_have_three_digits():
    x = cr.tensor([0.00040129, 0.3], requires_grad=True)
    assert "[0.000401 0.3     ]" in str(cr.explain((x * x).sum() / 2, wrt=[x]))


def test_the_first_nan_has_a_note_with_the_reason():
    t, p = np.array([0.0, 1.0]), np.array([0.0, 0.5])
    with np.errstate(all="ignore"):
        e = cr.explain(lambda p: np.sum(t * np.log(np.abs(p))))(p)
    assert "numbers    t1ˉ[0] = 0 / 0 = nan" in str(e)
    notes = [note for step in e.steps for note in step.notes]
    assert len(notes) == 1 and notes[0] in e.steps[2].notes and e.steps[2].op == "log"
    assert notes[0].startswith("t1ˉ[0] is the first nan of this pass: there t2ˉ is 0 and the slope of log is infinite")
    assert "x * log(y) at 0 is xlogy(x, y)" in notes[0]


def test_nan_that_was_given_or_is_an_operand_is_not_blamed_on_the_rule():
    x = cr.tensor([np.nan, 2.0], requires_grad=True)
    e = cr.explain((x * x).sum())
    assert e.steps[1].notes == ["xˉ[0] is the first nan of this pass: an operand is nan"]
    x = leaf(2)
    assert all(not step.notes for step in cr.explain(cr.exp(x * 2), grad=[np.nan, 1.0]).steps)


def test_negative_zero_has_the_sign_of_the_other_numbers():
    x = leaf(2)
    assert "xˉ[0] = −1 · 0 = −0" in str(cr.explain(x * cr.tensor([0.0, 1.0]), grad=[-1.0, 1.0]))


@pytest.mark.parametrize(
    "gradient", [[1, 2, 3], np.array([1, 2, 3]), cr.tensor([1, 2, 3]), np.array([1.0, 2, 3]), [cr.tensor([1.0, 2, 3])]]
)
def test_gradients_of_all_kinds(gradient):
    x = leaf(3)
    y = x * 2
    np.testing.assert_array_equal(cr.explain(y, grad=gradient).gradients["x"], [2, 4, 6])


def test_no_gradient_means_ones_and_says_so():
    x = leaf(3)
    y = x * 2
    e = cr.explain(y)
    assert e.default_seed
    assert dict(e.lessons)["ones_means_sum"] == "No gradient was given, so it is ones: this differentiates L = y.sum()."
    assert not cr.explain(y.sum()).lessons or "ones_means_sum" not in dict(cr.explain(y.sum()).lessons)


def test_errors_are_those_of_backward():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        cr.explain((x * x).argmax())
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        cr.explain(x * x, grad=np.ones(2))
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        cr.explain(y)
    with pytest.raises(TypeError, match="must be a Tensor"):
        cr.explain([1.0])
    with pytest.raises(RuntimeError, match="inside a transformation"):
        cr.vmap(lambda x: (cr.explain(x * x), x)[1])(cr.ones(3, requires_grad=True))


def test_a_function():
    def model(x, params):
        h = cr.tanh(x @ params["w"] + params["b"])
        return (h**2).mean()

    params = {"w": np.arange(12.0).reshape(3, 4) / 10, "b": np.zeros(4)}
    e = sound(cr.explain(model)(np.ones((2, 3)), params))
    assert list(e.gradients) == ["x", "params['w']", "params['b']"]
    assert "h" in e.values and e.steps[0].output.name == "y"
    assert all(s.source_line is not None for s in e.steps)
    assert f"params_b{BAR}" in str(e)
    by_hand = cr.func.grad(model, argnums=1)(
        cr.ones(2, 3, dtype=cr.float64), {k: cr.tensor(v) for k, v in params.items()}
    )
    np.testing.assert_allclose(by_hand["w"].numpy(), e.gradients["params['w']"])


def test_a_function_with_other_arguments():
    e = cr.explain(lambda x, n, *, scale: (x * scale).sum() * n, grad=2.0)(cr.ones(2), 3, scale=np.full(2, 5.0))
    np.testing.assert_array_equal(e.gradients["x"], [30, 30])
    np.testing.assert_array_equal(e.gradients["scale"], [6, 6])
    unused = cr.explain(lambda a, b: a * 2)(np.ones(2), np.ones(3))
    assert unused.gradients["b"] is None and "no path" in str(unused) and unused.check()
    w = leaf(2)
    assert set(cr.explain(lambda x: (x * w).sum())(np.ones(2)).gradients) == {"x", "w"}


def test_constants_say_why():
    x = leaf(2)
    k = cr.tensor([5.0, 5.0], dtype=cr.float64)
    index = cr.tensor([1, 0])
    e = cr.explain((x * k)[index].sum() + cr.gather(x, 0, index).sum())
    why = {v.name: v.why_constant for v in e.values.values() if v.role == "constant"}
    assert why["k"] == "does not require grad"
    assert why["index"] == "integers and booleans have no gradient"


def test_a_check_that_would_be_too_large_says_so():
    x = cr.ones(2000, requires_grad=True)
    e = cr.explain(x * 2)
    assert e.check() and "not checked" in str(e.check()) and "4,000,000" in str(e.check())
    assert e.steps[0].arrows[0].jacobian() is None
    data = e.to_dict()
    (arrow,) = data["steps"][0]["arrows"]
    assert arrow["jacobian"] is None and arrow["jacobian_size"] == 4_000_000
    assert arrow["downstream"]["truncated"] and len(arrow["downstream"]["data"]) < 100


def test_a_wrong_gradient_would_be_noticed():
    class Wrong(cr.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            Wrong.calls += 1
            return g * Wrong.calls

    x = leaf(2)
    check = cr.explain(Wrong.apply(x)).check()
    assert not check and "✗" in str(check)


def test_hundreds_of_operations(calls):
    def chain(length):
        x = cr.ones(3, requires_grad=True)
        y = x
        for _ in range(length):
            y = cr.sin(y) * x
        return y

    short, long = chain(25), chain(100)
    assert calls(lambda: str(cr.explain(long))) < 5 * calls(lambda: str(cr.explain(short)))
    e = cr.explain(chain(200))
    text = str(e)
    assert len(e.steps) == 400
    assert "left out" in text and len(text.split("\n")) < 200
    assert len(e.to_dict()["steps"]) == 400


def test_the_dictionary_has_what_pages_need():
    x, w = leaf(2, 3), leaf(3, 4)
    y = cr.exp(x @ w)
    data = cr.explain(y).to_dict()
    assert set(data) == {
        "version", "title", "outputs", "wrt", "seed", "default_seed", "values", "steps", "gradients", "jacobians", "check",
        "graph", "lessons", "scalar", "folds", "contributions",
    }  # fmt: skip
    ids = set(data["values"])
    assert set(data["outputs"]) | set(data["wrt"]) <= ids
    for value in data["values"].values():
        assert set(value) == {"name", "bar", "shape", "dtype", "role", "data", "gradient", "why_constant", "line"}
    for step in data["steps"]:
        assert {
            "index",
            "op",
            "node",
            "doc",
            "line",
            "output",
            "upstream",
            "terms",
            "arrows",
            "constants",
            "notes",
        } <= set(step)
        assert step["output"] in ids
        for arrow in step["arrows"]:
            assert {
                "operand",
                "input",
                "jacobian_shape",
                "structure_text",
                "rule",
                "element",
                "numbers",
                "unbroadcast",
                "jacobian",
            } <= set(arrow)
            assert set(arrow["rule"]) == {"numpy", "latex", "mathml", "index"}
            assert np.shape(arrow["jacobian"]) == tuple(arrow["jacobian_shape"])
    assert data["graph"]["nodes"] and data["graph"]["layout"]
    assert data["check"]["ok"] is True


def test_structures():
    x, w, b = leaf(2, 3), leaf(3, 4), leaf(4)

    def of(y, operand=0):
        return cr.explain(y).steps[0].arrows[operand].structure

    assert of(cr.exp(x)) == "diagonal"
    assert of(x @ w) == "I ⊗ wᵀ" and of(x @ w, 1) == "x ⊗ I"
    assert (
        of(x.sum()) == "ones" and of(x.sum(0)) == "rows of ones" and of(x[0]) == "selection" and of(x.T) == "selection"
    )
    assert of(cr.softmax(x, 1)) == "block diagonal"
    assert of(cr.linalg.inv(w[:, :3])) == "dense"
    assert of((x @ w) + b, 1) == "stretched diagonal"


@pytest.mark.parametrize("product", ["mm", "mv", "vm", "dot"])
def test_kronecker_products_are_what_they_are_said_to_be(product):
    A = leaf(2, 3) if product in ("mm", "mv") else leaf(3)
    B = leaf(3, 4) if product in ("mm", "vm") else leaf(3)
    e = cr.explain(A @ B)
    for arrow in e.steps[0].arrows:
        a, b = A.detach().numpy(), B.detach().numpy()
        identity = {
            "mm": (np.eye(2), np.eye(4)),
            "mv": (np.eye(2), None),
            "vm": (None, np.eye(4)),
            "dot": (None, None),
        }[product]
        names = {"I": identity[arrow.position], "A": a, "B": b}
        factors = []
        for word in arrow.structure.split(" ⊗ "):
            m = names[word.rstrip("ᵀ")]
            factors.append(np.atleast_2d(m.T if word.endswith("ᵀ") and m.ndim == 2 else m))
        whole = factors[0] if len(factors) == 1 else np.kron(*factors)
        flat = arrow.jacobian().reshape(max(arrow.step.output.data.size, 1), -1)
        np.testing.assert_allclose(whole, flat)


def test_parameters_of_a_function_are_asked_for_by_name() -> None:
    def f(w, b):
        return (w * 2 + b).sum()

    w, b = np.ones(2), np.zeros(2)
    assert list(cr.explain(f, wrt="w")(w, b).gradients) == ["w"]
    assert list(cr.explain(f, wrt=["b", "w"])(w, b).gradients) == ["b", "w"]
    assert list(cr.explain(f, wrt=b)(w, b).gradients) == ["b"]
    assert list(cr.explain(lambda p: p["u"] * 3, wrt="p")({"u": w}).gradients) == ["p['u']"]
    with pytest.raises(ValueError, match="no floating-point argument has that name; the names are w, b"):
        cr.explain(f, wrt="q")(w, b)


def test_fewer_axes_than_the_operand_is_no_broadcasting():
    x = cr.ones(1, 1, requires_grad=True)
    (step,) = cr.explain(x.sum(1)).steps
    assert step.arrows[0].unbroadcast is None


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("np.transpose(g, axes=(1, 0)).T", r"\operatorname{transpose}\left("),
        ("np.flip(np.flip(g))", r"\operatorname{flip}\left(\operatorname{flip}\left("),
        ("np.sqrt(g, where=True) ** 2", r"\operatorname{sqrt}\left("),
        ("{'a': g}['a']", r"{\mathtt{"),
        ("g + nothing", None),
    ],
)
def test_a_formula_of_yours_that_is_written_otherwise_is_shown_as_it_is(formula, latex):
    @opaque(vjp={"x": lambda g: g}, jvp={"x": lambda t: t}, formula={"x": formula})
    def same(x):
        """The same."""
        return x * 1

    e = cr.explain(same(cr.ones(2, 3, requires_grad=True)))
    found = e.steps[0].arrows[0].rule_latex
    assert found is None if latex is None else latex in found
    assert str(e) and e.to_dict()
