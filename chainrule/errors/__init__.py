"""Every message a user can meet, in one place.

Each starts with PyTorch's exception type and key words, so that searching the web still works; then it says what is
wrong in terms of the user's own variables, operations, shapes and lines; then what to do.
"""

from __future__ import annotations

from chainrule.errors.algebra import *  # noqa: F403
from chainrule.errors.backward import *  # noqa: F403
from chainrule.errors.checkpoints import *  # noqa: F403
from chainrule.errors.debugging import *  # noqa: F403
from chainrule.errors.files import *  # noqa: F403
from chainrule.errors.functions import *  # noqa: F403
from chainrule.errors.hooks import *  # noqa: F403
from chainrule.errors.making import *  # noqa: F403
from chainrule.errors.operations import *  # noqa: F403
from chainrule.errors.tensors import *  # noqa: F403
from chainrule.errors.transforms import *  # noqa: F403
from chainrule.errors.words import *  # noqa: F403
from chainrule.errors.writing import *  # noqa: F403
