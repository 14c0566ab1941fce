/* Operation: a callable that wraps a Python function of the public API and runs its fast path in C. Users call Operations.

   The fast path handles calls in which this thread is in a normal mode, and operands are exact Tensors of exact ndarrays of float or double, or
   Python numbers. All other calls go to the Python function with the same arguments. If the fast path fails where Python has a better error
   message, the error is dropped and the Python function is called. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

#include <numpy/arrayscalars.h>

#include <stddef.h>
#include <structmember.h> /* names of Python 3.11 */

/* The forms of Operation, which api/operations.py and api/dispatch_cache.py choose.
   ELEMENTWISE: an elementwise op of up to three operands.
   BY_NDIM: the op depends on the numbers of axes of two operands.
   CACHED: a function that chooses its ops by shapes and static arguments alone. The dispatch cache stores the ops and their parameters. The
   operands are Arrays, or the Tensor or sequence of Tensors in the first argument. With a table: __array_function__ for its functions.
   ARRAY_UFUNC: __array_ufunc__, which looks up the operation of a ufunc.
   IN_PLACE: the value of an elementwise op is written into the first operand.
   ASSIGN: a number, or the elements of another tensor, are written into a tensor.
   INDEX: the elements of a tensor or Array at an index. */
enum { ELEMENTWISE, BY_NDIM, CACHED, ARRAY_UFUNC, IN_PLACE, ASSIGN, INDEX };
enum { DISCRETE_BOOL = 1, DISCRETE_INT64 = 2 }; /* dtypes that an operation accepts without a derivative */

typedef struct {
    PyObject *prim;
    PyObject *parameters;                             /* numeric parameters of the op with their defaults, or NULL */
    PyObject *factor_name, *factor;                   /* keyword of a factor for the last operand, and the operation that multiplies; or NULL */
    int number_first, floating, discrete;             /* discrete: DISCRETE_BOOL + DISCRETE_INT64 */
    int masks, arrays_of_numbers;                     /* masks: bits of the bool operands; arrays_of_numbers: numbers become 0-d arrays */
} Elementwise;
typedef struct {
    Elementwise value;                                /* first: functions of ELEMENTWISE also read it as Operation.elementwise */
    PyObject *label;                                  /* name in the record of writes */
    int direct;                                       /* if nothing is recorded, one ufunc call writes into the tensor */
} InPlace;
typedef struct { PyObject *table; } ByNdim;           /* (ndim, ndim) -> op */
typedef struct { PyObject *table; } ArrayUfunc;       /* (ufunc, whether a number comes first) -> operation */
typedef struct {
    PyObject *table;                                  /* the functions of __array_function__ in the cache, or NULL */
    DispatchCache *cache;
} Cached;
typedef struct {
    PyObject *label, *assigned;                       /* label: name in the record of writes; assigned: the number if it is constant, or NULL */
    int numbers;                                      /* whether numbers are assigned, not tensors */
} Assign;
typedef struct { PyObject *basic, *at_positions; } Index; /* the ops of basic indices, and of arrays of integers */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weakrefs;
    PyObject *python;                   /* the wrapped function, for the slow path */
    int form, nin;                      /* nin: number of operands, if the form has a fixed number */
    int arrays, swapped, constants;     /* arrays: operands and result are Arrays; swapped: operands are exchanged; constants: plain arrays may be operands */
    union {
        Elementwise elementwise;        /* ELEMENTWISE, IN_PLACE */
        InPlace in_place;
        ByNdim by_ndim;
        ArrayUfunc array_ufunc;
        Cached cached;
        Assign assign;
        Index index;
    };
} Operation;

static PyTypeObject *operation_type, *array_type;
static Py_ssize_t array_tensor;
static PyObject *make_entry, *call_with_arrays; /* api/dispatch_cache.py */

