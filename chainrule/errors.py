"""Every message a user can meet, in one place.

Each starts with PyTorch's exception type and key words, so that searching the web still works; then it says what is
wrong in terms of the user's own variables, operations, shapes and lines; then what to do.
"""

from __future__ import annotations

import difflib
import itertools
import linecache
import os
import sys
import warnings
from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Where:
    """A line of the user's program, kept as (file, line) and formatted only when printed."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int) -> None:
        self.file = file
        self.line = line

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


class Cut:
    """Why a tensor does not require grad though something it was computed from does."""

    __slots__ = ("kind", "leaf", "names", "where")

    def __init__(self, kind: str, where: Where | None, sources: tuple[Any, ...] = ()) -> None:
        self.kind = kind
        self.where = where
        self.names = tuple(name for name in (name_of(source) for source in sources[:2]) if name)

    def __str__(self) -> str:
        at = f" ({self.where})" if self.where else ""
        of = f" to {' and '.join(self.names)}" if self.names else ""
        if self.kind in ("detach", "detach_"):
            return f"the path{of} was cut by {self.kind}(){at}: leave it out to keep the gradient"
        if self.kind == "no_grad":
            return f"the path{of} was cut because gradient mode was off, as in `with no_grad():`{at}"
        if self.kind == "requires_grad":
            return f"requires_grad was set to False{at}"
        if self.kind == "tensor()":
            return f"tensor(...) made a copy outside the graph{at}: use clone() to keep the gradient"
        if self.kind == "cast":
            return f"the path{of} was cut by the conversion to an integer dtype{at}: integers have no gradient"
        reason = (
            "a comparison has no derivative"
            if self.kind in _COMPARISONS
            else ("its integer or boolean output has no derivative")
        )
        return f"the path{of} was cut by {self.kind}{at}: {reason}"


_COMPARISONS = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isclose",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
    "signbit",
}


def user_line() -> Where | None:
    """The innermost line of the call stack that is not this package's."""
    frame = _user_frame()
    return None if frame is None else Where(frame.f_code.co_filename, frame.f_lineno)


def _user_frame() -> Any:
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def name_of(thing: Any) -> str:
    """The name of the user's variable that holds ``thing``, or an empty string."""
    frame = _user_frame()
    for _ in range(3):
        if frame is None:
            break
        for name, value in list(frame.f_locals.items()):
            if value is thing and not name.startswith("_"):
                return str(name)
        frame = frame.f_back
    return ""


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def _size(shape: Any) -> str:
    return f"torch.Size({list(shape)})"


def _made_by(tensor: Any) -> str:
    node = tensor.grad_fn
    return f", the result of {node.prim.name}," if node is not None else ""


# -- starting a backward pass ----------------------------------------------------------------------------------------


def implicit_scalar(output: Any) -> RuntimeError:
    name = name_of(output) or "y"
    shape = _shape(output)
    call = name if name.isidentifier() else "y"
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs.\n"
        f"{name}{_made_by(output)} has shape {shape}, and backward() starts from ∂L/∂{call}, one number per element of "
        f"it. Choose:\n"
        f"  {call}.sum().backward()      the gradient of the sum of its elements (the same as gradient=ones_like({call}))\n"
        f"  {call}.backward(g)           g of shape {shape}: Σ g·∂{call}/∂x, for every leaf x\n"
        f"  jacobian({call}, x)          all of ∂{call}/∂x, of shape (*{call}.shape, *x.shape)"
    )


def implicit_not_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {dtype}. "
        "Pass the gradient, or differentiate a real number such as y.abs()**2 or y.real."
    )


def gradient_shape(index: int, gradient: Any, output: Any, label: str = "output") -> RuntimeError:
    given, want = _shape(gradient), _shape(output)
    name = name_of(output) or "y"
    node = output.grad_fn
    made = f" = {node.prim.name}(...)" if node is not None else ""
    hint = (
        f"Did you mean ones_like({name})?"
        if all(bool(v == 1) for v in _flat(gradient))
        else (f"Give one number per element of {name}.")
    )
    inputs = [edge.data.shape for edge in getattr(node, "edges", ()) if hasattr(edge, "data")]
    from_input = f", the shape of an input of {name}" if given in inputs else ""
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {_size(given)} and {label}[{index}] has a shape of "
        f"{_size(want)}.\n"
        f"The gradient you pass is ∂L/∂{name}, one number per element of {name}{made}, so its shape must be {want}. "
        f"You passed {given}{from_input}. {hint}"
    )


def _flat(tensor: Any) -> list[Any]:
    try:
        return list(tensor.detach().flatten()[:64].tolist())
    except Exception:  # inside a transformation there are no numbers to look at
        return [None]


def gradient_dtype(index: int, gradient: Any, output: Any) -> RuntimeError:
    return RuntimeError(
        f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
        f"grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of {output.dtype}."
    )


def gradient_type(function: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): gradients can be either Tensors or None, but got {type(value).__name__}. "
        "Pass a tensor (or an array) of the output's shape."
    )


def gradient_count(outputs: int, gradients: int) -> RuntimeError:
    return RuntimeError(f"got {outputs} tensors and {gradients} gradients: give one gradient per output")


def no_grad_fn(index: int, output: Any) -> RuntimeError:
    name = name_of(output)
    subject = name or "the output"
    if output._cut is not None:
        cause = f"{subject} is not connected to anything that requires grad: {output._cut}."
    elif output.dtype.kind in "iub":
        cause = f"{subject} has dtype {output.dtype}: integers and booleans have no gradient."
    else:
        cause = (
            f"{subject} was computed from nothing that requires grad. Mark the inputs you want gradients for: "
            "x = tensor(..., requires_grad=True), before computing with them."
        )
    return RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn.\n{cause}")


def input_requires_no_grad(index: int, tensor: Any) -> RuntimeError:
    name = name_of(tensor)
    cause = f"\n{tensor._cut}." if tensor._cut is not None else ""
    return RuntimeError(
        "One of the differentiated Tensors does not require grad.\n"
        f"It is input {index}{f' ({name})' if name else ''} of shape {_shape(tensor)}: call requires_grad_() on it "
        f"before computing the outputs.{cause}"
    )


def unused_input(index: int, tensor: Any) -> RuntimeError:
    name = name_of(tensor)
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior.\n"
        f"It is input {index}{f' ({name})' if name else ''} of shape {_shape(tensor)}: no path leads from the outputs "
        "to it. allow_unused=True gives None for it, materialize_grads=True zeros. (An input that was rebound, as in "
        "x = x * 2 or x[0], is a new tensor: pass the very one the outputs were computed from.)"
    )


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")


def not_a_tensor(function: str, argument: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): argument '{argument}' must be a Tensor or a sequence of Tensors, not {type(value).__name__}"
    )


def second_backward(node: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.\n"
        f"The freed values are those of {node.name()}. Either compute the output again before the second backward, or "
        "pass retain_graph=True to the first."
    )


