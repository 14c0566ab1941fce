/* Operation: a callable that wraps a Python function of the public API and runs its fast path in C. Users call Operations.

   The fast path: this thread is in a normal mode, and operands are exact Tensors of exact ndarrays of float or double, or Python numbers. All
   other calls go to the Python function with the same arguments. If the fast path fails where Python has a better error message, the error
   is dropped and the Python function is called. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

#include <numpy/arrayscalars.h>

#include <stddef.h>
#include <structmember.h> /* names of Python 3.11 */

/* The forms of Operation, which api/operations.py and api/dispatch_cache.py choose.
   ELEMENTWISE: an elementwise op of up to three operands.
   BY_NDIM: the op depends on the numbers of axes of two operands.
   CACHED: a function of one tensor, or a sequence of them, and static arguments; its op and parameters are cached by shapes and arguments.
   ARRAY_UFUNC: __array_ufunc__, which looks up the operation of a ufunc.
   IN_PLACE: the value of an elementwise op is written into the first operand.
   ASSIGN: a number, or the elements of another tensor, are written into a tensor.
   CACHED_METHOD: a method of Array, whose ops and parameters are in the dispatch cache.
   ARRAY_FUNCTION: __array_function__, as CACHED_METHOD for the functions of a table.
   INDEX: a tensor or Array at an index. */
enum { ELEMENTWISE, BY_NDIM, CACHED, ARRAY_UFUNC, IN_PLACE, ASSIGN, CACHED_METHOD, ARRAY_FUNCTION, INDEX };
enum { DISCRETE_BOOL = 1, DISCRETE_INT64 = 2 }; /* dtypes that an operation accepts without a derivative */
enum { MAX_CACHED = 512, MAX_TENSORS = 16, MAX_TRIAL_SIZE = 1 << 16 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weakrefs;
    PyObject *python; /* the wrapped function, for the slow path */
    PyObject *prim;   /* ELEMENTWISE, IN_PLACE, INDEX */
    /* BY_NDIM: (ndim, ndim) -> op; ARRAY_UFUNC: (ufunc, whether a number comes first) -> operation; ARRAY_FUNCTION: functions in the
       cache; INDEX: the op for an array of integers */
    PyObject *table;
    PyObject *cached; /* CACHED: a dict, key -> (op, parameters, ...) */
    PyObject *make_entry;
    DispatchCache *cache;           /* CACHED_METHOD, ARRAY_FUNCTION */
    PyObject *parameters;           /* ELEMENTWISE: the op's numeric parameters with their defaults */
    PyObject *factor_name, *factor; /* keyword of a factor for the last operand, and the operation that multiplies */
    PyObject *label;                /* IN_PLACE, ASSIGN: name in the record of writes */
    PyObject *assigned;             /* ASSIGN: the number, if it is constant */
    int form, nin, number_first, floating, discrete;
    int masks, arrays_of_numbers; /* masks: bits of the bool operands; arrays_of_numbers: numbers become 0-d arrays */
    int direct;                   /* IN_PLACE: if nothing is recorded, one ufunc call writes into the tensor. ASSIGN: from numbers, else from tensors */
    int arrays, swapped;          /* operands and result are Arrays; operands are exchanged */
    int constants;                /* plain arrays may be operands */
} Operation;

static PyTypeObject *operation_type, *array_type;
static Py_ssize_t array_tensor;

int is_operation(PyObject *object) { return Py_TYPE(object) == operation_type; }
PyObject *prim_of_operation(PyObject *object) { return is_operation(object) && ((Operation *)object)->form == ELEMENTWISE ? ((Operation *)object)->prim : NULL; }

/* ---- the error state: tape/fp_warnings.py */

/* NumPy's context variable of error states, and caches of the states for computations of this package */
static PyObject *error_variable;
enum { CACHED_ERROR_STATES = 4 };
typedef struct {
    PyObject *state_of; /* the function whose results are cached */
    struct { PyObject *user, *internal; } entries[CACHED_ERROR_STATES];
    int last;
} ErrorStates;
static ErrorStates internal_states, raising_states;

