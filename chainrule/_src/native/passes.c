/* Passes over a trace, for the calls that most traces consist of: one ufunc called with Vars and Python numbers.

   Each function goes through a list of calls. It handles such calls as the Python code in compiling/ does, and calls back a Python function
   for all others. The Python code is the reference: the passes run without the extension, too. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

enum { MAX_UFUNC_ARGS = 3, MAX_LAYOUTS = 16, MAX_STEP_OPERANDS = 8 };
enum { COMPUTED = 2 }; /* the origin of a slot, as in compiling/trace.py */

/* Whether a call is `ufunc(x, ...)` of Vars and Python numbers, with one result and no effects. */
static int is_simple(PyObject *call) {
    PyObject *function, *args, *kwargs, *results;
    Py_ssize_t i;
    if (call_type == NULL || Py_TYPE(call) != call_type) return 0;
    function = SLOT(call, call_function);
    args = SLOT(call, call_args);
    kwargs = SLOT(call, call_kwargs);
    results = SLOT(call, call_results);
    if (function == NULL || Py_TYPE(function) != &PyUFunc_Type || ((PyUFuncObject *)function)->core_enabled || SLOT(call, call_method) != method_name) return 0;
    if (args == NULL || !PyTuple_CheckExact(args) || PyTuple_GET_SIZE(args) > MAX_UFUNC_ARGS || kwargs == NULL || !PyDict_CheckExact(kwargs) || PyDict_GET_SIZE(kwargs) > 0) return 0;
    if (results == NULL || !PyTuple_CheckExact(results) || PyTuple_GET_SIZE(results) != 1 || Py_TYPE(PyTuple_GET_ITEM(results, 0)) != var_type) return 0;
    if (SLOT(call, call_pure) != Py_True || SLOT(call, call_kept) != Py_False) return 0;
    for (i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        int overflow = 0;
        if (Py_TYPE(x) == var_type || PyFloat_CheckExact(x)) continue;
        if (!PyLong_CheckExact(x)) return 0;
        PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow) return 0;
    }
    return 1;
}

/* Borrow the step of a template that a call was appended from; NULL if there is none. */
static PyObject *step_of(PyObject *call) {
    PyObject *step = call_type != NULL && Py_TYPE(call) == call_type ? SLOT(call, call_step) : NULL;
    return step != NULL && step_type != NULL && Py_TYPE(step) == step_type ? step : NULL;
}

/* Append the Vars in nested containers, as operand_vars() in compiling/simplify.py: -1 error. */
static int collect(PyObject *x, PyObject *found) {
    Py_ssize_t i;
    if (Py_TYPE(x) == var_type) return PyList_Append(found, x);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        for (i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
            if (collect(PySequence_Fast_GET_ITEM(x, i), found) < 0) return -1;
        }
    } else if (PyDict_CheckExact(x)) {
        PyObject *name, *value;
        for (i = 0; PyDict_Next(x, &i, &name, &value);) {
            if (collect(value, found) < 0) return -1;
        }
    } else if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        if (collect(slice->start, found) < 0 || collect(slice->stop, found) < 0 || collect(slice->step, found) < 0) return -1;
    }
    return 0;
}

/* A list of the Vars among the arguments of a call. */
static PyObject *vars_of(PyObject *call) {
    PyObject *used = PyList_New(0);
    if (used != NULL && (collect(SLOT(call, call_args), used) < 0 || collect(SLOT(call, call_kwargs), used) < 0)) Py_CLEAR(used);
    return used;
}

/* Whether the set of ids has that of an array or of a base of it, or a base is another object, such as versions.Lender; -1 error */
static int is_among(PyObject *ids, PyObject *array) {
    PyObject *id;
    int found = 0;
    for (; array != NULL && !found; array = PyArray_BASE((PyArrayObject *)array)) {
        if (!PyArray_Check(array)) return 1;
        id = PyLong_FromVoidPtr(array);
        found = id == NULL ? -1 : PySet_Contains(ids, id);
        Py_XDECREF(id);
    }
    return found;
}

/* Each function below passes the results of calls to this type of function: -1 error */
typedef int (*VisitVar)(PyObject *var, PyObject *one, PyObject *other);

