/* Index a tensor. Integers, slices, None and an ellipsis give a view of its memory. One array of integers among full slices gives a copy.

   The slow path handles all other indices, and indices that NumPy warns about or rejects. operation.c calls index_tensor(). */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

enum { MAX_AXES = 32 };

/* the layout of a view, and whether the index has an ellipsis */
typedef struct {
    npy_intp dims[MAX_AXES], strides[MAX_AXES], offset;
    int ndim, has_ellipsis;
} Region;

static int add_axis(Region *region, npy_intp dim, npy_intp stride) {
    if (region->ndim == MAX_AXES) return 0;
    region->dims[region->ndim] = dim;
    region->strides[region->ndim++] = stride;
    return 1;
}

static int is_bound(PyObject *x) { return x == Py_None || PyLong_CheckExact(x); }

static int read_slice(Region *region, PySliceObject *slice, npy_intp dim, npy_intp stride, int backward) {
    Py_ssize_t start, stop, step, length;
    if (!is_bound(slice->start) || !is_bound(slice->stop) || !is_bound(slice->step) || PySlice_Unpack((PyObject *)slice, &start, &stop, &step) < 0) return 0;
    if (step < 0 && !backward) return 0;
    length = PySlice_AdjustIndices(dim, &start, &stop, step);
    if (length <= 0) return add_axis(region, 0, stride); /* NumPy's empty views start at the beginning */
    region->offset += start * stride;
    return add_axis(region, length, (npy_intp)((size_t)step * (size_t)stride)); /* unsigned, because the step of a slice with one element may be any number */
}

/* Return the number of axes that an item consumes; -1 if the item is not basic. */
static int axes_of(PyObject *item) {
    if (PyLong_CheckExact(item) || PySlice_Check(item)) return 1;
    return item == Py_None || item == Py_Ellipsis ? 0 : -1;
}

static int read_region(Region *region, PyArrayObject *x, PyObject *const *items, Py_ssize_t n, int backward) {
    int axis = 0, nremaining = PyArray_NDIM(x);
    Py_ssize_t i;
    region->ndim = region->has_ellipsis = 0;
    region->offset = 0;
    for (i = 0; i < n; i++) {
        int axes = axes_of(items[i]); /* too many integers, or a step of zero, fail below */
        if (axes < 0 || (items[i] == Py_Ellipsis && region->has_ellipsis)) return 0;
        region->has_ellipsis |= items[i] == Py_Ellipsis;
        nremaining -= axes;
    }
    if (nremaining < 0) return 0;
    for (i = 0; i <= n; i++) { /* axes without an item are at the ellipsis, or at the end */
        PyObject *item = i < n ? items[i] : region->has_ellipsis ? NULL : Py_Ellipsis;
        if (item == NULL) break;
        if (item == Py_None) {
            if (!add_axis(region, 1, 0)) return 0;
        } else if (item == Py_Ellipsis) {
            int end = axis + nremaining;
            for (; axis < end; axis++) {
                if (!add_axis(region, PyArray_DIM(x, axis), PyArray_STRIDE(x, axis))) return 0;
            }
        } else if (PySlice_Check(item)) {
            if (!read_slice(region, (PySliceObject *)item, PyArray_DIM(x, axis), PyArray_STRIDE(x, axis), backward)) return 0;
            axis++;
        } else {
            Py_ssize_t slot = PyLong_AsSsize_t(item), dim = PyArray_DIM(x, axis);
            if (slot < -dim || slot >= dim || PyErr_Occurred()) return 0;
            region->offset += (slot < 0 ? slot + dim : slot) * PyArray_STRIDE(x, axis++);
        }
    }
    return 1;
}

static PyObject *view_of_region(PyObject *x, Region *region) {
    PyArrayObject *array = (PyArrayObject *)x;
    return view_of_memory(x, PyArray_BYTES(array) + region->offset, region->ndim, region->dims, region->strides, PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE);
}

