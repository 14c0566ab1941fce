/* Op, the C form of a Primitive (rules/primitive.py): computes values, records nodes, and runs VJP rules.

   Rules are Python functions. At first use, rules/programs.py calls a rule with symbolic arrays and records the ufuncs that it calls. If the
   program of their kernels gives the bits of the rule on samples, it replaces the rule from then on. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

#include <math.h>

#define MAX_VARIANTS 48

/* The program of a VJP rule (for one operand), or of the value, for inputs of one kind. The inputs of a rule are the cotangent and the saved
   values; the inputs of a value are the operands. The numbers among the parameters follow. */
struct Variant {
    int operand, kind, broadcast, recorded, usable; /* operand: -1 for the value; usable: 0 if Python must compute it */
    int masks;                                      /* bits of the inputs that are bool */
    /* for each input: the number for which the program was traced, None for any number, False for an array; NULL if no input is a number */
    PyObject *numbers;
    PyObject *params;
    Program program;
};

static PyTypeObject *op_type;
static PyObject *make_op, *trace_value, *trace_rule, *trace_tangent, *python_unbroadcast, *operations;

Op *op_of(PyObject *prim) {
    PyObject *op, *output;
    if (!PyObject_TypeCheck(prim, core.primitive)) return NULL;
    op = SLOT(prim, core.prim_op);
    if (op == NULL) {
        output = PyObject_CallOneArg(make_op, prim);
        if (output == NULL) return NULL;
        if (SLOT(prim, core.prim_op) == NULL) SLOT(prim, core.prim_op) = Py_NewRef(output);
        Py_DECREF(output);
        op = SLOT(prim, core.prim_op);
    }
    return Py_TYPE(op) == op_type ? (Op *)Py_NewRef(op) : NULL;
}

/* ---- recording */

int all_axes(PyObject *params, int ndim) {
    static PyObject *axis, *keepdims;
    PyObject *axes;
    Py_ssize_t i;
    if (axis == NULL && ((axis = PyUnicode_InternFromString("axis")) == NULL || (keepdims = PyUnicode_InternFromString("keepdims")) == NULL)) return -1;
    axes = PyDict_GetItemWithError(params, axis);
    if (axes == NULL || !PyTuple_CheckExact(axes) || PyTuple_GET_SIZE(axes) != ndim || PyDict_GetItemWithError(params, keepdims) != Py_False) return PyErr_Occurred() ? -1 : 0;
    for (i = 0; i < ndim; i++) { /* in order, as written for all axes */
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(axes, i)) || PyLong_AsLong(PyTuple_GET_ITEM(axes, i)) != i - ndim) return 0;
    }
    return 1;
}

static PyObject *divide_by(PyObject *x, npy_intp n) { /* steals x */
    static Function divide;
    PyObject *operands[2], *result;
    if (x == NULL) return NULL;
    if (divide.value == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy"), *ufunc = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "true_divide");
        Py_XDECREF(numpy);
        if (ufunc != NULL) read_function(&divide, ufunc, 2);
        Py_XDECREF(ufunc);
    }
    operands[0] = x;
    operands[1] = divide.value == NULL ? NULL : PyLong_FromSsize_t(n);
    result = operands[1] == NULL ? NULL : apply_function(&divide, 2, operands, 0);
    Py_XDECREF(operands[1]);
    Py_DECREF(x);
    return result;
}

/* Return a result of NumPy. Set MemoryError if it is NULL without an error. */
static PyObject *checked_array(PyObject *array) {
    if (array == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    return array;
}

/* x @ y for matrices, vectors, or stacks of them, as the value of a contraction (rules/contract.py) computes it */
static PyObject *matrix_product(Op *op, PyObject *x, PyObject *y) {
    PyObject *both[] = {x, y}, *token, *result;
    if (PyArray_NDIM((PyArrayObject *)x) != op->product_ndims / 10 || PyArray_NDIM((PyArrayObject *)y) != op->product_ndims % 10) return as_array(call_in_error_state(op->value.value, both, 2, NULL));
    result = product_without_blas(x, y);
    if (result != NULL) return result;
    if (in_sweep()) return enter_pass_error_state() < 0 ? NULL : as_array(checked_array(PyArray_MatrixProduct2(x, y, NULL)));
    if (enter_error_state(&token) < 0) return NULL; /* the caller may be a function of this package */
    result = as_array(checked_array(PyArray_MatrixProduct2(x, y, NULL)));
    leave_error_state(token);
    return result;
}

int add_inputs(Inputs *inputs, PyObject *const *values, Py_ssize_t n) {
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        PyObject *value = values[i];
        int kind = float_kind_of(value);
        if (inputs->count == INPUTS) return 0;
        if (kind >= 0) {
            if (inputs->kind >= 0 && inputs->kind != kind) return 0;
            inputs->kind = kind;
        } else if (is_mask_value(value)) {
            inputs->masks |= 1 << inputs->count;
        } else if (is_number(value)) {
            inputs->numbers = 1;
        } else if (value != Py_None) {
            return 0;
        }
        inputs->values[inputs->count++] = Py_NewRef(value);
    }
    return 1;
}

void drop_inputs(Inputs *inputs) {
    while (inputs->count > 0) Py_DECREF(inputs->values[--inputs->count]);
}

int add_parameters(Inputs *inputs, PyObject *params) {
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(params, &position, &name, &value)) {
        if (is_number(value) && !add_inputs(inputs, &value, 1)) return 0;
    }
    return 1;
}

/* Compute a value that is not a ufunc by its program. NULL without an error: slow path. */
static PyObject *value_by_program(Op *op, PyObject *const *raw, int n, PyObject *params) {
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    const Program *program = NULL;
    PyObject *like = NULL, *result;
    int k;
    for (k = 0; k < n; k++) {
        if (!PyArray_CheckExact(raw[k])) continue;
        if (!PyArray_ISCARRAY_RO((PyArrayObject *)raw[k])) return NULL;
        if (like == NULL || PyArray_NDIM((PyArrayObject *)raw[k]) > PyArray_NDIM((PyArrayObject *)like)) like = raw[k];
    }
    if (like == NULL || PyArray_SIZE((PyArrayObject *)like) > DIRECT_MOST) return NULL;
    if (add_inputs(&inputs, raw, n) && inputs.kind >= 0 && add_parameters(&inputs, params)) program = find_program(op, -1, &inputs, 0, 0, params);
    result = program == NULL ? NULL : run_program(program, like, inputs.values, inputs.count);
    drop_inputs(&inputs);
    return result;
}

static PyObject *reduce_axes(Op *op, PyObject *x, PyObject *params) {
    PyObject *sum = sum_axes(x, params);
    npy_intp n;
    if (sum == NULL || op->reduction != MEAN) return sum;
    if (mean_count(x, params, &n)) return divide_by(sum, n);
    Py_DECREF(sum);
    return NULL;
}

