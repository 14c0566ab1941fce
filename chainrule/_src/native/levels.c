/* Operations on the values of transformations: Dual (interpreters/dual.py) and Batched (interpreters/batched.py), which nest.

   evaluate() computes an op on plain arrays, numbers and such values, as Python's handlers do: a Dual's primal is the op on the primals, its
   tangent the JVP rule; a Batched's payload is the op on payloads with aligned batch axes. Rules run as programs, whose steps are ops again, so
   the same code serves all nestings. Rules without a program are Python functions and are called from here.

   Values have no side effects, so errors and floating-point exceptions end the computation, and the caller lets Python repeat it: Python raises
   and warns with its own messages and locations. evaluate() therefore runs in the error state in which NumPy raises. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <structmember.h> /* names of Python 3.11 */

static PyTypeObject *dual_type, *batched_type, *level_type;
static PyObject *add_prim, *mul_prim, *div_prim, *expand_prim, *alive_name, *lift_name, *shape_name;
static Py_ssize_t dual_primal, dual_tangent, dual_level, dual_shape, dual_dtype;
static Py_ssize_t batched_payload, batched_level, batched_shared, batched_shape, batched_dtype;

static PyObject *evaluate(PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params);

/* ---- reading values */

static int is_dual(PyObject *x) { return Py_TYPE(x) == dual_type; }
static int is_batched(PyObject *x) { return Py_TYPE(x) == batched_type; }
int is_level_value(PyObject *x) { return x != NULL && (is_dual(x) || is_batched(x)); }
static PyObject *slot_of(PyObject *x, Py_ssize_t of_dual, Py_ssize_t of_batched) { return SLOT(x, is_dual(x) ? of_dual : of_batched); }
static PyObject *level_of(PyObject *x) { return slot_of(x, dual_level, batched_level); }

PyObject *dtype_of_value(PyObject *x) {
    if (PyArray_CheckExact(x)) return (PyObject *)PyArray_DESCR((PyArrayObject *)x);
    return is_level_value(x) ? slot_of(x, dual_dtype, batched_dtype) : NULL;
}

int float_kind_of(PyObject *x) {
    PyObject *dtype = x == NULL ? NULL : dtype_of_value(x);
    return dtype == (PyObject *)core.dtypes[1] ? 1 : dtype != NULL && dtype == (PyObject *)core.dtypes[0] ? 0 : -1;
}

int is_mask_value(PyObject *x) { return dtype_of_value(x) == (PyObject *)core.dtypes[2]; }

PyObject *shape_of_value(PyObject *x) {
    PyObject *aval, *shape;
    if (is_level_value(x)) return Py_XNewRef(slot_of(x, dual_shape, batched_shape));
    aval = PyArray_CheckExact(x) ? aval_of(x) : NULL;
    if (aval == NULL) return PyErr_Occurred() ? NULL : Py_NewRef(core.empty_tuple); /* a number */
    shape = Py_NewRef(PyTuple_GET_ITEM(aval, 0));
    Py_DECREF(aval);
    return shape;
}

static int is_shape(PyObject *x, PyObject *shape) {
    PyObject *own = shape_of_value(x);
    int same = own == NULL ? -1 : own == shape ? 1 : PyObject_RichCompareBool(own, shape, Py_EQ);
    Py_XDECREF(own);
    return same;
}

int same_aval(PyObject *value, PyObject *aval) { return dtype_of_value(value) == PyTuple_GET_ITEM(aval, 1) && is_shape(value, PyTuple_GET_ITEM(aval, 0)) == 1; }

int ndim_of_value(PyObject *x) {
    if (PyArray_CheckExact(x)) return PyArray_NDIM((PyArrayObject *)x);
    return is_level_value(x) && slot_of(x, dual_shape, batched_shape) != NULL ? (int)PyTuple_GET_SIZE(slot_of(x, dual_shape, batched_shape)) : 0;
}

/* Whether all slots are filled, with a level of a transformation that still runs. Python handles the level of autograd.forward_ad. */
static int is_usable(PyObject *x) {
    PyObject *level = level_of(x), *alive, *lifts;
    int usable;
    if (level == NULL || Py_TYPE(level) != level_type || dtype_of_value(x) == NULL || slot_of(x, dual_shape, batched_shape) == NULL || slot_of(x, dual_primal, batched_payload) == NULL) return 0;
    if (is_dual(x) ? SLOT(x, dual_tangent) == NULL : SLOT(x, batched_shared) == NULL) return 0;
    alive = PyObject_GetAttr(level, alive_name);
    lifts = alive == NULL ? NULL : PyObject_GetAttr(level, lift_name);
    usable = lifts == NULL ? -1 : alive == Py_True && (lifts == Py_True || is_batched(x));
    Py_XDECREF(alive);
    Py_XDECREF(lifts);
    return usable;
}

