"""All messages of this floor."""

# ruff: noqa: F403

from chainrule.errors.algebra import *
from chainrule.errors.arrays import *
from chainrule.errors.checkpoints import *
from chainrule.errors.debugging import *
from chainrule.errors.files import *
from chainrule.errors.functions import *
from chainrule.errors.hooks import *
from chainrule.errors.making import *
from chainrule.errors.operations import *
from chainrule.errors.spatial import *
from chainrule.errors.tensors import *
from chainrule.errors.transforms import *
from chainrule.errors.writing import *