/* Return the error state that a function gives for the current one: a new reference, None to keep the current state, NULL with an error. */
static PyObject *error_state_from(ErrorStates *states) {
    PyObject *current = NULL, *internal, *old_user, *old_internal;
    int i;
    if (error_variable == NULL) return Py_NewRef(Py_None);
    if (PyContextVar_Get(error_variable, NULL, &current) < 0) return NULL; /* NULL: NumPy's default if the context has no value */
    if (current == NULL) return Py_NewRef(Py_None);
    for (i = 0; i < CACHED_ERROR_STATES; i++) {
        if (states->entries[i].user != current) continue;
        Py_DECREF(current); /* the cache holds another reference */
        return Py_NewRef(states->entries[i].internal);
    }
    internal = PyObject_CallOneArg(states->state_of, current);
    if (internal == NULL) {
        Py_DECREF(current);
        return NULL;
    }
    i = states->last = (states->last + 1) % CACHED_ERROR_STATES;
    old_user = states->entries[i].user;
    old_internal = states->entries[i].internal;
    states->entries[i].user = current;
    states->entries[i].internal = Py_NewRef(internal);
    Py_XDECREF(old_user);
    Py_XDECREF(old_internal);
    return internal;
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

static PyObject *set_error_state(PyObject *value) {
    PyObject *token;
    WITHOUT_COLLECTOR(token = PyContextVar_Set(error_variable, value));
    return token;
}

static int reset_error_state(PyObject *token) {
    int done;
    WITHOUT_COLLECTOR(done = PyContextVar_Reset(error_variable, token));
    return done;
}

static int enter(ErrorStates *states, PyObject **token) {
    PyObject *state = error_state_from(states);
    *token = state == NULL || state == Py_None ? NULL : set_error_state(state);
    Py_XDECREF(state);
    return *token == NULL && PyErr_Occurred() ? -1 : 0;
}

int enter_error_state(PyObject **token) { return enter(&internal_states, token); }
int enter_raising_state(PyObject **token) {
    *token = NULL;
    return error_variable == NULL ? 0 : enter(&raising_states, token) < 0 ? -1 : 1;
}

/* Set the user's error state after a failed reset. The token is used up. */
static void restore_error_state(void) {
    PyObject *current = NULL, *user = NULL, *token = NULL;
    int i;
    PyErr_Clear(); /* or the token is from another context */
    if (PyContextVar_Get(error_variable, NULL, &current) == 0 && current != NULL) {
        for (i = 0; i < CACHED_ERROR_STATES && user == NULL; i++) {
            if (internal_states.entries[i].internal == current) user = Py_NewRef(internal_states.entries[i].user);
            else if (raising_states.entries[i].internal == current) user = Py_NewRef(raising_states.entries[i].user);
        }
    }
    if (user != NULL) token = set_error_state(user);
    Py_XDECREF(current);
    Py_XDECREF(user);
    Py_XDECREF(token);
    PyErr_Clear();
}

void leave_error_state(PyObject *token) {
    PyObject *type, *value, *traceback;
    if (token == NULL) return;
    PyErr_Fetch(&type, &value, &traceback);
    if (reset_error_state(token) < 0) restore_error_state();
    PyErr_Restore(type, value, traceback);
    Py_DECREF(token);
}

/* A value, not a pointer to a local of sweep(): switching greenlets replaces the C stack. */
static THREAD_LOCAL PassErrorState pass_error_state;

PassErrorState begin_pass_error_state(int in_backward) {
    PassErrorState before = pass_error_state;
    pass_error_state = (PassErrorState){in_backward, NULL};
    if (!in_backward) {
        leave_error_state(before.token);
        before.token = NULL;
    }
    return before;
}

void end_pass_error_state(PassErrorState before) {
    PyObject *token = pass_error_state.token;
    pass_error_state = before;
    leave_error_state(token);
}

int in_sweep(void) { return pass_error_state.in_backward; }

int enter_pass_error_state(void) {
    PyObject *token;
    if (!pass_error_state.in_backward || pass_error_state.token != NULL) return 0;
    if (enter_error_state(&token) < 0) return -1;
    if (pass_error_state.token == NULL) pass_error_state.token = token;
    else leave_error_state(token); /* a destructor entered the error state first */
    return 0;
}

/* Hold the callable, because the call may change the slot that it comes from. */
PyObject *call_in_error_state(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *token, *result = NULL;
    Py_INCREF(callable);
    if (enter_error_state(&token) == 0) {
        result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
        leave_error_state(token);
    }
    Py_DECREF(callable);
    return result;
}

PyObject *call_dict_in_error_state(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *params) {
    PyObject *token, *result = NULL;
    Py_INCREF(callable);
    if (enter_error_state(&token) == 0) {
        result = PyObject_VectorcallDict(callable, args, nargs, params);
        leave_error_state(token);
    }
    Py_DECREF(callable);
    return result;
}

int report_exceptions(const char *name, int found) {
    PyObject *token;
    int failed;
    if (enter_error_state(&token) < 0) return -1;
    failed = PyUFunc_GiveFloatingpointErrors(name, found);
    leave_error_state(token);
    return failed;
}

/* call_in_error_state(function, *args): in C, no signal handler can run between the call and the changes of the error state */
static PyObject *call_function_in_error_state(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "call_in_error_state takes a function and its arguments");
        return NULL;
    }
    return call_in_error_state(args[0], args + 1, (size_t)(nargs - 1), NULL);
}

/* connect_error_state(variable, internal_error_state_of, raising_error_state_of) */
static PyObject *connect_error_state(PyObject *module, PyObject *args) {
    PyObject *variable, *internal, *raising;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO", &PyContextVar_Type, &variable, &internal, &raising)) return NULL;
    Py_XSETREF(error_variable, Py_NewRef(variable));
    Py_XSETREF(internal_states.state_of, Py_NewRef(internal));
    Py_XSETREF(raising_states.state_of, Py_NewRef(raising));
    Py_RETURN_NONE;
}

/* ---- elementwise */

static void release_operands(Operands *operands) {
    int k;
    for (k = 0; k < operands->count; k++) {
        Py_DECREF(operands->raw[k]);
        Py_DECREF(operands->edges[k]);
    }
}

/* Whether the operation accepts arrays of bool or int64, whose results are not recorded. */
static int accepts_discrete(const Operation *self, PyArray_Descr *dtype) { return (dtype->type_num == NPY_BOOL && self->discrete & DISCRETE_BOOL) || (dtype->type_num == NPY_INT64 && self->discrete & DISCRETE_INT64); }

/* Read tensors of one dtype, and numbers; 0: slow path. */
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
    if (dtype != core.dtypes[0] && dtype != core.dtypes[1]) return !numbers && !operands->recorded && accepts_discrete(self, dtype);
    if (!self->floating) return 0;
    return 1;
}

static void hold_operands(Operands *operands) {
    int k;
    for (k = 0; k < operands->count; k++) {
        Py_INCREF(operands->raw[k]);
        Py_INCREF(operands->edges[k]);
    }
}

/* Convert numbers to 0-d arrays: 1 done, 0 NumPy would warn or raise, -1 error. The operands are held. */
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

PyObject *node_of(Op *op, PyObject *prim, const Operands *operands, PyObject *params, PyObject *result, SourceLocation location) {
    PyObject *edges = PyTuple_New(operands->count), *saved, *avals;
    int k;
    for (k = 0; edges != NULL && k < operands->count; k++) PyTuple_SET_ITEM(edges, k, Py_NewRef(operands->edges[k]));
    saved = saved_of(op, operands->raw, operands->edges, operands->count, result);
    if (operands->constants && protect(saved, operands->raw, operands->constants, operands->count) < 0) Py_CLEAR(saved);
    avals = avals_of(op, operands->raw, operands->count, result);
    return new_node(prim, SLOT(prim, core.prim_pullback), params, edges, saved, avals, location);
}

