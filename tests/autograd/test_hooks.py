"""Hooks on tensors and nodes: their arguments, their order, and the use of their results."""

import gc
import importlib
import weakref

import pytest

from behaviour import differs, leaf, torch


def values(grads):
    return tuple(None if g is None else g.tolist() for g in grads)


# -- hooks of tensors ------------------------------------------------------------------------------------------------


def test_a_hook_sees_the_gradient_and_none_leaves_it():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * torch.tensor([5.0, 7.0], dtype=torch.float64)).sum().backward()
    assert seen == [[5.0, 7.0]]
    assert x.grad.tolist() == [15.0, 21.0]


def test_hooks_run_in_order_and_each_sees_what_the_one_before_returned():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3

    def times(factor):
        def hook(g):
            seen.append((factor, g.tolist()))
            return g * factor

        return hook

    y.register_hook(times(2))
    y.register_hook(times(5))
    y.sum().backward()
    assert seen == [(2, [1.0, 1.0]), (5, [2.0, 2.0])]
    assert x.grad.tolist() == [30.0, 30.0]


def test_a_leafs_hook_runs_once_on_the_sum_of_all_paths_before_it_is_accumulated():
    x, seen = leaf(1.0, 2.0), []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    for _ in range(2):
        (x * 3 + x * x).sum().backward()
    assert seen == [[5.0, 7.0], [5.0, 7.0]]
    assert x.grad.tolist() == [20.0, 28.0]


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (lambda g: 3.0, TypeError, "expected Variable, but hook returned 'float'"),
        (lambda g: (g,), TypeError, "expected Variable, but hook returned 'tuple'"),
        (lambda g: g.numpy(), TypeError, "expected Variable, but hook returned"),
        (lambda g: g.sum(), RuntimeError, "changed the size of value"),
        (lambda g: g.reshape(2, 1), RuntimeError, "changed the size of value"),
        (lambda g: g.float(), RuntimeError, "changed the type of value"),
        (lambda g: g.to(torch.complex128), RuntimeError, "changed the type of value"),
    ],
)
def test_a_hook_must_return_a_gradient_of_the_same_kind(answer, error, words):
    x = leaf(1.0, 2.0)
    y = x * 3
    y.register_hook(answer)
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None


def test_a_named_hook_is_named_in_the_error():
    def clip_badly(g):
        return g.sum()

    x = leaf(1.0, 2.0)
    x.register_hook(clip_badly)
    with pytest.raises(RuntimeError, match="hook 'clip_badly' has changed the size"):
        x.sum().backward()


def test_hooks_need_something_that_requires_grad():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(2).register_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(2).retain_grad()
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


@differs("what is not callable is found out during backward only")
def test_a_hook_must_be_callable():
    with pytest.raises(TypeError, match="callable"):
        leaf(1.0).register_hook(3)


def test_after_an_in_place_operation_the_old_hook_is_the_old_values():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.retain_grad()
    y.mul_(2)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    assert y.retains_grad
    (y * 5).sum().backward()
    assert seen == [("new", [5.0, 5.0]), ("old", [10.0, 10.0])]
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [30.0, 30.0]


def test_hooks_of_a_leaf_outlive_freezing_it():
    x, seen = leaf(1.0, 2.0), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.requires_grad_(False)
    assert not x.requires_grad
    x.requires_grad_(True)
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]]
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_of_one_tensor_is_not_its_detached_twins():
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: seen.append("x"))
    twin = x.detach().requires_grad_()
    (twin * 2).sum().backward()
    assert seen == []


# -- handles ---------------------------------------------------------------------------------------------------------


def test_remove_is_final_and_may_be_repeated():
    x, seen = leaf(1.0), []
    y = x * 1
    handle = y.register_hook(lambda g: seen.append(1))
    handle.remove()
    handle.remove()
    y.sum().backward()
    assert seen == []


def test_a_handle_is_a_context_manager():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 2) as handle:
        assert handle.id >= 0
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_handles_have_growing_ids():
    x = leaf(1.0)
    first, second = x.register_hook(lambda g: None), x.register_hook(lambda g: None)
    assert second.id > first.id


def test_hooks_removed_or_added_while_running_count_from_the_next_pass_on():
    x, seen, handles = leaf(1.0), [], {}
    y = x * 1

    def first(g):
        seen.append("a")
        handles["b"].remove()
        if len(seen) == 1:
            y.register_hook(lambda g: seen.append("new"))

    y.register_hook(first)
    handles["b"] = y.register_hook(lambda g: seen.append("b"))
    y.register_hook(lambda g: seen.append("c"))
    total = y.sum()
    total.backward(retain_graph=True)
    assert seen == ["a", "b", "c"]
    total.backward()
    assert seen == ["a", "b", "c", "a", "c", "new"]