static int visit_results(PyObject *calls, VisitVar visit, PyObject *one, PyObject *other) {
    Py_ssize_t i, k;
    for (i = 0; i < PyList_GET_SIZE(calls); i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *results = Py_TYPE(call) == call_type ? SLOT(call, call_results) : NULL;
        if (results == NULL || !PyTuple_CheckExact(results)) {
            PyErr_SetString(PyExc_TypeError, "expected a list of TracedCalls");
            return -1;
        }
        for (k = 0; k < PyTuple_GET_SIZE(results); k++) {
            if (visit(PyTuple_GET_ITEM(results, k), one, other) < 0) return -1;
        }
    }
    return 0;
}

static int append_if_among(PyObject *var, PyObject *ids, PyObject *found) {
    PyObject *array = SLOT(var, var_array);
    int among = array == NULL ? 0 : is_among(ids, array);
    return among > 0 ? PyList_Append(found, var) : among;
}

/* results_in_memory(calls, ids) -> the results whose memory may belong to an array with an id of the set */
static PyObject *results_in_memory(PyObject *module, PyObject *args) {
    PyObject *calls, *ids, *found;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &calls, &PySet_Type, &ids)) return NULL;
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

/* drop_results(calls, kept): drop the values of the results, except of the Vars in a set */
static PyObject *drop_results(PyObject *module, PyObject *args) {
    PyObject *calls, *kept;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &calls, &PySet_Type, &kept)) return NULL;
    return visit_results(calls, drop_var_array, kept, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

/* numbers_of(calls) -> ({number: Var} of the results of the calls, {numbers of the other Vars that they read}) */
static PyObject *numbers_of(PyObject *module, PyObject *calls) {
    PyObject *results = PyDict_New(), *used = PySet_New(NULL), *vars = NULL;
    Py_ssize_t i, k;
    int failed = results == NULL || used == NULL || !PyList_CheckExact(calls);
    (void)module;
    for (i = 0; !failed && i < PyList_GET_SIZE(calls); i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *computed = Py_TYPE(call) == call_type ? SLOT(call, call_results) : NULL;
        failed = computed == NULL || !PyTuple_CheckExact(computed);
        for (k = 0; !failed && k < PyTuple_GET_SIZE(computed); k++) failed = PyDict_SetItem(results, SLOT(PyTuple_GET_ITEM(computed, k), var_number), PyTuple_GET_ITEM(computed, k)) < 0;
    }
    for (i = 0; !failed && i < PyList_GET_SIZE(calls); i++) {
        vars = vars_of(PyList_GET_ITEM(calls, i));
        failed = vars == NULL;
        for (k = 0; !failed && k < PyList_GET_SIZE(vars); k++) {
            PyObject *number = SLOT(PyList_GET_ITEM(vars, k), var_number);
            int defined = PyDict_Contains(results, number);
            failed = defined < 0 || (!defined && PySet_Add(used, number) < 0);
        }
        Py_XDECREF(vars);
    }
    if (!failed) return Py_BuildValue("NN", results, used);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "numbers_of takes a list of TracedCalls");
    Py_XDECREF(results);
    Py_XDECREF(used);
    return NULL;
}

static long long bits_of(PyObject *number) {
    int overflow;
    double value;
    long long bits;
    if (PyLong_CheckExact(number)) return PyLong_AsLongLongAndOverflow(number, &overflow);
    value = PyFloat_AS_DOUBLE(number);
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* ---- fingerprints */

static unsigned long long mixed(unsigned long long hash, unsigned long long part) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ull; /* as in splitmix64 */
    hash ^= hash >> 32;
    return hash * 0xD6E8FEB86659FD93ull ^ hash >> 29;
}

/* fingerprints(calls, kept, structure) -> a bytes object with an int64 for each call; `kept` holds the functions that are compared by address.
   structure(call): a number for the function and the arguments of a call without the numbers of its Vars */