/* Compute the value of an op. Operands may be Python numbers. */
PyObject *op_value(Op *op, PyObject *const *raw, int n, PyObject *params) {
    if (op->reduction && n == 1) {
        int all = all_axes(params, PyArray_NDIM((PyArrayObject *)raw[0]));
        PyObject *sum = all == 1 ? sum_all(raw[0]) : NULL;
        if (sum != NULL) return op->reduction == MEAN ? divide_by(sum, PyArray_SIZE((PyArrayObject *)raw[0])) : sum;
        if (all < 0 || PyErr_Occurred()) return NULL;
        sum = all == 1 ? NULL : reduce_axes(op, raw[0], params);
        if (sum != NULL || PyErr_Occurred()) return sum;
    }
    if (op->statistic && n == 1) {
        PyObject *result = statistic(op->statistic, raw[0], params);
        if (result != NULL || PyErr_Occurred()) return result;
    }
    if (op->join_kind) {
        PyObject *joined = join_arrays(raw, n, params, op->join_kind == STACK);
        if (joined != NULL || PyErr_Occurred()) return joined;
    }
    if (op->product_ndims && n == 2 && kind_of(raw[0]) >= 0 && kind_of(raw[1]) >= 0) return matrix_product(op, raw[0], raw[1]);
    if (op->value.ufunc != NULL && n == op->nin && PyDict_GET_SIZE(params) == 0) return apply_function(&op->value, n, raw, 0);
    if ((op->elementwise || op->along_axis) && n == op->nin) {
        PyObject *result = value_by_program(op, raw, n, params);
        if (result != NULL || PyErr_Occurred()) return result;
    }
    return as_array(call_dict_in_error_state(op->value.value, raw, (size_t)n, params));
}

static PyObject *saved_of(const Op *op, PyObject *const *raw, PyObject *const *edges, int n, PyObject *result) {
    PyObject *saved;
    int i, k, needed = 0;
    if (op->nsaves == 0) return Py_NewRef(core.empty_tuple);
    for (k = 0; k < n; k++) needed |= (edges[k] != Py_None) << k;
    saved = PyTuple_New(op->nsaves);
    for (i = 0; saved != NULL && i < op->nsaves; i++) {
        PyObject *value = !(op->saved_users[i] & needed) ? Py_None : op->saved_index[i] < 0 ? result : raw[op->saved_index[i]];
        PyTuple_SET_ITEM(saved, i, Py_NewRef(value));
    }
    return saved;
}

/* Whether an operand has the shape of a result. -1 error */
static int has_shape_of(PyObject *x, PyObject *out) {
    PyObject *shape, *expected;
    int same = -1;
    if (PyArray_CheckExact(x) && PyArray_CheckExact(out)) return PyArray_SAMESHAPE((PyArrayObject *)x, (PyArrayObject *)out);
    shape = shape_of_value(x);
    expected = shape == NULL ? NULL : shape_of_value(out);
    if (expected != NULL) same = PyObject_RichCompareBool(shape, expected, Py_EQ);
    Py_XDECREF(shape);
    Py_XDECREF(expected);
    return same;
}

/* Return the shapes and dtypes of the operands, arrays or values of transformations, or None, as tape.dispatch._in_avals. */
static PyObject *avals_of(const Op *op, PyObject *const *operands, Py_ssize_t n, PyObject *out) {
    PyObject *dtype = dtype_of_value(out), *avals;
    Py_ssize_t i;
    int needed = op->needs_avals;
    for (i = 0; i < n && !needed; i++) {
        if (!is_number(operands[i])) needed = dtype_of_value(operands[i]) != dtype || (op->elementwise && has_shape_of(operands[i], out) != 1);
        else if (n != 2 || (i == 0 && op->value.ufunc == NULL)) needed = op->elementwise && ndim_of_value(out) > 0;
    }
    if (!needed) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (n == 1 && PyArray_CheckExact(operands[0])) return aval_tuple_of(operands[0]);
    avals = PyTuple_New(n);
    for (i = 0; avals != NULL && i < n; i++) {
        PyObject *own = is_number(operands[i]) ? dtype : dtype_of_value(operands[i]), *shape, *aval;
        if (PyArray_CheckExact(operands[i])) {
            aval = aval_of(operands[i]);
        } else {
            shape = own == NULL ? NULL : shape_of_value(operands[i]);
            aval = shape == NULL ? NULL : PyTuple_Pack(2, shape, own);
            Py_XDECREF(shape);
        }
        if (aval == NULL) Py_CLEAR(avals);
        else PyTuple_SET_ITEM(avals, i, aval);
    }
    return avals;
}

static PyObject *python_protected;

int is_constant(PyObject *x) {
    if (!PyArray_CheckExact(x)) return 0;
    return kind_of(x) >= 0 || PyArray_ISBOOL((PyArrayObject *)x) || (PyArray_ISINTEGER((PyArrayObject *)x) && PyArray_ISNOTSWAPPED((PyArrayObject *)x));
}

/* Replace plain operands among the saved values by copies, as tape.versions.saveable_array does. `plain`: bits of the operands. */
static int protect(PyObject *saved, PyObject *const *raw, int plain, Py_ssize_t n) {
    Py_ssize_t i, k;
    for (i = 0; saved != NULL && i < PyTuple_GET_SIZE(saved); i++) {
        PyObject *value = PyTuple_GET_ITEM(saved, i), *copy;
        for (k = 0; k < n && !(plain >> k & 1 && raw[k] == value); k++) {}
        if (k == n) continue;
        if (PyArray_NBYTES((PyArrayObject *)value) <= COPIED && PyArray_ISCARRAY((PyArrayObject *)value)) copy = checked_array(PyArray_NewCopy((PyArrayObject *)value, NPY_CORDER));
        else copy = PyObject_CallOneArg(python_protected, value);
        if (copy == NULL) return -1;
        PyTuple_SET_ITEM(saved, i, copy);
        Py_DECREF(value);
    }
    return 0;
}

PyObject *node_of(const Op *op, PyObject *prim, NodeOperands operands, PyObject *params, PyObject *out, PyObject *array, SourceLocation location) {
    PyObject *edges = PyTuple_New(operands.count), *saved, *avals;
    Py_ssize_t i;
    for (i = 0; edges != NULL && i < operands.count; i++) PyTuple_SET_ITEM(edges, i, Py_NewRef(operands.edges[i]));
    saved = saved_of(op, operands.raw, operands.edges, (int)operands.count, out);
    if (operands.constants && protect(saved, operands.raw, operands.constants, operands.count) < 0) Py_CLEAR(saved);
    avals = avals_of(op, operands.arrays, operands.count, array);
    return new_node(prim, SLOT(prim, core.prim_pullback), params, edges, saved, avals, location);
}

