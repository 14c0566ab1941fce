"""The checks of the table detect every mutated rule."""

from chainrule._src.rules import kinds
from chainrule.testing import rulecheck
from tests.table.mutate import every_mutant, main, mutants


def test_every_wrong_rule_is_found():
    found = [(mutant.name, mutant.rule) for mutant in every_mutant() if mutant.survives()]
    assert found == []


def test_every_kind_of_rule_is_made_wrong():
    rules = {mutant.rule.split("[")[0] for mutant in every_mutant()}
    assert rules == {"d", "vjp", "jvp", "transpose", "shared", "batch", "value", "pullback"}


def test_a_rule_that_no_sample_reaches_survives(capsys):
    row = kinds.opaque(
        vjp={"x": lambda g, *, flag: -g if flag else g},
        jvp={"x": lambda t, *, flag: -t if flag else t},
        batch=lambda prim, payloads, batched, size, params: prim.value(*payloads, **params),
        samples=[{"shapes": [(0,)], "flag": True}],
        listed=False,
    )(_negated)
    rulecheck(row)
    assert [mutant.rule for mutant in mutants(row) if mutant.survives()] == ["vjp[x]", "jvp[x]", "batch", "value"]
    assert main(["tanh"]) == 0
    assert capsys.readouterr().out.startswith("0 of 2 wrong rules found by no check")


def _negated(x, *, flag):
    return -x if flag else x