/* Whether the operands, arrays and numbers, broadcast. */
static int broadcast(PyObject *const *raw, int n) {
    int axis, k, more = 1;
    for (axis = 1; more; axis++) { /* axes count from the end */
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

/* Record an elementwise operation on tensors of traced values. */
static PyObject *traced_elementwise(const Operation *self, PyObject *const *args, PyObject *params) {
    PyArray_Descr *dtype = NULL;
    int k;
    if (PyDict_GET_SIZE(params) > 0 || !self->floating || self->arrays_of_numbers || self->masks) return NULL;
    for (k = 0; k < self->nin; k++) {
        if (Py_TYPE(args[k]) == core.tensor) {
            PyObject *array = array_of_tensor(args[k], TRACES);
            if (array == NULL || (dtype != NULL && dtype != PyArray_DESCR((PyArrayObject *)array))) return NULL; /* Python records casts to a common dtype */
            dtype = PyArray_DESCR((PyArrayObject *)array);
            continue;
        }
        if (!is_number(args[k]) || (k == 0 && (!self->number_first || (self->arrays && !self->swapped)))) return NULL; /* reflected methods of Array, such as subtraction, use other ops */
    }
    return record(self->prim, args, self->nin, params, NULL, TRACES, current_frame);
}

/* An operation on tensors of one dtype, and numbers, of which some hold values of transformations. NULL without an error: slow path. */
static PyObject *elementwise_of_levels(const Operation *self, PyObject *const *args, PyObject *params, int mode, SourceLocation location) {
    int k, kind = -1;
    if (!self->floating || self->masks || self->arrays_of_numbers || PyDict_GET_SIZE(params) > 0) return NULL;
    for (k = 0; k < self->nin; k++) {
        int own;
        if (is_number(args[k])) {
            if (k == 0 && !self->number_first) return NULL;
            continue;
        }
        own = Py_TYPE(args[k]) == core.tensor ? float_kind_of(SLOT(args[k], core.raw)) : -1;
        if (own < 0 || (kind >= 0 && own != kind)) return NULL;
        kind = own;
    }
    return kind < 0 ? NULL : bind_levels(self->prim, args, self->nin, params, mode, location);
}

static PyObject *elementwise(const Operation *self, PyObject *const *args, PyObject *params, int mode, SourceLocation location) {
    Operands operands;
    PyObject *result = NULL, *output = NULL;
    Op *op;
    if (mode == TRACES) return traced_elementwise(self, args, params);
    op = op_of(self->prim); /* first, because it may run Python */
    if (op == NULL) return NULL;
    if (op->nin == self->nin && !read_operands(self, args, &operands)) {
        Py_DECREF(op);
        return elementwise_of_levels(self, args, params, mode, location);
    }
    if (op->nin != self->nin || (op->value.ufunc == NULL && !broadcast(operands.raw, operands.count))) { /* checked first, because the steps before a failure would warn twice */
        Py_DECREF(op);
        return NULL;
    }
    hold_operands(&operands);
    if (!self->arrays_of_numbers || numbers_to_arrays(&operands) > 0) result = op_value(op, operands.raw, self->nin, params);
    if (result == NULL) {
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    } else if (!PyArray_CheckExact(result)) {
        Py_DECREF(result); /* Python computes it again */
    } else if (!operands.recorded || mode != RECORDS || !op->records) {
        output = unrecorded_result(result, self->prim, args, self->nin, mode, location);
    } else {
        output = new_tensor(result, node_of(op, self->prim, &operands, params, result, location), NULL);
    }
    release_operands(&operands);
    Py_DECREF(op);
    return output;
}

/* Return a new dict with the parameters of a call, which must be numbers. NULL without an error: slow path. */
static PyObject *parameters_of(const Operation *self, PyObject *const *values, PyObject *kwnames) {
    PyObject *params;
    Py_ssize_t i, n = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (i = 0; i < n; i++) {
        int is_parameter = PyDict_Contains(self->parameters, PyTuple_GET_ITEM(kwnames, i));
        if (is_parameter != 1 || !is_number(values[i])) return NULL;
    }
    params = PyDict_Copy(self->parameters);
    for (i = 0; i < n && params != NULL; i++) {
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) Py_CLEAR(params);
    }
    return params;
}

/* ---- ops by number of axes */

static PyObject *by_ndim(const Operation *self, PyObject *const *args, int mode, SourceLocation location) {
    PyObject *raw[2], *key, *prim, *output;
    PyArrayObject *x, *y;
    int k, levels;
    for (k = 0; k < 2; k++) {
        if (Py_TYPE(args[k]) != core.tensor && !(self->constants && PyArray_CheckExact(args[k]))) return NULL;
        raw[k] = Py_TYPE(args[k]) != core.tensor ? args[k] : mode == TRACES ? array_of_tensor(args[k], mode) : SLOT(args[k], core.raw);
        if (raw[k] == NULL || float_kind_of(raw[k]) < 0 || (is_level_value(raw[k]) && self->arrays)) return NULL;
    }
    levels = is_level_value(raw[0]) || is_level_value(raw[1]);
    x = (PyArrayObject *)raw[0], y = (PyArrayObject *)raw[1];
    if (float_kind_of(raw[0]) != float_kind_of(raw[1])) return NULL;
    if (ndim_of_value(raw[0]) == 3 && ndim_of_value(raw[1]) == 3 && (levels || PyArray_DIM(x, 0) != PyArray_DIM(y, 0))) return NULL; /* stacks that broadcast need another op */
    key = Py_BuildValue("(ii)", ndim_of_value(raw[0]), ndim_of_value(raw[1]));
    prim = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(self->table, key));
    Py_XDECREF(key);
    if (prim == NULL) return NULL;
    output = levels ? bind_levels(prim, args, 2, core.no_params, mode, location) : record(prim, args, 2, core.no_params, NULL, mode, location);
    Py_DECREF(prim);
    if (output == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    return output;
}

/* ---- cached by shape and arguments */

static int is_static(PyObject *x, int named) {
    Py_ssize_t i;
    if (x == Py_None || PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x) || (named && PyBool_Check(x))) return 1;
    if (!PyTuple_CheckExact(x)) return 0;
    for (i = 0; i < PyTuple_GET_SIZE(x); i++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, i))) return 0;
    }
    return 1;
}

/* Return an argument as part of a key. Floats become bytes, because 1.0 equals 1, and 0.0 equals -0.0. */
static PyObject *key_part(PyObject *x) {
    double value;
    if (!PyFloat_CheckExact(x)) return Py_NewRef(x);
    value = PyFloat_AS_DOUBLE(x);
    return PyBytes_FromStringAndSize((const char *)&value, sizeof(value));
}

static PyObject *shape_of(PyObject *array) { return PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)array), PyArray_DIMS((PyArrayObject *)array)); }

/* the tensor arguments of a call, and their arrays */
typedef struct {
    PyObject *at[MAX_TENSORS], *raw[MAX_TENSORS];
    Py_ssize_t count;
    int is_sequence, recorded;
} Tensors;