PyObject *tensor_of_result(const Op *op, PyObject *prim, PyObject *const *args, NodeOperands operands, PyObject *params, PyObject *out, int views, int mode, SourceLocation location) {
    PyObject *output;
    Py_ssize_t i;
    int recorded = 0, numeric = PyArray_CheckExact(out) ? PyArray_TYPE((PyArrayObject *)out) : -1;
    for (i = 0; i < operands.count && !recorded; i++) recorded = operands.edges[i] != Py_None;
    if (!recorded || mode != RECORDS || !op->records || (numeric >= 0 && (PyTypeNum_ISINTEGER(numeric) || PyTypeNum_ISBOOL(numeric)))) {
        output = unrecorded_result(out, prim, args, operands.count, mode, location);
    } else if (numeric >= 0 ? PyTypeNum_ISFLOAT(numeric) || PyTypeNum_ISCOMPLEX(numeric) : float_kind_of(out) >= 0) {
        output = new_tensor(out, node_of(op, prim, operands, params, out, out, location), NULL);
    } else {
        Py_DECREF(out);
        return NULL;
    }
    if (output != NULL && op->view && views && view_of(output, args[0], prim, params, mode) < 0) Py_CLEAR(output);
    return output;
}

static PyObject *record_op(Op *op, PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int views, int mode, SourceLocation location) {
    PyObject *raw[MAX_OP_OPERANDS], *edges[MAX_OP_OPERANDS], *output = NULL;
    Py_ssize_t i;
    int recorded = 0, arrays = 0, constants = 0;
    for (i = 0; i < n; i++) {
        raw[i] = args[i];
        edges[i] = Py_None;
        if (Py_TYPE(args[i]) == core.tensor) {
            raw[i] = SLOT(args[i], core.raw);
            edges[i] = SLOT(args[i], core.edge);
            if (raw[i] == NULL || edges[i] == NULL || (kind_of(raw[i]) < 0 && (edges[i] != Py_None || !is_constant(raw[i])))) return NULL;
            arrays++;
            recorded |= edges[i] != Py_None;
        } else if (is_constant(args[i])) {
            arrays++;
            constants |= 1 << i;
        } else if (!is_number(args[i])) {
            return NULL;
        }
    }
    if (arrays == 0 || (constants && (!recorded || mode != RECORDS || !op->records)) || (op->variadic ? arrays < n : n != op->nin) || SLOT(prim, core.prim_pullback) == NULL) return NULL;
    for (i = 0; i < n; i++) { /* held while other code may run */
        Py_INCREF(raw[i]);
        Py_INCREF(edges[i]);
    }
    out = out == NULL ? op_value(op, raw, (int)n, params) : Py_NewRef(out);
    if (out != NULL && PyArray_CheckExact(out)) output = tensor_of_result(op, prim, args, (NodeOperands){raw, edges, raw, n, constants}, params, out, views, mode, location);
    else Py_XDECREF(out);
    for (i = 0; i < n; i++) {
        Py_DECREF(raw[i]);
        Py_DECREF(edges[i]);
    }
    return output;
}

PyObject *record_as(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int views, int mode, SourceLocation location) {
    Op *op = n < 1 || n > MAX_OP_OPERANDS || mode < RECORDS ? NULL : op_of(prim); /* first, because it may run Python */
    PyObject *output = op == NULL ? NULL : mode == TRACES ? record_traced(op, prim, args, n, params, views) : record_op(op, prim, args, n, params, out, views, mode, location);
    Py_XDECREF(op);
    return output;
}

PyObject *record(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int mode, SourceLocation location) { return record_as(prim, args, n, params, out, 1, mode, location); }

/* ---- VJP rules */

static int is_same_number(PyObject *x, PyObject *y) {
    if (x == y) return 1;
    if (Py_TYPE(x) != Py_TYPE(y) || PyObject_RichCompareBool(x, y, Py_EQ) != 1) return 0;
    return !PyFloat_CheckExact(x) || signbit(PyFloat_AS_DOUBLE(x)) == signbit(PyFloat_AS_DOUBLE(y));
}

/* Whether the numbers among the inputs are those of a variant. */
static int numbers_agree(PyObject *numbers, const Inputs *inputs) {
    int i;
    if (numbers == NULL) return 1;
    if (PyTuple_GET_SIZE(numbers) != inputs->count) return 0;
    for (i = 0; i < inputs->count; i++) {
        PyObject *expected = PyTuple_GET_ITEM(numbers, i);
        if (is_number(inputs->values[i]) != (expected != Py_False)) return 0;
        if (expected != Py_False && expected != Py_None && !is_same_number(expected, inputs->values[i])) return 0;
    }
    return 1;
}