static PyObject *fingerprints(PyObject *module, PyObject *args) {
    PyObject *calls, *kept, *python, *found;
    Py_ssize_t i, k, n;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &calls, &PyDict_Type, &kept, &python)) return NULL;
    n = PyList_GET_SIZE(calls);
    found = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(long long));
    for (i = 0; found != NULL && i < n; i++) {
        PyObject *call = Py_NewRef(PyList_GET_ITEM(calls, i));
        long long value = 0;
        int done = 0;
        if (is_simple(call)) {
            PyObject *function = SLOT(call, call_function), *operands = SLOT(call, call_args), *key = PyLong_FromVoidPtr(function);
            unsigned long long hash = mixed(1, (unsigned long long)(size_t)function);
            done = key == NULL || PyDict_SetItem(kept, key, function) < 0 ? -1 : 0;
            Py_XDECREF(key);
            hash = mixed(hash, (unsigned long long)PyLong_AsLongLong(SLOT(PyTuple_GET_ITEM(SLOT(call, call_results), 0), var_number)));
            for (k = 0; k < PyTuple_GET_SIZE(operands); k++) {
                PyObject *x = PyTuple_GET_ITEM(operands, k);
                int kind = Py_TYPE(x) == var_type ? 2 : PyFloat_CheckExact(x) ? 3 : 4;
                hash = mixed(hash + (unsigned)kind, (unsigned long long)(kind == 2 ? PyLong_AsLongLong(SLOT(x, var_number)) : bits_of(x)));
            }
            value = (long long)hash;
        } else {
            PyObject *step = step_of(call), *number = step == NULL || SLOT(step, step_structure) == Py_None ? PyObject_CallOneArg(python, call) : Py_NewRef(SLOT(step, step_structure)), *used = vars_of(call), *results = SLOT(call, call_results);
            done = number == NULL || used == NULL || !PyTuple_CheckExact(results) ? -1 : 0;
            if (done == 0 && step != NULL) {
                PyObject *key = PyLong_FromVoidPtr(SLOT(call, call_function));
                done = key == NULL || PyDict_SetItem(kept, key, SLOT(call, call_function)) < 0 ? -1 : 0;
                Py_XDECREF(key);
                Py_XSETREF(SLOT(step, step_structure), Py_NewRef(number));
            }
            if (done == 0) {
                unsigned long long hash = mixed(5, (unsigned long long)PyLong_AsLongLong(number));
                for (k = 0; k < PyList_GET_SIZE(used); k++) hash = mixed(hash, (unsigned long long)PyLong_AsLongLong(SLOT(PyList_GET_ITEM(used, k), var_number)));
                for (k = 0; k < PyTuple_GET_SIZE(results); k++) hash = mixed(hash + 6, (unsigned long long)PyLong_AsLongLong(SLOT(PyTuple_GET_ITEM(results, k), var_number)));
                value = (long long)hash;
            }
            Py_XDECREF(number);
            Py_XDECREF(used);
        }
        if (done < 0 || PyErr_Occurred()) Py_CLEAR(found);
        else memcpy(PyBytes_AS_STRING(found) + i * (Py_ssize_t)sizeof(value), &value, sizeof(value));
        Py_DECREF(call);
        if (found != NULL && PyList_GET_SIZE(calls) != n) {
            PyErr_SetString(PyExc_RuntimeError, "the list of calls changed");
            Py_CLEAR(found);
        }
    }
    return found;
}

/* ---- liveness */

/* live_calls(calls, needed, may_raise, operands_if_needed, set_flags) -> [(call, Vars among its arguments)] of the calls that the Vars in the set `needed`
   depend on, last first. may_raise: ufuncs that Python handles; operands_if_needed(call): the Vars of another call, or None if nothing needs it;
   set_flags(call): sets the flags of the step of a template. */
