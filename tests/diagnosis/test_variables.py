"""Names and lines found in this file: a marker comment marks the expected line."""

import doctest
import linecache
import types

import pytest

import chainrule as cr
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.diagnosis.source import SourceLine

with open(__file__, encoding="utf-8") as _file:
    _TEXT = _file.read().split("\n")


def marked(marker):
    """Return the line of this file that ends with ``# marker``."""
    return next(i for i, text in enumerate(_TEXT, 1) if text.endswith(f"# {marker}"))


AT_MODULE = cr.ones(2, requires_grad=True)  # at module


@pytest.fixture
def x():
    return cr.tensor([1.0, 2.0], requires_grad=True)


def test_tensors_edges_and_arrays_have_the_variables_name(x):
    y = cr.exp(x)
    constant = cr.ones(2)
    names = Names()
    for thing in (y, y._edge, y.grad_fn, y._raw):
        assert names.of(thing) == "y"
    assert names.of(x) == names.of(x._edge) == "x"
    assert names.of(constant._raw) == "constant"
    assert names.of(AT_MODULE) == "AT_MODULE"
    assert names.of(cr.ones(3)) is names.of(None) is names.of(3) is None


def test_several_outputs_have_names_of_their_own(x):
    u, s, v = cr.linalg.svd(x.reshape(1, 2))
    names = Names()
    assert [names.of(t._edge) for t in (u, s, v)] == ["u", "s", "v"]
    assert names.of(u.grad_fn) is None


def test_what_shares_memory_with_a_constant_is_called_like_the_constant(x):
    y = x * 2
    d = y.detach()
    assert Names().of(y._raw) == "d"
    assert Names().of(d) == "d"


def test_attributes_items_and_entries(x):
    model = types.SimpleNamespace(w=x * 2)
    params = {"w": x * 3, 5: x * 4}
    parts = [x * 5, x * 6]
    names = Names()
    assert names.of(model.w) == "model.w"
    assert names.of(params["w"]) == 'params["w"]'
    assert names.of(params[5]) == "params[5]"
    assert names.of(parts[1]) == "parts[1]"
    assert names.line(params["w"]).line == names.line(params[5]).line
    assert names.line(parts[0]).text == "parts = [x * 5, x * 6]"


def test_a_variable_comes_before_an_item_and_a_public_name_before_a_private_one(x):
    held = [x * 2]
    _private = held[0]
    assert Names().of(held[0]) == "_private"
    public = _private
    assert Names().of(public) == "public"


def test_callers_are_searched_too(x):
    def inner(argument):
        return Names(), argument

    mine = x * 2  # mine
    names, argument = inner(mine)
    assert argument is mine
    assert names.of(mine) == "argument"
    assert names.line(mine).line == marked("mine")


def test_objects_that_raise_are_passed_over(x):
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError(name)

        @property
        def _edge(self):
            raise RuntimeError

        @property
        def _raw(self):
            raise RuntimeError

    class Plain:
        def __getattr__(self, name):
            raise RuntimeError(name)

    plain = Plain()
    y = x * 2
    assert Names().of(y) == "y"
    assert Names().of(plain) is None
    assert Names().line(plain) is None


def test_the_line_of_a_value_and_of_what_is_between(x):
    y = cr.exp(x * 2)  # between
    z = (
        y  # start of z
        + 1
    )
    names = Names()
    assert names.line(y) == SourceLine(__file__, marked("between"), "y = cr.exp(x * 2)  # between")
    assert names.line(y.grad_fn.edges[0]) == names.line(y)
    assert names.of(y.grad_fn.edges[0]) is None
    assert names.line(z).line == marked("start of z")
    assert str(names.line(y)) == f"test_variables.py:{marked('between')}"


def test_only_assignments_above_count(x):
    y = x * 2  # above
    found = Names().line(y)
    y = x * 3
    assert found.line == marked("above")


def test_a_loop_leaves_what_its_last_round_made(x):
    h = x
    for _ in range(3):
        h = cr.tanh(h)  # round
    assert Names().line(h).line == marked("round")
    for _ in range(0):
        h = cr.sin(h)
    assert Names().line(h).line == marked("round")  # the operation tells


def test_inside_a_loop_what_comes_below_may_have_run(x):
    lines = []
    h = cr.exp(x)  # before the loop
    for _ in range(2):
        lines.append(Names().line(h).line)
        h = cr.sin(h)  # in the loop
    assert lines == [marked("before the loop"), marked("in the loop")]


@pytest.mark.parametrize("first", [True, False])
def test_branches(x, first):
    if first:
        y = cr.sin(x)  # if
    else:
        y = cr.cos(x)  # else
    assert Names().line(y).line == marked("if" if first else "else")


def test_many_kinds_of_assignment(x):
    a = b = x * 2  # chained
    (c, [d, *e]) = x * 3, [x * 4, x * 5]  # unpacked
    f: cr.Tensor = x * 6  # annotated
    g = x * 1
    g += 1  # augmented
    h = x * 1
    h.mul_(2)  # method
    i = x * 1
    i[0] = 3.0  # item
    if (j := x * 7) is not None:  # walrus
        pass
    names = Names()
    for tensor, marker in (
        (a, "chained"),
        (b, "chained"),
        (c, "unpacked"),
        (d, "unpacked"),
        (e[0], "unpacked"),
        (f, "annotated"),
        (g, "augmented"),
        (h, "method"),
        (i, "item"),
        (j, "walrus"),
    ):
        assert names.line(tensor).line == marked(marker), marker


def test_leaves_have_lines():
    w = cr.ones(2, requires_grad=True)  # leaf
    assert Names().line(w._edge).line == marked("leaf")


def test_module_variables():
    assert Names().line(AT_MODULE).line == marked("at module")


def test_code_without_source(x):
    scope = {"cr": cr, "Names": Names, "x": x}
    exec("y = x * 2\nnames = Names()\nfound = names.of(y), names.line(y)", scope)
    assert scope["found"] == ("y", None)


def test_cells_of_a_session(x):
    scope = {"cr": cr, "Names": Names, "x": x, "__name__": "__main__"}

    def cell(number, source):
        file = f"<python-input-{number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        exec(compile(source, file, "exec"), scope)

    try:
        cell(0, "y = cr.exp(x)\n")
        cell(1, "z = 1\n")
        cell(2, "line = Names().line(y)\n")
    finally:
        for number in range(3):
            linecache.cache.pop(f"<python-input-{number}>")
    assert scope["line"] == ("<python-input-0>", 1, "y = cr.exp(x)")


def test_doctests_have_lines():
    program = (
        ">>> import chainrule as cr\n"
        ">>> from chainrule._src.explaining.diagnosis.names import Names\n"
        ">>> x = cr.ones(2, requires_grad=True)\n"
        ">>> y = cr.exp(x)\n"
        ">>> Names().line(y).text\n"
        "'y = cr.exp(x)'\n"
    )
    test = doctest.DocTestParser().get_doctest(program, {}, "named", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_value_that_was_made_in_a_function_has_the_line_there(x):
    def made():
        return x * 2  # in made

    y = made()
    assert Names().line(y).line == marked("in made")


def test_a_variable_without_a_node_has_the_line_of_its_assignment(x):
    a = cr.ones(2)  # constant
    if len(a) > 2:
        b = cr.ones(3)
    else:
        b = cr.ones(4)
    names = Names()
    assert names.line(a).line == marked("constant")
    assert names.line(b) is None  # the text does not tell which