/* Read the first argument: a tensor, or a list or tuple of them. 0 if they differ in dtype or are not contiguous. */
static int read_tensors(PyObject *const *args, Tensors *tensors, int mode) {
    Py_ssize_t i;
    PyObject *first = args[0], *const *items;
    tensors->is_sequence = PyList_CheckExact(first) || PyTuple_CheckExact(first);
    items = tensors->is_sequence ? PySequence_Fast_ITEMS(first) : args;
    tensors->count = tensors->is_sequence ? PySequence_Fast_GET_SIZE(first) : 1;
    tensors->recorded = 0;
    if (tensors->count < 1 || tensors->count > MAX_TENSORS) return 0;
    for (i = 0; i < tensors->count; i++) {
        PyObject *x = items[i], *raw = Py_TYPE(x) == core.tensor ? array_of_tensor(x, mode) : NULL;
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
    if (!tensors->is_sequence) return shape_of(tensors->raw[0]);
    shapes = PyTuple_New(tensors->count);
    for (i = 0; shapes != NULL && i < tensors->count; i++) {
        PyObject *shape = shape_of(tensors->raw[i]);
        if (shape == NULL) Py_CLEAR(shapes);
        else PyTuple_SET_ITEM(shapes, i, shape);
    }
    return shapes;
}

/* (shapes, dtype, keywords, arguments ...); NULL without an error if an argument is not static */
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

/* Return the tensors in a new list or tuple, like the argument. */
static PyObject *sequence_of(const Tensors *tensors, PyObject *like) {
    PyObject *items = PyTuple_New(tensors->count), *list;
    Py_ssize_t i;
    for (i = 0; items != NULL && i < tensors->count; i++) PyTuple_SET_ITEM(items, i, Py_NewRef(tensors->at[i]));
    if (items == NULL || !PyList_CheckExact(like)) return items;
    list = PySequence_List(items);
    Py_DECREF(items);
    return list;
}

/* Call Python, and cache (op, parameters) of the node that it recorded; for a view also the layout, for several views a list of these, or None
   (see api/operations.py). If nothing was recorded, Python is called again with small tensors that require grad. */
static PyObject *call_and_cache(Operation *self, const Tensors *tensors, int mode, PyObject *key, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames)), size = 0;
    PyObject **all = PyMem_Malloc(sizeof(PyObject *) * (size_t)(n + 3)), *first, *result, *entry = NULL;
    int was_recorded = tensors->recorded && mode == RECORDS;
    if (all == NULL) return PyErr_NoMemory();
    memcpy(all + 3, args, sizeof(PyObject *) * (size_t)n);
    first = tensors->is_sequence ? sequence_of(tensors, args[0]) : Py_NewRef(args[0]);
    all[3] = first;
    result = first == NULL ? NULL : call_in_error_state(self->python, all + 3, (size_t)nargs, kwnames);
    for (i = 0; i < tensors->count; i++) size += PyArray_SIZE((PyArrayObject *)tensors->raw[i]);
    if (result != NULL && (was_recorded || size <= MAX_TRIAL_SIZE)) {
        all[0] = self->make_entry;
        all[1] = was_recorded ? result : Py_None;
        all[2] = self->python;
        entry = mode == TRACES ? PyObject_Vectorcall(core.call_untraced, all, (size_t)nargs + 3, kwnames) : PyObject_Vectorcall(self->make_entry, all + 1, (size_t)nargs + 2, kwnames);
        if (PyDict_GET_SIZE(self->cached) >= MAX_CACHED) PyDict_Clear(self->cached);
        if (entry == NULL || PyDict_SetItem(self->cached, key, entry) < 0) Py_CLEAR(result);
    }
    PyMem_Free(all);
    Py_XDECREF(first);
    Py_XDECREF(entry);
    return result;
}

/* Return a view of an array with the layout (shape, strides, offset). */
static PyObject *view_at(PyObject *x, PyObject *layout) {
    PyObject *shape, *strides, *output;
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    Py_ssize_t offset;
    int i;
    if (!PyArg_ParseTuple(layout, "O!O!n", &PyTuple_Type, &shape, &PyTuple_Type, &strides, &offset)) return NULL;
    for (i = 0; i < PyTuple_GET_SIZE(shape) && i < NPY_MAXDIMS; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        steps[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
    }
    Py_INCREF(PyArray_DESCR((PyArrayObject *)x));
    output = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR((PyArrayObject *)x), i, dims, steps, PyArray_BYTES((PyArrayObject *)x) + offset, PyArray_FLAGS((PyArrayObject *)x) & NPY_ARRAY_WRITEABLE, NULL);
    if (output == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    if (output != NULL && PyArray_SetBaseObject((PyArrayObject *)output, Py_NewRef(x)) < 0) Py_CLEAR(output);
    return output;
}

/* Record the op of a cache entry on other tensors. */
static PyObject *replay_step(PyObject *entry, const Tensors *tensors, int mode) {
    PyObject *prim = PyTuple_GET_ITEM(entry, 0), *params = PyTuple_GET_ITEM(entry, 1), *output = NULL, *result;
    if (mode != TRACES && PyTuple_GET_SIZE(entry) >= 3 && PyTuple_CheckExact(PyTuple_GET_ITEM(entry, 2)) && has_plain_strides(tensors->raw[0])) {
        output = view_at(tensors->raw[0], PyTuple_GET_ITEM(entry, 2));
        if (output == NULL) return NULL;
    }
    result = record(prim, tensors->at, tensors->count, params, output, mode, current_frame);
    Py_XDECREF(output);
    return result;
}

/* Record several views, and set their origins. */
static PyObject *replay_views(PyObject *entries, const Tensors *tensors, int mode) {
    PyObject *fixed = PyList_AsTuple(entries), *views = fixed == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(fixed));
    Py_ssize_t i;
    for (i = 0; views != NULL && i < PyTuple_GET_SIZE(fixed); i++) {
        PyObject *entry = PyTuple_GET_ITEM(fixed, i), *output = replay_step(entry, tensors, mode), *view = output == NULL ? NULL : SLOT(output, core.tensor_view), *origin;
        if (output == NULL) {
            Py_CLEAR(views); /* no other code has seen the views made so far */
            break;
        }
        PyTuple_SET_ITEM(views, i, output);
        origin = view == NULL || view == Py_None ? NULL : SLOT(view, core.view_origin);
        if (origin != NULL && PyUnicode_Check(origin) && PyUnicode_GET_LENGTH(origin) == 0) Py_SETREF(SLOT(view, core.view_origin), Py_NewRef(PyTuple_GET_ITEM(entry, 3)));
    }
    Py_XDECREF(fixed);
    return views;
}

static PyObject *cached_call(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    Tensors tensors;
    PyObject *key, *entry, *result = NULL;
    Py_ssize_t i;
    if (nargs == 0 || !read_tensors(args, &tensors, mode) || (mode == TRACES && !tensors.recorded)) return NULL;
    for (i = 0; i < tensors.count; i++) { /* an allocation may run the garbage collector, and so any code */
        Py_INCREF(tensors.at[i]);
        Py_INCREF(tensors.raw[i]);
    }
    key = key_of(&tensors, args, nargs, kwnames);
    entry = key == NULL ? NULL : PyDict_GetItemWithError(self->cached, key);
    if (key != NULL && entry == NULL && !PyErr_Occurred()) {
        result = call_and_cache(self, &tensors, mode, key, args, nargs, kwnames);
    } else if (entry != NULL && (PyTuple_CheckExact(entry) || PyList_CheckExact(entry))) {
        Py_INCREF(entry);
        result = PyList_CheckExact(entry) ? replay_views(entry, &tensors, mode) : replay_step(entry, &tensors, mode);
        Py_DECREF(entry);
    }
    Py_XDECREF(key);
    while (i-- > 0) {
        Py_DECREF(tensors.at[i]);
        Py_DECREF(tensors.raw[i]);
    }
    return result;
}

