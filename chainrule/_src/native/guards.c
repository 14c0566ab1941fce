/* Guards of compiled functions: check that Python state which a trace has read is unchanged. compiling/guards/guards.py makes guards and
   documents their kinds; first_broken() checks a tuple of them. */

#define NO_IMPORT_ARRAY
#include "runner.h"

#include <string.h>

enum { ITEM, INSTANCE, CELL, CLASS_VERSION, REGISTERED, CLASS, ELEMENTS, LENGTH, FUNCTION, ARRAY, CHECK };

static PyObject *missing; /* stands for a missing value; set by first_broken() */

/* whether `found` (borrowed, may be NULL) is the value that was read */
static int is_value(PyObject *found, PyObject *value) {
    return found == value || (found == NULL && value == missing);
}

static int in_instance(PyObject *object, PyObject *key, PyObject *value) {
    PyObject *inside = PyObject_GenericGetDict(object, NULL);
    int holds;
    if (inside == NULL) {
        PyErr_Clear();
        return value == missing;
    }
    holds = key == Py_None ? inside == value : is_value(PyDict_GetItemWithError(inside, key), value);
    Py_DECREF(inside);
    return holds;
}

/* ---- classes */

/* Return the version tag of a class, which changes with each attribute of the class or its bases; 0 if it has none. */
static unsigned int version_tag(PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030C0000
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
    return type->tp_version_tag;
}

/* class_version(cls) -> (version tag, __name__, __qualname__) of a class defined in Python; assigns a tag if the class has none */
PyObject *class_version(PyObject *self, PyObject *cls) {
    PyTypeObject *type = (PyTypeObject *)cls;
    PyHeapTypeObject *heap = (PyHeapTypeObject *)cls;
    if (!PyType_Check(cls) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "class_version takes a class defined in Python");
        return NULL;
    }
    if (version_tag(type) == 0) {
#if PY_VERSION_HEX < 0x030C0000
        static PyObject *name;
        if (name == NULL && (name = PyUnicode_InternFromString("__init__")) == NULL) return NULL;
        _PyType_Lookup(type, name);
#else
        PyUnstable_Type_AssignVersionTag(type);
#endif
    }
    return Py_BuildValue("(IOO)", version_tag(type), heap->ht_name, heap->ht_qualname);
}

/* class_attribute(cls, name, missing) -> an attribute from the namespace of a class or its bases, unbound; `missing` if there is none */
PyObject *class_attribute(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *found;
    if (nargs != 3 || !PyType_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "class_attribute takes (cls, name, missing)");
        return NULL;
    }
    found = _PyType_Lookup((PyTypeObject *)args[0], args[1]);
    return Py_NewRef(found == NULL ? args[2] : found);
}

static int has_version(PyObject *object, PyObject *value) {
    PyTypeObject *type = (PyTypeObject *)object;
    PyHeapTypeObject *heap = (PyHeapTypeObject *)object;
    unsigned int tag;
    if (!PyType_Check(object) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return 0;
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 3) return 0;
    tag = version_tag(type);
    return tag != 0 && tag == PyLong_AsUnsignedLong(PyTuple_GET_ITEM(value, 0)) &&
           heap->ht_name == PyTuple_GET_ITEM(value, 1) && heap->ht_qualname == PyTuple_GET_ITEM(value, 2);
}

/* value: (token, answer). Whether no class was registered with an ABC since. */
static int has_token(PyObject *value) {
    static PyObject *get_token;
    PyObject *token;
    int same;
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 2) return 0;
    if (get_token == NULL) {
        PyObject *abc = PyImport_ImportModule("abc");
        if (abc == NULL) return 0;
        get_token = PyObject_GetAttrString(abc, "get_cache_token");
        Py_DECREF(abc);
        if (get_token == NULL) return 0;
    }
    token = PyObject_CallNoArgs(get_token);
    if (token == NULL) return 0;
    same = PyObject_RichCompareBool(token, PyTuple_GET_ITEM(value, 0), Py_EQ) == 1;
    Py_DECREF(token);
    return same;
}

/* ---- contents */

static int has_elements(PyObject *object, PyObject *value) {
    Py_ssize_t i, count = PyTuple_GET_SIZE(value);
    if (PyList_CheckExact(object)) {
        if (PyList_GET_SIZE(object) != count) return 0;
        for (i = 0; i < count; i++) {
            if (PyList_GET_ITEM(object, i) != PyTuple_GET_ITEM(value, i)) return 0;
        }
        return 1;
    }
    if (PyDict_CheckExact(object)) {
        Py_ssize_t at = 0;
        PyObject *key, *item;
        if (2 * PyDict_GET_SIZE(object) != count) return 0;
        for (i = 0; PyDict_Next(object, &at, &key, &item); i += 2) {
            if (key != PyTuple_GET_ITEM(value, i) || item != PyTuple_GET_ITEM(value, i + 1)) return 0;
        }
        return 1;
    }
    if (count == 0) return PyObject_Size(object) == 0;
    return 0; /* other containers are checked in Python */
}

static int has_length(PyObject *object, PyObject *value) {
    Py_ssize_t wanted = PyLong_AsSsize_t(value), length;
    if (PyList_CheckExact(object)) length = PyList_GET_SIZE(object);
    else if (PyDict_CheckExact(object)) length = PyDict_GET_SIZE(object);
    else return 0;
    return length == wanted;
}

/* value: (code, defaults, keyword defaults) of a function, with None for missing ones */
static int has_parts(PyObject *object, PyObject *value) {
    PyFunctionObject *function = (PyFunctionObject *)object;
    PyObject *parts[3];
    int i;
    if (!PyFunction_Check(object) || !PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 3) return 0;
    parts[0] = function->func_code;
    parts[1] = function->func_defaults;
    parts[2] = function->func_kwdefaults;
    for (i = 0; i < 3; i++) {
        if ((parts[i] == NULL ? Py_None : parts[i]) != PyTuple_GET_ITEM(value, i)) return 0;
    }
    return 1;
}