int is_operation(PyObject *object) { return Py_TYPE(object) == operation_type; }
PyObject *prim_of_operation(PyObject *object) { return is_operation(object) && ((Operation *)object)->form == ELEMENTWISE ? ((Operation *)object)->elementwise.prim : NULL; }

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
static int accepts_discrete(const Operation *self, PyArray_Descr *dtype) { return (dtype->type_num == NPY_BOOL && self->elementwise.discrete & DISCRETE_BOOL) || (dtype->type_num == NPY_INT64 && self->elementwise.discrete & DISCRETE_INT64); }

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
            if (!is_number(raw) || self->elementwise.masks >> k & 1 || (k == 0 && !self->elementwise.number_first)) return 0;
            numbers = 1;
        } else if (self->elementwise.masks >> k & 1) {
            if (!is_mask(raw)) return 0;
        } else if (dtype == NULL) {
            dtype = PyArray_DESCR((PyArrayObject *)raw);
        } else if (dtype != PyArray_DESCR((PyArrayObject *)raw)) {
            return 0;
        }
    }
    if (dtype == NULL) return 0;
    if (dtype != core.dtypes[0] && dtype != core.dtypes[1]) return !numbers && !operands->recorded && accepts_discrete(self, dtype);
    if (!self->elementwise.floating) return 0;
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
    int k, recorded = 0;
    for (k = 0; k < self->nin; k++) recorded |= Py_TYPE(args[k]) == core.tensor && SLOT(args[k], core.edge) != NULL && SLOT(args[k], core.edge) != Py_None;
    if (PyDict_GET_SIZE(params) > 0 || !self->elementwise.floating || self->elementwise.arrays_of_numbers || self->elementwise.masks) return NULL;
    for (k = 0; k < self->nin; k++) {
        int constant = self->constants && PyArray_CheckExact(args[k]) && (recorded || PyArray_NDIM((PyArrayObject *)args[k]) > 0); /* a NumPy scalar stays one in plain code */
        if (Py_TYPE(args[k]) == core.tensor || constant) {
            PyObject *array = constant ? args[k] : array_of_tensor(args[k], TRACES);
            if (array == NULL || (dtype != NULL && dtype != PyArray_DESCR((PyArrayObject *)array))) return NULL; /* Python records casts to a common dtype */
            dtype = PyArray_DESCR((PyArrayObject *)array);
            continue;
        }
        if (!is_number(args[k]) || (k == 0 && (!self->elementwise.number_first || (self->arrays && !self->swapped)))) return NULL; /* reflected methods of Array, such as subtraction, use other ops */
    }
    return record(self->elementwise.prim, args, self->nin, params, NULL, TRACES, current_frame);
}

/* An operation on tensors of one dtype, and numbers, of which some hold values of transformations. NULL without an error: slow path. */
static PyObject *elementwise_of_levels(const Operation *self, PyObject *const *args, PyObject *params, int mode, SourceLocation location) {
    int k, kind = -1;
    if (!self->elementwise.floating || self->elementwise.masks || self->elementwise.arrays_of_numbers || PyDict_GET_SIZE(params) > 0) return NULL;
    for (k = 0; k < self->nin; k++) {
        int own;
        if (is_number(args[k])) {
            if (k == 0 && !self->elementwise.number_first) return NULL;
            continue;
        }
        own = Py_TYPE(args[k]) == core.tensor ? float_kind_of(SLOT(args[k], core.raw)) : -1;
        if (own < 0 || (kind >= 0 && own != kind)) return NULL;
        kind = own;
    }
    return kind < 0 ? NULL : bind_levels(self->elementwise.prim, args, self->nin, params, mode, location);
}

static PyObject *elementwise(const Operation *self, PyObject *const *args, PyObject *params, int mode, SourceLocation location) {
    Operands operands;
    PyObject *result = NULL, *output = NULL;
    Op *op;
    if (mode == TRACES) return traced_elementwise(self, args, params);
    op = op_of(self->elementwise.prim); /* first, because it may run Python */
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
    if (!self->elementwise.arrays_of_numbers || numbers_to_arrays(&operands) > 0) result = op_value(op, operands.raw, self->nin, params);
    if (result == NULL) {
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    } else if (!PyArray_CheckExact(result)) {
        Py_DECREF(result); /* Python computes it again */
    } else {
        output = tensor_of_result(op, self->elementwise.prim, args, node_operands(&operands), params, result, 0, mode, location);
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
        int is_parameter = PyDict_Contains(self->elementwise.parameters, PyTuple_GET_ITEM(kwnames, i));
        if (is_parameter != 1 || !is_number(values[i])) return NULL;
    }
    params = PyDict_Copy(self->elementwise.parameters);
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
    prim = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(self->by_ndim.table, key));
    Py_XDECREF(key);
    if (prim == NULL) return NULL;
    output = levels ? bind_levels(prim, args, 2, core.no_params, mode, location) : record(prim, args, 2, core.no_params, NULL, mode, location);
    Py_DECREF(prim);
    if (output == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
    return output;
}

