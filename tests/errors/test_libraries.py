"""Errors of NumPy and SciPy functions that do not support tensors: messages name the user's call and tensor."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

weights = cr.tensor(np.array([0.5, 0.7]), requires_grad=True)


def message(call):
    with pytest.raises(RuntimeError, match="requires grad") as error:
        call(weights)
    return str(error.value)


def test_joins_by_index():
    assert "np.r_ takes plain arrays: np.concatenate([...]) keeps the derivative" in message(lambda x: np.r_[x, 1.0])
    text = message(lambda x: np.c_[x, x])
    assert "np.column_stack([...])" in text and "gradient of x," in text and "x.detach().numpy()" in text


def test_a_list_of_tensors():
    for call in (lambda x: np.array([x[0], x[1]]), lambda x: np.array((x[0], 1.0)), lambda x: np.asarray([x, x])):
        assert "stack([...])" in message(call)
    for call in (lambda x: np.sum([x, x]), lambda x: np.stack([[x[0], 1.0], [2.0, x[1]]])):
        assert "converts a list of tensors to an array: np.stack([...])" in message(call)


def test_one_tensor_is_no_list():
    text = message(lambda x: np.asarray(x))
    assert "stack" not in text and "x.detach().numpy()" in text


def test_the_same_name_is_found():
    special, linalg = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.linalg")
    integrate = pytest.importorskip("scipy.integrate")
    assert "special.logsumexp takes plain arrays: chainrule.scipy.special.logsumexp" in message(
        lambda x: special.logsumexp(x)
    )
    assert "linalg.inv takes plain arrays: np.linalg.inv" in message(lambda x: linalg.inv(np.stack([x, x**2])))
    square = "chainrule.scipy.linalg.solve_triangular keeps the derivative"
    assert square in message(lambda x: linalg.solve_triangular(np.stack([x, x**2]), x))
    assert "np.trapezoid" in message(lambda x: integrate.trapezoid(x)) or not hasattr(np, "trapezoid")


def test_another_name_is_known():
    linalg = pytest.importorskip("scipy.linalg")
    assert "linalg.expm takes plain arrays: chainrule.scipy.linalg.expm" in message(
        lambda x: linalg.expm(np.stack([x, x]))
    )


def test_distributions():
    stats = pytest.importorskip("scipy.stats")
    text = message(lambda x: stats.norm.logpdf(x))
    assert "stats.norm.logpdf takes plain arrays: chainrule.stats.norm.logpdf keeps the derivative" in text
    assert "gradient of x," in text and "x.detach().numpy()" in text
    logpdf = stats.gamma.logpdf
    assert "logpdf takes plain arrays: chainrule.stats.gamma.logpdf keeps" in message(lambda x: logpdf(x, 2.0))
    assert "chainrule.stats.t.cdf keeps" in message(lambda x: stats.t(3.0).cdf(x))
    assert "chainrule.stats.norm.logpdf keeps" in message(lambda x: stats.norm(x).logpdf(1.0))
    assert "chainrule.stats.dirichlet keeps" in message(lambda x: stats.dirichlet(x).logpdf([0.5, 0.5]))
    assert "chainrule.stats has SciPy's common distributions" in message(lambda x: stats.gompertz.logpdf(x, 2.0))
    if hasattr(stats, "Normal"):
        assert "stats.Normal takes plain arrays: chainrule.stats.norm keeps" in message(lambda x: stats.Normal(mu=x))


def test_nothing_is_like_it():
    signal = pytest.importorskip("scipy.signal")
    text = message(lambda x: signal.medfilt(x))
    assert "signal.medfilt takes plain arrays, and chainrule has no function of that name" in text
    assert "chainrule.primitive" in text


def test_a_library_called_by_a_transformation():
    special = pytest.importorskip("scipy.special")
    with pytest.raises(
        RuntimeError, match=r"scipy\.special\.logsumexp takes plain arrays: chainrule\.scipy\.special\.logsumexp"
    ):
        cr.func.grad(special.logsumexp)(np.ones(3))


def test_the_same_inside_transformations():
    linalg = pytest.importorskip("scipy.linalg")
    for transform in (lambda f: cr.vmap(f)(np.ones((2, 2, 2))), lambda f: cr.func.jacfwd(f)(np.ones((2, 2)))):
        with pytest.raises(RuntimeError, match=r"linalg\.expm takes plain arrays: chainrule\.scipy\.linalg\.expm"):
            transform(lambda x: linalg.expm(x))
        with pytest.raises(RuntimeError, match=r"To combine values: np.stack\(\[...\]\)"):
            transform(lambda x: np.array([x[0], x[1]]))  # rows; of single elements np.array holds each


def test_plain_numbers_inside_a_library():
    integrate = pytest.importorskip("scipy.integrate")
    with pytest.warns(UserWarning, match=r"chainrule\.scipy\.integrate\.quad keeps the derivative"):
        integrate.quad(lambda t: t * weights[0], 0, 1)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda x: np.full(3, x[0]), "np.full takes plain arrays: value * np.ones(shape) keeps the derivative"),
        (lambda x: np.full_like(np.ones(3), x[0]), "np.full_like takes plain arrays: value * np.ones_like(x)"),
        (lambda x: np.fill_diagonal(np.ones((2, 2)), x), "np.fill_diagonal takes plain arrays: np.where(np.eye(n)"),
    ],
)
def test_no_function_is_sent_back_to_itself(call, instead):
    assert instead in message_of(lambda: call(weights))


def message_of(call):
    with pytest.raises(RuntimeError) as error:
        call()
    return str(error.value)


def test_names_and_lines_are_those_of_the_program_and_not_of_a_library(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "frames"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import numpy\ndef product(data, other):\n    result = numpy.asarray(other)\n    return data * result\n"
        "def shift(result):\n    result[0] = 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    import frames

    text = message_of(lambda: frames.product(1.0, weights))
    assert "gradient of weights," in text and "weights.detach().numpy()" in text and "other" not in text
    text = message_of(lambda: frames.shift(weights[:1]))
    assert "result[0] = 1.0" in text  # the message quotes the responsible line


def test_pandas_keeps_its_variables_to_itself():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0])
    for call in (lambda: series.dot(weights), lambda: series @ weights, lambda: pandas.Series(weights)):
        assert "convert the data to an array first, as in df.to_numpy() @ x" in message_of(call)


def test_sums_over_groups_of_pandas_are_bincount():
    pandas = pytest.importorskip("pandas")
    table, codes = pandas.DataFrame({"k": list("abab")}), np.array([0, 1, 0, 1])

    def of_series(x):
        return np.sum(pandas.Series(x).groupby(codes).sum() ** 2)

    def of_column(x):
        held = table.copy()
        held["v"] = x
        return np.sum(held.groupby("k")["v"].sum() ** 2)

    x = np.arange(4.0)
    for function in (of_series, of_column):
        for call in (lambda f=function: cr.grad(f)(x), lambda f=function: f(cr.tensor(x, requires_grad=True))):
            text = message_of(call)
            assert "np.bincount(codes, weights=x) sums x over groups and keeps the derivative" in text, text
            assert "to_numpy() @ x" not in text and "plain NumPy array, which holds" not in text
    assert cr.grad(lambda x: np.sum(np.bincount(codes, weights=x) ** 2))(x).tolist() == [4.0, 8.0, 4.0, 8.0]


def test_vectorize_is_vmap_here():
    x = cr.Array(np.ones(3)).requires_grad_()
    text = message_of(lambda: np.vectorize(lambda a: a * 2)(x))
    assert "np.vectorize takes plain arrays: chainrule.vmap keeps the derivative" in text


def test_the_names_exist():
    from chainrule._src.messages.libraries import ELSEWHERE

    for instead in ELSEWHERE.values():
        if instead.startswith("chainrule."):
            found = cr
            for part in instead.split(".")[1:]:
                found = getattr(found, part)
            assert callable(found)


def test_typos_in_modules_are_answered():
    with pytest.raises(AttributeError, match="Did you mean 'functional'"):
        _ = cr.autograd.functoinal
    with pytest.raises(AttributeError, match=r"use utils\.data"):
        _ = cr.utils.DataLoader


@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_a_picture_of_a_tensor():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    text = message(lambda x: pyplot.plot(x))
    assert "pyplot.plot takes plain arrays: plot the detached values" in text and "x.detach().numpy()" in text
    pyplot.close()
