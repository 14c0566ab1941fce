/* The calls of a program as integer arrays: encode_calls() returns the arrays of EncodedCalls in compiling/encoding.py.

   compiling/encoding.py has the same encoding in Python, which runs without the extension. That is the reference. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "encoding.h"

static long long bits_of(PyObject *number) {
    int overflow;
    double value;
    long long bits;
    if (PyLong_CheckExact(number)) return PyLong_AsLongLongAndOverflow(number, &overflow);
    value = PyFloat_AS_DOUBLE(number);
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

PyObject *step_of(PyObject *call) {
    PyObject *step = SLOT(call, call_step);
    return step != NULL && step_type != NULL && Py_TYPE(step) == step_type ? step : NULL;
}

size_t ufunc_row(PyObject *function, PyObject *const *args, Py_ssize_t n, npy_int64 *row) {
    Py_ssize_t i;
    row[0] = (npy_int64)(size_t)function;
    for (i = 0; i < n; i++) {
        PyObject *x = args[i];
        int overflow = 0;
        if (PyLong_CheckExact(x)) PyLong_AsLongLongAndOverflow(x, &overflow);
        else if (Py_TYPE(x) != var_type && !PyFloat_CheckExact(x)) return 0;
        if (overflow) return 0;
        row[1 + 2 * i] = Py_TYPE(x) == var_type ? 0 : PyFloat_CheckExact(x) ? 1 : 2;
        row[2 + 2 * i] = Py_TYPE(x) == var_type ? 0 : bits_of(x);
    }
    return (size_t)(1 + 2 * n);
}

/* Find the index of a layout that has a new row: -1 error */
static int add_layout(Variables *v, PyArrayObject *array, npy_int32 row) {
    int n = PyArray_NDIM(array);
    PyObject *key = Py_BuildValue("(NNO)", PyArray_IntTupleFromIntp(n, PyArray_DIMS(array)), PyArray_IntTupleFromIntp(n, PyArray_STRIDES(array)), PyArray_DESCR(array));
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(v->layout_indices)), *number = key == NULL || next == NULL ? NULL : PyDict_SetDefault(v->layout_indices, key, next);
    npy_int32 found = number == NULL ? -1 : (npy_int32)PyLong_AsLong(number);
    int failed = number == NULL || append_int(&v->layout_numbers, found) < 0 || (v->dtypes != NULL && PyList_Append(v->dtypes, (PyObject *)PyArray_DESCR(array)) < 0);
    while (!failed && count_ints(&v->layout_rows) <= found) failed = append_int(&v->layout_rows, row) < 0;
    Py_XDECREF(key);
    Py_XDECREF(next);
    return failed ? -1 : 0;
}

npy_int32 layout_number(Variables *v, PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    npy_int64 row[2 + 2 * NPY_MAXDIMS];
    npy_int32 at, count = v->layouts.count;
    int k, n;
    if (x == NULL || !PyArray_Check(x)) return -1;
    n = PyArray_NDIM(array);
    if (n > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "an array of a trace has too many axes");
        return -2;
    }
    row[0] = (npy_int64)(size_t)PyArray_DESCR(array);
    row[1] = n;
    for (k = 0; k < n; k++) {
        row[2 + k] = PyArray_DIM(array, k);
        row[2 + n + k] = PyArray_STRIDE(array, k);
    }
    at = row_number(&v->layouts, row, (size_t)(2 + 2 * n));
    if (at < 0) return -2;
    return at == count && add_layout(v, array, at) < 0 ? -2 : ints(&v->layout_numbers)[at];
}

/* Return the index of a Var, which is added if it is new; -1 error. */
static npy_int32 index_of(Variables *v, PyObject *var) {
    PyObject *array = SLOT(var, var_array), *found;
    long long number = SLOT(var, var_number) == NULL ? -1 : PyLong_AsLongLong(SLOT(var, var_number));
    npy_int32 layout, index, at = number >= 0 && number < v->numbers ? v->by_number[number] : -1;
    if (at >= 0 && PyList_GET_ITEM(v->variables, at) == var) return at;
    if (number < 0 || number >= v->numbers || at >= 0) { /* another Var has this number */
        found = PyDict_GetItemWithError(v->others, var);
        if (found != NULL) return (npy_int32)PyLong_AsLong(found);
    }
    layout = PyErr_Occurred() ? -2 : layout_number(v, array);
    if (layout == -2) return -1;
    if (append_int(&v->layout, layout) < 0 || append_long(&v->number, number) < 0 || append_long(&v->address, layout < 0 ? 0 : (npy_int64)(size_t)PyArray_DATA((PyArrayObject *)array)) < 0 || PyList_Append(v->variables, var) < 0) return -1;
    index = (npy_int32)(PyList_GET_SIZE(v->variables) - 1);
    if (number >= 0 && number < v->numbers && at < 0) {
        v->by_number[number] = index;
    } else {
        found = PyLong_FromLong(index);
        if (found == NULL || PyDict_SetItem(v->others, var, found) < 0) index = -1;
        Py_XDECREF(found);
    }
    return index;
}