static PyObject *live_calls(PyObject *module, PyObject *args) {
    PyObject *calls, *needed, *may_raise, *python, *set_flags, *live;
    Py_ssize_t i, k;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!OO", &PyList_Type, &calls, &PySet_Type, &needed, &PyFrozenSet_Type, &may_raise, &python, &set_flags)) return NULL;
    live = PyList_New(0);
    for (i = PyList_GET_SIZE(calls) - 1; live != NULL && i >= 0 && i < PyList_GET_SIZE(calls); i--) {
        PyObject *call = Py_NewRef(PyList_GET_ITEM(calls, i)), *used = NULL, *pair;
        PyObject *step = step_of(call);
        int simple = is_simple(call), wanted = 0;
        if (simple && PySet_Contains(may_raise, SLOT(call, call_function)) != 0) simple = 0;
        if (simple) {
            wanted = PySet_Contains(needed, PyTuple_GET_ITEM(SLOT(call, call_results), 0));
            if (wanted > 0) used = vars_of(call);
        } else if (step != NULL) {
            PyObject *results = SLOT(call, call_results);
            if (SLOT(step, step_may_raise) == Py_None) {
                PyObject *done = PyObject_CallOneArg(set_flags, call);
                Py_XDECREF(done);
            }
            wanted = PyErr_Occurred() ? -1 : SLOT(call, call_pure) != Py_True || SLOT(call, call_kept) != Py_False || SLOT(step, step_may_raise) != Py_False;
            for (k = 0; k < PyTuple_GET_SIZE(results) && wanted == 0; k++) wanted = PySet_Contains(needed, PyTuple_GET_ITEM(results, k));
            if (wanted > 0) used = SLOT(step, step_shape_only) == Py_True ? PyList_New(0) : vars_of(call);
        } else {
            used = PyObject_CallOneArg(python, call);
            wanted = used == NULL ? -1 : used != Py_None;
            if (used != NULL && wanted && !PyList_CheckExact(used)) wanted = -1;
        }
        if (wanted > 0 && used != NULL) {
            for (k = 0; k < PyList_GET_SIZE(used) && wanted > 0; k++) {
                if (PySet_Add(needed, PyList_GET_ITEM(used, k)) < 0) wanted = -1;
            }
            pair = wanted < 0 ? NULL : PyTuple_Pack(2, call, used);
            if (pair == NULL || PyList_Append(live, pair) < 0) wanted = -1;
            Py_XDECREF(pair);
        }
        Py_XDECREF(used);
        Py_DECREF(call);
        if (wanted < 0 || PyErr_Occurred()) Py_CLEAR(live);
    }
    if (live == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "live_calls: the Vars of a call are a list");
    return live;
}

/* ---- value numbering */

/* (form of the step, operand ...) with the Var that replaces each Var; NULL with an error */
static PyObject *step_key(PyObject *step, PyObject *used, PyObject *same) {
    PyObject *key = PyTuple_New(PyList_GET_SIZE(used) + 1);
    Py_ssize_t i;
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(SLOT(step, step_form)));
    for (i = 0; i < PyList_GET_SIZE(used); i++) {
        PyObject *x = PyList_GET_ITEM(used, i), *part = PyDict_GetItemWithError(same, x);
        PyTuple_SET_ITEM(key, i + 1, Py_NewRef(part == NULL ? x : part));
    }
    if (PyErr_Occurred()) Py_CLEAR(key);
    return key;
}

/* (function, operand ...) with the Var that replaces each Var; NULL with an error */
static PyObject *value_key(PyObject *call, PyObject *same) {
    PyObject *args = SLOT(call, call_args), *key = PyTuple_New(PyTuple_GET_SIZE(args) + 1);
    Py_ssize_t i;
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(SLOT(call, call_function)));
    for (i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i), *part;
        if (Py_TYPE(x) == var_type) {
            part = PyDict_GetItemWithError(same, x);
            part = Py_NewRef(part == NULL ? x : part);
        } else {
            PyObject *bits = PyLong_FromLongLong(bits_of(x));
            part = bits == NULL ? NULL : PyTuple_Pack(2, (PyObject *)Py_TYPE(x), bits);
            Py_XDECREF(bits);
        }
        if (part == NULL || PyErr_Occurred()) {
            Py_XDECREF(part);
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, i + 1, part);
    }
    return key;
}

/* Whether an object is a pair (call, list of Vars). */
static int is_pair(PyObject *x) {
    if (PyTuple_CheckExact(x) && PyTuple_GET_SIZE(x) == 2 && PyList_CheckExact(PyTuple_GET_ITEM(x, 1))) return 1;
    PyErr_SetString(PyExc_TypeError, "expected pairs of a call and the list of its Vars");
    return 0;
}

static int all_in(PyObject *constants, PyObject *used) {
    Py_ssize_t i;
    for (i = 0; i < PyList_GET_SIZE(used); i++) {
        int found = PyDict_Contains(constants, PyList_GET_ITEM(used, i));
        if (found != 1) return found;
    }
    return 1;
}

/* merge_equal(live, constants, same, is_needless) -> (the pairs of `live` that are left, how many were merged). Equal calls are made once: `same`
   gets the Var that stands for the result of another one. is_needless(call, used): decides about other calls, and those on constants alone. */
