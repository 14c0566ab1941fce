"""Functions of all gradients or all parameters, with the names of ``torch.nn.utils``."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.api.public_modules import show
from chainrule._src.ops import creation, joining
from chainrule._src.ops.linalg.norms import vector_norm
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.utils import rnn

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    each = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in each if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Return the norm of all tensors, as if they were one vector."""
    each = [vector_norm(t, norm_type) for t in ([tensors] if isinstance(tensors, Tensor) else tensors)]
    norm = vector_norm(joining.stack(each), norm_type) if each else creation.tensor(0.0)
    if error_if_nonfinite and not norm.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return norm


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale the gradients in place so that their total norm is at most ``max_norm``; return the norm before scaling.

    >>> import chainrule as cr
    >>> w = cr.tensor([3., 4.], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> cr.nn.utils.clip_grad_norm_([w], 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    grads = _grads(parameters)
    norm = get_total_norm(grads, norm_type, error_if_nonfinite)
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp the elements of the gradients in place to ±``clip_value``."""
    for g in _grads(parameters):
        g.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all parameters into one vector; the operation is recorded."""
    return joining.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Split a vector and write the parts into the parameters' data, in the order of :func:`parameters_to_vector`."""
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.numel()].view_as(p).data
        at += p.numel()


show(globals())
