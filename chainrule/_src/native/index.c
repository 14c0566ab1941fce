/* A tensor at an index. Numbers, slices, None and an ellipsis give a view of its memory; one array of integers among full slices, a copy.

   What is beyond that, and what NumPy has something to say about, is Python's. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

enum { MOST_AXES = 32 };
#define COPIED 65536 /* as tape/versions.py has it */

/* where the elements of a view lie, and whether an ellipsis was written */
typedef struct {
    npy_intp dims[MOST_AXES], strides[MOST_AXES], offset;
    int ndim, dots;
} Region;

static int add_axis(Region *region, npy_intp dim, npy_intp stride) {
    if (region->ndim == MOST_AXES) return 0;
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
    if (length <= 0) return add_axis(region, 0, stride); /* as NumPy has it, from the beginning */
    region->offset += start * stride;
    return add_axis(region, length, (npy_intp)((size_t)step * (size_t)stride)); /* unsigned: the step of a slice with one element may be any number */
}

/* How many axes an item is about; -1 for one that is not basic. */
static int axes_of(PyObject *item) {
    if (PyLong_CheckExact(item) || PySlice_Check(item)) return 1;
    return item == Py_None || item == Py_Ellipsis ? 0 : -1;
}

static int read_region(Region *region, PyArrayObject *x, PyObject *const *items, Py_ssize_t n, int backward) {
    int axis = 0, left = PyArray_NDIM(x);
    Py_ssize_t i;
    region->ndim = region->dots = 0;
    region->offset = 0;
    for (i = 0; i < n; i++) {
        int axes = axes_of(items[i]); /* a number beyond all axes, or a step of zero, is an error below */
        if (axes < 0 || (items[i] == Py_Ellipsis && region->dots)) return 0;
        region->dots |= items[i] == Py_Ellipsis;
        left -= axes;
    }
    if (left < 0) return 0;
    for (i = 0; i <= n; i++) { /* the axes that are not named are where the ellipsis is, or at the end */
        PyObject *item = i < n ? items[i] : region->dots ? NULL : Py_Ellipsis;
        if (item == NULL) break;
        if (item == Py_None) {
            if (!add_axis(region, 1, 0)) return 0;
        } else if (item == Py_Ellipsis) {
            int end = axis + left;
            for (; axis < end; axis++) {
                if (!add_axis(region, PyArray_DIM(x, axis), PyArray_STRIDE(x, axis))) return 0;
            }
        } else if (PySlice_Check(item)) {
            if (!read_slice(region, (PySliceObject *)item, PyArray_DIM(x, axis), PyArray_STRIDE(x, axis), backward)) return 0;
            axis++;
        } else {
            Py_ssize_t at = PyLong_AsSsize_t(item), dim = PyArray_DIM(x, axis);
            if (at < -dim || at >= dim || PyErr_Occurred()) return 0;
            region->offset += (at < 0 ? at + dim : at) * PyArray_STRIDE(x, axis++);
        }
    }
    return 1;
}

static PyObject *view_of_region(PyObject *x, Region *region) {
    PyArrayObject *array = (PyArrayObject *)x;
    PyObject *made;
    Py_INCREF(PyArray_DESCR(array));
    made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(array), region->ndim, region->dims, region->strides, PyArray_BYTES(array) + region->offset, PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, NULL);
    if (made == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    if (made != NULL && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(x)) < 0) Py_CLEAR(made);
    return made;
}

static int is_places(PyObject *x) { return x != NULL && PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == NPY_INTP && PyArray_NDIM((PyArrayObject *)x) > 0 && PyArray_ISCARRAY_RO((PyArrayObject *)x); }

/* An array of integers as a node may keep it, from an item of an index: a tensor's own, a copy of a plain one, or of a list; NULL (with an error or
   without) where the item is something else. */
static PyObject *places_of(PyObject *item) {
    Py_ssize_t i;
    if (PyList_CheckExact(item)) {
        for (i = 0; i < PyList_GET_SIZE(item) && PyLong_CheckExact(PyList_GET_ITEM(item, i)); i++) {}
        return i > 0 && i == PyList_GET_SIZE(item) ? PyArray_FROM_OT(item, NPY_INTP) : NULL;
    }
    item = opened(item);
    if (Py_TYPE(item) == core.tensor) return is_places(SLOT(item, core.raw)) ? Py_NewRef(SLOT(item, core.raw)) : NULL;
    if (!is_places(item) || PyArray_NBYTES((PyArrayObject *)item) > COPIED) return NULL;
    return PyArray_NewCopy((PyArrayObject *)item, NPY_CORDER); /* nothing tells when it is written to */
}

