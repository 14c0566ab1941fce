"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.arrays.types import ShapeLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.tape.tensor import Tensor
from collections.abc import Callable
def adaptive_avg_pool1d(input: Tensor, output_size: object) -> Tensor:
    """The means of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size."""
def adaptive_avg_pool2d(input: Tensor, output_size: object) -> Tensor:
    """As :func:`adaptive_avg_pool1d`, over the last two axes; None keeps a size."""
def adaptive_avg_pool3d(input: Tensor, output_size: object) -> Tensor:
    """As :func:`adaptive_avg_pool1d`, over the last three axes; None keeps a size."""
def adaptive_max_pool1d(input: Tensor, output_size: object, return_indices: bool = ...) -> Any:
    """The largest elements of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size."""
def adaptive_max_pool2d(input: Tensor, output_size: object, return_indices: bool = ...) -> Any:
    """As :func:`adaptive_max_pool1d`, over the last two axes."""
def adaptive_max_pool3d(input: Tensor, output_size: object, return_indices: bool = ...) -> Any:
    """As :func:`adaptive_max_pool1d`, over the last three axes."""
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = ...) -> Tensor:
    """The grid for :func:`grid_sample` that maps every place of an image through a matrix."""
def alpha_dropout(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """Elements set to selu's lower limit with probability p; then scaled so that mean 0 and variance 1 stay."""
def avg_pool1d(input: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., ceil_mode: bool = ..., count_include_pad: bool = ...) -> Tensor:
    """The mean of every window along the last axis."""
def avg_pool2d(input: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., ceil_mode: bool = ..., count_include_pad: bool = ..., divisor_override: int | None = ...) -> Tensor:
    """As :func:`avg_pool1d`, over the last two axes; ``divisor_override`` divides the sums instead of their counts."""
def avg_pool3d(input: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., ceil_mode: bool = ..., count_include_pad: bool = ..., divisor_override: int | None = ...) -> Tensor:
    """As :func:`avg_pool2d`, over the last three axes."""
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = ..., bias: Tensor | None = ..., training: bool = ..., momentum: float = ..., eps: float = ...) -> Tensor:
    """Every channel (axis 1) minus its mean, over its standard deviation; then times weight plus bias."""
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """Σᵢⱼ input1ᵢ·weightₒᵢⱼ·input2ⱼ + bias, for inputs (..., in1) and (..., in2) and a weight (out, in1, in2)."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of −y·log(x) − (1 − y)·log(1 − x), for probabilities x; logarithms are limited to −100 from below."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: object = ..., reduce: object = ..., reduction: str = ..., pos_weight: Tensor | None = ...) -> Tensor:
    """The binary cross entropy of sigmoid(input), without overflow. ``pos_weight`` multiplies the positive part."""
def celu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor:
    """x where it is positive, else alpha·(exp(x/alpha) − 1)."""
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels (axis 1) of the groups in turns: the first of each group, then the second of each."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: int = ...) -> Tensor:
    """A convolution along one axis (strictly, a correlation: the weight is not flipped)."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: int = ...) -> Tensor:
    """As :func:`conv1d`, over the last two axes."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: int = ...) -> Tensor:
    """As :func:`conv1d`, over the last three axes."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: int = ..., dilation: object = ...) -> Tensor:
    """The transpose of :func:`conv1d` in its input: every element spreads the weight over a window."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: int = ..., dilation: object = ...) -> Tensor:
    """As :func:`conv_transpose1d`, over the last two axes."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: int = ..., dilation: object = ...) -> Tensor:
    """As :func:`conv_transpose1d`, over the last three axes."""
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of 1 − cos where the target is 1, and of max(0, cos − margin) where it is −1."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = ..., eps: float = ...) -> Tensor:
    """The cosine of the angle between vectors along ``dim``; norms count as at least ``eps``."""
def cross_entropy(input: Tensor, target: Tensor, weight: TensorLike | None = ..., size_average: object = ..., ignore_index: int = ..., reduce: object = ..., reduction: str = ..., label_smoothing: float = ...) -> Tensor:
    """The cross entropy of the softmax of scores (classes,), (n, classes) or (n, classes, d...)."""