def saved_was_written(node: Any, name: str, array: Any, written: Any) -> RuntimeError:
    op, where = written.last
    since = written.since(node.seq)
    at = f" at {where}" if where else ""
    saved = f"its {'result' if name in node.prim.outputs else 'operand ' + repr(node.prim.aliases.get(name, name))}"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{_tensor_type(array.dtype)} {list(array.shape)}], which is {saved} of {node.name()}, is at version "
        f"{written.count}; expected version {written.count - since} instead.\n"
        f"{node.prim.name} saved the value for its backward rule; {op}{at} overwrote it. Write the change out of place "
        f"(as in y = y + 1 instead of y += 1), or change a clone()."
    )


def _tensor_type(dtype: Any) -> str:
    return {
        "float32": "FloatTensor",
        "float64": "DoubleTensor",
        "complex64": "ComplexFloatTensor",
        "complex128": "ComplexDoubleTensor",
        "float16": "HalfTensor",
        "int64": "LongTensor",
    }.get(str(dtype), "Tensor")


# -- tensors and their flags -----------------------------------------------------------------------------------------


def integer_requires_grad(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "only Tensors of floating point and complex dtype can require gradients.\n"
        f"This one is {tensor.dtype}: an integer cannot change by a little. Write 1. instead of 1, or give "
        "dtype=float32 (or .float()) before asking for gradients."
    )


def non_leaf_flag() -> RuntimeError:
    return RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )


def warn_non_leaf_grad(tensor: Any) -> None:
    name = name_of(tensor)
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead.\n"
        f"{name or 'This tensor'} is the output of {tensor.grad_fn.name()}, not a leaf: call retain_grad() on it before "
        "backward(), or use autograd.grad(L, it).",
        UserWarning,
        stacklevel=3,
    )


def no_grad_needed(tensor: Any, text: str) -> RuntimeError:
    why = f": {tensor._cut}" if tensor._cut is not None else ". Call requires_grad_() on the inputs first"
    return RuntimeError(f"{text}{why}")


def warn_leaves_graph(tensor: Any, what: str) -> None:
    name = name_of(tensor) or "the tensor"
    warnings.warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using "
        f"tensor.detach() first.\n{what}({name}) is a plain number: no gradient flows back from it (math.sin(x) does this, "
        f"np.sin(x) keeps the path). Where a number is what you want, write {name}.item().",
        UserWarning,
        stacklevel=4,
    )


def assigned_grad_shape(tensor: Any, grad: Any) -> RuntimeError:
    return RuntimeError(
        f"assigned grad has data of a different size: the gradient has shape {_shape(grad)}, the tensor {_shape(tensor)}"
    )


def assigned_grad_dtype(tensor: Any, grad: Any) -> RuntimeError:
    return RuntimeError(
        f"assigned grad has data of a different type: the gradient is {grad.dtype}, the tensor {tensor.dtype}"
    )


def numpy_requires_grad(tensor: Any) -> RuntimeError:
    name = name_of(tensor) or "tensor"
    return RuntimeError(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        f"A plain array cannot carry the gradient of {name}, so the path would be cut silently. Where that is what you "
        f"want: {name}.detach().numpy(). NumPy's own functions work on tensors and keep it: np.sin({name}), "
        f"np.sum({name}, axis=0)."
    )


def deepcopy_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, inside "
        f"transformations. This one is the output of {tensor.grad_fn.name()}: use t.clone() to stay in the graph."
    )


def _no_deepcopy(node: Any, why: str) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those "
        f"whose graph can be copied. Behind this one is {node.name()}, {why}. Deepcopy t.detach(), or use t.clone() to stay "
        "in the graph."
    )


def copy_function(node: Any) -> RuntimeError:
    return _no_deepcopy(node, "a Function of yours, whose context may hold anything")


def copy_packed(node: Any) -> RuntimeError:
    return _no_deepcopy(node, "whose saved values were packed by saved_tensors_hooks")


def copy_inside(node: Any) -> RuntimeError:
    return _no_deepcopy(node, "which was recorded inside a transformation")


def copy_overwritten(node: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return _no_deepcopy(node, f"one of the values it needs has been modified by an inplace operation ({op}, {where})")


def pickle_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        f"Can't pickle a tensor that is the output of {tensor.grad_fn.name()}: its graph would be lost. "
        "Pickle t.detach(), and compute it again after loading if you need gradients. (copy.deepcopy copies the graph, too.)"
    )


def pickle_node(node: Any) -> TypeError:
    return TypeError(
        f"cannot pickle {node.name()!r} object: graphs are not pickled, and are copied by copy.deepcopy of their tensors"
    )


def warn_hooks_not_pickled(hooks: dict[int, Any]) -> None:
    hook = next(iter(hooks.values()))
    warnings.warn(
        f"backward hook {hook!r} on tensor will not be serialized. Register it again on the tensor that is loaded.",
        UserWarning,
        stacklevel=3,
    )


def no_attribute(tensor: Any, name: str) -> AttributeError:
    close = difflib.get_close_matches(name, [n for n in dir(type(tensor)) if not n.startswith("_")], 1)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"'Tensor' object has no attribute {name!r}{hint}")


def no_such_name(name: str, known: list[str]) -> AttributeError:
    close = difflib.get_close_matches(name, known, 1)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"module 'chainrule' has no attribute {name!r}{hint}")


# -- making tensors --------------------------------------------------------------------------------------------------


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
    name = name_of(tensor)
    return RuntimeError(
        "tensor(...) of tensors that require grad would copy their numbers and cut the graph"
        f"{f' (it holds {name})' if name else ''}: gradients would not flow back to them. "
        "Use stack([a, b]) (or cat) to keep them connected; detach() them first if a copy is what you want."
    )


