/* Operations as users call them: the ordinary case without Python, every other case by the Python function.

   The ordinary case: no thread in a special mode, exact Tensors of exact ndarrays of float or double, Python numbers, no keywords.
   What is beyond it is handed to the Python function as it came. An error of the ordinary case's own is never raised where Python
   has better words: then Python is asked again. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

#include <numpy/arrayscalars.h>

#include <stddef.h>
#include <structmember.h> /* the names of Python 3.11 */

/* ELEMENTWISE: a row of up to three operands. RANKED: the row depends on how many axes its two operands have.
   REMEMBERED: one tensor, or several, and static arguments, whose way to a row and parameters is learnt from what Python left on the tape.
   PROTOCOL: __array_ufunc__, which finds the operation of a ufunc. IN_PLACE: an elementwise row whose value is written into its first
   operand. ASSIGNED: a number, or another tensor's elements, written into a tensor.
   LEARNT: a method of Arrays, whose way to rows and parameters is learnt; FUNCTIONS: __array_function__, the same for many functions.
   INDEX: a tensor or an Array at an index */
enum { ELEMENTWISE, RANKED, REMEMBERED, PROTOCOL, IN_PLACE, ASSIGNED, LEARNT, FUNCTIONS, INDEX };
enum { MOST_RANKS = 5, MOST_REMEMBERED = 512, MOST_JOINED = 16, MOST_LEARNT_APART = 1 << 16 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weakrefs;
    PyObject *python; /* the function that this is, which takes every call that this leaves */
    PyObject *prim;   /* ELEMENTWISE, IN_PLACE, INDEX */
    PyObject *table;  /* RANKED: (axes, axes) -> row; PROTOCOL: (ufunc, whether a number comes first) -> operation; FUNCTIONS: those that are learnt; INDEX: the row at an array */
    PyObject *ways;   /* REMEMBERED: a dict */
    PyObject *learn;
    Ways *learnt;                   /* LEARNT, FUNCTIONS */
    PyObject *parameters;           /* ELEMENTWISE: the row's numbers by their keywords, and what they are if not given */
    PyObject *factor_name, *factor; /* the keyword of a number by which the last operand is multiplied first, by this operation */
    PyObject *label;                /* IN_PLACE, ASSIGNED: what it is called in the record of writes */
    PyObject *assigned;             /* ASSIGNED: the number, where it is always the same */
    int form, nin, number_first, floating, whole;
    int masks, arrays_of_numbers; /* bits of the operands that are masks; numbers become arrays without dimensions */
    int direct;                   /* IN_PLACE: outside the tape it is one call of a ufunc. ASSIGNED: of numbers, else of tensors */
    int arrays, swapped;          /* takes and gives Arrays; with the operands exchanged */
    int constants;                /* plain arrays are operands, too */
} Operation;

static PyTypeObject *operation_type, *array_type;
static Py_ssize_t array_tensor;

int is_operation(PyObject *object) { return Py_TYPE(object) == operation_type; }

/* ---- warnings: tape/warned.py */

/* NumPy's context variable of how errors are treated; what says how they are while we compute, and the answers of late */
static PyObject *treatment, *twin_of;
static struct { PyObject *given, *ours; } twins[4];
static int last_twin;

/* Return the error state for our computations: a new reference, None for the current one, NULL with an error. */
static PyObject *our_treatment(void) {
    PyObject *now = NULL, *ours, *old_given, *old_ours;
    int i;
    if (treatment == NULL) return Py_NewRef(Py_None);
    if (PyContextVar_Get(treatment, NULL, &now) < 0) return NULL; /* NULL: NumPy's default where the context has none */
    if (now == NULL) return Py_NewRef(Py_None);
    for (i = 0; i < 4; i++) {
        if (twins[i].given != now) continue;
        Py_DECREF(now); /* the cache holds another reference */
        return Py_NewRef(twins[i].ours);
    }
    ours = PyObject_CallOneArg(twin_of, now);
    if (ours == NULL) {
        Py_DECREF(now);
        return NULL;
    }
    i = last_twin = (last_twin + 1) % 4;
    old_given = twins[i].given;
    old_ours = twins[i].ours;
    twins[i].given = now;
    twins[i].ours = Py_NewRef(ours);
    Py_XDECREF(old_given);
    Py_XDECREF(old_ours);
    return ours;
}

/* Before 3.12, CPython may run the garbage collector while it changes a context (Python/hamt.c). If a destructor then changes the same
   context, the first change reads freed memory. */
#if PY_VERSION_HEX < 0x030C0000
#define WITHOUT_COLLECTOR(call)           \
    do {                                  \
        int collects = PyGC_Disable();    \
        call;                             \
        if (collects) PyGC_Enable();      \
    } while (0)
#else
#define WITHOUT_COLLECTOR(call) call
#endif

static PyObject *set_treatment(PyObject *value) {
    PyObject *token;
    WITHOUT_COLLECTOR(token = PyContextVar_Set(treatment, value));
    return token;
}

static int reset_treatment(PyObject *token) {
    int done;
    WITHOUT_COLLECTOR(done = PyContextVar_Reset(treatment, token));
    return done;
}

int enter_located(PyObject **token) {
    PyObject *ours = our_treatment();
    *token = ours == NULL || ours == Py_None ? NULL : set_treatment(ours);
    Py_XDECREF(ours);
    return *token == NULL && PyErr_Occurred() ? -1 : 0;
}

/* Once more, where memory had ended: a token can be used once. */
static void put_back(void) {
    PyObject *now = NULL, *given = NULL, *token = NULL;
    int i;
    PyErr_Clear(); /* or it was left in another context */
    if (PyContextVar_Get(treatment, NULL, &now) == 0 && now != NULL) {
        for (i = 0; i < 4 && given == NULL; i++) {
            if (twins[i].ours == now) given = Py_NewRef(twins[i].given);
        }
    }
    if (given != NULL) token = set_treatment(given);
    Py_XDECREF(now);
    Py_XDECREF(given);
    Py_XDECREF(token);
    PyErr_Clear();
}

void leave_located(PyObject *token) {
    PyObject *type, *value, *traceback;
    if (token == NULL) return;
    PyErr_Fetch(&type, &value, &traceback);
    if (reset_treatment(token) < 0) put_back();
    PyErr_Restore(type, value, traceback);
    Py_DECREF(token);
}

/* A value and not a pointer to a local of sweep(): a switch of greenlets replaces the C stack. */
static THREAD_LOCAL Lazy lazy;

Lazy begin_lazy(int sweeping) {
    Lazy before = lazy;
    lazy = (Lazy){sweeping, NULL};
    if (!sweeping) {
        leave_located(before.token);
        before.token = NULL;
    }
    return before;
}

void end_lazy(Lazy before) {
    PyObject *token = lazy.token;
    lazy = before;
    leave_located(token);
}

int in_sweep(void) { return lazy.sweeping; }

