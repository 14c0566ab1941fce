/* Operations as users call them: the ordinary case without Python, every other case by the Python function.

   The ordinary case: no thread in a special mode, exact Tensors of exact ndarrays of float or double, Python numbers, no keywords.
   What is beyond it is handed to the Python function as it came. An error of the ordinary case's own is never raised where Python
   has better words: then Python is asked again. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stddef.h>
#include <structmember.h> /* the names of Python 3.11 */

/* ELEMENTWISE: a row of one or two operands. RANKED: the row depends on how many axes its two operands have.
   REMEMBERED: one tensor and static arguments, whose way to a row and parameters is learnt from what Python left on the tape.
   PROTOCOL: __array_ufunc__, which finds the operation of a ufunc.
   LEARNT: a method of Arrays, whose way to rows and parameters is learnt; FUNCTIONS: __array_function__, the same for many functions.
   INDEX: an Array at a basic index */
enum { ELEMENTWISE, RANKED, REMEMBERED, PROTOCOL, LEARNT, FUNCTIONS, INDEX };
enum { MOST_RANKS = 5, MOST_REMEMBERED = 512 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weakrefs;
    PyObject *python; /* the function that this is, which takes every call that this leaves */
    PyObject *prim;   /* ELEMENTWISE, INDEX */
    PyObject *table;  /* RANKED: (axes, axes) -> row; PROTOCOL: (ufunc, whether a number comes first) -> operation; FUNCTIONS: those that are learnt */
    PyObject *ways;   /* REMEMBERED: a dict */
    PyObject *learn;
    Ways *learnt;     /* LEARNT, FUNCTIONS */
    int form, nin, number_first, floating;
    int arrays, swapped, constants; /* takes and gives Arrays; with the operands exchanged; plain arrays are constants */
} Operation;

static PyTypeObject *operation_type, *array_type;
static Py_ssize_t array_tensor;

int is_operation(PyObject *object) { return Py_TYPE(object) == operation_type; }

/* ---- elementwise */

/* What is not recorded: as api.functions.unrecorded. */
static PyObject *unrecorded(const Operation *self, PyObject *const *args, PyObject *result) {
    PyObject *source = args[0], *cut;
    if (Py_TYPE(source) != core.tensor) {
        source = args[1];
    } else if (self->nin == 2 && Py_TYPE(args[1]) == core.tensor) {
        cut = SLOT(source, core.cut);
        if (cut == NULL || cut == Py_None) source = args[1];
    }
    cut = SLOT(source, core.cut);
    return new_tensor(result, Py_NewRef(Py_None), cut == NULL ? Py_None : cut);
}

static PyObject *elementwise(const Operation *self, PyObject *const *args, Place place) {
    PyObject *raw[2] = {NULL, NULL}, *edge[2] = {Py_None, Py_None}, *result, *made = NULL, *avals;
    PyArray_Descr *dtype = NULL;
    Row *row;
    int k, recorded = 0, numbers = 0, constants = 0;
    row = row_of(self->prim); /* first, as it may run Python */
    if (row == NULL || !row->records) return NULL;
    for (k = 0; k < self->nin; k++) {
        if (Py_TYPE(args[k]) == core.tensor) {
            raw[k] = SLOT(args[k], core.raw);
            edge[k] = SLOT(args[k], core.edge);
            if (raw[k] == NULL || edge[k] == NULL || kind_of(raw[k]) < 0) return NULL;
            if (dtype != NULL && PyArray_DESCR((PyArrayObject *)raw[k]) != dtype) return NULL;
            dtype = PyArray_DESCR((PyArrayObject *)raw[k]);
            recorded |= edge[k] != Py_None;
        } else if (self->constants && kind_of(args[k]) >= 0) {
            if (dtype != NULL && PyArray_DESCR((PyArrayObject *)args[k]) != dtype) return NULL;
            dtype = PyArray_DESCR((PyArrayObject *)args[k]);
            raw[k] = args[k];
            constants++;
        } else if (is_number(args[k]) && (k == 1 || self->number_first)) {
            raw[k] = args[k];
            numbers++;
        } else {
            return NULL;
        }
    }
    if (numbers + constants == self->nin || (!recorded && !self->floating)) return NULL;
    for (k = 0; k < self->nin; k++) { /* they are ours while others may run */
        Py_INCREF(raw[k]);
        Py_INCREF(edge[k]);
    }
    result = value_of(row, raw, self->nin, core.no_params);
    if (result == NULL) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    } else if (!PyArray_CheckExact(result)) {
        Py_DECREF(result); /* Python's, which computes it again */
    } else if (!recorded) {
        made = unrecorded(self, args, result);
    } else {
        PyObject *edges = self->nin == 1 ? PyTuple_Pack(1, edge[0]) : PyTuple_Pack(2, edge[0], edge[1]), *saved = saved_of(row, raw, edge, self->nin, result);
        if (constants && protect(saved, args, self->nin) < 0) Py_CLEAR(saved);
        avals = avals_of(row, raw, self->nin, result);
        made = new_tensor(result, new_node(self->prim, SLOT(self->prim, core.prim_pullback), core.no_params, edges, saved, avals, place), NULL);
    }
    for (k = 0; k < self->nin; k++) {
        Py_DECREF(raw[k]);
        Py_DECREF(edge[k]);
    }
    return made;
}

