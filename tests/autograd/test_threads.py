"""Multiple threads: modes are thread-local, graphs and leaves are shared safely."""

import importlib
import sys
import threading

import numpy as np
import pytest

import chainrule as cr

graph = importlib.import_module("chainrule.autograd.graph")
checkpoint = importlib.import_module("chainrule.utils.checkpoint").checkpoint


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(count, work):
    """Run ``work(i)`` in ``count`` threads that start at the same time; return their results or raise the first exception."""
    barrier = threading.Barrier(count)
    results, failures = [None] * count, []

    def run(i):
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def leaf(*shape):
    return cr.ones(*shape, dtype=cr.float64, requires_grad=True)


# -- modes -----------------------------------------------------------------------------------------------------------


def test_a_new_thread_starts_recording():
    with cr.no_grad():
        assert together(2, lambda i: (cr.is_grad_enabled(), (leaf(2) * 2).requires_grad)) == [(True, True)] * 2
        assert not cr.is_grad_enabled()


def test_modes_of_one_thread_are_not_seen_in_another():
    x = leaf(3)

    def work(i):
        seen = []
        for _ in range(300):
            if i % 2:
                with cr.no_grad():
                    seen.append((x * 2).requires_grad)
            else:
                seen.append((x * 2).requires_grad)
        return set(seen)

    assert together(8, work) == [{True}, {False}] * 4
    assert (x * 2).requires_grad


def test_inference_mode_is_per_thread():
    def work(i):
        with cr.inference_mode(bool(i % 2)):
            return cr.is_inference_mode_enabled(), (leaf(2) * 2).requires_grad

    assert together(4, work) == [(False, True), (True, False)] * 2


def test_saved_tensor_hooks_are_per_thread():
    x = leaf(3)

    def work(i):
        packed = []
        for _ in range(100):
            if i % 2:
                with graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
                    y = x.exp()
            else:
                y = x.exp()
            y.sum().backward()
        return len(packed)

    assert together(6, work) == [0, 100] * 3
    np.testing.assert_allclose(x.grad.numpy(), 600 * np.e)


def test_disabled_hooks_are_per_thread():
    with graph.disable_saved_tensors_hooks("not in this thread"):

        def work(i):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return leaf(1).exp().requires_grad

        assert together(2, work) == [True, True]


def test_copy_on_write_is_per_thread():
    graph.set_copy_on_write(True)
    try:

        def work(i):
            y = leaf(2).exp()
            y += 1
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                y.sum().backward()

        together(2, work)
    finally:
        graph.set_copy_on_write(False)


# -- shared graphs and leaves ----------------------------------------------------------------------------------------


def test_sixteen_backward_passes_over_one_graph():
    x = leaf(50)
    y = ((x * 3).exp() * x).sum()
    expected = cr.autograd.grad(y, x, retain_graph=True)[0].numpy()
    together(16, lambda i: [y.backward(retain_graph=True) for _ in range(8)])
    np.testing.assert_allclose(x.grad.numpy(), 128 * expected, rtol=1e-13)


def test_a_graph_per_thread_on_shared_leaves():
    x, w = leaf(20), leaf(20)

    def work(i):
        for _ in range(25):
            ((i + 1) * x * w).sum().backward()

    together(16, work)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(20, 25.0 * sum(range(1, 17))))
    np.testing.assert_array_equal(w.grad.numpy(), x.grad.numpy())


def test_retained_gradients_add_up_over_threads():
    x = leaf(4)
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    together(8, lambda i: [z.backward(retain_graph=True) for _ in range(20)])
    np.testing.assert_array_equal(y.grad.numpy(), np.full(4, 160 * 4.0))


def test_gradients_of_gradients_in_threads():
    x = leaf(5)
    y = (x**3).sum()

    def work(i):
        (g,) = cr.autograd.grad(y, x, create_graph=True)
        return cr.autograd.grad(g.sum(), x)[0].tolist()

    assert together(8, work) == [[6.0] * 5] * 8


def test_a_checkpointed_graph_from_many_threads():
    x = leaf(6)
    y = checkpoint(lambda x: (x.exp().sin() * x).tanh(), x, use_reentrant=False).sum()
    expected = cr.autograd.grad(y, x, retain_graph=True)[0].numpy()
    together(8, lambda i: [y.backward(retain_graph=True) for _ in range(10)])
    np.testing.assert_allclose(x.grad.numpy(), 80 * expected, rtol=1e-12)