int enter_lazily(void) {
    PyObject *token;
    if (!lazy.sweeping || lazy.token != NULL) return 0;
    if (enter_located(&token) < 0) return -1;
    if (lazy.token == NULL) lazy.token = token;
    else leave_located(token); /* a destructor entered the error state first */
    return 0;
}

/* Hold the callable: it may come from a slot that the call changes. */
PyObject *call_located(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *token, *result = NULL;
    Py_INCREF(callable);
    if (enter_located(&token) == 0) {
        result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
        leave_located(token);
    }
    Py_DECREF(callable);
    return result;
}

PyObject *call_located_dict(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *params) {
    PyObject *token, *result = NULL;
    Py_INCREF(callable);
    if (enter_located(&token) == 0) {
        result = PyObject_VectorcallDict(callable, args, nargs, params);
        leave_located(token);
    }
    Py_DECREF(callable);
    return result;
}

int give_errors(const char *name, int found) {
    PyObject *token;
    int failed;
    if (enter_located(&token) < 0) return -1;
    failed = PyUFunc_GiveFloatingpointErrors(name, found);
    leave_located(token);
    return failed;
}

/* located(function, *args): call it so that no signal comes between it and how errors are treated before and after */
static PyObject *located(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "located takes a function and its arguments");
        return NULL;
    }
    return call_located(args[0], args + 1, (size_t)(nargs - 1), NULL);
}

/* connect_warnings(variable, twin_of) */
static PyObject *connect_warnings(PyObject *module, PyObject *args) {
    PyObject *variable, *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyContextVar_Type, &variable, &function)) return NULL;
    Py_XSETREF(treatment, Py_NewRef(variable));
    Py_XSETREF(twin_of, Py_NewRef(function));
    Py_RETURN_NONE;
}

/* ---- elementwise */

static void let_go(Operands *operands) {
    int k;
    for (k = 0; k < operands->count; k++) {
        Py_DECREF(operands->raw[k]);
        Py_DECREF(operands->edges[k]);
    }
}

/* Whether integers and masks of one dtype, which no row changes, are for us. */
static int is_whole(const Operation *self, PyArray_Descr *dtype) { return (dtype->type_num == NPY_BOOL && self->whole & 1) || (dtype->type_num == NPY_INT64 && self->whole & 2); }

/* Tensors of one dtype, and numbers; 0 where there is something else. */
static int read_operands(const Operation *self, PyObject *const *args, Operands *operands) {
    PyArray_Descr *dtype = NULL;
    int k, numbers = 0;
    *operands = (Operands){{NULL}, {NULL}, self->nin, 0};
    for (k = 0; k < self->nin; k++) {
        PyObject *raw = args[k], *edge = Py_None;
        if (Py_TYPE(args[k]) == core.tensor) {
            raw = SLOT(args[k], core.raw);
            edge = SLOT(args[k], core.edge);
            if (raw == NULL || edge == NULL || !PyArray_CheckExact(raw)) return 0;
            operands->recorded |= edge != Py_None;
        }
        operands->raw[k] = raw;
        operands->edges[k] = edge;
        if (raw == args[k] && self->constants && kind_of(raw) >= 0) {
            if (dtype != NULL && dtype != PyArray_DESCR((PyArrayObject *)raw)) return 0;
            dtype = PyArray_DESCR((PyArrayObject *)raw);
            operands->constants |= 1 << k;
        } else if (raw == args[k]) {
            if (!is_number(raw) || self->masks >> k & 1 || (k == 0 && !self->number_first)) return 0;
            numbers = 1;
        } else if (self->masks >> k & 1) {
            if (!is_mask(raw)) return 0;
        } else if (dtype == NULL) {
            dtype = PyArray_DESCR((PyArrayObject *)raw);
        } else if (dtype != PyArray_DESCR((PyArrayObject *)raw)) {
            return 0;
        }
    }
    if (dtype == NULL) return 0;
    if (dtype != core.of[0] && dtype != core.of[1]) return !numbers && !operands->recorded && is_whole(self, dtype);
    if (!self->floating) return 0;
    return 1;
}

static void take(Operands *operands) {
    int k;
    for (k = 0; k < operands->count; k++) {
        Py_INCREF(operands->raw[k]);
        Py_INCREF(operands->edges[k]);
    }
}

/* Numbers as arrays without dimensions: 1, 0 where NumPy has something to say about one, -1 error. The operands are taken. */
static int numbers_to_arrays(Operands *operands) {
    int k, kind = -1;
    for (k = 0; k < operands->count && kind < 0; k++) kind = kind_of(operands->raw[k]);
    for (k = 0; k < operands->count; k++) {
        PyObject *array;
        if (!is_number(operands->raw[k])) continue;
        array = array_of(operands->raw[k], kind);
        if (array == NULL) return PyErr_Occurred() ? -1 : 0;
        Py_SETREF(operands->raw[k], array);
    }
    return 1;
}

PyObject *node_of(Row *row, PyObject *prim, const Operands *operands, PyObject *params, PyObject *result, Place place) {
    PyObject *edges = PyTuple_New(operands->count), *saved, *avals;
    int k;
    for (k = 0; edges != NULL && k < operands->count; k++) PyTuple_SET_ITEM(edges, k, Py_NewRef(operands->edges[k]));
    saved = saved_of(row, operands->raw, operands->edges, operands->count, result);
    if (operands->constants && protect(saved, operands->raw, operands->constants, operands->count) < 0) Py_CLEAR(saved);
    avals = avals_of(row, operands->raw, operands->count, result);
    return new_node(prim, SLOT(prim, core.prim_pullback), params, edges, saved, avals, place);
}

/* Whether arrays, some of which may be numbers, broadcast. */
static int broadcast(PyObject *const *raw, int n) {
    int axis, k, more = 1;
    for (axis = 1; more; axis++) { /* counted from the end */
        npy_intp common = 1;
        for (k = 0, more = 0; k < n; k++) {
            npy_intp dim;
            if (!PyArray_CheckExact(raw[k]) || PyArray_NDIM((PyArrayObject *)raw[k]) < axis) continue;
            more = 1;
            dim = PyArray_DIM((PyArrayObject *)raw[k], PyArray_NDIM((PyArrayObject *)raw[k]) - axis);
            if (dim == 1 || dim == common) continue;
            if (common != 1) return 0;
            common = dim;
        }
    }
    return 1;
}

static PyObject *elementwise(const Operation *self, PyObject *const *args, PyObject *params, int mode, Place place) {
    Operands operands;
    PyObject *result = NULL, *made = NULL;
    Row *row = row_of(self->prim); /* first, as it may run Python */
    if (row == NULL) return NULL;
    if (row->nin != self->nin || !read_operands(self, args, &operands) || (row->value.ufunc == NULL && !broadcast(operands.raw, operands.count))) { /* Python warns of what it computes before it fails */
        Py_DECREF(row);
        return NULL;
    }
    take(&operands);
    if (!self->arrays_of_numbers || numbers_to_arrays(&operands) > 0) result = value_of(row, operands.raw, self->nin, params);
    if (result == NULL) {
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    } else if (!PyArray_CheckExact(result)) {
        Py_DECREF(result); /* Python's, which computes it again */
    } else if (!operands.recorded || mode != RECORDS || !row->records) {
        made = unrecorded(result, self->prim, args, self->nin, mode, place);
    } else {
        made = new_tensor(result, node_of(row, self->prim, &operands, params, result, place), NULL);
    }
    let_go(&operands);
    Py_DECREF(row);
    return made;
}

