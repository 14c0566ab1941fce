/* The fast path of in-place writes (api/in_place.py, tape/inplace.py), and the record of writes (tape/versions.py). operation.c calls it.

   The fast path: the tensor has a contiguous array, is not a view, has no views, and is not a leaf that requires grad; or the write is not
   recorded. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

static PyObject *python_note_write, *new_record, *lock, *try_lock, *unlock;
static PyTypeObject *lender_type;

enum { MAX_WRITE_TIMES = 64 }; /* number of recent write times, _MAX_TIMES of tape/versions.py */

/* ---- the record of writes */

/* Borrow the array that owns the memory; NULL if Python must look for it. */
static PyObject *owner_of(PyObject *array) {
    PyObject *base;
    while ((base = PyArray_BASE((PyArrayObject *)array)) != NULL) {
        if (Py_TYPE(base) == lender_type) return NULL;
        if (!PyArray_Check(base)) break;
        array = base;
    }
    return array;
}

/* Append a write to a record of writes. */
static int append_write(PyObject *written, PyObject *time, PyObject *label, PyObject *where) {
    PyObject *times = SLOT(written, core.written_times), *count, *last;
    Py_ssize_t n;
    int done = -1;
    if (times == NULL || !PyList_CheckExact(times) || SLOT(written, core.written_count) == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the record of writes was replaced");
        return -1;
    }
    Py_INCREF(times);
    n = PyLong_AsSsize_t(SLOT(written, core.written_count));
    count = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(n + 1);
    last = count == NULL ? NULL : PyTuple_Pack(2, label, where);
    if (last != NULL && PyList_Append(times, time) == 0) {
        Py_XSETREF(SLOT(written, core.written_count), Py_NewRef(count));
        Py_XSETREF(SLOT(written, core.written_last), Py_NewRef(last));
        n = PyList_GET_SIZE(times);
        done = n > MAX_WRITE_TIMES ? PyList_SetSlice(times, 0, n - MAX_WRITE_TIMES, NULL) : 0;
    }
    Py_XDECREF(count);
    Py_XDECREF(last);
    Py_DECREF(times);
    return done;
}

/* Record a write at the next time of the clock. The caller holds the lock, so the clock never goes back. */
static int record_write_locked(PyObject *array, PyObject *owner, PyObject *label, PyObject *where) {
    PyObject *time = Py_TYPE(core.counter)->tp_iternext(core.counter), *id = PyLong_FromVoidPtr(owner), *written = NULL;
    int done = -1;
    if (time != NULL && id != NULL) {
        Py_XSETREF(SLOT(core.clock, core.latest), Py_NewRef(time));
        written = Py_XNewRef(PyDict_GetItemWithError(core.writes, id));
        if (written == NULL && !PyErr_Occurred()) written = PyObject_CallOneArg(new_record, array);
    }
    if (written != NULL && Py_TYPE(written) == core.written) done = append_write(written, time, label, where);
    Py_XDECREF(time);
    Py_XDECREF(id);
    Py_XDECREF(written);
    return done;
}

/* As tape.versions.note_write. */
static int record_write(PyObject *array, PyObject *label, PyObject *where) {
    PyObject *owner = owner_of(array), *acquired = owner == NULL ? NULL : PyObject_CallOneArg(try_lock, Py_False), *args[] = {array, label, where};
    int done;
    if (acquired == NULL && PyErr_Occurred()) return -1;
    if (acquired == Py_True) {
        Py_DECREF(acquired);
        done = record_write_locked(array, owner, label, where);
        acquired = done < 0 ? NULL : PyObject_CallNoArgs(unlock);
        if (done < 0) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            Py_XDECREF(PyObject_CallNoArgs(unlock));
            PyErr_Restore(type, value, traceback);
        }
    } else { /* another thread has the lock: wait in Python */
        Py_XDECREF(acquired);
        acquired = PyObject_Vectorcall(python_note_write, args, 3, NULL);
    }
    Py_XDECREF(acquired);
    return acquired == NULL ? -1 : 0;
}

/* ---- checks */

static int is_none(PyObject *slot) { return slot == NULL || slot == Py_None; }