# -- retain_grad -----------------------------------------------------------------------------------------------------


def test_retain_grad_comes_last_whatever_was_registered_after_it():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0]
    assert x.grad.tolist() == [30.0, 30.0]


def test_a_retained_gradient_accumulates():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    total = (y * y).sum()
    total.backward(retain_graph=True)
    first = y.grad
    total.backward()
    assert y.grad.tolist() == [8.0, 16.0]
    assert first.tolist() == [4.0, 8.0]


def test_retain_grad_on_a_leaf_changes_nothing():
    x = leaf(1.0)
    x.retain_grad()
    assert not x.retains_grad
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


# -- hooks of nodes --------------------------------------------------------------------------------------------------


def test_order_of_all_kinds():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    node = y.grad_fn
    node.register_hook(lambda gi, go: seen.append(("post", values(gi), values(go))))
    node.register_prehook(lambda gs: seen.append(("pre", values(gs))) or (gs[0] * 2,))
    y.register_hook(lambda g: seen.append(("tensor", g.tolist())) or g * 5)
    y.retain_grad()
    y.sum().backward()
    assert seen == [
        ("tensor", [1.0, 1.0]),
        ("pre", ([5.0, 5.0],)),
        ("post", ([30.0, 30.0], None), ([10.0, 10.0],)),
    ]
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [30.0, 30.0]


def test_a_nodes_hook_gets_none_for_operands_that_need_no_gradient():
    x, constant, seen = leaf(1.0, 2.0), torch.tensor([3.0, 4.0], dtype=torch.float64), []
    (x * constant).grad_fn.register_hook(lambda gi, go: None)
    y = constant * x
    y.grad_fn.register_hook(lambda gi, go: seen.append((type(gi), type(go), values(gi), values(go))))
    y.sum().backward()
    assert seen == [(tuple, tuple, (None, [3.0, 4.0]), ([1.0, 1.0],))]


def test_a_nodes_hook_replaces_gradients():
    x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * z
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 40.0]
    assert z.grad is None


def test_a_gradient_a_hook_took_away_does_not_disturb_other_paths():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.grad_fn.register_hook(lambda gi, go: (None,))
    (y + x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_prehook_replaces_or_takes_away():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    z = x * 3
    z.grad_fn.register_prehook(lambda gs: (None,))
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (lambda gs: gs[0] * 2, TypeError, "expected tuple, but hook returned 'Tensor'"),
        (lambda gs: [gs[0]], TypeError, "expected tuple, but hook returned 'list'"),
        (lambda gs: (gs[0], gs[0]), RuntimeError, r"incorrect number of values \(got 2, but expected 1\)"),
        (lambda gs: (gs[0].sum(),), RuntimeError, "changed the size of value"),
        (lambda gs: (gs[0].float(),), RuntimeError, "changed the type of value"),
    ],
)
def test_what_a_prehook_may_return(answer, error, words):
    x = leaf(1.0, 2.0)
    y = x * 3
    y.grad_fn.register_prehook(answer)
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (lambda gi: gi[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
        (lambda gi: list(gi), TypeError, "expected tuple, but hook returned 'list'"),
        (lambda gi: (gi[0],), RuntimeError, r"incorrect number of values \(got 1, but expected 2\)"),
        (lambda gi: (gi[0], gi[0]), RuntimeError, "can't replace a None gradient with a non-None value"),
        (lambda gi: (3, None), TypeError, "expected Variable, but hook returned 'int'"),
        (lambda gi: (gi[0].sum(), None), RuntimeError, "changed the size of value"),
        (lambda gi: (gi[0].float(), None), RuntimeError, "changed the type of value"),
    ],
)
def test_what_a_nodes_hook_may_return(answer, error, words):
    x = leaf(1.0, 2.0)
    y = x * torch.ones(2, dtype=torch.float64)
    y.grad_fn.register_hook(lambda gi, go: answer(gi))
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None


def test_handles_of_node_hooks():
    x, seen = leaf(1.0), []
    y = x * 3
    pre = y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    with y.grad_fn.register_hook(lambda gi, go: seen.append("post")):
        y.sum().backward(retain_graph=True)
    pre.remove()
    y.sum().backward()
    assert seen == ["pre", "post"]


def test_calling_a_node_runs_no_hooks():
    x, seen = leaf(1.0), []
    y = x.exp()
    y.register_hook(lambda g: seen.append(1))
    y.grad_fn.register_hook(lambda gi, go: seen.append(2))
    y.grad_fn.register_prehook(lambda gs: seen.append(3))
    y.grad_fn(torch.ones(1, dtype=torch.float64))
    assert seen == []


