"""The table of messages that need no code. ``table.py`` parses it and documents the format."""

TABLE = """
# -- making tensors
number_overflows(number, dtype) -> RuntimeError
    value cannot be converted to type {dtype} without overflow: {dtype} cannot represent {number!r}. Choose a wider dtype,
    or convert afterwards: tensor(data).to(dtype) wraps around.
complex_number(array, dtype) -> TypeError
    must be real number, not complex: {dtype} cannot represent {array:number}. Omit dtype, or take .real of the data.

# -- calling operations
bound_type(function, argument, value) -> TypeError
    {function}(): argument '{argument}' must be Number or Tensor, not {value:type}
not_an_int(function, argument, value) -> TypeError
    {function}(): argument '{argument}' must be int, not {value:type}
reduction_name(given) -> ValueError
    {given} is not a valid value for reduction: use 'mean', 'sum' or 'none'
zero_division(function) -> RuntimeError
    ZeroDivisionError: {function} of integers by zero is undefined. Divide floats (x.float()) to get inf or nan.
reshape_size(function, shape, target, numel) -> RuntimeError
    shape '{target:list}' is invalid for input of size {numel}: {function} from {shape:tuple}
no_dimensions(dim) -> IndexError
    Dimension specified as {dim} but tensor has no dimensions
repeated_dim(dim) -> RuntimeError
    dim {dim} appears multiple times in the list of dims
same_diagonal_axes(dim1, dim2) -> RuntimeError
    diagonal dimensions cannot be identical {dim1}, {dim2}
padding_index() -> AssertionError
    Padding_idx must be within num_embeddings
quantile_range() -> ValueError
    Quantiles must be in the range [0, 1]
complex_quantiles() -> TypeError
    a must be an array of real numbers
forbidden_cast(source, target, casting) -> TypeError
    Cannot cast array data from {source!r} to {target!r} according to the rule {casting!r}
numpy_keyword(name, keyword) -> TypeError
    np.{name} on tensors does not take {keyword!r}
escaped_to_numpy(kind) -> TypeError
    a value inside a transformation ({kind}) cannot be converted to a plain array: code that needs concrete numbers
    (np.asarray, .item(), float()) cannot run on it. Return the value from the function and convert it outside.
needs_scipy(function) -> ImportError
    {function} needs SciPy, which is not installed: pip install chainrule[scipy]
dynamic_shape(what, instead) -> RuntimeError
    vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {what}{here}:
    the size of the result could differ between examples. {instead}

# -- convolutions, pooling and resampling
spatial_rank(function, x, axes) -> RuntimeError
    Expected {axes:+1}D (unbatched) or {axes:+2}D (batched) input to {function}, but got input of size: {x:sizes}. The
    axes are (batch,) channels, and {axes} spatial axes
window_numbers(function, argument, value, axes) -> RuntimeError
    {function}: {argument} must be an int or a tuple of {axes} ints, one for each axis; got {value!r}
convolution_groups(function, weight, groups) -> RuntimeError
    Given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by it, but got weight
    of size {weight:sizes} instead ({function})
convolution_bias(function, weight, bias, channels) -> RuntimeError
    Given weight of size {weight:sizes}, expected bias to be 1-dimensional with {channels} elements, but got bias of
    size {bias:sizes} instead ({function} adds one number per output channel)
too_small_output(function, x, counts) -> RuntimeError
    Given input size: {x:shape}. Calculated output size: {counts:tuple}. Output size is too small: no window of
    {function} fits
pool_input(function, x, axes) -> RuntimeError
    {function}: Expected {axes:+1}D or {axes:+2}D (batch mode) tensor with optional 0 dim batch size for input, but
    got: {x:sizes}. The non-batch dimensions of the input must have positive length
kernel_too_large(padded, kernel) -> RuntimeError
    Calculated padded input size per channel: ({padded:by}). Kernel size: ({kernel:by}). Kernel size can't be greater
    than actual input size; padding enlarges the input

# -- linear algebra and Fourier transforms
matrix_rank_low(function, x, name='A') -> LinAlgError
    {function}: The input tensor {name} must have at least 2 dimensions. It has shape {x:shape}: the last two axes are
    the rows and columns of a matrix, and all axes before them are batch axes.
matrix_dtypes(function, a, b) -> RuntimeError
    {function}: Expected A and B to have the same dtype, but found A of type {a.dtype:word} and B of type
    {b.dtype:word} instead: convert one with .to({a.dtype}) or .to({b.dtype})
ill_defined_phase(function, vectors) -> RuntimeError
    {function}_backward: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. The
    specified loss function depends on this quantity, so it is ill-defined. Use a loss that is invariant under a change
    of phase, such as a function of absolute values.
svd_extra_columns() -> RuntimeError
    svd_backward: the loss depends on the columns of U (or rows of Vh) that full_matrices=True adds. The matrix does not
    determine them, so they have no gradient: use full_matrices=False, or only the first min(m, n) columns.
fft_half(function) -> RuntimeError
    Unsupported dtype Half: {function} computes in single and double precision. Use .float()
matrix_not_square(function, x) -> LinAlgError
    {function}: A must be batches of square matrices, but they are {x:m by n} matrices
matrix_shapes(function, a, b, left=True) -> LinAlgError
    {function}: Incompatible shapes of A and B for the equation {left:?AX = B|XA = B} ({a:mxn} and {b:mxn})
fft_out(function, out, real) -> RuntimeError
    {function} expects a {real:?floating point|complex} output tensor, but got {out.dtype:word}

# -- chainrule.Array, the NumPy-style API of tensors
array_output_shape(op, shape, result) -> ValueError
    non-broadcastable output operand with shape {shape} doesn't match the broadcast shape {result}: {op} cannot change the
    shape of its array; write x = x + ... to get a larger array
array_output_dtype(op, dtype, result) -> TypeError
    Cannot cast ufunc output from {result!r} to {dtype!r} with casting rule 'same_kind' ({op}): convert first, x =
    x.astype({result.name!r}), or write x = x + ...
array_to_number(what, instead) -> TypeError
    {what} of an array that carries a derivative{program} would silently drop the derivative.
    | {instead}NumPy's functions keep it: write np.sin(x) instead of math.sin(x). A plain array cannot store it: instead of
    `buf = np.zeros(n); buf[i] = x`, make the buffer with np.zeros_like(x), or collect the parts and np.stack() them.
    Comparisons need no change (`if x > 0:`). For a plain number: float(x.detach()).
array_leaf_in_place(op) -> RuntimeError
    a leaf that requires grad is written in place: {op}{here} would overwrite the values whose gradient you asked for.
    | Write y = x + ... instead of x += ..., or start with y = x.copy().
array_read_only(op) -> ValueError
    assignment destination is read-only: {op}{here} would write into a read-only array, or into a view that NumPy makes
    read-only.
    | Write into a copy: y = x.copy().

# -- tensors and their flags
non_leaf_flag() -> RuntimeError
    you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph
    that doesn't require differentiation use var_no_grad = var.detach().
assigned_grad_shape(tensor, grad) -> RuntimeError
    attempting to assign a gradient of size '{grad:sizes}' to a tensor of size '{tensor:sizes}'. Please ensure that the
    gradient and the tensor are the same size
assigned_grad_dtype(tensor, grad) -> RuntimeError
    attempting to assign a gradient with dtype '{grad.dtype}' to a tensor with grad_dtype '{tensor.dtype}': the
    gradient must have its tensor's dtype, gradient.to(tensor.dtype)
deepcopy_non_leaf(tensor) -> RuntimeError
    Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, inside
    transformations. This tensor is the output of {tensor.grad_fn:node}: use t.clone() to stay in the graph.
copy_function(node) -> RuntimeError
    Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those
    whose graph can be copied. The graph of this tensor contains {node:node}, a custom Function, whose context may hold
    any object. Deepcopy t.detach(), or use t.clone() to stay in the graph.
copy_packed(node) -> RuntimeError
    Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those
    whose graph can be copied. The graph of this tensor contains {node:node}, whose saved values were packed by
    saved_tensors_hooks. Deepcopy t.detach(), or use t.clone() to stay in the graph.
copy_inside(node) -> RuntimeError
    Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those
    whose graph can be copied. The graph of this tensor contains {node:node}, which was recorded inside a transformation.
    Deepcopy t.detach(), or use t.clone() to stay in the graph.
copy_overwritten(node, written) -> RuntimeError
    Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those
    whose graph can be copied. The graph of this tensor contains {node:node}, and one of the values it needs has been
    modified by an inplace operation ({written:last}). Deepcopy t.detach(), or use t.clone() to stay in the graph.
pickle_non_leaf(tensor) -> RuntimeError
    Can't pickle a tensor that is the output of {tensor.grad_fn:node}: its graph would be lost. Pickle t.detach(), and
    compute it again after loading if you need gradients. (copy.deepcopy copies the graph, too.)
inference_in_place(op) -> RuntimeError
    Inplace update to inference tensor outside InferenceMode is not allowed.
    | {op} would overwrite a tensor that was made in inference_mode: modify a clone(), or write inside inference_mode.
inference_saved(function) -> RuntimeError
    Inference tensors cannot be saved for backward.
    | {function} would save an operand that was made in inference_mode: use its clone(), or make it inside no_grad
    instead.
inference_requires_grad() -> RuntimeError
    Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.
    | The tensor was made in inference_mode: call requires_grad_() on its clone().
inference_version() -> RuntimeError
    Inference tensors do not track version counter.
detach_view() -> RuntimeError
    Can't detach views in-place. Use detach() instead.
    | A view shares its history with its base; detach() returns a tensor that shares the memory and has no history.
data_dtype(dtype) -> RuntimeError
    data set to a tensor that requires gradients must be floating point or complex dtype
    | The new data is {dtype}: convert it with .float() first.
data_of_value(old, new) -> RuntimeError
    x.data = y: a transformation differentiates x, whose derivative has shape {old:shape} and dtype {old.dtype}; the new
    data has shape {new:shape} and dtype {new.dtype}. Make a new tensor: x = y.detach().
no_resize(name, tensor, shape) -> RuntimeError
    {name}(): NumPy owns the memory of a tensor, which cannot be resized while views share it: shape {tensor:shape} has
    another number of elements than {shape}. Assign `x.data = new`, or make a new tensor.
pickle_node(node) -> TypeError
    cannot pickle {node:quoted node} object: graphs cannot be pickled; copy.deepcopy of a tensor copies its graph

variable_data(data) -> TypeError
    Variable data has to be a tensor, but got {data:type}

# -- writing in place
shuffled_in_place(shape) -> TypeError
    shuffle(){here} swaps x[i] and x[j] one after the other. Rows of a tensor or Array of shape {shape:tuple} are views of its
    memory, so some rows would be lost and others duplicated.
    | Write x = x[rng.permutation(len(x))], or x = x[torch.randperm(len(x))]: gradients flow through it.
expanded_in_place(op) -> RuntimeError
    unsupported operation: more than one element of the written-to tensor refers to a single memory location. {op} got
    an expanded tensor, or overlapping windows: clone() it first.
read_only(op) -> RuntimeError
    {op}: the array behind this tensor is read-only; clone() the tensor first
unmapped_in_place(op) -> RuntimeError
    vmap: {op} is not possible: the written value is mapped over, but its target is shared by all examples
    (in_dims=None). Map over the target, too, or use the out-of-place operation.
in_place_shape(op, want, got) -> RuntimeError
    output with shape {want:list} doesn't match the broadcast shape {got:list}: {op} cannot change a tensor's shape
in_place_dtype(op, got, want) -> RuntimeError
    result type {got} can't be cast to the desired output type {want}: {op} cannot change a tensor's dtype

# -- backward passes
implicit_not_real(dtype) -> RuntimeError
    grad can be implicitly created only for real scalar outputs but got {dtype}. Pass the gradient, or differentiate a
    real number such as y.abs()**2 or y.real.
gradient_dtype(index, gradient, output) -> RuntimeError
    For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype:
    grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of {output.dtype}.
gradient_count(outputs, gradients) -> RuntimeError
    got {outputs} tensors and {gradients} gradients: give one gradient per output
empty_inputs(function) -> RuntimeError
    `inputs` argument to `{function}()` cannot be empty.
node_arguments(want, got) -> TypeError
    expected {want} arguments, got {got} instead: pass one gradient for each output of the node's operation
edge_has_no_shape() -> RuntimeError
    grad can be implicitly created only for scalar outputs, and a GradientEdge does not store the shape of its output:
    pass a gradient for it (ones(()) for a scalar).
inputs_type(value) -> RuntimeError
    all inputs have to be Tensors or GradientEdges, but got {value:type}
materialize_edge(index) -> RuntimeError
    materialize_grads cannot be used when the given input is a GradientEdge (input {index}), which does not store the
    shape that the zeros would have: pass the tensor, or allow_unused=True.
batched_gradient_shape(index, gradient, output) -> RuntimeError
    If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes
    of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected:
    grad_output[{index}] has a shape of {gradient:torch_size} and output[{index}] has a shape of {output:torch_size}.
    It must have one more leading dimension: one gradient per entry.
batched_gradient_missing(index) -> RuntimeError
    is_grads_batched=True needs a gradient for every output, and grad_outputs[{index}] is None: pass a stack of
    gradients, with the batch along dimension 0.
batched_gradient_sizes(sizes) -> ValueError
    vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes:list} for the mapped
    dimension (dimension 0 of grad_outputs).
blocked_below() -> NotImplementedError
    cannot compute the gradient of a tensor with two levels of tangents with respect to a non-leaf tensor: differentiate
    with respect to the inputs, or use func.grad inside func.jvp
node_gradient_shape(node, gradients) -> RuntimeError
    Mismatch in shape: {node:node} was called with a gradient of shape {gradients:shapes}. The grad_fn of y takes ∂L/∂y,
    which has the shape of y; ones_like(y) gives the gradient of y.sum().

no_node_attribute(node, name) -> AttributeError
    '{node}' object has no attribute {name!r}

# -- hooks
hook_not_callable(hook) -> TypeError
    a hook must be callable, not {hook:type}
hook_shape(hook, want, got) -> RuntimeError
    hook {hook:hook} has changed the size of value: the gradient has shape {want:tuple}, the hook returned {got:tuple}
hook_dtype(hook, want, got) -> RuntimeError
    hook {hook:hook} has changed the type of value (was {want} got {got}): return g.to({want})
hook_count(hook, got, want) -> RuntimeError
    hook {hook:hook} has returned an incorrect number of values (got {got}, but expected {want})
hook_type(expected, got) -> TypeError
    expected {expected}, but hook returned '{got:type}': a tensor's hook returns a tensor or None, and a node's hook
    returns a tuple of them or None
hook_returned(hook) -> RuntimeError
    Tensor post accumulate grad hooks should return None.
    | {hook:hook} returned a value, but the gradient is already in .grad: modify .grad in place (t.grad.mul_(2)), and
    return None.
hook_fills_none() -> RuntimeError
    can't replace a None gradient with a non-None value: this operand of the node needs no gradient
saved_has_hooks() -> RuntimeError
    Calling register_hooks on a saved tensor whose hooks have already been set: it can have one pair of hooks. Inside
    saved_tensors_hooks() every value already has the hooks of that context.
saved_is_none() -> RuntimeError
    Calling register_hooks on a saved tensor with value None is forbidden: it contains no array to pack (nothing, or a plain
    number).
saved_was_freed() -> RuntimeError
    Calling register_hooks on a saved tensor after it has been freed. backward() and grad() free saved values after using
    them: pass retain_graph=True there to keep them.
unpacked_no_tensor(value) -> TypeError
    Output of saved tensor unpack_hook expected to be a Tensor but got result of type {value:type}: unpack_hook must
    return a tensor with the values that pack_hook was given

# -- operations that users define
function_saves(method, index, value) -> TypeError
    {method} can only save variables, but argument {index} is of type {value:type}. Save tensors (or None); store any
    other object as an attribute: ctx.axis = axis.
function_marks(message, index, value) -> RuntimeError
    {message}, but argument {index} is of type {value:type}
function_saved_once(name) -> RuntimeError
    saved_tensors can only be accessed once in {name}, which has clear_saved_tensors_on_access = True. Assign the result of
    the first access to a variable; for two backward passes through one graph, remove the attribute.
once_differentiable(name) -> RuntimeError
    trying to differentiate twice a function that was marked with @once_differentiable
    | The decorator stops the operations of {name}.backward from being recorded. Write backward with recorded operations
    and remove the decorator, or omit create_graph=True.
function_instance(name) -> RuntimeError
    Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with
    static forward method.
    | {name} should not be instantiated: its methods are static; call {name}.apply(...).
function_nested(name) -> NotImplementedError
    {name}: NestedIOFunction is not supported. Derive from Function, and pass the tensors of nested arguments
    separately: apply(*tensors).
function_two_rules(name) -> RuntimeError
    Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of
    them: they are two names of one method. {name} has both.
function_grad_complex(name, index) -> RuntimeError
    Function {name}Backward returned a complex gradient at index {index}, but that argument is real. Return its real
    part: grad.real.
function_dirty_lost(name) -> RuntimeError
    Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified
    inplace must all be outputs of the Function: return the tensor that {name}.forward passed to mark_dirty.
function_dirty_leaf(name) -> RuntimeError
    a leaf Variable that requires grad has been used in an in-place operation.
    | {name}.forward wrote into it (mark_dirty). Pass a clone(), or work inside no_grad().
function_dirty_view(name) -> RuntimeError
    If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than
    one Tensor. Pass {name}.apply a clone() of the view, or split {name} into two Functions.
function_view_in_place() -> RuntimeError
    the output of a custom Function is a view (or an input that was returned unchanged), and its base or another view
    of it was written to in place: the history of the output does not contain the gradient of that write. This behavior
    is forbidden. Return a clone() from forward, or write out of place.
function_no_jvp(name, why) -> NoForwardMode
    You must implement the jvp function for custom autograd.Function to use it with forward mode AD.
    | {name} has no jvp, and its tangent could not be derived from backward: {why}. Define jvp(ctx, *tangents), which
    returns one tangent for each output.
function_jvp_count(name, want, got) -> RuntimeError
    Function's jvp returned an invalid number of forward gradients (expected {want} but got {got}): {name}.jvp returns
    one tangent for each output of forward.
function_jvp_type(name, index, got) -> RuntimeError
    expected Variable or None (got {got:type}) for grad output {index}: {name}.jvp returned it.
function_jvp_shape(name, index, want, got) -> RuntimeError
    Trying to set a forward gradient that has a different size than that of the original Tensor, this is not
    supported. Tensor is of size {want:list} while the given forward gradient is of size {got:list}: {name}.jvp
    returned it for output {index}.
function_numpy_inside(name, where) -> RuntimeError
    {name}.{where} converted a tensor to plain numbers inside vmap, where one call computes all examples. Call NumPy's
    functions on the tensor itself (np.sin(x)), or define a vmap staticmethod: vmap(info, in_dims, *args) gets ordinary
    tensors with a batch axis and returns (output, out_dims).
function_two_vmaps(name) -> RuntimeError
    You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please
    set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity.
function_vmap_result(name, got) -> RuntimeError
    Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with
    the output. Got a {got:class} instead, from {name}.vmap.
function_vmap_size(name, index, got, size) -> RuntimeError
    {name}.vmap returned output {index} of shape {got:tuple}, which has no axis of the batch size {size} at the position
    in out_dims.
function_needs_setup(name) -> RuntimeError
    In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override
    the setup_context staticmethod.
    | {name} has a vmap staticmethod, which computes the value without a ctx: to differentiate it inside vmap, define
    forward without ctx, and fill ctx in setup_context(ctx, inputs, output).
function_keywords(name, kwargs) -> TypeError
    forward() got an unexpected keyword argument {kwargs:first}: {name}.apply passes keywords only if forward takes no ctx
    and the class defines setup_context. Pass it by position.
function_keyword_only(forward, names) -> NotImplementedError
    autograd.Function: {forward.__qualname__} takes {names:commas} by keyword only, and kwarg-only Tensor args are not
    supported: backward returns one gradient for each positional argument. Remove the * from the signature of forward.
function_dirty_no_input(name) -> RuntimeError
    ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be
    passed to ctx.mark_dirty(): {name}.forward must not pass tensors that it created itself.
warn_dirty_no_input(name) -> warning
    ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be
    passed to ctx.mark_dirty(): {name}.forward must not pass tensors that it created itself.

# -- transformations, forward mode, Jacobians
nested_dual_level() -> RuntimeError
    Nested forward mode AD is not supported at the moment: a dual_level is open in this thread. For derivatives of
    tangents nest func.jvp, which has a level for each call.
dual_level_not_open() -> RuntimeError
    Dual level must be a positive number: exit_dual_level() was called with no level open.
dual_level_not_last() -> RuntimeError
    Trying to exit a forward AD level that was not the last one that was created. This is not supported: exit the
    innermost level first (dual_level, func.jvp and func.vmap each open a level).
no_dual_level() -> RuntimeError
    Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first: write
    `with forward_ad.dual_level():` around it.
invalid_dual_level(level) -> RuntimeError
    Trying to access a forward AD level with an invalid index. This index was either not created or is already
    deleted: level={level!r}, and only level 0 exists, inside dual_level(). Omit level=.
dual_dtype(which, value) -> ValueError
    Expected {which} to be floating point or complex, but got: torch.{value.dtype.name}. Convert it first: .float(),
    .double().
dual_not_tensor(function, which, value) -> TypeError
    {function}(): argument '{which}' must be Tensor, not {value:type}
dual_shape(primal, tangent) -> RuntimeError
    Trying to set a forward gradient that has a different size than that of the original Tensor, this is not
    supported. Tensor is of size {primal:sizes} while the given forward gradient is of size {tangent:sizes}: a tangent
    has the shape of its primal.
dual_complex_tangent(primal, tangent) -> RuntimeError
    Trying to set a complex forward gradient ({tangent.dtype}) on a real Tensor ({primal.dtype}): the tangent of a real
    number is real. Use tangent.real, or make the primal complex.
dual_already(level=0) -> RuntimeError
    Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {level} is not
    supported: use unpack_dual(x).primal, or x.detach().
dual_tangent_moves(level=0) -> RuntimeError
    Setting a forward grad that itself has a forward gradient at the same level {level} is not supported: the tangent
    has a tangent itself. Pass unpack_dual(tangent).primal; for second derivatives nest chainrule.jvp.
jacobian_constant_written(op, operand) -> RuntimeError
    one of the values needed for the Jacobian was modified by an inplace operation: operand {operand!r} of {op}{here}.
    |Write the change out of place (y = y + 1 instead of y += 1), or modify a clone().

jacobian_of_captured(what) -> RuntimeError
    jacobian(): the entries depend on an array or tensor from outside of the function that requires grad, and {what} would treat
    it as a constant. layout='structured' and layout='dense' keep the entries on the tape; for a constant, pass x.detach().
jacobian_layout(api, layout, layouts) -> ValueError
    {api}(): layout is one of {layouts:reprs}, not {layout!r}
jacobian_layout_needs_function(layout) -> ValueError
    jacobian(): layout={layout!r} and strategy= need the function, because its operations propagate the structure: call
    jacobian(f, x, layout={layout!r}). The Jacobian of a tensor that is already computed is dense.
hessian_options() -> ValueError
    hessian(): layout= and the other options need a point, hessian(f, x, layout='csr'), or no argnums: hessian(f,
    layout='csr') is a function of the point. hessian(f, argnums) is a function that computes dense Hessians.
jacobian_layout_create_graph(api, layout) -> ValueError
    {api}(): layout={layout!r} returns a SciPy array, which cannot be on the tape: to differentiate it (with
    create_graph=True, or inside grad) use layout='structured', whose entries are tensors, or layout='dense'.
jacobian_unstructured(api, reason, rows, columns, size, limit) -> RuntimeError
    {api}(): {reason}. The dense matrix has {rows} × {columns} numbers, {size}, and memory= allows {limit}.
    | layout='operator' computes products with vectors only; with a larger memory= the dense matrix is computed.
jacobian_check(where, what, place, found, wanted, bad, size) -> RuntimeError
    jacobian(check=True): the product with a random vector is {found} at element {place} of {where}, and the {what} of the
    function is {wanted} there ({bad} of {size} elements differ). Entries are missing or wrong. Possible causes: a pattern
    (sparsity=) without all entries, a custom function whose backward is not linear in its cotangent, or a function that is
    not deterministic.
jacobian_check_complex() -> ValueError
    jacobian(check=True): products of complex functions depend on a convention. Check the function as one of real and
    imaginary parts.
jacobian_sparsity(what) -> ValueError
    jacobian(): sparsity= is the pattern of the matrix of one output and one input, computed by products with vectors; {what}.
jacobian_other_point(api, what, got, expected) -> ValueError
    prepared {api}: {what} is {got}, and it was prepared for {expected}. Call prepare_{api:lower}() again for other
    shapes, dtypes or structures, because the pattern depends on them.
jacobian_prepared_inside(api, what) -> RuntimeError
    prepared {api}: {what} is on the tape, or inside a transformation, but a prepared {api} records nothing: pass
    x.detach(), or call chainrule.{api:lower}(f, x) there.
jacobian_pattern_changed(api, before, now, where) -> RuntimeError
    prepared {api}: at this point the function runs other operations than at the point of preparation, because it reads
    values ({where}), and the pattern differs ({now} entries instead of {before}, or other positions). With
    prepare_{api:lower}(..., on_change='record') each new pattern is computed once and cached.
explained_by(by, known) -> ValueError
    explain(): by={by!r} is not a way to divide a gradient; use one of {known:reprs}
explained_jacobian_arguments() -> TypeError
    explain(): grad, wrt and by apply to backward passes only: a Jacobian has one output and one input.
explained_jacobian_changed(how) -> RuntimeError
    explain(): the function returned another Jacobian than before: {how}. explain() runs it again, so its arguments and the
    values that it reads must not change in between: compute the Jacobian again.
explained_other(value) -> TypeError
    explain(): {value:type} has no recorded history. For a Jacobian write explain(jacobian(f, x, layout='structured')); the
    result of jacobian_plan() can be printed.
jacobian_several(name, count) -> TypeError
    {name}(f, x) takes one x, but got {count}. Pass several arguments of f as a tuple: {name}(f, (x, y)).
jacobian_dense_only(layout) -> ValueError
    jacobian(): mode and chunk_size apply to the rows or columns of a dense Jacobian, and layout={layout!r} computes none.
    Choose with strategy='forward terms' or 'reverse terms'.
jacobian_memory(memory) -> TypeError
    jacobian(): memory is a number of bytes, such as 2**30, not {memory!r}
explained_jacobian_unknown(jacobian) -> ValueError
    explain(): {jacobian!r} was not returned by jacobian(f, x, layout='structured') or hessian(), but made from such results
    (by a product, a transpose, hstack=True ...) or read from a file: explain the results themselves.
jacobian_needs_scipy() -> ImportError
    a sparse array needs SciPy, which is not installed: pip install chainrule[scipy]. layout='structured' needs only NumPy.
jacobian_too_large(m, n, y_shape, x_shape, size, limit, hint) -> ValueError
    a dense Jacobian of {m} rows (the elements of y, of shape {y_shape}) and {n} columns (x, of shape {x_shape}) takes
    {size}, more than the limit of {limit}. {hint}
jacobian_operand(call, have, want, of, other, where) -> ValueError
    {call}: the operand has shape {have}. J is dy/dx, so the operand must have the shape of {of}, {want}, or be flat,
    with any further axes {where}. (The other shape of J is {other}.)
jacobian_product(left, right) -> ValueError
    J1 @ J2: J1 is with respect to a value of shape {left.in_shape}, and J2 is of a value of shape {right.out_shape}. In
    the chain rule, dz/dy @ dy/dx, both are the same value y.
jacobian_sum(left, right) -> ValueError
    cannot add Jacobians of different shapes: {left.out_shape} by {left.in_shape}, and {right.out_shape} by
    {right.in_shape}
jacobian_compiled(prepare) -> TypeError
    a SciPy array needs plain numbers, and compile traces values{here}. chainrule.{prepare}(f, x) finds the sparsity pattern
    once and compiles the computation of the entries; inside compile use layout='structured' or layout='dense'.
jacobian_inside(what) -> TypeError
    {what} needs plain numbers, and the entries of this Jacobian belong to a transformation such as vmap, jvp or
    compile{here}. Inside a transformation use layout='structured' or layout='dense'.
jacobian_not_square(J) -> LinAlgError
    J.solve(b) needs as many equations as unknowns, and J has {J.matrix_shape[0]} rows (y of shape {J.out_shape}) and
    {J.matrix_shape[1]} columns (x of shape {J.in_shape}). For least squares use scipy.sparse.linalg.lsqr(J.to_scipy(), b)
    or np.linalg.lstsq.
singular_inverse(element, k) -> LinAlgError
    linalg.inv: {element}The diagonal element {k} is zero, the inversion could not be completed because the input matrix is
    singular{here}{loop}. pinv computes the pseudoinverse.
not_positive_definite(element, k) -> LinAlgError
    linalg.cholesky: {element}The factorization could not be completed because the input is not positive-definite (the leading
    minor of order {k} is not positive-definite){here}{loop}.
singular_system(name) -> LinAlgError
    {name}: The solver failed because the input matrix is singular{here}{loop}. lstsq computes the least-squares solution.
jacobian_singular(J, why) -> LinAlgError
    J.solve(b): the Jacobian, of shape {J.out_shape} by {J.in_shape}, is singular: {why}
jacobian_spy() -> ImportError
    J.spy() draws with matplotlib, which is not installed: pip install matplotlib. print(J.spy_text()) needs nothing.
jacobian_needs_function() -> ValueError
    jacobian(): mode='forward' runs the function again, so it needs the function: jacobian(f, x). A tensor that is already
    computed has only its graph, which allows reverse mode only.
jacobian_of_nothing(which, api='jacobian') -> ValueError
    {api}(): {which} contains no tensor
jacobian_no_result(function, result) -> ValueError
    jacobian(): {function:function} returned no array or tensor but {result:type}, so there is nothing to differentiate. Is a
    `return` missing?
jacobian_of_value(value) -> TypeError
    jacobian(): y is of type {value:type}, which has no recorded history. Pass the function, jacobian(f, x), or compute y from
    tensors that require grad.
jacobian_integers(dtype, api='jacobian') -> TypeError
    {api}(): x has dtype {dtype}; only floating point and complex values have derivatives: pass 1. instead of 1, or
    use .astype(float) (.double() for tensors)
jacobian_output(out) -> TypeError
    jacobian(): the function must return arrays or tensors (or a tree of them), not {out!r}
warn_unbatched(error) -> warning
    jacobian(): computing one row at a time, because the rows cannot be batched ({error})
functional_v_none(source) -> RuntimeError
    The vector v can only be None if {source} a single Tensor with a single element: pass v, one number per element.
functional_independent(subject, index, mode='strict mode') -> RuntimeError
    {subject} is independent of input {index}. This is not allowed in {mode}.
functional_hessian_independent(index) -> RuntimeError
    While computing the hessian, found that the jacobian of the user-provided function with respect to input {index}
    is independent of the input. This is not allowed in strict mode: the function is linear in the input, or does not use
    it, and its second derivatives are zero.
functional_strategy(hint=True) -> AssertionError
    Expected strategy to be either "forward-mode" or "reverse-mode". Hint: "forward-mode" costs a pass per input
    element, "reverse-mode" one per output element.
functional_forward_loop() -> NotImplementedError
    Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`.
functional_strict_vectorize() -> RuntimeError
    torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are not supported together. Please either
    set `strict=False` or `vectorize=False`.
warn_out_resized(have, want) -> warning
    An output with one or more elements was resized since it had shape {have:list}, which does not match the required
    output shape {want:list}. Pass out= a tensor of the right shape, or an empty tensor.
order_in_vmap(order) -> RuntimeError
    vmap: order={order!r} depends on the memory layout of an array{here}. Elements of the examples are interleaved in memory,
    so the layout of a single example is not defined. Write order='C' or order='F', or map over the first axis.
random_in_vmap() -> RuntimeError
    vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different'
    randomness flags on vmap or perform the randomness operation out of vmap{here}: vmap(f, randomness='different')
    draws separately for each example, 'same' draws once for all examples.
time_in_derivative(op, dtype) -> TypeError
    {op}{here} returns {dtype}, an integer number of time units, which has no derivative. Divide the time by its unit first,
    as in x * (dt / np.timedelta64(1, 's')).
same_random_numbers(name) -> RuntimeError
    Vmap does not currently support same randomness with a batched tensor input: the parameters of {name}{here} differ between
    examples, and its samples depend on them. Use vmap(f, randomness='different').
compile_into(name, spec, values) -> ValueError
    compile: {name}{here} returns {spec} with arrays of the shapes and dtypes {values:layouts}: out must match it
compile_not_pickled(name) -> TypeError
    compile: the function {name} cannot be pickled, because pickle looks up functions by name, and {name} was made by another
    function (a lambda, a transformation, a nested function): pickle its inputs, and compile again
compile_no_plan(name, reason) -> RuntimeError
    compile: {name}{here} has no plan for these arguments, because it runs eagerly: {reason}
warn_compile_failed(name, where, reason) -> warning
    compile: {name}{where:bracketed} runs eagerly in every call: {reason}
warn_compile_by_python(name, where, step, count) -> warning
    compile: {name} runs {step}{where:bracketed} {count} times, each as a call from Python; other steps are native. explain() of
    the compiled function lists such lines
warn_compile_wasted(name, where, difference, advice) -> warning
    compile: {name}{where:bracketed} runs eagerly in calls that have no trace: tracing such calls costs more than it saves,
    because {difference} in nearly every call. {advice}.
compile_options(option) -> TypeError
    compile() takes only the function, not {option}=. It traces once for each combination of shapes, dtypes and values of
    non-array arguments (static_argnums= is not needed). It runs functions that cannot be traced eagerly, with a warning. It has
    one mode, whose results are bitwise equal to those of the function.
jit_called() -> TypeError
    'module' object is not callable: use chainrule.compile(f), which needs no static_argnums=. (chainrule.jit has the decorators
    of torch.jit, which return functions unchanged.)
compile_low_level_arguments(name, shapes) -> TypeError
    as_low_level_callable: {name} must take numbers (scipy.integrate) or one 1-D array (scipy.ndimage); the examples have the
    shapes {shapes}
compile_not_low_level(name, reason) -> RuntimeError
    as_low_level_callable: {name}{here} cannot run without Python: {reason}
recorded_elsewhere(level) -> RuntimeError
    this array or tensor{here} belongs to a function that another thread is tracing, in the first call of the result of
    {level.name}{level:called}: call that result once before threads share its tensors
escaped_recording(level) -> RuntimeError
    this array or tensor{here} has escaped from a function that {level.name}{level:called} traced, through a list, a global or
    an attribute. Return it from the function. To keep a value from call to call, write it in place into a tensor of the
    outer program.
escaped_tensor(level, what) -> RuntimeError
    {what}{here} was given a tensor that has escaped from inside a function being vmapped: it was made inside
    {level.name}{level:called}, which has returned, and holds the values of all examples. Return it from the function
    instead of storing it in a list, a global or an attribute.
escaped_tangent(level, what) -> RuntimeError
    {what}{here} was given a tensor that has escaped from inside a function: it was written or made inside
    {level.name}{level:called}, which has returned, and depends on the differentiated arguments. Return it from the
    function instead of writing into a tensor or array of the outer function.
func_result_shape(api, result) -> RuntimeError
    {api}: Expected f(*args) to return a scalar Tensor, got tensor with {result:dims} dims (shape {result:shape}).
    Maybe you wanted to use the vjp or jacrev APIs instead? Or return the sum() of the result.
jacobian_integer_output(y) -> TypeError
    jacobian(): the function returns dtype {y.dtype}: integers and booleans have no derivative.{y:cut}

# -- checkpoints
reentrant_needs_all_leaves() -> RuntimeError
    When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to
    .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing
    the `inputs` argument. (explain() and jacobian() are like .grad() here.)
argument_was_written(tensor, written) -> RuntimeError
    one of the variables needed for gradient computation has been modified by an inplace operation:
    [torch.{tensor.dtype:old_type} {tensor:sizes}], which a checkpointed function reads, was overwritten by
    {written:writer} after the function ran, so the function cannot be recomputed. Write the change out of place, or run
    backward() first.
recomputed_was_written(tensor, written) -> RuntimeError
    one of the variables needed for gradient computation has been modified by an inplace operation:
    [torch.{tensor.dtype:old_type} {tensor:sizes}], which an operation in a checkpointed function saved, was
    overwritten by {written:writer}. Write the change out of place, or modify a clone().
kept_was_written(prim, array, written) -> RuntimeError
    Tensor cached during selective activation checkpoint has been mutated: the result of {prim.name}, of shape
    {array:shape}, was overwritten by {written:writer}. With allow_cache_entry_mutation=True it is recomputed instead.

# -- saved values, profiles and explanations
pack_hook_wrote() -> RuntimeError
    A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be
    modified by in-place operations, because the forward pass still uses their memory: modify a clone().
packed_was_written(tensor) -> RuntimeError
    one of the variables needed for gradient computation has been modified by an inplace operation:
    [torch.{tensor.dtype:old_type} {tensor.shape:list}], which a pack hook returned without copying. Write the change out
    of place, or return a clone() from the pack hook.
unpacked_differs(value, shape, dtype) -> RuntimeError
    unpack_hook returned a tensor of shape {value:shape} and dtype {value.dtype}, but pack_hook was given shape {shape:tuple}
    and dtype {dtype}: return the same values
complex_into_real(dtype) -> RuntimeError
    value cannot be converted to type {dtype:word} without overflow: the value is complex; assign its .real part
no_gradient_in_dtype(op, dtype) -> RuntimeError
    Autograd not support dtype: {dtype:word}
    | {op}() writes values that require grad into a tensor of {dtype:word}, which has no gradient. Convert the tensor
    with .float() or .double(), or write values.detach().
index_put_dtype(got, want) -> RuntimeError
    Index put requires the source and destination dtypes match, got {want:word} for the destination and {got:word} for
    the source.
    | Convert the value with .to(dtype) first.
jacobian_complex_forward() -> ValueError
    jacobian(): the derivative of a real output along one direction of a complex input is only half of the derivative: use
    mode='reverse'.
explain_inside() -> RuntimeError
    explain() was called inside a transformation (vmap, jvp or jacfwd), where a value is not a single array: call it
    outside, on ordinary tensors or as explain(f)(x) for the transformed function.
profiler_sort(given, known) -> ValueError
    cannot sort by {given!r}: sort_by is one of {known:reprs}
explained_parameter(function, name, known) -> ValueError
    explain({function:function}, wrt={name!r}): no floating-point argument has that name; the names are {known:commas}

# -- saving and loading
torch_file(name) -> TorchFile
    {name} is a pickle, as written by torch.save. Reading a pickle can run arbitrary code, so load() refuses it. Convert it
    where PyTorch is installed: safetensors.torch.save_file(torch.load(path), 'file.safetensors'), or
    numpy.savez('file.npz', **{{k: v.numpy() for k, v in torch.load(path).items()}}).
torch_file_to_write(name, suffix, stem) -> TorchFile
    save(): {name}: PyTorch expects a pickle in a {suffix} file, and save() writes no pickles, because reading one can run
    arbitrary code. Name it {stem}.safetensors, which PyTorch can read as well, or {stem}.npz; load() reads both.
only_weights() -> ValueError
    load() never runs code from a file, so weights_only=False is not possible: omit it. For pickled objects that you trust,
    use pickle.load.
cannot_save(value, where) -> TypeError
    save(): {where} is a {value:type}: only tensors, arrays of numbers, numbers, text, None, and dictionaries, lists and
    tuples of them can be saved. (pickle saves other Python objects.)
needs_safetensors() -> ImportError
    the safetensors format needs the safetensors library, which is not installed: pip install chainrule[safetensors]; .npz
    files need no library
"""