/* ---- making values: both steal their parts, which may be NULL */

static PyObject *new_dual(PyObject *primal, PyObject *tangent, PyObject *level) {
    PyObject *shape = primal == NULL ? NULL : shape_of_value(primal), *dual = shape == NULL || tangent == NULL ? NULL : dual_type->tp_alloc(dual_type, 0);
    if (dual == NULL) {
        Py_XDECREF(primal);
        Py_XDECREF(tangent);
        Py_XDECREF(shape);
        return NULL;
    }
    SLOT(dual, dual_primal) = primal;
    SLOT(dual, dual_tangent) = tangent;
    SLOT(dual, dual_level) = Py_NewRef(level);
    SLOT(dual, dual_shape) = shape;
    SLOT(dual, dual_dtype) = Py_NewRef(dtype_of_value(primal));
    return dual;
}

static PyObject *new_batched(PyObject *payload, PyObject *level, int shared) {
    PyObject *shape = payload == NULL ? NULL : shape_of_value(payload), *batched;
    if (shape != NULL && !shared) Py_SETREF(shape, PyTuple_GetSlice(shape, 1, PyTuple_GET_SIZE(shape)));
    batched = shape == NULL ? NULL : batched_type->tp_alloc(batched_type, 0);
    if (batched == NULL) {
        Py_XDECREF(payload);
        Py_XDECREF(shape);
        return NULL;
    }
    SLOT(batched, batched_payload) = payload;
    SLOT(batched, batched_level) = Py_NewRef(level);
    SLOT(batched, batched_shared) = PyBool_FromLong(shared);
    SLOT(batched, batched_shape) = shape;
    SLOT(batched, batched_dtype) = Py_NewRef(dtype_of_value(payload));
    return batched;
}

/* Return a result of Python as an array or value (steals it). NULL without an error if it is anything else. */
static PyObject *as_value(PyObject *result) {
    result = as_array(result);
    if (result == NULL || PyArray_CheckExact(result) || is_level_value(result)) return result;
    Py_DECREF(result);
    return NULL;
}

static void release(PyObject **objects, Py_ssize_t n) {
    while (n-- > 0) Py_XDECREF(objects[n]);
}

static PyObject *tuple_of(PyObject *const *objects, Py_ssize_t n) {
    PyObject *tuple = PyTuple_New(n);
    Py_ssize_t i;
    for (i = 0; tuple != NULL && i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(objects[i] == NULL ? Py_None : objects[i]));
    return tuple;
}

/* ---- programs on values: each step is an op */

/* A step of a rule: on plain arrays the ufunc, whose bits may differ from those of the op. */
static PyObject *run_step(const Step *step, PyObject *const *operands) {
    PyObject *prim = step->operation == NULL ? NULL : prim_of_operation(step->operation), *output;
    Op *op;
    int k, plain = 1, is_same;
    for (k = 0; k < step->nin; k++) plain &= !is_level_value(operands[k]);
    op = prim == NULL ? NULL : op_of(prim);
    if (op == NULL) return NULL;
    is_same = op->value.ufunc == step->ufunc;
    Py_DECREF(op);
    if (!plain || is_same) return evaluate(prim, operands, step->nin, core.no_params);
    output = as_array(PyObject_Vectorcall(step->ufunc, operands, (size_t)step->nin, NULL));
    if (output != NULL && !PyArray_CheckExact(output)) Py_CLEAR(output);
    return output;
}

static PyObject *run_ops(const Program *program, PyObject *const *inputs, int ninputs) {
    PyObject *values[VALUES] = {NULL}, *operands[3], *result = NULL;
    int i, k, done;
    if (program->reads >> ninputs) return NULL;
    if (program->result == 0) return Py_NewRef(inputs[0]);
    memcpy(values, inputs, sizeof(PyObject *) * (size_t)ninputs);
    for (i = 0; i < program->nconstants; i++) values[INPUTS + i] = program->numbers[i];
    for (done = 0; done < program->nsteps; done++) {
        const Step *step = &program->steps[done];
        PyObject *output;
        for (k = 0; k < step->nin; k++) operands[k] = values[step->operands[k]];
        output = run_step(step, operands);
        if (output == NULL) goto end;
        values[INPUTS + CONSTANTS + done] = output;
    }
    result = Py_NewRef(values[program->result]);
end:
    release(values + INPUTS + CONSTANTS, done);
    return result;
}

/* ---- forward mode */

static PyObject *sum_of(PyObject *x, PyObject *y) { /* steals x */
    PyObject *both[] = {x, y}, *sum = evaluate(add_prim, both, 2, core.no_params);
    Py_DECREF(x);
    return sum;
}