/* Whether two dicts have the same parameters, except for numbers, which are inputs. -1 error */
static int parameters_agree(PyObject *x, PyObject *y) {
    Py_ssize_t position = 0;
    PyObject *name, *value, *other;
    if (x == y) return 1;
    if (PyDict_GET_SIZE(x) != PyDict_GET_SIZE(y)) return 0;
    while (PyDict_Next(x, &position, &name, &value)) {
        other = PyDict_GetItemWithError(y, name);
        if (other == NULL || Py_TYPE(value) != Py_TYPE(other)) return PyErr_Occurred() ? -1 : 0;
        if (value == other || is_number(value)) continue;
        if (!PyUnicode_CheckExact(value) || PyUnicode_Compare(value, other) != 0) return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* For each input the number, or False for an array. */
static PyObject *numbers_of(const Inputs *inputs) {
    PyObject *numbers = PyTuple_New(inputs->count);
    int i;
    for (i = 0; numbers != NULL && i < inputs->count; i++) PyTuple_SET_ITEM(numbers, i, Py_NewRef(is_number(inputs->values[i]) ? inputs->values[i] : Py_False));
    return numbers;
}

static Variant *add_variant(Op *op) {
    Variant *variant, **more = PyMem_Realloc(op->variants, sizeof(Variant *) * (size_t)(op->nvariants + 1));
    if (more != NULL) op->variants = more;
    variant = more == NULL ? NULL : PyMem_Calloc(1, sizeof(Variant)); /* allocated one by one: a program may run while variants are added */
    if (variant == NULL) PyErr_NoMemory();
    else op->variants[op->nvariants++] = variant;
    return variant;
}

/* Trace the VJP rule for an operand, the JVP rule, or the value. */
static PyObject *trace(Op *op, int operand, const Inputs *inputs, int broadcast, int recorded, PyObject *numbers, PyObject *params) {
    if (operand >= TANGENT) return PyObject_CallFunction(trace_tangent, "OiiiOiO", op->prim, operand - TANGENT, inputs->kind, recorded, numbers, inputs->masks, params);
    if (operand < 0) return PyObject_CallFunction(trace_value, "OiOiO", op->prim, inputs->kind, numbers, inputs->masks, params);
    return PyObject_CallFunction(trace_rule, "OiiiiOiO", op->prim, operand, inputs->kind, broadcast, recorded, numbers, inputs->masks, params);
}

const Program *find_program(Op *op, int operand, const Inputs *inputs, int broadcast, int recorded, PyObject *params) {
    PyObject *numbers, *traced, *program, *which;
    Variant *variant;
    int i, agree;
    for (i = 0; i < op->nvariants; i++) {
        variant = op->variants[i];
        if (variant->operand != operand || variant->kind != inputs->kind || variant->broadcast != broadcast || variant->recorded != recorded) continue;
        if (variant->masks != inputs->masks || inputs->numbers != (variant->numbers != NULL) || !numbers_agree(variant->numbers, inputs)) continue;
        agree = parameters_agree(variant->params, params);
        if (agree != 0) return agree > 0 && variant->usable ? &variant->program : NULL;
    }
    if (op->nvariants == MAX_VARIANTS) return NULL;
    numbers = numbers_of(inputs);
    traced = numbers == NULL ? NULL : trace(op, operand, inputs, broadcast, recorded, numbers, params);
    variant = traced == NULL || op->nvariants == MAX_VARIANTS ? NULL : add_variant(op); /* tracing ran other code */
    if (variant != NULL) {
        variant->operand = operand;
        variant->kind = inputs->kind;
        variant->masks = inputs->masks;
        variant->broadcast = broadcast;
        variant->recorded = recorded;
        variant->params = Py_NewRef(params);
        if (inputs->numbers) variant->numbers = Py_NewRef(numbers);
    }
    if (variant != NULL && traced != Py_None && PyArg_ParseTuple(traced, "OO", &which, &program) && fill_program(&variant->program, program, inputs->kind, inputs->masks, operations) >= 0) {
        if (variant->numbers != NULL && PyTuple_CheckExact(which)) Py_SETREF(variant->numbers, Py_NewRef(which)); /* the numbers for which the program was traced */
        variant->usable = 1;
        for (i = 0; recorded && i < variant->program.nsteps; i++) {
            if (variant->program.steps[i].operation == NULL || !is_operation(variant->program.steps[i].operation)) variant->usable = 0;
        }
    }
    Py_XDECREF(numbers);
    Py_XDECREF(traced);
    return variant != NULL && variant->usable && !PyErr_Occurred() ? &variant->program : NULL;
}

/* Whether an array has the shape and dtype of a (shape, dtype) pair. */
static int has_aval(PyObject *x, PyObject *aval) {
    PyArrayObject *array = (PyArrayObject *)x;
    PyObject *shape = PyTuple_GET_ITEM(aval, 0);
    Py_ssize_t i, ndim = PyTuple_GET_SIZE(shape);
    if (x == NULL || !PyArray_CheckExact(x) || PyArray_NDIM(array) != ndim || (PyObject *)PyArray_DESCR(array) != PyTuple_GET_ITEM(aval, 1)) return 0;
    for (i = 0; i < ndim && PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) == PyArray_DIM(array, (int)i); i++) {}
    return i == ndim;
}

/* Steals g. As rules.rules.unbroadcast. */
PyObject *unbroadcast(PyObject *g, PyObject *aval) {
    PyObject *shape = PyTuple_GET_ITEM(aval, 0), *dtype = PyTuple_GET_ITEM(aval, 1), *result;
    if (has_aval(g, aval)) return g;
    if (is_level_value(g) && same_aval(g, aval)) return g;
    result = PyArray_CheckExact(g) ? sum_rows(g, aval) : NULL;
    if (result == NULL && !PyErr_Occurred()) {
        PyObject *args[] = {g, shape, dtype};
        result = call_in_error_state(python_unbroadcast, args, 3, NULL);
    }
    Py_DECREF(g);
    return result;
}

static PyObject *transposed(PyObject *x) { return checked_array(PyArray_SwapAxes((PyArrayObject *)x, PyArray_NDIM((PyArrayObject *)x) - 2, PyArray_NDIM((PyArrayObject *)x) - 1)); }

static int product_rule(Op *op, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    int k, ndim = PyArray_NDIM((PyArrayObject *)g);
    for (k = 0; k < 2; k++) {
        PyObject *other = PyTuple_GET_ITEM(saved, k);
        if (PyTuple_GET_ITEM(edges, k) != Py_None && (ndim < 2 || kind_of(other) < 0 || PyArray_NDIM((PyArrayObject *)other) != ndim)) return 0;
    }
    for (k = 0; k < 2; k++) { /* the rule for x reads y, the rule for y reads x */
        PyObject *turned;
        if (PyTuple_GET_ITEM(edges, k) == Py_None) continue;
        turned = transposed(PyTuple_GET_ITEM(saved, k));
        grads[k] = turned == NULL ? NULL : k == 0 ? matrix_product(op, g, turned) : matrix_product(op, turned, g);
        Py_XDECREF(turned);
        if (grads[k] == NULL) return -1;
    }
    return 1;
}

/* The VJP of a sum over all axes broadcasts the cotangent. The VJP of a mean divides it first. */
static int total_rule(Op *op, PyObject *avals, PyObject *params, PyObject *g, PyObject **grads) {
    PyObject *aval, *shape, *number;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS] = {0}, n = 1;
    int kind = kind_of(g), ndim, i, all;
    if (kind < 0 || PyArray_NDIM((PyArrayObject *)g) != 0 || !PyTuple_CheckExact(avals)) return 0;
    aval = PyTuple_GET_ITEM(avals, 0);
    shape = PyTuple_GET_ITEM(aval, 0);
    ndim = (int)PyTuple_GET_SIZE(shape);
    all = all_axes(params, ndim);
    if (all != 1 || PyTuple_GET_ITEM(aval, 1) != (PyObject *)core.dtypes[kind]) return all < 0 ? -1 : 0;
    for (i = 0; i < ndim; i++) n *= dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    if (n == 0) return 0;
    number = op->reduction == MEAN ? divide_by(Py_NewRef(g), n) : Py_NewRef(g);
    if (number == NULL) return -1;
    if (ndim == 0) {
        grads[0] = number;
        return 1;
    }
    Py_INCREF(core.dtypes[kind]);
    grads[0] = checked_array(PyArray_NewFromDescr(&PyArray_Type, core.dtypes[kind], ndim, dims, strides, PyArray_DATA((PyArrayObject *)number), NPY_ARRAY_WRITEABLE, NULL));
    if (grads[0] == NULL) {
        Py_DECREF(number);
        return -1;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)grads[0], number) == 0) return 1; /* SetBaseObject stole the reference */
    Py_CLEAR(grads[0]);
    return -1;
}

