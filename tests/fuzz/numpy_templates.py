"""Templates for the statements of random NumPy programs; the placeholders are those of `templates`."""

from .templates import parts, words

UFUNCS = """sin cos tanh exp absolute square negative sqrt log1p expm1 arctan sinh cosh cbrt exp2 rint floor sign
    reciprocal log conj deg2rad isfinite signbit fabs degrees"""
AXES = ("", "axis={d}", "axis={d}, keepdims=True", "axis={D}", "0")
KINDS = {
    "arithmetic": """{f} + {w} | {f} - {w} | {f} * {w} | {f} / ({w} ** 2 + 0.5) | {f} * {k} | {k} - {f}
        | {k} / (abs({f}) + 0.3)
        | {f} ** 2 | {f} ** 3 | (abs({f}) + 0.1) ** {w} | {k} ** {f} | {f} % {k} | {f} // {k} | -{f} | +{f} | abs({f})
        | np.maximum({f}, {w}) | np.minimum({f}, {k}) | np.fmod({f}, {k}) | np.arctan2({f}, {w}) | np.hypot({f}, {w})
        | np.logaddexp({f}, {w}) | np.copysign({f}, {w}) | np.where({f} > 0, {x}, {w}) | np.where({m}, {f}, {k})
        | np.clip({f}, -0.5, 0.5) | {f}.clip(-0.4, 0.6) | {f}.clip(min=0) | np.heaviside({f}, 0.5)
        | np.float64(2) * {f}
        | {f} * np.array({k}) | {i} * {f} | {i} / 3 + {f} | {f} + {b} | {b} * {f} | {f} * {x}.size | {f} / len({x})
        | {f} * {x}.ndim | {f} / {x}.shape[0] | np.multiply({f}, {w}) | np.subtract({f}, {w}) | np.power({f}, 2)
        | np.divide({f}, 2) | np.add({f}, {w}) | np.float_power(abs({f}) + 1, {k}) | np.nan_to_num({f})
        | {f} * [2] * 1.0
        | {f} + np.arange({x}.shape[-1]) | np.float64(0.5) + {f}
        | np.select([{f} > 0, {x} < -0.5], [{x}, {x} ** 2], {k})
        | np.piecewise({f}, [{x} < 0, {x} >= 0], [lambda v: v * v, lambda v: v]) | np.sinc({f})
        | np.interp({f}, [-1, 0, 1], [0, 1, 4])
        | np.where({f} > {w}, {x}, 0) | np.ldexp({f}, 2) | np.divmod({f}, 0.7)[1]""",
    "elementwise": " | ".join(f"np.{u}({{f}})" for u in words(UFUNCS))
    + """ | {f}.copy() | {f}.astype(float) | np.real({f}) | {f}.real | {f}.round(1) + {x} | np.round({f}, 1) * {x}
        | {f}.conj() | np.modf({f} * 3)[0] | np.frexp({f})[0] | np.angle({f}) | np.i0({f}) | np.fix({f} * 2) * {x}
        | np.arcsinh({f}) | np.log2(abs({f}) + 1) | np.trunc({f}) + {x}""",
    "comparison": """{f} > {w} | {f} <= {k} | {f} == {x} | {f} < 0 | np.isclose({f}, {k})
        | np.logical_and({f} > 0, {x} < 1) | {i} > 0""",
    "reduction": " | ".join(f"{{f}}.{r}({a})" for r in words("sum mean prod std var max min") for a in AXES)
    + " | "
    + " | ".join(
        f"np.{r}({{f}}{', ' if a else ''}{a})"
        for r in words("sum mean prod std var max min amax median ptp nansum nanmean")
        for a in AXES[:3]
    )
    + """ | {f}.std(ddof=1) | {f}.var(axis={d}, ddof=1) | np.std({f}, ddof=1, keepdims=True)
        | np.var({f}, {d}, ddof=1) | np.average({f}, axis={d})
        | np.average({f}, weights=np.exp({x})) | np.linalg.norm({f}) | np.linalg.norm({f}, axis={d})
        | np.trapezoid({f}) | np.percentile({f}, 30)
        | np.quantile({f}, 0.7, axis={d}) | {f}.argmax() | {f}.argmin(axis={d}) | np.argmax({f}, axis={d})
        | np.count_nonzero({f} > 0) | ({f} > 0).sum()
        | ({f} > 0).mean() | {f}.any() | {f}.trace() | np.trace({f}) | np.cov({f})
        | np.sum({f}, axis={d}, where={x} > 0) | sum({f}) | np.logaddexp.reduce({f})
        | np.add.reduce({f}, axis={d}) | np.maximum.reduce({f}) | np.multiply.reduce({f}, axis=-1)
        | np.linalg.norm({f}, 1, axis={d}, keepdims=True)
        | np.subtract.reduce({f}) | np.hypot.reduce({f}, axis={d}) | np.divide.reduce(np.exp({f}), axis={d})
        | np.multiply.reduce({f}, axis={d}, initial=1.2) | np.subtract.reduce({f}, axis=0, where={x} > 0, initial=0.5)
        | np.maximum.reduceat({f}, [0, 0], axis={d}) | np.add.reduceat({f}, [0, 1]) | np.subtract.reduceat({f}, [1, 0], axis=-1)
        | np.nanstd({f}) | np.nanmax({f}, axis={d}) | np.nanprod({f}) | np.nanmedian({f}, axis={d}) | np.nanpercentile({f}, 30)
        | np.max({f}, initial=0.2) | np.sum({f}, initial=1.5) | max({f}.ravel()) | min({f}.flat)""",
    "scan": """{f}.cumsum() | {f}.cumsum({d}) | np.cumsum({f}) | np.cumsum({f}, axis={d})
        | np.cumprod({f}, axis={d}) | {f}.cumprod() | np.diff({f})
        | np.diff({f}, axis={d}) | np.diff({f}, n=2) | np.gradient({f}) if {x}.ndim == 1 else {x} | np.ediff1d({f})
        | np.add.accumulate({f})
        | np.maximum.accumulate({f}, axis={d}) | np.subtract.accumulate({f}) | np.hypot.accumulate({f}, axis={d})
        | np.logaddexp.accumulate({f}) | np.nancumsum({f}, axis={d}) | np.unwrap({f} * 4) | np.gradient({f}, axis={d})
        | np.convolve({f}, {f}) | np.correlate({f}, {f}) | np.diff({f}, prepend=0)""",
    "view": """{f}.T | {f}.transpose() | {f}.transpose({p}) | np.transpose({f}, {p}) | {f}.reshape(-1)
        | {f}.reshape({sh}) | np.reshape({f}, {sh})
        | {f}.ravel() | {f}.flatten() | {f}[None] | {f}[..., None] | {f}[:, np.newaxis] | np.expand_dims({f}, 0)
        | np.squeeze({f}) | {f}.squeeze()
        | {f}.swapaxes({d}, {d}) | np.moveaxis({f}, {d}, {d}) | {f}[::-1] | {f}[..., ::-1] | {f}[:, ::-1]
        | np.flip({f}) | np.flip({f}, {d})
        | np.broadcast_to({f}, (2, *{x}.shape)) | {f}.diagonal() | np.diagonal({f}) | np.atleast_2d({f})
        | np.ravel({f}) | {f}.reshape({sh}, order='F')
        | np.swapaxes({f}, {d}, {d}) | {f}[::-2] | {f}[-1:0:-1] | np.rollaxis({f}, -1) | {f}.mT | np.fliplr({f})
        | {f}[:] | {f}.view() | np.split({f}, [1])[0] | np.array_split({f}, 2)[-1]""",
    "indexing": "{f}[{ix}] | " * 10
    + """{f}[{x} > 0] | {f}[{m}] | {f}[[0, -1]] | {f}[np.array([0, 0])] | {f}[..., 0] | {f}[-1]
        | np.take({f}, [0, -1]) | {f}.take([0, 0])
        | np.take({f}, {I}, axis={d}) | np.take_along_axis({f}, np.argsort({x}, axis={d}), axis=-1)
        | np.compress([True, False], {f}, axis={d})
        | {f}[np.nonzero({x} > 0)] | {f}[{i}] | {f}[np.argsort({x}, axis=0)[0]] | {f}[np.where({x} > 0)]
        | {f}[({x} > 0).nonzero()]
        | {f}.compress([True], axis={d}) | {f}[{f}.argmax() % len({x})] | np.choose([0, 1], [{f}, {f}])
        | np.extract({x} > 0, {f}) | {f}[np.ix_([0], [0])] | {f}[:, [0]] | {f}.flat[0]
        | np.array([v * 2 for v in {f}])""",
    "shaping": """np.concatenate([{f}, {s}], axis={d}) | np.concatenate([{f}.ravel(), {f}.ravel()])
        | np.stack([{f}, {s}]) | np.stack([{f}, {s}], axis=-1)
        | np.hstack([{f}, {s}]) | np.vstack([{f}, {s}]) | np.tile({f}, 2) | np.tile({f}, (2, 1)) | np.repeat({f}, 2)
        | np.repeat({f}, 2, axis={d}) | {f}.repeat(2)
        | {f}.repeat(2, axis={d}) | np.roll({f}, 1) | np.roll({f}, 1, axis={d}) | np.pad({f}, 1)
        | np.pad({f}, 1, mode='edge') | np.pad({f}, (0, 1), mode='reflect')
        | np.triu({f}) | np.tril({f}, -1) | np.diag({f}) | np.outer({f}, {f}) | np.kron({f}, {f}) | np.rot90({f})
        | np.append({f}, {f}) | np.append({f}, {k})
        | np.insert({f}, 0, {k}) | np.delete({f}, 0) | np.delete({f}, 0, axis={d}) | np.meshgrid({f}, {f})[0]
        | np.array([{f}, {s}]) | np.array([{f}[0], {x}[-1]])
        | np.column_stack([{f}, {s}]) | np.zeros_like({f}) + {x} | np.ones_like({f}) * {x}
        | np.full_like({f}, 2) - {x}
        | np.block([[{f}, {s}]]) | np.vander({f}) | np.resize({f}, (2, 3))
        | np.multiply.outer({f}, {f}[0]) | np.subtract.outer({f}.ravel(), {x}.ravel()) | np.power.outer(abs({f}) + 0.1, [1, 2])
        | np.identity(2) * {f}.sum() | np.diagflat({f}) | np.tri({n}) * {f}.sum()""",
    "sorting": """np.sort({f}) | np.sort({f}, axis=0) | np.sort({f}, axis=None) | np.argsort({f})
        | {f}[{f}.ravel().argsort()[:1]] | np.partition({f}, 0)[..., 0] | np.unique({f})
        | sorted({f}) if {x}.ndim == 1 else {x} | np.searchsorted([-0.5, 0.2], {f}) | np.digitize({f}, [-0.5, 0.5])
        | np.flatnonzero({f} > 0) | np.histogram({f}, 2)[0]""",
    "product": """{f} @ {f} | {f} @ {x}.T | np.dot({f}, {f}) | {f}.dot({f}) | np.matmul({f}, {f})
        | np.inner({f}, {s}) | np.vdot({f}, {s}) | np.einsum('ij,jk->ik', {f}, {f})
        | np.einsum('i,i', {f}, {s}) | np.einsum('ij->ji', {f}) | np.einsum('...i,...i->...', {f}, {s})
        | np.einsum('ij,ij->j', {f}, {s}) | np.einsum('ii', {f}) | np.einsum(',i->i', 2.0, {f})
        | np.tensordot({f}, {s}, axes={x}.ndim) | np.tensordot({f}, {f}, axes=1)
        | np.linalg.inv({f} @ {x}.T + np.eye(len({x}))) | np.linalg.det({f})
        | np.linalg.solve({f} @ {x}.T + np.eye(len({x})), {x}) | np.linalg.matrix_power({f}, 2)
        | np.linalg.cholesky({f} @ {x}.T + np.eye(len({x}))) | np.linalg.slogdet({f})[1]
        | np.linalg.eigvalsh({f} @ {x}.T) | np.linalg.svd({f}, compute_uv=False) | np.linalg.pinv({f})
        | np.vecdot({f}, {s}) | np.linalg.norm({f}, 'nuc') | np.linalg.qr({f})[1] | np.fft.irfft({f}) | abs(np.fft.fft2({f}))
        | np.polyfit(np.arange(len({f})), {x}, 1) | np.corrcoef({f}) | np.cov({f}, {s}) | np.histogram({f}, 2, weights={x} ** 2)[0]
        | np.bincount(np.arange({f}.size) % 2, weights={x}.ravel()) | np.interp({f}, np.sort({x}.ravel()), {x}.ravel())
        | np.polyval({f}, 0.5) | np.fft.rfft({f}).real | abs(np.fft.fft({f}))
        | np.linalg.multi_dot([{f}, {f}.T, {f}]) | np.linalg.lstsq({f}, {x})[0]
        | np.apply_along_axis(lambda v: v.sum() * v, {d}, {f}) | np.linalg.eigh({f} @ {x}.T)[0]""",
    "in-place": """!{o} += {w} | !{o} *= {k} | !{o} -= {w} | !{o} /= 2 | !{o} **= 2 | !{o} %= 0.7 | !{o}[{ix}] = {k}
        | !{o}[{ix}] = {w} | !{o}[{ix}] += {k} | !{o}[{ix}] *= {w}
        | !{o}[{m}] = {k} | !{o}[{m}] *= {k} | !{o}[0] = {x}[-1] | !{o}[...] = {w} | !{o}[:] = {w} * 2
        | !{o}.fill({k}) | !{o}.sort() | !{o}[::-1] += {x} | !{o}.T[0] = {k}
        | !np.add({o}, {w}, out={x}) | !np.exp({o}, out={x}) | !np.multiply({o}, {k}, {x})
        | !np.clip({o}, -0.5, 0.5, out={x}) | !np.add.at({o}, [0, 0], {k}) | !np.copyto({o}, {w})
        | !{o}.ravel()[:1] = {k} | !{o}.flat[0] = {k} | !np.put({o}, [0], [{k}]) | !np.fill_diagonal({o}, {k})
        | !{o}[1:] += {x}[:-1] | !{o}[0], {x}[-1] = {x}[-1], {x}[0]
        | !{o}[..., 0] = {w}.sum() | !{o}.reshape(-1)[1:] *= {k} | !np.subtract({o}, {w}, out={x}, where={x} > 0)
        | !np.multiply.at({o}, [0, 0], {k}) | !np.subtract.at({o}, [0, -1], {k}) | !np.maximum.at({o}, [0], {k})
        | !np.negative.at({o}, [0]) | !np.divide.at({o}, np.array([-1, -1, 0]), {k}) | !np.place({o}, {x} > 0, [{k}])
        | !np.put_along_axis({o}, np.argsort({x}, axis=0)[:1], {k}, 0) | !np.modf({o} * 2, out=({x}, np.empty_like({x})))
        | !np.putmask({o}, {x} > 0, {k}) | !{o} @= np.eye({x}.shape[-1])""",
    "loop": """!{v} = np.zeros_like({f})\nfor k in range(len({x})):\n    {V} = {x}[k] * {x}
        | !{v} = 0\nfor row in {f}:\n    {V} = {V} + row * row
        | !{v} = [row.sum() for row in {f}]\n{V} = np.array({V}) | !{v} = np.empty_like({f})\n{V}[...] = {x} * 2
        | !{v} = {f} if {x}.sum() > 0 else -{x}
        | !{v} = {f}.copy()\n{V}[0] = 0 | !{v} = np.ones({x}.shape)\n{V} = {V} * {f}.sum()
        | !{v} = {f}\nwhile np.sum({V} ** 2) > 4:\n    {V} = {V} / 2
        | !{v} = np.stack([row / np.linalg.norm(row) for row in {f}]) | !{v}, {v} = {f}.max(), {x}.min()
        | !{v} = sum(v ** 2 for v in {f}) | !{v} = dict(a={f})['a'] * 2""",
}
TEMPLATES = {kind: parts(text) for kind, text in KINDS.items()}
WEIGHTS = {
    "arithmetic": 9, "comparison": 1, "elementwise": 4, "reduction": 6, "scan": 2, "view": 6, "indexing": 7, "shaping": 5,
    "sorting": 1.5, "product": 4, "in-place": 7, "loop": 2,
}  # fmt: skip