def ragged(data: Any) -> ValueError:
    return ValueError(
        "expected sequences of equal length: the nested lists do not form a rectangle "
        f"(lengths {sorted({len(d) for d in data if hasattr(d, '__len__')})[:6]} side by side)"
        if isinstance(data, (list, tuple)) and any(hasattr(d, "__len__") for d in data)
        else f"could not make an array of {type(data).__name__}"
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


# -- operations ------------------------------------------------------------------------------------------------------


def wrong_operand(function: str, position: int, value: Any) -> TypeError:
    argument = ("input", "other")[position] if position < 2 else f"argument {position + 1}"
    what = type(value).__name__
    if hasattr(value, "dtype"):
        what = f"an array of dtype {value.dtype}"
    return TypeError(
        f"{function}(): argument '{argument}' (position {position + 1}) must be Tensor, not {what}"
        + (": wrap it in tensor(...)" if isinstance(value, (list, tuple)) else "")
    )


def not_broadcastable(function: str, *operands: Any) -> RuntimeError:
    shapes = [_shape(x) for x in operands]
    for a, b in itertools.combinations(shapes, 2):
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                return RuntimeError(
                    f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton dimension "
                    f"{max(len(a), len(b)) - i}.\n{function} got shapes {a} and {b}; from the right, sizes must be equal or "
                    "1. Insert an axis with x[:, None], or transpose one operand."
                )
    return RuntimeError(f"{function}: shapes {' and '.join(map(str, shapes))} do not broadcast")


def matmul_shapes(function: str, x: Any, y: Any) -> RuntimeError:
    a, b = _shape(x), _shape(y)
    names = name_of(x) or "X", name_of(y) or "W"
    if len(a) == 2 and len(b) == 2:
        text = f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})"
        inner = f"inner sizes {a[1]} ≠ {b[0]}"
    elif len(a) == 2 and len(b) == 1:
        text = f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})"
        inner = f"inner sizes {a[1]} ≠ {b[0]}"
    elif len(a) == 1 and len(b) == 1:
        text = (
            f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of elements"
        )
        inner = f"lengths {a[0]} ≠ {b[0]}"
    else:
        text = f"Expected size for first two dimensions of batch2 tensor to match; got shapes {a} and {b}"
        inner = "the last size of the first must equal the second last of the second, and batch sizes must broadcast"
    fixes = []
    if len(a) >= 2 and len(b) >= 2:
        if a[-1] == b[-1]:
            fixes.append(f"{names[0]} @ {names[1]}.T has shape {(*a[:-1], b[-2])}")
        if a[-2] == b[-2]:
            fixes.append(f"{names[0]}.T @ {names[1]} has shape {(a[-1], b[-1])}")
    fix = f" {'; '.join(fixes)}." if fixes else ""
    return RuntimeError(f"{text}.\n{function}: {a} @ {b}, {inner}.{fix}")


_TYPE_NAMES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "real floats", "c": "complex numbers"}

_ON_BOOLS = {
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported, use the `^` or `logical_xor()` "
    "operator instead.",
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead.",
}


def no_kernel(function: str, dtype: Any, accepts: str) -> NotImplementedError:
    if dtype == "bool" and function in _ON_BOOLS:
        return NotImplementedError(_ON_BOOLS[function])
    name = _TYPE_NAMES.get(str(dtype), str(dtype))
    takes = [_KINDS[kind] for kind in accepts]
    return NotImplementedError(
        f"\"{function}_cpu\" not implemented for '{name}': {function} does not take {_KINDS[dtype.kind]}, only "
        f"{', '.join(takes)}. Convert first, with .to(dtype)."
    )


def zero_division(function: str) -> RuntimeError:
    return RuntimeError(
        f"ZeroDivisionError: {function} of integers by zero has no answer. Divide floats (x.float()) to get inf or nan."
    )


def dim_range(function: str, dim: Any, ndim: int) -> IndexError:
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim}): {function}")


def check_dim(function: str, dim: Any, ndim: int) -> int:
    """A dimension as an index from the front; PyTorch's errors for what is not one."""
    try:
        if type(dim) is bool:
            raise TypeError
        index: int = dim.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{function}(): argument 'dim' must be int, not {type(dim).__name__}") from None
    bound = ndim or 1
    if not -bound <= index < bound:
        raise dim_range(function, dim, ndim)
    return index % bound


def reshape_size(function: str, shape: Any, target: Any, numel: int) -> RuntimeError:
    return RuntimeError(f"shape '{list(target)}' is invalid for input of size {numel}: {function} from {tuple(shape)}")


def no_rule_for_numpy(name: str, inputs: Any) -> TypeError:
    shapes = ", ".join(str(_shape(x)) for x in inputs if hasattr(x, "shape"))
    return TypeError(
        f"np.{name} has no rule for tensors (operand shapes {shapes}). If no gradient has to pass through it, call it on "
        f"x.detach().numpy(). If one has to, write it with functions that have a rule, or give it one."
    )


def numpy_keyword(name: str, keyword: str) -> TypeError:
    return TypeError(f"np.{name} on tensors does not take {keyword!r}")


def out_is_plain_array(name: str, target: Any) -> RuntimeError:
    buffer = name_of(target) or "the buffer"
    return RuntimeError(
        f"np.{name} would write a tensor into {buffer}, a plain NumPy array of shape {_shape(target)}, which cannot carry "
        f"gradients. Make it a tensor (chainrule.zeros(...)), or collect the parts and stack() them."
    )


def escaped_to_numpy(kind: str) -> TypeError:
    return TypeError(
        f"a value inside a transformation ({kind}) cannot become a plain array: NumPy code that needs the numbers "
        "(np.asarray, .item(), float()) sees no single array there. Return it from the function instead."
    )


def inside_transformation(tensor: Any) -> RuntimeError:
    kind = type(tensor._data).__name__
    inside = {"Batched": "vmap", "Dual": "jvp"}.get(kind, kind)
    level = getattr(tensor._data, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, ".numpy()")
    where = user_line()
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage{f' ({where})' if where else ''}: this tensor lives "
        f"inside {inside} and has no single NumPy array there, so .numpy(), np.asarray() and other code that needs the "
        "numbers cannot work on it. Compute with tensors all the way and return the value from the function: outside it "
        "is an ordinary one."
    )


def data_dependent(tensor: Any, what: str) -> RuntimeError:
    level = getattr(tensor._data, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, what)
    where = user_line()
    at = f" ({where})" if where else ""
    many = "inside vmap each example has a value of its own, so there is no one number to go on with."
    if what == "bool()":
        return RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"
            f"{at}: {many} Use torch.where(condition, a, b), which computes both and chooses."
        )
    if what.startswith(("a boolean mask", "nonzero", "unique")):
        return dynamic_shape(what, "Use torch.where(mask, x, 0.) or multiply by the mask, which keep the size.")
    return RuntimeError(
        f"vmap: It looks like you're calling .item() on a Tensor ({what}{at}): {many} Keep it a tensor (a 0-d tensor works "
        "in arithmetic as a number does), or return it and call this outside."
    )


def unsupported_rule(name: str, column: str, why: str) -> NotImplementedError:
    return NotImplementedError(f"{name} has no {column}: {why}")


# -- writing in place ------------------------------------------------------------------------------------------------


def leaf_in_place(tensor: Any, op: str) -> RuntimeError:
    name = name_of(tensor) or "x"
    return RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{op} would overwrite {name}, whose gradient you asked for. To update a parameter: "
        f"`with no_grad(): {name} -= lr * {name}.grad`. Otherwise write it out of place: `{name} = {name} + ...`, or work "
        f"on {name}.clone()."
    )


def leaf_view_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        f"a view of a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{op} would overwrite part of a leaf. To update a parameter do it inside `with no_grad():`; to compute with the "
        "changed value, change a clone()."
    )