/* pairs: (dtype, names, ...), the structured dtypes in a dtype. Assigning to dtype.names makes a new tuple. */
static int has_names(PyObject *pairs) {
    Py_ssize_t i;
    for (i = 0; i + 1 < PyTuple_GET_SIZE(pairs); i += 2) {
        PyObject *dtype = PyTuple_GET_ITEM(pairs, i);
        if (!PyArray_DescrCheck(dtype) || PyDataType_NAMES((PyArray_Descr *)dtype) != PyTuple_GET_ITEM(pairs, i + 1)) return 0;
    }
    return 1;
}

/* numbers: the bytes in memory order (arrays with gaps are copied), or None if the values do not matter. Tuples are compared in Python. */
static int has_numbers(PyArrayObject *array, PyObject *numbers) {
    PyObject *copy;
    int same;
    if (numbers == Py_None) return 1;
    if (!PyBytes_CheckExact(numbers) || PyBytes_GET_SIZE(numbers) != PyArray_NBYTES(array)) return 0;
    if (PyArray_ISONESEGMENT(array)) {
        return memcmp(PyArray_BYTES(array), PyBytes_AS_STRING(numbers), (size_t)PyBytes_GET_SIZE(numbers)) == 0;
    }
    copy = PyArray_ToString(array, NPY_ANYORDER);
    if (copy == NULL) return 0;
    same = PyBytes_GET_SIZE(copy) == PyBytes_GET_SIZE(numbers)
        && memcmp(PyBytes_AS_STRING(copy), PyBytes_AS_STRING(numbers), (size_t)PyBytes_GET_SIZE(copy)) == 0;
    Py_DECREF(copy);
    return same;
}

/* value: (numbers, layout, dtype, names) of an array, as array_state() in guards.py returns them */
static int is_array(PyObject *object, PyObject *value) {
    PyArrayObject *array = (PyArrayObject *)object;
    PyObject *layout;
    npy_intp found[2 + 2 * NPY_MAXDIMS];
    size_t ndim;
    if (!PyArray_Check(object) || !PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 4) return 0;
    ndim = (size_t)PyArray_NDIM(array);
    layout = PyTuple_GET_ITEM(value, 1);
    found[0] = (npy_intp)PyArray_BYTES(array);
    found[1] = PyArray_FLAGS(array);
    if (ndim) {
        memcpy(found + 2, PyArray_DIMS(array), ndim * sizeof(npy_intp));
        memcpy(found + 2 + ndim, PyArray_STRIDES(array), ndim * sizeof(npy_intp));
    }
    return PyBytes_CheckExact(layout) && (size_t)PyBytes_GET_SIZE(layout) == (2 + 2 * ndim) * sizeof(npy_intp)
        && memcmp(found, PyBytes_AS_STRING(layout), (2 + 2 * ndim) * sizeof(npy_intp)) == 0
        && (PyObject *)PyArray_DESCR(array) == PyTuple_GET_ITEM(value, 2)
        && PyTuple_CheckExact(PyTuple_GET_ITEM(value, 3)) && has_names(PyTuple_GET_ITEM(value, 3))
        && has_numbers(array, PyTuple_GET_ITEM(value, 0));
}

/* first_broken(guards, begin, missing) -> the index of the first guard from `begin` on that does not hold, or that Python must check; -1 if
   there is none */
PyObject *first_broken(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Py_ssize_t k, count;
    PyObject *guards;
    if (nargs != 3 || !PyTuple_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "first_broken takes (guards, begin, missing)");
        return NULL;
    }
    guards = args[0];
    missing = args[2];
    k = PyLong_AsSsize_t(args[1]);
    if (k < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "begin < 0");
        return NULL;
    }
    count = PyTuple_GET_SIZE(guards);
    for (; k < count; k++) {
        PyObject *guard = PyTuple_GET_ITEM(guards, k), *object, *key, *value;
        int holds = 0;
        if (!PyTuple_Check(guard) || PyTuple_GET_SIZE(guard) != 4) {
            PyErr_SetString(PyExc_TypeError, "a guard is (kind, target, key, value)");
            return NULL;
        }
        object = PyTuple_GET_ITEM(guard, 1);
        key = PyTuple_GET_ITEM(guard, 2);
        value = PyTuple_GET_ITEM(guard, 3);
        switch (PyLong_AsLong(PyTuple_GET_ITEM(guard, 0))) {
        case ITEM:
            holds = PyDict_Check(object) && is_value(PyDict_GetItemWithError(object, key), value);
            break;
        case INSTANCE:
            holds = in_instance(object, key, value);
            break;
        case CELL:
            holds = PyCell_Check(object) && is_value(PyCell_GET(object), value);
            break;
        case CLASS_VERSION:
            holds = has_version(object, value);
            break;
        case REGISTERED:
            holds = has_token(value);
            break;
        case CLASS:
            holds = (PyObject *)Py_TYPE(object) == value;
            break;
        case ELEMENTS:
            holds = PyTuple_CheckExact(value) && has_elements(object, value);
            break;
        case LENGTH:
            holds = has_length(object, value);
            break;
        case FUNCTION:
            holds = has_parts(object, value);
            break;
        case ARRAY:
            holds = is_array(object, value);
            break;
        default:; /* checked in Python */
        }
        if (PyErr_Occurred()) PyErr_Clear(); /* the value was deleted */
        if (!holds) break;
    }
    return PyLong_FromSsize_t(k < count ? k : -1);
}