/* The parameters of a call with keywords that are numbers: a new dict; NULL without an error where there are others. */
static PyObject *parameters_of(const Operation *self, PyObject *const *values, PyObject *kwnames) {
    PyObject *params;
    Py_ssize_t i, n = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (i = 0; i < n; i++) {
        int known = PyDict_Contains(self->parameters, PyTuple_GET_ITEM(kwnames, i));
        if (known != 1 || !is_number(values[i])) return NULL;
    }
    params = PyDict_Copy(self->parameters);
    for (i = 0; i < n && params != NULL; i++) {
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) Py_CLEAR(params);
    }
    return params;
}

/* ---- by the number of axes */

static PyObject *ranked(const Operation *self, PyObject *const *args, int mode, Place place) {
    PyObject *raw[2], *key, *prim, *made;
    PyArrayObject *x, *y;
    int k;
    for (k = 0; k < 2; k++) {
        if (Py_TYPE(args[k]) != core.tensor && !(self->constants && PyArray_CheckExact(args[k]))) return NULL;
        raw[k] = Py_TYPE(args[k]) == core.tensor ? SLOT(args[k], core.raw) : args[k];
        if (raw[k] == NULL || kind_of(raw[k]) < 0) return NULL;
    }
    x = (PyArrayObject *)raw[0], y = (PyArrayObject *)raw[1];
    if (PyArray_DESCR(x) != PyArray_DESCR(y)) return NULL;
    if (PyArray_NDIM(x) == 3 && PyArray_NDIM(y) == 3 && PyArray_DIM(x, 0) != PyArray_DIM(y, 0)) return NULL; /* they broadcast */
    key = Py_BuildValue("(ii)", PyArray_NDIM(x), PyArray_NDIM(y));
    prim = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(self->table, key));
    Py_XDECREF(key);
    if (prim == NULL) return NULL;
    made = record(prim, args, 2, core.no_params, NULL, mode, place);
    Py_DECREF(prim);
    if (made == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    return made;
}

/* ---- remembered */

static int is_static(PyObject *x, int named) {
    Py_ssize_t i;
    if (x == Py_None || PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x) || (named && PyBool_Check(x))) return 1;
    if (!PyTuple_CheckExact(x)) return 0;
    for (i = 0; i < PyTuple_GET_SIZE(x); i++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* An argument as part of a key: a float by its bits, as it is equal to an integer, and 0.0 to -0.0. */
static PyObject *key_part(PyObject *x) {
    double value;
    if (!PyFloat_CheckExact(x)) return Py_NewRef(x);
    value = PyFloat_AS_DOUBLE(x);
    return PyBytes_FromStringAndSize((const char *)&value, sizeof(value));
}

static PyObject *shape_of(PyObject *array) { return PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)array), PyArray_DIMS((PyArrayObject *)array)); }

/* the tensors that a remembered function is called with, and their arrays */
typedef struct {
    PyObject *at[MOST_JOINED], *raw[MOST_JOINED];
    Py_ssize_t count;
    int several, recorded;
} Tensors;

/* The first argument: a tensor, or a list or tuple of them; 0 where they are not of one dtype, and contiguous. */
static int read_tensors(PyObject *const *args, Tensors *tensors) {
    Py_ssize_t i;
    PyObject *first = args[0], *const *items;
    tensors->several = PyList_CheckExact(first) || PyTuple_CheckExact(first);
    items = tensors->several ? PySequence_Fast_ITEMS(first) : args;
    tensors->count = tensors->several ? PySequence_Fast_GET_SIZE(first) : 1;
    tensors->recorded = 0;
    if (tensors->count < 1 || tensors->count > MOST_JOINED) return 0;
    for (i = 0; i < tensors->count; i++) {
        PyObject *x = items[i], *raw = Py_TYPE(x) == core.tensor ? SLOT(x, core.raw) : NULL;
        if (raw == NULL || kind_of(raw) < 0 || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)raw) || SLOT(x, core.edge) == NULL) return 0;
        if (i > 0 && PyArray_DESCR((PyArrayObject *)raw) != PyArray_DESCR((PyArrayObject *)tensors->raw[0])) return 0;
        tensors->at[i] = x;
        tensors->raw[i] = raw;
        tensors->recorded |= SLOT(x, core.edge) != Py_None;
    }
    return 1;
}

static PyObject *shapes_of(const Tensors *tensors) {
    PyObject *shapes;
    Py_ssize_t i;
    if (!tensors->several) return shape_of(tensors->raw[0]);
    shapes = PyTuple_New(tensors->count);
    for (i = 0; shapes != NULL && i < tensors->count; i++) {
        PyObject *shape = shape_of(tensors->raw[i]);
        if (shape == NULL) Py_CLEAR(shapes);
        else PyTuple_SET_ITEM(shapes, i, shape);
    }
    return shapes;
}

/* (shapes, dtype, names, arguments ...); NULL without an error where an argument is not static */
static PyObject *key_of(const Tensors *tensors, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *key, *shapes;
    for (i = 1; i < n; i++) {
        if (!is_static(args[i], i >= nargs)) return NULL;
    }
    shapes = shapes_of(tensors);
    key = shapes == NULL ? NULL : PyTuple_New(n + 2);
    if (key == NULL) {
        Py_XDECREF(shapes);
        return NULL;
    }
    PyTuple_SET_ITEM(key, 0, shapes);
    PyTuple_SET_ITEM(key, 1, Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)tensors->raw[0])));
    PyTuple_SET_ITEM(key, 2, Py_NewRef(kwnames == NULL ? Py_None : kwnames));
    for (i = 1; i < n; i++) {
        PyObject *part = key_part(args[i]);
        if (part == NULL) {
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, i + 2, part);
    }
    return key;
}

/* Return the tensors in a new list or tuple, like `given`. */
static PyObject *sequence_of(const Tensors *tensors, PyObject *given) {
    PyObject *items = PyTuple_New(tensors->count), *list;
    Py_ssize_t i;
    for (i = 0; items != NULL && i < tensors->count; i++) PyTuple_SET_ITEM(items, i, Py_NewRef(tensors->at[i]));
    if (items == NULL || !PyList_CheckExact(given)) return items;
    list = PySequence_List(items);
    Py_DECREF(items);
    return list;
}

/* Call Python, and cache (row, parameters) of the node that it recorded, for a view also the layout, for several views a list of these, or
   None (see api/operations.py). If nothing was recorded, Python is called again with tensors that require grad, unless they are large. */
