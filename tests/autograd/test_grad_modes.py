"""no_grad, enable_grad, set_grad_enabled, inference_mode: as context managers, decorators, switches, and nested."""

import copy

import numpy as np
import pytest

from behaviour import differs, torch
from behaviour import leaf as doubles


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_results_and_factories():
    x = leaf()
    with torch.no_grad():
        assert not (x * 2).requires_grad and not x.clone().requires_grad
        assert torch.ones(2, requires_grad=True).requires_grad
        assert torch.tensor([1.0], requires_grad=True).requires_grad
        y = torch.zeros(2)
        y.requires_grad_()
        assert y.requires_grad and not (y + 1).requires_grad
    assert (y + 1).requires_grad


def test_nesting():
    seen = []
    with torch.no_grad():
        seen.append(torch.is_grad_enabled())
        with torch.enable_grad():
            seen.append(torch.is_grad_enabled())
            with torch.set_grad_enabled(False):
                seen.append(torch.is_grad_enabled())
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    assert [*seen, torch.is_grad_enabled()] == [False, True, False, True, False, True]


def test_the_mode_ends_with_an_exception():
    with pytest.raises(ValueError), torch.no_grad():
        raise ValueError
    assert torch.is_grad_enabled()


def test_as_a_switch():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    mode = torch.set_grad_enabled(False)
    with mode:
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "decorate",
    [
        lambda f: torch.no_grad()(f),
        lambda f: torch.no_grad(f),
        lambda f: torch.set_grad_enabled(False)(f),
        lambda f: torch.inference_mode()(f),
        lambda f: torch.inference_mode(f),
    ],
)
def test_as_a_decorator(decorate):
    @decorate
    def off():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled() and not off() and torch.is_grad_enabled()
    assert off.__name__ == "off"


def test_generators():
    @torch.no_grad()
    def count():
        for _ in range(2):
            yield torch.is_grad_enabled()

    for inside in count():
        assert not inside and torch.is_grad_enabled()


def test_in_place_under_no_grad():
    x = leaf()
    with torch.no_grad():
        x.mul_(2)
        x[0] = 5.0
        x.view(2).add_(1)
    assert x.is_leaf and x.requires_grad and x.tolist() == [6, 5] and x._version == 3

    y = x * 1
    v = y[:1]
    with torch.no_grad():
        v.mul_(2)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def inference():
    with torch.inference_mode():
        return torch.ones(2)


class TestInference:
    def test_the_mode(self):
        with torch.inference_mode():
            assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
            with torch.inference_mode(False):
                assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
                assert (leaf() * 2).requires_grad and not leaf().is_inference()
            with torch.enable_grad():
                assert torch.is_inference_mode_enabled() and torch.is_grad_enabled()
                y = leaf() * 2
                assert not y.requires_grad and y.is_inference()
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()

    def test_what_is_made_inside(self):
        x = torch.ones(2)
        with torch.inference_mode():
            assert torch.ones(2).is_inference() and torch.tensor([1.0]).is_inference()
            assert (x + 1).is_inference() and not x[:1].is_inference()
            assert torch.ones(2, requires_grad=True).requires_grad
        assert not x.is_inference()

    def test_what_is_made_of_it_outside(self):
        x = inference()
        for same in (x[0], x.view(2), x.detach(), x.data):
            assert same.is_inference()
        for other in (x * 2, x.clone()):
            assert not other.is_inference()
        assert not copy.deepcopy(x).requires_grad

    def test_it_prints_as_any_other(self):
        assert repr(inference()) == "tensor([1., 1.])"
        assert type(inference()).__name__ == "Tensor"

    def test_it_cannot_be_saved_for_backward(self):
        w, x = leaf(), inference()
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            w * x
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            torch.matmul(w, x)
        torch.cat([w + x, x]).sum().backward()
        assert w.grad.tolist() == [1, 1]
        (w * x.clone()).sum().backward()
        assert w.grad.tolist() == [2, 2]

    def test_writes(self):
        x = inference()
        for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 1.0), lambda: x.mul_(x), lambda: x.t_()):
            with pytest.raises(
                RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"
            ):
                write()
            with torch.no_grad(), pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
                write()
        with torch.inference_mode():
            x.add_(1)
            x[0] = 5.0
        assert x[0].item() == 5
        y = torch.zeros(2)
        y.copy_(x)
        z = leaf() * 1
        z.copy_(x)
        assert y.tolist() == x.tolist() and z.requires_grad

    @differs("PyTorch raises after it has written")
    def test_a_refused_write_changes_nothing(self):
        x = inference()
        with pytest.raises(RuntimeError, match="Inplace update"):
            x.add_(1)
        assert x.tolist() == [1, 1]

    def test_writes_into_ordinary_tensors(self):
        x = torch.ones(2)
        with torch.inference_mode():
            v = x[:1]
            v.add_(1)
        v.add_(1)
        assert x.tolist() == [3, 1] and x._version == 2

        y = leaf() * 1
        with torch.inference_mode():
            v = y[:1]
        with pytest.raises(
            RuntimeError, match="A view was created in inference mode and is being modified inplace in normal"
        ):
            v.add_(1)

    def test_a_saved_value_overwritten_in_inference_mode(self):
        y = leaf().exp()
        with torch.inference_mode():
            y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_requires_grad_and_version(self):
        with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
            inference().requires_grad_()
        with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
            inference()._version

    @differs("a gradient computed inside is of inference there; here it is like any other")
    def test_backward_inside(self):
        x = leaf()
        y = (x * 2).sum()
        with torch.inference_mode():
            y.backward()
        assert x.grad.tolist() == [2, 2] and not x.grad.is_inference()


def test_decorating_a_class_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Model:
            def __init__(self):
                self.recorded = torch.is_grad_enabled()

    assert not Model().recorded


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("move", [lambda v: v.t_(), lambda v: v.unsqueeze_(0), lambda v: v.transpose_(0, 1)])
def test_turning_a_view_that_was_made_unrecorded(mode, move):
    base = doubles(1.0, 2.0).reshape(1, 2).clone()
    with mode():
        view = base.view_as(base)
    with pytest.raises(
        RuntimeError, match=r"A view was created in (no_grad|inference) mode and is being modified inplace"
    ):
        move(view)
    with mode():
        move(view)


def test_inference_tensor_as_out():
    with torch.inference_mode():
        out = torch.ones(2, dtype=torch.float64)
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        torch.mul(x, x, out=out)


def test_unrecorded_view_of_a_result_as_out():
    base = doubles(1.0, 2.0) * 1
    with torch.no_grad():
        view = base[:1]
    x = torch.ones(1, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.mul(x, x, out=view)
    with torch.no_grad():
        torch.mul(x, x, out=view)
    assert base.tolist() == [1.0, 2.0]


def test_array_of_a_parameter_in_no_grad():
    x = doubles(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with torch.no_grad():
        assert isinstance(x.numpy(), np.ndarray) and x.numpy().tolist() == [1.0, 2.0]


def test_the_module_of_modes():
    from importlib import import_module

    modes = import_module(f"{torch.__name__}.autograd.grad_mode")
    assert modes.no_grad is torch.no_grad and modes.set_grad_enabled is torch.set_grad_enabled
    assert torch.autograd.grad_mode is modes
