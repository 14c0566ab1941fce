"""Anomaly mode in forward mode and in structured Jacobians, and the operation responsible for each NaN."""

import gc
import pickle
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import detect_anomaly, forward_ad

pytestmark = [
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
    pytest.mark.filterwarnings("ignore:Error detected in"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def sign(x):
    return x / np.abs(x)


def steep(x):
    return np.sum(np.abs(x) ** 1.5)


def number(x):
    return np.sqrt(x) * 0


def masked(x):
    return np.where(x > 0, np.sqrt(x), 0)


def dual_of(x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(sign(forward_ad.make_dual(x, cr.ones_like(x)))).tangent


LINES = ("return x / np.abs(x)", "return np.sum(np.abs(x) ** 1.5)", "return np.sqrt(x) * 0")
X, T, ONES = np.array([1.0, 0.0]), cr.tensor([1.0, 0.0]), np.ones(2)
RUNS = {
    "jvp": lambda: cr.jvp(sign, (X,), (ONES,)),
    "jvp of a tensor": lambda: cr.func.jvp(sign, (T,), (cr.ones(2),)),
    "jvp of float32 beside float64": lambda: cr.jvp(
        lambda x: np.sum(sign(x) * ONES), (X.astype("f4"),), (ONES.astype("f4"),)
    ),
    "jacfwd": lambda: cr.jacfwd(sign)(X),
    "jacobian of a number": lambda: cr.jacobian(number, 0.0),
    "jacobian, forward": lambda: cr.jacobian(sign, X, mode="forward"),
    "functional.jvp": lambda: cr.autograd.functional.jvp(sign, T, cr.ones(2)),
    "functional.jacobian": lambda: cr.autograd.functional.jacobian(sign, T, strategy="forward-mode", vectorize=True),
    "dual tensors": lambda: dual_of(T),
    "vmap of jvp": lambda: cr.vmap(lambda s: cr.jvp(sign, (s,), (np.ones(()),)))(X),
    "jvp of vmap": lambda: cr.jvp(cr.vmap(sign), (X,), (ONES,)),
    "jvp of grad": lambda: cr.jvp(cr.grad(steep), (X,), (ONES,)),
    "jacfwd of jacrev": lambda: cr.jacfwd(cr.jacrev(steep))(X),
    "jacfwd of jacfwd": lambda: cr.jacfwd(cr.jacfwd(steep))(X),
    "func.hessian": lambda: cr.func.hessian(steep)(X),
    "compiled": lambda: cr.compile(cr.jacfwd(sign))(X),
    "linearize": lambda: cr.func.linearize(sign, X)[1](ONES),
    "csr": lambda: cr.jacobian(sign, X, layout="csr").toarray(),
    "csr, reverse terms": lambda: cr.jacobian(sign, X, layout="csr", strategy="reverse terms").toarray(),
    "csr, of colours": lambda: cr.jacobian(sign, X, layout="csr", sparsity=np.eye(2)).toarray(),
    "structured": lambda: cr.jacobian(sign, X, layout="structured").to_dense(),
    "operator": lambda: cr.jacobian(sign, X, layout="operator") @ ONES,
    "hessian": lambda: cr.hessian(steep, X),
    "hessian, csr": lambda: cr.hessian(steep, X, layout="csr").toarray(),
}


def leaves(found):
    return np.concatenate([np.ravel(np.asarray(x)) for x in cr.tree.tree_leaves(found)])


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_transformation_names_the_line_of_the_first_nan(run):
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"^Function '.*' returned nan values in its ") as caught:
        run()
    assert "test_nan.py:" in str(caught.value) and any(line in str(caught.value) for line in LINES)
    assert type(pickle.loads(pickle.dumps(caught.value))) is RuntimeError


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_without_check_nan_it_is_silent(run):
    with detect_anomaly(check_nan=False):
        assert np.isnan(leaves(run())).any()


def test_a_tangent_that_a_mask_drops_is_no_error():
    with detect_anomaly():
        assert cr.jvp(masked, (X,), (X,))[1].tolist() == [0.5, 0.0]
        assert cr.jacfwd(masked)(X).tolist() == [[0.5, 0.0], [0.0, 0.0]]


def test_the_first_nan_on_the_way_to_the_result_is_named_and_not_one_beside_it():
    def f(x):
        masked(x - 1)  # nan as well, but nothing depends on it
        return sign(x)

    with detect_anomaly(), pytest.raises(RuntimeError, match="Function 'div' returned nan values in its tangent"):
        cr.jvp(f, (X,), (ONES,))


def test_a_structured_jacobian_names_the_infinite_entry():
    with detect_anomaly(), pytest.raises(RuntimeError) as caught:
        cr.jacobian(masked, X, layout="csr")
    assert "An entry of the Jacobian is inf in sqrt" in str(caught.value) and "sqrt(x + eps)" in str(caught.value)


def test_a_rule_is_named_where_its_tangent_is_nan():
    with detect_anomaly(), pytest.raises(RuntimeError, match="in the rule of PowBackward0"):
        cr.jvp(cr.grad(steep), (X,), (ONES,))


def test_an_example_of_a_batch_is_named_with_its_numbers():
    with detect_anomaly(), pytest.raises(RuntimeError) as caught:
        cr.vmap(cr.grad(sign))(X)
    assert "div computed the first nan at index (1,), with x = 0.0, y = 0.0" in str(caught.value)


def test_a_jacobian_by_rows_is_not_computed_again():
    with warnings.catch_warnings(record=True) as caught, detect_anomaly(), pytest.raises(RuntimeError):
        warnings.simplefilter("always")
        cr.jacobian(sign, X, mode="reverse")
    assert len([w for w in caught if "Error detected in" in str(w.message)]) == 1


def test_a_tangent_that_was_nan_already():
    with detect_anomaly(), pytest.raises(RuntimeError, match="The incoming tangent already contained nan"):
        cr.jvp(np.sin, (X,), (np.array([np.nan, 1.0]),))
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"The result's tangent is nan, .* at index \(0,\)"):
        cr.jvp(lambda x: x, (X,), (np.array([np.nan, 1.0]),))


def test_operations_of_several_results_of_which_one_does_not_move():
    matrix = cr.tensor([[1.0, 3.0], [4.0, 2.0]])
    with detect_anomaly():
        values, tangents = cr.func.jvp(lambda x: x.sort(1)[0], (matrix,), (matrix,))
        assert values.tolist() == tangents.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        assert cr.func.jvp(lambda x: cr.linalg.lu_factor(x)[0], (matrix,), (matrix,))[1].isfinite().all()


# -- the cause of each ---------------------------------------------------------------------------------------------------


def raised(run):
    with pytest.raises(RuntimeError) as caught:
        run()
    return str(caught.value)


def test_a_second_run_in_the_mode_speaks_of_its_own_nan():
    with detect_anomaly():
        x = cr.tensor([-1.0, 4.0], requires_grad=True)
        cr.where(x > 0, cr.log(x), 0).sum().backward()  # a nan without gradients
        text = raised(lambda: (cr.sqrt(cr.tensor([0.0], requires_grad=True)) * 0).sum().backward())
        assert "SqrtBackward0" in text and "In the forward pass" not in text and "log" not in text
        text = raised(lambda: (cr.tensor([0.0], requires_grad=True) / 0).mul(0).sum().backward())
        assert "DivBackward0" in text and "div computed the first nan" in text and "log" not in text


def test_the_nan_of_another_element_is_no_cause():
    x = cr.tensor([0.0, -1.0], requires_grad=True)
    with detect_anomaly():
        text = raised(lambda: cr.where(x > 0, cr.log(x), 0).sum().backward())
    assert "at index (0,)" in text and "Mask the input, too" in text and "In the forward pass" not in text


def test_infinite_gradients_that_cancel_at_a_leaf_raise():
    x = cr.tensor([1000.0], requires_grad=True)
    with detect_anomaly():
        text = raised(lambda: (x.exp() - x.exp()).sum().backward())
    assert text.startswith("Function 'AccumulateGrad' returned nan values in its 0th output.")
    assert "the gradient of x, at index (0,)" in text and "the gradient of exp" in text
    assert x.grad is None


def test_origins_are_forgotten_with_their_arrays():
    with detect_anomaly():
        for _ in range(3):
            cr.log(cr.tensor([-1.0, 0.0]))
        from chainrule._src.tape.modes import LOCAL

        assert not LOCAL.watch.nans.entries and not LOCAL.watch.infinities.entries
        with pytest.raises(RuntimeError):
            cr.jvp(sign, (X,), (ONES,))
        gc.collect()
        assert not LOCAL.watch.tangent_nans.entries