static int is_full(PyObject *x) {
    PySliceObject *slice = (PySliceObject *)x;
    return PySlice_Check(x) && slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

/* (items, value) at an array of integers among full slices; 0 where Python has to do it, maybe with an error of the index. */
static int take_places(PyArrayObject *x, PyObject *items, int numpy, PyObject **read, PyObject **part) {
    PyObject *places = NULL;
    Py_ssize_t axis = 0, i, n = PyTuple_GET_SIZE(items);
    if (n > PyArray_NDIM(x) || !PyArray_ISCARRAY_RO(x)) return 0;
    for (i = 0; i < n; i++) {
        if (is_full(PyTuple_GET_ITEM(items, i))) continue;
        axis = i;
        if (places != NULL || (places = places_of(PyTuple_GET_ITEM(items, i))) == NULL) break;
    }
    if (places != NULL && i == n && !(numpy && axis > 0)) { /* else NumPy's result lies otherwise */
        *part = as_array(PyArray_TakeFrom(x, places, (int)axis, NULL, NPY_RAISE));
        *read = *part == NULL ? NULL : PyTuple_New(n);
        for (i = 0; *read != NULL && i < n; i++) PyTuple_SET_ITEM(*read, i, Py_NewRef(i == axis ? places : PyTuple_GET_ITEM(items, i)));
    }
    Py_XDECREF(places);
    return *read != NULL;
}

/* The parameters of a number, or of a slice without a step, are the same for all nodes that have such an index. */
enum { KEPT = 512, NUMBER = 1, SLICE = 2, NO_START = 4, NO_STOP = 8 };
typedef struct {
    PyObject *params;
    Py_ssize_t start, stop;
    int what;
} Kept;
static Kept kept[KEPT];

static PyObject *make_params(PyObject *word, PyObject *read) {
    PyObject *params = PyDict_New();
    if (params != NULL && PyDict_SetItem(params, word, read) < 0) Py_CLEAR(params);
    return params;
}

static PyObject *params_of(PyObject *word, PyObject *items) {
    PyObject *item = PyTuple_GET_SIZE(items) == 1 ? PyTuple_GET_ITEM(items, 0) : Py_None, *params, *old;
    Kept now = {NULL, 0, 0, 0}, *at;
    if (PyLong_CheckExact(item)) {
        now.what = NUMBER;
        now.start = PyLong_AsSsize_t(item);
    } else if (PySlice_Check(item) && ((PySliceObject *)item)->step == Py_None) {
        PySliceObject *slice = (PySliceObject *)item;
        now.what = SLICE | (slice->start == Py_None) * NO_START | (slice->stop == Py_None) * NO_STOP;
        if (slice->start != Py_None) now.start = PyLong_AsSsize_t(slice->start);
        if (slice->stop != Py_None && !PyErr_Occurred()) now.stop = PyLong_AsSsize_t(slice->stop);
    }
    if (now.what == 0 || PyErr_Occurred()) { /* a bound beyond all sizes */
        PyErr_Clear();
        return make_params(word, items);
    }
    at = &kept[((size_t)now.start * 31 + (size_t)now.stop * 7 + (size_t)now.what) % KEPT];
    if (at->params != NULL && at->what == now.what && at->start == now.start && at->stop == now.stop) return Py_NewRef(at->params);
    params = make_params(word, items);
    if (params == NULL) return NULL;
    now.params = Py_NewRef(params);
    old = at->params;
    *at = now;
    Py_XDECREF(old);
    return params;
}

PyObject *at_index(PyObject *basic, PyObject *at_places, PyObject *tensor, PyObject *index, int numpy, int mode) {
    static PyObject *index_word, *order_word, *as_x, *as_numpy;
    PyObject *raw = SLOT(tensor, core.raw), *params = NULL, *part = NULL, *items, *read = NULL, *made = NULL;
    Region region;
    int number = 0, is_basic;
    if (raw == NULL || kind_of(raw) < 0 || (numpy && PyArray_NDIM((PyArrayObject *)raw) == 0)) return NULL;
    if (as_numpy == NULL && ((index_word = PyUnicode_InternFromString("index")) == NULL || (order_word = PyUnicode_InternFromString("order")) == NULL || (as_x = PyUnicode_InternFromString("C")) == NULL || (as_numpy = PyUnicode_InternFromString("K")) == NULL)) return NULL;
    Py_INCREF(raw);
    items = PyTuple_CheckExact(index) ? Py_NewRef(index) : PyTuple_Pack(1, index);
    if (items == NULL) {
        Py_DECREF(raw);
        return NULL;
    }
    is_basic = read_region(&region, (PyArrayObject *)raw, &PyTuple_GET_ITEM(items, 0), PyTuple_GET_SIZE(items), numpy);
    if (is_basic) {
        number = numpy && region.ndim == 0; /* NumPy's numbers are values, not views */
        if (!(number && region.dots)) part = view_of_region(raw, &region);
        if (part != NULL && number) Py_SETREF(part, PyArray_NewCopy((PyArrayObject *)part, NPY_CORDER));
        read = Py_NewRef(items);
    } else if (!PyErr_Occurred()) {
        take_places((PyArrayObject *)raw, items, numpy, &read, &part);
    }
    if (part != NULL && read != NULL) params = is_basic ? params_of(index_word, read) : make_params(index_word, read);
    if (params != NULL && !is_basic && PyDict_SetItem(params, order_word, numpy ? as_numpy : as_x) < 0) Py_CLEAR(params);
    if (params != NULL) made = record_as(is_basic ? basic : at_places, &tensor, 1, params, part, !number, mode, here);
    if (made != NULL && number && SLOT(made, core.tensor_view) == NULL) SLOT(made, core.tensor_view) = Py_NewRef(Py_None);
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_LookupError) || PyErr_ExceptionMatches(PyExc_ArithmeticError) || PyErr_ExceptionMatches(PyExc_ValueError))) PyErr_Clear(); /* Python has the words */
    Py_XDECREF(params);
    Py_XDECREF(read);
    Py_XDECREF(part);
    Py_DECREF(items);
    Py_DECREF(raw);
    return made;
}
