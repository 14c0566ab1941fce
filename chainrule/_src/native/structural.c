/* Ops that reduce or join: sums and means over adjacent axes, and arrays joined along an axis, with their VJP rules. primitive.c calls them.

   The results have the bits of the NumPy calls in rules/sums.py and table/shape.py: the same loops in the same order. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

/* ---- parameters */

static PyObject *axis_name, *keepdims_name;

static int intern_names(void) {
    if (axis_name == NULL) axis_name = PyUnicode_InternFromString("axis");
    if (keepdims_name == NULL) keepdims_name = PyUnicode_InternFromString("keepdims");
    return axis_name != NULL && keepdims_name != NULL;
}

int read_axes(PyObject *params, int ndim, Axes *axes) {
    PyObject *axis, *keepdims;
    Py_ssize_t i, n;
    if (!intern_names()) return -1;
    axis = PyDict_GetItemWithError(params, axis_name);
    keepdims = PyDict_GetItemWithError(params, keepdims_name);
    if (axis == NULL || !PyTuple_CheckExact(axis) || (keepdims != Py_True && keepdims != Py_False)) return PyErr_Occurred() ? -1 : 0;
    n = PyTuple_GET_SIZE(axis);
    for (i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(axis, i);
        long at = PyLong_CheckExact(item) ? PyLong_AsLong(item) : 0;
        if (at < -ndim || at >= 0) return 0;
        if (i == 0) axes->first = (int)at + ndim;
        if (at + ndim != axes->first + i) return 0;
    }
    if (PyErr_Occurred()) return -1; /* an axis is out of range of a C integer */
    axes->end = axes->first + (int)n;
    axes->keepdims = keepdims == Py_True;
    return n > 0;
}

int read_axis(PyObject *params, int *axis) {
    PyObject *value;
    long at;
    if (!intern_names() || PyDict_GET_SIZE(params) != 1) return 0;
    value = PyDict_GetItemWithError(params, axis_name);
    if (value == NULL || !PyLong_CheckExact(value)) return 0;
    at = PyLong_AsLong(value);
    *axis = (int)at;
    return at < 0 && at >= -NPY_MAXDIMS && !PyErr_Occurred();
}

/* ---- sums */

int reduced_shape(PyArrayObject *x, Axes axes, npy_intp *dims) {
    int i, ndim = 0;
    for (i = 0; i < PyArray_NDIM(x); i++) {
        if (i < axes.first || i >= axes.end) dims[ndim++] = PyArray_DIM(x, i);
        else if (axes.keepdims) dims[ndim++] = 1;
    }
    return ndim;
}

PyObject *sum_axes(PyObject *x, PyObject *params) {
    PyArrayObject *array = (PyArrayObject *)x;
    npy_intp dims[NPY_MAXDIMS], outer, n, inner;
    int kind = kind_of(x), ndim = PyArray_NDIM(array), size = PyArray_ITEMSIZE(array), exceptions;
    PyObject *out;
    Axes axes;
    if (kind < 0 || !PyArray_ISCARRAY_RO(array)) return NULL;
    if (read_axes(params, ndim, &axes) != 1) return NULL;
    outer = PyArray_MultiplyList(PyArray_DIMS(array), axes.first);
    n = PyArray_MultiplyList(PyArray_DIMS(array) + axes.first, axes.end - axes.first);
    inner = PyArray_MultiplyList(PyArray_DIMS(array) + axes.end, ndim - axes.end);
    if (outer * n * inner == 0 || outer * n * inner > DIRECT_MOST || (n >= 2048 && (inner > 1 || axes.end - axes.first > 1))) return NULL; /* NumPy adds in another order: rules/sums.py */
    out = new_array(kind, reduced_shape(array, axes, dims), dims);
    if (out == NULL) return NULL;
    exceptions = sum_middle_axis(kind, PyArray_BYTES(array), PyArray_BYTES((PyArrayObject *)out), outer, n, inner, size);
    if (exceptions && report_exceptions("reduce", exceptions) < 0) Py_CLEAR(out);
    return out;
}

int mean_count(PyObject *x, PyObject *params, npy_intp *n) {
    Axes axes;
    if (read_axes(params, PyArray_NDIM((PyArrayObject *)x), &axes) != 1) return 0;
    *n = PyArray_MultiplyList(PyArray_DIMS((PyArrayObject *)x) + axes.first, axes.end - axes.first);
    return 1;
}

/* Read the shape of (shape, dtype), and return its length; -1 if the dtype differs. */
static int read_aval(PyObject *aval, PyObject *g, npy_intp *dims) {
    PyObject *shape = PyTuple_GET_ITEM(aval, 0);
    int i;
    if (PyTuple_GET_ITEM(aval, 1) != (PyObject *)PyArray_DESCR((PyArrayObject *)g) || PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) return -1;
    for (i = 0; i < PyTuple_GET_SIZE(shape); i++) dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    return i;
}