/* ---- calls */

static PyObject *call_without_keywords(const Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode);

/* Convert NumPy scalars to Python numbers, which are weakly typed in the PyTorch-style API. */
static PyObject *weak_scalar(PyObject *x) {
    if (PyArray_IsScalar(x, Double)) return PyFloat_FromDouble(PyArrayScalar_VAL(x, Double));
    if (PyArray_IsScalar(x, Float)) return PyFloat_FromDouble((double)PyArrayScalar_VAL(x, Float));
    return Py_NewRef(x);
}

/* The same for a value of a transformation. Operands: such values, arrays, and numbers; NumPy scalars become numbers. */
static PyObject *levels_by_protocol(const Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *key = PyTuple_Pack(2, args[1], Py_False), *operation = key == NULL ? NULL : PyDict_GetItemWithError(self->array_ufunc.table, key), *prim = operation == NULL ? NULL : Py_XNewRef(prim_of_operation(operation));
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
static PyObject *by_protocol(const Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *key, *operation, *operands[2], *number, *result = NULL;
    int first;
    if (nargs < 4 || nargs > 5 || Py_TYPE(args[1]) != &PyUFunc_Type || !PyUnicode_Check(args[2]) || PyUnicode_CompareWithASCIIString(args[2], "__call__") != 0) return NULL;
    if (is_level_value(args[0])) return levels_by_protocol(self, args, nargs, mode);
    number = Py_TYPE(args[0]) == core.tensor ? weak_scalar(args[3]) : Py_NewRef(args[3]);
    if (number == NULL) return NULL;
    first = nargs == 5 && is_number(number);
    key = PyTuple_Pack(2, args[1], first ? Py_True : Py_False);
    operation = key == NULL ? NULL : PyDict_GetItemWithError(self->array_ufunc.table, key);
    Py_XDECREF(key);
    operands[0] = first ? args[4] : number;
    operands[1] = first ? number : nargs == 5 ? args[4] : NULL;
    if (operation != NULL && is_operation(operation) && (((Operation *)operation)->form == ELEMENTWISE || ((Operation *)operation)->form == BY_NDIM)) {
        Py_INCREF(operation);
        result = call_without_keywords((Operation *)operation, operands, nargs - 3, mode);
        Py_DECREF(operation);
    }
    Py_DECREF(number);
    return result;
}

PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, SourceLocation location) {
    Operation *self = (Operation *)operation;
    int mode;
    if (!is_operation(operation) || self->form != ELEMENTWISE || self->arrays || self->swapped || self->elementwise.parameters != NULL || nargs != self->nin) return NULL;
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

static PyObject *in_place(const Operation *self, PyObject *const *args, int direct, int mode) {
    Operands operands;
    Op *op = op_of(self->elementwise.prim);
    PyObject *output = NULL;
    if (op != NULL && op->nin == self->nin && read_operands(self, args, &operands)) {
        hold_operands(&operands);
        output = operate_in_place(op, self->elementwise.prim, self->in_place.label, direct, args, &operands, mode);
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

/* Read the cache key of a call. Return 0, with or without an error, if the call has no key. The caller always drops the key. */
static int read_arguments(const Operation *self, CallKey *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    call->noperands = 0;
    if (self->cached.table == NULL) return read_call_key(call, (PyObject *)self, args, nargs, kwnames, self->arrays, mode);
    if (nargs != 5 || kwnames != NULL || !PyTuple_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) return 0; /* (self, function, types, args, kwargs) */
    if (PyDict_Contains(self->cached.table, args[1]) <= 0) return 0;
    return read_call_key(call, args[1], &PyTuple_GET_ITEM(args[3], 0), PyTuple_GET_SIZE(args[3]), args[4], self->arrays, mode);
}

/* Call Python with copies of lists, and store the ops that it applied. The copies keep the entry correct if other code changes the
   caller's lists during the call. NULL without an error if a list has changed already. */
static PyObject *call_and_store(const Operation *self, const CallKey *call, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *copies = PyTuple_New(n), *operands, *result = NULL, *entry = NULL;
    CallKey copied_key;
    for (i = 0; copies != NULL && i < n; i++) {
        PyObject *arg = deep_copy(args[i], 4);
        if (arg == NULL) Py_CLEAR(copies);
        else PyTuple_SET_ITEM(copies, i, arg);
    }
    if (copies == NULL) return NULL;
    if (read_arguments(self, &copied_key, &PyTuple_GET_ITEM(copies, 0), nargs, kwnames, call->mode) && is_same_key(call, &copied_key)) {
        operands = PyTuple_New(copied_key.noperands);
        for (i = 0; operands != NULL && i < copied_key.noperands; i++) PyTuple_SET_ITEM(operands, i, Py_NewRef(copied_key.operands[i]));
        result = operands == NULL ? NULL : call_in_error_state(self->python, &PyTuple_GET_ITEM(copies, 0), (size_t)nargs, kwnames);
        if (result != NULL) entry = PyObject_CallFunctionObjArgs(make_entry, self->python, copies, kwnames == NULL ? Py_None : kwnames, operands, result, self->arrays ? Py_True : Py_False, NULL);
        if (entry != NULL) store_entry(self->cached.cache, &copied_key, entry);
        else Py_CLEAR(result);
        Py_XDECREF(operands);
    }
    drop_call_key(&copied_key);
    Py_XDECREF(entry);
    Py_DECREF(copies);
    return result;
}

/* Store the entry of a call in a trace: make the call outside of the trace, with arrays instead of traced values. */
static int store_in_trace(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    Py_ssize_t i, n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *given = PyTuple_New(n), *done = NULL;
    for (i = 0; given != NULL && i < n; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    if (given != NULL) done = PyObject_CallFunctionObjArgs(core.call_untraced, call_with_arrays, self, given, kwnames == NULL ? Py_None : kwnames, NULL);
    Py_XDECREF(given);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *cached_call(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    PyObject *entry = NULL, *output = NULL;
    CallKey call;
    if (make_entry == NULL || (self->arrays && mode != RECORDS && mode != TRACES)) return NULL;
    if (read_arguments(self, &call, args, nargs, kwnames, mode)) {
        int is_due = find_entry(self->cached.cache, &call, &entry) || (entry == NULL && !self->arrays); /* an entry of a function of Arrays needs a second run, so it is made at the second call */
        if (is_due && mode == TRACES) {
            if (store_in_trace(self, args, nargs, kwnames) == 0 && find_entry(self->cached.cache, &call, &entry)) store_entry(self->cached.cache, &call, Py_None); /* the call had another key */
            is_due = 0;
        }
        if (entry != NULL && PyTuple_CheckExact(entry)) output = replay(entry, call.operands, call.noperands, mode);
        else if (is_due) output = call_and_store(self, &call, args, nargs, kwnames);
        if (output != NULL && entry != NULL && self->arrays) output = wrap_tensor(output);
    }
    drop_call_key(&call);
    Py_XDECREF(entry);
    return output;
}

/* ---- dispatch */

static PyObject *by_index(const Operation *self, PyObject *x, PyObject *index, int mode) {
    PyObject *tensor = unwrap_array(x), *output;
    if (Py_TYPE(tensor) != core.tensor) return NULL;
    Py_INCREF(tensor);
    output = index_tensor(self->index.basic, self->index.at_positions, tensor, index, tensor != x, mode);
    Py_DECREF(tensor);
    return tensor == x ? output : wrap_tensor(output);
}

static PyObject *on_tensors(const Operation *self, PyObject *const *args, PyObject *params, int mode) {
    return self->form == BY_NDIM ? by_ndim(self, args, mode, current_frame) : elementwise(self, args, params, mode, current_frame);
}

/* Call an ELEMENTWISE or BY_NDIM operation without keywords. NULL without an error: slow path. */
static PyObject *call_without_keywords(const Operation *self, PyObject *const *args, Py_ssize_t nargs, int mode) {
    PyObject *operands[MAX_ELEMENTWISE_OPERANDS], *result;
    int k;
    if (nargs != self->nin) return NULL;
    if (self->nin == 2 && !self->arrays && !self->swapped && self->form == ELEMENTWISE && PyArray_IsScalar(args[1], Floating)) {
        Op *op = op_of(self->elementwise.prim);
        operands[0] = args[0];
        operands[1] = op == NULL || !op->records ? NULL : weak_scalar(args[1]);
        Py_XDECREF(op);
        if (operands[1] == NULL) return NULL;
        result = on_tensors(self, operands, core.no_params, mode);
        Py_DECREF(operands[1]);
        return result;
    }
    if (!self->arrays && !self->swapped) return on_tensors(self, args, core.no_params, mode);
    if (!unwrap_arrays(self, args, operands)) return NULL;
    result = on_tensors(self, operands, core.no_params, mode);
    for (k = 0; k < self->nin; k++) Py_DECREF(operands[k]);
    return result != NULL && self->arrays ? wrap_tensor(result) : result;
}

static PyObject *call_with_parameters(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    PyObject *params = nargs == self->nin ? parameters_of(self, args + nargs, kwnames) : NULL, *result;
    if (params == NULL) return NULL;
    result = elementwise(self, args, params, mode, current_frame);
    Py_DECREF(params);
    return result;
}

static PyObject *call_or_write(const Operation *self, PyObject *const *args, int direct, int mode) {
    return self->form == IN_PLACE ? in_place(self, args, direct, mode) : call_without_keywords(self, args, self->nin, mode);
}

/* Call an ELEMENTWISE or IN_PLACE operation. Multiply the last operand by the factor first. */
static PyObject *call_with_factor(const Operation *self, PyObject *const *args, PyObject *factor, int mode) {
    PyObject *operands[MAX_ELEMENTWISE_OPERANDS + 1], *result, *both[] = {args[self->nin - 1], factor}, *scaled, *name;
    int k, last = self->nin - 1;
    if (PyFloat_CheckExact(factor) ? PyFloat_AS_DOUBLE(factor) == 1 : PyLong_AsDouble(factor) == 1) return call_or_write(self, args, 0, mode);
    if (PyErr_Occurred() || Py_TYPE(both[0]) != core.tensor) {
        PyErr_Clear(); /* an integer out of range of floats */
        return NULL;
    }
    if (self->form == IN_PLACE && !may_write(args[0], mode, 1)) return NULL;
    scaled = operate(self->elementwise.factor, both, 2, current_frame);
    if (scaled == NULL) return NULL;
    for (k = 0; k < last; k++) operands[k] = args[k];
    operands[last] = scaled;
    result = call_or_write(self, operands, 0, mode);
    if (result == NULL && !PyErr_Occurred() && (name = PyTuple_Pack(1, self->elementwise.factor_name)) != NULL) { /* Continue in Python with the scaled operand. The factor True has no effect, but keeps Python from writing with a single ufunc call. */
        operands[self->nin] = Py_True;
        result = call_in_error_state(self->python, operands, (size_t)self->nin, name);
        Py_DECREF(name);
    }
    Py_DECREF(scaled);
    return result;
}

static int is_factor(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const Elementwise *form = &self->elementwise;
    return form->factor != NULL && nargs == self->nin && PyTuple_GET_SIZE(kwnames) == 1 && PyTuple_GET_ITEM(kwnames, 0) == form->factor_name && is_number(args[nargs]);
}

static PyObject *call_elementwise(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    int named = kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0;
    if (mode == TRACES && (named || self->form == IN_PLACE)) return NULL;
    if (self->elementwise.parameters != NULL) return call_with_parameters(self, args, nargs, kwnames, mode);
    if (named) return is_factor(self, args, nargs, kwnames) ? call_with_factor(self, args, args[nargs], mode) : NULL;
    return nargs == self->nin ? call_or_write(self, args, self->form == IN_PLACE && self->in_place.direct, mode) : NULL;
}

/* Run the fast path of a call. NULL without an error: slow path. */
static PyObject *dispatch(const Operation *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int mode) {
    if (self->form == ELEMENTWISE || self->form == IN_PLACE) return call_elementwise(self, args, nargs, kwnames, mode);
    if (self->form == CACHED) return cached_call(self, args, nargs, kwnames, mode);
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) return NULL;
    switch (self->form) {
    case BY_NDIM: return call_without_keywords(self, args, nargs, mode);
    case ARRAY_UFUNC: return by_protocol(self, args, nargs, mode);
    case INDEX: return nargs == 2 ? by_index(self, args[0], args[1], mode) : NULL;
    default: /* ASSIGN */
        if (nargs != self->nin || mode == TRACES) return NULL;
        return assign(self->assign.label, args[0], self->assign.assigned == NULL ? args[1] : self->assign.assigned, self->assign.numbers, mode);
    }
}

static PyObject *call_operation(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    const Operation *self = (const Operation *)object;
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

enum { MAX_REFERENCES = 5 };

/* Collect the slots of the form of an operation. */
static int slots_of_form(Operation *self, PyObject ***found) {
    int n = 0;
    switch (self->form) {
    case IN_PLACE:
    case ELEMENTWISE:
        found[n++] = &self->elementwise.prim;
        found[n++] = &self->elementwise.parameters;
        found[n++] = &self->elementwise.factor_name;
        found[n++] = &self->elementwise.factor;
        if (self->form == IN_PLACE) found[n++] = &self->in_place.label;
        break;
    case BY_NDIM: found[n++] = &self->by_ndim.table; break;
    case ARRAY_UFUNC: found[n++] = &self->array_ufunc.table; break;
    case CACHED: found[n++] = &self->cached.table; break;
    case ASSIGN:
        found[n++] = &self->assign.label;
        found[n++] = &self->assign.assigned;
        break;
    default: /* INDEX */
        found[n++] = &self->index.basic;
        found[n++] = &self->index.at_positions;
    }
    return n;
}

/* Set a factor (keyword, operation), or none. */
static void set_factor(Elementwise *form, PyObject *factor) {
    Py_XSETREF(form->factor_name, factor == NULL ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 0)));
    Py_XSETREF(form->factor, factor == NULL ? NULL : Py_NewRef(PyTuple_GET_ITEM(factor, 1)));
    if (factor != NULL && PyUnicode_CheckExact(form->factor_name)) PyUnicode_InternInPlace(&form->factor_name);
}

static PyObject *optional(PyObject *x) { return x == Py_None ? NULL : Py_NewRef(x); }

static int invalid(const char *message) {
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

/* The arguments after python and form. number_first: the first operand may be a number; floating: accepts float and double; discrete: BOOL + INT64 if
   it accepts these; factor: (keyword, operation); label: for IN_PLACE. The structs describe the other arguments. */
static int fill_elementwise(Operation *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"prim", "operands", "number_first", "floating", "discrete", "parameters", "masks", "arrays_of_numbers", "factor", "label", "direct", NULL};
    PyObject *prim, *parameters = Py_None, *factor = Py_None, *label = NULL;
    Elementwise *form = &self->elementwise;
    int direct = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|ppiOipOUp:Operation", names, &prim, &self->nin, &form->number_first, &form->floating, &form->discrete, &parameters, &form->masks, &form->arrays_of_numbers, &factor, &label, &direct)) return -1;
    if (self->nin < 1 || self->nin > MAX_ELEMENTWISE_OPERANDS || (label != NULL) != (self->form == IN_PLACE)) return invalid("an elementwise Operation needs one to three operands, and a label if it works in place");
    if ((parameters != Py_None && !PyDict_CheckExact(parameters)) || (factor != Py_None && (!PyTuple_CheckExact(factor) || PyTuple_GET_SIZE(factor) != 2))) return invalid("the parameters of an Operation are a dict, and its factor is a pair");
    form->prim = Py_NewRef(prim);
    form->parameters = optional(parameters);
    set_factor(form, factor == Py_None ? NULL : factor);
    if (label == NULL) return 0;
    self->in_place.label = Py_NewRef(label);
    self->in_place.direct = direct;
    return 0;
}

static int fill_table(Operation *self, PyObject *args, PyObject *kwargs, PyObject **table) {
    static char *names[] = {"table", NULL};
    PyObject *given;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Operation", names, &PyDict_Type, &given)) return -1;
    *table = Py_NewRef(given);
    if (self->form == BY_NDIM) self->nin = 2;
    return 0;
}

static int fill_cached(Operation *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"arrays", "table", NULL};
    PyObject *table = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p|O!:Operation", names, &self->arrays, &PyDict_Type, &table)) return -1;
    self->cached.table = Py_XNewRef(table);
    self->cached.cache = new_cache();
    return self->cached.cache == NULL ? -1 : 0;
}

static int fill_assign(Operation *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"label", "numbers", "assigned", NULL};
    PyObject *label, *assigned = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Up|O:Operation", names, &label, &self->assign.numbers, &assigned)) return -1;
    self->assign.label = Py_NewRef(label);
    self->assign.assigned = optional(assigned);
    self->nin = assigned == Py_None ? 2 : 1;
    return 0;
}

static int fill_index(Operation *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"basic", "at_positions", NULL};
    PyObject *basic, *at_positions;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Operation", names, &basic, &at_positions)) return -1;
    self->index.basic = Py_NewRef(basic);
    self->index.at_positions = Py_NewRef(at_positions);
    return 0;
}

