"""Complete programs: a script with autograd's imports, run by python -m chainrule.compat.autograd; and install()."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chainrule.compat

pytest.importorskip("scipy")

PROGRAM = """
import sys
import autograd
import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.signal
import autograd.scipy.stats.norm as norm
from autograd import grad, jacobian
from autograd.builtins import isinstance, tuple
from autograd.core import make_vjp
from autograd.differential_operators import make_jvp_reversemode
from autograd.extend import defvjp, primitive
from autograd.misc.fixed_points import fixed_point
from autograd.misc.optimizers import adam
from autograd.numpy.linalg import solve
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.scipy.special import logsumexp
from autograd.scipy.stats import t, multivariate_normal as mvn
from autograd.test_util import check_grads
from autograd.tracer import getval, isbox
from autograd.util import func, quick_grad_check
from autograd.wrap_util import unary_to_nary

assert __name__ == "__main__"
check_grads(lambda x: norm.logpdf(x) * t.pdf(x, 3.0))(0.5)
quick_grad_check(lambda x, y: x * y, 2.0, (3.0,))
x = np.array([0.5, 1.0, 2.0])
assert grad(lambda x: np.sum(x[x > 0.7] ** 2))(x).tolist() == [0.0, 2.0, 4.0]  # a box as an index
assert grad(lambda x: np.sum(np.where(x > 0.7, x, 0) * (x < 1.5)))(x).tolist() == [0.0, 1.0, 0.0]
print(autograd.__name__, isinstance(autograd.numpy, type(sys)), sys.argv[1:], grad(np.sin)(0.0))
"""


def run(*args, cwd):
    command = [sys.executable, "-m", "chainrule.compat.autograd", *args]
    place = str(Path(chainrule.__file__).parents[1])
    path = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})


def test_a_script_and_a_module(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("from autograd import grad\nassert grad(lambda x: x * x)(3.0) == 6.0\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "main.py").write_text("import sibling, sys\nprint(sys.argv)\n")
    (tmp_path / "sub" / "sibling.py").write_text("import helper_of_a_kind_that_is_not_there\n")
    found = run("program.py", "--option", "a", cwd=tmp_path)
    assert found.stdout == "chainrule.compat.autograd True ['--option', 'a'] 1.0\n", found.stderr
    assert run("-m", "helper", cwd=tmp_path).returncode == 0
    assert "helper_of_a_kind_that_is_not_there" in run("sub/main.py", cwd=tmp_path).stderr
    assert "usage" in run(cwd=tmp_path).stderr


def test_install_refuses(monkeypatch):
    with pytest.raises(ValueError, match="no names of 'theano'"):
        chainrule.compat.install("theano")
    monkeypatch.setitem(sys.modules, "autograd", pytest)
    with pytest.raises(RuntimeError, match="before the program imports it"):
        chainrule.compat.install("autograd")