/* The VJP of a sum or mean over some axes. */
static int axes_rule(Op *op, PyObject *avals, PyObject *params, PyObject *g, PyObject **grads) {
    PyObject *each = Py_NewRef(g);
    if (kind_of(g) < 0 || !PyTuple_CheckExact(avals) || !PyArray_ISCARRAY_RO((PyArrayObject *)g) || PyArray_SIZE((PyArrayObject *)g) > DIRECT_MOST) {
        Py_DECREF(each);
        return 0;
    }
    grads[0] = broadcast_axes(each, PyTuple_GET_ITEM(avals, 0), params);
    if (grads[0] != NULL && op->reduction == MEAN) { /* only now, because the division may warn, and must not be repeated by Python */
        npy_intp n = PyArray_SIZE((PyArrayObject *)grads[0]) / PyArray_SIZE((PyArrayObject *)g);
        Py_CLEAR(grads[0]);
        each = divide_by(each, n);
        if (each != NULL) grads[0] = broadcast_axes(each, PyTuple_GET_ITEM(avals, 0), params);
    }
    Py_XDECREF(each);
    return grads[0] != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

static void clear_grads(PyObject **grads, Py_ssize_t n) {
    while (n-- > 0) Py_CLEAR(grads[n]);
}

static int run_programs(Op *op, PyObject *avals, PyObject *params, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    int done = add_inputs(&inputs, &g, 1) && add_inputs(&inputs, &PyTuple_GET_ITEM(saved, 0), op->nsaves) && add_parameters(&inputs, params);
    for (i = 0; i < n && done == 1; i++) {
        const Program *program;
        if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
        program = find_program(op, (int)i, &inputs, avals != Py_None, 0, params);
        grads[i] = program == NULL ? NULL : run_program(program, g, inputs.values, inputs.count);
        if (grads[i] == NULL) done = PyErr_Occurred() ? -1 : 0;
    }
    drop_inputs(&inputs);
    for (i = 0; i < n && done == 1 && avals != Py_None; i++) { /* only now, because these sums may warn, and must not be repeated by Python */
        if (grads[i] != NULL && (grads[i] = unbroadcast(grads[i], PyTuple_GET_ITEM(avals, i))) == NULL) done = -1;
    }
    return done;
}

/* Whether all operands to which edges lead have the shape and dtype of a cotangent. */
static int have_aval_of(PyObject *g, PyObject *avals, PyObject *edges) {
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    if (avals == Py_None) return 1;
    if (!PyTuple_CheckExact(avals) || PyTuple_GET_SIZE(avals) != n) return 0;
    for (i = 0; i < n && (PyTuple_GET_ITEM(edges, i) == Py_None || has_aval(g, PyTuple_GET_ITEM(avals, i))); i++) {}
    return i == n;
}

int rule_programs(PyObject *node, PyObject *g, PyObject *edges, PyObject **found, Inputs *inputs, const Program **programs) {
    PyObject *prim = Py_NewRef(SLOT(node, core.prim)), *saved = Py_NewRef(SLOT(node, core.saved)), *params = Py_NewRef(SLOT(node, core.params)), *avals = Py_NewRef(SLOT(node, core.in_avals));
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    Op *op = NULL;
    int done = 0;
    *inputs = (Inputs){{NULL}, 0, -1, 0, 0};
    if (n <= MAX_RULE_OPERANDS && have_aval_of(g, avals, edges) && SLOT(node, core.pullback) == SLOT(prim, core.prim_pullback) && PyDict_CheckExact(params) && PyTuple_CheckExact(saved)) op = op_of(prim);
    if (op != NULL && op->elementwise && PyTuple_GET_SIZE(saved) == op->nsaves) {
        done = add_inputs(inputs, &g, 1) && add_inputs(inputs, &PyTuple_GET_ITEM(saved, 0), op->nsaves) && add_parameters(inputs, params);
        for (i = 0; i < n && done; i++) {
            if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
            programs[i] = find_program(op, (int)i, inputs, avals != Py_None, 0, params);
            done = programs[i] != NULL;
        }
    }
    if (PyErr_Occurred()) done = -1;
    if (done != 1) {
        drop_inputs(inputs);
        Py_CLEAR(op);
    }
    Py_DECREF(avals);
    Py_DECREF(params);
    Py_DECREF(saved);
    Py_DECREF(prim);
    *found = (PyObject *)op;
    return done;
}

/* Run the VJP rules of an op. The caller releases `grads`, also after a failure. */
static int run_op_rule(Op *op, PyObject *avals, PyObject *params, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    if (!PyDict_CheckExact(params)) return 0;
    if (op->join_kind) return split_cotangent(g, avals, edges, params, op->join_kind == STACK, grads);
    if (op->reduction) {
        if (n != 1) return 0;
        if (PyTuple_GET_ITEM(edges, 0) == Py_None) return 1;
        return PyArray_NDIM((PyArrayObject *)g) ? axes_rule(op, avals, params, g, grads) : total_rule(op, avals, params, g, grads);
    }
    if (op->product_ndims == PRODUCT_NDIMS(2, 2)) return avals != Py_None || n != 2 || PyTuple_GET_SIZE(saved) != 2 ? 0 : product_rule(op, g, saved, edges, grads);
    if (!(op->elementwise || op->along_axis) || PyTuple_GET_SIZE(saved) != op->nsaves) return 0;
    return avals != Py_None && (!PyTuple_CheckExact(avals) || PyTuple_GET_SIZE(avals) != n) ? 0 : run_programs(op, avals, params, g, saved, edges, grads);
}

int run_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    PyObject *prim = SLOT(node, core.prim), *avals = SLOT(node, core.in_avals), *params = SLOT(node, core.params);
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    Op *op;
    int done = 0;
    if (kind_of(g) < 0 || n > MAX_RULE_OPERANDS || SLOT(node, core.pullback) != SLOT(prim, core.prim_pullback) || !PyTuple_CheckExact(saved)) return 0;
    Py_INCREF(prim);
    Py_INCREF(avals);
    Py_INCREF(params);
    op = op_of(prim);
    if (op != NULL) done = run_op_rule(op, avals, params, g, saved, edges, grads);
    else if (PyErr_Occurred()) done = -1;
    if (done != 1) clear_grads(grads, n);
    Py_XDECREF(op);
    Py_DECREF(params);
    Py_DECREF(avals);
    Py_DECREF(prim);
    return done;
}

/* ---- traced values: programs as calls of their ufuncs */

/* The number of elements of the largest array. */
static npy_intp largest_size(const Inputs *inputs) {
    npy_intp size = 0;
    int i;
    for (i = 0; i < inputs->count; i++) {
        if (PyArray_CheckExact(inputs->values[i]) && PyArray_SIZE((PyArrayObject *)inputs->values[i]) > size) size = PyArray_SIZE((PyArrayObject *)inputs->values[i]);
    }
    return size;
}

PyObject *trace_op_value(const Recording *r, Op *op, PyObject *const *arrays, PyObject *const *operands, int n, int one_step) {
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    PyObject *values[VALUES], *traced = NULL;
    const Program *program;
    if (!op->elementwise || n != op->nin) return NULL;
    if (add_inputs(&inputs, arrays, n) && inputs.kind >= 0 && (program = find_program(op, -1, &inputs, 0, 0, core.no_params)) != NULL && largest_size(&inputs) <= program->max_size && (!one_step || (program->nsteps == 1 && program->steps[0].exact))) {
        memcpy(values, operands, sizeof(PyObject *) * (size_t)n);
        traced = trace_program(r, program, values, SLOT(op->prim, core.prim_name));
    }
    drop_inputs(&inputs);
    return traced;
}

