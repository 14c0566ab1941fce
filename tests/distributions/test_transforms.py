"""``distributions.transforms``: inverses undo transforms, log determinants are those of the Jacobian, shapes are as declared."""

import gc
import math
import pickle

import pytest

from behaviour import OURS, torch

D = torch.distributions
C = D.constraints


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def matrix(*rows):
    return torch.tensor(rows, dtype=torch.float64)


X = matrix([0.3, -1.2, 0.7], [1.5, 0.1, -0.4])

#: a transform, and an input
CASES = [
    (lambda **o: D.ExpTransform(**o), X),
    (lambda **o: D.PowerTransform(t(0.5, 2.0, -1.5), **o), X.exp()),
    (lambda **o: D.SigmoidTransform(**o), X),
    (lambda **o: D.SoftplusTransform(**o), X),
    (lambda **o: D.TanhTransform(**o), X),
    (lambda **o: D.AffineTransform(1.0, -2.0, **o), X),
    (lambda **o: D.AffineTransform(t(1, 2, 3), t(-1, 2, 0.5), event_dim=1, **o), X),
    (lambda **o: D.CumulativeDistributionTransform(D.Normal(t(0)[0], 2.0), **o), X),
    (lambda **o: D.StickBreakingTransform(**o), X),
    (lambda **o: D.CorrCholeskyTransform(**o), X),
    (lambda **o: D.ReshapeTransform((3,), (3, 1), **o), X),
    (lambda **o: D.IndependentTransform(D.TanhTransform(), 1, **o), X),
    (lambda **o: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], **o), X),
    (lambda **o: D.ComposeTransform([D.TanhTransform(), D.StickBreakingTransform()], **o), X),
    (lambda **o: D.CatTransform([D.ExpTransform(), D.TanhTransform()], -1, [1, 2], **o), X),
    (lambda **o: D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], -1, **o), X),
    (lambda **o: D.ExpTransform(**o).inv, X.exp()),
    (lambda **o: D.ComposeTransform([], **o), X),
]


@pytest.mark.parametrize(("make", "x"), CASES)
def test_inverse_and_determinant(make, x):
    transform = make()
    y = transform(x)
    torch.testing.assert_close(transform.inv(y), x)
    assert transform.inv.inv is transform and transform.inv.domain.event_dim == transform.codomain.event_dim
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    log_det = transform.log_abs_det_jacobian(x, y)
    if OURS or not isinstance(transform, D.StackTransform):  # whose event_dim PyTorch does not sum over
        assert log_det.shape == x.shape[: x.dim() - transform.domain.event_dim]
    torch.testing.assert_close(transform.inv.log_abs_det_jacobian(y, x), -log_det)
    for row in range(len(x)):
        jacobian = torch.autograd.functional.jacobian(lambda row: transform(row[None])[0], x[row])
        if isinstance(transform, D.StickBreakingTransform) or transform.codomain is C.simplex:
            jacobian = jacobian[:-1]  # the last proportion follows from the others
        elif isinstance(transform, D.CorrCholeskyTransform):
            rows, columns = zip((1, 0), (2, 0), (2, 1), strict=True)
            jacobian = jacobian[list(rows), list(columns)]
        jacobian = jacobian.reshape(3, 3)
        torch.testing.assert_close(log_det[row].sum(), torch.linalg.slogdet(jacobian)[1])


@pytest.mark.parametrize(("make", "x"), CASES)
def test_a_cache_returns_the_very_input(make, x):
    transform = make(cache_size=1)
    y = transform(x)
    if not isinstance(transform, (D.ComposeTransform, type(D.ExpTransform().inv))):
        assert transform.inv(y) is x and transform(x) is y
    assert make()(x) is not make()(x) or transform is D.identity_transform or not getattr(transform, "parts", True)
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)


