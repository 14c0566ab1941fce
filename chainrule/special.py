"""``torch.special``: the error function, and the special names of functions that are elsewhere, too."""

from __future__ import annotations

from chainrule.core.faces import unary
from chainrule.core.inplace import in_place
from chainrule.core.tensor import attach
from chainrule.ops.elementwise import exp2, expm1, log1p, logit, round, sigmoid, sinc, xlogy
from chainrule.ops.reductions import log_softmax, logsumexp, softmax
from chainrule.table import special as rows

erf, erfc = unary(rows.erf), unary(rows.erfc)
expit = sigmoid
attach(erf=erf, erfc=erfc, erf_=in_place("erf_", erf), erfc_=in_place("erfc_", erfc))

__all__ = [
    "erf", "erfc", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "round", "sinc", "softmax",
    "xlogy",
]  # fmt: skip