_FORBIDDEN_VIEWS = {
    "no_grad": (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden.",
        "Make the view outside no_grad if {op} is to be recorded, or write inside no_grad if it is not; or change a "
        "clone().",
    ),
    "inference": (
        "A view was created in inference mode and is being modified inplace in normal mode. Given that this use case is "
        "ambiguous and error-prone, it is forbidden.",
        "Make the view outside inference_mode if {op} is to be recorded, or write inside it if it is not; or change a "
        "clone().",
    ),
    "function": (
        "Output of a custom Function is a view and is being modified inplace. This view was created inside a custom "
        "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
        "custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden.",
        "Return a clone() from forward, or write {op} out of place.",
    ),
}


def view_in_place(origin: Any, op: str) -> RuntimeError:
    if isinstance(origin, str):
        what, advice = _FORBIDDEN_VIEWS[origin]
    else:
        what = (
            f"Output {origin[0]} of {origin[1]} is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be modified inplace."
        )
        advice = "Write {op} out of place, or take the part with an index (x[i], x[a:b]), which may be written to."
    return RuntimeError(f"{what}\n{advice.format(op=op)}")


def expanded_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        f"{op} got an expanded tensor, or windows that overlap: clone() it first."
    )


def read_only(op: str) -> RuntimeError:
    return RuntimeError(f"{op}: the array behind this tensor is read-only; clone() the tensor first")


def in_place_shape(op: str, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"output with shape {list(want)} doesn't match the broadcast shape {list(got)}: {op} cannot change a tensor's shape"
    )


def in_place_dtype(op: str, got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"result type {got} can't be cast to the desired output type {want}: {op} cannot change a tensor's dtype"
    )


def out_requires_grad(prim: Any) -> RuntimeError:
    name = f"{prim.name}(): " if prim is not None else ""
    return RuntimeError(
        f"{name}functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad. Use the returned value instead of out=, or work inside no_grad()."
    )


# -- hooks -----------------------------------------------------------------------------------------------------------


def _hook_name(hook: Any) -> str:
    return repr(getattr(hook, "__name__", type(hook).__name__))


def hook_shape(hook: Any, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook {_hook_name(hook)} has changed the size of value: the gradient has shape {tuple(want)}, the hook "
        f"returned {tuple(got)}"
    )


def hook_dtype(hook: Any, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook {_hook_name(hook)} has changed the type of value (was {want} got {got}): return g.to({want})"
    )


def hook_count(hook: Any, got: int, want: int) -> RuntimeError:
    return RuntimeError(
        f"hook {_hook_name(hook)} has returned an incorrect number of values (got {got}, but expected {want})"
    )


def hook_type(expected: str, got: Any) -> TypeError:
    return TypeError(
        f"expected {expected}, but hook returned '{type(got).__name__}': a tensor's hook returns a tensor or None, a "
        "node's hook a tuple of them or None"
    )


def hook_fills_none() -> RuntimeError:
    return RuntimeError(
        "can't replace a None gradient with a non-None value: this operand of the node needs no gradient"
    )


# -- linear algebra --------------------------------------------------------------------------------------------------


class LinAlgError(RuntimeError, _NumpyLinAlgError):
    """A matrix that has no such decomposition or inverse; NumPy's error of that name and PyTorch's at once."""


def dtype_word(dtype: Any) -> str:
    """What PyTorch calls a dtype in its messages: Long, Float, Double ..."""
    return _TYPE_NAMES.get(str(dtype), str(dtype))


def matrix_rank_low(function: str, x: Any, name: str = "A") -> LinAlgError:
    return LinAlgError(
        f"{function}: The input tensor {name} must have at least 2 dimensions. It has shape {_shape(x)}: the last "
        "two axes are a "
        "matrix's rows and columns, the others a batch."
    )


def matrix_not_square(function: str, x: Any) -> LinAlgError:
    rows, columns = _shape(x)[-2:]
    return LinAlgError(f"{function}: A must be batches of square matrices, but they are {rows} by {columns} matrices")


def matrix_dtype(function: str, x: Any) -> RuntimeError:
    if str(x.dtype) == "float16":
        return RuntimeError(f"{function}: Low precision dtypes not supported. Got Half: convert with .float() first")
    return RuntimeError(
        f"{function}: Expected a floating point or complex tensor as input. Got {dtype_word(x.dtype)}: convert with "
        ".float() or "
        ".double() first"
    )


def matrix_shapes(function: str, a: Any, b: Any, left: bool = True) -> LinAlgError:
    (m, n), (p, q) = _shape(a)[-2:], _shape(b)[-2:]
    return LinAlgError(
        f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({m}x{n} and "
        f"{p}x{q})"
    )


def matrix_dtypes(function: str, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"{function}: Expected A and B to have the same dtype, but found A of type {dtype_word(a.dtype)} and B of type "
        f"{dtype_word(b.dtype)} instead: convert one with .to({a.dtype}) or .to({b.dtype})"
    )


def ill_defined_phase(function: str, vectors: str) -> RuntimeError:
    return RuntimeError(
        f"{function}_backward: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
        "The specified "
        "loss function depends on this quantity, so it is ill-defined. Use a loss that a phase does not change, such "
        "as one "
        "of absolute values."
    )


def svd_extra_columns() -> RuntimeError:
    return RuntimeError(
        "svd_backward: the loss depends on the columns of U (or rows of Vh) that full_matrices=True adds. They are "
        "not determined by "
        "the matrix, so there is no gradient through them: use full_matrices=False, or only the first min(m, n) of "
        "them."
    )


# -- hooks on saved values -------------------------------------------------------------------------------------------


def unpacked_no_tensor(value: Any) -> TypeError:
    return TypeError(
        f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(value).__name__}: "
        "unpack_hook must give back a tensor with the values that pack_hook was handed"
    )


# -- inference mode, data and detach ---------------------------------------------------------------------------------


def inference_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        f"Inplace update to inference tensor outside InferenceMode is not allowed.\n{op} would overwrite a tensor that was "
        "made in inference_mode: change a clone(), or write inside inference_mode."
    )


def inference_saved(function: str) -> RuntimeError:
    return RuntimeError(
        f"Inference tensors cannot be saved for backward.\n{function} would keep an operand that was made in "
        "inference_mode: use its clone(), or make it inside no_grad instead."
    )


def inference_requires_grad() -> RuntimeError:
    return RuntimeError(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.\n"
        "It was made in inference_mode: ask for the gradient of its clone()."
    )


def inference_version() -> RuntimeError:
    return RuntimeError("Inference tensors do not track version counter.")


def detach_view() -> RuntimeError:
    return RuntimeError(
        "Can't detach views in-place. Use detach() instead.\nA view shares its history with its base; detach() gives a "
        "tensor of the same memory without one."
    )


def data_dtype(dtype: Any) -> RuntimeError:
    return RuntimeError(
        "data set to a tensor that requires gradients must be floating point or complex dtype\n"
        f"The new data is {dtype}: convert it with .float() first."
    )


def no_resize(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name}(): a tensor's memory belongs to NumPy and cannot be exchanged or made longer under its views. Assign "
        "`x.data = new` for other contents, reshape() for another shape, or make a new tensor."
    )