int trace_op_rules(const Recording *r, PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads) {
    PyObject *prim = SLOT(node, core.prim), *avals = SLOT(node, core.in_avals), *params = SLOT(node, core.params), *arrays[INPUTS], *values[VALUES], *name;
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges), nsaved = PyTuple_GET_SIZE(saved);
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    Op *op;
    int done = 0;
    if (params != core.no_params && !(PyDict_CheckExact(params) && PyDict_GET_SIZE(params) == 0)) return 0;
    if (SLOT(node, core.pullback) != SLOT(prim, core.prim_pullback) || nsaved + 1 > INPUTS || (avals != Py_None && (!PyTuple_CheckExact(avals) || PyTuple_GET_SIZE(avals) != n))) return 0;
    values[0] = g;
    for (i = 0; i < nsaved; i++) values[i + 1] = PyTuple_GET_ITEM(saved, i);
    Py_INCREF(prim);
    Py_INCREF(avals);
    name = current_op_name(r);
    op = name == NULL ? NULL : op_of(prim);
    if (op == NULL) goto end;
    for (i = 0; i <= nsaved; i++) {
        arrays[i] = is_number(values[i]) || values[i] == Py_None || PyArray_CheckExact(values[i]) ? values[i] : any_array_of_traced(r, values[i]);
        if (arrays[i] == NULL) goto end;
    }
    done = op->elementwise && nsaved == op->nsaves && add_inputs(&inputs, arrays, nsaved + 1) && inputs.kind >= 0;
    for (i = 0; i < n && done == 1 && avals != Py_None; i++) { /* a sum over broadcast axes: the template of the whole rule has its calls */
        if (PyTuple_GET_ITEM(edges, i) != Py_None && !has_aval(arrays[0], PyTuple_GET_ITEM(avals, i))) done = 0;
    }
    for (i = 0; i < n && done == 1; i++) {
        const Program *program;
        if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
        program = find_program(op, (int)i, &inputs, avals != Py_None, 0, core.no_params);
        grads[i] = program == NULL || largest_size(&inputs) > program->max_size ? NULL : trace_program(r, program, values, name);
        if (grads[i] != NULL && avals != Py_None && !has_aval(any_array_of_traced(r, grads[i]), PyTuple_GET_ITEM(avals, i))) grads[i] = unbroadcast(grads[i], PyTuple_GET_ITEM(avals, i));
        if (grads[i] == NULL) done = PyErr_Occurred() ? -1 : 0;
    }
    drop_inputs(&inputs);
end:
    Py_XDECREF(op);
    Py_XDECREF(name);
    Py_DECREF(avals);
    Py_DECREF(prim);
    return done == 0 && PyErr_Occurred() ? -1 : done;
}

/* Whether each step is an operation on tensors, with at most one number. */
static int is_recordable(const Program *program, PyObject *const *inputs, int ninputs) {
    int i, k, numbers[2];
    if (program->reads >> ninputs) return 0;
    for (i = 0; i < program->nsteps; i++) {
        const Step *step = &program->steps[i];
        for (k = 0; k < step->nin && k < 2; k++) {
            int from = step->operands[k];
            numbers[k] = from >= INPUTS + CONSTANTS ? 0 : from >= INPUTS ? 1 : is_number(inputs[from]);
            if (from < INPUTS && inputs[from] == Py_None) return 0;
        }
        if (step->nin > 2 || (step->nin == 1 && numbers[0]) || (step->nin == 2 && numbers[0] && (numbers[1] || step->reflected == NULL))) return 0;
    }
    return 1;
}

/* Run a program on tensors: each step calls the operation that records it. `values` has the inputs. */
static PyObject *record_program(const Program *program, PyObject **values, SourceLocation location) {
    PyObject *result = NULL;
    int k, done;
    if (program->result == 0) return Py_NewRef(values[0]);
    for (k = 0; k < program->nconstants; k++) values[INPUTS + k] = program->numbers[k];
    for (done = 0; done < program->nsteps; done++) {
        const Step *step = &program->steps[done];
        PyObject *operands[2], *operation = step->operation, *output;
        for (k = 0; k < step->nin; k++) operands[k] = values[step->operands[k]];
        if (step->nin == 2 && is_number(operands[0])) { /* operations take the tensor first */
            PyObject *number = operands[0];
            operation = step->reflected;
            operands[0] = operands[1];
            operands[1] = number;
        }
        output = operate(operation, operands, step->nin, location);
        if (output == NULL && !PyErr_Occurred()) output = call_in_error_state(operation, operands, (size_t)step->nin, NULL);
        values[INPUTS + CONSTANTS + done] = output;
        if (output == NULL) goto end;
    }
    result = Py_NewRef(values[program->result]);
end:
    while (done-- > 0) Py_DECREF(values[INPUTS + CONSTANTS + done]);
    return result;
}

/* Make tensors of saved values, as tape.saved.saved_tensors. 1 done, 0 slow path, -1 error. save_from: the index of the saved operand, or -1 for
   the result. */
static int saved_tensors(PyObject *node, PyObject *edges, PyObject *saved, PyObject *save_from, PyObject **tensors) {
    Py_ssize_t i;
    for (i = 0; i < PyTuple_GET_SIZE(saved); i++) {
        PyObject *value = PyTuple_GET_ITEM(saved, i), *edge = node;
        Py_ssize_t from = PyLong_AsSsize_t(PyTuple_GET_ITEM(save_from, i));
        if (from >= PyTuple_GET_SIZE(edges)) break;
        if (from >= 0) edge = PyTuple_GET_ITEM(edges, from);
        tensors[i] = value == Py_None || is_number(value) ? Py_NewRef(value) : kind_of(value) >= 0 ? new_tensor(Py_NewRef(value), Py_NewRef(edge), Py_None) : NULL;
        if (tensors[i] == NULL) break;
    }
    if (i == PyTuple_GET_SIZE(saved)) return 1;
    clear_grads(tensors, i);
    return PyErr_Occurred() ? -1 : 0;
}

static int record_programs(Op *op, PyObject *node, PyObject *node_edges, PyObject *saved, PyObject *save_from, PyObject *g, PyObject *edges, PyObject **grads, SourceLocation location) {
    PyObject *values[VALUES], *tensors[MAX_SAVED] = {NULL};
    const Program *programs[MAX_RULE_OPERANDS] = {NULL};
    Inputs inputs = {{NULL}, 0, -1, 0, 0};
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    int done = add_inputs(&inputs, &SLOT(g, core.raw), 1) && add_inputs(&inputs, &PyTuple_GET_ITEM(saved, 0), op->nsaves) && !inputs.masks;
    if (done == 1) done = saved_tensors(node, node_edges, saved, save_from, tensors);
    values[0] = g;
    for (i = 0; i < op->nsaves; i++) values[1 + i] = tensors[i];
    for (i = 0; i < n && done == 1; i++) {
        if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
        programs[i] = find_program(op, (int)i, &inputs, 0, 1, core.no_params);
        if (programs[i] == NULL || !is_recordable(programs[i], values, 1 + op->nsaves)) done = PyErr_Occurred() ? -1 : 0;
    }
    for (i = 0; i < n && done == 1; i++) { /* only now, because the operations may warn, and must not be repeated by Python */
        if (programs[i] != NULL && (grads[i] = record_program(programs[i], values, location)) == NULL) done = -1;
    }
    clear_grads(tensors, MAX_SAVED);
    drop_inputs(&inputs);
    return done;
}