def test_a_node_with_several_outputs():
    x = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    w, _ = torch.linalg.eigh(x)
    seen = []
    w.register_hook(lambda g: seen.append(("w", g.tolist())))
    w.grad_fn.register_prehook(lambda gs: seen.append(("pre", values(gs))))
    w.grad_fn.register_hook(lambda gi, go: seen.append(("post", len(gi), len(go), go[0].tolist())))
    w.sum().backward()
    assert seen == [("w", [1.0, 1.0]), ("pre", ([1.0, 1.0], None)), ("post", 1, 2, [1.0, 1.0])]


# -- hooks of the accumulator ----------------------------------------------------------------------------------------


def accumulator(x):
    return (x * 1).grad_fn.next_functions[0][0]


def test_hooks_around_the_accumulation():
    x, seen = leaf(1.0, 2.0), []
    node = accumulator(x)
    assert node.name().endswith("AccumulateGrad") and node.variable is x
    node.register_hook(lambda gi, go: seen.append(("post", gi, values(go), x.grad.tolist())))
    node.register_prehook(lambda gs: seen.append(("pre", values(gs), x.grad)) or (gs[0] * 2,))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t is x, t.grad.tolist())))
    x.register_hook(lambda g: seen.append(("tensor", g.tolist())) or g * 5)
    (x * 3).sum().backward()
    assert seen == [
        ("tensor", [3.0, 3.0]),
        ("pre", ([15.0, 15.0],), None),
        ("accumulated", True, [30.0, 30.0]),
        ("post", (), ([30.0, 30.0],), [30.0, 30.0]),
    ]


def test_a_prehook_of_the_accumulator_can_withhold_the_gradient():
    x = leaf(1.0)
    node = accumulator(x)  # whoever registers hooks on an accumulator must keep a reference to it
    node.register_prehook(lambda gs: (None,))
    (x * 3).sum().backward()
    assert x.grad is None


def test_the_accumulators_hook_has_nothing_to_replace():
    x = leaf(1.0)
    node = accumulator(x)
    node.register_hook(lambda gi, go: ())
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0]
    node.register_hook(lambda gi, go: go)
    with pytest.raises(RuntimeError, match="got 1, but expected 0"):
        (x * 3).sum().backward()


def test_post_accumulate_hook_may_use_the_gradient_up():
    x = leaf(1.0, 2.0)

    def step(p):
        p -= 0.5 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None
    assert x.tolist() == [0.0, 1.0]


def test_post_accumulate_hook_returns_nothing():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: 3)
    with pytest.raises(TypeError, match="hook returned 'int'"):
        (x * 2).sum().backward()


def test_post_accumulate_hooks_run_in_order_and_can_be_removed():
    x, seen = leaf(1.0), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(1))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(2))
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [1, 2, 2]


# -- hooks and chosen inputs -----------------------------------------------------------------------------------------


def hooked():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    y.register_hook(lambda g: seen.append("y") or g * 10)
    y.grad_fn.register_prehook(lambda gs: seen.append("pre") or (gs[0] * 7,))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    y.retain_grad()
    x.register_hook(lambda g: seen.append("x") or g * 100)
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    return x, y, (y * 2).sum(), seen


def test_grad_with_respect_to_a_value_runs_its_tensor_hooks_only():
    _, y, total, seen = hooked()
    (g,) = torch.autograd.grad(total, y)
    assert g.tolist() == [20.0, 20.0]
    assert seen == ["y"]
    assert y.grad.tolist() == [20.0, 20.0]


@differs("there, a value's own hooks change its gradient only if no input further down is asked for as well")
def test_a_values_gradient_is_the_same_whatever_else_is_asked_for():
    x, y, total, _ = hooked()
    assert torch.autograd.grad(total, [x, y])[1].tolist() == [20.0, 20.0]


def test_prehooks_and_hooks_of_a_node_change_what_flows_on():
    x, y, total, seen = hooked()
    gx, _ = torch.autograd.grad(total, [x, y])
    assert gx.tolist() == [42000.0, 42000.0]
    assert seen == ["y", "pre", "post", "x"]
    assert x.grad is None