static PyObject *learn(Operation *self, const Tensors *tensors, int mode, PyObject *key, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames)), size = 0;
    PyObject **all = PyMem_Malloc(sizeof(PyObject *) * (size_t)(n + 2)), *first, *result, *way = NULL;
    int seen = tensors->recorded && mode == RECORDS;
    if (all == NULL) return PyErr_NoMemory();
    memcpy(all + 2, args, sizeof(PyObject *) * (size_t)n);
    first = tensors->several ? sequence_of(tensors, args[0]) : Py_NewRef(args[0]);
    all[2] = first;
    result = first == NULL ? NULL : call_located(self->python, all + 2, (size_t)nargs, kwnames);
    for (i = 0; i < tensors->count; i++) size += PyArray_SIZE((PyArrayObject *)tensors->raw[i]);
    if (result != NULL && (seen || size <= MOST_LEARNT_APART)) {
        all[0] = seen ? result : Py_None;
        all[1] = self->python;
        way = PyObject_Vectorcall(self->learn, all, (size_t)nargs + 2, kwnames);
        if (PyDict_GET_SIZE(self->ways) >= MOST_REMEMBERED) PyDict_Clear(self->ways);
        if (way == NULL || PyDict_SetItem(self->ways, key, way) < 0) Py_CLEAR(result);
    }
    PyMem_Free(all);
    Py_XDECREF(first);
    Py_XDECREF(way);
    return result;
}

/* A view of an array that lies as (shape, strides, offset) say. */
static PyObject *view_at(PyObject *x, PyObject *layout) {
    PyObject *shape, *strides, *made;
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    Py_ssize_t offset;
    int i;
    if (!PyArg_ParseTuple(layout, "O!O!n", &PyTuple_Type, &shape, &PyTuple_Type, &strides, &offset)) return NULL;
    for (i = 0; i < PyTuple_GET_SIZE(shape) && i < NPY_MAXDIMS; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        steps[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
    }
    Py_INCREF(PyArray_DESCR((PyArrayObject *)x));
    made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR((PyArrayObject *)x), i, dims, steps, PyArray_BYTES((PyArrayObject *)x) + offset, PyArray_FLAGS((PyArrayObject *)x) & NPY_ARRAY_WRITEABLE, NULL);
    if (made == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    if (made != NULL && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(x)) < 0) Py_CLEAR(made);
    return made;
}

/* The way again, on other tensors. */
static PyObject *go(PyObject *way, const Tensors *tensors, int mode) {
    PyObject *prim = PyTuple_GET_ITEM(way, 0), *params = PyTuple_GET_ITEM(way, 1), *made = NULL, *result;
    if (PyTuple_GET_SIZE(way) >= 3 && PyTuple_CheckExact(PyTuple_GET_ITEM(way, 2)) && has_plain_strides(tensors->raw[0])) {
        made = view_at(tensors->raw[0], PyTuple_GET_ITEM(way, 2));
        if (made == NULL) return NULL;
    }
    result = record(prim, tensors->at, tensors->count, params, made, mode, here);
    Py_XDECREF(made);
    return result;
}

/* Several ways, each to a view, which is told its origin. */
static PyObject *go_apart(PyObject *ways, const Tensors *tensors, int mode) {
    PyObject *fixed = PyList_AsTuple(ways), *views = fixed == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(fixed));
    Py_ssize_t i;
    for (i = 0; views != NULL && i < PyTuple_GET_SIZE(fixed); i++) {
        PyObject *way = PyTuple_GET_ITEM(fixed, i), *made = go(way, tensors, mode), *view = made == NULL ? NULL : SLOT(made, core.tensor_view), *origin;
        if (made == NULL) {
            Py_CLEAR(views); /* what was made is let go of: nobody has seen it */
            break;
        }
        PyTuple_SET_ITEM(views, i, made);
        origin = view == NULL || view == Py_None ? NULL : SLOT(view, core.view_origin);
        if (origin != NULL && PyUnicode_Check(origin) && PyUnicode_GET_LENGTH(origin) == 0) Py_SETREF(SLOT(view, core.view_origin), Py_NewRef(PyTuple_GET_ITEM(way, 3)));
    }
    Py_XDECREF(fixed);
    return views;
}

static PyObject *remembered(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    Tensors tensors;
    PyObject *key, *way, *result = NULL;
    Py_ssize_t i;
    if (nargs == 0 || !read_tensors(args, &tensors)) return NULL;
    for (i = 0; i < tensors.count; i++) { /* an allocation may run the collector, and that anything */
        Py_INCREF(tensors.at[i]);
        Py_INCREF(tensors.raw[i]);
    }
    key = key_of(&tensors, args, nargs, kwnames);
    way = key == NULL ? NULL : PyDict_GetItemWithError(self->ways, key);
    if (key != NULL && way == NULL && !PyErr_Occurred()) {
        result = learn(self, &tensors, mode, key, args, nargs, kwnames);
    } else if (way != NULL && (PyTuple_CheckExact(way) || PyList_CheckExact(way))) {
        Py_INCREF(way);
        result = PyList_CheckExact(way) ? go_apart(way, &tensors, mode) : go(way, &tensors, mode);
        Py_DECREF(way);
    }
    Py_XDECREF(key);
    while (i-- > 0) {
        Py_DECREF(tensors.at[i]);
        Py_DECREF(tensors.raw[i]);
    }
    return result;
}

/* ---- calls */

static PyObject *call_here(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode);

/* An operand of PyTorch's face, where NumPy's scalars are Python's numbers. */
static PyObject *weak(PyObject *x) {
    if (PyArray_IsScalar(x, Double)) return PyFloat_FromDouble(PyArrayScalar_VAL(x, Double));
    if (PyArray_IsScalar(x, Float)) return PyFloat_FromDouble((double)PyArrayScalar_VAL(x, Float));
    return Py_NewRef(x);
}

/* (self, ufunc, "__call__", operands ...), by the operation that the table has for the ufunc */
static PyObject *by_protocol(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *key, *operation, *operands[2], *number, *result = NULL;
    int first;
    if (nargs < 4 || nargs > 5 || Py_TYPE(args[1]) != &PyUFunc_Type || !PyUnicode_Check(args[2]) || PyUnicode_CompareWithASCIIString(args[2], "__call__") != 0) return NULL;
    number = Py_TYPE(args[0]) == core.tensor ? weak(args[3]) : Py_NewRef(args[3]);
    if (number == NULL) return NULL;
    first = nargs == 5 && is_number(number);
    key = PyTuple_Pack(2, args[1], first ? Py_True : Py_False);
    operation = key == NULL ? NULL : PyDict_GetItemWithError(self->table, key);
    Py_XDECREF(key);
    operands[0] = first ? args[4] : number;
    operands[1] = first ? number : nargs == 5 ? args[4] : NULL;
    if (operation != NULL && is_operation(operation) && (((Operation *)operation)->form == ELEMENTWISE || ((Operation *)operation)->form == RANKED)) {
        Py_INCREF(operation);
        result = call_here((Operation *)operation, operands, nargs - 3, mode);
        Py_DECREF(operation);
    }
    Py_DECREF(number);
    return result;
}

PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, Place place) {
    Operation *self = (Operation *)operation;
    int mode;
    if (!is_operation(operation) || self->form != ELEMENTWISE || self->arrays || self->swapped || self->parameters != NULL || nargs != self->nin) return NULL;
    mode = mode_now();
    return mode < RECORDS ? NULL : elementwise(self, args, core.no_params, mode, place);
}

/* The tensors of Arrays, and numbers and plain arrays themselves; 0 where there is something else. */
static int open_arrays(const Operation *self, PyObject *const *args, PyObject **opened) {
    int k;
    for (k = 0; k < self->nin; k++) {
        PyObject *x = args[self->swapped ? self->nin - 1 - k : k];
        if (self->arrays && Py_TYPE(x) == array_type) x = Py_XNewRef(SLOT(x, array_tensor));
        else if (self->constants && (PyArray_IsScalar(x, Double) || PyArray_IsScalar(x, Float))) x = as_array(Py_NewRef(x)); /* as strong as arrays */
        else if (!self->arrays || is_number(x) || (self->constants && kind_of(x) >= 0)) Py_INCREF(x);
        else x = NULL;
        if (x == NULL) {
            while (k-- > 0) Py_DECREF(opened[k]);
            return 0;
        }
        opened[k] = x;
    }
    return 1;
}

PyObject *opened(PyObject *x) {
    PyObject *tensor = Py_TYPE(x) == array_type && array_type != NULL ? SLOT(x, array_tensor) : NULL;
    return tensor == NULL ? x : tensor;
}

static PyObject *close_array(PyObject *tensor) { /* takes over the tensor */
    PyObject *array = tensor == NULL ? NULL : array_type->tp_alloc(array_type, 0);
    if (array == NULL) {
        Py_XDECREF(tensor);
        return NULL;
    }
    SLOT(array, array_tensor) = tensor;
    return array;
}

static PyObject *in_place(Operation *self, PyObject *const *args, int direct, int mode) {
    Operands operands;
    Row *row = row_of(self->prim);
    PyObject *made = NULL;
    if (row != NULL && row->nin == self->nin && read_operands(self, args, &operands)) {
        take(&operands);
        made = operate_in_place(row, self->prim, self->label, direct, args, &operands, mode);
        let_go(&operands);
    }
    Py_XDECREF(row);
    return made;
}

/* ---- learnt */

/* Copy an argument, with all lists and dicts in it, so that no other code can change it. */
static PyObject *frozen(PyObject *x, int depth) {
    PyObject *copy, *items, *name, *value;
    Py_ssize_t i, at = 0;
    if (depth == 0) return Py_NewRef(x);
    if (PyList_CheckExact(x)) {
        items = PyList_AsTuple(x);
        copy = items == NULL ? NULL : frozen(items, depth);
        Py_XDECREF(items);
        items = copy;
        copy = items == NULL ? NULL : PySequence_List(items);
        Py_XDECREF(items);
        return copy;
    }
    if (PyTuple_CheckExact(x)) {
        copy = PyTuple_New(PyTuple_GET_SIZE(x));
        for (i = 0; copy != NULL && i < PyTuple_GET_SIZE(x); i++) {
            value = frozen(PyTuple_GET_ITEM(x, i), depth - 1);
            if (value == NULL) Py_CLEAR(copy);
            else PyTuple_SET_ITEM(copy, i, value);
        }
        return copy;
    }
    if (!PyDict_CheckExact(x)) return Py_NewRef(x);
    copy = PyDict_Copy(x);
    while (copy != NULL && PyDict_Next(copy, &at, &name, &value)) {
        value = frozen(value, depth - 1);
        if (value == NULL || PyDict_SetItem(copy, name, value) < 0) Py_CLEAR(copy);
        Py_XDECREF(value);
    }
    return copy;
}

/* Read the arguments of a call; 0, with or without an error, where there is no key. The caller drops the call in any case. */
static int read_arguments(const Operation *self, Call *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    call->noperands = 0;
    if (self->form == LEARNT) return read_call(call, (PyObject *)self, args, nargs, kwnames);
    if (nargs != 5 || kwnames != NULL || !PyTuple_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) return 0; /* (self, function, types, args, kwargs) */
    if (PyDict_Contains(self->table, args[1]) <= 0) return 0;
    return read_call(call, args[1], &PyTuple_GET_ITEM(args[3], 0), PyTuple_GET_SIZE(args[3]), args[4]);
}

/* Call Python with copies of lists, and cache the rows that it applied. The copies keep the entry right if other code changes the caller's
   lists during the call. NULL without an error if a list has changed already. */
static PyObject *learn_way(Operation *self, const Call *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *given = PyTuple_New(n), *operands, *result = NULL, *way = NULL;
    Call again;
    for (i = 0; given != NULL && i < n; i++) {
        PyObject *arg = frozen(args[i], 4);
        if (arg == NULL) Py_CLEAR(given);
        else PyTuple_SET_ITEM(given, i, arg);
    }
    if (given == NULL) return NULL;
    if (read_arguments(self, &again, &PyTuple_GET_ITEM(given, 0), nargs, kwnames) && is_same_call(call, &again)) {
        operands = PyTuple_New(again.noperands);
        for (i = 0; operands != NULL && i < again.noperands; i++) PyTuple_SET_ITEM(operands, i, Py_NewRef(again.operands[i]));
        result = operands == NULL ? NULL : call_located(self->python, &PyTuple_GET_ITEM(given, 0), (size_t)nargs, kwnames);
        if (result != NULL) way = PyObject_CallFunctionObjArgs(self->learn, self->python, given, kwnames == NULL ? Py_None : kwnames, operands, result, NULL);
        if (way != NULL) keep_way(self->learnt, &again, way);
        else Py_CLEAR(result);
        Py_XDECREF(operands);
    }
    drop_call(&again);
    Py_XDECREF(way);
    Py_DECREF(given);
    return result;
}

static PyObject *by_way(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *way = NULL, *made = NULL;
    Call call;
    if (read_arguments(self, &call, args, nargs, kwnames)) {
        int unknown = find_way(self->learnt, &call, &way);
        if (way != NULL && PyTuple_CheckExact(way)) made = close_array(follow(way, call.operands, call.noperands));
        else if (unknown) made = learn_way(self, &call, args, nargs, kwnames);
    }
    drop_call(&call);
    Py_XDECREF(way);
    return made;
}

/* ---- at an index */

static PyObject *by_index(const Operation *self, PyObject *x, PyObject *index, int mode) {
    PyObject *tensor = opened(x), *made;
    if (Py_TYPE(tensor) != core.tensor) return NULL;
    Py_INCREF(tensor);
    made = at_index(self->prim, self->table, tensor, index, tensor != x, mode);
    Py_DECREF(tensor);
    return tensor == x ? made : close_array(made);
}