def dropout(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """Each element set to 0 with probability p, the others divided by 1 − p; the input itself if not ``training``."""
def dropout1d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """Each channel of (n, channels, length), or without n, set to 0 with probability p, the others divided by 1 − p."""
def dropout2d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """Each channel of (n, channels, height, width) set to 0 with probability p, the others divided by 1 − p."""
def dropout3d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """Each channel of (n, channels, depth, height, width) set to 0 with probability p, the others divided by 1 − p."""
def elu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor:
    """x where it is positive, else alpha·(exp(x) − 1)."""
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = ..., max_norm: float | None = ..., norm_type: float = ..., scale_grad_by_freq: bool = ..., sparse: bool = ...) -> Tensor:
    """The rows of ``weight`` (n, width) that the indices name, of shape (*input.shape, width)."""
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = ..., max_norm: float | None = ..., norm_type: float = ..., scale_grad_by_freq: bool = ..., mode: str = ..., sparse: bool = ..., per_sample_weights: Tensor | None = ..., include_last_offset: bool = ..., padding_idx: int | None = ...) -> Tensor:
    """The sum, mean or maximum of the rows of ``weight`` (n, width) that each bag of indices names."""
def feature_alpha_dropout(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """As :func:`alpha_dropout`, for whole channels (axis 1)."""
def fold(input: Tensor, output_size: ShapeLike, kernel_size: ShapeLike, dilation: ShapeLike = ..., padding: ShapeLike = ..., stride: ShapeLike = ...) -> Tensor:
    """The transpose of :func:`unfold`: columns (n, channels·kernel, blocks), each added where its block was."""
def gaussian_nll_loss(input: Tensor, target: Tensor, var: TensorLike, full: bool = ..., eps: float = ..., reduction: str = ...) -> Tensor:
    """The mean of (log(var) + (input − target)²/var) / 2, where var is at least ``eps``; ``full`` adds log(2π)/2."""
def gelu(input: Tensor, approximate: str = ...) -> Tensor:
    """x·Φ(x) with the normal distribution function Φ; ``approximate="tanh"`` for the approximation with tanh."""
def glu(input: Tensor, dim: int = ...) -> Tensor:
    """The first half along ``dim`` times the sigmoid of the second half."""
def grid_sample(input: Tensor, grid: Tensor, mode: str = ..., padding_mode: str = ..., align_corners: bool | None = ...) -> Tensor:
    """The input at the places that a grid names."""
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: float = ...) -> Tensor:
    """Groups of channels minus their mean, over their standard deviation; then times weight plus bias per channel."""
def gumbel_softmax(logits: Tensor, tau: float = ..., hard: bool = ..., eps: float = ..., dim: int = ...) -> Tensor:
    """A random near-one-hot sample with the probabilities softmax(logits) (Jang and others, 2017)."""
def hardshrink(input: Tensor, lambd: float = ...) -> Tensor:
    """x where |x| is over lambd, else 0."""
def hardsigmoid(input: Tensor, inplace: bool = ...) -> Tensor:
    """x/6 + 1/2, limited to [0, 1]."""
def hardswish(input: Tensor, inplace: bool = ...) -> Tensor:
    """x·hardsigmoid(x)."""
def hardtanh(input: Tensor, min_val: float = ..., max_val: float = ..., inplace: bool = ...) -> Tensor:
    """x limited to [min_val, max_val]. At a bound the derivative is 0."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of the input where the target is 1, and of max(0, margin − input) where it is −1."""
def huber_loss(input: Tensor, target: Tensor, reduction: str = ..., delta: float = ..., weight: Tensor | None = ...) -> Tensor:
    """The mean of d²/2 where d = |input − target| is under delta, and of delta·(d − delta/2) beyond."""
def instance_norm(input: Tensor, running_mean: Tensor | None = ..., running_var: Tensor | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., use_input_stats: bool = ..., momentum: float = ..., eps: float = ...) -> Tensor:
    """As :func:`batch_norm`, with each example's own mean and variance over the axes after the channels."""
def interpolate(input: Tensor, size: object = ..., scale_factor: object = ..., mode: str = ..., align_corners: bool | None = ..., recompute_scale_factor: bool | None = ..., antialias: bool = ...) -> Tensor:
    """The input at another resolution."""