/* The op applied to each tangent and the other operands. */
static PyObject *multilinear_tangent(PyObject *prim, PyObject *const *primals, PyObject *const *tangents, Py_ssize_t n, PyObject *params) {
    PyObject *operands[MAX_OP_OPERANDS], *total = NULL;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        PyObject *term;
        if (tangents[i] == NULL) continue;
        memcpy(operands, primals, sizeof(PyObject *) * (size_t)n);
        operands[i] = tangents[i];
        term = evaluate(prim, operands, n, params);
        if (total != NULL && term != NULL) {
            total = sum_of(total, term);
            Py_DECREF(term);
        } else {
            Py_XSETREF(total, term);
        }
        if (total == NULL) return NULL;
    }
    return total;
}

/* The JVP rule of an elementwise op as a program. *python is set if Python must compute the tangent. */
static PyObject *elementwise_tangent(Op *op, PyObject *const *primals, PyObject *const *tangents, Py_ssize_t n, PyObject *out, PyObject *params, int *python) {
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    const Program *program = NULL;
    PyObject *shape = shape_of_value(out), *tangent = NULL;
    int plain = PyArray_CheckExact(out), present = 0, whole = 0, fits = 1;
    Py_ssize_t i;
    for (i = 0; i < n && shape != NULL && fits; i++) {
        if (tangents[i] == NULL) continue;
        present |= 1 << i;
        whole |= is_shape(tangents[i], shape) == 1; /* then the sum of all terms has the shape of the value */
        plain = plain && PyArray_CheckExact(tangents[i]);
        fits = add_inputs(&inputs, &tangents[i], 1);
    }
    for (i = 0; i < n; i++) plain = plain && !is_level_value(primals[i]);
    if (shape != NULL && whole && fits && add_inputs(&inputs, primals, n) && add_inputs(&inputs, &out, 1) && add_parameters(&inputs, params)) program = find_program(op, TANGENT + present, &inputs, 0, !plain, params);
    if (program != NULL) tangent = plain ? run_program(program, out, inputs.values, inputs.count) : run_ops(program, inputs.values, inputs.count);
    *python = tangent == NULL && (program == NULL || plain);
    drop_inputs(&inputs);
    Py_XDECREF(shape);
    return tangent;
}

static PyObject *python_tangent(PyObject *prim, PyObject *const *primals, PyObject *const *tangents, Py_ssize_t n, PyObject *out, PyObject *params) {
    PyObject *args[4] = {tuple_of(primals, n), tuple_of(tangents, n), out, params}, *rule = Py_XNewRef(SLOT(prim, core.prim_jvp)), *tangent = NULL;
    if (args[0] != NULL && args[1] != NULL && rule != NULL) tangent = PyObject_Vectorcall(rule, args, 4, NULL);
    if (tangent != NULL && tangent != Py_None) tangent = as_value(tangent);
    Py_XDECREF(rule);
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    return tangent;
}

/* Return the tangent of a value: None if it is zero. NULL without an error: slow path. */
static PyObject *tangent_of(Op *op, PyObject *prim, PyObject *const *primals, PyObject *const *tangents, Py_ssize_t n, PyObject *out, PyObject *params) {
    PyObject *tangent = NULL, *shape;
    int python = 1;
    if (op->multilinear) {
        tangent = multilinear_tangent(prim, primals, tangents, n, params);
        shape = tangent == NULL ? NULL : shape_of_value(out);
        if (tangent == NULL || shape == NULL || is_shape(tangent, shape) != 1) Py_CLEAR(tangent);
        Py_XDECREF(shape);
        python = 0;
    } else if (op->elementwise) {
        tangent = elementwise_tangent(op, primals, tangents, n, out, params, &python);
    }
    if (tangent == NULL && python && !PyErr_Occurred()) tangent = python_tangent(prim, primals, tangents, n, out, params);
    if (tangent != NULL && tangent != Py_None && dtype_of_value(tangent) != dtype_of_value(out)) Py_CLEAR(tangent);
    return tangent;
}

static PyObject *evaluate_dual(Op *op, PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params, long long number, PyObject *level) {
    PyObject *primals[MAX_OP_OPERANDS] = {NULL}, *tangents[MAX_OP_OPERANDS] = {NULL}, *out, *tangent = NULL, *output = NULL;
    int moves = 0;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        int own = is_dual(operands[i]) && PyLong_AsLongLong(level_of(operands[i])) == number;
        primals[i] = Py_NewRef(own ? SLOT(operands[i], dual_primal) : operands[i]);
        tangents[i] = own && SLOT(operands[i], dual_tangent) != Py_None ? Py_NewRef(SLOT(operands[i], dual_tangent)) : NULL;
        moves |= tangents[i] != NULL;
    }
    out = evaluate(prim, primals, n, params);
    if (out != NULL) {
        if (!moves || !op->records) tangent = Py_NewRef(Py_None);
        else if (float_kind_of(out) >= 0) tangent = tangent_of(op, prim, primals, tangents, n, out, params);
        output = new_dual(Py_NewRef(out), tangent, level);
    }
    Py_XDECREF(out);
    release(primals, n);
    release(tangents, n);
    return output;
}