# -- forward mode ----------------------------------------------------------------------------------------------------


def numpy_has_tangent(tensor: Any) -> RuntimeError:
    name = name_of(tensor) or "tensor"
    return RuntimeError(
        "Can't call numpy() on a dual Tensor: a plain array cannot carry its tangent, so the derivative would be lost "
        f"silently. Where that is what you want: {name}.detach().numpy(). NumPy's own functions work on tensors and keep "
        f"it: np.sin({name}), np.sum({name}, axis=0)."
    )


def nested_dual_level() -> RuntimeError:
    return RuntimeError(
        "Nested forward mode AD is not supported at the moment: a dual_level is open in this thread. For derivatives of "
        "tangents nest func.jvp, which has a level for each call."
    )


def dual_level_not_open() -> RuntimeError:
    return RuntimeError("Dual level must be a positive number: exit_dual_level() was called with no level open.")


def dual_level_not_last() -> RuntimeError:
    return RuntimeError(
        "Trying to exit a forward AD level that was not the last one that was created. This is not supported: leave the "
        "innermost first (dual_level, func.jvp and func.vmap each open one)."
    )


def no_dual_level() -> RuntimeError:
    return RuntimeError(
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first: write "
        "`with forward_ad.dual_level():` around it."
    )


def invalid_dual_level(level: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to access a forward AD level with an invalid index. This index was either not created or is already "
        f"deleted: level={level!r}, and only level 0 exists, inside dual_level(). Leave level= out."
    )


def dual_dtype(which: str, value: Any) -> ValueError:
    return ValueError(
        f"Expected {which} to be floating point or complex, but got: torch.{value.dtype}. Convert it first: .float(), "
        ".double()."
    )


def dual_not_tensor(function: str, which: str, value: Any) -> TypeError:
    return TypeError(f"{function}(): argument '{which}' must be Tensor, not {type(value).__name__}")


def dual_shape(primal: Any, tangent: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(_shape(primal))} while the given forward gradient is of size "
        f"{list(_shape(tangent))}: a tangent holds one number per element of its primal."
    )


def dual_complex_tangent(primal: Any, tangent: Any) -> RuntimeError:
    return RuntimeError(
        f"Trying to set a complex forward gradient ({tangent.dtype}) on a real Tensor ({primal.dtype}): a real number "
        "moves along a real direction. Use tangent.real, or make the primal complex."
    )


def dual_already(level: int = 0) -> RuntimeError:
    return RuntimeError(
        f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is not "
        "supported: use unpack_dual(x).primal, or x.detach()."
    )


# -- saving and loading ----------------------------------------------------------------------------------------------


class TorchFile(ValueError):
    """A file of PyTorch's own format, which only PyTorch reads."""


def torch_file(name: Any) -> TorchFile:
    return TorchFile(
        f"{name} is a pickle, as torch.save writes it. Reading a pickle can run any code, so load() never does. Convert it "
        "where PyTorch is installed: safetensors.torch.save_file(torch.load(path), 'file.safetensors'), or "
        "numpy.savez('file.npz', **{k: v.numpy() for k, v in torch.load(path).items()})."
    )


def unknown_suffix(path: str, suffix: str) -> ValueError:
    if suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return torch_file(path)
    hint = " (for one array, use numpy.load and from_numpy)" if suffix == ".npy" else ""
    return ValueError(
        f"{path!r} ends in {suffix!r}, which says nothing about a format that save() and load() know: name it .npz or "
        f".safetensors, or give format='npz' or format='safetensors'{hint}."
    )


def only_weights() -> ValueError:
    return ValueError(
        "load() never runs code from a file, so weights_only=False is not possible: leave it out. For pickled objects that "
        "you trust there is pickle.load."
    )


def cannot_save(value: Any, where: str) -> TypeError:
    return TypeError(
        f"save(): {where} is a {type(value).__name__}, which is not data: only tensors, arrays of numbers, numbers, text, "
        "None, and dictionaries, lists and tuples of them can be saved. (pickle saves Python objects.)"
    )


# -- transformations of functions ------------------------------------------------------------------------------------


def escaped_tensor(level: Any, what: str) -> RuntimeError:
    where, here = level.where, user_line()
    called = f" (called at {where})" if where else ""
    return RuntimeError(
        f"{what}{f' ({here})' if here else ''} was given a tensor that has escaped from inside a function being "
        f"vmapped: it was made inside {level.name}{called}, which has ended, and holds the values of all examples. "
        "Return it from the function instead of keeping it in a list, a global or an attribute."
    )


def dynamic_shape(what: str, instead: str) -> RuntimeError:
    where = user_line()
    return RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {what}"
        f"{f' ({where})' if where else ''}: each example could give a result of another size. {instead}"
    )


def random_in_vmap() -> RuntimeError:
    where = user_line()
    return RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
        f"randomness flags on vmap or perform the randomness operation out of vmap{f' ({where})' if where else ''}: "
        "vmap(f, randomness='different') draws anew for each example, 'same' once for all."
    )


def no_func_name(name: str) -> AttributeError:
    instead = {
        "functional_call": "there are no modules here: write the model as a function of its parameters (any nested "
        "container of them) and transform that",
        "stack_module_state": "there are no modules here: stack the parameters with "
        "chainrule.tree.tree_map(lambda *p: chainrule.stack(p), *trees) and vmap over them",
        "replace_all_batch_norm_modules_": "there are no modules here: call batch_norm with running_mean=None and "
        "running_var=None, which has no state",
        "functionalize": "it is not needed: functions that write in place can be transformed as they are",
    }.get(name)
    if instead is None:
        return AttributeError(f"module 'chainrule.func' has no attribute {name!r}")
    return AttributeError(f"module 'chainrule.func' has no attribute {name!r}: {instead}.")


# -- custom functions ------------------------------------------------------------------------------------------------


def function_saves(method: str, index: int, value: Any) -> TypeError:
    return TypeError(
        f"{method} can only save variables, but argument {index} is of type {type(value).__name__}. Tensors (or None) are "
        "saved; keep anything else as an attribute: ctx.axis = axis."
    )


def function_marks(message: str, index: int, value: Any) -> RuntimeError:
    return RuntimeError(f"{message}, but argument {index} is of type {type(value).__name__}")


def function_saved_was_written(node: Any, index: int, array: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{_tensor_type(array.dtype)} {list(array.shape)}], which is saved_tensors[{index}] of {node.name()}, is at "
        f"version {written.count}; expected version {written.count - written.since(node.seq)} instead.\n"
        f"{node.prim.name} saved it for backward; {op}{f' at {where}' if where else ''} overwrote it. Write the change out "
        "of place, or save a clone()."
    )


def once_differentiable(name: str) -> RuntimeError:
    return RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable\n"
        f"{name}.backward says that its operations are not recorded. Write it with recorded operations and take the mark "
        "off, or do without create_graph=True."
    )