static PyObject *merge_equal(PyObject *module, PyObject *args) {
    PyObject *live, *constants, *same, *python, *left, *seen;
    Py_ssize_t i, merged = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyList_Type, &live, &PyDict_Type, &constants, &PyDict_Type, &same, &python)) return NULL;
    left = PyList_New(0);
    seen = PyDict_New();
    for (i = 0; left != NULL && seen != NULL && i < PyList_GET_SIZE(live); i++) {
        PyObject *pair = PyList_GET_ITEM(live, i), *call, *used, *key, *previous, *step, *results;
        int needless, constant, simple, mergeable;
        Py_ssize_t k;
        if (!is_pair(pair)) {
            Py_CLEAR(left);
            break;
        }
        Py_INCREF(pair);
        call = PyTuple_GET_ITEM(pair, 0);
        used = PyTuple_GET_ITEM(pair, 1);
        step = step_of(call);
        simple = is_simple(call);
        mergeable = simple || (step != NULL && SLOT(call, call_pure) == Py_True && SLOT(step, step_shape_only) != Py_True);
        constant = mergeable ? all_in(constants, used) : 1;
        if (constant) {
            PyObject *found = constant < 0 ? NULL : PyObject_CallFunctionObjArgs(python, call, used, NULL);
            needless = found == NULL ? -1 : PyObject_IsTrue(found);
            Py_XDECREF(found);
        } else {
            results = SLOT(call, call_results);
            key = simple ? value_key(call, same) : step_key(step, used, same);
            previous = key == NULL ? NULL : PyDict_GetItemWithError(seen, key);
            needless = PyErr_Occurred() ? -1 : previous != NULL && PyTuple_GET_SIZE(previous) == PyTuple_GET_SIZE(results);
            if (needless == 0 && PyDict_SetItem(seen, key, results) < 0) needless = -1;
            for (k = 0; needless == 1 && k < PyTuple_GET_SIZE(results); k++) {
                if (PyDict_SetItem(same, PyTuple_GET_ITEM(results, k), PyTuple_GET_ITEM(previous, k)) < 0) needless = -1;
            }
            merged += needless == 1;
            Py_XDECREF(key);
        }
        if (needless == 0 && PyList_Append(left, pair) < 0) needless = -1;
        Py_DECREF(pair);
        if (needless < 0) Py_CLEAR(left);
    }
    Py_XDECREF(seen);
    if (left == NULL) return NULL;
    return Py_BuildValue("(Nn)", left, merged);
}

/* ---- arrays of the trace */

typedef struct {
    PyArray_Descr *dtype;
    int ndim;
    npy_intp dims[4], strides[4];
    PyObject *index;
} LayoutEntry;

/* the lists of TraceArrays */
typedef struct {
    PyObject *slots, *root, *offset, *layout, *origin, *variables, *index, *position, *operands, *counts, *results, *signature, *numbers, *keys, *number_keys, *templates, *entries, *same;
} Lists;

/* Borrow the index of an array's layout; NULL without an error if it is not in the table yet. */
static PyObject *layout_of(const LayoutEntry *layouts, int n, PyArrayObject *x) {
    int i, axis, ndim = PyArray_NDIM(x);
    for (i = 0; i < n; i++) {
        if (layouts[i].dtype != PyArray_DESCR(x) || layouts[i].ndim != ndim) continue;
        for (axis = 0; axis < ndim && layouts[i].dims[axis] == PyArray_DIM(x, axis) && layouts[i].strides[axis] == PyArray_STRIDE(x, axis); axis++) {}
        if (axis == ndim) return layouts[i].index;
    }
    return NULL;
}

static int append_number(PyObject *list, Py_ssize_t value) {
    PyObject *number = PyLong_FromSsize_t(value);
    int done = number == NULL ? -1 : PyList_Append(list, number);
    Py_XDECREF(number);
    return done;
}

/* Append a slot for a result: its index, owned; NULL with an error. */
static PyObject *append_slot(const Lists *lists, PyObject *var, PyObject *root, PyObject *offset, PyObject *layout, PyObject *origin) {
    PyObject *slot = PyLong_FromSsize_t(PyList_GET_SIZE(lists->root));
    if (slot == NULL || PyDict_SetItem(lists->slots, var, slot) < 0 || PyList_Append(lists->root, root == NULL ? slot : root) < 0 || PyList_Append(lists->offset, offset) < 0 || PyList_Append(lists->layout, layout) < 0 || PyList_Append(lists->origin, origin) < 0 || PyList_Append(lists->variables, var) < 0) Py_CLEAR(slot);
    return slot;
}