/* ---- calls */

static PyObject *call_fast_path(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode);

/* Convert NumPy scalars to Python numbers, which are weakly typed in the PyTorch-style API. */
static PyObject *weak_scalar(PyObject *x) {
    if (PyArray_IsScalar(x, Double)) return PyFloat_FromDouble(PyArrayScalar_VAL(x, Double));
    if (PyArray_IsScalar(x, Float)) return PyFloat_FromDouble((double)PyArrayScalar_VAL(x, Float));
    return Py_NewRef(x);
}

/* The same for a value of a transformation. Operands: such values, arrays, and numbers; NumPy scalars become numbers. */
static PyObject *levels_by_protocol(const Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *key = PyTuple_Pack(2, args[1], Py_False), *operation = key == NULL ? NULL : PyDict_GetItemWithError(self->table, key), *prim = operation == NULL ? NULL : Py_XNewRef(prim_of_operation(operation));
    PyObject *operands[2] = {NULL, NULL}, *result = NULL;
    Py_ssize_t k;
    for (k = 0; k < nargs - 3 && prim != NULL; k++) {
        operands[k] = PyArray_IsScalar(args[3 + k], Generic) && !PyFloat_CheckExact(args[3 + k]) ? PyObject_CallMethod(args[3 + k], "item", NULL) : Py_NewRef(args[3 + k]);
        if (operands[k] == NULL) Py_CLEAR(prim);
    }
    if (prim != NULL) result = bind_levels(prim, operands, nargs - 3, core.no_params, mode, current_frame);
    for (k = 0; k < 2; k++) Py_XDECREF(operands[k]);
    Py_XDECREF(prim);
    Py_XDECREF(key);
    return result;
}

/* args: (self, ufunc, "__call__", operands ...). Calls the operation that the table has for the ufunc. */
static PyObject *by_protocol(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *key, *operation, *operands[2], *number, *result = NULL;
    int first;
    if (nargs < 4 || nargs > 5 || Py_TYPE(args[1]) != &PyUFunc_Type || !PyUnicode_Check(args[2]) || PyUnicode_CompareWithASCIIString(args[2], "__call__") != 0) return NULL;
    if (is_level_value(args[0])) return levels_by_protocol(self, args, nargs, mode);
    number = Py_TYPE(args[0]) == core.tensor ? weak_scalar(args[3]) : Py_NewRef(args[3]);
    if (number == NULL) return NULL;
    first = nargs == 5 && is_number(number);
    key = PyTuple_Pack(2, args[1], first ? Py_True : Py_False);
    operation = key == NULL ? NULL : PyDict_GetItemWithError(self->table, key);
    Py_XDECREF(key);
    operands[0] = first ? args[4] : number;
    operands[1] = first ? number : nargs == 5 ? args[4] : NULL;
    if (operation != NULL && is_operation(operation) && (((Operation *)operation)->form == ELEMENTWISE || ((Operation *)operation)->form == BY_NDIM)) {
        Py_INCREF(operation);
        result = call_fast_path((Operation *)operation, operands, nargs - 3, mode);
        Py_DECREF(operation);
    }
    Py_DECREF(number);
    return result;
}

PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, SourceLocation location) {
    Operation *self = (Operation *)operation;
    int mode;
    if (!is_operation(operation) || self->form != ELEMENTWISE || self->arrays || self->swapped || self->parameters != NULL || nargs != self->nin) return NULL;
    mode = current_mode();
    return mode < RECORDS || mode == TRACES ? NULL : elementwise(self, args, core.no_params, mode, location);
}

/* Replace Arrays by their tensors, and keep numbers and plain arrays; 0: slow path. */
static int unwrap_arrays(const Operation *self, PyObject *const *args, PyObject **unwrapped) {
    int k;
    for (k = 0; k < self->nin; k++) {
        PyObject *x = args[self->swapped ? self->nin - 1 - k : k];
        if (self->arrays && Py_TYPE(x) == array_type) x = Py_XNewRef(SLOT(x, array_tensor));
        else if (self->constants && (PyArray_IsScalar(x, Double) || PyArray_IsScalar(x, Float))) x = as_array(Py_NewRef(x)); /* NumPy scalars are strongly typed, like arrays */
        else if (!self->arrays || is_number(x) || (self->constants && kind_of(x) >= 0)) Py_INCREF(x);
        else x = NULL;
        if (x == NULL) {
            while (k-- > 0) Py_DECREF(unwrapped[k]);
            return 0;
        }
        unwrapped[k] = x;
    }
    return 1;
}

PyObject *unwrap_array(PyObject *x) {
    PyObject *tensor = Py_TYPE(x) == array_type && array_type != NULL ? SLOT(x, array_tensor) : NULL;
    return tensor == NULL ? x : tensor;
}

static PyObject *wrap_tensor(PyObject *tensor) { /* steals the reference */
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
    Op *op = op_of(self->prim);
    PyObject *output = NULL;
    if (op != NULL && op->nin == self->nin && read_operands(self, args, &operands)) {
        hold_operands(&operands);
        output = operate_in_place(op, self->prim, self->label, direct, args, &operands, mode);
        release_operands(&operands);
    }
    Py_XDECREF(op);
    return output;
}

/* ---- the dispatch cache */

/* Copy an argument with all nested lists and dicts, so that no other code can change it. */
static PyObject *deep_copy(PyObject *x, int depth) {
    PyObject *copy, *items, *name, *value;
    Py_ssize_t i, at = 0;
    if (depth == 0) return Py_NewRef(x);
    if (PyList_CheckExact(x)) {
        items = PyList_AsTuple(x);
        copy = items == NULL ? NULL : deep_copy(items, depth);
        Py_XDECREF(items);
        items = copy;
        copy = items == NULL ? NULL : PySequence_List(items);
        Py_XDECREF(items);
        return copy;
    }
    if (PyTuple_CheckExact(x)) {
        copy = PyTuple_New(PyTuple_GET_SIZE(x));
        for (i = 0; copy != NULL && i < PyTuple_GET_SIZE(x); i++) {
            value = deep_copy(PyTuple_GET_ITEM(x, i), depth - 1);
            if (value == NULL) Py_CLEAR(copy);
            else PyTuple_SET_ITEM(copy, i, value);
        }
        return copy;
    }
    if (!PyDict_CheckExact(x)) return Py_NewRef(x);
    copy = PyDict_Copy(x);
    while (copy != NULL && PyDict_Next(copy, &at, &name, &value)) {
        value = deep_copy(value, depth - 1);
        if (value == NULL || PyDict_SetItem(copy, name, value) < 0) Py_CLEAR(copy);
        Py_XDECREF(value);
    }
    return copy;
}