static int fill_form(Operation *self, PyObject *args, PyObject *kwargs) {
    switch (self->form) {
    case ELEMENTWISE:
    case IN_PLACE: return fill_elementwise(self, args, kwargs);
    case BY_NDIM: return fill_table(self, args, kwargs, &self->by_ndim.table);
    case ARRAY_UFUNC: return fill_table(self, args, kwargs, &self->array_ufunc.table);
    case CACHED: return fill_cached(self, args, kwargs);
    case ASSIGN: return fill_assign(self, args, kwargs);
    default: return fill_index(self, args, kwargs);
    }
}

/* Operation(python, form, ...): see the functions fill_...() for the other arguments */
static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *python, *first = PyTuple_GetSlice(args, 0, 2), *others = PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args));
    Operation *self = NULL;
    int form;
    if (first != NULL && others != NULL && PyArg_ParseTuple(first, "Oi:Operation", &python, &form)) {
        if (form < ELEMENTWISE || form > INDEX) invalid("an Operation has one of the forms ELEMENTWISE to INDEX");
        else self = (Operation *)type->tp_alloc(type, 0);
    }
    if (self != NULL) {
        operation_type = type;
        self->vectorcall = call_operation;
        self->python = Py_NewRef(python);
        self->form = form;
        if (fill_form(self, others, kwargs) < 0) Py_CLEAR(self);
    }
    Py_XDECREF(first);
    Py_XDECREF(others);
    return (PyObject *)self;
}

