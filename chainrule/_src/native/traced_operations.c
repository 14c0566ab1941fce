/* Record operations on tensors of traced values: append the calls of an operation to the trace, and put a node on the tape that saves traced
   values. tape/dispatch.py (record) and interpreters/recorder.py (record_primitive) do the same in Python, for all operations. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

/* the operands of an operation: tensors of traced values, plain arrays and numbers */
typedef struct {
    PyObject *raw[MAX_OP_OPERANDS], *arrays[MAX_OP_OPERANDS], *edges[MAX_OP_OPERANDS]; /* raw: traced values and numbers, owned; arrays: of the traced values, owned */
    Py_ssize_t count;
    int recorded, tensors;
    PyArray_Descr *dtype; /* float or double if all arrays have it, else NULL */
} TracedOperands;

static void release_operands(TracedOperands *operands) {
    while (operands->count > 0) {
        operands->count--;
        Py_DECREF(operands->raw[operands->count]);
        Py_DECREF(operands->arrays[operands->count]);
        Py_DECREF(operands->edges[operands->count]);
    }
}

/* Whether an op may have the bits of the operator that NumPy applies to plain arrays: for other ufuncs of two operands, such as power, they may differ. */
static int is_same_on_arrays(const Op *op, PyObject *params) {
    if (PyDict_GET_SIZE(params) > 0) return 0;
    return op->value.ufunc == NULL ? op->elementwise && op->nin == 2 : op->nin == 1 || op->value.exact;
}

/* Borrow the array of an operand, or the number itself; NULL where Python must read it. */
static PyObject *array_of_operand(const Recording *r, PyObject *x) {
    PyObject *edge, *array;
    if (Py_TYPE(x) != core.tensor) return kind_of(x) >= 0 || is_number(x) ? x : NULL;
    edge = SLOT(x, core.edge);
    array = SLOT(x, core.raw) == NULL || edge == NULL ? NULL : array_of_traced(r, SLOT(x, core.raw));
    return array != NULL && (kind_of(array) >= 0 || (edge == Py_None && is_constant(array))) ? array : NULL;
}

/* Read the operands. unrecorded: also if none of them has an edge. 0, with or without an error, where Python must do it. */
static int read_operands(const Recording *r, PyObject *const *args, Py_ssize_t n, int unrecorded, TracedOperands *operands) {
    static PyObject *traced_name;
    PyObject *arrays[MAX_OP_OPERANDS];
    Py_ssize_t i;
    int same = 1;
    operands->count = operands->recorded = operands->tensors = 0;
    operands->dtype = NULL;
    if (traced_name == NULL && (traced_name = PyUnicode_InternFromString("traced")) == NULL) return 0;
    for (i = 0; i < n; i++) {
        arrays[i] = array_of_operand(r, args[i]);
        if (arrays[i] == NULL) return 0;
        if (PyArray_CheckExact(arrays[i])) {
            PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)arrays[i]);
            same = same && kind_of(arrays[i]) >= 0 && (operands->dtype == NULL || operands->dtype == dtype);
            operands->dtype = dtype;
        }
        if (Py_TYPE(args[i]) == core.tensor) operands->tensors++, operands->recorded |= SLOT(args[i], core.edge) != Py_None;
    }
    if (!same) operands->dtype = NULL;
    if (!operands->recorded && !(unrecorded && operands->dtype != NULL && operands->tensors > 0)) return 0;
    for (i = 0; i < n; i++) {
        int tensor = Py_TYPE(args[i]) == core.tensor;
        PyObject *raw = tensor ? SLOT(args[i], core.raw) : args[i];
        if (!tensor && PyArray_CheckExact(raw)) raw = PyObject_CallMethodOneArg(r->recorder, traced_name, raw); /* as Recorder.lift_all. It becomes an input of the trace. */
        else Py_INCREF(raw);
        if (raw == NULL) return 0;
        operands->raw[i] = raw;
        operands->arrays[i] = Py_NewRef(arrays[i]);
        operands->edges[i] = Py_NewRef(tensor ? SLOT(args[i], core.edge) : Py_None);
        operands->count++;
    }
    return 1;
}