/* ---- batches */

/* Insert axes of length 1 after the batch axis of an array (steals it). */
static PyObject *pad(PyObject *x, Py_ssize_t axes) {
    npy_intp dims[NPY_MAXDIMS];
    PyArray_Dims shape = {dims, PyArray_NDIM((PyArrayObject *)x) + (int)axes};
    PyObject *padded;
    int i;
    if (shape.len > NPY_MAXDIMS) {
        Py_DECREF(x);
        return NULL;
    }
    for (i = 0; i < shape.len; i++) dims[i] = i == 0 ? PyArray_DIM((PyArrayObject *)x, 0) : i <= axes ? 1 : PyArray_DIM((PyArrayObject *)x, i - (int)axes);
    padded = PyArray_Newshape((PyArrayObject *)x, &shape, NPY_CORDER);
    Py_DECREF(x);
    return padded;
}

/* Give the payloads of an elementwise op one rank, as rules.batching.batch_elementwise; 0 if Python must do it. */
static int align(PyObject **payloads, int mapped, Py_ssize_t n) {
    Py_ssize_t rank = 0, i;
    for (i = 0; i < n; i++) {
        Py_ssize_t own = ndim_of_value(payloads[i]) - (mapped >> i & 1);
        if (own > rank) rank = own;
    }
    for (i = 0; i < n; i++) {
        Py_ssize_t missing = rank + 1 - ndim_of_value(payloads[i]);
        if (!(mapped >> i & 1) || missing == 0) continue;
        if (!PyArray_CheckExact(payloads[i])) return 0;
        payloads[i] = pad(payloads[i], missing);
        if (payloads[i] == NULL) return 0;
    }
    return 1;
}

/* A product of a stack of matrices or vectors (first: the first operand) and one matrix or vector, as one product: as
   rules.contract.merge_batch_into_gemm. NULL without an error: slow path. */
static PyObject *product_of_stack(const Op *op, PyObject *x, PyObject *y, int first) {
    PyArrayObject *stack = (PyArrayObject *)(first ? x : y), *one = (PyArrayObject *)(first ? y : x), *rows;
    int ndims = op->product_ndims, stack_ndim = PyArray_NDIM(stack) - 1, k;
    npy_intp dims[3];
    PyArray_Dims shape = {dims, 2};
    PyObject *product, *turned;
    if (float_kind_of(x) < 0 || float_kind_of(x) != float_kind_of(y) || stack_ndim != (first ? ndims / 10 : ndims % 10) || PyArray_NDIM(one) != (first ? ndims % 10 : ndims / 10)) return NULL;
    if (stack_ndim == 1) { /* vectors become the rows of a matrix */
        if (first && ndims == PRODUCT_NDIMS(1, 2)) return PyArray_MatrixProduct2(x, y, NULL);
        if (first || ndims != PRODUCT_NDIMS(2, 1)) return NULL;
        turned = PyArray_SwapAxes(one, 0, 1);
        product = turned == NULL ? NULL : PyArray_MatrixProduct2(y, turned, NULL);
        Py_XDECREF(turned);
        return product;
    }
    if (!first || !PyArray_IS_C_CONTIGUOUS(stack)) return NULL;
    dims[0] = PyArray_DIM(stack, 0) * PyArray_DIM(stack, 1);
    dims[1] = PyArray_DIM(stack, 2);
    rows = (PyArrayObject *)PyArray_Newshape(stack, &shape, NPY_CORDER);
    product = rows == NULL ? NULL : PyArray_MatrixProduct2((PyObject *)rows, y, NULL);
    Py_XDECREF(rows);
    if (product == NULL) return NULL;
    shape.len = 1 + PyArray_NDIM((PyArrayObject *)product);
    for (k = 0; k < 2; k++) dims[k] = PyArray_DIM(stack, k);
    if (shape.len == 3) dims[2] = PyArray_DIM((PyArrayObject *)product, 1);
    Py_SETREF(product, PyArray_Newshape((PyArrayObject *)product, &shape, NPY_CORDER));
    return product;
}