/* The slot of a Var: TraceArrays._slot. NULL with an error */
static PyObject *slot_of(const Lists *lists, PyObject *find_slot, PyObject *var) {
    PyObject *slot = PyDict_GetItemWithError(lists->slots, var), *original;
    if (slot != NULL || PyErr_Occurred()) return slot;
    original = PyDict_GetItemWithError(lists->same, var);
    slot = original == NULL ? NULL : PyDict_GetItemWithError(lists->slots, original);
    if (slot != NULL && PyDict_SetItem(lists->slots, var, slot) == 0) return slot;
    if (PyErr_Occurred()) return NULL;
    slot = PyObject_CallOneArg(find_slot, var);
    if (slot == NULL) return NULL;
    Py_DECREF(slot);
    return PyDict_GetItemWithError(lists->slots, var);
}

/* Append a call to the lists: 1 done, 0 nothing was changed and Python must do it, -1 error. */
static int append_call(const Lists *lists, PyObject *find_slot, Py_ssize_t at, PyObject *call, PyObject *used, PyObject *layout) {
    PyObject *args = SLOT(call, call_args), *result = PyTuple_GET_ITEM(SLOT(call, call_results), 0), *key, *numbers, *values = NULL, *signature = NULL, *pair = NULL, *previous, *slot;
    Py_ssize_t i, n = PyTuple_GET_SIZE(args), k = 0, nused = PyList_GET_SIZE(used);
    PyObject *operands[MAX_UFUNC_ARGS];
    int done = 0;
    if (nused == 0) return 0;
    for (i = 0; i < nused; i++) {
        operands[i] = slot_of(lists, find_slot, PyList_GET_ITEM(used, i));
        if (operands[i] == NULL) return PyErr_Occurred() ? -1 : 0;
    }
    key = PyTuple_New(n + 3); /* as TraceArrays._key */
    numbers = PyTuple_New(n - nused);
    if (key == NULL || numbers == NULL) goto end;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(SLOT(call, call_function)));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(Py_None));
    for (i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        if (Py_TYPE(x) == var_type) {
            PyTuple_SET_ITEM(key, i + 2, Py_NewRef(PyList_GET_ITEM(lists->layout, PyLong_AsSsize_t(operands[k++]))));
        } else {
            int zero = PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) == 0 : bits_of(x) == 0;
            PyObject *number = zero ? PyObject_Repr(x) : Py_NewRef(x);
            PyTuple_SET_ITEM(key, i + 2, Py_NewRef((PyObject *)Py_TYPE(x)));
            if (number == NULL) goto end;
            PyTuple_SET_ITEM(numbers, i - k, number);
        }
    }
    PyTuple_SET_ITEM(key, n + 2, Py_NewRef(layout));
    values = Py_XNewRef(PyDict_GetItemWithError(lists->number_keys, numbers));
    signature = PyErr_Occurred() ? NULL : Py_XNewRef(PyDict_GetItemWithError(lists->keys, key));
    if (values == NULL || signature == NULL) goto end;
    pair = PyTuple_Pack(2, signature, values);
    previous = pair == NULL ? NULL : PyDict_GetItemWithError(lists->templates, pair);
    if (previous == NULL) goto end;
    done = append_number(lists->index, PyList_GET_SIZE(lists->position)) < 0 || append_number(lists->position, at) < 0 || append_number(lists->counts, nused) < 0 ? -1 : 1;
    for (i = 0; i < nused && done == 1; i++) {
        if (PyList_Append(lists->operands, operands[i]) < 0) done = -1;
    }
    if (done == 1) {
        PyObject *zero = PyLong_FromLong(0), *origin = PyLong_FromLong(COMPUTED), *slot_tuple;
        slot = zero == NULL || origin == NULL ? NULL : append_slot(lists, result, NULL, zero, layout, origin);
        slot_tuple = slot == NULL ? NULL : PyTuple_Pack(1, slot);
        if (slot_tuple == NULL || PyList_Append(lists->results, slot_tuple) < 0 || PyList_Append(lists->signature, signature) < 0 || PyList_Append(lists->numbers, values) < 0) done = -1;
        Py_XDECREF(zero);
        Py_XDECREF(origin);
        Py_XDECREF(slot);
        Py_XDECREF(slot_tuple);
    }
end:
    Py_XDECREF(key);
    Py_XDECREF(numbers);
    Py_XDECREF(values);
    Py_XDECREF(signature);
    Py_XDECREF(pair);
    return PyErr_Occurred() ? -1 : done;
}

