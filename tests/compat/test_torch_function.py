"""``__torch_function__`` of subclasses of Tensor, and of classes that are not tensors."""

import copy

import pytest

from behaviour import ORACLE, torch

if ORACLE:
    from torch._C import DisableTorchFunctionSubclass, _disabled_torch_function_impl
    from torch.overrides import handle_torch_function, has_torch_function, is_tensor_like, wrap_torch_function
else:
    from chainrule.compat.torch._C import DisableTorchFunctionSubclass, _disabled_torch_function_impl
    from chainrule.compat.torch.overrides import (
        handle_torch_function,
        has_torch_function,
        is_tensor_like,
        wrap_torch_function,
    )


class Tagged(torch.Tensor):
    """A subclass that only uses the default."""


class Child(Tagged):
    pass


class Diagonal:
    """A multiple of the identity, not a tensor."""

    def __init__(self, value, n=2):
        self.value, self.n = value, n

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert all(issubclass(t, (torch.Tensor, Diagonal)) for t in types)
        return {
            torch.logdet: lambda x: x.n * torch.log(torch.tensor(x.value)),
            torch.add: lambda x, y: ("add", x, y),
            torch.Tensor.add: lambda x, y: ("Tensor.add", x, y),
            torch.matmul: lambda x, y: ("matmul", x, y),
            torch.Tensor.matmul: lambda x, y: ("Tensor.matmul", x, y),
            torch.exp: lambda x: ("exp", x),
            torch.stack: lambda xs, dim=0: ("stack", dim, len(xs)),
            torch.nn.functional.linear: lambda x, w, b=None: ("linear", x, w),
        }.get(func, lambda *args, **kwargs: NotImplemented)(*args, **(kwargs or {}))


class Doubled(torch.Tensor):
    """Creates its objects in ``__new__`` with additional arguments, and has no ``__init__``."""

    @staticmethod
    def __new__(cls, x, label=None, requires_grad=False):
        self = torch.Tensor._make_subclass(cls, x * 2, requires_grad)
        self.label = label
        return self


class Labelled(torch.Tensor):
    """Passes a tensor's arguments to ``__new__``, and stores the others in ``__init__``."""

    @staticmethod
    def __new__(cls, x, *args, **kwargs):
        return super().__new__(cls, x)

    def __init__(self, x, label=None):
        super().__init__()
        self.label = label


@pytest.mark.parametrize(
    ("make", "values", "label", "requires_grad"),
    [
        (lambda x: Doubled(x), [2.0, 4.0], None, False),
        (lambda x: Doubled(x, label="a", requires_grad=True), [2.0, 4.0], "a", True),
        (lambda x: Labelled(x, "a"), [1.0, 2.0], "a", False),
        (lambda x: Labelled([1, 2], label="a"), [1.0, 2.0], "a", False),
        (lambda x: Labelled(x.requires_grad_() * 2, "a"), [2.0, 4.0], "a", True),
        (lambda x: Tagged(x), [1.0, 2.0], None, False),
        (lambda x: torch.Tensor.__new__(Tagged, x), [1.0, 2.0], None, False),
    ],
)
def test_who_makes_an_object_of_a_subclass(make, values, label, requires_grad):
    made = make(torch.tensor([1.0, 2.0]))
    assert isinstance(made, torch.Tensor) and type(made) is not torch.Tensor
    assert made.tolist() == values and getattr(made, "label", None) == label and made.requires_grad is requires_grad


def test_a_tensor_of_a_tensor_keeps_its_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.Tensor(x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(TypeError):
        torch.Tensor(x, 3)
    with pytest.raises(TypeError):
        Tagged(x, label=1)


def tagged(*values, kind=Tagged):
    return torch.tensor(values).as_subclass(kind)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: 2 - x,
        lambda x: torch.ones(2) + x,
        lambda x: torch.ones(2) @ x,
        lambda x: x**2,
        lambda x: x == x,
        lambda x: torch.exp(x),
        lambda x: torch.add(torch.ones(2), other=x),
        lambda x: torch.ones(2).add(x),
        lambda x: torch.stack([torch.ones(2), x]),
        lambda x: x.sum(),
        lambda x: x.reshape(2, 1).T,
        lambda x: x[0],
        lambda x: x.max(0),
        lambda x: x.split(1),
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.clone(),
        lambda x: x.double(),
        lambda x: x.add_(1),
        lambda x: x.requires_grad_(),
        lambda x: torch.zeros_like(x),
        lambda x: copy.copy(x),
        lambda x: torch.nn.functional.softplus(x),
        lambda x: torch.linalg.norm(x),
        lambda x: torch.autograd.grad(x.requires_grad_().sum(), x),
    ],
)
@pytest.mark.parametrize("kind", [Tagged, Child])
def test_results_are_of_the_subclass(function, kind):
    result = function(tagged(1.0, 2.0, kind=kind))
    for part in result if isinstance(result, tuple) else (result,):
        assert type(part) is kind