def kl_div(input: Tensor, target: Tensor, size_average: object = ..., reduce: object = ..., reduction: str = ..., log_target: bool = ...) -> Tensor:
    """The Kullback–Leibler divergence target·(log(target) − input), for log-probabilities ``input``."""
def l1_loss(input: Tensor, target: Tensor, size_average: object = ..., reduce: bool | None = ..., reduction: str = ..., weight: Tensor | None = ...) -> Tensor:
    """The mean of |input − target|."""
def layer_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: float = ...) -> Tensor:
    """(x − mean) / √(variance + eps) over the last axes, of ``normalized_shape``; then times weight plus bias."""
def leaky_relu(input: Tensor, negative_slope: float = ..., inplace: bool = ...) -> Tensor:
    """x where it is positive, else negative_slope·x."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """input @ weightᵀ + bias."""
def local_response_norm(input: Tensor, size: int, alpha: float = ..., beta: float = ..., k: float = ...) -> Tensor:
    """x / (k + alpha·mean(x² of ``size`` neighbouring channels))^beta; outside the channels there are zeros."""
def log_softmax(input: Tensor, dim: int | None = ..., _stacklevel: int = ..., dtype: DTypeLike = ...) -> Tensor:
    """The logarithm of the softmax along ``dim``, without overflow."""
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: object, stride: object = ..., ceil_mode: bool = ...) -> Tensor:
    """(Σ xᵖ)^(1/p) over every window along the last axis; for p = ±∞ the largest (or least) element."""
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: object, stride: object = ..., ceil_mode: bool = ...) -> Tensor:
    """As :func:`lp_pool1d`, over the last two axes."""
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: object, stride: object = ..., ceil_mode: bool = ...) -> Tensor:
    """As :func:`lp_pool1d`, over the last three axes."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of max(0, −target·(input1 − input2) + margin): the target 1 ranks input1 higher, −1 input2."""
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any:
    """The largest element of every window along the last axis. The first of several gets the gradient."""
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last two axes."""
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last three axes."""
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., output_size: Any[int] | None = ...) -> Tensor:
    """What :func:`max_pool1d` kept, back in its places, among zeros."""
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., output_size: Any[int] | None = ...) -> Tensor:
    """As :func:`max_unpool1d`, over the last two axes."""
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., output_size: Any[int] | None = ...) -> Tensor:
    """As :func:`max_unpool1d`, over the last three axes."""
def mish(input: Tensor, inplace: bool = ...) -> Tensor:
    """x·tanh(softplus(x))."""
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = ..., reduce: object = ..., reduction: str = ..., weight: Tensor | None = ...) -> Tensor:
    """The mean square of input − target."""
def multi_margin_loss(input: Tensor, target: Tensor, p: int = ..., margin: float = ..., weight: Tensor | None = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean over the other classes of max(0, margin − input[target] + input)ᵖ."""
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean over the classes of max(0, 1 − (input[y] − input)), summed over all labels y, for all non-labels."""
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The binary cross entropy of sigmoid(input), as a mean over the classes in the last axis."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = ..., size_average: object = ..., ignore_index: int = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The negative log-likelihood −input[target], for log-probabilities (n, classes, d...) and classes (n, d...)."""
def normalize(input: Tensor, p: float = ..., dim: int = ..., eps: float = ..., out: object = ...) -> Tensor:
    """Vectors along ``dim`` over their p-norm (at least ``eps``)."""
def one_hot(tensor: Tensor, num_classes: int = ...) -> Tensor:
    """Integers as rows of zeros with a 1, of shape (*tensor.shape, num_classes); by default all up to the largest."""
def pad(input: TensorLike, pad: Any, mode: str = ..., value: TensorLike | None = ...) -> Tensor:
    """Pad the last axes: with ``(left, right)`` of the last axis, then of the one before, and so on."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = ..., eps: float = ..., keepdim: bool = ...) -> Tensor:
    """The p-norm of x1 − x2 + eps along the last axis."""
def pdist(input: Tensor, p: float = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows: (0, 1), (0, 2) …, (1, 2) …."""
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: (..., c·r², h, w) becomes (..., c, h·r, w·r)."""
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (..., c, h·r, w·r) becomes (..., c·r², h, w)."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = ..., full: bool = ..., size_average: object = ..., eps: float = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of exp(input) − target·input; without ``log_input`` of input − target·log(input + eps)."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else weight·x, with one weight for all or for each channel (axis 1)."""
def relu(input: Tensor, inplace: bool = ...) -> Tensor:
    """max(x, 0). The derivative at 0 is 0."""
def relu6(input: Tensor, inplace: bool = ...) -> Tensor:
    """x limited to [0, 6]."""
def rms_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., eps: float | None = ...) -> Tensor:
    """x / √(mean(x²) + eps) over the last axes; then times weight. ``eps`` is the dtype's by default."""
