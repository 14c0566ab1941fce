"""The checks of HIPS autograd draw directions from NumPy's global generator."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def same_directions():
    np.random.seed(0)