/* The VJP of a sum over axes: broadcast the cotangent, without a copy. NULL without an error: slow path. */
PyObject *broadcast_axes(PyObject *g, PyObject *aval, PyObject *params) {
    PyArrayObject *array = (PyArrayObject *)g;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS] = {0};
    int ndim = read_aval(aval, g, dims), i, at = 0;
    Axes axes;
    if (ndim < 0 || read_axes(params, ndim, &axes) != 1 || PyArray_NDIM(array) != ndim - (axes.keepdims ? 0 : axes.end - axes.first) || PyArray_SIZE(array) < 2) return NULL;
    for (i = 0; i < ndim; i++) {
        int reduced = i >= axes.first && i < axes.end;
        if (reduced && dims[i] < 2) return NULL; /* nothing to broadcast */
        if (reduced ? axes.keepdims && PyArray_DIM(array, at) != 1 : PyArray_DIM(array, at) != dims[i]) return NULL; /* a user's rule may return any shape */
        if (!reduced) strides[i] = dims[i] == 1 ? 0 : PyArray_STRIDE(array, at);
        at += !reduced || axes.keepdims;
    }
    return view_of_memory(g, PyArray_BYTES(array), ndim, dims, strides, 0);
}

/* ---- joined arrays */

/* Whether an array has the strides of a newly allocated one, including those of axes of length 1, which NumPy checks too. */
int has_plain_strides(PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    npy_intp stride = PyArray_ITEMSIZE(array);
    int d;
    for (d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(array, d) != stride) return 0;
        stride *= PyArray_DIM(array, d);
    }
    return 1;
}

/* Concatenate arrays of one dtype along an axis, or stack them along a new one. NULL without an error: slow path. */
PyObject *join_arrays(PyObject *const *raw, int n, PyObject *params, int new_axis) {
    PyArrayObject *first = (PyArrayObject *)raw[0];
    npy_intp dims[NPY_MAXDIMS], outer, chunks[MAX_OP_OPERANDS], row_bytes = 0, i;
    int axis, ndim = PyArray_NDIM(first) + new_axis, kind = kind_of(raw[0]), k, d;
    PyObject *out;
    char *to;
    if (kind < 0 || ndim > NPY_MAXDIMS || !read_axis(params, &axis) || (axis += ndim) < 0) return NULL;
    for (d = 0; d < ndim; d++) dims[d] = d == axis ? 0 : PyArray_DIM(first, d - (new_axis && d > axis));
    for (k = 0; k < n; k++) {
        PyArrayObject *x = (PyArrayObject *)raw[k];
        if (kind_of(raw[k]) != kind || PyArray_NDIM(x) != PyArray_NDIM(first) || PyArray_SIZE(x) == 0 || !has_plain_strides(raw[k])) return NULL;
        for (d = 0; d < PyArray_NDIM(x); d++) {
            if ((new_axis || d != axis) && PyArray_DIM(x, d) != PyArray_DIM(first, d)) return NULL;
        }
        dims[axis] += new_axis ? 1 : PyArray_DIM(x, axis);
    }
    outer = PyArray_MultiplyList(dims, axis);
    for (k = 0; k < n; k++) {
        chunks[k] = outer ? PyArray_NBYTES((PyArrayObject *)raw[k]) / outer : 0;
        row_bytes += chunks[k];
    }
    out = new_array(kind, ndim, dims);
    if (out == NULL) return NULL;
    to = PyArray_BYTES((PyArrayObject *)out);
    for (i = 0; i < outer && row_bytes; i++) {
        for (k = 0; k < n; k++) {
            memcpy(to, PyArray_BYTES((PyArrayObject *)raw[k]) + i * chunks[k], (size_t)chunks[k]);
            to += chunks[k];
        }
    }
    return out;
}

/* The VJP of a join: views of parts of g. 1 done, 0 slow path, -1 error. */
int split_cotangent(PyObject *g, PyObject *avals, PyObject *edges, PyObject *params, int new_axis, PyObject **grads) {
    PyArrayObject *array = (PyArrayObject *)g;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int axis, ndim = PyArray_NDIM(array), d, flags = PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE;
    char *from = PyArray_BYTES(array);
    npy_intp left;
    Py_ssize_t k, n = PyTuple_GET_SIZE(edges);
    if (!PyTuple_CheckExact(avals) || PyTuple_GET_SIZE(avals) != n || !read_axis(params, &axis) || (axis += ndim) < 0) return 0;
    for (d = 0; d < ndim; d++) {
        if (!new_axis || d != axis) strides[d - (new_axis && d > axis)] = PyArray_STRIDE(array, d);
    }
    left = PyArray_DIM(array, axis);
    for (k = 0; k < n; k++) {
        int length = read_aval(PyTuple_GET_ITEM(avals, k), g, dims);
        if (length != ndim - new_axis) return 0;
        for (d = 0; d < length; d++) { /* a user's rule may return any shape */
            if ((new_axis || d != axis) && dims[d] != PyArray_DIM(array, d + (new_axis && d >= axis))) return 0;
        }
        left -= new_axis ? 1 : dims[axis];
        if (left < 0) return 0;
        if (PyTuple_GET_ITEM(edges, k) != Py_None && (grads[k] = view_of_memory(g, from, length, dims, strides, flags)) == NULL) return -1;
        from += PyArray_STRIDE(array, axis) * (new_axis ? 1 : dims[axis]);
    }
    return 1;
}