def rrelu(input: Tensor, lower: float = ..., upper: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor:
    """x where it is positive, else x times a random slope between the two bounds; their mean if not ``training``."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = ..., dropout_p: float = ..., is_causal: bool = ..., scale: float | None = ..., enable_gqa: bool = ...) -> Tensor:
    """softmax(query @ keyᵀ·scale + mask) @ value."""
def selu(input: Tensor, inplace: bool = ...) -> Tensor:
    """The scaled elu that keeps mean 0 and variance 1 (Klambauer and others, 2017)."""
def sigmoid(input: Any, *, out: Any = ...) -> Any:
    """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
def silu(input: Tensor, inplace: bool = ...) -> Tensor:
    """x·sigmoid(x), also known as swish."""
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: object = ..., reduce: object = ..., reduction: str = ..., beta: float = ...) -> Tensor:
    """The mean of d²/(2·beta) where d = |input − target| is under beta, and of d − beta/2 beyond."""
def soft_margin_loss(input: Tensor, target: Tensor, size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of log(1 + exp(−target·input)), for targets 1 and −1."""
def softmax(input: Tensor, dim: int | None = ..., _stacklevel: int = ..., dtype: DTypeLike = ...) -> Tensor:
    """exp(x) / Σ exp(x) along ``dim``."""
def softmin(input: Tensor, dim: int | None = ..., _stacklevel: int = ..., dtype: DTypeLike = ...) -> Tensor:
    """The softmax of −x."""
def softplus(input: Tensor, beta: float = ..., threshold: float = ...) -> Tensor:
    """log(1 + exp(beta·x)) / beta; x itself where beta·x is over the threshold."""
def softshrink(input: Tensor, lambd: float = ...) -> Tensor:
    """x moved towards 0 by lambd."""
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
def tanh(input: Any, *, out: Any = ...) -> Any:
    """Return the hyperbolic tangent."""
def tanhshrink(input: Tensor) -> Tensor:
    """x − tanh(x)."""
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = ...) -> Tensor:
    """x where it is over the threshold, else ``value``."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = ..., p: float = ..., eps: float = ..., swap: bool = ..., size_average: object = ..., reduce: object = ..., reduction: str = ...) -> Tensor:
    """The mean of max(0, d(anchor, positive) − d(anchor, negative) + margin), with d the p-norm of the difference."""
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = ..., margin: float = ..., swap: bool = ..., reduction: str = ...) -> Tensor:
    """As :func:`triplet_margin_loss`, with any distance; by default the 2-norm of the difference."""
def unfold(input: Tensor, kernel_size: ShapeLike, dilation: ShapeLike = ..., padding: ShapeLike = ..., stride: ShapeLike = ...) -> Tensor:
    """The blocks of images (n, channels, height, width) as columns: (n, channels·kernel, blocks)."""
def upsample(input: Tensor, size: object = ..., scale_factor: object = ..., mode: str = ..., align_corners: bool | None = ...) -> Tensor:
    """As :func:`interpolate`, which replaces it."""
def upsample_bilinear(input: Tensor, size: object = ..., scale_factor: object = ...) -> Tensor:
    """As :func:`interpolate` with the mode "bilinear" and ``align_corners=True``, which replaces it."""
def upsample_nearest(input: Tensor, size: object = ..., scale_factor: object = ...) -> Tensor:
    """As :func:`interpolate` with the mode "nearest", which replaces it."""