/* The ordinary case of a call without keywords; NULL without an error where it is another. */
static PyObject *call_here(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *opened[MOST_ELEMENTWISE], *result, *params = core.no_params, *both[2];
    int k;
    if (self->form == INDEX) return nargs == 2 ? by_index(self, args[0], args[1], mode) : NULL;
    if (self->form == PROTOCOL) return by_protocol(self, args, nargs, mode);
    if (nargs != self->nin) return NULL;
    if (self->form == IN_PLACE) return in_place(self, args, self->direct, mode);
    if (self->form == ASSIGNED) return assign(self->label, args[0], self->assigned == NULL ? args[1] : self->assigned, self->direct, mode);
    if (self->nin == 2 && !self->arrays && !self->swapped && self->form == ELEMENTWISE && PyArray_IsScalar(args[1], Floating)) {
        Row *row = row_of(self->prim);
        both[0] = args[0];
        both[1] = row == NULL || !row->records ? NULL : weak(args[1]);
        Py_XDECREF(row);
        if (both[1] == NULL) return NULL;
        result = elementwise(self, both, params, mode, here);
        Py_DECREF(both[1]);
        return result;
    }
    if (!self->arrays && !self->swapped) return self->form == RANKED ? ranked(self, args, mode, here) : elementwise(self, args, params, mode, here);
    if (!open_arrays(self, args, opened)) return NULL;
    result = self->form == RANKED ? ranked(self, opened, mode, here) : elementwise(self, opened, params, mode, here);
    for (k = 0; k < self->nin; k++) Py_DECREF(opened[k]);
    return result != NULL && self->arrays ? close_array(result) : result;
}

/* With numbers for parameters. */
static PyObject *call_with_parameters(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    PyObject *params = nargs == self->nin ? parameters_of(self, args + nargs, kwnames) : NULL, *result;
    if (params == NULL) return NULL;
    result = elementwise(self, args, params, mode, here);
    Py_DECREF(params);
    return result;
}

/* ---- traced

   Compute with the arrays of traced values, append the call to the trace, and put a node on the tape that saves traced values. */

static PyObject *traced_elementwise(const Operation *self, const Recording *r, PyObject *const *args) {
    Operands arrays = {{NULL}, {NULL}, self->nin, 0}, operands;
    PyObject *result = NULL, *value = NULL, *edges, *made = NULL;
    PyArray_Descr *dtype = NULL;
    Row *row = row_of(self->prim); /* first, as it may run Python */
    int k;
    if (row == NULL) return NULL;
    for (k = 0; k < self->nin; k++) {
        arrays.raw[k] = args[k];
        arrays.edges[k] = Py_None;
        if (Py_TYPE(args[k]) == core.tensor) {
            PyObject *raw = SLOT(args[k], core.raw), *edge = SLOT(args[k], core.edge), *array = raw == NULL ? NULL : array_of_traced(r, raw);
            if (array == NULL || edge == NULL || (dtype != NULL && dtype != PyArray_DESCR((PyArrayObject *)array))) goto end;
            dtype = PyArray_DESCR((PyArrayObject *)array);
            arrays.raw[k] = array;
            arrays.edges[k] = edge;
            arrays.recorded |= edge != Py_None;
        } else if (!is_number(args[k]) || (k == 0 && (!self->number_first || (self->arrays && !self->swapped)))) { /* Array subtracts by another row */
            goto end;
        }
    }
    if (!arrays.recorded || (dtype != core.of[0] && dtype != core.of[1])) goto end;
    operands = arrays;
    for (k = 0; k < self->nin; k++) {
        if (arrays.raw[k] != args[k]) operands.raw[k] = SLOT(args[k], core.raw);
    }
    take(&arrays);
    take(&operands);
    if (row->records && row->value.ufunc != NULL && !row->value.gives_mask) {
        result = value_of(row, arrays.raw, self->nin, core.no_params);
        if (result == NULL && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); /* Python computes it again, and handles what it raises */
        if (result != NULL && PyArray_CheckExact(result)) value = note_call(r, row->value.ufunc, operands.raw, self->nin, SLOT(self->prim, core.prim_name), result, PyArray_NDIM((PyArrayObject *)result) == 0); /* as NumPy's ufunc returns it */
        if (value != NULL) value = as_tensor_data(r, value);
    } else if (row->records && row->value.ufunc == NULL) {
        value = trace_row_value(r, row, arrays.raw, operands.raw, self->nin);
        if (value != NULL) value = as_tensor_data(r, value);
        if (value != NULL) result = Py_XNewRef(array_of_traced(r, value));
    }
    if (value != NULL) {
        if (result != NULL && PyArray_CheckExact(result) && PyArray_DESCR((PyArrayObject *)result) == dtype && PyArray_BASE((PyArrayObject *)result) == NULL) {
            edges = PyTuple_New(self->nin);
            for (k = 0; edges != NULL && k < self->nin; k++) PyTuple_SET_ITEM(edges, k, Py_NewRef(operands.edges[k]));
            made = new_tensor(Py_NewRef(value), new_node(self->prim, SLOT(self->prim, core.prim_pullback), core.no_params, edges, saved_of(row, operands.raw, operands.edges, self->nin, value), avals_of(row, arrays.raw, self->nin, result), here), NULL);
            if (made != NULL && note_holder(r, made, result) < 0) Py_CLEAR(made);
        }
    }
    Py_XDECREF(value);
    Py_XDECREF(result);
    let_go(&operands);
    let_go(&arrays);
end:
    Py_DECREF(row);
    return made;
}

static PyObject *call_traced(Operation *self, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *given[MOST_ELEMENTWISE], *made = NULL, *tensor;
    Recording r;
    int k, first = 0;
    if (self->form != ELEMENTWISE || self->parameters != NULL || !self->floating || self->arrays_of_numbers || self->masks || nargs != self->nin || nargs > MOST_ELEMENTWISE) return NULL;
    while (first < nargs && is_number(args[first])) first++;
    tensor = first == nargs ? NULL : opened(args[first]);
    if (tensor == NULL || Py_TYPE(tensor) != core.tensor || SLOT(tensor, core.raw) == NULL || !is_traced(SLOT(tensor, core.raw))) return NULL;
    if (!self->arrays && !self->swapped) {
        for (k = 0; k < nargs; k++) given[k] = Py_NewRef(args[k]);
    } else if (!open_arrays(self, args, given)) {
        return NULL;
    }
    if (open_recording(&r) > 0) {
        made = traced_elementwise(self, &r, given);
        close_recording(&r);
    }
    for (k = 0; k < nargs; k++) Py_DECREF(given[k]);
    return made != NULL && self->arrays ? close_array(made) : made;
}