/* Read the cache key of a call; 0, with or without an error, if there is none. The caller drops the key in any case. */
static int read_arguments(const Operation *self, CallKey *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    call->noperands = 0;
    if (self->form == CACHED_METHOD) return read_call_key(call, (PyObject *)self, args, nargs, kwnames, mode);
    if (nargs != 5 || kwnames != NULL || !PyTuple_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) return 0; /* (self, function, types, args, kwargs) */
    if (PyDict_Contains(self->table, args[1]) <= 0) return 0;
    return read_call_key(call, args[1], &PyTuple_GET_ITEM(args[3], 0), PyTuple_GET_SIZE(args[3]), args[4], mode);
}

/* Call Python with copies of lists, and store the ops that it applied. The copies keep the entry right if other code changes the caller's
   lists during the call. NULL without an error if a list has changed already. */
static PyObject *call_and_store(Operation *self, const CallKey *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *copies = PyTuple_New(n), *operands, *result = NULL, *entry = NULL;
    CallKey copied_key;
    for (i = 0; copies != NULL && i < n; i++) {
        PyObject *arg = deep_copy(args[i], 4);
        if (arg == NULL) Py_CLEAR(copies);
        else PyTuple_SET_ITEM(copies, i, arg);
    }
    if (copies == NULL) return NULL;
    if (read_arguments(self, &copied_key, &PyTuple_GET_ITEM(copies, 0), nargs, kwnames, RECORDS) && is_same_key(call, &copied_key)) {
        operands = PyTuple_New(copied_key.noperands);
        for (i = 0; operands != NULL && i < copied_key.noperands; i++) PyTuple_SET_ITEM(operands, i, Py_NewRef(copied_key.operands[i]));
        result = operands == NULL ? NULL : call_in_error_state(self->python, &PyTuple_GET_ITEM(copies, 0), (size_t)nargs, kwnames);
        if (result != NULL) entry = PyObject_CallFunctionObjArgs(self->make_entry, self->python, copies, kwnames == NULL ? Py_None : kwnames, operands, result, NULL);
        if (entry != NULL) store_entry(self->cache, &copied_key, entry);
        else Py_CLEAR(result);
        Py_XDECREF(operands);
    }
    drop_call_key(&copied_key);
    Py_XDECREF(entry);
    Py_DECREF(copies);
    return result;
}

