"""chainrule differentiates NumPy programs, with PyTorch's autograd surface."""

from __future__ import annotations

from typing import Any

from chainrule import config, errors
from chainrule.backends.memory import keep_freed_memory

if config.KEEP_MEMORY:
    keep_freed_memory()

from chainrule.core.device import device
from chainrule.core.dtypes import (
    NAMES as _DTYPES,
    can_cast,
    finfo,
    get_default_dtype,
    iinfo,
    is_complex as _is_complex_dtype,
    is_floating_point as _is_floating_dtype,
    promote_types,
    result_type,
    set_default_dtype,
)
from chainrule.core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from chainrule.core.printing import get_printoptions, printoptions, set_printoptions
from chainrule.core.size import Size
from chainrule.core.tensor import Tensor
from chainrule.ops import creation, elementwise, gathering, indexing, joining, matrices, methods, numpy_face, numpy_moves, numpy_reductions, ordering, products, reductions, shaping
from chainrule import autograd, func, random
from chainrule.func import vmap

__version__ = "0.1.0"


def _public() -> dict[str, Any]:
    """The operations, from the modules that define them."""
    names: dict[str, Any] = dict(_DTYPES)
    for module in (elementwise, reductions, ordering, shaping, joining, matrices, gathering, products, creation, random):
        for name, thing in vars(module).items():
            if callable(thing) and not name.startswith("_") and str(getattr(thing, "__module__", "")).startswith("chainrule"):
                names.setdefault(name, thing)
    return names


def is_tensor(obj: Any) -> bool:
    """Whether the object is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def is_floating_point(input: Any) -> bool:
    """Whether a tensor (or dtype) is of real floating point numbers."""
    return input.is_floating_point() if isinstance(input, Tensor) else _is_floating_dtype(input)


def is_complex(input: Any) -> bool:
    """Whether a tensor (or dtype) is of complex numbers."""
    return input.is_complex() if isinstance(input, Tensor) else _is_complex_dtype(input)


globals().update(_public())