static int is_positions(PyObject *x) { return x != NULL && PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == NPY_INTP && PyArray_NDIM((PyArrayObject *)x) > 0 && PyArray_ISCARRAY_RO((PyArrayObject *)x); }

/* Convert an item of an index to an array of integers that a node can save: the tensor's own array, or a copy of a plain array or list. NULL, with
   or without an error, for any other item. */
static PyObject *positions_of(PyObject *item) {
    Py_ssize_t i;
    if (PyList_CheckExact(item)) {
        for (i = 0; i < PyList_GET_SIZE(item) && PyLong_CheckExact(PyList_GET_ITEM(item, i)); i++) {}
        return i > 0 && i == PyList_GET_SIZE(item) ? PyArray_FROM_OT(item, NPY_INTP) : NULL;
    }
    item = unwrap_array(item);
    if (Py_TYPE(item) == core.tensor) return is_positions(SLOT(item, core.raw)) ? Py_NewRef(SLOT(item, core.raw)) : NULL;
    if (!is_positions(item) || PyArray_NBYTES((PyArrayObject *)item) > COPIED) return NULL;
    return PyArray_NewCopy((PyArrayObject *)item, NPY_CORDER); /* writes to plain arrays are not detected */
}

static int is_full(PyObject *x) {
    PySliceObject *slice = (PySliceObject *)x;
    return PySlice_Check(x) && slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

/* Take elements at an array of integers among full slices, and return the index to save. 0, maybe with an IndexError: slow path. */
static int take_positions(PyArrayObject *x, PyObject *items, int numpy, PyObject **saved_index, PyObject **value) {
    PyObject *positions = NULL;
    Py_ssize_t axis = 0, i, n = PyTuple_GET_SIZE(items);
    if (n > PyArray_NDIM(x) || !PyArray_ISCARRAY_RO(x)) return 0;
    for (i = 0; i < n; i++) {
        if (is_full(PyTuple_GET_ITEM(items, i))) continue;
        axis = i;
        if (positions != NULL || (positions = positions_of(PyTuple_GET_ITEM(items, i))) == NULL) break;
    }
    if (positions != NULL && i == n && !(numpy && axis > 0)) { /* otherwise NumPy's result has another memory layout */
        *value = as_array(PyArray_TakeFrom(x, positions, (int)axis, NULL, NPY_RAISE));
        *saved_index = *value == NULL ? NULL : PyTuple_New(n);
        for (i = 0; *saved_index != NULL && i < n; i++) PyTuple_SET_ITEM(*saved_index, i, Py_NewRef(i == axis ? positions : PyTuple_GET_ITEM(items, i)));
    }
    Py_XDECREF(positions);
    return *saved_index != NULL;
}

/* A cache of parameters for indices that are one integer or one slice without a step. */
enum { PARAMS_CACHE_SIZE = 512, IS_NUMBER = 1, IS_SLICE = 2, NO_START = 4, NO_STOP = 8 };
typedef struct {
    PyObject *params;
    Py_ssize_t start, stop;
    int flags;
} CachedParams;
static CachedParams params_cache[PARAMS_CACHE_SIZE];

static PyObject *make_params(PyObject *keyword, PyObject *saved_index) {
    PyObject *params = PyDict_New();
    if (params != NULL && PyDict_SetItem(params, keyword, saved_index) < 0) Py_CLEAR(params);
    return params;
}

static PyObject *params_of(PyObject *keyword, PyObject *items) {
    PyObject *item = PyTuple_GET_SIZE(items) == 1 ? PyTuple_GET_ITEM(items, 0) : Py_None, *params, *old;
    CachedParams wanted = {NULL, 0, 0, 0}, *slot;
    if (PyLong_CheckExact(item)) {
        wanted.flags = IS_NUMBER;
        wanted.start = PyLong_AsSsize_t(item);
    } else if (PySlice_Check(item) && ((PySliceObject *)item)->step == Py_None) {
        PySliceObject *slice = (PySliceObject *)item;
        wanted.flags = IS_SLICE | (slice->start == Py_None) * NO_START | (slice->stop == Py_None) * NO_STOP;
        if (slice->start != Py_None) wanted.start = PyLong_AsSsize_t(slice->start);
        if (slice->stop != Py_None && !PyErr_Occurred()) wanted.stop = PyLong_AsSsize_t(slice->stop);
    }
    if (wanted.flags == 0 || PyErr_Occurred()) { /* a bound out of range of Py_ssize_t */
        PyErr_Clear();
        return make_params(keyword, items);
    }
    slot = &params_cache[((size_t)wanted.start * 31 + (size_t)wanted.stop * 7 + (size_t)wanted.flags) % PARAMS_CACHE_SIZE];
    if (slot->params != NULL && slot->flags == wanted.flags && slot->start == wanted.start && slot->stop == wanted.stop) return Py_NewRef(slot->params);
    params = make_params(keyword, items);
    if (params == NULL) return NULL;
    wanted.params = Py_NewRef(params);
    old = slot->params;
    *slot = wanted;
    Py_XDECREF(old);
    return params;
}

PyObject *index_tensor(PyObject *basic, PyObject *at_positions, PyObject *tensor, PyObject *index, int numpy, int mode) {
    static PyObject *index_name, *order_name, *order_c, *order_k;
    PyObject *raw = array_of_tensor(tensor, mode), *params = NULL, *value = NULL, *items, *saved_index = NULL, *output = NULL;
    Region region;
    int number = 0, is_basic;
    if (raw == NULL || kind_of(raw) < 0 || (numpy && PyArray_NDIM((PyArrayObject *)raw) == 0)) return NULL;
    if (order_k == NULL && ((index_name = PyUnicode_InternFromString("index")) == NULL || (order_name = PyUnicode_InternFromString("order")) == NULL || (order_c = PyUnicode_InternFromString("C")) == NULL || (order_k = PyUnicode_InternFromString("K")) == NULL)) return NULL;
    Py_INCREF(raw);
    items = PyTuple_CheckExact(index) ? Py_NewRef(index) : PyTuple_Pack(1, index);
    if (items == NULL) {
        Py_DECREF(raw);
        return NULL;
    }
    is_basic = read_region(&region, (PyArrayObject *)raw, &PyTuple_GET_ITEM(items, 0), PyTuple_GET_SIZE(items), numpy);
    if (is_basic) {
        number = numpy && region.ndim == 0; /* in the NumPy-style API, numbers are copies, not views */
        if (number && region.has_ellipsis) value = NULL;
        else value = mode == TRACES ? Py_NewRef(Py_None) : view_of_region(raw, &region);
        if (mode != TRACES && value != NULL && number) Py_SETREF(value, PyArray_NewCopy((PyArrayObject *)value, NPY_CORDER));
        saved_index = Py_NewRef(items);
    } else if (!PyErr_Occurred() && mode != TRACES) {
        take_positions((PyArrayObject *)raw, items, numpy, &saved_index, &value);
    }
    if (value != NULL && saved_index != NULL) params = is_basic ? params_of(index_name, saved_index) : make_params(index_name, saved_index);
    if (params != NULL && !is_basic && PyDict_SetItem(params, order_name, numpy ? order_k : order_c) < 0) Py_CLEAR(params);
    if (params != NULL) output = record_as(is_basic ? basic : at_positions, &tensor, 1, params, mode == TRACES ? NULL : value, !number, mode, current_frame);
    if (output != NULL && number && SLOT(output, core.tensor_view) == NULL) SLOT(output, core.tensor_view) = Py_NewRef(Py_None);
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_LookupError) || PyErr_ExceptionMatches(PyExc_ArithmeticError) || PyErr_ExceptionMatches(PyExc_ValueError))) PyErr_Clear(); /* Python raises it with its own message */
    Py_XDECREF(params);
    Py_XDECREF(saved_index);
    Py_XDECREF(value);
    Py_DECREF(items);
    Py_DECREF(raw);
    return output;
}