/* with_fallback(python, arrays=False, swapped=False, floats=False, factor=None, constants=False): return a copy that wraps another Python function.
   floats: without bool and int64 */
static PyObject *operation_instead(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"python", "arrays", "swapped", "floats", "factor", "constants", NULL};
    Operation *self = (Operation *)object, *copy;
    PyObject *python, *factor = NULL, **found[MAX_REFERENCES];
    int arrays = 0, swapped = 0, floats = 0, constants = 0, elementwise = self->form == ELEMENTWISE || self->form == IN_PLACE, n;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppO!p:with_fallback", names, &python, &arrays, &swapped, &floats, &PyTuple_Type, &factor, &constants)) return NULL;
    if (!(elementwise || self->form == BY_NDIM) || (arrays && array_type == NULL) || (factor != NULL && (!elementwise || PyTuple_GET_SIZE(factor) != 2))) {
        PyErr_SetString(PyExc_TypeError, "this operation cannot have another Python function");
        return NULL;
    }
    copy = (Operation *)Py_TYPE(object)->tp_alloc(Py_TYPE(object), 0);
    if (copy == NULL) return NULL;
    memcpy((char *)copy + offsetof(Operation, form), (char *)self + offsetof(Operation, form), sizeof(Operation) - offsetof(Operation, form));
    for (n = slots_of_form(copy, found); n-- > 0;) Py_XINCREF(*found[n]);
    copy->vectorcall = call_operation;
    copy->python = Py_NewRef(python);
    copy->arrays = arrays;
    copy->swapped = swapped;
    copy->constants = constants;
    if (elementwise && floats) copy->elementwise.discrete = 0;
    if (factor != NULL) set_factor(&copy->elementwise, factor);
    return (PyObject *)copy;
}