def test_projections():
    torch.testing.assert_close(D.AbsTransform()(t(-1, 2)), t(1, 2))
    torch.testing.assert_close(D.AbsTransform().inv(t(1, 2)), t(1, 2))
    softmax = D.SoftmaxTransform()
    torch.testing.assert_close(softmax(softmax.inv(t(0.2, 0.8))), t(0.2, 0.8))
    for transform in (D.LowerCholeskyTransform(), D.PositiveDefiniteTransform()):
        y = transform(matrix([0.1, 5], [-1, 0.3]))
        assert transform.codomain.check(y) and transform(transform.inv(y)).allclose(y)
    assert not D.AbsTransform().bijective and D.ExpTransform().bijective
    with pytest.raises(NotImplementedError):
        D.AbsTransform().log_abs_det_jacobian(t(1), t(1))


def test_equality_and_signs():
    assert D.ExpTransform() == D.ExpTransform() != D.TanhTransform() and D.ExpTransform().inv == D.ExpTransform().inv
    assert D.AffineTransform(1, 2) == D.AffineTransform(1, 2) != D.AffineTransform(1, 3)
    assert D.AffineTransform(t(1), 2) == D.AffineTransform(t(1), 2) and D.PowerTransform(2.0) != D.PowerTransform(3.0)
    assert D.AffineTransform(1, -2).sign == -1 == D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0, -1)]).sign
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])


def test_an_inverse_can_be_collected_and_pickled():
    transform = D.ExpTransform()
    inverse = transform.inv
    assert transform.inv is inverse
    del inverse
    gc.collect()
    copy = pickle.loads(pickle.dumps(transform))
    assert copy == transform and copy.inv(t(1)).tolist() == [0]


def test_errors():
    with pytest.raises(ValueError, match="different numbers of elements"):
        D.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        D.ReshapeTransform((2,), (2, 1)).forward_shape((3,))
    with pytest.raises(ValueError, match="Too few dimensions"):
        D.IndependentTransform(D.ExpTransform(), 1)(t(1)[0])
    with pytest.raises(ValueError, match="not a flattened lower-diagonal"):
        D.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match=r"domain\.event_dim or|event_dim"):
        D.CorrCholeskyTransform().event_dim
    with pytest.raises(ValueError, match="transforms must be a Transform or"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [abs])
    with pytest.raises(ValueError, match="needs to have shape with size at least 1"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())


def test_transformed_distributions():
    base = D.Normal(t(0, 1), 1.0)
    d = D.TransformedDistribution(base, [D.ExpTransform(), D.AffineTransform(1.0, -2.0)])
    x = t(-1.0, -3.0)
    torch.testing.assert_close(d.log_prob(x), D.LogNormal(t(0, 1), 1.0).log_prob((1 - x) / 2) - math.log(2))
    torch.testing.assert_close(d.cdf(x), 1 - D.LogNormal(t(0, 1), 1.0).cdf((1 - x) / 2))
    torch.testing.assert_close(d.icdf(d.cdf(x)), x)
    assert d.has_rsample and d.support is C.real and d.batch_shape == (2,)
    wide = D.TransformedDistribution(D.Normal(t(0)[0], 1.0), D.AffineTransform(t(1, 2, 3), 1.0))
    assert wide.batch_shape == (3,) and wide.sample((2,)).shape == (2, 3)
    vectors = D.TransformedDistribution(D.Normal(torch.zeros(4, 3), 1.0), D.StickBreakingTransform())
    assert (
        vectors.batch_shape == (4,)
        and vectors.event_shape == (4,)
        and vectors.expand((5, 4)).sample().shape == (5, 4, 4)
    )
    assert vectors.support is C.simplex and vectors.log_prob(vectors.sample()).shape == (4,)
    with pytest.raises(NotImplementedError):
        D.kl_divergence(d, D.TransformedDistribution(base, D.TanhTransform()))
    torch.testing.assert_close(D.TransformedDistribution(base, []).log_prob(x), base.log_prob(x))


CONSTRAINTS = [
    C.real, C.positive, C.nonnegative, C.greater_than(2.0), C.greater_than_eq(-1.0), C.less_than(3.0), C.unit_interval,
    C.interval(-1.0, 2.0), C.half_open_interval(t(1, 2, 3), 4.0), C.simplex, C.corr_cholesky, C.real_vector,
    C.independent(C.positive, 1), C.cat([C.positive, C.real], -1, [1, 2]), C.stack([C.positive, C.real, C.unit_interval], -1),
]  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("registry", [D.biject_to, D.transform_to], ids=["biject_to", "transform_to"])
def test_transforms_onto_constraints(registry, constraint):
    y = registry(constraint)(X)
    assert constraint.check(y).all()
    torch.testing.assert_close(registry(constraint)(registry(constraint).inv(y)), y)