/* ---- by the number of axes */

static PyObject *ranked(const Operation *self, PyObject *const *args, Place place) {
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
    prim = key == NULL ? NULL : PyDict_GetItemWithError(self->table, key);
    Py_XDECREF(key);
    if (prim == NULL) return NULL;
    made = record(prim, args, 2, core.no_params, NULL, place);
    if (made == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    return made;
}

/* ---- remembered */

static int is_static(PyObject *x, int named) {
    Py_ssize_t i;
    if (x == Py_None || PyLong_CheckExact(x) || PyUnicode_CheckExact(x) || (named && PyBool_Check(x))) return 1;
    if (!PyTuple_CheckExact(x)) return 0;
    for (i = 0; i < PyTuple_GET_SIZE(x); i++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* (shape, dtype, names, arguments ...); NULL without an error where an argument is not static */
static PyObject *key_of(PyObject *x, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *key, *shape;
    for (i = 1; i < n; i++) {
        if (!is_static(args[i], i >= nargs)) return NULL;
    }
    shape = PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)x), PyArray_DIMS((PyArrayObject *)x));
    key = shape == NULL ? NULL : PyTuple_New(n + 2);
    if (key == NULL) {
        Py_XDECREF(shape);
        return NULL;
    }
    PyTuple_SET_ITEM(key, 0, shape);
    PyTuple_SET_ITEM(key, 1, Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)x)));
    PyTuple_SET_ITEM(key, 2, Py_NewRef(kwnames == NULL ? Py_None : kwnames));
    for (i = 1; i < n; i++) PyTuple_SET_ITEM(key, i + 2, Py_NewRef(args[i]));
    return key;
}

/* Call Python, and keep the way that it went. */
static PyObject *learn(Operation *self, PyObject *key, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *result = PyObject_Vectorcall(self->python, args, nargsf, kwnames), *way;
    PyObject *both[] = {args[0], result};
    if (result == NULL) return NULL;
    way = PyObject_Vectorcall(self->learn, both, 2, NULL); /* (row, parameters), or None */
    if (PyDict_GET_SIZE(self->ways) >= MOST_REMEMBERED) PyDict_Clear(self->ways);
    if (way == NULL || PyDict_SetItem(self->ways, key, way) < 0) Py_CLEAR(result);
    Py_XDECREF(way);
    return result;
}

