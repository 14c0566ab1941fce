"""The ``Library`` of CuPy's arrays, which are in GPU memory.

``libraries`` imports this module for the first CuPy array.
"""

from __future__ import annotations

from chainrule._src.arrays import gpu
from chainrule._src.arrays.library import Library

LIBRARY = Library(
    "CuPy",
    lambda x: x.get(),
    "{x}.get()",
    elementwise=gpu.call_elementwise,
    call=gpu.call_cupy,
    element=gpu.element_at,
    gpu=lambda x: int(x.device.id),
    strided=gpu.strided_view,
)