static PyObject *python_batch(PyObject *prim, PyObject *const *payloads, int mapped, Py_ssize_t n, PyObject *size, PyObject *params) {
    /* lists, as in Batched: rules compare them */
    PyObject *flags = PyList_New(n), *values = PyList_New(n), *args[5] = {prim, values, flags, size, params}, *rule = Py_XNewRef(SLOT(prim, core.prim_batch)), *out = NULL;
    Py_ssize_t i;
    for (i = 0; flags != NULL && values != NULL && i < n; i++) {
        PyList_SET_ITEM(flags, i, PyBool_FromLong(mapped >> i & 1));
        PyList_SET_ITEM(values, i, Py_NewRef(payloads[i]));
    }
    if (values != NULL && flags != NULL && rule != NULL) out = as_value(PyObject_Vectorcall(rule, args, 5, NULL));
    Py_XDECREF(rule);
    Py_XDECREF(values);
    Py_XDECREF(flags);
    return out;
}

static PyObject *evaluate_batched(Op *op, PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params, long long number, PyObject *level) {
    PyObject *payloads[MAX_OP_OPERANDS] = {NULL}, *out = NULL, *shape, *size = NULL;
    int mapped = 0; /* bits of the operands with a batch axis */
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        int own = is_batched(operands[i]) && PyLong_AsLongLong(level_of(operands[i])) == number;
        payloads[i] = Py_NewRef(own ? SLOT(operands[i], batched_payload) : operands[i]);
        if (!own || SLOT(operands[i], batched_shared) == Py_True) continue;
        mapped |= 1 << i;
        if (size != NULL) continue;
        shape = shape_of_value(payloads[i]);
        size = shape == NULL || PyTuple_GET_SIZE(shape) == 0 ? NULL : Py_NewRef(PyTuple_GET_ITEM(shape, 0));
        Py_XDECREF(shape);
    }
    if (mapped && size == NULL) {
        out = NULL;
    } else if (mapped == 0 || (n == 1 && op->batch_form != BATCH_IN_PYTHON)) {
        out = evaluate(prim, payloads, n, params);
    } else if (op->batch_form == ALIGN) {
        if (align(payloads, mapped, n)) out = evaluate(prim, payloads, n, params);
        else if (!PyErr_Occurred()) out = python_batch(prim, payloads, mapped, n, size, params);
    } else {
        if (op->product_ndims && n == 2 && mapped != 3 && PyArray_CheckExact(payloads[0]) && PyArray_CheckExact(payloads[1])) out = product_of_stack(op, payloads[0], payloads[1], mapped == 1);
        if (out == NULL && !PyErr_Occurred()) out = python_batch(prim, payloads, mapped, n, size, params);
    }
    out = new_batched(out, level, mapped == 0);
    Py_XDECREF(size);
    release(payloads, n);
    return out;
}

/* ---- dispatch */

/* Return the value of an op. NULL, with or without an error, if Python must compute it. The error state is the raising one. */
static PyObject *evaluate(PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *highest = NULL, *output = NULL;
    long long number = 0;
    Py_ssize_t i;
    int arrays = 0;
    Op *op = n < 1 || n > MAX_OP_OPERANDS ? NULL : op_of(prim);
    if (op == NULL) return NULL;
    if ((!op->variadic && n != op->nin) || SLOT(prim, core.prim_listed) != Py_True) goto end;
    for (i = 0; i < n; i++) {
        if (is_level_value(operands[i])) {
            long long level = is_usable(operands[i]) > 0 ? PyLong_AsLongLong(level_of(operands[i])) : -1;
            if (level < 0 || (level == number && Py_TYPE(highest) != Py_TYPE(operands[i]))) goto end;
            if (level <= number) continue;
            number = level;
            highest = operands[i];
        } else if (PyArray_CheckExact(operands[i])) {
            arrays++;
        } else if (!is_number(operands[i])) {
            goto end;
        }
    }
    if (highest != NULL) {
        PyObject *level = Py_NewRef(level_of(highest));
        if (Py_EnterRecursiveCall(" in an operation on nested transformations") == 0) {
            output = (is_dual(highest) ? evaluate_dual : evaluate_batched)(op, prim, operands, n, params, number, level);
            Py_LeaveRecursiveCall();
        }
        Py_DECREF(level);
    } else if (arrays == n || (op->elementwise && arrays > 0)) {
        output = op_value(op, operands, (int)n, params);
    } else {
        output = as_array(PyObject_VectorcallDict(op->value.value, operands, (size_t)n, params));
    }
end:
    Py_DECREF(op);
    if (output != NULL && !PyArray_CheckExact(output) && !is_level_value(output)) Py_CLEAR(output);
    return output;
}

/* Drop the error of a computation that Python repeats. Interrupts stay. */
static void clear_exception(void) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
}

