"""Making tensors from other things."""

from __future__ import annotations

from typing import Any

from chainrule.errors.names import name_of
from chainrule.errors.reading import argument


def find_tensor(data: Any, kind: type) -> Any:
    """The first tensor that requires grad in a nested sequence, else the first tensor, else None."""
    found = None
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, kind):
            if item._edge is not None:  # type: ignore[attr-defined]
                return item
            found = found if found is not None else item
        elif (
            isinstance(item, (list, tuple))
            and item
            and (isinstance(item[0], (list, tuple, kind)) or any(isinstance(i, kind) for i in item))
        ):
            stack.extend(reversed(item))
    return found


def tensor_of_tensors(tensor: Any) -> RuntimeError:
    name, parts = name_of(tensor), argument()
    return RuntimeError(
        "tensor(...) of tensors that require grad would copy their numbers and cut the graph"
        f"{f' (it holds {name})' if name else ''}: gradients would not flow back to them.\n"
        f"Use stack({parts if parts.startswith('[') and '[' not in parts[1:] else '[a, b]'}) (or cat) to keep them connected; "
        "detach() them first if a copy is what you want."
    )


def ragged(data: Any) -> ValueError:
    return ValueError(
        "expected sequences of equal length: the nested lists do not form a rectangle "
        f"(lengths {sorted({len(d) for d in data if hasattr(d, '__len__')})[:6]} side by side)"
        if isinstance(data, (list, tuple)) and any(hasattr(d, "__len__") for d in data)
        else f"could not make an array of {type(data).__name__}"
    )


def number_overflows(number: Any, dtype: Any) -> Exception:
    return RuntimeError(
        f"value cannot be converted to type {dtype} without overflow: {number!r} is not one of its numbers. Choose a dtype "
        "that has it, or convert afterwards: tensor(data).to(dtype) wraps around."
    )


def complex_number(array: Any, dtype: Any) -> Exception:
    return TypeError(
        f"must be real number, not complex: {array.flat[0].item()!r} has no place in {dtype}. Leave dtype out, or take "
        ".real of the data."
    )


def special_array(kind: type) -> TypeError:
    if kind.__name__ == "matrix":
        return TypeError(
            "a np.matrix beside a tensor: its * is a matrix product and its rows stay matrices, which tensors do not follow. "
            "Convert it first, with np.asarray(m), and write @ for products."
        )
    return TypeError(
        "a masked array beside a tensor: tensors have no masks, so its masked numbers would be taken as they are. Fill them "
        "first, as in m.filled(0), or choose with np.where(m.mask, other, x)."
    )


def not_numbers(data: Any, dtype: Any) -> Exception:
    kinds = (
        "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
        "uint32, uint16, uint8, and bool."
    )
    if hasattr(data, "dtype"):
        return TypeError(
            f"can't convert {type(data).__module__}.{type(data).__name__} of type {dtype} to a tensor. {kinds}"
        )
    if isinstance(data, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(data).__name__}'. {kinds}")
    item = data
    while isinstance(item, (list, tuple)) and item:
        item = next((i for i in item if not isinstance(i, (int, float, complex)) or abs(i) >= 2**63), item[0])
    if isinstance(item, str):
        return ValueError(f"too many dimensions 'str': the list holds {item!r}. {kinds}")
    if isinstance(item, int):
        return ValueError(f"Overflow when unpacking long long: {item} does not fit into 64 bits; write it as a float")
    return RuntimeError(f"Could not infer dtype of {type(item).__name__}. {kinds}")
