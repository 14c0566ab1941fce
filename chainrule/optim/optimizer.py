"""The base class of optimizers: parameter groups with options, a state for each parameter, and shared helpers."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from chainrule._src.api.grad_mode import enable_grad, no_grad
from chainrule._src.arrays.types import Params, TensorLike
from chainrule._src.ops import creation
from chainrule._src.ops.memory import view_as_real
from chainrule._src.table import arithmetic
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.numbers import number_dtype_for, number_item, number_part
from chainrule._src.tape.tensor import Tensor

Group = dict[str, Any]
Closure = Callable[[], Any]


class _RequiredParameter:
    def __repr__(self) -> str:
        return "<required parameter>"


#: The default of an option that every group must specify.
required = _RequiredParameter()


class Optimizer:
    """The base of optimizers. Subclasses implement ``update``, which updates one parameter in place.

    Args:
        params: tensors, pairs of a name and a tensor, or dictionaries ``{"params": tensors, option: value, ...}``.
        defaults: the options of groups without their own; they may also be keyword arguments (``lr=0.1``).

    >>> import chainrule as cr
    >>> class SignDescent(cr.optim.Optimizer):
    ...     def update(self, p, grad, group, state):
    ...         p.sub_(group["lr"] * grad.sign())
    >>> w = cr.tensor([1.0, -3.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> SignDescent([w], {"lr": 0.5}).step()
    >>> w
    tensor([ 0.5000, -2.5000], requires_grad=True)
    """

    def __init__(self, params: Iterable[Any], defaults: Group | None = None, **options: object) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor: write [w]"
            )
        self.defaults = {**(defaults or {}), **options}
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters with its own options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group, params = dict(param_group), param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, and a set has no order: use a list"
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and all(isinstance(p, tuple) for p in params):
            group["param_names"], params = [name for name, _ in params], [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf and not p.retains_grad:
                raise ValueError(
                    "can't optimize a non-leaf Tensor: pass the leaf it was computed from, or w.detach().requires_grad_()"
                )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        if len({id(p) for p in params}) < len(params) or any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group, or more than once in one")
        group = {**self.defaults, **group, "params": params}
        for name, value in group.items():
            if value is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        self.param_groups.append(group)

    def step(self, closure: Closure | None = None) -> Any:
        """Update all parameters that have a gradient once.

        Args:
            closure: a function that recomputes the loss and its gradients; it is called first and its loss returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.update(p, -p.grad if group.get("maximize") else p.grad, group, self.state[p])
        return loss

    def update(self, p: Tensor, grad: Tensor, group: Group, state: Params) -> None:
        """Update one parameter in place from its gradient and group options; ``state`` persists between steps."""
        raise NotImplementedError(f"{type(self).__name__} implements neither step nor update")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients to None, or to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None if set_to_none or p.grad is None else p.grad.detach().zero_()

    def state_dict(self) -> Params:
        """Return options and states, with an index for each parameter; ``chainrule.save`` can store it."""
        number = {id(p): i for i, p in enumerate(self._params())}
        groups = [{**group, "params": [number[id(p)] for p in group["params"]]} for group in self.param_groups]
        return {"state": {number[id(p)]: state for p, state in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: Params) -> None:
        """Load a ``state_dict`` of an optimizer with the same number and order of parameters."""
        saved = copy.deepcopy(state_dict)
        old, new = ([len(group["params"]) for group in groups] for groups in (saved["param_groups"], self.param_groups))
        if old != new:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: its "
                f"groups have {old} parameters, this optimizer's {new}"
            )
        for group, loaded in zip(self.param_groups, saved["param_groups"]):
            group.update({**loaded, "params": group["params"]})
        params = self._params()
        self.state = defaultdict(dict, {params[int(i)]: state for i, state in saved["state"].items()})

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        groups = [
            f"Parameter Group {i}\n" + "".join(f"    {k}: {v}\n" for k, v in sorted(group.items()) if k != "params")
            for i, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} (\n{chr(10).join(groups)})"


def group_option(group: Group, name: str, like: Tensor | None = None) -> Any:
    """Return a numeric option of a group, cast to the dtype of ``like``.

    Schedulers change options, so a compiled function must read them in each call.
    """
    found = number_item(group, name)
    if found is None:
        return group[name]
    return cast(found, number_dtype_for(like)) if like is not None and isinstance(found, Tensor) else found


def first_beta(group: Group) -> Any:
    """Return the first of a group's betas, which some schedulers change between calls."""
    found = number_item(group, "betas", 0) if group.get("max_momentum") is not None else None
    return number_part(group, "betas", 0) if found is None else found


def count_step(state: dict[str, Tensor], p: Tensor, *names: str) -> None:
    """Increment a parameter's step count; the first step initializes the named states with zeros."""
    if "step" not in state:
        state["step"] = creation.tensor(0.0)
        state.update({name: creation.zeros_like(p) for name in names})
    state["step"].add_(1)


def add_weight_decay(grad: Tensor, p: Tensor, group: Group) -> Tensor:
    """Return the gradient plus weight_decay·p, if the group has weight decay."""
    return grad.add(p, alpha=group["weight_decay"]) if group["weight_decay"] else grad


def update_mean(mean: Tensor, grad: Tensor, beta: TensorLike) -> Tensor:
    """Update a running mean in place: mean ← beta·mean + (1 − beta)·grad."""
    if isinstance(beta, Tensor):
        return mean.copy_(bind(arithmetic.lerp, (mean, grad, cast(1 - beta, number_dtype_for(mean))), {}))
    return mean.lerp_(grad, 1 - beta)


def as_real(tensor: Tensor) -> Tensor:
    """Return a real view of a complex tensor, with pairs of real numbers; other tensors unchanged."""
    return view_as_real(tensor) if tensor.is_complex() else tensor


def check_betas(betas: tuple[float, float]) -> None:
    """Raise for decay rates outside of [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_options(lr: float, weight_decay: float, differentiable: bool = False, **others: float) -> None:
    """Raise PyTorch's errors for negative options, and an error for ``differentiable=True``."""
    if differentiable:
        raise NotImplementedError(
            "differentiable=True: steps write in place and are not recorded. Write the step as a function, "
            "w - lr * grad(loss)(w), to differentiate it"
        )
    for name, value in {"learning rate": lr, "weight_decay value": weight_decay, **others}.items():
        if not value >= 0:
            raise ValueError(f"Invalid {name}: {value}")
