"""Programs written by hand."""

from __future__ import annotations

import numpy as np

from chainrule._src.interpreters.trace_types import TracedCall, Var


class ProgramBuilder:
    """A program, built by calls on the arrays of its Vars."""

    def __init__(self, *inputs, constants=()):
        self.count = 0
        self.inputs = [self.var(np.asarray(x)) for x in inputs]
        self.constants = [self.var(np.asarray(x)) for x in constants]
        self.calls, self.outputs, self.writes = [], [], []

    def var(self, array):
        self.count += 1
        return Var(self.count, array)

    def __call__(self, function, *args, method=None, pure=True, **kwargs):
        call = TracedCall()
        call.function = function
        call.method = method or ("__call__" if isinstance(function, np.ufunc) else "")
        call.args, call.kwargs, call.pure = args, kwargs, pure
        call.op_name, call.code, call.lasti, call.kept, call.step = "", None, 0, False, None
        found = (getattr(function, call.method) if call.method else function)(*arrays(args), **arrays(kwargs))
        several = isinstance(found, (tuple, list))
        call.results = tuple(self.var(np.asarray(x)) for x in (found if several else (found,)))
        self.calls.append(call)
        return call.results if several else call.results[0]

    def eager(self, *inputs):
        """Compute the outputs for other inputs by calling the functions in sequence."""
        known = dict(zip(self.inputs, inputs)) | {var: var.array for var in self.constants}
        for call in self.calls:
            function = getattr(call.function, call.method) if call.method else call.function
            found = function(*arrays(call.args, known), **arrays(call.kwargs, known))
            parts = found if isinstance(found, (tuple, list)) else (found,)
            known.update(zip(call.results, map(np.asarray, parts)))  # NumPy treats its scalars differently
        return [np.asarray(known[var]) for var in self.outputs]


def large_elementwise():
    """Return a program of thirty pairs of elementwise calls on one large array."""
    p = ProgramBuilder(np.linspace(0, 1, 10_000))
    (a,) = p.inputs
    for _ in range(30):
        a = p(np.multiply, p(np.tanh, a), 0.5)
    p.outputs = [a]
    return p


def arrays(x, known=None):
    """Replace Vars in arguments by arrays."""
    if isinstance(x, Var):
        return x.array if known is None else known[x]
    if isinstance(x, (tuple, list)):
        return type(x)(arrays(item, known) for item in x)
    if isinstance(x, slice):
        return slice(arrays(x.start, known), arrays(x.stop, known), arrays(x.step, known))
    if isinstance(x, dict):
        return {name: arrays(item, known) for name, item in x.items()}
    return x
