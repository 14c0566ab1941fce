/* Passes over a trace: its calls as integer arrays, and the elimination of unused and of equal calls on these arrays.

   compiling/encoding.py and compiling/simplify.py have the same passes in Python, which run without the extension. Those are the reference. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

enum { MAX_UFUNC_ARGS = 3 };
enum { PURE = 1, KEPT = 2 }; /* flags of a call, as in compiling/encoding.py */

/* The items of a contiguous array of a type; NULL with an error */
static void *items_of(PyObject *x, int type) {
    PyArrayObject *array = (PyArrayObject *)x;
    if (PyArray_Check(x) && PyArray_TYPE(array) == type && PyArray_ISCARRAY_RO(array)) return PyArray_DATA(array);
    PyErr_SetString(PyExc_TypeError, "a pass over a trace got an array of another dtype or layout");
    return NULL;
}

/* Whether a sorted array of addresses has that of an array or of a base of it, or a base is another object, such as versions.Lender */
static int is_among(PyObject *addresses, PyObject *array) {
    const npy_int64 *items = PyArray_DATA((PyArrayObject *)addresses);
    npy_intp n = PyArray_SIZE((PyArrayObject *)addresses), low, high;
    for (; array != NULL; array = PyArray_BASE((PyArrayObject *)array)) {
        if (!PyArray_Check(array)) return 1;
        for (low = 0, high = n; low < high;) {
            npy_intp middle = (low + high) / 2;
            if (items[middle] < (npy_int64)(size_t)array) low = middle + 1;
            else high = middle;
        }
        if (low < n && items[low] == (npy_int64)(size_t)array) return 1;
    }
    return 0;
}

/* The next two functions pass the results of calls to this type of function: -1 error */
typedef int (*VisitVar)(PyObject *var, PyObject *one, PyObject *other);

static int visit_results(PyObject *calls, VisitVar visit, PyObject *one, PyObject *other) {
    Py_ssize_t i, k;
    for (i = 0; i < PyList_GET_SIZE(calls); i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *results = Py_TYPE(call) == call_type ? SLOT(call, call_results) : NULL;
        if (results == NULL || !PyTuple_CheckExact(results)) {
            PyErr_SetString(PyExc_TypeError, "expected a list of TracedCalls");
            return -1;
        }
        for (k = 0; k < PyTuple_GET_SIZE(results); k++) {
            if (visit(PyTuple_GET_ITEM(results, k), one, other) < 0) return -1;
        }
    }
    return 0;
}

static int append_if_among(PyObject *var, PyObject *addresses, PyObject *found) {
    PyObject *array = SLOT(var, var_array);
    return array != NULL && is_among(addresses, array) ? PyList_Append(found, var) : 0;
}

/* results_in_memory(calls, ids) -> the results whose memory may belong to an array with one of the sorted ids */
static PyObject *results_in_memory(PyObject *module, PyObject *args) {
    PyObject *calls, *ids, *found;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &calls, &ids) || items_of(ids, NPY_INT64) == NULL) return NULL;
    found = PyList_New(0);
    if (found != NULL && visit_results(calls, append_if_among, ids, found) < 0) Py_CLEAR(found);
    return found;
}

static int drop_var_array(PyObject *var, PyObject *kept, PyObject *unused) {
    int keep = PySet_Contains(kept, var);
    (void)unused;
    if (keep == 0) Py_XSETREF(SLOT(var, var_array), Py_NewRef(Py_None)); /* as Var.drop_array */
    return keep < 0 ? -1 : 0;
}