/* With a factor for the last operand: that operand times the factor first. */
static PyObject *call_with_factor(Operation *self, PyObject *const *args, PyObject *factor, int mode) {
    PyObject *operands[MOST_ELEMENTWISE + 1], *result, *both[] = {args[self->nin - 1], factor}, *scaled, *name;
    int k, last = self->nin - 1;
    if (PyFloat_CheckExact(factor) ? PyFloat_AS_DOUBLE(factor) == 1 : PyLong_AsDouble(factor) == 1) return self->form == IN_PLACE ? in_place(self, args, 0, mode) : call_here(self, args, self->nin, mode);
    if (PyErr_Occurred() || Py_TYPE(both[0]) != core.tensor) {
        PyErr_Clear(); /* a number beyond all floats */
        return NULL;
    }
    if (self->form == IN_PLACE && !may_write(args[0], mode, 1)) return NULL;
    scaled = operate(self->factor, both, 2, here);
    if (scaled == NULL) return NULL;
    for (k = 0; k < last; k++) operands[k] = args[k];
    operands[last] = scaled;
    result = self->form == IN_PLACE ? in_place(self, operands, 0, mode) : call_here(self, operands, self->nin, mode);
    if (result == NULL && !PyErr_Occurred() && (name = PyTuple_Pack(1, self->factor_name)) != NULL) { /* which goes on from there: a write with a factor is none that a ufunc does alone */
        operands[self->nin] = Py_True;
        result = call_located(self->python, operands, (size_t)self->nin, name);
        Py_DECREF(name);
    }
    Py_DECREF(scaled);
    return result;
}

static int is_factor(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return self->factor != NULL && nargs == self->nin && PyTuple_GET_SIZE(kwnames) == 1 && PyTuple_GET_ITEM(kwnames, 0) == self->factor_name && is_number(args[nargs]);
}

static PyObject *call_ordinary(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    if (self->form == REMEMBERED) return remembered(self, args, nargs, kwnames, mode);
    if (self->form == LEARNT || self->form == FUNCTIONS) return mode == RECORDS ? by_way(self, args, nargs, kwnames) : NULL;
    if (self->parameters != NULL) return call_with_parameters(self, args, nargs, kwnames, mode);
    if (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0) return call_here(self, args, nargs, mode);
    return is_factor(self, args, nargs, kwnames) ? call_with_factor(self, args, args[nargs], mode) : NULL;
}

static PyObject *call_operation(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Operation *self = (Operation *)object;
    PyObject *result = NULL;
    int mode = mode_now();
    if (self->python == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this operation is being taken apart");
        return NULL;
    }
    if (PyErr_Occurred()) return NULL; /* C that goes on calling after an error, as some of SciPy's does */
    if (mode >= RECORDS) result = call_ordinary(self, args, PyVectorcall_NARGS(nargsf), kwnames, mode);
    else if (mode == UNUSUAL && core.on && (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0)) result = call_traced(self, args, PyVectorcall_NARGS(nargsf));
    if (result != NULL || PyErr_Occurred()) return result;
    return call_located(self->python, args, nargsf, kwnames);
}

/* ---- the type */

/* Operation(python, form, prim=None, operands=0, number_first=False, floating=False, whole=0, table=None, learn=None, parameters=None, masks=0,
   arrays_of_numbers=False, factor=None, label=None, direct=False, assigned=None); factor: (keyword, operation); whole: 1 for masks, 2 for int64 */
static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "form", "prim", "operands", "number_first", "floating", "whole", "table", "learn", "parameters", "masks", "arrays_of_numbers", "factor", "label", "direct", "assigned", NULL};
    PyObject *python, *prim = Py_None, *table = Py_None, *learner = Py_None, *parameters = Py_None, *factor = Py_None, *label = Py_None, *assigned = Py_None;
    int form, nin = 0, number_first = 0, floating = 0, whole = 0, masks = 0, arrays_of_numbers = 0, direct = 0, wrong;
    Operation *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|OippiOOOipOOpO:Operation", names, &python, &form, &prim, &nin, &number_first, &floating, &whole, &table, &learner, &parameters, &masks, &arrays_of_numbers, &factor, &label, &direct, &assigned)) return NULL;
    if (form == RANKED) nin = 2;
    wrong = form < ELEMENTWISE || form > INDEX || nin < 0 || nin > MOST_ELEMENTWISE;
    wrong |= (form == ELEMENTWISE || form == IN_PLACE) && (nin < 1 || prim == Py_None);
    wrong |= (form == IN_PLACE || form == ASSIGNED) && (nin < 1 || !PyUnicode_CheckExact(label));
    wrong |= form == ASSIGNED && nin != 2 - (assigned != Py_None);
    wrong |= (form == RANKED || form == PROTOCOL || form == FUNCTIONS) && !PyDict_CheckExact(table);
    wrong |= form == INDEX && (prim == Py_None || table == Py_None);
    wrong |= ((form == REMEMBERED || form == LEARNT || form == FUNCTIONS) && learner == Py_None) || (parameters != Py_None && !PyDict_CheckExact(parameters));
    wrong |= factor != Py_None && (!PyTuple_CheckExact(factor) || PyTuple_GET_SIZE(factor) != 2 || nin < 1);
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "an Operation is a row of three operands or fewer, or has a table, or learns one, or assigns");
        return NULL;
    }
    self = (Operation *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    operation_type = type;
    self->vectorcall = call_operation;
    self->form = form;
    self->nin = nin;
    self->number_first = number_first;
    self->floating = floating;
    self->whole = whole;
    self->masks = masks;
    self->arrays_of_numbers = arrays_of_numbers;
    self->direct = direct;
    self->python = Py_NewRef(python);
    self->prim = Py_NewRef(prim);
    self->table = Py_NewRef(table);
    self->learn = Py_NewRef(learner);
    self->label = Py_NewRef(label);
    self->parameters = parameters == Py_None ? NULL : Py_NewRef(parameters);
    self->assigned = assigned == Py_None ? NULL : Py_NewRef(assigned);
    self->factor_name = factor == Py_None ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 0));
    self->factor = factor == Py_None ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 1));
    if (self->factor_name != NULL && PyUnicode_CheckExact(self->factor_name)) PyUnicode_InternInPlace(&self->factor_name);
    self->ways = form == REMEMBERED ? PyDict_New() : Py_NewRef(Py_None);
    if (form == LEARNT || form == FUNCTIONS) self->learnt = new_ways();
    if (self->ways == NULL || PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

/* the same with another function for what this leaves: instead(python, arrays=False, swapped=False, floats=False, factor=None, constants=False) */
static PyObject *operation_instead(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "arrays", "swapped", "floats", "factor", "constants", NULL};
    Operation *self = (Operation *)object, *copy;
    PyObject *python, *factor = NULL;
    int arrays = 0, swapped = 0, floats = 0, constants = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppO!p:instead", names, &python, &arrays, &swapped, &floats, &PyTuple_Type, &factor, &constants)) return NULL;
    if (self->form == REMEMBERED || self->form >= LEARNT || (arrays && array_type == NULL) || (factor != NULL && PyTuple_GET_SIZE(factor) != 2)) {
        PyErr_SetString(PyExc_TypeError, "this operation has no other form");
        return NULL;
    }
    copy = (Operation *)Py_TYPE(object)->tp_alloc(Py_TYPE(object), 0);
    if (copy == NULL) return NULL;
    copy->vectorcall = call_operation;
    copy->form = self->form;
    copy->nin = self->nin;
    copy->number_first = self->number_first;
    copy->floating = self->floating;
    copy->whole = floats ? 0 : self->whole;
    copy->masks = self->masks;
    copy->arrays_of_numbers = self->arrays_of_numbers;
    copy->direct = self->direct;
    copy->arrays = arrays;
    copy->swapped = swapped;
    copy->constants = constants;
    copy->python = Py_NewRef(python);
    copy->prim = Py_NewRef(self->prim);
    copy->table = Py_NewRef(self->table);
    copy->learn = Py_NewRef(self->learn);
    copy->ways = Py_NewRef(self->ways);
    copy->label = Py_NewRef(self->label);
    copy->parameters = Py_XNewRef(self->parameters);
    copy->assigned = Py_XNewRef(self->assigned);
    copy->factor_name = Py_XNewRef(factor == NULL ? self->factor_name : PyTuple_GET_ITEM(factor, 0));
    copy->factor = Py_XNewRef(factor == NULL ? self->factor : PyTuple_GET_ITEM(factor, 1));
    if (factor != NULL && PyUnicode_CheckExact(copy->factor_name)) PyUnicode_InternInPlace(&copy->factor_name);
    return (PyObject *)copy;
}

