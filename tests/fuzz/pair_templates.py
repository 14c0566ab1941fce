"""Templates for the statements of :mod:`pairs`.

``{x}`` is an existing array, a and b are arguments, s is a float, i contains integers.
"""

from .templates import parts

ARGUMENTS = ("a", "b", "i", "s")
EXPRESSIONS = parts(
    """{x} + b | {x} * s | s - {x} | {x} / b | {x} ** 2 | {x} ** s | {x} // 2 | {x} % 3 | -{x} | abs({x})
    | s * 2 + {x} | {x} @ b | (s + 1) * {x} | {x} * np.float32(2) | {x} + 1j | {x} > b | ({x} > 0) & (b > 0)
    | {x} * True | divmod({x}, 2)[1] | round(s, 1) * {x} | s ** 2 | abs(-s) * {x} | (s < 1) + {x} | -s | s / 3
    | np.exp({x}) | np.log({x}) | np.sqrt({x}) | np.sin({x}) | np.tanh({x}) | np.square({x}) | np.reciprocal({x})
    | np.sign({x}) | np.add({x}, s) | np.multiply(s, {x}) | np.add(s, 1) * {x} | np.maximum({x}, s)
    | np.minimum({x}, b) | np.power({x}, 2) | np.arctan2({x}, b) | np.hypot({x}, b) | np.fmod({x}, s)
    | np.copysign({x}, b) | np.add({x}, b, dtype='f8') | np.conj({x}) | np.floor_divide({x}, b)
    | np.heaviside({x}, s) | np.logaddexp({x}, b) | np.isfinite({x}) | np.signbit({x}) | np.nan_to_num({x})
    | np.sum({x}) | np.sum({x}, axis=0) | {x}.sum(-1) | {x}.mean() | {x}.mean(0) | {x}.var() | {x}.std(0)
    | {x}.prod() | {x}.max() | {x}.min(0) | np.sum({x}, axis=0, keepdims=True) | np.sum({x}, initial=s)
    | np.max({x}, initial=0) | np.sum({x}, where={x} > 0) | {x}.any() | {x}.all(0) | np.add.reduce({x})
    | np.multiply.reduce({x}, axis=-1) | np.add.accumulate({x}) | np.add.outer({x}, {x})
    | np.add.reduceat({x}, [0]) | np.cumsum({x}) | np.cumsum({x}, axis=0) | {x}.cumsum(-1) | np.cumprod({x})
    | np.diff({x}) | np.diff({x}, axis=0) | np.trapezoid({x}, dx=s) | np.median({x}) | np.quantile({x}, 0.3)
    | np.percentile({x}, 30, axis=0) | np.ptp({x}) | np.average({x}, axis=0) | np.nansum({x}) | np.nanmax({x})
    | {x}.ravel() | {x}.ravel('F') | {x}.ravel('K') | {x}.ravel('A') | np.ravel({x}, 'F') | {x}.flatten()
    | {x}.flatten('F') | {x}.reshape(-1) | {x}.reshape(-1, order='F') | np.reshape({x}, (2, -1))
    | np.reshape({x}, (2, -1), order='F') | np.reshape({x}, (-1, 2), 'F') | {x}.reshape({x}.shape[::-1])
    | {x}.reshape(-1, 2, order='A') | {x}.T | {x}.transpose() | np.swapaxes({x}, 0, -1) | np.moveaxis({x}, 0, -1)
    | {x}[::-1] | {x}[..., ::-1] | np.flip({x}) | np.flip({x}, 0) | np.rot90({x}) | {x}[None] | {x}[..., None]
    | np.expand_dims({x}, 0) | np.squeeze({x}) | np.atleast_1d({x}) | np.atleast_2d({x})
    | np.broadcast_to({x}, (2, *{x}.shape)) | {x}[0] | {x}[-1] | {x}[1:] | {x}[::2] | {x}[...] | {x}[()]
    | {x}[..., 0] | {x}[0, ...] | {x}[i] | {x}[i, ...] | {x}[[0, 0]] | {x}[{x} > 0] | {x}[:, None]
    | {x}.astype('f4') | {x}.astype('f8') | {x}.astype('f4', order='F') | {x}.astype('c16')
    | {x}.astype({x}.dtype, copy=False) | {x}.astype('f8', order='C') | {x}.copy() | {x}.copy('F')
    | {x}.copy(order='K') | np.copy({x}) | np.copy({x}, order='C') | np.copy({x}, 'F') | np.array({x})
    | np.asarray({x}) | np.asarray({x}, 'f8') | np.asfortranarray({x}) | np.ascontiguousarray({x})
    | np.require({x}, requirements='F') | {x}.real | {x}.imag | np.real({x}) | np.imag({x}) | {x}.conj()
    | np.zeros_like({x}) | np.ones_like({x}) + s | np.full_like({x}, 3) | np.full_like({x}, s)
    | np.empty_like({x}).shape[0] * b | np.zeros({x}.shape) + {x} | np.zeros_like({x}, order='C')
    | np.where({x} > 0, {x}, s) | np.where({x} > 0, s, b) | np.where({x} > 0, {x}, b) | np.clip({x}, 0, 1)
    | np.clip({x}, -s, s) | {x}.clip(0) | {x}.clip(max=s) | np.select([{x} > 1], [{x}], s)
    | np.choose(i % 2, [{x}[0], s]) | np.take({x}, i) | np.take({x}, [0], axis=0) | {x}.take(0)
    | np.compress([True], {x}, axis=0) | np.concatenate([{x}, b]) | np.concatenate([{x}, b], axis=None)
    | np.stack([{x}, b]) | np.stack([{x}, b], -1) | np.hstack([{x}, b]) | np.vstack([{x}, b]) | np.append({x}, s)
    | np.append({x}, b) | np.insert({x}, 0, s) | np.delete({x}, 0) | np.tile({x}, 2) | np.repeat({x}, 2)
    | np.roll({x}, 1) | np.roll({x}, 1, axis=0) | np.pad({x}, 1) | np.pad({x}, 1, constant_values=s)
    | np.triu({x}) | np.tril({x}) | np.diag({x}) | np.trace({x}) | np.diagonal({x}) | np.meshgrid({x}, {x})[0]
    | np.array([{x}, b]) | np.dot({x}, s) | np.dot({x}, b) | {x}.dot({x}.T) | np.outer({x}, s) | np.outer({x}, b)
    | np.inner({x}, b) | np.vdot({x}, b) | np.kron({x}, s) | np.tensordot({x}, s, 0)
    | np.einsum('...i,->...i', {x}, s) | np.einsum('...i,...i', {x}, b) | np.einsum('ij->ji', {x})
    | np.einsum('ij,kj', {x}, b) | np.matmul({x}, {x}.T) | np.cross({x}, b) | np.polyval({x}, s)
    | np.polyval([1, 2], {x}) | np.convolve({x}, {x}) | np.correlate({x}, b) | np.interp(s, [0, 1], [2, 3]) * {x}
    | np.vander({x}) | np.i0({x}) | np.sinc({x}) | np.sort({x}) | np.sort({x}, axis=0) | np.argsort({x})
    | np.argmax({x}) | {x}.argmin(0) | np.unique({x}) | np.searchsorted([0.0, 1.0], {x}) | np.partition({x}, 0)
    | np.nonzero({x})[0] | np.round({x}, 1) | np.round({x} * s) | np.around({x}) | np.fix({x}) | np.gradient({x})
    | np.unwrap({x}) | np.angle({x}) | np.deg2rad({x}) | np.ediff1d({x}) | np.isclose({x}, b)
    | np.linalg.norm({x}) | np.linalg.norm({x}, axis=0) | np.linalg.inv({x}) | np.linalg.det({x})
    | np.linalg.solve({x}, {x}) | np.linalg.eigvalsh({x}) | np.linalg.qr({x})[1] | np.fft.fft({x})
    | np.fft.rfft({x}) | np.split({x}, 1)[0] | np.array_split({x}, 2)[0] | np.apply_along_axis(np.sum, 0, {x})
    | np.vectorize(abs)({x}) | np.ix_(i)[0] * s | np.count_nonzero({x}) | np.size({x}) * {x} | len({x}) * {x}
    | [*{x}][0] | sum([*{x}]) | {x}.tolist() | float({x}.sum().real) * {x} | {x}.sum().item() | np.vecdot({x}, b)
    | {x}.view() | {x}.squeeze() | {x}.swapaxes(0, -1) | {x}.mT | np.matrix_transpose({x})
    | 1 if {x}.sum() > 0 else 2 | {x} if {x}.size > 2 else b | np.all({x} > 0) | np.allclose({x}, b)
    | np.array_equal({x}, b) | H.sum() * {x} | H[0] * {x} | H[:1] + {x} | np.sqrt(H).sum() + {x}"""
)
WRITES = parts(
    """{x} += b | {x} *= s | {x} -= 1 | {x} /= 2 | {x} **= 2 | {x} **= s | {x} //= 2 | {x} %= 3 | {x} @= {x}
    | {x}[0] = s | {x}[0] = b[-1] | {x}[...] = b | {x}[:] = s | {x}[()] = 2 | {x}[1:] = {x}[:-1] | {x}[::-1] = {x}
    | {x}[::2] *= s | {x}[1:] += {x}[:-1] | {x}[i] = s | {x}[i] += 1 | {x}[{x} > 0] = 0 | {x}[{x} > 0] *= s
    | {x}.T[0] = 5 | {x}.ravel()[0] = 7 | {x}.reshape(-1)[:1] = s | {x}.ravel('F')[0] = 7 | {x}.ravel('K')[:1] = 7
    | {x}.fill(s) | {x}.sort() | {x}.sort(axis=0) | {x}.flat[0] = s | {x}.real[...] = 1 | {x}.put([0], s)
    | {x}.partition(0) | np.add({x}, b, out={x}) | np.exp({x}, out={x}) | np.sin({x}, {x})
    | np.multiply({x}, s, out=b) | np.clip({x}, 0, 1, out={x}) | {x}.clip(0, s, out={x}) | np.cumsum(a, out=a)
    | np.cumsum(a, axis=0, out=a) | np.exp({x}, out={x}, where={x} < 1)
    | np.divide({x}, b, out={x}, where=b != 0) | np.sqrt({x}, out=b, where={x} > 0)
    | np.log(b, out={x}, where=b > 0) | np.subtract({x}[1:], {x}[:-1], out={x}[1:]) | np.power({x}, s, out={x})
    | np.sum({x}, axis=0, out={x}[0]) | np.dot({x}, {x}, out=b) | np.matmul({x}, {x}, out={x})
    | np.round({x}, 1, out={x}) | np.negative({x}, out={x}) | np.take({x}, i, out=b[:3])
    | np.mean({x}, axis=0, out=b[0]) | np.maximum({x}, b, out={x}) | np.add.at({x}, i, s) | np.copyto({x}, b)
    | np.copyto({x}, s, where={x} > 0) | np.put({x}, [0], s) | np.place({x}, {x} > 0, [s])
    | np.putmask({x}, {x} > 0, s) | np.fill_diagonal({x}, s)
    | np.put_along_axis({x}, np.argsort({x}, axis=0), s, axis=0) | a[0] = b[0] | b[...] = a | b += 1 | a += a
    | a -= a[::-1] | a *= a.sum() | H[0] = 9 | i += 1 | i[0] = 0 | q = np.asarray({x}); q[0] = 9
    | q = np.asarray({x}); {x}[0] = 8; b = q * 1 | q = {x}[1:]; q += 1 | q = {x}; q *= 2
    | q = {x}.copy(); q[0] = 3 | q = np.ascontiguousarray({x}); {x}[0] = 8; b = q * 1
    | q = {x}[:1]; {x}[0] = 4; b = q + 1 | q = {x}.view(); q[...] = 2 | q = {x}.T; q[0] = s
    | q = np.atleast_1d({x}); q[0] = 2 | q = np.broadcast_to({x}, {x}.shape); b = q + 1
    | q, r = {x}[:1], {x}[-1:]; q += r"""
)
