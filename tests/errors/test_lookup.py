"""All messages that the package uses are found by ``errors``, at run time and by type checkers, and accept their arguments."""

import ast
import importlib
import inspect
from collections import Counter
from pathlib import Path
from types import FunctionType

import pytest

import chainrule as cr
from chainrule._src.explaining import diagnosis as implementation
from chainrule._src.messages import diagnosis, errors

PACKAGE = Path(cr.__file__).parent


def messages(module):
    """Return the functions that a module of messages defines."""
    return {
        name: function
        for name, function in vars(module).items()
        if type(function) is FunctionType and function.__module__ == module.__name__ and not name.startswith("_")
    }


def test_type_checkers_and_the_lookup_read_the_same_modules():
    source = ast.parse(Path(errors.__file__).read_text(encoding="utf-8"))
    (checked,) = (s for s in source.body if isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING")
    imported = [ast.unparse(s) for s in checked.body]
    assert imported == [f"from chainrule._src.messages.{name} import *" for name in sorted(errors.MODULES)]


def test_no_two_modules_define_a_message():
    modules = [importlib.import_module(f"chainrule._src.messages.{name}") for name in errors.MODULES]
    found = Counter(name for module in modules for name in messages(module))
    assert len(found) > 300
    assert [name for name, count in found.items() if count > 1] == []


@pytest.mark.parametrize("name", messages(diagnosis))
def test_messages_that_read_the_tape_have_the_parameters_of_their_implementation(name):
    declared, implemented = (inspect.signature(getattr(module, name)) for module in (diagnosis, implementation))
    assert [p.replace(annotation=p.empty) for p in declared.parameters.values()] == [
        p.replace(annotation=p.empty) for p in implemented.parameters.values()
    ]


def calls():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = getattr(node, "func", None)
            if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "errors":
                yield path.name, node


def test_every_message_that_is_called_exists_and_accepts_the_arguments():
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


def test_errors_and_warnings():
    error = errors.reduction_name("avg")
    assert type(error) is ValueError
    assert str(error) == "avg is not a valid value for reduction: use 'mean', 'sum' or 'none'"
    assert str(errors.matrix_shapes("solve", cr.ones(2, 3), cr.ones(4, 5), left=False)).endswith("XA = B (2x3 and 4x5)")
    with pytest.warns(UserWarning, match="mark_dirty"):
        errors.warn_dirty_no_input("F")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = errors.nonsense