/* Append a call from a template by its entry: 1 done, 0 nothing was changed and Python must do it, -1 error. */
static int append_step(const Lists *lists, PyObject *find_slot, Py_ssize_t at, PyObject *call, PyObject *step, PyObject *used) {
    PyObject *key, *entry, *results = SLOT(call, call_results), *operands[MAX_STEP_OPERANDS], *slots = NULL, *layouts, *zero = NULL, *origin = NULL;
    Py_ssize_t i, k, roots[MAX_STEP_OPERANDS], n = PyList_GET_SIZE(used), m = PyTuple_GET_SIZE(results);
    int done;
    if (n == 0 || n > MAX_STEP_OPERANDS || (key = PyTuple_New(n + 1)) == NULL) return PyErr_Occurred() ? -1 : 0;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(step));
    for (i = 0; i < n; i++) {
        Py_ssize_t slot;
        operands[i] = slot_of(lists, find_slot, PyList_GET_ITEM(used, i));
        if (operands[i] == NULL) {
            Py_DECREF(key);
            return PyErr_Occurred() ? -1 : 0;
        }
        slot = PyLong_AsSsize_t(operands[i]);
        roots[i] = PyLong_AsSsize_t(PyList_GET_ITEM(lists->root, slot));
        for (k = 0; k < i && roots[k] != roots[i]; k++) {}
        if (k < i) { /* operands in the same memory: Python decides */
            Py_DECREF(key);
            return 0;
        }
        PyTuple_SET_ITEM(key, i + 1, Py_NewRef(PyList_GET_ITEM(lists->layout, slot)));
    }
    entry = PyDict_GetItemWithError(lists->entries, key);
    Py_DECREF(key);
    if (entry == NULL || !PyTuple_CheckExact(entry)) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(entry);
    done = 1;
    if (PyTuple_GET_SIZE(entry) == 1) { /* views */
        Py_ssize_t viewed = PyLong_AsSsize_t(operands[0]);
        PyObject *views = PyTuple_GET_ITEM(entry, 0), *minus_one = PyLong_FromLong(-1);
        if (minus_one == NULL || PyList_Append(lists->index, minus_one) < 0) done = -1;
        for (i = 0; i < m && done == 1; i++) {
            PyObject *view = PyTuple_GET_ITEM(views, i), *offset = PyNumber_Add(PyList_GET_ITEM(lists->offset, viewed), PyTuple_GET_ITEM(view, 0));
            PyObject *slot = offset == NULL ? NULL : append_slot(lists, PyTuple_GET_ITEM(results, i), PyList_GET_ITEM(lists->root, viewed), offset, PyTuple_GET_ITEM(view, 1), PyList_GET_ITEM(lists->origin, viewed));
            if (slot == NULL) done = -1;
            Py_XDECREF(slot);
            Py_XDECREF(offset);
        }
        Py_XDECREF(minus_one);
    } else {
        layouts = PyTuple_GET_ITEM(entry, 2);
        zero = PyLong_FromLong(0);
        origin = PyLong_FromLong(COMPUTED);
        slots = PyTuple_New(m);
        if (zero == NULL || origin == NULL || slots == NULL || append_number(lists->index, PyList_GET_SIZE(lists->position)) < 0 || append_number(lists->position, at) < 0 || append_number(lists->counts, n) < 0) done = -1;
        for (i = 0; i < n && done == 1; i++) done = PyList_Append(lists->operands, operands[i]) < 0 ? -1 : 1;
        for (i = 0; i < m && done == 1; i++) {
            PyObject *slot = append_slot(lists, PyTuple_GET_ITEM(results, i), NULL, zero, PyTuple_GET_ITEM(layouts, i), origin);
            if (slot == NULL) done = -1;
            else PyTuple_SET_ITEM(slots, i, slot);
        }
        if (done == 1 && (PyList_Append(lists->results, slots) < 0 || PyList_Append(lists->signature, PyTuple_GET_ITEM(entry, 0)) < 0 || PyList_Append(lists->numbers, PyTuple_GET_ITEM(entry, 1)) < 0)) done = -1;
    }
    Py_XDECREF(slots);
    Py_XDECREF(zero);
    Py_XDECREF(origin);
    Py_DECREF(entry);
    return done;
}

