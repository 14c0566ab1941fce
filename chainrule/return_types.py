"""Named tuples returned by operations with several results, such as ``x.max(0).values``.

>>> import chainrule as cr
>>> cr.tensor([1., 3., 2.]).max(0)
torch.return_types.max(
values=tensor(3.),
indices=tensor(1))
>>> values, indices = cr.tensor([1., 3., 2.]).max(0)
"""

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.return_types import (
    aminmax,
    cummax,
    cummin,
    frexp,
    geqrf,
    histogram,
    histogramdd,
    kthvalue,
    linalg_cholesky_ex,
    linalg_eig,
    linalg_eigh,
    linalg_inv_ex,
    linalg_lstsq,
    linalg_lu,
    linalg_lu_factor,
    linalg_lu_factor_ex,
    linalg_qr,
    linalg_slogdet,
    linalg_solve_ex,
    linalg_svd,
    lu_unpack,
    max,
    median,
    min,
    mode,
    nanmedian,
    qr,
    slogdet,
    sort,
    svd,
    topk,
    triangular_solve,
)

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "qr",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]

show(globals())