/* evaluate() in the raising error state. NULL without an error: slow path */
static PyObject *value_of(PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *token, *output = NULL;
    if (enter_raising_state(&token) > 0) {
        output = evaluate(prim, operands, n, params);
        leave_error_state(token);
    }
    clear_exception();
    return output;
}

PyObject *bind_levels(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, int mode, SourceLocation location) {
    PyObject *raw[MAX_OP_OPERANDS], *edges[MAX_OP_OPERANDS], *output = NULL;
    long long highest = 0;
    Py_ssize_t i;
    int constants = 0;
    Op *op;
    if (dual_type == NULL || batched_type == NULL || n < 1 || n > MAX_OP_OPERANDS || mode < RECORDS || mode == TRACES) return NULL;
    for (i = 0; i < n; i++) { /* twice the level, plus 1 for a tensor */
        PyObject *x = Py_TYPE(args[i]) == core.tensor ? SLOT(args[i], core.raw) : args[i];
        long long rank = is_level_value(x) && level_of(x) != NULL && PyLong_Check(level_of(x)) ? 2 * PyLong_AsLongLong(level_of(x)) + (x != args[i]) : 0;
        if (rank > highest) highest = rank;
    }
    if (highest == 0) return NULL;
    op = op_of(prim);
    if (op == NULL) return NULL;
    for (i = 0; i < n; i++) {
        PyObject *x = args[i];
        edges[i] = Py_None;
        if (Py_TYPE(x) == core.tensor) {
            x = SLOT(x, core.raw);
            edges[i] = SLOT(args[i], core.edge);
            if (x == NULL || edges[i] == NULL || highest % 2 == 0) break;
            if (edges[i] != Py_None && (!is_level_value(x) || PyLong_AsLongLong(level_of(x)) != highest / 2)) break; /* a constant with a history of a lower level */
        } else if (PyArray_CheckExact(x)) {
            if (highest % 2 && !is_constant(x)) break;
            constants |= 1 << i;
        }
        raw[i] = x;
    }
    if (i == n) {
        for (i = 0; i < n; i++) {
            Py_INCREF(raw[i]);
            Py_INCREF(edges[i]);
        }
        output = value_of(prim, raw, n, params);
        if (output != NULL && highest % 2) output = tensor_of_result(op, prim, args, (NodeOperands){raw, edges, raw, n, constants}, params, output, 1, mode, location);
        release(raw, n);
        release(edges, n);
    }
    Py_DECREF(op);
    return output;
}

/* ---- the backward pass */

PyObject *add_levels(PyObject *x, PyObject *y) {
    PyObject *both[] = {x, y};
    return is_level_value(x) || is_level_value(y) ? value_of(add_prim, both, 2, core.no_params) : NULL;
}

/* Run the programs of the VJP rules in the raising error state. */
static int run_rules(Op *op, const Inputs *inputs, PyObject *avals, PyObject *params, PyObject *edges, PyObject **grads) {
    Py_ssize_t i;
    for (i = 0; i < PyTuple_GET_SIZE(edges); i++) {
        const Program *program;
        if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
        program = find_program(op, (int)i, inputs, avals != Py_None, 1, params);
        grads[i] = program == NULL ? NULL : run_ops(program, inputs->values, inputs->count);
        if (grads[i] != NULL && avals != Py_None) grads[i] = unbroadcast(grads[i], PyTuple_GET_ITEM(avals, i));
        if (grads[i] == NULL) return 0;
    }
    return 1;
}

/* Apply a function that makes views of arrays to all arrays of a value, which count axes from the end. */
static PyObject *map_arrays(PyObject *x, PyObject *(*view)(PyArrayObject *)) {
    PyObject *inside, *tangent;
    if (PyArray_CheckExact(x)) return view((PyArrayObject *)x);
    if (!is_level_value(x) || is_usable(x) <= 0) return NULL;
    inside = map_arrays(slot_of(x, dual_primal, batched_payload), view);
    if (is_batched(x)) return new_batched(inside, SLOT(x, batched_level), SLOT(x, batched_shared) == Py_True);
    tangent = inside == NULL || SLOT(x, dual_tangent) == Py_None ? Py_NewRef(Py_None) : map_arrays(SLOT(x, dual_tangent), view);
    return new_dual(inside, tangent, SLOT(x, dual_level));
}

static PyObject *matrix_transpose(PyArrayObject *x) { return PyArray_NDIM(x) < 2 ? NULL : PyArray_SwapAxes(x, PyArray_NDIM(x) - 2, PyArray_NDIM(x) - 1); }