/* The primitive `expand`. Return a borrowed reference. */
static PyObject *expand_primitive(void) {
    static PyObject *expand;
    if (expand == NULL) {
        PyObject *module = PyImport_ImportModule("chainrule._src.rules.primitive"), *table = module == NULL ? NULL : PyObject_GetAttrString(module, "TABLE");
        PyObject *found = table == NULL ? NULL : PyMapping_GetItemString(table, "expand");
        Py_XDECREF(table);
        Py_XDECREF(module);
        if (found != NULL && expand == NULL) expand = found;
        else Py_XDECREF(found);
    }
    return expand;
}

/* The VJP of a sum over all axes of a recorded pass expands the cotangent. */
static int record_total(Op *op, PyObject *avals, PyObject *params, PyObject *g, PyObject **grads, SourceLocation location) {
    PyObject *prim = expand_primitive(), *expanded = NULL, *shape;
    int done, mode = current_mode();
    if (prim == NULL || mode < 0) return -1;
    if (mode != RECORDS) return 0;
    done = total_rule(op, avals, params, SLOT(g, core.raw), &expanded);
    if (done != 1) return done;
    if (expanded == SLOT(g, core.raw)) {
        grads[0] = Py_NewRef(g);
    } else {
        shape = Py_BuildValue("{sO}", "shape", PyTuple_GET_ITEM(PyTuple_GET_ITEM(avals, 0), 0));
        if (shape != NULL) grads[0] = record(prim, &g, 1, shape, expanded, mode, location);
        Py_XDECREF(shape);
    }
    Py_DECREF(expanded);
    return grads[0] != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

int record_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads, SourceLocation location) {
    PyObject *prim = SLOT(node, core.prim), *node_edges = SLOT(node, core.edges), *params = SLOT(node, core.params), *save_from = SLOT(prim, core.prim_save_from);
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    PyObject *avals = SLOT(node, core.in_avals);
    Op *op;
    int done = 0;
    if (!PyTuple_CheckExact(saved) || Py_TYPE(g) != core.tensor || n > MAX_RULE_OPERANDS) return 0;
    if (kind_of(SLOT(g, core.raw)) < 0 || SLOT(prim, core.prim_tied) != Py_False || SLOT(node, core.pullback) != SLOT(prim, core.prim_pullback) || !PyDict_CheckExact(params)) return 0;
    if (n == 1 && PyTuple_CheckExact(avals) && PyTuple_GET_ITEM(edges, 0) != Py_None && SLOT(g, core.edge) != NULL) {
        op = op_of(prim);
        if (op == NULL) return PyErr_Occurred() ? -1 : 0;
        Py_INCREF(avals);
        Py_INCREF(params);
        if (op->reduction == SUM) done = record_total(op, avals, params, g, grads, location);
        Py_DECREF(params);
        Py_DECREF(avals);
        Py_DECREF(op);
        return done;
    }
    if (avals != Py_None || PyDict_GET_SIZE(params) != 0 || save_from == NULL || !PyTuple_CheckExact(save_from) || !PyTuple_CheckExact(node_edges)) return 0;
    Py_INCREF(prim);
    Py_INCREF(node_edges);
    Py_INCREF(save_from);
    op = op_of(prim);
    if (op == NULL) done = PyErr_Occurred() ? -1 : 0;
    else if (op->elementwise && PyTuple_GET_SIZE(saved) == op->nsaves && PyTuple_GET_SIZE(save_from) == op->nsaves) done = record_programs(op, node, node_edges, saved, save_from, g, edges, grads, location);
    if (done != 1) clear_grads(grads, n);
    Py_XDECREF(op);
    Py_DECREF(save_from);
    Py_DECREF(node_edges);
    Py_DECREF(prim);
    return done;
}

/* ---- the type */

/* Op(prim, value, operands, saves, records, elementwise, variadic, needs_avals, view, reduction, product, along=False, joins=0, multilinear=False,
   batch=0, statistic=0); operands: their number; saves: for each saved value (operand or -1 for the result, bits of the operands whose VJP rules read it) */
static PyObject *op_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"prim", "value", "operands", "saves", "records", "elementwise", "variadic", "needs_avals", "view", "reduction", "product", "along", "joins", "multilinear", "batch", "statistic", NULL};
    PyObject *prim, *value, *saves;
    int nin, records, elementwise, variadic, needs_avals, view, reduction, product_ndims, along_axis = 0, join_kind = 0, multilinear = 0, batch_form = BATCH_IN_PYTHON, statistic = 0, i;
    Op *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOiO!pppppii|pipii:Op", names, &prim, &value, &nin, &PyTuple_Type, &saves, &records, &elementwise, &variadic, &needs_avals, &view, &reduction, &product_ndims, &along_axis, &join_kind, &multilinear, &batch_form, &statistic)) return NULL;
    if (PyTuple_GET_SIZE(saves) > MAX_SAVED) {
        PyErr_SetString(PyExc_ValueError, "an Op saves at most four values");
        return NULL;
    }
    self = (Op *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    op_type = type;
    self->prim = Py_NewRef(prim);
    self->nin = nin;
    self->records = records;
    self->elementwise = elementwise;
    self->variadic = variadic;
    self->needs_avals = needs_avals;
    self->view = view;
    self->reduction = reduction;
    self->product_ndims = product_ndims;
    self->along_axis = along_axis;
    self->join_kind = join_kind;
    self->statistic = statistic;
    self->multilinear = multilinear;
    self->batch_form = batch_form;
    self->nsaves = (int)PyTuple_GET_SIZE(saves);
    read_function(&self->value, value, nin);
    for (i = 0; i < self->nsaves; i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saves, i), "ii", &self->saved_index[i], &self->saved_users[i])) {
            Py_DECREF(self);
            return NULL;
        }
        if (self->saved_index[i] < -1 || self->saved_index[i] >= (nin > MAX_OP_OPERANDS ? MAX_OP_OPERANDS : nin)) {
            PyErr_SetString(PyExc_ValueError, "an Op saves only its operands and its result");
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static int op_traverse(PyObject *object, visitproc visit, void *arg) {
    Op *self = (Op *)object;
    int i, k;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->prim);
    for (i = 0; i < self->nvariants; i++) { /* not in op_clear: their programs may be running */
        Py_VISIT(self->variants[i]->numbers);
        Py_VISIT(self->variants[i]->params);
        for (k = 0; k < self->variants[i]->program.nsteps; k++) {
            Py_VISIT(self->variants[i]->program.steps[k].ufunc);
            Py_VISIT(self->variants[i]->program.steps[k].operation);
            Py_VISIT(self->variants[i]->program.steps[k].reflected);
        }
    }
    return visit_function(&self->value, visit, arg);
}