int visit_vars(PyObject *x, VarCallback visit, void *context) {
    Py_ssize_t i;
    if (Py_TYPE(x) == var_type) return visit(x, context);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        for (i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
            if (visit_vars(PySequence_Fast_GET_ITEM(x, i), visit, context) < 0) return -1;
        }
    } else if (PyDict_CheckExact(x)) {
        PyObject *name, *value;
        for (i = 0; PyDict_Next(x, &i, &name, &value);) {
            if (visit_vars(value, visit, context) < 0) return -1;
        }
    } else if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        if (visit_vars(slice->start, visit, context) < 0 || visit_vars(slice->stop, visit, context) < 0 || visit_vars(slice->step, visit, context) < 0) return -1;
    }
    return 0;
}

typedef struct {
    Variables *variables;
    Buffer *found;
} Indices;

static int append_index(PyObject *var, void *context) {
    Indices *indices = context;
    npy_int32 at = index_of(indices->variables, var);
    return at < 0 ? -1 : append_int(indices->found, at);
}

/* Append the indices of the Vars in nested containers: -1 error. */
static int append_indices(Variables *v, PyObject *x, Buffer *found) {
    Indices indices = {v, found};
    return visit_vars(x, append_index, &indices);
}

void free_encoder(Encoder *e) {
    Buffer *buffers[] = {&e->variables.number, &e->variables.layout, &e->variables.address, &e->variables.layout_numbers, &e->variables.layout_rows, &e->starts, &e->operands, &e->result_starts, &e->results, &e->forms, &e->signatures, &e->flags, &e->first, &e->ufunc_forms, &e->other_forms, &e->step_forms, &e->row};
    size_t i;
    for (i = 0; i < sizeof buffers / sizeof *buffers; i++) PyMem_Free(buffers[i]->bytes);
    free_rows(&e->variables.layouts);
    free_rows(&e->ufunc_calls);
    free_rows(&e->steps);
    free_rows(&e->distinct);
    Py_XDECREF(e->variables.variables);
    Py_XDECREF(e->variables.others);
    PyMem_Free(e->variables.by_number);
}

static size_t row_of_call(PyObject *call, npy_int64 *row) {
    PyObject *function = SLOT(call, call_function), *args = SLOT(call, call_args), *kwargs = SLOT(call, call_kwargs);
    if (function == NULL || Py_TYPE(function) != &PyUFunc_Type || SLOT(call, call_method) != method_name) return 0;
    if (args == NULL || !PyTuple_CheckExact(args) || PyTuple_GET_SIZE(args) > MAX_UFUNC_ARGS || kwargs == NULL || !PyDict_CheckExact(kwargs) || PyDict_GET_SIZE(kwargs) > 0) return 0;
    return ufunc_row(function, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), row);
}

int find_form(Encoder *e, npy_int32 at, PyObject *call, PyObject *python, npy_int32 *form) {
    npy_int64 row[1 + 2 * MAX_UFUNC_ARGS];
    size_t n = row_of_call(call, row);
    PyObject *step = step_of(call), *found;
    npy_int32 count = e->ufunc_calls.count, number = 0;
    if (n > 0) {
        *form = row_number(&e->ufunc_calls, row, n);
        return *form < 0 || (*form == count && append_int(&e->ufunc_forms, at) < 0) ? -1 : 0;
    }
    if (step != NULL) {
        row[0] = (npy_int64)(size_t)step;
        count = e->steps.count;
        number = row_number(&e->steps, row, 1);
        if (number < 0) return -1;
        if (number < count) {
            *form = ints(&e->step_forms)[number];
            return 0;
        }
    }
    found = PyObject_CallOneArg(python, call);
    *form = found == NULL ? -1 : -1 - (npy_int32)PyLong_AsLong(found);
    Py_XDECREF(found);
    if (PyErr_Occurred() || (step != NULL && append_int(&e->step_forms, *form) < 0)) return -1;
    return -1 - *form == count_ints(&e->other_forms) ? append_int(&e->other_forms, at) : 0;
}

