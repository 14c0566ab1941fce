"""Slots with the same columns are merged, without changing the Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians import compaction
from chainrule._src.jacobians.assemble import dense_of_terms
from chainrule._src.jacobians.components import merge_by_components
from chainrule._src.jacobians.gather_scatter import Selection
from chainrule._src.jacobians.terms import Term, Variable

RNG = np.random.default_rng(0)
POINTS = 7


def gathered(columns: int) -> tuple[Variable, np.ndarray]:
    """Return a variable, and the positions in it of gathered vectors."""
    source = Variable((5, columns), np.dtype(float))
    return source, source.seed[RNG.integers(5, size=POINTS)]


def slot(source: Variable, cols: np.ndarray, shape: tuple[int, ...], component: int | None = None) -> Term:
    """Return a slot with the same columns in all components of vectors, or with rows in one component."""
    if component is None:
        cols = np.broadcast_to(cols[:, None], shape)[None]
        return Term(source, cols, RNG.normal(size=cols.shape))
    rows = np.arange(component, POINTS * shape[1], shape[1])
    return Term(source, cols[None], RNG.normal(size=(1, POINTS)), rows)


def check(terms: list[Term], source: Variable, shape: tuple[int, ...], slots: int) -> list[Term]:
    found = merge_by_components(terms, source, shape)
    assert found is not None and sum(term.slots for term in found) == slots
    expected = dense_of_terms(terms, shape, source.shape)
    np.testing.assert_allclose(dense_of_terms(found, shape, source.shape), expected, rtol=1e-14, atol=1e-14)
    return found


def test_slots_of_numbers() -> None:
    source, places = gathered(4)
    shape = (POINTS,)
    columns = [places[:, k] for k in (0, 2, 0, 3, 2, 0)]
    terms = [Term(source, cols[None], RNG.normal(size=(1, POINTS))) for cols in columns]
    terms.append(Term(source, places.T[1:3], 0.5))
    terms.append(Term(source, places.T[1:2], RNG.normal(size=(1, 1))))
    check(terms, source, shape, 4)


@pytest.mark.parametrize("components", [2, 3])
def test_components_that_were_put_together(components: int) -> None:
    source, places = gathered(4)
    shape = (POINTS, components)
    terms = [slot(source, places[:, k], shape) for k in (0, 1, 1)]
    for component in range(components):
        terms += [slot(source, places[:, k], shape, component) for k in (3, 0, 3)]
    found = check(terms, source, shape, 3)
    assert all(term.rows is None for term in found)
    again = check([*found, *[slot(source, places[:, k], shape) for k in (0, 1)]], source, shape, 3)
    assert [term.slots for term in again] == [term.slots for term in found]


def test_components_of_the_vectors_themselves() -> None:
    source, places = gathered(3)
    shape = (POINTS, 3)
    own = Term(source, places[None], RNG.normal(size=(1, POINTS, 1)))
    others = [Term(source, places.T[:, :, None] + np.zeros(3, int), RNG.normal(size=(3, POINTS, 3)))]
    spread = Term(source, np.broadcast_to(places.T[:, :, None], (3, *shape)), RNG.normal(size=(3, POINTS, 3)))
    check([own, spread], source, shape, 3)
    assert merge_by_components([own, *others], source, shape) is None, (
        "these are other columns, as far as addresses tell"
    )


def test_where_it_is_not_worth_it() -> None:
    source, places = gathered(4)
    shape = (POINTS, 2)
    one_sided = [slot(source, places[:, k], shape, component) for k, component in ((0, None), (0, 1), (1, 1))]
    assert merge_by_components(one_sided, source, shape) is None, "a component would get entries that it does not have"
    assert merge_by_components([slot(source, places[:, k], shape) for k in range(4)], source, shape) is None
    rows = Term(source, places[:3, 0][None], RNG.normal(size=(1, 3)), np.array([0, 5, 6]))
    assert merge_by_components([*one_sided, rows], source, shape) is None


def test_columns_of_other_arrays_are_not_shown_by_one_view() -> None:
    source = Variable((40,), np.dtype(float))
    apart = [RNG.integers(40, size=POINTS) for _ in range(6)]
    terms = [Term(source, cols[None], RNG.normal(size=(1, POINTS))) for cols in apart * 2]
    found = check(terms, source, (POINTS,), 6)
    assert [term.slots for term in found] == [1] * 6


def rotated(x: object) -> object:
    """Rotate points by angles that depend on them, with an explicit cross product."""
    p = x.reshape(-1, 3)
    r = np.sin(p[::-1])
    p0, p1, p2, r0, r1, r2 = *(p[:, k] for k in range(3)), *(r[:, k] for k in range(3))
    crossed = np.stack([r1 * p2 - r2 * p1, r2 * p0 - r0 * p2, r0 * p1 - r1 * p0], 1)
    turned = p * np.cos(r) + crossed * np.sin((r * p).sum(1))[:, None]
    return (turned[:, :2] / (turned[:, 2:] ** 2 + 1.0)).ravel()


@pytest.mark.parametrize("create_graph", [False, True])
def test_in_programs(monkeypatch: pytest.MonkeyPatch, create_graph: bool) -> None:
    added_up = []

    def noted(*args: object) -> list[Term] | None:
        added_up.append(merge_by_components(*args))
        return added_up[-1]

    monkeypatch.setattr(compaction, "SMALL", 0)
    monkeypatch.setattr(compaction, "merge_by_components", noted)
    x = RNG.normal(size=18)
    expected = cr.func.jacrev(rotated)(x)
    J = cr.jacobian(rotated, x, strategy="forward terms", layout="structured", create_graph=create_graph)
    np.testing.assert_allclose(np.asarray(J.to_dense()), expected, rtol=1e-12, atol=1e-14)
    assert J.nnz == np.count_nonzero(expected) and any(found is not None for found in added_up)
    prepared = cr.prepare_jacobian(rotated, x, layout="csr")
    np.testing.assert_allclose(prepared(x + 0.1).toarray(), cr.func.jacrev(rotated)(x + 0.1), rtol=1e-12, atol=1e-14)


def test_terms_of_a_whole_part_of_a_concatenation_have_no_rows() -> None:
    source = Variable((2, 3), np.dtype(float))
    rows = np.array([0, 1, 2, 4, 5, 6])  # the first three columns of a 2 × 4 matrix
    vals = RNG.normal(size=(1, 6))
    positions = np.arange(8).reshape(2, 4)

    def pick(src: np.ndarray) -> Term:
        found = Selection(src, (2, 4)).of(Term(source, source.seed.reshape(1, 6), vals, rows))
        expected = np.zeros((src.size, 6))
        for k, at in enumerate(src.reshape(-1)):
            if at in rows:
                expected[k, np.flatnonzero(rows == at)[0]] = vals[0, rows == at][0]
        np.testing.assert_array_equal(dense_of_terms([found], src.shape, (6,)), expected.reshape(*src.shape, 6))
        return found

    whole = pick(positions[:, :2])
    assert whole.rows is None and whole.cols.shape == (1, 2, 2)
    assert pick(positions[:, 1:]).rows is not None
    assert pick(positions[:0]).cols.size == 0
