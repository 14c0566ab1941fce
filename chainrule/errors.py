"""Every message a user can meet, in one place.

Each starts with PyTorch's exception type and key words, so that searching the web still works; then it says what is
wrong in terms of the user's own variables, operations, shapes and lines; then what to do.
"""

from __future__ import annotations

import difflib
import itertools
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

    __slots__ = ("kind", "names", "where")

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
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior.\n"
        f"It is input {index}{f' ({name})' if name else ''} of shape {_shape(tensor)}: no path leads from the outputs "
        "to it. allow_unused=True gives None for it, materialize_grads=True zeros. (An input that was rebound, as in "
        "x = x * 2 or x[0], is a new tensor: pass the very one the outputs were computed from.)"
    )


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}` cannot be empty.")


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
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
        f"This one is the output of {tensor.grad_fn.name()}: deepcopy t.detach(), or use t.clone() to stay in the graph."
    )


def pickle_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        f"Can't pickle a tensor that is the output of {tensor.grad_fn.name()}: its graph would be lost. "
        "Pickle t.detach(), and compute it again after loading if you need gradients."
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
    names = {"Batched": "vmap", "Dual": "jvp"}
    inside = names.get(kind, kind)
    return RuntimeError(
        f"this tensor lives inside {inside} and has no single NumPy array: .numpy(), .item() and .tolist() cannot work "
        f"there. Return the value from the function, and look at it outside. If {inside} has ended, the tensor escaped "
        f"from it (through a global or a list, say)."
    )


def data_dependent(tensor: Any, what: str) -> RuntimeError:
    where = user_line()
    if type(tensor._data).__name__ == "Batched":
        return RuntimeError(
            f"vmap: It looks like you're attempting to use {what} on a tensor inside vmap"
            f"{f' ({where})' if where else ''}. Each example may take another branch, and there is one program for all. "
            "Use torch.where(condition, a, b), which computes both and chooses."
        )
    return RuntimeError(
        f"{what} of a tensor inside a transformation{f' ({where})' if where else ''} has no single number."
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


def no_grad_view_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This view is the output "
        f"of an operation that was not recorded, so the gradient of {op} cannot be routed to its base. Make the view "
        "outside no_grad, or change a clone()."
    )


def in_place_shape(op: str, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"output with shape {list(want)} doesn't match the broadcast shape {list(got)}: {op} cannot change a tensor's shape"
    )


def in_place_dtype(op: str, got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"result type {got} can't be cast to the desired output type {want}: {op} cannot change a tensor's dtype"
    )


def out_requires_grad(prim: Any) -> RuntimeError:
    name = prim.name if prim is not None else "the function"
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad. Use the returned value instead of out=, or work inside no_grad()."
    )


# -- hooks -----------------------------------------------------------------------------------------------------------


def hook_shape(want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook has changed the size of value: the gradient has shape {tuple(want)}, the hook returned {tuple(got)}"
    )


def hook_count(kind: str, got: int, want: int) -> RuntimeError:
    return RuntimeError(f"{kind} returned an incorrect number of values: expected {want}, got {got}")


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