/* Store the second call with a key in a trace: call_untraced(make_entry, self, None, the arguments, the names of keywords, None). */
static int store_in_trace(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *given = PyTuple_New(n), *done = NULL;
    for (i = 0; given != NULL && i < n; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    if (given != NULL) done = PyObject_CallFunctionObjArgs(core.call_untraced, self->make_entry, self, given, kwnames == NULL ? Py_None : kwnames, core.empty_tuple, Py_None, NULL);
    Py_XDECREF(given);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *cached_method_call(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    PyObject *entry = NULL, *output = NULL;
    CallKey call;
    if (read_arguments(self, &call, args, nargs, kwnames, mode)) {
        int seen_once = find_entry(self->cache, &call, &entry);
        if (entry == NULL && seen_once && mode == TRACES) {
            if (store_in_trace(self, args, nargs, kwnames) == 0) find_entry(self->cache, &call, &entry);
            seen_once = 0;
        }
        if (entry != NULL && PyTuple_CheckExact(entry)) output = wrap_tensor(replay(entry, call.operands, call.noperands, mode));
        else if (seen_once) output = call_and_store(self, &call, args, nargs, kwnames);
    }
    drop_call_key(&call);
    Py_XDECREF(entry);
    return output;
}

/* ---- indexing */

static PyObject *by_index(const Operation *self, PyObject *x, PyObject *index, int mode) {
    PyObject *tensor = unwrap_array(x), *output;
    if (Py_TYPE(tensor) != core.tensor) return NULL;
    Py_INCREF(tensor);
    output = index_tensor(self->prim, self->table, tensor, index, tensor != x, mode);
    Py_DECREF(tensor);
    return tensor == x ? output : wrap_tensor(output);
}

/* The fast path of a call without keywords. NULL without an error: slow path. */
static PyObject *call_fast_path(Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *unwrapped[MAX_ELEMENTWISE_OPERANDS], *result, *params = core.no_params, *both[2];
    int k;
    if (self->form == INDEX) return nargs == 2 ? by_index(self, args[0], args[1], mode) : NULL;
    if (self->form == ARRAY_UFUNC) return by_protocol(self, args, nargs, mode);
    if (nargs != self->nin || (mode == TRACES && self->form != ELEMENTWISE && self->form != BY_NDIM)) return NULL;
    if (self->form == IN_PLACE) return in_place(self, args, self->direct, mode);
    if (self->form == ASSIGN) return assign(self->label, args[0], self->assigned == NULL ? args[1] : self->assigned, self->direct, mode);
    if (self->nin == 2 && !self->arrays && !self->swapped && self->form == ELEMENTWISE && PyArray_IsScalar(args[1], Floating)) {
        Op *op = op_of(self->prim);
        both[0] = args[0];
        both[1] = op == NULL || !op->records ? NULL : weak_scalar(args[1]);
        Py_XDECREF(op);
        if (both[1] == NULL) return NULL;
        result = elementwise(self, both, params, mode, current_frame);
        Py_DECREF(both[1]);
        return result;
    }
    if (!self->arrays && !self->swapped) return self->form == BY_NDIM ? by_ndim(self, args, mode, current_frame) : elementwise(self, args, params, mode, current_frame);
    if (!unwrap_arrays(self, args, unwrapped)) return NULL;
    result = self->form == BY_NDIM ? by_ndim(self, unwrapped, mode, current_frame) : elementwise(self, unwrapped, params, mode, current_frame);
    for (k = 0; k < self->nin; k++) Py_DECREF(unwrapped[k]);
    return result != NULL && self->arrays ? wrap_tensor(result) : result;
}

/* The fast path of a call with numeric parameters. */
static PyObject *call_with_parameters(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    PyObject *params = nargs == self->nin ? parameters_of(self, args + nargs, kwnames) : NULL, *result;
    if (params == NULL) return NULL;
    result = elementwise(self, args, params, mode, current_frame);
    Py_DECREF(params);
    return result;
}

/* Multiply the last operand by the factor first. */
static PyObject *call_with_factor(Operation *self, PyObject *const *args, PyObject *factor, int mode) {
    PyObject *operands[MAX_ELEMENTWISE_OPERANDS + 1], *result, *both[] = {args[self->nin - 1], factor}, *scaled, *name;
    int k, last = self->nin - 1;
    if (PyFloat_CheckExact(factor) ? PyFloat_AS_DOUBLE(factor) == 1 : PyLong_AsDouble(factor) == 1) return self->form == IN_PLACE ? in_place(self, args, 0, mode) : call_fast_path(self, args, self->nin, mode);
    if (PyErr_Occurred() || Py_TYPE(both[0]) != core.tensor) {
        PyErr_Clear(); /* an integer out of range of floats */
        return NULL;
    }
    if (self->form == IN_PLACE && !may_write(args[0], mode, 1)) return NULL;
    scaled = operate(self->factor, both, 2, current_frame);
    if (scaled == NULL) return NULL;
    for (k = 0; k < last; k++) operands[k] = args[k];
    operands[last] = scaled;
    result = self->form == IN_PLACE ? in_place(self, operands, 0, mode) : call_fast_path(self, operands, self->nin, mode);
    if (result == NULL && !PyErr_Occurred() && (name = PyTuple_Pack(1, self->factor_name)) != NULL) { /* Continue in Python with the scaled operand. The factor True has no effect, but keeps Python from writing with a single ufunc call. */
        operands[self->nin] = Py_True;
        result = call_in_error_state(self->python, operands, (size_t)self->nin, name);
        Py_DECREF(name);
    }
    Py_DECREF(scaled);
    return result;
}

static int is_factor(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return self->factor != NULL && nargs == self->nin && PyTuple_GET_SIZE(kwnames) == 1 && PyTuple_GET_ITEM(kwnames, 0) == self->factor_name && is_number(args[nargs]);
}

static PyObject *dispatch(Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    if (self->form == CACHED) return cached_call(self, args, nargs, kwnames, mode);
    if (self->form == CACHED_METHOD || self->form == ARRAY_FUNCTION) return mode == RECORDS || mode == TRACES ? cached_method_call(self, args, nargs, kwnames, mode) : NULL;
    if (mode == TRACES && kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) return NULL;
    if (self->parameters != NULL) return call_with_parameters(self, args, nargs, kwnames, mode);
    if (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0) return call_fast_path(self, args, nargs, mode);
    return is_factor(self, args, nargs, kwnames) ? call_with_factor(self, args, args[nargs], mode) : NULL;
}

static PyObject *call_operation(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Operation *self = (Operation *)object;
    PyObject *result = NULL;
    int mode;
    if (core.self_test != NULL && !PyErr_Occurred() && run_self_test() < 0) return NULL;
    mode = current_mode();
    if (self->python == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this operation is being deallocated");
        return NULL;
    }
    if (PyErr_Occurred()) return NULL; /* C code, such as SciPy's, may call on after an error */
    if (mode >= RECORDS) result = dispatch(self, args, PyVectorcall_NARGS(nargsf), kwnames, mode);
    if (result != NULL || PyErr_Occurred()) return result;
    return call_in_error_state(self->python, args, nargsf, kwnames);
}

/* ---- the type */

/* Operation(python, form, prim=None, operands=0, number_first=False, floating=False, discrete=0, table=None, make_entry=None, parameters=None,
   masks=0, arrays_of_numbers=False, factor=None, label=None, direct=False, assigned=None)
   operands: their number; number_first: the first may be a number; floating: accepts float and double; discrete: BOOL + INT64 if it accepts these;
   make_entry: returns a cache entry; factor: (keyword, operation). The struct describes the other arguments. */
static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "form", "prim", "operands", "number_first", "floating", "discrete", "table", "make_entry", "parameters", "masks", "arrays_of_numbers", "factor", "label", "direct", "assigned", NULL};
    PyObject *python, *prim = Py_None, *table = Py_None, *make_entry = Py_None, *parameters = Py_None, *factor = Py_None, *label = Py_None, *assigned = Py_None;
    int form, nin = 0, number_first = 0, floating = 0, discrete = 0, masks = 0, arrays_of_numbers = 0, direct = 0, invalid;
    Operation *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|OippiOOOipOOpO:Operation", names, &python, &form, &prim, &nin, &number_first, &floating, &discrete, &table, &make_entry, &parameters, &masks, &arrays_of_numbers, &factor, &label, &direct, &assigned)) return NULL;
    if (form == BY_NDIM) nin = 2;
    invalid = form < ELEMENTWISE || form > INDEX || nin < 0 || nin > MAX_ELEMENTWISE_OPERANDS;
    invalid |= (form == ELEMENTWISE || form == IN_PLACE) && (nin < 1 || prim == Py_None);
    invalid |= (form == IN_PLACE || form == ASSIGN) && (nin < 1 || !PyUnicode_CheckExact(label));
    invalid |= form == ASSIGN && nin != 2 - (assigned != Py_None);
    invalid |= (form == BY_NDIM || form == ARRAY_UFUNC || form == ARRAY_FUNCTION) && !PyDict_CheckExact(table);
    invalid |= form == INDEX && (prim == Py_None || table == Py_None);
    invalid |= ((form == CACHED || form == CACHED_METHOD || form == ARRAY_FUNCTION) && make_entry == Py_None) || (parameters != Py_None && !PyDict_CheckExact(parameters));
    invalid |= factor != Py_None && (!PyTuple_CheckExact(factor) || PyTuple_GET_SIZE(factor) != 2 || nin < 1);
    if (invalid) {
        PyErr_SetString(PyExc_ValueError, "an Operation needs an op of one to three operands, a table, make_entry or a label, as its form requires");
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
    self->discrete = discrete;
    self->masks = masks;
    self->arrays_of_numbers = arrays_of_numbers;
    self->direct = direct;
    self->python = Py_NewRef(python);
    self->prim = Py_NewRef(prim);
    self->table = Py_NewRef(table);
    self->make_entry = Py_NewRef(make_entry);
    self->label = Py_NewRef(label);
    self->parameters = parameters == Py_None ? NULL : Py_NewRef(parameters);
    self->assigned = assigned == Py_None ? NULL : Py_NewRef(assigned);
    self->factor_name = factor == Py_None ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 0));
    self->factor = factor == Py_None ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 1));
    if (self->factor_name != NULL && PyUnicode_CheckExact(self->factor_name)) PyUnicode_InternInPlace(&self->factor_name);
    self->cached = form == CACHED ? PyDict_New() : Py_NewRef(Py_None);
    if (form == CACHED_METHOD || form == ARRAY_FUNCTION) self->cache = new_cache();
    if (self->cached == NULL || PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

/* with_fallback(python, arrays=False, swapped=False, floats=False, factor=None, constants=False): return a copy that wraps another Python function.
   floats: without bool and int64 */
static PyObject *operation_instead(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "arrays", "swapped", "floats", "factor", "constants", NULL};
    Operation *self = (Operation *)object, *copy;
    PyObject *python, *factor = NULL;
    int arrays = 0, swapped = 0, floats = 0, constants = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppO!p:with_fallback", names, &python, &arrays, &swapped, &floats, &PyTuple_Type, &factor, &constants)) return NULL;
    if (self->form == CACHED || self->form >= CACHED_METHOD || (arrays && array_type == NULL) || (factor != NULL && PyTuple_GET_SIZE(factor) != 2)) {
        PyErr_SetString(PyExc_TypeError, "this operation cannot have another Python function");
        return NULL;
    }
    copy = (Operation *)Py_TYPE(object)->tp_alloc(Py_TYPE(object), 0);
    if (copy == NULL) return NULL;
    copy->vectorcall = call_operation;
    copy->form = self->form;
    copy->nin = self->nin;
    copy->number_first = self->number_first;
    copy->floating = self->floating;
    copy->discrete = floats ? 0 : self->discrete;
    copy->masks = self->masks;
    copy->arrays_of_numbers = self->arrays_of_numbers;
    copy->direct = self->direct;
    copy->arrays = arrays;
    copy->swapped = swapped;
    copy->constants = constants;
    copy->python = Py_NewRef(python);
    copy->prim = Py_NewRef(self->prim);
    copy->table = Py_NewRef(self->table);
    copy->make_entry = Py_NewRef(self->make_entry);
    copy->cached = Py_NewRef(self->cached);
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
    Py_VISIT(self->cached);
    Py_VISIT(self->make_entry);
    Py_VISIT(self->parameters);
    Py_VISIT(self->factor);
    Py_VISIT(self->assigned);
    return visit_cache(self->cache, visit, arg);
}

