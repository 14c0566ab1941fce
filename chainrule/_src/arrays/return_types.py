"""Named tuples for results with several parts, as in ``x.max(0).values``.

The functions of ``ops`` return them, and ``chainrule.return_types`` exports them.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any


class Parts(tuple[Any, ...]):
    """A tuple with named parts. It is constructed from the parts or, as in PyTorch, from one sequence of parts."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *parts: Any) -> Any:
        count = len(cls._fields)
        values = tuple(parts[0]) if len(parts) == 1 and count != 1 else parts
        if len(values) != count:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {count}-sequence ({len(values)}-sequence given)"
            )
        return tuple.__new__(cls, values)

    @classmethod
    def _make(cls, parts: Iterable[object]) -> Any:
        return tuple.__new__(cls, parts)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={part!r}" for name, part in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{lines})"

    def __reduce__(self) -> Any:
        return (type(self), (tuple(self),))


def _parts(name: str, *fields: str) -> Any:
    properties = {field: property(itemgetter(i), doc=f"Part {i}.") for i, field in enumerate(fields)}
    return type(
        name,
        (Parts,),
        {
            "__slots__": (),
            "__module__": "chainrule.return_types",
            "_fields": fields,
            "__match_args__": fields,
            **properties,
        },
    )


aminmax = _parts("aminmax", "min", "max")
cummax = _parts("cummax", "values", "indices")
cummin = _parts("cummin", "values", "indices")
frexp = _parts("frexp", "mantissa", "exponent")
geqrf = _parts("geqrf", "a", "tau")
histogram = _parts("histogram", "hist", "bin_edges")
histogramdd = _parts("histogramdd", "hist", "bin_edges")
kthvalue = _parts("kthvalue", "values", "indices")
linalg_cholesky_ex = _parts("linalg_cholesky_ex", "L", "info")
linalg_eig = _parts("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _parts("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex = _parts("linalg_inv_ex", "inverse", "info")
linalg_lstsq = _parts("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _parts("linalg_lu", "P", "L", "U")
linalg_lu_factor = _parts("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _parts("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr = _parts("linalg_qr", "Q", "R")
linalg_slogdet = _parts("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = _parts("linalg_solve_ex", "result", "info")
linalg_svd = _parts("linalg_svd", "U", "S", "Vh")
lu_unpack = _parts("lu_unpack", "P", "L", "U")
max = _parts("max", "values", "indices")
median = _parts("median", "values", "indices")
min = _parts("min", "values", "indices")
mode = _parts("mode", "values", "indices")
nanmedian = _parts("nanmedian", "values", "indices")
qr = _parts("qr", "Q", "R")
slogdet = _parts("slogdet", "sign", "logabsdet")
sort = _parts("sort", "values", "indices")
svd = _parts("svd", "U", "S", "V")
topk = _parts("topk", "values", "indices")
triangular_solve = _parts("triangular_solve", "solution", "cloned_coefficient")
