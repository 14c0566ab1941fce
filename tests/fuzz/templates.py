"""Templates for the statements of random programs: text with placeholders, by kind.

A text without assignment is an expression and gets a name; one that starts with ``!`` is a statement. The placeholders are
filled from left to right (`making.Maker.hole`): f, i, b, c and t select a tensor of floats, integers, booleans, complex
numbers, or any; s, w a float tensor that has the shape of the last selected one, or broadcasts with it; x repeats the last
selected one; d is one of x's dimensions, D several; k a number; n a small integer; p a permutation; ix an index, sh a shape,
m a mask, I indices along a dimension, J indices of x's shape, U a dimension and distinct indices along it; o a tensor that
may be written to, l a leaf, g a float tensor whose node has been accessed: PyTorch crashes if a hook is registered on a view
whose base was written.
"""


def words(text: str) -> list[str]:
    return text.split()


def parts(text: str) -> list[str]:
    return [" ".join(part.split()) if "!" not in part else part.strip() for part in text.split(" | ") if part.strip()]


UNARY = words("""sin cos tanh exp sigmoid relu abs square neg erf sinc expm1 floor round trunc frac sign atan asinh softmax(-1)
 clone() detach() contiguous() exp().log sqrt abs().sqrt abs().log1p reciprocal sgn angle isnan isfinite isinf positive
 logit double float long bool clamp(-0.5,0.5) clamp(min=0.1) clamp_max(0.3) nan_to_num erfc lgamma() digamma
 rsqrt log acos asin atanh cosh sinh tan log2 log10 exp2 deg2rad rad2deg signbit logical_not t() ceil cumsum(0)
 resolve_conj conj_physical""")
FUNCTIONAL = words("""relu gelu silu elu selu softplus logsigmoid leaky_relu hardtanh hardswish softsign tanhshrink
 mish celu relu6 softshrink hardshrink""")