static int operation_traverse(PyObject *object, visitproc visit, void *arg) {
    Operation *self = (Operation *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dict);
    Py_VISIT(self->python);
    Py_VISIT(self->prim);
    Py_VISIT(self->table);
    Py_VISIT(self->ways);
    Py_VISIT(self->learn);
    Py_VISIT(self->parameters);
    Py_VISIT(self->factor);
    Py_VISIT(self->assigned);
    return visit_ways(self->learnt, visit, arg);
}

static int operation_clear(PyObject *object) {
    Operation *self = (Operation *)object;
    Py_CLEAR(self->python); /* first: calls are refused without it */
    Py_CLEAR(self->dict);
    Py_CLEAR(self->table);
    Py_CLEAR(self->ways);
    Py_CLEAR(self->learn);
    Py_CLEAR(self->parameters);
    Py_CLEAR(self->factor_name);
    Py_CLEAR(self->factor);
    Py_CLEAR(self->label);
    Py_CLEAR(self->assigned);
    Py_CLEAR(self->prim);
    if (self->learnt != NULL) {
        Ways *learnt = self->learnt;
        self->learnt = NULL;
        clear_ways(learnt);
    }
    return 0;
}

static void operation_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (((Operation *)object)->weakrefs != NULL) PyObject_ClearWeakRefs(object);
    operation_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *operation_get(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyObject *operation_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *operation_repr(PyObject *self) { return PyUnicode_FromFormat("<operation of %R>", ((Operation *)self)->python); }

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operation, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Operation, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Operation, weakrefs), READONLY, NULL},
    {"python", T_OBJECT, offsetof(Operation, python), READONLY, "the Python function that this is, in the cases that are not ordinary"},
    {"prim", T_OBJECT, offsetof(Operation, prim), READONLY, "the row of an elementwise operation"},
    {"form", T_INT, offsetof(Operation, form), READONLY, NULL},
    {"operands", T_INT, offsetof(Operation, nin), READONLY, NULL},
    {"parameters", T_OBJECT, offsetof(Operation, parameters), READONLY, NULL},
    {"swapped", T_INT, offsetof(Operation, swapped), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
/* (keyword, operation), or None */
static PyObject *get_factor(PyObject *object, void *unused) {
    Operation *self = (Operation *)object;
    (void)unused;
    if (self->factor == NULL) Py_RETURN_NONE;
    return PyTuple_Pack(2, self->factor_name, self->factor);
}

static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"factor", get_factor, NULL, "(keyword of a number by which the last operand is multiplied first, operation), or None", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"instead", (PyCFunction)(void (*)(void))operation_instead, METH_VARARGS | METH_KEYWORDS, "instead(python, arrays=False, swapped=False, floats=False, factor=None, constants=False): the same, with another function for what it leaves"},
    {"__reduce__", operation_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, operation_new},
    {Py_tp_dealloc, operation_dealloc},
    {Py_tp_traverse, operation_traverse},
    {Py_tp_clear, operation_clear},
    {Py_tp_repr, operation_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, operation_get},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, NULL},
};
PyType_Spec operation_spec = {"chainrule._src.native._loops.Operation", sizeof(Operation), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE, slots};

/* connect_arrays(Array): the class whose slot _tensor has the tensor */
static PyObject *connect_arrays(PyObject *module, PyObject *type) {
    PyObject *member = PyType_Check(type) ? PyObject_GetAttrString(type, "_tensor") : NULL;
    (void)module;
    if (member == NULL || Py_TYPE(member) != &PyMemberDescr_Type || ((PyMemberDescrObject *)member)->d_member->type != T_OBJECT_EX) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "connect_arrays takes a class with a slot _tensor");
        Py_XDECREF(member);
        return NULL;
    }
    array_tensor = ((PyMemberDescrObject *)member)->d_member->offset;
    array_type = (PyTypeObject *)Py_NewRef(type);
    Py_DECREF(member);
    Py_RETURN_NONE;
}

/* follow(way, operands): the tensor at the end of a way, or None */
static PyObject *follow_way(PyObject *module, PyObject *args) {
    PyObject *way, *operands, *made;
    Py_ssize_t i;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:follow", &PyTuple_Type, &way, &PyTuple_Type, &operands)) return NULL;
    if (PyTuple_GET_SIZE(operands) > MOST_OPERANDS_OF_CALL || !is_way(way, PyTuple_GET_SIZE(operands))) {
        PyErr_SetString(PyExc_ValueError, "this is no way");
        return NULL;
    }
    for (i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(x) != core.tensor && !PyArray_CheckExact(x)) {
            PyErr_SetString(PyExc_TypeError, "the operands of a way are tensors and arrays");
            return NULL;
        }
    }
    made = mode_now() == RECORDS ? follow(way, &PyTuple_GET_ITEM(operands, 0), (int)PyTuple_GET_SIZE(operands)) : NULL;
    return made == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : made;
}

PyMethodDef operation_functions[] = {
    {"follow", follow_way, METH_VARARGS, "follow(way, operands): the tensor at the end of a way, see api/ways.py"},
    {"located", (PyCFunction)(void (*)(void))located, METH_FASTCALL, "located(function, *args): call it; what NumPy warns of in it names the user's line"},
    {"connect_warnings", connect_warnings, METH_VARARGS, "connect_warnings(variable, twin_of): how NumPy treats errors, and how it does while we compute"},
    {"connect_arrays", connect_arrays, METH_O, "connect_arrays(Array): the class of arrays, which hold a tensor"},
    {NULL, NULL, 0, NULL},
};