def function_instance(name: str) -> RuntimeError:
    return RuntimeError(
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
        f"with static forward method.\n{name} should not be instantiated: its methods are static; call {name}.apply(...)."
    )


def function_keywords(name: str, kwargs: Any) -> TypeError:
    return TypeError(
        f"forward() got an unexpected keyword argument {next(iter(kwargs))!r}: {name}.apply passes keywords only to a "
        "forward without ctx, next to which setup_context is defined. Pass it by position."
    )


def function_nested(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: NestedIOFunction is not supported. Derive from Function, and pass the tensors of nested arguments one by "
        "one: apply(*tensors)."
    )


def function_two_rules(name: str) -> RuntimeError:
    return RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
        f"them: they are two names of one method. {name} has both."
    )


def function_grad_count(name: str, want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"function {name}Backward returned an incorrect number of gradients (expected {want}, got {got}).\n"
        f"{name}.backward returns one gradient for each argument of apply, in order, and None for those that are no tensors."
    )


def function_grad_of_constant(name: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"function {name}Backward returned a gradient different than None at position {index + 1}, but the corresponding "
        f"forward input was not a Variable: {name}.backward returns None there."
    )


def function_grad_type(name: str, index: int, got: Any) -> RuntimeError:
    fix = (
        " Wrap the array: from_numpy(array)."
        if hasattr(got, "dtype")
        else " Several gradients are returned as a tuple."
        if isinstance(got, list)
        else ""
    )
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}): {name}.backward returned it as gradient {index}.{fix}"
    )


def function_grad_shape(name: str, index: int, got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"Function {name}Backward returned an invalid gradient at index {index} - got {list(got)} but expected shape "
        f"compatible with {list(want)}.\nThe gradient has the shape of argument {index} of {name}.apply (a shape that it was "
        "broadcast to is summed over)."
    )


def function_grad_complex(name: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"Function {name}Backward returned a complex gradient at index {index}, but that argument is real. "
        "Return its real part: grad.real."
    )


def function_dirty_lost(name: str) -> RuntimeError:
    return RuntimeError(
        "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
        f"inplace must all be outputs of the Function: return the tensor that {name}.forward passed to mark_dirty."
    )


def function_dirty_leaf(name: str) -> RuntimeError:
    return RuntimeError(
        f"a leaf Variable that requires grad has been used in an in-place operation.\n{name}.forward wrote into it "
        "(mark_dirty). Pass a clone(), or work inside no_grad()."
    )


def function_dirty_view(name: str) -> RuntimeError:
    return RuntimeError(
        "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than "
        f"one Tensor. Pass {name}.apply a clone() of the view, or make two Functions of it."
    )


def function_view_in_place() -> RuntimeError:
    return RuntimeError(
        "the output of a custom Function is a view (or an input that was returned as it is), and its base or another view of "
        "it was written to in place: the gradient of that write is not in the output's history. This behavior is forbidden. "
        "Return a clone() from forward, or write out of place."
    )


def function_no_jvp(name: str, why: str) -> NotImplementedError:
    return NotImplementedError(
        "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.\n"
        f"{name} has no jvp, and its tangent could not be derived from backward: {why}. Define jvp(ctx, *tangents), which "
        "returns one tangent for each output."
    )


def function_jvp_count(name: str, want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"Function's jvp returned an invalid number of forward gradients (expected {want} but got {got}): {name}.jvp returns "
        "one tangent for each output of forward."
    )


def function_jvp_type(name: str, index: int, got: Any) -> RuntimeError:
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}) for grad output {index}: {name}.jvp returned it."
    )


def function_jvp_shape(name: str, index: int, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
        f"Tensor is of size {list(want)} while the given forward gradient is of size {list(got)}: {name}.jvp returned it for "
        f"output {index}."
    )


def function_numpy_inside(name: str, where: str) -> RuntimeError:
    return RuntimeError(
        f"{name}.{where} asked for the numbers of a tensor inside vmap, where there is one program for all examples. "
        "Write it with NumPy's functions on the tensor itself (np.sin(x)), or give the Function a vmap staticmethod: "
        "vmap(info, in_dims, *args) gets ordinary tensors with a batch axis and returns (output, out_dims)."
    )


def function_two_vmaps(name: str) -> RuntimeError:
    return RuntimeError(
        f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
        "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
    )


def function_vmap_result(name: str, got: Any) -> RuntimeError:
    return RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
        f"the output. Got a {type(got)} instead, from {name}.vmap."
    )


def function_vmap_dims(name: str, output: Any, dims: Any) -> RuntimeError:
    return RuntimeError(
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
        f"out_dims={dims} to be compatible with the structure of `output`: {name}.vmap returned "
        f"{len(output) if isinstance(output, tuple) else 'one'} output(s)."
    )


def function_vmap_size(name: str, index: int, got: Any, size: int) -> RuntimeError:
    return RuntimeError(
        f"{name}.vmap returned output {index} of shape {tuple(got)}, which has no axis of the batch size {size} where "
        "out_dims says."
    )


def function_needs_setup(name: str) -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
        f"setup_context staticmethod.\n{name} has a vmap staticmethod, which computes the value without a ctx: to "
        "differentiate it inside vmap, give forward no ctx and fill it in setup_context(ctx, inputs, output)."
    )


# -- anomalies -------------------------------------------------------------------------------------------------------