/* x[..., None, :] and x[..., None] */
static PyObject *with_axis(PyArrayObject *x, int at) {
    npy_intp dims[NPY_MAXDIMS];
    PyArray_Dims shape = {dims, PyArray_NDIM(x) + 1};
    int i;
    if (shape.len > NPY_MAXDIMS || at < 0) return NULL;
    for (i = 0; i < shape.len; i++) dims[i] = i == at ? 1 : PyArray_DIM(x, i - (i > at));
    return PyArray_Newshape(x, &shape, NPY_CORDER);
}
static PyObject *as_row(PyArrayObject *x) { return with_axis(x, PyArray_NDIM(x) - 1); }
static PyObject *as_column(PyArrayObject *x) { return with_axis(x, PyArray_NDIM(x)); }

/* prim(x, y), where a function of views may change each operand first */
static PyObject *apply_to_views(PyObject *prim, PyObject *x, PyObject *(*view_x)(PyArrayObject *), PyObject *y, PyObject *(*view_y)(PyArrayObject *)) {
    PyObject *both[] = {view_x == NULL ? Py_NewRef(x) : map_arrays(x, view_x), view_y == NULL ? Py_NewRef(y) : map_arrays(y, view_y)}, *product = NULL;
    if (both[0] != NULL && both[1] != NULL) product = evaluate(prim, both, 2, core.no_params);
    release(both, 2);
    return product;
}

/* The VJP rules of x @ y for matrices and vectors, as rules.contract.contraction_value computes them. */
static int product_rules(Op *op, PyObject *prim, PyObject *g, PyObject *saved, PyObject *avals, PyObject *edges, PyObject **grads) {
    PyObject *y = PyTuple_GET_ITEM(saved, 0), *x = PyTuple_GET_ITEM(saved, 1);
    int for_x = PyTuple_GET_ITEM(edges, 0) != Py_None, for_y = PyTuple_GET_ITEM(edges, 1) != Py_None, ndims = op->product_ndims, k;
    if (float_kind_of(g) < 0 || (for_x && float_kind_of(y) != float_kind_of(g)) || (for_y && float_kind_of(x) != float_kind_of(g))) return 0; /* the rules of complex numbers conjugate */
    if ((for_x && ndim_of_value(y) != ndims % 10) || (for_y && ndim_of_value(x) != ndims / 10) || ndim_of_value(g) != ndims / 10 + ndims % 10 - 2) return 0;
    if (for_x) grads[0] = ndims % 10 == 2 ? apply_to_views(prim, g, NULL, y, matrix_transpose) : ndims == PRODUCT_NDIMS(2, 1) ? apply_to_views(mul_prim, g, as_column, y, as_row) : apply_to_views(mul_prim, g, as_column, y, NULL);
    if (for_y) grads[1] = ndims / 10 == 2 ? apply_to_views(prim, x, matrix_transpose, g, NULL) : ndims == PRODUCT_NDIMS(1, 2) ? apply_to_views(mul_prim, x, as_column, g, as_row) : apply_to_views(mul_prim, x, NULL, g, as_column);
    for (k = 0; k < 2; k++) {
        if (!(k == 0 ? for_x : for_y)) continue;
        if (grads[k] != NULL && avals != Py_None) grads[k] = unbroadcast(grads[k], PyTuple_GET_ITEM(avals, k));
        if (grads[k] == NULL) return 0;
    }
    return 1;
}

/* The VJP rule of a sum or mean over all axes. */
static int total_rules(Op *op, PyObject *g, PyObject *avals, PyObject *params, PyObject **grads) {
    PyObject *shape = avals == Py_None ? NULL : PyTuple_GET_ITEM(PyTuple_GET_ITEM(avals, 0), 0), *each, *expand;
    Py_ssize_t ndim = shape == NULL ? 0 : PyTuple_GET_SIZE(shape), i;
    npy_intp n = 1;
    if (ndim == 0 || float_kind_of(g) < 0 || ndim_of_value(g) != 0 || all_axes(params, (int)ndim) != 1 || dtype_of_value(g) != PyTuple_GET_ITEM(PyTuple_GET_ITEM(avals, 0), 1)) return 0;
    for (i = 0; i < ndim; i++) n *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    each = Py_NewRef(g);
    if (op->reduction == MEAN) {
        PyObject *both[] = {g, PyLong_FromSsize_t(n)};
        Py_SETREF(each, both[1] == NULL ? NULL : evaluate(div_prim, both, 2, core.no_params));
        Py_XDECREF(both[1]);
    }
    expand = each == NULL ? NULL : PyDict_New();
    if (expand != NULL && PyDict_SetItem(expand, shape_name, shape) == 0) grads[0] = evaluate(expand_prim, &each, 1, expand);
    Py_XDECREF(expand);
    Py_XDECREF(each);
    return grads[0] != NULL;
}