def test_random_checkpoints_in_threads_draw_what_they_drew():
    x = leaf(40)

    def work(i):
        for _ in range(10):
            masks = []

            def function(x, masks=masks):
                masks.append(cr.rand(40))
                return (x * masks[-1].double()).sin()

            y = checkpoint(function, x, use_reentrant=False)
            y.sum().backward()
            assert len(masks) == 2

    together(4, work)
    masks = []

    def function(x):
        masks.append(cr.rand(40).tolist())
        return (x * 2).sin()

    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert masks[0] == masks[1]


# -- hooks -----------------------------------------------------------------------------------------------------------


def test_each_hook_runs_once_in_each_backward():
    x = leaf(3)
    y = x * 2
    counts = {"x": [], "y": [], "pre": [], "post": [], "accumulated": [], "several": []}
    x.register_hook(lambda g: counts["x"].append(1))
    y.register_hook(lambda g: counts["y"].append(1))
    y.grad_fn.register_prehook(lambda gs: counts["pre"].append(1))
    y.grad_fn.register_hook(lambda gi, go: counts["post"].append(1))
    x.register_post_accumulate_grad_hook(lambda t: counts["accumulated"].append(1))
    graph.register_multi_grad_hook([x, y], lambda grads: counts["several"].append(1))
    z = (y * y).sum()
    together(8, lambda i: [z.backward(retain_graph=True) for _ in range(25)])
    assert {name: len(found) for name, found in counts.items()} == dict.fromkeys(counts, 200)


def test_a_hook_that_replaces_does_so_in_every_thread():
    x = leaf(3)
    y = x * 1
    y.register_hook(lambda g: g * 2)
    z = y.sum()
    together(8, lambda i: [z.backward(retain_graph=True) for _ in range(25)])
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 400.0))


def test_registering_and_removing_while_others_run_backward():
    x = leaf(3)
    y = x * 2
    z = (y * y).sum()
    always = []
    y.register_hook(lambda g: always.append(1))

    def work(i):
        for _ in range(100):
            if i % 2:
                handles = [y.register_hook(lambda g: None), y.grad_fn.register_prehook(lambda gs: None)]
                handles.append(x.register_post_accumulate_grad_hook(lambda t: None))
                for handle in handles:
                    handle.remove()
            else:
                z.backward(retain_graph=True)

    together(8, work)
    assert len(always) == 400
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 400 * 8.0))


def test_no_registration_is_lost():
    for _ in range(50):
        y = leaf(1) * 2
        seen = []
        together(4, lambda i, y=y, seen=seen: y.register_hook(lambda g: seen.append(i)))
        y.sum().backward()
        assert sorted(seen) == [0, 1, 2, 3]


def test_an_exception_in_one_thread_does_not_touch_the_others():
    x = leaf(3)
    y = (x * 2).sum()
    failing = {}

    def hook(g):
        if failing.get(threading.get_ident()):
            raise ValueError("here")

    x.register_hook(hook)

    def work(i):
        failing[threading.get_ident()] = bool(i % 2)
        for _ in range(20):
            if i % 2:
                with pytest.raises(ValueError, match="here"):
                    y.backward(retain_graph=True)
            else:
                y.backward(retain_graph=True)
        return cr.is_grad_enabled()

    assert together(8, work) == [True] * 8
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 160.0))


# -- transformations -------------------------------------------------------------------------------------------------


def test_transformations_in_several_threads():
    func = cr.func
    data = np.linspace(0.1, 1.0, 6)

    def work(i):
        found = []
        for _ in range(10):
            scale = float(i + 1)

            def f(x, scale=scale):
                return (x * scale).sin().sum()

            found.append(func.grad(f)(cr.from_numpy(data)).numpy())
            found.append(func.vmap(func.grad(f))(cr.from_numpy(data)).numpy())
            found.append(
                func.jvp(lambda x, f=f: f(x), (cr.from_numpy(data),), (cr.ones(6, dtype=cr.float64),))[1].numpy()
            )
            found.append(func.jvp(func.grad(f), (cr.from_numpy(data),), (cr.ones(6, dtype=cr.float64),))[1].numpy())
        return found

    for i, found in enumerate(together(8, work)):
        s = i + 1.0
        first, second = s * np.cos(s * data), -(s**2) * np.sin(s * data)
        for k in range(0, len(found), 4):
            np.testing.assert_allclose(found[k], first)
            np.testing.assert_allclose(found[k + 1], first)
            np.testing.assert_allclose(found[k + 2], first.sum())
            np.testing.assert_allclose(found[k + 3], second)


def test_a_transformation_does_not_change_another_threads_ordinary_work():
    x = leaf(4)

    def work(i):
        if i % 2:
            return [cr.func.vmap(lambda v: v * 2)(cr.ones(3)).tolist() for _ in range(50)][-1]
        for _ in range(50):
            (x * 2).sum().backward()
        return None

    together(4, work)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 200.0))
