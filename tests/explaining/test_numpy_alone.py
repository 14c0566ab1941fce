"""Explanations only need NumPy."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {"numpy", "chainrule"}:
            raise ModuleNotFoundError(f"No module named {name!r} (refused)", name=name)

sys.meta_path.insert(0, Refuse())
try:
    import rich
except ImportError:
    pass
else:
    raise SystemExit("nothing was refused")

import chainrule as cr

X = cr.tensor([[2.0, 1.0, -3], [-3, 4, 2]], requires_grad=True)
W = cr.ones(3, 4, requires_grad=True)
h = cr.nn.functional.gelu(X @ W)
Y = cr.softmax(h, 1) * cr.atan(h).mean(0)
e = cr.explain(Y, grad=cr.ones(2, 4), wrt=[X, W])
assert e.check() and "Check" in str(e) and e._repr_mimebundle_()
data = e.to_dict()
for step in data["steps"]:
    for arrow in step["arrows"]:
        assert arrow["rule"]["mathml"], step["op"]
        assert arrow["element"]["mathml"] or not arrow["element"]["index"], step["op"]
y = cr.outer(W[0], W[0])
(j,) = cr.explain(y).jacobians
assert "<mfrac>" in j.mathml
assert "<math" in e.to_html() and "<svg" in Y.graph().to_svg()
assert Y.graph().to_dot() and X.why()
cr.explain(lambda a: (a * a).sum())(X.detach()).to_html()
loaded = {m.split(".")[0] for m in sys.modules}
assert not loaded & {"rich", "scipy", "torch"}, loaded
"""


def test_explanations_with_numpy_alone():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