static int operation_clear(PyObject *object) {
    Operation *self = (Operation *)object;
    Py_CLEAR(self->python); /* first: calls are refused without it */
    Py_CLEAR(self->dict);
    Py_CLEAR(self->table);
    Py_CLEAR(self->cached);
    Py_CLEAR(self->make_entry);
    Py_CLEAR(self->parameters);
    Py_CLEAR(self->factor_name);
    Py_CLEAR(self->factor);
    Py_CLEAR(self->label);
    Py_CLEAR(self->assigned);
    Py_CLEAR(self->prim);
    if (self->cache != NULL) {
        DispatchCache *cache = self->cache;
        self->cache = NULL;
        free_cache(cache);
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
    {"python", T_OBJECT, offsetof(Operation, python), READONLY, "the Python function for the slow path"},
    {"prim", T_OBJECT, offsetof(Operation, prim), READONLY, "the op of an elementwise operation"},
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
    {"factor", get_factor, NULL, "(keyword of a factor for the last operand, operation that multiplies), or None", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"with_fallback", (PyCFunction)(void (*)(void))operation_instead, METH_VARARGS | METH_KEYWORDS, "with_fallback(python, arrays=False, swapped=False, floats=False, factor=None, constants=False): return a copy with another Python function"},
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

/* connect_arrays(Array): set the class Array, whose slot _tensor has the tensor */
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

/* replay(entry, operands): record the ops of a cache entry; return the last tensor, or None */
static PyObject *replay_entry(PyObject *module, PyObject *args) {
    PyObject *entry, *operands, *output;
    Py_ssize_t i;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:replay", &PyTuple_Type, &entry, &PyTuple_Type, &operands)) return NULL;
    if (PyTuple_GET_SIZE(operands) > MAX_CALL_OPERANDS || !is_entry(entry, PyTuple_GET_SIZE(operands))) {
        PyErr_SetString(PyExc_ValueError, "this is not a dispatch cache entry");
        return NULL;
    }
    for (i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(x) != core.tensor && !PyArray_CheckExact(x)) {
            PyErr_SetString(PyExc_TypeError, "the operands of a dispatch cache entry are tensors and arrays");
            return NULL;
        }
    }
    output = current_mode() == RECORDS ? replay(entry, &PyTuple_GET_ITEM(operands, 0), (int)PyTuple_GET_SIZE(operands), RECORDS) : NULL;
    return output == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : output;
}

/* Add the constants that api/operations.py, api/dispatch_cache.py and tape/eager.py make Operations and Ops with. */
int add_operation_constants(PyObject *module) {
    static const struct {
        const char *name;
        long value;
    } constants[] = {{"ELEMENTWISE", ELEMENTWISE}, {"BY_NDIM", BY_NDIM}, {"CACHED", CACHED}, {"ARRAY_UFUNC", ARRAY_UFUNC}, {"IN_PLACE", IN_PLACE}, {"ASSIGN", ASSIGN}, {"CACHED_METHOD", CACHED_METHOD}, {"ARRAY_FUNCTION", ARRAY_FUNCTION}, {"INDEX", INDEX}, {"BOOL", DISCRETE_BOOL}, {"INT64", DISCRETE_INT64}, {"SUM", SUM}, {"MEAN", MEAN}, {"CONCATENATE", CONCATENATE}, {"STACK", STACK}, {"VARIANCE", VARIANCE}, {"DEVIATION", DEVIATION}, {"NORM", NORM}, {"LOG_SUM_EXP", LOG_SUM_EXP}, {"SCAN_SUM", SCAN_SUM}, {"SCAN_PRODUCT", SCAN_PRODUCT}, {"ALIGN", ALIGN}, {"LEADING", LEADING}, {"MAX_SAVED", MAX_SAVED}};
    size_t i;
    for (i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0) return -1;
    }
    return 0;
}

PyMethodDef operation_functions[] = {
    {"replay", replay_entry, METH_VARARGS, "replay(entry, operands): record the operations of a dispatch cache entry; return the last tensor, or None; see api/dispatch_cache.py"},
    {"call_in_error_state", (PyCFunction)(void (*)(void))call_function_in_error_state, METH_FASTCALL, "call_in_error_state(function, *args): call a function; NumPy warnings in it name the user\'s line"},
    {"connect_error_state", connect_error_state, METH_VARARGS, "connect_error_state(variable, internal_error_state_of, raising_error_state_of): set NumPy's context variable, and the functions that convert error states"},
    {"connect_arrays", connect_arrays, METH_O, "connect_arrays(Array): the class of arrays, which hold a tensor"},
    {NULL, NULL, 0, NULL},
};