@pytest.mark.parametrize("constraint", [C.lower_cholesky, C.positive_definite, C.positive_semidefinite], ids=str)
def test_transforms_onto_matrices(constraint):
    assert constraint.check(D.transform_to(constraint)(matrix([0.3, 1], [2, -1]))).all()


def test_transforms_of_other_constraints_are_registered():
    class Even(C.Constraint):
        pass

    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        D.transform_to(Even())

    @D.transform_to.register(Even)
    def onto_even(constraint):
        return D.AffineTransform(0, 2)

    assert D.transform_to(Even())(t(1)).tolist() == [2]
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        D.transform_to.register(int, onto_even)


@pytest.mark.parametrize(
    ("constraint", "right", "wrong"),
    [
        (C.one_hot, t(0, 1, 0), t(1, 1, 0)),
        (C.multinomial(3), t(1, 2), t(2, 2)),
        (C.positive_integer, t(1)[0], t(0)[0]),
        (C.half_open_interval(0, 1), t(0)[0], t(1)[0]),
        (C.less_than(1), t(0)[0], t(1)[0]),
        (C.lower_triangular, matrix([0, 0], [1, 0]), matrix([0, 1], [1, 0])),
        (C.square, matrix([0, 0], [1, 0]), matrix([0, 1])),
        (C.symmetric, matrix([0, 1], [1, 0]), matrix([0, 1], [2, 0])),
        (C.positive_semidefinite, matrix([0, 0], [0, 1]), matrix([-1, 0], [0, 1])),
        (C.corr_cholesky, matrix([1, 0], [0.6, 0.8]), matrix([1, 0], [0.6, 0.9])),
        (C.independent(C.positive, 2), matrix([1, 1]), matrix([1, 0])),
        (C.cat([C.positive, C.unit_interval], 0, [1, 1]), t(2, 1), t(2, 3)),
        (C.stack([C.positive, C.unit_interval]), t(2, 1), t(2, 3)),
    ],
    ids=str,
)
def test_constraints(constraint, right, wrong):
    assert constraint.check(right).all() and not constraint.check(wrong).all()


def test_constraints_that_depend_on_the_parameters():
    assert C.is_dependent(D.Uniform.support) and not C.is_dependent(D.Uniform(0.0, 1.0).support)
    assert D.Uniform.support.event_dim == 0 and not D.Uniform.support.is_discrete and D.Binomial.support.is_discrete
    with pytest.raises(NotImplementedError, match="cannot be determined statically"):
        C.dependent.is_discrete
    assert C.dependent(is_discrete=True).is_discrete
    with pytest.raises(ValueError, match="Cannot determine validity"):
        C.dependent.check(t(1))
    assert D.Independent(D.Normal(t(0, 1), 1.0), 1).support.event_dim == 1


def test_helpers():
    utils = torch.distributions.utils
    assert [x.tolist() for x in utils.broadcast_all(1.0, t(2, 3))] == [[1, 1], [2, 3]]
    torch.testing.assert_close(utils.logits_to_probs(utils.probs_to_logits(t(0.2, 0.8))), t(0.2, 0.8))
    torch.testing.assert_close(utils.logits_to_probs(utils.probs_to_logits(t(0.2, 0.7), True), True), t(0.2, 0.7))
    assert utils.clamp_probs(t(0, 1))[0] > 0 and utils.clamp_probs(t(0, 1))[1] < 1
    assert utils._sum_rightmost(X, 1).shape == (2,) and utils._standard_normal((2,), torch.float64, "cpu").shape == (2,)

    class Counted:
        count = 0

        @utils.lazy_property
        def value(self):
            Counted.count += 1
            return torch.is_grad_enabled()

    with torch.no_grad():
        counted = Counted()
        assert counted.value and counted.value and Counted.count == 1
    assert not OURS or isinstance(Counted.value, utils.lazy_property)