int may_write(PyObject *tensor, int mode, int replaced) {
    PyObject *raw, *edge, *view;
    if (Py_TYPE(tensor) != core.tensor || PyList_GET_SIZE(core.before_write) > 0) return 0;
    raw = SLOT(tensor, core.raw);
    edge = SLOT(tensor, core.edge);
    view = SLOT(tensor, core.tensor_view);
    if (raw == NULL || edge == NULL || kind_of(raw) < 0 || !PyArray_ISCARRAY((PyArrayObject *)raw)) return 0;
    if (mode != RECORDS) { /* the origin of a read-only view is "read-only" */
        return is_none(view) || (Py_TYPE(view) == core.view && SLOT(view, core.view_origin) != NULL && PyUnicode_Check(SLOT(view, core.view_origin)) && PyUnicode_CompareWithASCIIString(SLOT(view, core.view_origin), "read-only") != 0);
    }
    if (!is_none(view) || Py_TYPE(edge) == core.leaf) return 0;
    return !replaced || (is_none(SLOT(tensor, core.views)) && (edge == Py_None || (PyObject_TypeCheck(edge, core.node) && SLOT(edge, core.hooks) == Py_None)));
}

/* Whether broadcasting x with y keeps the shape of x. */
static int broadcasts_into(PyObject *y, PyArrayObject *x) {
    PyArrayObject *array = (PyArrayObject *)y;
    int left;
    if (!PyArray_CheckExact(y)) return 1;
    left = PyArray_NDIM(x) - PyArray_NDIM(array);
    return left >= 0 && PyArray_CompareLists(PyArray_DIMS(x) + left, PyArray_DIMS(array), PyArray_NDIM(array));
}

/* ---- elementwise ops in place */

/* Return the cut (reason for a missing history) after a write of constants: that of an operand other than the first. */
static PyObject *cut_of(PyObject *const *args, int n) {
    int k;
    for (k = 1; k < n; k++) {
        if (Py_TYPE(args[k]) == core.tensor && SLOT(args[k], core.edge) == Py_None && !is_none(SLOT(args[k], core.cut))) return SLOT(args[k], core.cut);
    }
    return Py_None;
}

static int saves_first(const Op *op) {
    int i;
    for (i = 0; i < op->nsaves; i++) {
        if (op->saved_index[i] == 0) return 1;
    }
    return 0;
}

static int write_result(PyObject *target, PyObject *result, PyObject *label) {
    PyObject *where = user_line(current_frame);
    int done = -1;
    if (where != NULL) {
        if (result != NULL) memmove(PyArray_DATA((PyArrayObject *)target), PyArray_DATA((PyArrayObject *)result), (size_t)PyArray_NBYTES((PyArrayObject *)target));
        done = record_write(target, label, where);
        Py_DECREF(where);
    }
    return done;
}

/* Write with one ufunc call into the tensor's memory; nothing is recorded. */
static PyObject *write_directly(Op *op, PyObject *const *args, const Operands *operands, PyObject *label) {
    PyObject *result = apply_function(&op->value, operands->count, operands->raw, 1);
    int done = result == NULL ? -1 : write_result(operands->raw[0], NULL, label);
    Py_XDECREF(result);
    return done < 0 ? NULL : Py_NewRef(args[0]);
}