class CallStack(tuple[Any, ...]):
    """The lines of the user's program that were running, outermost first: (file, line, function) each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(
            f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}\n'
            for file, line, function in self
        )

    @property
    def innermost(self) -> str:
        if not self:
            return ""
        file, line, function = self[-1]
        code = linecache.getline(file, line).strip()
        return f"{os.path.basename(file)}:{line} in {function}" + (f": {code}" if code else "")


def call_stack() -> CallStack:
    found = []
    frame = _user_frame()
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return CallStack(reversed(found))


#: What helps against a NaN of an operation, by the operation's name.
_REMEDIES = {
    "sqrt": "it is not real below 0, and its slope at 0 is infinite, so add a small number inside, sqrt(x + eps)",
    "rsqrt": "it is infinite at 0, so add a small number inside, rsqrt(x + eps)",
    "pow": "a negative base has no real power that is not whole, and at 0 powers below 1 have infinite slope, so clamp the "
    "base, x.clamp(min=eps) ** p",
    "div": "0/0 and inf/inf are nan, so add a small number to the denominator",
    "reciprocal": "it is infinite at 0, so add a small number to the denominator",
    "mul": "0 * inf is nan, so keep the infinite factor from arising",
    "sub": "inf - inf is nan, so keep the infinite operands from arising",
    "add": "inf + -inf is nan, so keep the infinite operands from arising",
    "acos": "it is real only between -1 and 1, and at the ends its slope is infinite, so x.clamp(-1 + eps, 1 - eps)",
    "asin": "it is real only between -1 and 1, and at the ends its slope is infinite, so x.clamp(-1 + eps, 1 - eps)",
    "atanh": "it is real only between -1 and 1, so x.clamp(-1 + eps, 1 - eps)",
    "acosh": "it is real only from 1 on, so x.clamp(min=1 + eps)",
    "eigh": "the derivative of eigenvectors divides by differences of eigenvalues, and two of them are equal",
    "svd": "the derivative of singular vectors divides by differences of singular values, and two of them are equal",
}
for _log in ("log", "log2", "log10", "log1p", "xlogy"):
    _REMEDIES[_log] = "a logarithm is real only of positive numbers, so keep its operand positive, x.clamp(min=eps)"


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def _remedy(name: str) -> str:
    return f" What helps: {_REMEDIES[name]}." if name in _REMEDIES else ""


def nan_born(prim: Any, index: Any, values: dict[str, Any], stack: CallStack) -> str:
    with_ = f", with {_values(values)}" if values else ", from operands without nan"
    return f"The first nan was born in {prim.name} at index {index}{with_} ({stack.innermost}).{_remedy(prim.name)}"


def nan_came_in(prim: Any, stack: CallStack) -> str:
    return f"A nan was in the data already when it came to {prim.name} ({stack.innermost})."


def warn_detected(node: Any) -> None:
    """Show the lines that made a node whose rule failed, and those of the node whose rule made that."""
    stack = node.metadata.get("traceback_")
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    text = f"Error detected in {node.name()}. "
    if stack is None:
        text += "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text += f"Traceback of forward call that caused the error:\n{stack}"
    warnings.warn(text, UserWarning, stacklevel=level)
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_", "  (it was outside of anomaly mode)")
        warnings.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{stack}",
            UserWarning,
            stacklevel=level,
        )
        parent = parent.metadata.get("parent_")


def nan_gradient(
    node: Any, i: int, index: Any, values: dict[str, Any], upstream: Any, arrived: bool, born: str | None
) -> RuntimeError:
    prim = node.prim
    operands = getattr(prim, "operands", ())
    operand = operands[min(i, len(operands) - 1)].lstrip("*") if operands else str(i)
    lines = [f"Function '{node.name()}' returned nan values in its {i}th output."]
    stack = node.metadata.get("traceback_")
    where = f", called at {stack.innermost}" if stack else ""
    lines.append(f"This is the gradient of {prim.name} for its operand {operand}, at index {index}{where}.")
    formula = getattr(prim, "formula", {}).get(operand) or getattr(prim, "formula", {}).get(f"*{operand}")
    known = dict(values) if upstream is None else {"g": upstream, **values}
    rule = f"The rule is {formula}, where g is the gradient that arrived." if formula else ""
    if known:
        rule += f" There {_values(known)}."
    lines += [rule.strip()] if rule else []
    if arrived:
        lines.append(
            "The gradient that arrived had nan in it already: it was given to backward(), a hook made it, or infinite "
            "gradients of several paths were added."
        )
    elif upstream == 0 and born is None:
        lines.append(
            f"The gradient that arrived is 0, and 0 times the infinite slope of {prim.name} is nan. If a mask such as "
            f"where(ok, {prim.name}(x), 0) came after it, mask the input instead: {prim.name}(where(ok, x, 1.0)) never "
            "sees the bad numbers."
        )
    if not arrived and born is None and prim.name in _REMEDIES:
        lines.append(_remedy(prim.name).strip())
    if born is not None:
        lines.append(f"In the forward pass: {born}")
    return RuntimeError("\n".join(lines))


def nan_tangent(
    prim: Any, index: Any, values: dict[str, Any], moved: dict[str, Any], stack: CallStack, born: str | None
) -> RuntimeError:
    where = f" ({stack.innermost})" if stack else ""
    lines = [f"Function '{prim.name}' returned nan values in its tangent, in forward mode, at index {index}{where}."]
    tangents = {f"tangent of {name}": value for name, value in moved.items()}
    if values:
        lines.append(f"There {_values({**values, **tangents})}.")
    if any(value == 0 for value in moved.values()):
        lines.append("A tangent is 0 where the slope is infinite, and 0 times inf is nan: mask the input of the operation.")
    if prim.name in _REMEDIES:
        lines.append(_remedy(prim.name).strip())
    if born is not None:
        lines.append(f"In the forward pass: {born}")
    return RuntimeError("\n".join(lines))


def pack_hook_wrote() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
        "modified by in-place operations, as the forward pass still uses their memory: change a clone()."
    )


def packed_was_written(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{_tensor_type(tensor.dtype)} {list(tensor.shape)}], which a pack hook kept as it was given. Write the "
        "change out of place, or let the pack hook keep a clone()."
    )


def unpacked_differs(value: Any, shape: Any, dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"unpack_hook returned a tensor of shape {_shape(value)} and dtype {value.dtype}, but what pack_hook was handed has "
        f"shape {tuple(shape)} and dtype {dtype}: give back the same values"
    )


def complex_into_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {dtype_word(dtype)} without overflow: it is complex; assign its .real part"
    )


def index_put_dtype(got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {dtype_word(want).capitalize()} for the "
        f"destination and {dtype_word(got).capitalize()} for the source.\nConvert the value with .to(dtype) first."
    )


# -- Jacobians -------------------------------------------------------------------------------------------------------


def jacobian_needs_function() -> ValueError:
    return ValueError(
        "jacobian(): mode='forward' runs the function again, so it needs the function: jacobian(f, x). Of tensors already "
        "computed there is only the graph, which is swept backward."
    )


def jacobian_of_nothing(which: str) -> ValueError:
    return ValueError(f"jacobian(): {which} holds no tensor")


def jacobian_integers(dtype: Any) -> TypeError:
    return TypeError(
        f"jacobian(): x has dtype {dtype}; only floating point and complex values have derivatives: pass 1. instead of 1, "
        "or use .astype(float) (.double() for tensors)"
    )


def jacobian_integer_output(y: Any) -> TypeError:
    cut = f" {y._cut}." if getattr(y, "_cut", None) is not None else ""
    return TypeError(f"jacobian(): the function returns dtype {y.dtype}: integers and booleans have no derivative.{cut}")


def jacobian_output(out: Any) -> TypeError:
    return TypeError(f"jacobian(): the function must return arrays or tensors (or a tree of them), not {out!r}")


def warn_unbatched(error: Exception) -> None:
    warnings.warn(
        f"jacobian(): one row at a time, because the rows cannot go in one batch ({error})", UserWarning, stacklevel=5
    )


# -- profiles --------------------------------------------------------------------------------------------------------


def profiler_option(name: str) -> NotImplementedError:
    if name.startswith("with_") or name == "use_kineto":
        return NotImplementedError(
            f"profile({name}=True) is not supported: profile() records operations, backward rules and "
            "record_function() labels with their times, shapes and memory; leave it out."
        )
    return NotImplementedError(
        f"{name} is for GPUs and their vendors' tools, and everything here runs on the CPU: use profile() without it, and "
        "export_chrome_trace(path) to look at the events in a browser."
    )


def profiler_sort(given: str, known: tuple[str, ...]) -> ValueError:
    return ValueError(f"cannot sort by {given!r}: sort_by is one of {', '.join(map(repr, known))}")


def jacobian_complex_forward() -> ValueError:
    return ValueError(
        "jacobian(): the derivative of a real output along one direction of a complex input is half of what there is to "
        "say: use mode='reverse'."
    )


# -- autograd.functional ---------------------------------------------------------------------------------------------


def functional_type(function: str, what: str, value: Any, index: int | None = None) -> TypeError:
    where = f"the value at index {index}" if index is not None else f"the given {what}"
    return TypeError(
        f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type "
        f"{type(value)}."
    )


def functional_v_count(want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"v is a tuple of invalid length: should be {want} but got {got}: one tensor for each of what it multiplies."
        if want != 1
        else "The given v should contain a single Tensor."
    )


def functional_v_size(index: int | None, want: Any, got: Any) -> RuntimeError:
    which = "v" if index is None else f"Entry {index} in v"
    return RuntimeError(f"{which} has invalid size: should be {_size(want)} but got {_size(got)}.")


def functional_v_none(source: str) -> RuntimeError:
    return RuntimeError(
        f"The vector v can only be None if {source} a single Tensor with a single element: give v, one number per element."
    )


def functional_output_cut(index: int, output: Any) -> RuntimeError:
    cut = f"\n{output._cut}." if output._cut is not None else ""
    return RuntimeError(
        f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
        f"differentiable manner from the input when running in strict mode.{cut}"
    )


def functional_independent(subject: str, index: int, mode: str = "strict mode") -> RuntimeError:
    return RuntimeError(f"{subject} is independent of input {index}. This is not allowed in {mode}.")


def functional_hessian_independent(index: int) -> RuntimeError:
    return RuntimeError(
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        f"{index} is independent of the input. This is not allowed in strict mode: the function is linear in it, or does "
        "not use it, and its second derivatives are zero."
    )


def functional_scalar(function: str, several: bool) -> RuntimeError:
    if several:
        return RuntimeError(f"The function given to {function} should return a single Tensor, not a tuple")
    return RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def functional_strategy(hint: bool = True) -> AssertionError:
    return AssertionError(
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: "forward-mode" costs a pass per input '
        'element, "reverse-mode" one per output element.'
    )


def functional_forward_loop() -> NotImplementedError:
    return NotImplementedError(
        "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
    )


def functional_strict_vectorize() -> RuntimeError:
    return RuntimeError(
        "torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are not supported together. Please "
        "either set `strict=False` or `vectorize=False`."
    )


def warn_out_resized(have: Any, want: Any) -> None:
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(
        f"An output with one or more elements was resized since it had shape {list(have)}, which does not match the "
        f"required output shape {list(want)}. Give out= a tensor of the right shape, or an empty one.",
        UserWarning,
        stacklevel=level,
    )


# -- checkpoints -----------------------------------------------------------------------------------------------------


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it was run again for the backward pass."""