/* append_calls(lists, calls, layout_of, find_slot, append): fill the lists of TraceArrays. layout_of(array): the index of a layout; find_slot(var): a slot; append(position, call, used): another call. */
static PyObject *append_calls(PyObject *module, PyObject *args) {
    PyObject *fields, *calls, *python_layout, *find_slot, *python, **list;
    LayoutEntry layouts[MAX_LAYOUTS];
    Lists lists;
    Py_ssize_t i;
    int n = 0, failed = 0, k;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OOO", &PyTuple_Type, &fields, &PyList_Type, &calls, &python_layout, &find_slot, &python)) return NULL;
    if (PyTuple_GET_SIZE(fields) != (Py_ssize_t)(sizeof(lists) / sizeof(PyObject *))) {
        PyErr_SetString(PyExc_TypeError, "append_calls takes the lists of TraceArrays");
        return NULL;
    }
    for (list = (PyObject **)&lists, i = 0; i < PyTuple_GET_SIZE(fields); i++) {
        list[i] = PyTuple_GET_ITEM(fields, i);
        if (i == 0 || i > 12 ? !PyDict_CheckExact(list[i]) : !PyList_CheckExact(list[i])) {
            PyErr_SetString(PyExc_TypeError, "append_calls: a field is no list or no dict");
            return NULL;
        }
    }
    for (i = 0; i < PyList_GET_SIZE(calls) && !failed; i++) {
        PyObject *pair = PyList_GET_ITEM(calls, i), *call, *used, *layout = NULL, *done;
        int found = 0;
        if (!is_pair(pair)) {
            failed = 1;
            break;
        }
        Py_INCREF(pair);
        call = PyTuple_GET_ITEM(pair, 0);
        used = PyTuple_GET_ITEM(pair, 1);
        if (is_simple(call)) {
            PyObject *array = SLOT(PyTuple_GET_ITEM(SLOT(call, call_results), 0), var_array);
            if (array != NULL && PyArray_CheckExact(array) && PyArray_NDIM((PyArrayObject *)array) <= 4) {
                PyArrayObject *x = (PyArrayObject *)array;
                layout = Py_XNewRef(layout_of(layouts, n, x));
                if (layout == NULL) {
                    layout = PyObject_CallOneArg(python_layout, array);
                    if (layout != NULL && n < MAX_LAYOUTS) {
                        LayoutEntry *new = &layouts[n++];
                        new->dtype = (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(x));
                        new->ndim = PyArray_NDIM(x);
                        for (k = 0; k < new->ndim; k++) {
                            new->dims[k] = PyArray_DIM(x, k);
                            new->strides[k] = PyArray_STRIDE(x, k);
                        }
                        new->index = Py_NewRef(layout);
                    }
                }
                found = layout == NULL ? -1 : append_call(&lists, find_slot, i, call, used, layout);
                Py_XDECREF(layout);
            }
        }
        if (found == 0 && step_of(call) != NULL) found = append_step(&lists, find_slot, i, call, step_of(call), used);
        if (found == 0) {
            PyObject *position = PyLong_FromSsize_t(i);
            done = position == NULL ? NULL : PyObject_CallFunctionObjArgs(python, position, call, used, NULL);
            Py_XDECREF(position);
            if (done == NULL) found = -1;
            Py_XDECREF(done);
        }
        Py_DECREF(pair);
        failed = found < 0;
    }
    for (k = 0; k < n; k++) {
        Py_DECREF(layouts[k].dtype);
        Py_DECREF(layouts[k].index);
    }
    if (failed) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef pass_functions[] = {
    {"fingerprints", fingerprints, METH_VARARGS, "fingerprints(calls, kept, structure): a number for each call"},
    {"numbers_of", numbers_of, METH_O, "numbers_of(calls): the Vars that calls compute, by number, and the numbers of the other Vars that they read"},
    {"results_in_memory", results_in_memory, METH_VARARGS, "results_in_memory(calls, ids): the results of calls whose memory may belong to an array with an id of the set"},
    {"drop_results", drop_results, METH_VARARGS, "drop_results(calls, kept): drop the values of the results of calls, except of the Vars in a set"},
    {"live_calls", live_calls, METH_VARARGS, "live_calls(calls, needed, may_raise, operands_if_needed, set_flags): the calls that Vars depend on, last first"},
    {"merge_equal", merge_equal, METH_VARARGS, "merge_equal(live, constants, same, is_needless): drop calls that are equal to earlier ones"},
    {"append_calls", append_calls, METH_VARARGS, "append_calls(lists, calls, layout_of, find_slot, append): fill the lists of TraceArrays"},
    {NULL, NULL, 0, NULL},
};
