"""Long passes are folded along the structure of the program: no step is lost, and a fold has the numbers of its steps."""

from __future__ import annotations

import numpy as np
import pytest
from pages import bushy, long_chain, three_terms


def steps_of(members):
    for member in members:
        yield from [member] if isinstance(member, int) else steps_of(member["inside"])


def folds_in(members):
    for member in members:
        if isinstance(member, dict):
            yield member
            yield from folds_in(member["inside"])


@pytest.fixture(scope="module")
def e():
    return three_terms()


@pytest.fixture(scope="module")
def folds(e):
    return e.to_dict()["folds"]


@pytest.mark.parametrize("make", [three_terms, bushy, lambda: long_chain(200)])
def test_every_step_is_in_one_place(make):
    e = make()
    folds = e.to_dict()["folds"]
    assert sorted(steps_of(folds)) == [step.index for step in e.steps]
    for fold in folds_in(folds):
        inside = list(steps_of(fold["inside"]))
        assert fold["steps"] == len(inside) > 1 and fold["first"] == min(inside)


def test_shares_are_those_of_the_steps(e, folds):
    whole = sum(float(np.vdot(g, g)) for g in e.gradients.values())
    sent = {step.index: 0.0 for step in e.steps}
    for value in e.wrt:
        for index, _, g in e.terms_of(value):
            sent[index] += float(np.vdot(g, value.gradient)) / whole
    for fold in folds_in(folds):
        assert fold["share"] == pytest.approx(sum(sent[i] for i in steps_of(fold["inside"])), abs=1e-12)
        first = e.steps[fold["first"] - 1]
        assert fold["norm"] == pytest.approx(np.linalg.norm(first.upstream)) and fold["shape"] == list(
            first.output.shape
        )
    terms = [fold for fold in folds if isinstance(fold, dict)]
    assert sum(fold["share"] for fold in terms) == pytest.approx(1)
    for name in e.gradients:
        assert sum(fold["shares"].get(name, 0) for fold in terms) == pytest.approx(1)


def test_terms_then_functions_then_lines(folds):
    terms = {fold["name"]: fold for fold in folds if isinstance(fold, dict)}
    assert {"near", "far", "the sum of the terms"} <= set(terms)
    inside = {fold["name"]: fold for fold in terms["near"]["inside"] if isinstance(fold, dict)}
    lines = [fold["line"]["text"] for fold in folds_in(terms["near"]["inside"]) if fold["what"] == "line"]
    assert any("layers" in name for name in [*inside, *lines])
    assert terms["near"]["steps"] == terms["far"]["steps"]


def test_terms_agree_with_their_contributions(e, folds):
    """A term that shares nothing with others contributes exactly the gradient of the term alone."""
    rows = {row.part: row.share for row in e.contributions("term").rows()}
    for fold in folds:
        if isinstance(fold, dict) and fold["name"] in rows:
            assert fold["share"] == pytest.approx(rows[fold["name"]])