PyObject *operate_in_place(Op *op, PyObject *prim, PyObject *label, int direct, PyObject *const *args, Operands *operands, int mode) {
    PyObject *data = operands->raw[0], *result, *edge = NULL;
    int k, recorded = operands->recorded && mode == RECORDS, done;
    for (k = 1; k < operands->count; k++) {
        if (!broadcasts_into(operands->raw[k], (PyArrayObject *)data)) return NULL;
        if (PyArray_CheckExact(operands->raw[k]) && PyArray_NDIM((PyArrayObject *)operands->raw[k]) == 0 && PyArray_NDIM((PyArrayObject *)data) > 0) direct = 0;
    }
    direct = direct && !recorded && op->value.ufunc != NULL;
    if (!may_write(args[0], mode, !direct) || (recorded && !op->records)) return NULL;
    if (direct) return write_directly(op, args, operands, label);
    if (recorded && saves_first(op)) { /* the tape must save the value from before the write */
        PyObject *copy;
        if (!PyArray_ISONESEGMENT((PyArrayObject *)data)) return NULL; /* copy_alike in Python keeps the strides */
        copy = PyArray_NewCopy((PyArrayObject *)data, NPY_KEEPORDER);
        if (copy == NULL) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        operands->raw[0] = copy;
    } else {
        Py_INCREF(data);
    }
    result = op_value(op, operands->raw, operands->count, core.no_params);
    if (result != NULL && (!PyArray_CheckExact(result) || result == operands->raw[0] || kind_of(result) != kind_of(data) || !PyArray_ISCARRAY_RO((PyArrayObject *)result))) Py_CLEAR(result);
    if (result != NULL && recorded) {
        edge = node_of(op, prim, node_operands(operands), core.no_params, result, result, current_frame);
        if (edge == NULL) Py_CLEAR(result);
    }
    done = result == NULL ? -1 : write_result(data, result, label);
    if (done == 0 && mode == RECORDS) {
        if (!recorded) Py_XSETREF(SLOT(args[0], core.cut), Py_NewRef(cut_of(args, operands->count)));
        else Py_XSETREF(SLOT(args[0], core.edge), Py_NewRef(edge));
    }
    Py_XDECREF(result);
    Py_XDECREF(edge);
    Py_DECREF(data);
    return done < 0 ? NULL : Py_NewRef(args[0]);
}

/* ---- assignment */

/* Whether the elements of a tensor can be copied with memmove. */
static int is_source(PyObject *value, PyObject *data, int mode) {
    PyObject *raw;
    if (Py_TYPE(value) != core.tensor) return 0;
    raw = SLOT(value, core.raw);
    if (raw == NULL || kind_of(raw) != kind_of(data) || !PyArray_ISCARRAY_RO((PyArrayObject *)raw)) return 0;
    return PyArray_SAMESHAPE((PyArrayObject *)raw, (PyArrayObject *)data) && (mode != RECORDS || SLOT(value, core.edge) == Py_None);
}

/* Fill an array with a number; 0 if NumPy would warn or raise, -1 error. */
static int fill(PyArrayObject *data, PyObject *number) {
    PyObject *element = array_of(number, kind_of((PyObject *)data));
    size_t size = (size_t)PyArray_ITEMSIZE(data), n = (size_t)PyArray_SIZE(data), i;
    if (element == NULL) return PyErr_Occurred() ? -1 : 0;
    for (i = 0; i < n; i++) memcpy(PyArray_BYTES(data) + i * size, PyArray_DATA((PyArrayObject *)element), size);
    Py_DECREF(element);
    return 1;
}

PyObject *assign(PyObject *label, PyObject *target, PyObject *value, int number, int mode) {
    PyObject *data, *source = NULL, *cut = NULL;
    int done = 1;
    if ((number && !is_number(value)) || !may_write(target, mode, !number) || (mode == RECORDS && SLOT(target, core.edge) != Py_None)) return NULL;
    data = SLOT(target, core.raw);
    if (!number && !is_source(value, data, mode)) return NULL;
    Py_INCREF(data);
    if (number) {
        done = fill((PyArrayObject *)data, value);
    } else {
        source = Py_NewRef(SLOT(value, core.raw));
        if (source != data) memmove(PyArray_DATA((PyArrayObject *)data), PyArray_DATA((PyArrayObject *)source), (size_t)PyArray_NBYTES((PyArrayObject *)data));
        cut = SLOT(value, core.cut);
        cut = Py_NewRef(cut == NULL ? Py_None : cut);
    }
    if (done > 0 && write_result(data, NULL, label) < 0) done = -1;
    if (done > 0 && !number && mode == RECORDS) Py_XSETREF(SLOT(target, core.cut), Py_NewRef(cut));
    Py_XDECREF(cut);
    Py_XDECREF(source);
    Py_DECREF(data);
    return done > 0 ? Py_NewRef(target) : NULL;
}

int connect_writes(PyObject *python_function, PyObject *record, PyObject *write_lock, PyObject *lender) {
    python_note_write = python_function;
    new_record = record;
    lock = write_lock;
    lender_type = (PyTypeObject *)lender;
    try_lock = PyObject_GetAttrString(lock, "acquire");
    unlock = PyObject_GetAttrString(lock, "release");
    return try_lock == NULL || unlock == NULL ? -1 : 0;
}
