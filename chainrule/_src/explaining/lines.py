"""The line of every operation, which is always known."""

from __future__ import annotations


class record_lines:
    """Does nothing any more: every operation notes where it was called, and graphs, explanations and ``why()`` quote it.

    It is there for programs that asked for it.

    Args:
        mode: whether it would be on.

    Raises:
        TypeError: ``mode`` is not a bool.

    >>> import chainrule as cr
    >>> x = cr.tensor(2., requires_grad=True)
    >>> with cr.record_lines():
    ...     y = cr.sin(x) * x
    """

    __module__ = "chainrule.explaining"

    def __init__(self, mode: bool = True) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"record_lines(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode

    def __enter__(self) -> record_lines:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