def test_grad_does_not_run_hooks_of_the_accumulator():
    x, seen = leaf(1.0), []
    node = accumulator(x)
    node.register_prehook(lambda gs: seen.append("pre") or (gs[0] * 2,))
    node.register_hook(lambda gi, go: seen.append("post"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    (g,) = torch.autograd.grad((x * 3).sum(), x)
    assert g.tolist() == [3.0]
    assert seen == []


def test_backward_to_an_inner_value_retains_its_gradient():
    x = leaf(1.0, 2.0)
    y = x * 3
    total = (y * 2).sum()
    total.backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [2.0, 2.0] and x.grad is None
    assert y.retains_grad
    total.backward()
    assert y.grad.tolist() == [4.0, 4.0] and x.grad.tolist() == [6.0, 6.0]


def test_backward_to_one_leaf_runs_no_hook_of_another():
    x, z, seen = leaf(1.0), leaf(2.0), []
    x.register_hook(lambda g: seen.append("x"))
    z.register_hook(lambda g: seen.append("z"))
    z.register_post_accumulate_grad_hook(lambda t: seen.append("z accumulated"))
    (x * z).sum().backward(inputs=[x])
    assert seen == ["x"]
    assert z.grad is None


# -- hooks and gradient mode -----------------------------------------------------------------------------------------


def test_hooks_run_unrecorded_unless_the_graph_of_the_gradient_is_wanted():
    x, seen = leaf(2.0), []
    y = x**3
    y.register_hook(lambda g: seen.append((g.requires_grad, torch.is_grad_enabled())))
    y.grad_fn.register_prehook(lambda gs: seen.append(torch.is_grad_enabled()))
    y.grad_fn.register_hook(lambda gi, go: seen.append(torch.is_grad_enabled()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(torch.is_grad_enabled()))
    y.sum().backward(retain_graph=True)
    assert seen == [(False, False), False, False, False]
    assert torch.is_grad_enabled()
    seen.clear()
    torch.autograd.grad(y.sum(), x, create_graph=True)
    assert seen == [(False, True), True, True] or seen == [(True, True), True, True]


def test_double_backward_through_a_hook():
    x = leaf(2.0)
    y = x**3
    y.register_hook(lambda g: g * x)  # dy/dx becomes 3x³
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [24.0]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [36.0]


def test_double_backward_through_hooks_of_a_node():
    x = leaf(2.0)
    y = x**3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * x,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * x, *gi[1:]))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)  # 3x⁴
    assert g.tolist() == [48.0]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [96.0]


def test_a_backward_inside_a_hook():
    x, seen = leaf(2.0), []
    y = x * 3

    def hook(g):
        with torch.enable_grad():
            w = leaf(5.0)
            (w * w).sum().backward()
        seen.append(w.grad.tolist())

    y.register_hook(hook)
    y.sum().backward()
    assert seen == [[10.0]]
    assert x.grad.tolist() == [3.0]


# -- exceptions in hooks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["tensor", "pre", "post", "leaf"])
def test_an_exception_reaches_the_caller_and_the_mode_is_as_before(error, where):
    x, z = leaf(1.0), leaf(2.0)
    inner = x * 5

    def fail(*args):
        raise error("stop")

    if where == "tensor":
        inner.register_hook(fail)
    elif where == "pre":
        inner.grad_fn.register_prehook(fail)
    elif where == "post":
        inner.grad_fn.register_hook(fail)
    else:
        x.register_hook(fail)
    with pytest.raises(error):
        (inner * z).sum().backward()
    assert torch.is_grad_enabled()
    assert x.grad is None


@differs("leaves that were reached before the exception have their gradient already")
def test_an_exception_leaves_every_gradient_as_it_was():
    x, z = leaf(1.0), leaf(2.0)
    x.grad = torch.tensor([7.0], dtype=torch.float64)

    def fail(g):
        raise KeyboardInterrupt

    inner = x * 5
    inner.register_hook(fail)
    retained = inner * z
    retained.retain_grad()
    with pytest.raises(KeyboardInterrupt):
        (retained + x).sum().backward()
    assert x.grad.tolist() == [7.0]
    assert z.grad is None
    assert retained.grad is None


# -- lifetime of hooks ------------------------------------------------------------------------------------------------


def test_a_graph_lets_go_of_its_hooks():
    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g, thing=thing: None)
    y.grad_fn.register_prehook(lambda gs, thing=thing: None)
    y.sum().backward()
    del thing, y
    gc.collect()
    assert alive() is None


def test_post_accumulate_hook_returns_no_tensor_either():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match=r"hooks should return None\."):
        (x * 2).sum().backward()


def test_multi_grad_hook_counts_only_what_the_pass_reaches():
    a, b, c = leaf(1.0) * 1, leaf(2.0) * 1, leaf(3.0) * 1
    calls = []
    importlib.import_module(torch.__name__ + ".autograd.graph").register_multi_grad_hook(
        [a, b, c], lambda grads: calls.append([g is not None for g in grads])
    )
    y = (b * c).sum()
    y.backward(inputs=[a], retain_graph=True)
    assert calls == []
    y.backward(inputs=[a, c], retain_graph=True)
    y.backward(inputs=[b, c])
    assert calls == [[False, False, True], [False, True, True]]


def test_node_takes_a_gradient_for_each_output():
    y = leaf(3.0) ** 2
    for given in ((), (torch.ones(1, dtype=torch.float64),) * 2):
        with pytest.raises(TypeError, match=r"expected 1 arguments, got \d instead"):
            y.grad_fn(*given)