/* Compute the value of an op and append its calls. Return a traced value; NULL where Python must do it. */
static PyObject *traced_value(Recording *r, Op *op, PyObject *prim, const TracedOperands *operands, PyObject *params) {
    int n = (int)operands->count;
    PyObject *name = SLOT(prim, core.prim_name), *array, *value = NULL, *token, *items;
    Py_ssize_t i;
    if (op->value.ufunc != NULL && PyDict_GET_SIZE(params) == 0 && operands->dtype != NULL) {
        array = op_value(op, operands->arrays, n, params);
        if (array != NULL && PyArray_CheckExact(array)) value = note_call(r, op->value.ufunc, operands->raw, n, name, array, PyArray_NDIM((PyArrayObject *)array) == 0); /* NumPy's ufunc returns a scalar for 0-d operands */
        Py_XDECREF(array);
        return value;
    }
    if (!op->view && enter_error_state(&token) < 0) return NULL;
    if (!operands->recorded && !op->view) { /* such as a number minus an array */
        value = trace_op_value(r, op, operands->arrays, operands->raw, n, 1);
        leave_error_state(token);
        return value;
    }
    if (op->value.ufunc != NULL && PyDict_GET_SIZE(params) == 0) {
        value = call_traced_ufunc(r, op->value.ufunc, operands->raw, n, name);
    } else if ((items = PyList_New(n)) != NULL) { /* a list, as in tape.dispatch.record: the key of a template has the type */
        for (i = 0; i < n; i++) PyList_SET_ITEM(items, i, Py_NewRef(operands->raw[i]));
        value = template_of_value(r, prim, items, params);
        Py_DECREF(items);
    }
    if (value == NULL && !PyErr_Occurred() && op->elementwise && operands->dtype != NULL && PyDict_GET_SIZE(params) == 0) value = trace_op_value(r, op, operands->arrays, operands->raw, n, 0);
    if (!op->view) leave_error_state(token);
    return value;
}

PyObject *record_traced(Op *op, PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, int views) {
    TracedOperands operands;
    Recording r;
    PyObject *value = NULL, *array, *output = NULL;
    Py_ssize_t begin;
    int comparison = op->value.gives_mask && op->value.exact && op->nin == 2;
    operands.count = 0;
    if ((!comparison && (!op->records || SLOT(prim, core.prim_pullback) == NULL)) || SLOT(prim, core.prim_listed) != Py_True || open_recording(&r) <= 0) return NULL;
    begin = count_calls(&r);
    if (begin >= 0 && read_operands(&r, args, n, op->view || is_same_on_arrays(op, params), &operands) && (op->variadic ? operands.tensors == n : op->nin == n)) value = traced_value(&r, op, prim, &operands, params);
    if (value == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); /* Python computes it again, and handles the exception */
    if (value != NULL && !is_traced(value)) Py_CLEAR(value); /* several results */
    if (value != NULL) value = as_tensor_data(&r, value);
    array = value == NULL ? NULL : array_of_traced(&r, value);
    if (array != NULL && (comparison ? is_mask(array) : kind_of(array) >= 0)) {
        if (operands.recorded && !comparison) output = new_tensor(Py_NewRef(value), node_of(op, prim, (NodeOperands){operands.raw, operands.edges, operands.arrays, n, 0}, params, value, array, current_frame), NULL);
        else output = unrecorded_result(Py_NewRef(value), prim, args, n, RECORDS, current_frame);
        if (output != NULL && op->view && views && view_of(output, args[0], prim, params, RECORDS) < 0) Py_CLEAR(output);
        if (output != NULL && note_holder(&r, output) < 0) Py_CLEAR(output);
    }
    if (output == NULL && begin >= 0 && !PyErr_Occurred()) drop_calls(&r, begin);
    Py_XDECREF(value);
    release_operands(&operands);
    close_recording(&r);
    return output;
}
