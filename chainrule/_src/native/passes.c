/* Passes over the integer arrays of a trace: the elimination of unused and of equal calls, and the distances between equal calls.

   compiling/simplify.py has the same passes in Python, which run without the extension. Those are the reference. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "rows.h"
#include "trace.h"

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

/* The next two functions pass results of calls to this type of function: -1 error. They take a list of calls, or of results. */
typedef int (*VisitVar)(PyObject *var, PyObject *one, PyObject *other);

static int visit_results(PyObject *calls, VisitVar visit, PyObject *one, PyObject *other) {
    Py_ssize_t i, k;
    for (i = 0; i < PyList_GET_SIZE(calls); i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *results = Py_TYPE(call) == call_type ? SLOT(call, call_results) : NULL;
        if (Py_TYPE(call) == var_type) {
            if (visit(call, one, other) < 0) return -1;
            continue;
        }
        if (results == NULL || !PyTuple_CheckExact(results)) {
            PyErr_SetString(PyExc_TypeError, "expected a list of TracedCalls, or of Vars");
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

/* results_in_memory(calls_or_results, ids) -> the results whose memory may belong to an array with one of the sorted ids */
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

/* drop_results(calls_or_results, kept): drop the values of the results, except of the Vars in a set */
static PyObject *drop_results(PyObject *module, PyObject *args) {
    PyObject *calls, *kept;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &calls, &PySet_Type, &kept)) return NULL;
    return visit_results(calls, drop_var_array, kept, NULL) < 0 ? NULL : Py_NewRef(Py_None);
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

/* Whether two calls have one form and equal operands */
static int are_equal_calls(const Calls *calls, const npy_int32 *forms, const npy_int32 *same, npy_int32 a, npy_int32 b) {
    npy_int32 n = calls->starts[a + 1] - calls->starts[a], k;
    if (forms[a] != forms[b] || n != calls->starts[b + 1] - calls->starts[b]) return 0;
    for (k = 0; k < n; k++) {
        if (same[calls->operands[calls->starts[a] + k]] != same[calls->operands[calls->starts[b] + k]]) return 0;
    }
    return 1;
}

/* Return the first call that is equal to a call: `table`, with open addressing, gets the call if there is none. */
static npy_int32 first_equal_call(npy_int32 *table, size_t size, const Calls *calls, const npy_int32 *forms, const npy_int32 *same, npy_int32 call) {
    unsigned long long hash = mixed(1, (unsigned long long)forms[call]);
    npy_int32 k;
    size_t at;
    for (k = calls->starts[call]; k < calls->starts[call + 1]; k++) hash = mixed(hash, (unsigned long long)same[calls->operands[k]]);
    for (at = (size_t)hash & (size - 1); table[at] >= 0 && !are_equal_calls(calls, forms, same, table[at], call); at = (at + 1) & (size - 1)) {}
    if (table[at] < 0) table[at] = call;
    return table[at];
}

/* merge_equal(calls, forms, live, pure, reads, constant, same, fold) -> how many calls were merged. Clear `live` of a pure call that fold(call) folds, or that is equal
   to an earlier one; `same` gets the index of the array that stands for each of its results. */
static PyObject *merge_equal(PyObject *module, PyObject *args) {
    PyObject *arrays[7], *fold;
    Calls calls;
    unsigned char *live, *pure, *reads, *constant;
    npy_int32 *forms, *same, *table, k, n, other;
    npy_intp i, merged = 0;
    size_t size = 64;
    int failed = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4], &arrays[5], &arrays[6], &fold) || open_calls(arrays[0], &calls) < 0) return NULL;
    if ((forms = items_of(arrays[1], NPY_INT32)) == NULL || (live = items_of(arrays[2], NPY_BOOL)) == NULL || (pure = items_of(arrays[3], NPY_BOOL)) == NULL || (reads = items_of(arrays[4], NPY_BOOL)) == NULL || (constant = items_of(arrays[5], NPY_BOOL)) == NULL || (same = items_of(arrays[6], NPY_INT32)) == NULL) return NULL;
    while (size < 2 * (size_t)calls.count) size *= 2;
    table = PyMem_Malloc(size * sizeof *table);
    if (table == NULL) return PyErr_NoMemory();
    memset(table, 0xFF, size * sizeof *table);
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
        other = first_equal_call(table, size, &calls, forms, same, (npy_int32)i);
        if (other == i || calls.result_starts[other + 1] - calls.result_starts[other] != n) continue;
        for (k = 0; k < n; k++) same[results[k]] = calls.results[calls.result_starts[other] + k];
        live[i] = 0;
        merged++;
    }
    PyMem_Free(table);
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
    {"results_in_memory", results_in_memory, METH_VARARGS, "results_in_memory(calls_or_results, ids): the results of calls whose memory may belong to an array with one of the sorted ids"},
    {"drop_results", drop_results, METH_VARARGS, "drop_results(calls_or_results, kept): drop the values of the results of calls, except of the Vars in a set"},
    {"mark_live", mark_live, METH_VARARGS, "mark_live(calls, live, reads, needed): mark the calls that arrays depend on"},
    {"merge_equal", merge_equal, METH_VARARGS, "merge_equal(calls, forms, live, pure, reads, constant, same, fold): drop calls that are equal to earlier ones"},
    {"repeat_distances", repeat_distances, METH_VARARGS, "repeat_distances(signatures, length): the distances between equal windows of signatures"},
    {NULL, NULL, 0, NULL},
};