static PyObject *remembered(Operation *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *x, *key, *way, *result = NULL;
    if (nargs == 0 || Py_TYPE(args[0]) != core.tensor || !is_ordinary()) return NULL;
    x = SLOT(args[0], core.raw);
    if (x == NULL || kind_of(x) < 0 || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x) || SLOT(args[0], core.edge) == NULL || SLOT(args[0], core.edge) == Py_None) return NULL;
    Py_INCREF(x); /* an allocation may run the collector, and that anything */
    key = key_of(x, args, nargs, kwnames);
    Py_DECREF(x);
    if (key == NULL) return NULL;
    way = PyDict_GetItemWithError(self->ways, key);
    if (way == NULL && !PyErr_Occurred()) {
        result = learn(self, key, args, nargsf, kwnames);
    } else if (way != NULL && PyTuple_CheckExact(way)) {
        Py_INCREF(way);
        result = record(PyTuple_GET_ITEM(way, 0), args, 1, PyTuple_GET_ITEM(way, 1), NULL, here);
        Py_DECREF(way);
    }
    Py_DECREF(key);
    return result;
}

/* ---- calls */

static PyObject *call_here(Operation *self, PyObject *const *args, Py_ssize_t nargs);

/* (self, ufunc, "__call__", operands ...), by the operation that the table has for the ufunc */
static PyObject *by_protocol(Operation *self, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *key, *operation, *operands[2], *result = NULL;
    int first;
    if (nargs < 4 || nargs > 5 || Py_TYPE(args[1]) != &PyUFunc_Type || !PyUnicode_Check(args[2]) || PyUnicode_CompareWithASCIIString(args[2], "__call__") != 0) return NULL;
    first = nargs == 5 && is_number(args[3]);
    key = PyTuple_Pack(2, args[1], first ? Py_True : Py_False);
    operation = key == NULL ? NULL : PyDict_GetItemWithError(self->table, key);
    Py_XDECREF(key);
    if (operation == NULL || !is_operation(operation)) return NULL;
    Py_INCREF(operation);
    operands[0] = args[first ? 4 : 3];
    operands[1] = nargs == 5 ? args[first ? 3 : 4] : NULL;
    if (((Operation *)operation)->form == ELEMENTWISE || ((Operation *)operation)->form == RANKED) result = call_here((Operation *)operation, operands, nargs - 3);
    Py_DECREF(operation);
    return result;
}

PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, Place place) {
    Operation *self = (Operation *)operation;
    if (!is_operation(operation) || self->form != ELEMENTWISE || self->arrays || self->swapped || nargs != self->nin || !is_ordinary()) return NULL;
    return elementwise(self, args, place);
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

/* ---- learnt */

static PyObject *learn_way(Operation *self, const Call *call, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t i, nargs = PyVectorcall_NARGS(nargsf), n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *result = PyObject_Vectorcall(self->python, args, nargsf, kwnames), *given, *operands, *way = NULL;
    if (result == NULL) return NULL;
    given = PyTuple_New(n);
    operands = PyTuple_New(call->noperands); /* which the arguments hold */
    for (i = 0; given != NULL && i < n; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    for (i = 0; operands != NULL && i < call->noperands; i++) PyTuple_SET_ITEM(operands, i, Py_NewRef(call->operands[i]));
    if (given != NULL && operands != NULL) way = PyObject_CallFunctionObjArgs(self->learn, self->python, given, kwnames == NULL ? Py_None : kwnames, operands, result, NULL);
    if (way != NULL) keep_way(self->learnt, call, way);
    else Py_CLEAR(result);
    Py_XDECREF(way);
    Py_XDECREF(given);
    Py_XDECREF(operands);
    return result;
}

static PyObject *by_way(Operation *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *way = NULL, *about = (PyObject *)self;
    Call call;
    int unknown;
    if (self->form == FUNCTIONS) { /* (self, function, types, args, kwargs) */
        if (nargs != 5 || kwnames != NULL || !PyTuple_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) return NULL;
        about = args[1];
        unknown = PyDict_Contains(self->table, about);
        if (unknown <= 0 || !read_call(&call, about, &PyTuple_GET_ITEM(args[3], 0), PyTuple_GET_SIZE(args[3]), args[4])) return NULL;
    } else if (!read_call(&call, about, args, nargs, kwnames)) {
        return NULL;
    }
    unknown = find_way(self->learnt, &call, about, &way);
    if (way != NULL && PyTuple_CheckExact(way)) {
        PyObject *tensor = follow(way, call.operands, call.noperands);
        return tensor == NULL ? NULL : close_array(tensor);
    }
    return unknown ? learn_way(self, &call, args, nargsf, kwnames) : NULL;
}

/* ---- at an index */

/* What is read as it is: integers, slices of integers, None and Ellipsis. */
static int is_basic(PyObject *item, int *dots) {
    if (PyLong_CheckExact(item) || item == Py_None) return 1;
    if (item == Py_Ellipsis) return *dots = 1;
    if (PySlice_Check(item)) {
        PySliceObject *slice = (PySliceObject *)item;
        return (slice->start == Py_None || PyLong_CheckExact(slice->start)) && (slice->stop == Py_None || PyLong_CheckExact(slice->stop)) && (slice->step == Py_None || PyLong_CheckExact(slice->step));
    }
    return 0;
}

static PyObject *at_index(const Operation *self, PyObject *array, PyObject *index) {
    static PyObject *name;
    PyObject *tensor, *raw, *items, *params, *part, *made = NULL;
    Py_ssize_t i;
    int dots = 0, number;
    if (Py_TYPE(array) != array_type || (tensor = SLOT(array, array_tensor)) == NULL || Py_TYPE(tensor) != core.tensor) return NULL;
    raw = SLOT(tensor, core.raw);
    if (raw == NULL || kind_of(raw) < 0 || PyArray_NDIM((PyArrayObject *)raw) == 0) return NULL;
    if (name == NULL && (name = PyUnicode_InternFromString("index")) == NULL) return NULL;
    if (PyTuple_CheckExact(index)) {
        for (i = 0; i < PyTuple_GET_SIZE(index); i++) {
            if (!is_basic(PyTuple_GET_ITEM(index, i), &dots)) return NULL;
        }
        items = Py_NewRef(index);
    } else {
        items = is_basic(index, &dots) ? PyTuple_Pack(1, index) : NULL;
        if (items == NULL) return NULL;
    }
    Py_INCREF(tensor);
    Py_INCREF(raw);
    part = as_array(PyObject_GetItem(raw, items));
    number = part != NULL && PyArray_NDIM((PyArrayObject *)part) == 0;
    params = part == NULL || (number && dots) ? NULL : PyDict_New();
    if (params != NULL && PyDict_SetItem(params, name, items) == 0) made = record_as(self->prim, &tensor, 1, params, part, !number, here); /* NumPy's numbers are values, not views */
    Py_XDECREF(params);
    Py_XDECREF(part);
    Py_DECREF(items);
    Py_DECREF(raw);
    Py_DECREF(tensor);
    if (made != NULL && number && SLOT(made, core.tensor_view) == NULL) SLOT(made, core.tensor_view) = Py_NewRef(Py_None);
    if (made == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_IndexError)) PyErr_Clear(); /* Python has the words */
    return made == NULL ? NULL : close_array(made);
}

/* The ordinary case of a call without keywords; NULL without an error where it is another. */
static PyObject *call_here(Operation *self, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *opened[2], *result;
    int k;
    if (self->form == INDEX) return nargs == 2 ? at_index(self, args[0], args[1]) : NULL;
    if (self->form == PROTOCOL) return by_protocol(self, args, nargs);
    if (nargs != self->nin) return NULL;
    if (!self->arrays && !self->swapped) return self->form == RANKED ? ranked(self, args, here) : elementwise(self, args, here);
    if (!open_arrays(self, args, opened)) return NULL;
    result = self->form == RANKED ? ranked(self, opened, here) : elementwise(self, opened, here);
    for (k = 0; k < self->nin; k++) Py_DECREF(opened[k]);
    return result != NULL && self->arrays ? close_array(result) : result;
}

static PyObject *call_operation(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Operation *self = (Operation *)object;
    PyObject *result = NULL;
    if (self->python == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this operation is being taken apart");
        return NULL;
    }
    if (self->form == REMEMBERED) result = remembered(self, args, nargsf, kwnames);
    else if (self->form == LEARNT || self->form == FUNCTIONS) result = is_ordinary() ? by_way(self, args, nargsf, kwnames) : NULL;
    else if (kwnames == NULL && is_ordinary()) result = call_here(self, args, PyVectorcall_NARGS(nargsf));
    if (result != NULL || PyErr_Occurred()) return result;
    return PyObject_Vectorcall(self->python, args, nargsf, kwnames);
}

/* ---- the type */

/* Operation(python, form, prim=None, operands=0, number_first=False, floating=False, table=None, learn=None) */
static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "form", "prim", "operands", "number_first", "floating", "table", "learn", NULL};
    PyObject *python, *prim = Py_None, *table = Py_None, *learner = Py_None;
    int form, nin = 0, number_first = 0, floating = 0;
    Operation *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|OippOO:Operation", names, &python, &form, &prim, &nin, &number_first, &floating, &table, &learner)) return NULL;
    if (form == RANKED) nin = 2;
    if (form < ELEMENTWISE || form > INDEX || (form == ELEMENTWISE && (nin < 1 || nin > 2)) || ((form == ELEMENTWISE || form == INDEX) && prim == Py_None)
        || ((form == RANKED || form == PROTOCOL || form == FUNCTIONS) && !PyDict_CheckExact(table)) || ((form == REMEMBERED || form == LEARNT || form == FUNCTIONS) && learner == Py_None)) {
        PyErr_SetString(PyExc_ValueError, "an Operation is a row of one operand or two, or has a table, or learns one");
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
    self->python = Py_NewRef(python);
    self->prim = Py_NewRef(prim);
    self->table = Py_NewRef(table);
    self->learn = Py_NewRef(learner);
    self->ways = form == REMEMBERED ? PyDict_New() : Py_NewRef(Py_None);
    if (form == LEARNT || form == FUNCTIONS) self->learnt = new_ways();
    if (self->ways == NULL || PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

/* the same with another function for what this leaves: instead(python, arrays=False, swapped=False, constants=False) */
static PyObject *operation_instead(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "arrays", "swapped", "constants", NULL};
    Operation *self = (Operation *)object, *copy;
    PyObject *python;
    int arrays = 0, swapped = 0, constants = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ppp:instead", names, &python, &arrays, &swapped, &constants)) return NULL;
    if (self->form == REMEMBERED || self->form > PROTOCOL || (arrays && array_type == NULL)) {
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
    copy->arrays = arrays;
    copy->swapped = swapped;
    copy->constants = constants;
    copy->python = Py_NewRef(python);
    copy->prim = Py_NewRef(self->prim);
    copy->table = Py_NewRef(self->table);
    copy->learn = Py_NewRef(self->learn);
    copy->ways = Py_NewRef(self->ways);
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
    return visit_ways(self->learnt, visit, arg);
}

static int operation_clear(PyObject *object) {
    Operation *self = (Operation *)object;
    Py_CLEAR(self->dict);
    Py_CLEAR(self->table);
    Py_CLEAR(self->ways);
    Py_CLEAR(self->learn);
    Py_CLEAR(self->prim);
    Py_CLEAR(self->python);
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
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef methods[] = {
    {"instead", (PyCFunction)(void (*)(void))operation_instead, METH_VARARGS | METH_KEYWORDS, "instead(python, arrays=False, swapped=False, constants=False): the same, with another function for what it leaves"},
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
PyType_Spec operation_spec = {"chainrule.native._loops.Operation", sizeof(Operation), 0,
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
    made = is_ordinary() ? follow(way, &PyTuple_GET_ITEM(operands, 0), (int)PyTuple_GET_SIZE(operands)) : NULL;
    return made == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : made;
}

PyMethodDef operation_functions[] = {
    {"follow", follow_way, METH_VARARGS, "follow(way, operands): the tensor at the end of a way, see api/ways.py"},
    {"connect_arrays", connect_arrays, METH_O, "connect_arrays(Array): the class of arrays, which hold a tensor"},
    {NULL, NULL, 0, NULL},
};