static int operation_traverse(PyObject *object, visitproc visit, void *arg) {
    Operation *self = (Operation *)object;
    PyObject **found[MAX_REFERENCES];
    int n;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dict);
    Py_VISIT(self->python);
    for (n = slots_of_form(self, found); n-- > 0;) Py_VISIT(*found[n]);
    return self->form == CACHED ? visit_cache(self->cached.cache, visit, arg) : 0;
}

static int operation_clear(PyObject *object) {
    Operation *self = (Operation *)object;
    PyObject **found[MAX_REFERENCES];
    int n;
    Py_CLEAR(self->python); /* first: calls are refused without it */
    Py_CLEAR(self->dict);
    for (n = slots_of_form(self, found); n-- > 0;) Py_CLEAR(*found[n]);
    if (self->form == CACHED) {
        DispatchCache *cache = self->cached.cache;
        self->cached.cache = NULL;
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
    {"form", T_INT, offsetof(Operation, form), READONLY, NULL},
    {"operands", T_INT, offsetof(Operation, nin), READONLY, NULL},
    {"swapped", T_INT, offsetof(Operation, swapped), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* Return the form if it has an op, parameters and a factor, or else NULL. */
static const Elementwise *elementwise_form(PyObject *object) {
    const Operation *self = (const Operation *)object;
    return self->form == ELEMENTWISE || self->form == IN_PLACE ? &self->elementwise : NULL;
}
static PyObject *get_prim(PyObject *object, void *unused) {
    const Elementwise *form = elementwise_form(object);
    (void)unused;
    return Py_NewRef(form == NULL || form->prim == NULL ? Py_None : form->prim);
}
static PyObject *get_parameters(PyObject *object, void *unused) {
    const Elementwise *form = elementwise_form(object);
    (void)unused;
    return Py_NewRef(form == NULL || form->parameters == NULL ? Py_None : form->parameters);
}
static PyObject *get_factor(PyObject *object, void *unused) {
    const Elementwise *form = elementwise_form(object);
    (void)unused;
    if (form == NULL || form->factor == NULL) Py_RETURN_NONE;
    return PyTuple_Pack(2, form->factor_name, form->factor);
}

static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"prim", get_prim, NULL, "the op of an elementwise operation, or None", NULL},
    {"parameters", get_parameters, NULL, "the numeric parameters of an elementwise operation with their defaults, or None", NULL},
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

/* connect_dispatch_cache(make_entry, call_with_arrays): set the functions of api/dispatch_cache.py */
static PyObject *connect_dispatch_cache(PyObject *module, PyObject *args) {
    PyObject *make, *call;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:connect_dispatch_cache", &make, &call)) return NULL;
    Py_XSETREF(make_entry, Py_NewRef(make));
    Py_XSETREF(call_with_arrays, Py_NewRef(call));
    Py_RETURN_NONE;
}

/* Add the constants that api/operations.py, api/dispatch_cache.py and tape/eager.py make Operations and Ops with. */
int add_operation_constants(PyObject *module) {
#define CONSTANT(name) {#name, name}
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        CONSTANT(ELEMENTWISE), CONSTANT(BY_NDIM), CONSTANT(CACHED), CONSTANT(ARRAY_UFUNC), CONSTANT(IN_PLACE), CONSTANT(ASSIGN), CONSTANT(INDEX),
        CONSTANT(DISCRETE_BOOL), CONSTANT(DISCRETE_INT64), CONSTANT(NO_REDUCTION), CONSTANT(SUM), CONSTANT(MEAN), CONSTANT(NO_JOIN), CONSTANT(CONCATENATE), CONSTANT(STACK),
        CONSTANT(NO_STATISTIC), CONSTANT(VARIANCE), CONSTANT(DEVIATION), CONSTANT(NORM), CONSTANT(LOG_SUM_EXP), CONSTANT(SCAN_SUM), CONSTANT(SCAN_PRODUCT),
        CONSTANT(BATCH_IN_PYTHON), CONSTANT(ALIGN), CONSTANT(LEADING), CONSTANT(MAX_SAVED),
    };
#undef CONSTANT
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
    {"connect_dispatch_cache", connect_dispatch_cache, METH_VARARGS, "connect_dispatch_cache(make_entry, call_with_arrays): set the functions of api/dispatch_cache.py"},
    {"connect_arrays", connect_arrays, METH_O, "connect_arrays(Array): the class of arrays, which hold a tensor"},
    {NULL, NULL, 0, NULL},
};