/* drop_results(calls, kept): drop the values of the results, except of the Vars in a set */
static PyObject *drop_results(PyObject *module, PyObject *args) {
    PyObject *calls, *kept;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &calls, &PySet_Type, &kept)) return NULL;
    return visit_results(calls, drop_var_array, kept, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- arrays of integers */

typedef struct {
    char *bytes;
    size_t length, room;
} Buffer;

static int append_bytes(Buffer *buffer, const void *item, size_t size) {
    if (buffer->length + size > buffer->room) {
        size_t room = 2 * buffer->room + 64 * size;
        char *bytes = PyMem_Realloc(buffer->bytes, room);
        if (bytes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        buffer->bytes = bytes;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->length, item, size);
    buffer->length += size;
    return 0;
}

static int append_int(Buffer *buffer, npy_int32 item) { return append_bytes(buffer, &item, sizeof item); }
static int append_long(Buffer *buffer, npy_int64 item) { return append_bytes(buffer, &item, sizeof item); }
static npy_int32 *ints(const Buffer *buffer) { return (npy_int32 *)buffer->bytes; }
static npy_intp count_ints(const Buffer *buffer) { return (npy_intp)(buffer->length / sizeof(npy_int32)); }

static PyObject *to_numpy(const Buffer *buffer, int type, size_t itemsize) {
    npy_intp n = (npy_intp)(buffer->length / itemsize);
    PyObject *array = PyArray_SimpleNew(1, &n, type);
    if (array != NULL && n > 0) memcpy(PyArray_DATA((PyArrayObject *)array), buffer->bytes, buffer->length);
    return array;
}

static PyObject *int_array(const Buffer *buffer) { return to_numpy(buffer, NPY_INT32, sizeof(npy_int32)); }

/* Distinct rows of integers, numbered in order of first occurrence */
typedef struct {
    Buffer words, ends, hashes; /* the integers of all rows; the end of each row among them; the hash of each row */
    npy_int32 *table;           /* open addressing: numbers of rows, -1 where free */
    size_t size;
    npy_int32 count;
} Rows;

static void free_rows(Rows *rows) {
    PyMem_Free(rows->words.bytes);
    PyMem_Free(rows->ends.bytes);
    PyMem_Free(rows->hashes.bytes);
    PyMem_Free(rows->table);
}

static unsigned long long mixed(unsigned long long hash, unsigned long long part) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ull; /* as in splitmix64 */
    return hash ^ hash >> 29;
}

static unsigned long long hash_of_row(const Rows *rows, npy_int32 i) { return ((unsigned long long *)rows->hashes.bytes)[i]; }

static int grow_table(Rows *rows) {
    size_t size = rows->size ? 2 * rows->size : 256, at;
    npy_int32 i, *table = PyMem_Malloc(size * sizeof *table);
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(table, 0xFF, size * sizeof *table);
    for (i = 0; i < rows->count; i++) {
        for (at = (size_t)hash_of_row(rows, i) & (size - 1); table[at] >= 0; at = (at + 1) & (size - 1)) {}
        table[at] = i;
    }
    PyMem_Free(rows->table);
    rows->table = table;
    rows->size = size;
    return 0;
}

/* The number of a row, which is added if it is new; -1 error */
static npy_int32 row_number(Rows *rows, const npy_int64 *row, size_t n) {
    unsigned long long hash = mixed(1, n);
    size_t at, k, begin;
    npy_int32 i;
    for (k = 0; k < n; k++) hash = mixed(hash, (unsigned long long)row[k]);
    if (2 * (size_t)rows->count >= rows->size && grow_table(rows) < 0) return -1;
    for (at = (size_t)hash & (rows->size - 1); (i = rows->table[at]) >= 0; at = (at + 1) & (rows->size - 1)) {
        if (hash_of_row(rows, i) != hash) continue;
        begin = i == 0 ? 0 : ((size_t *)rows->ends.bytes)[i - 1];
        if (((size_t *)rows->ends.bytes)[i] - begin == n && memcmp((npy_int64 *)rows->words.bytes + begin, row, n * sizeof *row) == 0) return i;
    }
    begin = rows->words.length / sizeof *row + n;
    if (append_bytes(&rows->words, row, n * sizeof *row) < 0 || append_bytes(&rows->ends, &begin, sizeof begin) < 0 || append_bytes(&rows->hashes, &hash, sizeof hash) < 0) return -1;
    return rows->table[at] = rows->count++;
}

/* ---- encoding */

static long long bits_of(PyObject *number) {
    int overflow;
    double value;
    long long bits;
    if (PyLong_CheckExact(number)) return PyLong_AsLongLongAndOverflow(number, &overflow);
    value = PyFloat_AS_DOUBLE(number);
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Borrow the step of a template that a call was appended from; NULL if there is none. */
static PyObject *step_of(PyObject *call) {
    PyObject *step = SLOT(call, call_step);
    return step != NULL && step_type != NULL && Py_TYPE(step) == step_type ? step : NULL;
}

/* Set `row` for a call of an elementwise ufunc on Vars, floats and ints: the function, and kind and value of each argument. Its length, or 0 for other calls */
static size_t ufunc_row(PyObject *call, npy_int64 *row) {
    PyObject *function = SLOT(call, call_function), *args = SLOT(call, call_args), *kwargs = SLOT(call, call_kwargs);
    Py_ssize_t i, n;
    if (function == NULL || Py_TYPE(function) != &PyUFunc_Type || SLOT(call, call_method) != method_name) return 0;
    if (args == NULL || !PyTuple_CheckExact(args) || (n = PyTuple_GET_SIZE(args)) > MAX_UFUNC_ARGS || kwargs == NULL || !PyDict_CheckExact(kwargs) || PyDict_GET_SIZE(kwargs) > 0) return 0;
    row[0] = (npy_int64)(size_t)function;
    for (i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        int overflow = 0;
        if (PyLong_CheckExact(x)) PyLong_AsLongLongAndOverflow(x, &overflow);
        else if (Py_TYPE(x) != var_type && !PyFloat_CheckExact(x)) return 0;
        if (overflow) return 0;
        row[1 + 2 * i] = Py_TYPE(x) == var_type ? 0 : PyFloat_CheckExact(x) ? 1 : 2;
        row[2 + 2 * i] = Py_TYPE(x) == var_type ? 0 : bits_of(x);
    }
    return (size_t)(1 + 2 * n);
}

typedef struct {
    PyObject *variables, *others, *find_layout; /* a list of Vars; {Var: its index in the list} for Vars that `by_number` lacks; EncodedCalls.layout_of */
    Buffer number, layout, address;             /* for each Var */
    npy_int32 *by_number;                       /* the index of a Var with each number below `numbers`; -1 if there is none */
    npy_int64 numbers;
    Rows layouts;
    Buffer layout_numbers; /* what find_layout() returned for each of the rows */
} Variables;

/* The number of the layout of an array; -2 error */
static npy_int32 layout_number(Variables *v, PyObject *x) {
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
    if (at == count) {
        PyObject *number = PyObject_CallOneArg(v->find_layout, x);
        long found = number == NULL ? -1 : PyLong_AsLong(number);
        Py_XDECREF(number);
        if (PyErr_Occurred() || append_int(&v->layout_numbers, (npy_int32)found) < 0) return -2;
    }
    return ints(&v->layout_numbers)[at];
}

/* The index of a Var, which is added if it is new; -1 error */
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

/* The arrays of EncodedCalls while they grow. Forms of ufunc calls are numbered from 0, and others from -1 downwards, until all calls are encoded. */
typedef struct {
    Variables variables;
    Buffer starts, operands, result_starts, results, forms, signatures, flags;
    Buffer first, ufunc_forms, other_forms; /* the first call of each signature, and of each form */
    Buffer step_forms;                      /* for each row of `steps` its form */
    Buffer row;
    Rows ufunc_calls, steps, distinct;
} Encoder;

static void free_encoder(Encoder *e) {
    Buffer *buffers[] = {&e->variables.number, &e->variables.layout, &e->variables.address, &e->variables.layout_numbers, &e->starts, &e->operands, &e->result_starts, &e->results, &e->forms, &e->signatures, &e->flags, &e->first, &e->ufunc_forms, &e->other_forms, &e->step_forms, &e->row};
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

/* Find the form of a call: -1 error */
static int find_form(Encoder *e, npy_int32 at, PyObject *call, PyObject *python, npy_int32 *form) {
    npy_int64 row[1 + 2 * MAX_UFUNC_ARGS];
    size_t n = ufunc_row(call, row);
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

/* encode_calls(calls, find_form, find_layout) -> the attributes of EncodedCalls, in order. find_form(call): the form of a call that is not of an elementwise ufunc;
   find_layout(array): the number of its layout */
static PyObject *encode_calls(PyObject *module, PyObject *args) {
    PyObject *calls, *python, *encoded = NULL;
    Encoder e;
    Py_ssize_t i;
    npy_int32 others;
    int failed;
    (void)module;
    memset(&e, 0, sizeof e);
    if (!PyArg_ParseTuple(args, "O!OO", &PyList_Type, &calls, &python, &e.variables.find_layout)) return NULL;
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
    for (i = 0; i < count_ints(&e.forms); i++) { /* ufunc calls have the last forms */
        npy_int32 *form = ints(&e.forms) + i;
        *form = *form < 0 ? -1 - *form : others + *form;
    }
    if (!failed && e.ufunc_forms.length > 0) failed = append_bytes(&e.other_forms, e.ufunc_forms.bytes, e.ufunc_forms.length) < 0;
    if (!failed) {
        Buffer by_number = {(char *)e.variables.by_number, (size_t)e.variables.numbers * sizeof(npy_int32), 0};
        encoded = Py_BuildValue(
            "ONNNNNNNNNNNNNN", e.variables.variables, to_numpy(&e.variables.number, NPY_INT64, 8), int_array(&e.variables.layout), to_numpy(&e.variables.address, NPY_INT64, 8), int_array(&e.starts), int_array(&e.operands), int_array(&e.result_starts), int_array(&e.results), int_array(&e.forms), int_array(&e.signatures), to_numpy(&e.flags, NPY_UINT8, 1), int_array(&e.first), int_array(&e.other_forms), to_numpy(&e.ufunc_calls.hashes, NPY_INT64, 8), to_numpy(&by_number, NPY_INT32, 4));
    }
    free_encoder(&e);
    return encoded;
}

/* ---- passes on the arrays */

typedef struct {
    const npy_int32 *starts, *operands, *result_starts, *results;
    npy_intp count;
} Calls;

/* The arrays (starts, operands, result_starts, results) of EncodedCalls: -1 error */
static int open_calls(PyObject *arrays, Calls *calls) {
    const npy_int32 **items[] = {&calls->starts, &calls->operands, &calls->result_starts, &calls->results};
    Py_ssize_t k;
    if (!PyTuple_CheckExact(arrays) || PyTuple_GET_SIZE(arrays) != 4) {
        PyErr_SetString(PyExc_TypeError, "a pass over a trace takes four arrays of calls");
        return -1;
    }
    for (k = 0; k < 4; k++) {
        *items[k] = items_of(PyTuple_GET_ITEM(arrays, k), NPY_INT32);
        if (*items[k] == NULL) return -1;
    }
    calls->count = PyArray_SIZE((PyArrayObject *)PyTuple_GET_ITEM(arrays, 0)) - 1;
    return 0;
}

/* mark_live(calls, live, reads, needed): set `live` of each call whose results are needed, and `needed` of the operands of live calls that read them */
static PyObject *mark_live(PyObject *module, PyObject *args) {
    PyObject *arrays[4];
    Calls calls;
    unsigned char *live, *reads, *needed;
    npy_intp i;
    npy_int32 k;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &arrays[0], &arrays[1], &arrays[2], &arrays[3]) || open_calls(arrays[0], &calls) < 0) return NULL;
    if ((live = items_of(arrays[1], NPY_BOOL)) == NULL || (reads = items_of(arrays[2], NPY_BOOL)) == NULL || (needed = items_of(arrays[3], NPY_BOOL)) == NULL) return NULL;
    for (i = calls.count - 1; i >= 0; i--) {
        for (k = calls.result_starts[i]; k < calls.result_starts[i + 1] && !live[i]; k++) live[i] = needed[calls.results[k]];
        for (k = calls.starts[i]; k < calls.starts[i + 1] && live[i] && reads[i]; k++) needed[calls.operands[k]] = 1;
    }
    Py_RETURN_NONE;
}

/* merge_equal(calls, forms, live, pure, reads, constant, same, fold) -> how many calls were merged. Clear `live` of a pure call that fold(call) folds, or that is equal
   to an earlier one; `same` gets the index of the array that stands for each of its results. */
static PyObject *merge_equal(PyObject *module, PyObject *args) {
    PyObject *arrays[7], *fold;
    Calls calls;
    Rows seen;
    Buffer first, row;
    unsigned char *live, *pure, *reads, *constant;
    npy_int32 *forms, *same, k, n, number;
    npy_intp i, merged = 0;
    int failed = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4], &arrays[5], &arrays[6], &fold) || open_calls(arrays[0], &calls) < 0) return NULL;
    if ((forms = items_of(arrays[1], NPY_INT32)) == NULL || (live = items_of(arrays[2], NPY_BOOL)) == NULL || (pure = items_of(arrays[3], NPY_BOOL)) == NULL || (reads = items_of(arrays[4], NPY_BOOL)) == NULL || (constant = items_of(arrays[5], NPY_BOOL)) == NULL || (same = items_of(arrays[6], NPY_INT32)) == NULL) return NULL;
    memset(&seen, 0, sizeof seen);
    memset(&first, 0, sizeof first);
    memset(&row, 0, sizeof row);
    for (i = 0; i < calls.count && !failed; i++) {
        const npy_int32 *results = calls.results + calls.result_starts[i];
        n = calls.result_starts[i + 1] - calls.result_starts[i];
        if (!live[i] || !pure[i]) continue;
        for (k = calls.starts[i]; k < calls.starts[i + 1] && reads[i] && constant[calls.operands[k]]; k++) {}
        if (!reads[i] || k == calls.starts[i + 1]) {
            PyObject *folded = PyObject_CallFunction(fold, "n", (Py_ssize_t)i);
            int is_folded = folded == NULL ? -1 : PyObject_IsTrue(folded);
            Py_XDECREF(folded);
            failed = is_folded < 0;
            for (k = 0; k < n && is_folded > 0; k++) constant[results[k]] = 1;
            live[i] = is_folded <= 0;
            if (failed || is_folded) continue;
        }
        row.length = 0;
        failed = append_long(&row, forms[i]) < 0;
        for (k = calls.starts[i]; k < calls.starts[i + 1] && !failed; k++) failed = append_long(&row, same[calls.operands[k]]) < 0;
        number = failed ? -1 : row_number(&seen, (npy_int64 *)row.bytes, row.length / sizeof(npy_int64));
        if (number < 0) {
            failed = 1;
        } else if (number == count_ints(&first)) {
            failed = append_int(&first, (npy_int32)i) < 0;
        } else {
            npy_int32 other = ints(&first)[number];
            if (calls.result_starts[other + 1] - calls.result_starts[other] != n) continue;
            for (k = 0; k < n; k++) same[results[k]] = calls.results[calls.result_starts[other] + k];
            live[i] = 0;
            merged++;
        }
    }
    free_rows(&seen);
    PyMem_Free(first.bytes);
    PyMem_Free(row.bytes);
    return failed ? NULL : PyLong_FromSsize_t(merged);
}