static int elementwise_rules(Op *op, PyObject *g, PyObject *saved, PyObject *avals, PyObject *params, PyObject *edges, PyObject **grads) {
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    int done = add_inputs(&inputs, &g, 1) && add_inputs(&inputs, &PyTuple_GET_ITEM(saved, 0), op->nsaves) && add_parameters(&inputs, params) && inputs.kind >= 0;
    if (done) done = run_rules(op, &inputs, avals, params, edges, grads);
    drop_inputs(&inputs);
    return done;
}

int run_level_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    PyObject *prim = SLOT(node, core.prim), *avals, *params = SLOT(node, core.params), *token;
    Py_ssize_t n = PyTuple_GET_SIZE(edges), i;
    int values = is_level_value(g), done = 0;
    Op *op;
    for (i = 0; i < PyTuple_GET_SIZE(saved); i++) values |= is_level_value(PyTuple_GET_ITEM(saved, i));
    if (!values || n > MAX_RULE_OPERANDS || SLOT(node, core.pullback) != SLOT(prim, core.prim_pullback) || SLOT(prim, core.prim_listed) != Py_True || !PyDict_CheckExact(params)) return 0;
    op = op_of(prim);
    if (op == NULL) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(prim);
    Py_INCREF(params);
    avals = Py_NewRef(SLOT(node, core.in_avals));
    if (PyTuple_GET_SIZE(saved) == op->nsaves && (avals == Py_None || (PyTuple_CheckExact(avals) && PyTuple_GET_SIZE(avals) == n)) && (op->elementwise || op->product_ndims || op->reduction) && enter_raising_state(&token) > 0) {
        if (op->elementwise) done = elementwise_rules(op, g, saved, avals, params, edges, grads);
        else if (op->reduction) done = n == 1 && PyTuple_GET_ITEM(edges, 0) != Py_None && total_rules(op, g, avals, params, grads);
        else done = n == 2 && op->nsaves == 2 && product_rules(op, prim, g, saved, avals, edges, grads);
        leave_error_state(token);
    }
    clear_exception();
    if (done == 0 || PyErr_Occurred()) {
        for (i = 0; i < n; i++) Py_CLEAR(grads[i]);
        done = PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(avals);
    Py_DECREF(params);
    Py_DECREF(prim);
    Py_DECREF(op);
    return done;
}

/* ---- connect */

/* connect_levels(Dual, Batched, Level, (add, mul, div, expand)): set the classes, and the primitives that rules of other primitives apply */
static PyObject *connect_levels(PyObject *module, PyObject *args) {
    static const SlotOffset of_dual[] = {{"primal", &dual_primal}, {"tangent", &dual_tangent}, {"level", &dual_level}, {"shape", &dual_shape}, {"dtype", &dual_dtype}, {NULL, NULL}};
    static const SlotOffset of_batched[] = {{"payload", &batched_payload}, {"level", &batched_level}, {"shared", &batched_shared}, {"shape", &batched_shape}, {"dtype", &batched_dtype}, {NULL, NULL}};
    static PyObject **const prims[] = {&add_prim, &mul_prim, &div_prim, &expand_prim};
    PyTypeObject *dual, *batched, *level;
    PyObject *given;
    Py_ssize_t i, n = sizeof(prims) / sizeof(prims[0]);
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O!:connect_levels", &PyType_Type, &dual, &PyType_Type, &batched, &PyType_Type, &level, &PyTuple_Type, &given)) return NULL;
    for (i = 0; i < n && core.primitive != NULL && PyTuple_GET_SIZE(given) == n && PyObject_TypeCheck(PyTuple_GET_ITEM(given, i), core.primitive); i++) {}
    if (i < n) {
        PyErr_SetString(PyExc_TypeError, "connect_levels takes three classes and four primitives, after connect");
        return NULL;
    }
    if (find_slots(dual, of_dual) < 0 || find_slots(batched, of_batched) < 0) return NULL;
    alive_name = PyUnicode_InternFromString("alive");
    lift_name = PyUnicode_InternFromString("lift_leaves");
    shape_name = PyUnicode_InternFromString("shape");
    if (alive_name == NULL || lift_name == NULL || shape_name == NULL) return NULL;
    for (i = 0; i < n; i++) *prims[i] = Py_NewRef(PyTuple_GET_ITEM(given, i)); /* never released: a process imports chainrule once */
    level_type = (PyTypeObject *)Py_NewRef((PyObject *)level);
    dual_type = (PyTypeObject *)Py_NewRef((PyObject *)dual);
    batched_type = (PyTypeObject *)Py_NewRef((PyObject *)batched);
    Py_RETURN_NONE;
}

PyMethodDef level_functions[] = {
    {"connect_levels", connect_levels, METH_VARARGS, "connect_levels(Dual, Batched, Level, (add, mul, div, expand)): the classes of the values of transformations, and primitives"},
    {NULL, NULL, 0, NULL},
};