WARN_USE_REENTRANT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended; without it, use_reentrant=True is taken, as in PyTorch."
)


def _operations(frame: Any, run: Any) -> str:
    if not frame.debug:
        return (
            "\nThe function must compute the same when it is run again. Look for what changed between the runs: "
            "a counter, a training flag, data read from elsewhere. debug=True lists the operations of both runs."
        )
    first, second = "\n  ".join(frame.log), "\n  ".join(run.log)
    return f"\nOperations of the first run:\n  {first}\nOperations of the recomputation:\n  {second}"


def checkpoint_saved_more(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
        f"pass, which saved {len(frame.about)}.{_operations(frame, run)}"
    )


def checkpoint_saved_fewer(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
        f"Number of tensors saved during forward: {len(frame.about)}\n"
        f"Number of tensors saved during recomputation: {run.count}.{_operations(frame, run)}"
    )


def checkpoint_saved_others(frame: Any, run: Any) -> CheckpointError:
    lines = "".join(
        f"\ntensor at position {i}: saved with shape {tuple(was[0])} and dtype {was[1]}, recomputed with shape "
        f"{tuple(now[0])} and dtype {now[1]}"
        for i, was, now in run.differing[:8]
    )
    return CheckpointError(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        f"forward pass.{lines}{_operations(frame, run)}"
    )


def argument_was_written(tensor: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{_tensor_type(tensor.dtype)} {list(tensor.shape)}], which a checkpointed function reads, was overwritten "
        f"by {op}{f' at {where}' if where else ''} after the function ran, so it can't be run again. Write the change "
        "out of place, or run backward() first."
    )


def recomputed_was_written(tensor: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{_tensor_type(tensor.dtype)} {list(tensor.shape)}], which an operation in a checkpointed function saved, was "
        f"overwritten by {op}{f' at {where}' if where else ''}. Write the change out of place, or change a clone()."
    )


def kept_was_written(prim: Any, array: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        f"Tensor cached during selective activation checkpoint has been mutated: the result of {prim.name}, of shape "
        f"{_shape(array)}, was overwritten by {op}{f' at {where}' if where else ''}. allow_cache_entry_mutation=True "
        "computes it again instead."
    )


def reentrant_needs_all_leaves() -> RuntimeError:
    return RuntimeError(
        "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
        "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
        "passing the `inputs` argument."
    )


# -- grad and backward -----------------------------------------------------------------------------------------------


def edge_has_no_shape() -> RuntimeError:
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs, and a GradientEdge does not say what shape its output "
        "has: give a gradient for it (ones(()) for a scalar)."
    )


def inputs_type(value: Any) -> RuntimeError:
    return RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}")


def materialize_edge(index: int) -> RuntimeError:
    return RuntimeError(
        f"materialize_grads cannot be used when the given input is a GradientEdge (input {index}), which does not say what "
        "shape the zeros would have: pass the tensor, or allow_unused=True."
    )


def batched_gradient_shape(index: int, gradient: Any, output: Any) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
        "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
        f"detected: grad_output[{index}] has a shape of {_size(_shape(gradient))} and output[{index}] has a shape of "
        f"{_size(_shape(output))}. It must have one more dimension, in front: one gradient per entry."
    )


def batched_gradient_missing(index: int) -> RuntimeError:
    return RuntimeError(
        f"is_grads_batched=True needs a gradient for every output, and grad_outputs[{index}] is None: give a stack of "
        "gradients, with the batch along dimension 0."
    )


def batched_gradient_sizes(sizes: Any) -> ValueError:
    return ValueError(
        "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
        f"{list(sizes)} for the mapped dimension (dimension 0 of grad_outputs)."
    )


def blocked_below() -> NotImplementedError:
    return NotImplementedError(
        "the gradient of a tensor with two levels of tangents, with respect to one that was itself computed: take it with "
        "respect to the inputs, or use func.grad inside func.jvp"
    )