def test_the_subclass_of_a_subclass_comes_first():
    assert type(tagged(1.0) + tagged(1.0, kind=Child)) is Child
    with pytest.raises(TypeError):  # the classes do not know each other

        class Other(torch.Tensor):
            pass

        tagged(1.0) + tagged(1.0, kind=Other)


def test_gradients_go_through():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x.as_subclass(Tagged) * 3).sin().sum().backward()
    assert torch.allclose(x.grad, 3 * (3 * x.detach()).cos())
    leaf = torch.Tensor._make_subclass(Tagged, torch.ones(2), True)
    (leaf * leaf).sum().backward()
    assert leaf.is_leaf and leaf.grad.tolist() == [2.0, 2.0]


def test_what_a_class_is_told():
    told = []

    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append((func, types, len(args), kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = tagged(1.0, 2.0, kind=Noting)
    told.clear()
    y = torch.cumsum(torch.exp(x), dim=0)
    assert type(y) is Noting
    assert told == [(torch.exp, (Noting,), 1, {}), (torch.cumsum, (Noting,), 1, {"dim": 0})]
    told.clear()
    with DisableTorchFunctionSubclass():
        assert type(torch.cumsum(x, 0)) is torch.Tensor and type(x.exp()) is torch.Tensor
    assert told == []


def test_classes_that_are_no_tensors():
    x, d = torch.ones(2), Diagonal(2.0)
    assert torch.allclose(torch.logdet(d), 2 * torch.log(torch.tensor(2.0)))
    assert torch.exp(d) == ("exp", d) and torch.stack([d, x], dim=1) == ("stack", 1, 2)
    assert torch.add(x, d) == ("add", x, d) and (x + d) == ("Tensor.add", x, d)
    assert torch.matmul(x, d) == ("matmul", x, d) and (x @ d) == x.matmul(d) == ("Tensor.matmul", x, d)
    assert torch.nn.functional.linear(x, d) == ("linear", x, d)
    assert not torch.is_tensor(d) and torch.is_tensor(tagged(1.0))
    for refused in (lambda: torch.cumsum(d, 0), lambda: torch.mul(x, d)):
        with pytest.raises(TypeError, match="Multiple dispatch failed for"):
            refused()


def test_functions_of_the_users_own_ask():
    d = Diagonal(2.0)

    def trace(x):
        return handle_torch_function(torch.exp, (x,), x) if has_torch_function((x,)) else x.trace()

    @wrap_torch_function(lambda x: (x,))
    def total(x):
        return x.sum()

    assert trace(d) == ("exp", d) and trace(torch.eye(2)) == total(torch.ones(2)) == 2
    with pytest.raises(TypeError, match=r"no implementation found for|Multiple dispatch failed for"):
        total(d)
    assert is_tensor_like(d) and is_tensor_like(torch.ones(2)) and not is_tensor_like([1])


class Silent(torch.Tensor):
    """A subclass whose ``__torch_function__`` is not called."""

    __torch_function__ = _disabled_torch_function_impl


class Rate(torch.nn.Parameter):
    def __new__(cls, data, unit="s"):
        self = super().__new__(cls, data)
        self.unit = unit
        return self


class Point(Silent, torch.nn.Parameter):
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data, True)


@pytest.mark.parametrize("make", [lambda x: Rate(x, unit="m"), Point])
def test_a_subclass_of_parameter_is_its_own_type(make):
    w, plain = make(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    kind = type(w)
    assert kind in (Rate, Point) and isinstance(w, torch.nn.Parameter) and getattr(w, "unit", "m") == "m"
    assert not isinstance(plain, kind) and not isinstance(torch.ones(2), torch.nn.Parameter)
    for x in (w * 2, w[0], torch.stack([w, plain]), w.detach(), w.data):
        assert type(x) is torch.Tensor and not isinstance(x, torch.nn.Parameter)
    model = torch.nn.Linear(2, 2, bias=False)
    model.own = w
    assert [type(p) for _, p in model.named_parameters() if p is w] == [kind]
    (w * torch.tensor([1.0, 2.0])).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    assert w.tolist() == [0.5, 0.0] and type(w.grad) is torch.Tensor


def test_what_is_made_of_a_subclass_that_is_not_asked():
    x = torch.ones(2).as_subclass(Silent)
    assert [type(y) for y in (x.detach(), x.data, x.exp(), x.cpu())] == [torch.Tensor] * 3 + [Silent]