/* repeat_distances(signatures, length) -> for each window of `length` signatures that occurs before, the distance to its last occurrence */
static PyObject *repeat_distances(PyObject *module, PyObject *args) {
    PyObject *array, *found = NULL;
    const unsigned long long base = 0x9E3779B97F4A7C15ull;
    unsigned long long hash = 0, power = 1, *hashes;
    npy_int32 *signatures, *last;
    Py_ssize_t length, n, i;
    size_t size = 64, at;
    Buffer distances;
    int failed = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &array, &length) || (signatures = items_of(array, NPY_INT32)) == NULL) return NULL;
    n = PyArray_SIZE((PyArrayObject *)array);
    while (size < 2 * (size_t)n) size *= 2;
    memset(&distances, 0, sizeof distances);
    hashes = PyMem_Malloc(size * sizeof *hashes);
    last = PyMem_Malloc(size * sizeof *last);
    if (hashes == NULL || last == NULL) PyErr_NoMemory();
    else memset(last, 0xFF, size * sizeof *last);
    for (i = 1; i < length; i++) power *= base;
    failed = PyErr_Occurred() != NULL;
    for (i = 0; i < n && !failed; i++) { /* the hash of a window is a polynomial in its signatures */
        if (i >= length) hash -= power * mixed(1, (unsigned long long)signatures[i - length]);
        hash = hash * base + mixed(1, (unsigned long long)signatures[i]);
        if (i < length - 1) continue;
        for (at = (size_t)mixed(2, hash) & (size - 1); last[at] >= 0 && hashes[at] != hash; at = (at + 1) & (size - 1)) {}
        if (last[at] >= 0) failed = append_int(&distances, (npy_int32)i - last[at]) < 0;
        hashes[at] = hash;
        last[at] = (npy_int32)i;
    }
    if (!failed) found = int_array(&distances);
    PyMem_Free(hashes);
    PyMem_Free(last);
    PyMem_Free(distances.bytes);
    return found;
}

PyMethodDef pass_functions[] = {
    {"results_in_memory", results_in_memory, METH_VARARGS, "results_in_memory(calls, ids): the results of calls whose memory may belong to an array with one of the sorted ids"},
    {"drop_results", drop_results, METH_VARARGS, "drop_results(calls, kept): drop the values of the results of calls, except of the Vars in a set"},
    {"encode_calls", encode_calls, METH_VARARGS, "encode_calls(calls, find_form, find_layout): calls as integer arrays"},
    {"mark_live", mark_live, METH_VARARGS, "mark_live(calls, live, reads, needed): mark the calls that arrays depend on"},
    {"merge_equal", merge_equal, METH_VARARGS, "merge_equal(calls, forms, live, pure, reads, constant, same, fold): drop calls that are equal to earlier ones"},
    {"repeat_distances", repeat_distances, METH_VARARGS, "repeat_distances(signatures, length): the distances between equal windows of signatures"},
    {NULL, NULL, 0, NULL},
};