static int encode_call(Encoder *e, npy_int32 at, PyObject *call, PyObject *python) {
    PyObject *results = SLOT(call, call_results);
    npy_intp k, operands = count_ints(&e->operands), first_result = count_ints(&e->results);
    npy_int32 form, signature, count = e->distinct.count;
    unsigned char flags = (SLOT(call, call_pure) == Py_True ? PURE : 0) | (SLOT(call, call_kept) == Py_False ? 0 : KEPT);
    if (results == NULL || !PyTuple_CheckExact(results) || SLOT(call, call_args) == NULL || SLOT(call, call_kwargs) == NULL) {
        PyErr_SetString(PyExc_TypeError, "a TracedCall lacks arguments or results");
        return -1;
    }
    if (find_form(e, at, call, python, &form) < 0 || append_int(&e->forms, form) < 0 || append_bytes(&e->flags, &flags, 1) < 0) return -1;
    if (append_indices(&e->variables, SLOT(call, call_args), &e->operands) < 0 || append_indices(&e->variables, SLOT(call, call_kwargs), &e->operands) < 0 || append_int(&e->starts, (npy_int32)count_ints(&e->operands)) < 0) return -1;
    if (append_indices(&e->variables, results, &e->results) < 0 || append_int(&e->result_starts, (npy_int32)count_ints(&e->results)) < 0) return -1;
    e->row.length = 0;
    if (append_long(&e->row, form) < 0) return -1;
    for (k = operands; k < count_ints(&e->operands); k++) {
        if (append_long(&e->row, ints(&e->variables.layout)[ints(&e->operands)[k]]) < 0) return -1;
    }
    for (k = first_result; k < count_ints(&e->results); k++) {
        if (append_long(&e->row, ints(&e->variables.layout)[ints(&e->results)[k]]) < 0) return -1;
    }
    signature = row_number(&e->distinct, (npy_int64 *)e->row.bytes, e->row.length / sizeof(npy_int64));
    if (signature < 0 || (signature == count && append_int(&e->first, at) < 0)) return -1;
    return append_int(&e->signatures, signature);
}

void number_ufunc_forms_last(Buffer *forms, npy_int32 others) {
    npy_intp i;
    for (i = 0; i < count_ints(forms); i++) ints(forms)[i] = ints(forms)[i] < 0 ? -1 - ints(forms)[i] : others + ints(forms)[i];
}

/* encode_calls(calls, find_form, layouts) -> the attributes of EncodedCalls, in order. find_form(call): the form of a call that is not of an elementwise ufunc;
   layouts: {(shape, strides, dtype): index} */
static PyObject *encode_calls(PyObject *module, PyObject *args) {
    PyObject *calls, *python, *encoded = NULL;
    Encoder e;
    Py_ssize_t i;
    npy_int32 others;
    int failed;
    (void)module;
    memset(&e, 0, sizeof e);
    if (!PyArg_ParseTuple(args, "O!OO!", &PyList_Type, &calls, &python, &PyDict_Type, &e.variables.layout_indices)) return NULL;
    e.variables.variables = PyList_New(0);
    e.variables.others = PyDict_New();
    e.variables.numbers = 4 * (npy_int64)PyList_GET_SIZE(calls) + 256;
    e.variables.by_number = PyMem_Malloc((size_t)e.variables.numbers * sizeof(npy_int32));
    if (e.variables.by_number == NULL) PyErr_NoMemory();
    else memset(e.variables.by_number, 0xFF, (size_t)e.variables.numbers * sizeof(npy_int32));
    failed = e.variables.variables == NULL || e.variables.others == NULL || e.variables.by_number == NULL || append_int(&e.starts, 0) < 0 || append_int(&e.result_starts, 0) < 0;
    for (i = 0; i < PyList_GET_SIZE(calls) && !failed; i++) {
        PyObject *call = Py_NewRef(PyList_GET_ITEM(calls, i));
        if (call_type == NULL || Py_TYPE(call) != call_type) PyErr_SetString(PyExc_TypeError, "encode_calls takes a list of TracedCalls");
        failed = PyErr_Occurred() || encode_call(&e, (npy_int32)i, call, python) < 0;
        Py_DECREF(call);
    }
    others = (npy_int32)count_ints(&e.other_forms);
    number_ufunc_forms_last(&e.forms, others);
    if (!failed && e.ufunc_forms.length > 0) failed = append_bytes(&e.other_forms, e.ufunc_forms.bytes, e.ufunc_forms.length) < 0;
    if (!failed) {
        Buffer by_number = {(char *)e.variables.by_number, (size_t)e.variables.numbers * sizeof(npy_int32), 0};
        e.variables.by_number = NULL; /* the array frees it */
        encoded = Py_BuildValue(
            "ONNNNNNNNNNNNNN", e.variables.variables, to_numpy(&e.variables.number, NPY_INT64, 8), int_array(&e.variables.layout), to_numpy(&e.variables.address, NPY_INT64, 8), int_array(&e.starts), int_array(&e.operands), int_array(&e.result_starts), int_array(&e.results), int_array(&e.forms), int_array(&e.signatures), to_numpy(&e.flags, NPY_UINT8, 1), int_array(&e.first), int_array(&e.other_forms), to_numpy(&e.ufunc_calls.hashes, NPY_INT64, 8), to_numpy(&by_number, NPY_INT32, 4));
    }
    free_encoder(&e);
    return encoded;
}

PyMethodDef encoding_functions[] = {
    {"encode_calls", encode_calls, METH_VARARGS, "encode_calls(calls, find_form, layouts): calls as integer arrays"},
    {NULL, NULL, 0, NULL},
};
