"""The table of messages: every entry can be formatted, and every message that the package uses exists with its arguments."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest

import chainrule as cr
from chainrule._src.messages import errors, kinds
from chainrule._src.messages.table import SHOWN, message, rows

PACKAGE = Path(cr.__file__).parent


@pytest.mark.parametrize("name", rows())
def test_a_row_reads_its_parameters_and_says_what_is_known(name):
    _, kind, text = rows()[name]
    assert kind == "warning" or issubclass(getattr(kinds, kind, None) or getattr(builtins, kind), Exception)
    known = {*inspect.signature(message(name)).parameters, "here", "program", "loop"}
    for field, shown in re.findall(r"(?<!\{)\{(\w+)[^:{}!]*(?:![rs])?(?::([^{}]*))?\}", text):
        assert field in known, (name, field)
        assert not shown or shown in SHOWN or shown[0] in "?+", (name, shown)


def calls():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = getattr(node, "func", None)
            if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "errors":
                yield path.name, node


def test_every_message_that_is_asked_for_is_there():
    seen = 0
    for _, call in calls():
        function = getattr(errors, call.func.attr)
        if (
            isinstance(function, type)
            or any(isinstance(a, ast.Starred) for a in call.args)
            or any(k.arg is None for k in call.keywords)
        ):
            continue
        inspect.signature(function).bind(*call.args, **{k.arg: k.value for k in call.keywords})
        seen += 1
    assert seen > 250


def test_an_error_of_a_row():
    error = errors.reduction_name("avg")
    assert type(error) is ValueError
    assert str(error) == "avg is not a valid value for reduction: use 'mean', 'sum' or 'none'"
    assert str(errors.matrix_shapes("solve", cr.ones(2, 3), cr.ones(4, 5), left=False)).endswith("XA = B (2x3 and 4x5)")
    with pytest.warns(UserWarning, match="mark_dirty"):
        errors.warn_dirty_no_input("F")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = errors.nonsense
