"""Call modules as functions of their parameters, for transformations. ``chainrule.func`` exports both functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from chainrule._src.arrays.types import Params
from chainrule._src.ops.joining import stack
from chainrule._src.tape.tensor import Tensor


class HasParameters(Protocol):
    """An ``nn.Module``, which is in a higher layer."""

    training: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def places(self) -> Iterator[tuple[str, Any, dict[str, Any], str]]: ...
    def named_parameters(self) -> Iterator[tuple[str, Any]]: ...
    def named_buffers(self) -> Iterator[tuple[str, Any]]: ...


def functional_call(
    module: HasParameters,
    parameter_and_buffer_dicts: Mapping[str, object] | Sequence[Mapping[str, object]],
    args: object = None,
    kwargs: Params | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers instead of its own.

    Args:
        module: the module to call.
        parameter_and_buffer_dicts: tensors by dotted name, or several such dictionaries; the module's own tensors are used for
            missing names.
        args: a tuple of arguments, or a single argument.
        kwargs: arguments by name.
        tie_weights: a tensor for one name replaces the parameter under all its names.
        strict: raise unless the names are exactly those of the module.

    Raises:
        AttributeError: the module has no parameter or buffer of a name. With ``strict`` a RuntimeError lists the names.
        ValueError: a name occurs in two dictionaries.

    >>> import chainrule as cr
    >>> line = cr.nn.Linear(2, 1)
    >>> given = {"weight": cr.tensor([[1.0, 2.0]]), "bias": cr.tensor([0.5])}
    >>> cr.func.functional_call(line, given, cr.tensor([3.0, 4.0]))
    tensor([11.5000])
    >>> loss = lambda params, x: cr.func.functional_call(line, params, x).sum()
    >>> cr.func.grad(loss)(given, cr.tensor([3.0, 4.0]))["weight"]
    tensor([[3., 4.]])
    """
    if not hasattr(module, "places"):
        raise TypeError(f"functional_call takes an nn.Module, not a {type(module).__name__}: call that directly")
    given = _merged(parameter_and_buffer_dicts)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _holding(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _merged(dicts: object) -> dict[str, Tensor]:
    """Merge several dictionaries into one; raise for duplicate names."""
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(each, Mapping) for each in dicts):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for each in dicts for name in each]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in dicts for name, value in each.items()}


@contextmanager
def _holding(module: HasParameters, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Assign these tensors to the module within the block."""
    places = {dotted: (holder, name) for dotted, _, holder, name in module.places()}
    own = {dotted: holder[name] for dotted, (holder, name) in places.items() if holder[name] is not None}
    unknown = [name for name in given if name not in places]
    tied = {id(own[name]): value for name, value in given.items() if name in own} if tie_weights else {}
    new = {
        name: given[name] if name in given else tied[id(x)] for name, x in own.items() if name in given or id(x) in tied
    }
    new |= {name: value for name, value in given.items() if name in places and name not in own}
    missing = [name for name in own if name not in new]
    if strict and (missing or unknown):
        lists = [("Unexpected", unknown), ("Missing", missing)]
        said = "".join(f"\n\t{what} key(s): {', '.join(map(repr, names))}." for what, names in lists if names)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{said}")
    if unknown:
        raise AttributeError(f"{type(module).__name__} has no parameter or buffer {unknown[0]!r}")
    before = [(*places[name], places[name][0][places[name][1]]) for name in new]
    try:
        for name, value in new.items():
            holder, key = places[name]
            holder[key] = value
        yield
    finally:
        for holder, key, value in reversed(before):
            holder[key] = value


def stack_module_state(models: Sequence[HasParameters]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and buffers of several modules of one class along a new first axis, for ``vmap``.

    Args:
        models: at least one; all in training mode, or none.

    Returns:
        Dictionaries of the stacked parameters (leaves that require grad if the originals do) and buffers, by dotted name.

    >>> import chainrule as cr
    >>> models = [cr.nn.Linear(3, 2) for _ in range(5)]
    >>> params, buffers = cr.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([5, 2, 3])
    >>> one = lambda params, x: cr.func.functional_call(models[0], params, x)
    >>> cr.func.vmap(one, in_dims=(0, None))(params, cr.ones(3)).shape
    torch.Size([5, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return tuple(
        {name: _stacked(name, [each[name] for each in dicts]) for name in dicts[0]} for dicts in (params, buffers)
    )  # type: ignore[return-value]


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    """Stack tensors to a new leaf."""
    requires_grad = tensors[0].requires_grad
    if any(t.requires_grad != requires_grad for t in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return stack([t.detach() for t in tensors]).requires_grad_(requires_grad)
