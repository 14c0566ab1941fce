"""``torch._jit_internal``: decorators that return functions unchanged."""

from chainrule.jit import export, ignore, is_scripting, unused

__all__ = ["export", "ignore", "is_scripting", "unused"]

_copy_to_script_wrapper = export