static int op_clear(PyObject *object) {
    Op *self = (Op *)object;
    Py_CLEAR(self->prim);
    clear_function(&self->value);
    return 0;
}

static void op_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Op *self = (Op *)object;
    int i;
    PyObject_GC_UnTrack(object);
    op_clear(object);
    for (i = 0; i < self->nvariants; i++) {
        clear_program(&self->variants[i]->program);
        Py_XDECREF(self->variants[i]->numbers);
        Py_XDECREF(self->variants[i]->params);
        PyMem_Free(self->variants[i]);
    }
    PyMem_Free(self->variants);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *op_programs(PyObject *object, void *unused) {
    Op *self = (Op *)object;
    int i, usable = 0, rules = 0;
    (void)unused;
    for (i = 0; i < self->nvariants; i++) {
        if (self->variants[i]->operand < 0) continue;
        rules++;
        usable += self->variants[i]->usable;
    }
    return Py_BuildValue("(ii)", usable, rules);
}

/* For float and double: 1 if the value runs as a program, -1 if it is called, 0 if it was not traced yet. */
static PyObject *op_value_states(PyObject *object, void *unused) {
    Op *self = (Op *)object;
    int i, states[2] = {0, 0};
    (void)unused;
    for (i = 0; i < self->nvariants; i++) {
        if (self->variants[i]->operand < 0) states[self->variants[i]->kind] = self->variants[i]->usable ? 1 : -1;
    }
    return Py_BuildValue("(ii)", states[0], states[1]);
}

static PyObject *op_get_value(PyObject *object, void *unused) {
    (void)unused;
    return Py_XNewRef(((Op *)object)->value.value);
}

static int op_set_value(PyObject *object, PyObject *value, void *unused) {
    (void)unused;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "the value of an Op cannot be deleted");
        return -1;
    }
    Py_XSETREF(((Op *)object)->value.value, Py_NewRef(value));
    return 0;
}

static PyGetSetDef op_getset[] = {
    {"value", op_get_value, op_set_value, "the function that computes the value of large arrays", NULL},
    {"programs", op_programs, NULL, "(VJP rules that run as programs, VJP rules that were traced)", NULL},
    {"value_states", op_value_states, NULL, "for float and double: 1 if the value runs as a program, -1 if it is called, 0 if it was not traced yet", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot op_slots[] = {
    {Py_tp_new, op_new},
    {Py_tp_dealloc, op_dealloc},
    {Py_tp_traverse, op_traverse},
    {Py_tp_clear, op_clear},
    {Py_tp_getset, op_getset},
    {0, NULL},
};
PyType_Spec op_spec = {"chainrule._src.native._loops.Op", sizeof(Op), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, op_slots};

static PyObject *python_bind, *python_record_unary, *value_name;

/* Compute the value of an op if all operands are arrays and numbers, and no mode is active. NULL without an error: slow path. */
static PyObject *value_of_constants(PyObject *prim, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *value, *result;
    Py_ssize_t i;
    if (!is_fast_path()) return NULL;
    for (i = 0; i < n; i++) {
        PyObject *x = operands[i];
        if (!PyArray_CheckExact(x) && !PyFloat_CheckExact(x) && !PyLong_CheckExact(x) && !PyArray_IsScalar(x, Generic)) return NULL;
    }
    value = PyObject_GetAttr(prim, value_name);
    result = value == NULL ? NULL : call_dict_in_error_state(value, operands, (size_t)n, params);
    Py_XDECREF(value);
    return result;
}

/* bind(prim, operands, params) and record_unary(prim, x, params, out=None), as in tape.dispatch */
static PyObject *bind(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    int mode = nargs == 3 && PyDict_CheckExact(args[2]) && (PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])) ? current_mode() : SLOW_PATH;
    if (mode != SLOW_PATH) {
        PyObject *operands = PySequence_Tuple(args[1]), *output = NULL;
        Py_ssize_t n = operands == NULL ? 0 : PyTuple_GET_SIZE(operands);
        if (operands != NULL && mode >= 0) output = record(args[0], &PyTuple_GET_ITEM(operands, 0), n, args[2], NULL, mode, current_frame);
        if (operands != NULL && output == NULL && mode >= 0 && !PyErr_Occurred()) output = bind_levels(args[0], &PyTuple_GET_ITEM(operands, 0), n, args[2], mode, current_frame);
        if (operands != NULL && output == NULL && !PyErr_Occurred()) output = value_of_constants(args[0], &PyTuple_GET_ITEM(operands, 0), n, args[2]);
        Py_XDECREF(operands);
        if (output != NULL || PyErr_Occurred()) return output;
    }
    return call_in_error_state(python_bind, args, (size_t)nargs, NULL);
}

static PyObject *record_unary(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    int mode = (nargs == 3 || nargs == 4) && PyDict_CheckExact(args[2]) ? current_mode() : SLOW_PATH;
    if (mode != SLOW_PATH) {
        PyObject *out = nargs == 3 || args[3] == Py_None || mode == TRACES ? NULL : args[3];
        PyObject *output = mode < 0 ? NULL : record(args[0], args + 1, 1, args[2], out, mode, current_frame);
        if (output != NULL || PyErr_Occurred()) return output;
    }
    return call_in_error_state(python_record_unary, args, (size_t)nargs, NULL);
}

/* connect_dispatch(bind, record_unary): set the Python functions for the slow path */
static PyObject *connect_dispatch(PyObject *module, PyObject *args) {
    PyObject *both, *unary;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:connect_dispatch", &both, &unary)) return NULL;
    if (value_name == NULL && (value_name = PyUnicode_InternFromString("value")) == NULL) return NULL;
    Py_XSETREF(python_bind, Py_NewRef(both));
    Py_XSETREF(python_record_unary, Py_NewRef(unary));
    Py_RETURN_NONE;
}

PyMethodDef op_functions[] = {
    {"connect_dispatch", connect_dispatch, METH_VARARGS, "connect_dispatch(bind, record_unary): set the Python functions for the slow path"},
    {"bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL, "tape.dispatch.bind"},
    {"record_unary", (PyCFunction)(void (*)(void))record_unary, METH_FASTCALL, "tape.dispatch.record_unary"},
    {NULL, NULL, 0, NULL},
};

int connect_ops(PyObject *make, PyObject *value, PyObject *rule, PyObject *tangent, PyObject *unbroadcast_function, PyObject *operation_table, PyObject *protected_function) {
    python_protected = protected_function;
    make_op = make;
    trace_value = value;
    trace_rule = rule;
    trace_tangent = tangent;
    python_unbroadcast = unbroadcast_function;
    operations = operation_table;
    return 0;
}
