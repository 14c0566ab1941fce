"""``x.why()``: explain why ``x.grad`` is None or which backward passes it is the sum of, with the user's names and lines."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from chainrule._src.explaining.diagnosis.names import NamedArray, Names, place_of
from chainrule._src.explaining.diagnosis.source import SourceLine, line_of, loop_around
from chainrule._src.explaining.diagnosis.tape import Rebinding, rebinding_of
from chainrule._src.messages import errors
from chainrule._src.messages.reading import called, expression_of, receiver
from chainrule._src.messages.source_locations import Where
from chainrule._src.tape.engine import reachable
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import writes_of

_SHOWN = 3


class Why:
    """An answer: the ``reason``, an ``advice`` (or ''), and the source ``lines`` that it mentions.

    >>> import chainrule as cr
    >>> b = cr.ones(2, requires_grad=True)
    >>> print(b.why())
    b.grad is None: no backward() has reached b.
    None of your variables was computed from it.
    """

    __slots__ = ("advice", "lines", "reason")

    def __init__(self, reason: str, advice: str = "", lines: list[SourceLine] | None = None) -> None:
        self.reason = reason
        self.advice = advice
        self.lines = list(dict.fromkeys(lines or []))

    def __str__(self) -> str:
        quoted = [f"  {line}  {line.text}" for line in self.lines if line.text]
        return "\n".join([self.reason, *([self.advice] if self.advice else []), *quoted])

    __repr__ = __str__


def why(tensor: Tensor, frame: object = None) -> Why:
    """Explain why ``tensor.grad`` is None, or which backward passes it is the sum of.

    Args:
        tensor: any tensor.
        frame: the frame whose variables and source are searched; the caller's by default.

    Returns:
        A :class:`Why`, which prints as text. Names, and lines of assignments and of calls of ``backward()``, are read from the
        source if they were not recorded.

    Raises:
        TypeError: ``tensor`` is not a tensor.
    """
    if not isinstance(tensor, Tensor):
        raise errors.not_a_tensor("why", "tensor", tensor)
    return _Answer(tensor, Names(frame)).answer()


class _Answer:
    def __init__(self, tensor: Tensor, names: Names) -> None:
        self.tensor, self.names = tensor, names
        self.found = names.find(tensor)
        written = receiver("why")
        self.name = (
            self.found.name if self.found is not None else "tensor" if written.endswith(")") else written or "tensor"
        )
        self.lines: list[SourceLine] = []

    def answer(self) -> Why:
        tensor = self.tensor
        if type(tensor._raw) is not np.ndarray:
            reason = "inside a transformation, gradients are returned, not written to .grad"
            return self._why(f"{self.name}.grad: {reason}.")
        if tensor._grad is not None:
            return self._finite(self._sum())
        if tensor._edge is None:
            return self._no_grad()
        return self._leaf() if type(tensor._edge) is Leaf else self._result()

    def _why(self, reason: str, advice: str = "") -> Why:
        return Why(reason, advice, self.lines)

    def _at(self, line: SourceLine | None) -> str:
        """Return a line's location in brackets, and list the line for quotation below the answer."""
        if line is None:
            return ""
        if line not in self.lines:
            self.lines.append(line)
        return f" ({line})"

    def _none(self, reason: str, advice: str = "") -> Why:
        return self._why(f"{self.name}.grad is None: {reason}", advice)

    # -- .grad is None -----------------------------------------------------------------------------------------------

    def _leaf(self) -> Why:
        name, leaf = self.name, self.tensor._edge
        users = self._users(leaf)
        said = [self._use(f, reader) for f, reader in users[:_SHOWN]]
        cuts = [f for f in self.names.found if self._cut_off(f)]
        if leaf.added:
            times = _times(leaf.added)
            reason = f"it was reset after {times} wrote it, and no backward() has reached {name} since."
        else:
            reason = f"no backward() has reached {name}."
        if said:
            reason += " " + "; ".join(said) + "."
            first = users[0][0].name
            advice = f"Call {first}.sum().backward(), or backward() on a scalar computed from {first}."
            number = self._number(leaf)
            if number:
                advice = f"Call {number}.backward()."
            return self._none(reason, self._backward_elsewhere([f for f, _ in users]) or advice)
        if cuts:
            cut = cuts[0]
            return self._none(f"{reason} {cut.name} was computed from it, but {cut.thing._cut}.")
        advice = "None of your variables was computed from it."
        return self._none(reason, self._backward_elsewhere([]) or advice)

    def _use(self, found: NamedArray, reader: object) -> str:
        """Describe the operation that reads the tensor on the path to a variable."""
        by = "" if reader is found.thing._edge else f", through {_op_name(reader)}"
        return f"{found.name} = {_op_of(found.thing)} uses it{by}{self._at(self.names.line(reader))}"

    def _computed(self) -> list[NamedArray]:
        """Return the variables that hold results of operations, oldest first."""
        made = [f for f in self.names.found if type(getattr(f.thing, "_edge", None)) not in (type(None), Leaf)]
        return sorted(made, key=lambda f: int(f.thing._edge.seq))

    def _number(self, leaf: object) -> str:
        """Return the variable that holds the latest scalar that depends on a leaf; '' if there is none."""
        numbers = (f for f in reversed(self._computed()) if f.thing.shape == ())
        return next((f.name for f in numbers if leaf in reachable([f.thing._edge])), "")

    def _users(self, leaf: object) -> list[tuple[NamedArray, Any]]:
        """Return the variables computed directly from a leaf (through unnamed values), each with the first operation that reads it."""
        users = []
        for found in self._computed():
            seen, stack, readers = set[Any](), [found.thing._edge], []
            while stack:
                edge = stack.pop()
                if leaf in edge.edges:
                    readers.append(edge)
                for below in edge.edges:
                    if below not in seen and below is not None and self.names.of(below) is None:
                        seen.add(below)
                        stack.append(below)
            if readers:
                users.append((found, min(readers, key=lambda edge: int(edge.seq))))
        return users

    def _cut_off(self, found: NamedArray) -> bool:
        cut = getattr(found.thing, "_cut", None)
        sources = [source() for source in getattr(cut, "sources", ()) if callable(source)]
        return found.thing is not self.tensor and any(source is self.tensor for source in sources)

    def _backward_elsewhere(self, users: list[NamedArray]) -> str:
        """Describe a backward() that ran on another variable that is still alive; '' if there is none."""
        for on, _, where in self._calls():
            found = next((f for f in self.names.found if f.name == on and isinstance(f.thing, Tensor)), None)
            if found is None or found.thing._edge is None:
                continue
            if self.tensor._edge not in reachable([found.thing._edge]):
                used = "" if users else f", which does not depend on {self.name}"
                tail = f", and {users[0].name} is not part of it" if users else ""
                return f"backward() is called on {on}{self._at(line_of(where))}{used}{tail}."
        return ""

    def _calls(self) -> list[tuple[str, bool, Where]]:
        """Return the calls of backward() that wrote to the leaves: the receiver, whether it has arguments, and the location."""
        found = []
        leaves = [
            f.thing._edge for f in self.names.found if isinstance(f.thing, Tensor) and type(f.thing._edge) is Leaf
        ]
        for where in [where for leaf in leaves for freed in leaf.passes if (where := freed.where) is not None]:
            call = expression_of(where.expression)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                found.append((ast.unparse(call.func.value), bool(call.args or call.keywords), where))
        return found

    def _result(self) -> Why:
        name, tensor = self.name, self.tensor
        found = rebinding_of(tensor, name, self.names)
        if found is not None:
            return self._none(self._was_rebound(found), self._keep_the_leaf())
        made = f"{name} is {_op_of(tensor)}'s output{self._at(self.names.line(tensor))}, not a leaf"
        if tensor.retains_grad:
            return self._none(f"{name}.retain_grad() was called, but no backward() has reached {name} since.")
        return self._none(f"{made}.", f"Call {name}.retain_grad() before backward(), or use grad(L, {name}).")

    def _was_rebound(self, found: Rebinding) -> str:
        """Describe the rebinding of a variable that held a leaf, which still has the gradient but no name."""
        tensor = self.tensor
        by = _operation(place_of(tensor) or getattr(tensor._cut, "where", None)) or _op_of(tensor)
        how = f" by {by}" if by else ""
        off = getattr(tensor._cut, "kind", "") == "no_grad"
        cut = " with gradient mode off, so it is a new tensor that does not require grad" if off else ""
        leaf = "" if found.leaf is None else f"; the leaf is from {found.leaf!s}"
        text = f"{self.name} was rebound{how}{self._at(found.line)}{cut}{leaf}."
        self._at(found.leaf)
        return text

    def _keep_the_leaf(self) -> str:
        name = self.name
        return (
            f"Give the result another name, or make it a leaf: {name} = {name}.detach().requires_grad_(). "
            f"To update a parameter: with no_grad(): {name} -= step."
        )

    def _no_grad(self) -> Why:
        name, tensor = self.name, self.tensor
        cut = tensor._cut
        if cut is None:
            if tensor._raw.dtype.kind not in "fc":
                reason = f"{name} is {tensor.dtype}, and only floating-point and complex tensors have gradients."
                return self._none(reason, f"Convert it: {name} = {name}.float().requires_grad_().")
            line = self._at(self.names.line(tensor))
            return self._none(
                f"{name}{line} does not require grad, and it was not computed from a tensor that does.",
                f"Call {name}.requires_grad_() before using it, or make it with requires_grad=True.",
            )
        self._at(line_of(cut.where))
        found = rebinding_of(tensor, name, self.names) if cut.kind == "no_grad" else None
        if found is not None:
            return self._none(self._was_rebound(found), self._keep_the_leaf())
        return self._none(f"{name} does not require grad: {cut}.")

    # -- .grad is a tensor -------------------------------------------------------------------------------------------

    def _sum(self) -> Why:
        name, tensor, grad = self.name, self.tensor, self.tensor._grad
        edge = tensor._edge
        if edge is None:
            return self._why(f"{name}.grad is left over from an earlier pass: {name} no longer requires grad.")
        if type(edge) is not Leaf:
            return self._retained()
        added = edge.added
        assigned, before, by_hand = getattr(edge, "meta", {}).get("assigned", (None, 0, None))
        written = None if grad is None else writes_of(grad._raw)
        if assigned is not None and assigned() is grad:
            return self._by_hand(added - before, line_of(by_hand))
        if written is not None:
            op, where = written.last
            line = line_of(where)
            if op in ("zero_", "fill_") and line is not None and "zero" in (op + line.text):
                return self._zeroed(added, line)
            return self._by_hand(added, line, op)
        if not added:
            return self._why(
                f"{name}.grad was not written by backward(): it came with the tensor (from a copy or a file)."
            )
        lines = self._backward_lines([freed.where for freed in edge.passes])
        if added == 1:
            return self._why(f"{name}.grad is ∂L/∂{name}, from 1 backward() call{lines}.")
        advice = f"Gradients add up: {name}.grad = None resets it, and so does an optimizer's zero_grad()."
        return self._why(f"{name}.grad is the sum of {added} backward() calls{lines}.", advice)

    def _finite(self, why: Why) -> Why:
        """Append a remark to an answer if the gradient is not finite."""
        grad = getattr(self.tensor._grad, "_raw", None)
        if type(grad) is not np.ndarray or grad.dtype.kind not in "fc":
            return why
        wrong = np.isnan(grad)
        what = "nan" if wrong.any() else "inf"
        wrong = wrong if what == "nan" else np.isinf(grad)
        count = int(wrong.sum())
        if not count:
            return why
        index = tuple(map(int, np.unravel_index(int(wrong.argmax()), grad.shape)))
        which = f"{count} of its {grad.size} elements {'is' if count == 1 else 'are'} {what}, first at index {index}"
        why.reason += f" It is {what}." if grad.ndim == 0 else f" {which[0].upper()}{which[1:]}."
        advice = (
            f"To see where the {what} arose, run the forward and the backward pass again in `with autograd.detect_anomaly():`."
            if what == "nan"
            else ""
        )
        why.advice = " ".join(filter(None, [why.advice, advice]))
        return why

    def _zeroed(self, times: int, line: SourceLine) -> Why:
        name = self.name
        grad = self.tensor._grad
        if grad is not None and not np.any(grad._raw):
            return self._why(f"{name}.grad is zero: zero_() set it{self._at(line)}, and no gradient was added since.")
        return self._why(
            f"{name}.grad is the sum of the backward() calls since zero_(){self._at(line)}; "
            f"since it was last None, {_times(times)} wrote to it."
        )

    def _by_hand(self, times: int, line: SourceLine | None, op: str = "") -> Why:
        how = f"{op} changed it" if op else "it was assigned"
        text = f"{self.name}.grad was also written by hand: {how}{self._at(line)}"
        if times and op:
            text += f". Since it was last None, {_times(times)} added to it, before or after that change"
        elif times:
            text += f", and {_times(times)} added to it since"
        return self._why(text + ".", f"{self.name}.grad = None resets it.")

    def _retained(self) -> Why:
        name = self.name
        text = f"{name}.grad is ∂L/∂{name}, kept because of {name}.retain_grad()."
        for on, arguments, where in self._calls():
            if on == name and arguments:
                line = self._at(line_of(where))
                text += f" backward() was called on {name} itself{line}, so it is the gradient passed to that call."
                break
        return self._why(text)

    def _backward_lines(self, passes: list[Where | None]) -> str:
        """Return the latest lines that called backward(), in brackets."""
        times: dict[SourceLine, list[Where]] = {}
        for where in passes:
            line = line_of(where)
            if line is not None and where is not None:
                times.setdefault(line, []).append(where)
        shown = []
        for line, places in list(times.items())[-_SHOWN:]:
            self._at(line)
            shown.append(f"{line} in a loop" if len(places) > 1 and loop_around(places[0]) else str(line))
        return f" ({', '.join(shown)})" if shown else ""


def _times(n: int) -> str:
    return f"{n} backward() call{'s' * (n != 1)}"


def _op_of(tensor: Tensor) -> str:
    return "" if tensor.grad_fn is None else _op_name(tensor.grad_fn)


def _op_name(node: Any) -> str:
    return str(getattr(node.prim, "name", "") or node.name())


_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "matmul"}


def _operation(where: Where | None) -> str:
    """Return the name of the operation or function at a source location."""
    value = None if where is None else expression_of(where.expression)
    return _OPERATORS.get(type(value.op), "") if isinstance(value, ast.BinOp) else called(value)