REDUCTIONS = words("sum mean prod amax amin logsumexp var std all any count_nonzero nansum nanmean norm")
KINDS = {
    "arithmetic": """{f} + {w} | {f} - {w} | {f} * {w} | {f} / ({w}.abs() + 0.5) | {f} / {w} | {f} * {k}
        | {k} - {f} | {k} / ({f}.abs() + 0.3) | {f} ** 2 | {f} ** 3 | ({f}.abs() + 0.1) ** {w} | {k} ** {f}
        | {f} % {k} | {f} // {k} | {i} + {i} | {i} * {f} | {i} / 3 | {i} // 2 | {i} % 3 | {t} + {t} | {t} * {t}
        | {t} - {k} | {t} / {t} | torch.maximum({f}, {w}) | torch.minimum({f}, {w}) | torch.fmod({f}, {k})
        | torch.remainder({f}, {k}) | torch.atan2({f}, {w}) | torch.hypot({f}, {w}) | torch.logaddexp({f}, {w})
        | torch.copysign({f}, {w}) | torch.lerp({f}, {s}, {k}) | torch.lerp({f}, {s}, {s})
        | torch.addcmul({f}, {w}, {w}, value={k}) | torch.addcdiv({f}, {w}, {w}.abs() + 1)
        | torch.sub({f}, {w}, alpha={k}) | torch.add({f}, {w}, alpha=2) | torch.where({f} > 0, {x}, {w})
        | torch.where({m}, {f}, {k}) | torch.where({b}, {f}, {w}) | torch.clamp({f}, {w} - 2, {w})
        | torch.clamp({f}, min={w}) | torch.xlogy({f}, {w}.abs() + 0.1) | torch.true_divide({i}, {t})
        | torch.float_power({f}.abs() + 0.1, {k}) | torch.fmax({f}, {w}) | torch.heaviside({f}, {w})
        | torch.rsub({f}, {w}) | torch.pow({i}, 2) | torch.mul({t}, {t})
        | torch.div({f}, {k}, rounding_mode='floor') | torch.dist({f}, {w} + 2) | torch.polar({f}, {s})
        | torch.complex({f}, {s}) | {c} * {f} | {c} * {c}.conj() | {c}.abs() | {c}.real | {c}.imag | {c}.angle()
        | torch.view_as_real({c}) | ({c} * {c}).real | {c} + {w} | {c}.exp() | {c}.conj() @ {x} | {c}.sum({d})
        | torch.gcd({i}, {i}) | {i} & {i} | {b} | ~{b} | {b} & {b} | {b} ^ {b} | {i}.bitwise_left_shift(1)""",
    "comparison": """{f} > {w} | {f} <= {k} | {f} == {w} | {i} == {n} | {i} != {i} | {f} < 0
        | torch.isclose({f}, {s}) | torch.equal({f}, {s}) | torch.logical_and({t}, {t}) | {f}.ne({w}) | {m}
        | torch.allclose({f}, {s}) | {t} >= {t}""",
    "elementwise": " | ".join("{f}." + (u if u.endswith(")") else u + "()") for u in UNARY)
    + " | "
    + " | ".join(f"torch.nn.functional.{u}({{f}})" for u in FUNCTIONAL)
    + """ | {f}.data | torch.special.expit({f}) | torch.special.xlog1py({f}, {w}.abs())
        | torch.special.entr({f}) | torch.special.ndtr({f})""",
    "dtype": """{t}.to(torch.float64) | {f}.to(torch.float32) | {t}.float() | {t}.double() | {t}.long()
        | {t}.bool() | {t}.type_as({t}) | {t}.to({t}) | {f}.to(torch.complex128) | {f}.to(torch.complex64)
        | {i}.int() | torch.zeros_like({t}) | torch.ones_like({f}, dtype=torch.float32) | torch.full_like({t}, 2)
        | torch.arange({n}) | torch.arange({n}, dtype=torch.float64) * {k} | torch.linspace(-1, 1, 3)
        | torch.eye({n}, dtype=torch.float64) | torch.tensor({k}) | torch.tensor({k}, dtype=torch.float64)
        | torch.result_type({t}, {t}) | {f}.new_zeros({n}) | {t}.dtype | {t}.is_floating_point()
        | torch.as_tensor({t}) | torch.scalar_tensor({k})""",
    "reduction": " | ".join(f"{{f}}.{r}({a})" for r in REDUCTIONS for a in ("", "{d}", "dim={d}, keepdim=True", "{D}"))
    + """ | {f}.var({d}, unbiased=False) | {f}.std({D}, correction=0) | {f}.max({d}) | {f}.min({d})
        | {f}.max() | {f}.median() | {f}.argmax({d}) | {f}.argmin() | {i}.sum({d}) | {i}.max()
        | {b}.sum() | {b}.any({d}) | {b}.all() | {i}.prod() | {i}.float().mean({d}) | torch.var_mean({f}, {d})
        | torch.std_mean({f}, {D}) | torch.aminmax({f}, dim={d}) | {f}.norm(1, {d}) | {f}.norm(3)
        | {t}.sum(dtype=torch.float64) | {f}.sum({d}, dtype=torch.float32) | {i}.mean(dtype=torch.float64)
        | torch.linalg.vector_norm({f}, 2, {d}) | torch.quantile({f}, 0.3)
        | torch.quantile({f}, 0.6, dim={d}, keepdim=True) | torch.trapezoid({f}) | {f}.nanmedian()
        | {f}.kthvalue(1, {d})[0] | torch.cov({f}) | {f}.corrcoef() | {f}.softmax({d}) | {f}.log_softmax({d})
        | torch.nn.functional.normalize({f}, dim={d}) | torch.nn.functional.mse_loss({f}, {w})
        | torch.nn.functional.l1_loss({f}, {s}, reduction='none') | torch.nn.functional.smooth_l1_loss({f}, {s})
        | {f}.renorm(2, {d}, 0.5)""",
    "scan": """{f}.cumsum({d}) | {f}.cumprod({d}) | {f}.cummax({d}) | {f}.cummin({d})
        | {f}.logcumsumexp({d}) | {f}.diff(dim={d}) | {i}.cumsum({d}) | torch.cumulative_trapezoid({f})
        | {f}.diff(n=2) | torch.gradient({f}, dim={d})""",
    "view": """{t}.T | {t}.mT | {t}.transpose({d}, {d}) | {t}.permute({p}) | {t}.reshape(-1)
        | {t}.reshape({sh}) | {t}.view({sh}) | {t}.view(-1) | {t}.unsqueeze({d}) | {t}.squeeze() | {t}.squeeze({d})
        | {t}[None] | {t}[..., None] | {t}.expand(2, *{x}.shape) | {t}[None].expand(2, *{x}.shape)[1]
        | {t}.flatten() | {t}.flatten(0, 1) | {t}.movedim({d}, {d}) | {t}.diagonal() | {t}.diagonal(1, {d}, {d})
        | {t}.unbind({d})[0] | {t}.split(2, {d})[-1] | {t}.chunk(2, {d})[0] | {t}.narrow({d}, 0, 1)
        | {t}.select({d}, 0) | {t}.swapaxes({d}, {d}) | {t}.unfold({d}, 2, 1) | {t}.view_as({x})
        | {t}.unflatten({d}, (1, -1)) | {t}.tensor_split(2, {d})[1] | {f}.detach() | {t}[:] | {t}.expand_as({t})
        | {t}.broadcast_to({sh}) | {t}.view({sh}).T | torch.atleast_2d({t}) | {t}.ravel() | {t}.squeeze(({d},))
        | {t}.adjoint() | torch.broadcast_tensors({t}, {t})[0] | torch.unbind({t})""",
    "indexing": "{t}[{ix}] | " * 12
    + """{f}[{f} > 0] | {t}[{m}] | {t}.index_select({d}, {I}) | {t}.gather({d}, {J})
        | {t}.take({I}) | torch.take_along_dim({t}, {J}, {d}) | {f}.masked_select({m}) | {f}.masked_fill({m}, {k})
        | {f}.nonzero() | {f}.argwhere() | torch.where({m}) | {t}[{i}] | {t}[{b}] | {f}.item() | {t}.tolist()
        | {t}[0][..., 0]""",
    "scatter": """{f}.scatter({U}, {s}) | {f}.scatter({U}, {k}) | {f}.scatter_add({d}, {J}, {s})
        | {f}.scatter_reduce({d}, {J}, {s}, {r}) | {f}.scatter_reduce({d}, {J}, {s}, 'mean', include_self=False)
        | {f}.index_add({d}, {I}, {x}.index_select({d}, {I})) | {f}.index_fill({d}, {I}, {k})
        | {f}.index_add(0, torch.tensor([0, 0]), {f}[:1].expand(2, *{x}.shape[1:]))
        | {f}.index_copy(0, torch.tensor([0]), {f}[:1])
        | {f}.index_put((torch.tensor([0, 0]),), {f}, accumulate=True) | {f}.index_put((torch.tensor([0]),), {f})
        | {f}.masked_scatter({m}, {f}) | {f}.select_scatter({f}, {d}, 0) | {f}.slice_scatter({f}, {d}, 0, 1)
        | {f}.diagonal_scatter({f}) | {f}.put(torch.tensor([0]), {f}.reshape(-1)[:1])
        | {f}.index_reduce(0, torch.tensor([0, 0]), {f}[:1].expand(2, *{x}.shape[1:]), {q})""",
    "shaping": """torch.cat([{f}, {s}], {d}) | torch.stack([{f}, {s}], {d}) | torch.cat([{t}, {t}])
        | {t}.flip({d}) | {t}.flip({D}) | {t}.roll(1, {d}) | {t}.roll(-1) | {t}.tile(2)
        | {t}.repeat(2, *[1] * {x}.ndim) | {t}.repeat_interleave(2, {d}) | {t}.repeat_interleave({n}) | {f}.tril()
        | {f}.triu(1) | torch.diag({f}) | torch.diag_embed({f}) | torch.rot90({f}) | torch.hstack([{t}, {t}])
        | torch.vstack([{f}, {s}]) | torch.nn.functional.pad({f}, (1, 0)) | torch.kron({f}, {f})
        | torch.nn.functional.pad({f}, (0, 1), value={k}) | torch.nn.functional.pad({f}, (1, 1), mode='reflect')
        | torch.outer({f}, {f}) | torch.block_diag({f}, {f}) | torch.meshgrid({f}, {f}, indexing='ij')[0]
        | torch.nn.functional.pad({f}, (-1, 1)) | torch.fliplr({f}) | torch.column_stack([{f}, {f}])
        | torch.dstack([{f}, {s}]) | torch.combinations({f}) | torch.cartesian_prod({f}, {f}) | torch.vander({f})
        | torch.tril_indices({n}, {n}) | torch.nn.functional.one_hot({I}, 4)""",
    "sorting": """torch.sort({f}, dim={d}, stable=True)[0] | torch.sort({f}, stable=True, descending=True)
        | {f}.topk(1, {d})[0] | {f}.topk(2)[0] | {f}.argsort(stable=True) | torch.msort({f})
        | {f}.reshape(-1).topk(2, largest=False)[0] | {i}.unique()
        | torch.searchsorted(torch.tensor([-0.5, 0.2]), {f}.float().contiguous()) | {f}.kthvalue(2, {d})[0]
        | torch.bucketize({f}, torch.tensor([-0.3, 0.4])) | {f}.reshape(-1).mode()[0] | torch.bincount({I})
        | torch.isin({i}, {i})""",
    "product": """{f} @ {f} | {f} @ {x}.T | {f} @ {x}.mT | torch.mm({f}, {f}) | torch.matmul({f}, {f})
        | torch.outer({f}, {f}) | torch.inner({f}, {s}) | torch.einsum({e} | torch.tensordot({f}, {s}, dims=1)
        | torch.tensordot({f}, {s}, dims={x}.ndim) | torch.einsum('...i->...', {f})
        | torch.einsum('ij,kj->ik', {f}, {f}) | torch.einsum('ii->i', {f}) | torch.einsum('ij,ij->', {f}, {s})
        | torch.einsum('...ij->...ji', {f}) | torch.einsum('i,j->ij', {f}, {f})
        | torch.einsum('bij,bjk->bik', {f}, {f}) | torch.einsum('ij,j', {f}, {f})
        | torch.addmm({f}, {f}, {f}.T, beta={k}) | torch.bmm({f}, {f}) | torch.mv({f}, {f}) | torch.dot({f}, {s})
        | torch.nn.functional.linear({f}, {f}) | torch.linalg.multi_dot([{f}, {f}.T, {f}])
        | torch.linalg.matrix_power({f}, {n}) | torch.baddbmm({f}, {f}, {f}) | torch.chain_matmul({f}, {f})
        | torch.cross({f}, {s}, dim={d}) | torch.cdist({f}, {f})
        | torch.nn.functional.cosine_similarity({f}, {s}, dim={d}) | torch.vecdot({f}, {s})
        | torch.nn.functional.bilinear({f}, {s}, {f})""",
    "linalg": """torch.linalg.inv({f} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype))
        | torch.linalg.det({f}) | torch.linalg.slogdet({f})
        | torch.linalg.solve({f} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype), {x})
        | torch.linalg.cholesky({f} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype)) | torch.linalg.norm({f})
        | torch.linalg.matrix_norm({f}) | torch.linalg.eigvalsh({f} @ {x}.mT) | torch.linalg.svdvals({f})
        | torch.trace({f}) | torch.logdet({f} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype))
        | torch.linalg.pinv({f}) | torch.linalg.matrix_exp({f}.tanh()) | torch.linalg.qr({f})[1].abs()
        | torch.linalg.vander({f}) | torch.fft.rfft({f}).abs() | torch.fft.ifft({f}).real
        | torch.fft.fft({f}, dim={d}) | torch.nn.functional.conv1d({f}, {f})
        | torch.nn.functional.max_pool1d({f}, 2, 1) | torch.nn.functional.avg_pool1d({f}, 2)
        | torch.nn.functional.layer_norm({f}, {x}.shape[-1:])""",
}
INPLACE = {
    "in-place": """!{o}.mul_({w}) | !{o}.add_({w}) | !{o} += {w} | !{o} *= {k} | !{o} -= {w} | !{o} /= 2
        | !{o}.sub_({w}, alpha={k}) | !{o}.div_({k}) | !{o}.zero_() | !{o}.fill_({k}) | !{o}.copy_({w})
        | !{o}.clamp_(-0.5, 0.5) | !{o}.sin_() | !{o}.tanh_() | !{o}.relu_() | !{o}.neg_() | !{o}.exp_()
        | !{o}.square_() | !{o}.sigmoid_() | !{o}.pow_(2) | !{o}.addcmul_({w}, {w}) | !{o}.abs_()
        | !{o}.lerp_({s}, 0.3) | !{o}.masked_fill_({m}, {k}) | !{o}.scatter_({U}, {s})
        | !{o}.scatter_add_({d}, {J}, {s}) | !{o}.index_add_(0, torch.tensor([0]), {s}[:1])
        | !{o}.index_fill_({d}, {I}, {k}) | !{o}.cumsum_({d}) | !{o}.t_() | !{o}.unsqueeze_(0) | !{o}.squeeze_()
        | !{o}.transpose_({d}, {d}) | !{o}.fill_diagonal_({k}) | !{o}.tril_()
        | !{o}.add_({x}.clone()) | !{o}.copy_({t}) | !{o}.add_({t}) | !{o}.mul_({t}) | !{o}.addmm_({f}, {f})
        | !{o}.masked_scatter_({m}, {s}.clone()) | !{o}.index_put_((torch.tensor([0]),), {w}[:1].clone())
        | !{o}.floor_() | !{o}.remainder_(0.7)""",
    "writing parts": "!{o}[{ix}] = {k} | !{o}[{ix}] = {w} | !{o}[{ix}] += {k} | !{o}[{ix}] *= {w} | " * 3
    + """!{o}[0].mul_({k}) | !{o}.T.add_({k}) | !{o}.view(-1)[1:].mul_({k})
        | !{o}.diagonal().add_({k}) | !{o}[..., ::2].sin_() | !{o}[{m}] = {k} | !{o}[{m}] *= {k}
        | !{o}.transpose({d}, {d})[0] = {k} | !{o}[..., :1].copy_({w}[..., :1])
        | !{o}.select({d}, 0).add_({w}.select({d}, 0)) | !{o}.narrow({d}, 0, 1).zero_() | !{o}[0] = {x}[-1].clone()
        | !{o}.unsqueeze(0).mul_(2) | !{o}[:1][..., 0].neg_()
        | !{o}[:, 0] += {w}[:, 0] | !{o}.squeeze().add_({k})""",
}
RECORD = {
    "modes": """!with torch.no_grad():\n    {v} = {f} * {w} | !with torch.no_grad():\n    {o}.mul_({k})
        | {f}.detach() | {f}.detach() * {f} | {f}.clone() | {f}.detach().requires_grad_() | {f}.requires_grad
        | {t}.is_leaf | !with torch.no_grad():\n    {l}.sub_({k}) | !with torch.enable_grad():\n    {v} = {f}.sin()
        | !{o}.detach_() | !{f}.retain_grad()
        | {t}.requires_grad_(False) | !with torch.set_grad_enabled(False):\n    {v} = {f}.exp()
        | {f}.detach().mul_({k})
        | {f}.requires_grad_() | !with torch.inference_mode():\n    {v} = {f} * 2
        | {f}.detach().numpy().sum().item() | len({t}) | {t}.numel() | {t}.shape | {t}.ndim | {t}.element_size()""",
    "hooks": """!{g}.register_hook(lambda g: g * {k})
        | !{g}.register_hook(lambda g: log.append(g.detach().clone()))
        | !{g}.register_hook(lambda g: g.clamp(-1, 1)) | !{f}.retain_grad()
        | !{f}.grad_fn.register_prehook(lambda gs: tuple(g * 2 if g is not None else g for g in gs))
        | !{f}.grad_fn.register_hook(lambda ins, outs: log.append(sum(g.detach().sum() for g in outs if g is not None)))
        | !{g}.register_hook(lambda g: None)
        | !{l}.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
        | !torch.autograd.graph.register_multi_grad_hook(({f}, {f}), lambda gs: log.extend(g.clone() for g in gs if g is not None))""",
    "backward": """!{f}.sum().backward(retain_graph=True)
        | !{f}.backward(torch.ones_like({x}), retain_graph=True)
        | !{f}.sin().sum().backward(inputs=[{l}], retain_graph=True) | {l}.grad | !{l}.grad = None
        | torch.autograd.grad({f}.sum(), {l}, retain_graph=True, allow_unused=True)[0]
        | torch.autograd.grad({f}.sin().sum(), {l}, create_graph=True, allow_unused=True)[0]
        | torch.autograd.grad(({f} * {x}).sum(), {f}, create_graph=True, allow_unused=True)[0]
        | torch.autograd.grad({f}, {l}, torch.cos({x}), create_graph=True, materialize_grads=True)[0]
        | torch.autograd.grad({f}.square().sum(), [{l}, {f}], create_graph=True, allow_unused=True)[0]
        | !{f}.sum().backward() | !({f} * {w}).sum().backward(create_graph=True)
        | torch.autograd.grad({f}.reshape(-1), {l}, torch.eye({x}.numel(), dtype={x}.dtype),
            is_grads_batched=True, allow_unused=True, retain_graph=True)[0]
        | torch.autograd.grad(torch.autograd.grad({f}.sin().sum(), {l}, create_graph=True)[0].square().sum(), {l},
            create_graph=True, allow_unused=True)[0]
        | !{f}.norm().backward(retain_graph=True)""",
}
TEMPLATES = {kind: parts(text) for kind, text in (KINDS | INPLACE | RECORD).items()}
WEIGHTS = {
    "arithmetic": 9, "comparison": 1, "elementwise": 5, "dtype": 2, "reduction": 5, "scan": 2, "view": 7, "indexing": 6,
    "scatter": 3, "shaping": 4, "sorting": 1.5, "product": 4, "linalg": 1.5, "in-place": 6, "writing parts": 5,
    "modes": 3, "hooks": 2, "backward": 4, "transformation": 4,
}  # fmt: skip
EINSUMS = parts("""'ij->ji', {f}) | 'ij->', {f}) | 'i,i->i', {f}, {s}) | '...i,...i->...', {f}, {s})
        | 'ij,jk->ik', {f}, {f}) | 'ijk->kj', {f}) | 'a,b,c->abc', {f}, {f}, {f}) | '...,...->...', {f}, {w})
        | 'ij,ik->jk', {f}, {f})""")
