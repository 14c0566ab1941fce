/* Append calls to a trace in C: calls of ufuncs on traced values, as interpreters/recorder.py appends them.

   A `Traced` stands for an array of the function that `compile` traces, and a `Var` holds that array. A `TracedCall` lists the Vars and
   numbers that a NumPy function was called with, and the Vars of its results. The functions here make the same objects as
   Recorder.call and Recorder.append_call. They return NULL without an error where the Python functions must decide: for floats that Python
   code sees as Python floats, where NumPy's error state or the warning filters changed, and where the call raises. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

static PyTypeObject *traced_type, *recorder_type;
PyTypeObject *var_type, *call_type;
static Py_ssize_t traced_var, traced_level, traced_plain, traced_scalar, traced_shape, traced_dtype;
Py_ssize_t var_array, var_dtype, var_number, var_shape;
Py_ssize_t call_function, call_method, call_args, call_kwargs, call_results, call_op_name, call_code, call_lasti, call_pure, call_kept, call_step;
static Py_ssize_t state_exceptions_handled, state_filters, state_show_function, state_unchanged_value;
static PyTypeObject *state_type;
static PyObject *warnings_names, *error_variable, *is_in_try_block, *one, *add;
PyObject *method_name;
Py_ssize_t recorder_calls;

/* interned names of methods of Recorder, and of attributes of the thread's state and of backward passes */
static struct {
    PyObject *recorder, *plain, *changed, *code, *lasti, *var_of_plain, *sweep, *drop, *filters, *shown;
} attribute_names;

/* the offsets of the slots of Recorder, by attribute */
static struct {
    Py_ssize_t level, count, narrow, weak, boxed, error_state, holders, depth, with_arrays, op_name, scalars, failed, drawing, overwritten;
} slots;

/* ---- the recorder of this thread */

static int is_absent(PyObject *x) { return x == NULL || x == Py_None; }

/* Whether NumPy's error state and the warning filters are those from the beginning of the trace. */
static int has_first_error_state(const Recording *r) {
    PyObject *state = SLOT(r->recorder, slots.error_state), *current = NULL;
    int same = -1;
    if (state == NULL || Py_TYPE(state) != state_type || error_variable == Py_None) return 0;
    if (PyDict_GetItemWithError(warnings_names, attribute_names.filters) != SLOT(state, state_filters) || PyDict_GetItemWithError(warnings_names, attribute_names.shown) != SLOT(state, state_show_function)) return 0;
    Py_INCREF(state);
    if (PyContextVar_Get(error_variable, NULL, &current) == 0) same = current != NULL && current != Py_None && current == SLOT(state, state_unchanged_value);
    Py_XDECREF(current);
    if (same == 0) { /* changed() also stores the current state if it is equivalent */
        PyObject *changed = PyObject_CallMethodNoArgs(state, attribute_names.changed);
        same = changed == NULL ? -1 : changed == Py_False;
        Py_XDECREF(changed);
    }
    if (same > 0) Py_XSETREF(SLOT(state, state_exceptions_handled), Py_NewRef(Py_False));
    Py_DECREF(state);
    return same;
}

/* Whether nothing about this call needs Python's recorder: no arrays of objects, no random draws. */
static int is_simple(const Recording *r) {
    PyObject *boxed = SLOT(r->recorder, slots.boxed);
    if (boxed == NULL || !PyDict_Check(boxed) || PyDict_GET_SIZE(boxed) > 0) return 0;
    return SLOT(r->recorder, slots.drawing) == Py_False ? has_first_error_state(r) : 0;
}

static int open_recorder(Recording *r, PyObject *recorder) {
    r->location = current_frame;
    r->recorder = r->level = NULL;
    if (!PyObject_TypeCheck(recorder, recorder_type)) return 0;
    r->recorder = Py_NewRef(recorder);
    r->level = Py_XNewRef(SLOT(recorder, slots.level));
    return r->level != NULL;
}

void close_recording(Recording *r) {
    Py_CLEAR(r->recorder);
    Py_CLEAR(r->level);
}

/* Open the recorder of this thread, whose state is given: 1, 0 if the thread does not trace, -1 error. */
static int open_recorder_of(Recording *r, PyObject *state) {
    PyObject *recorder = PyDict_CheckExact(state) ? PyDict_GetItemWithError(state, attribute_names.recorder) : NULL;
    return is_absent(recorder) ? 0 : open_recorder(r, recorder);
}

int open_recording(Recording *r) {
    int found;
    *r = (Recording){NULL, NULL, current_frame};
    if (traced_type == NULL) return 0;
    found = special_mode();
    if (found >= 0) found = found == TRACES ? open_recorder_of(r, thread_state()) : 0;
    if (found > 0) {
        PyObject *op_name = SLOT(r->recorder, slots.op_name);
        found = op_name != NULL && PyUnicode_Check(op_name) && PyUnicode_GET_LENGTH(op_name) == 0 ? is_simple(r) : 0;
    }
    if (found <= 0) close_recording(r);
    return PyErr_Occurred() ? -1 : found;
}

/* ---- values */

int is_traced(PyObject *x) { return traced_type != NULL && Py_TYPE(x) == traced_type; }

/* Whether Python code sees the array of a Var as a Python float, or may do so. */
static int is_python_float(const Recording *r, PyObject *var) {
    PyObject *weak = SLOT(r->recorder, slots.weak);
    return weak == NULL || !PySet_Check(weak) || (PySet_GET_SIZE(weak) > 0 && PySet_Contains(weak, SLOT(var, var_number)) != 0);
}

/* Borrow the array of a traced value of the recording, or of one of NumPy's scalars in it; NULL for other objects and for Python floats. */
PyObject *any_array_of_traced(const Recording *r, PyObject *x) {
    PyObject *var = Py_TYPE(x) == traced_type && SLOT(x, traced_level) == r->level ? SLOT(x, traced_var) : NULL, *array;
    array = var == NULL || Py_TYPE(var) != var_type ? NULL : SLOT(var, var_array);
    return array != NULL && PyArray_CheckExact(array) && !is_python_float(r, var) ? array : NULL;
}

/* Borrow the array of a traced value of the recording; NULL also for NumPy's scalars. */
PyObject *array_of_traced(const Recording *r, PyObject *x) {
    PyObject *array = any_array_of_traced(r, x);
    return array != NULL && SLOT(x, traced_scalar) == Py_False ? array : NULL;
}

PyObject *array_of_tensor(PyObject *tensor, int mode) {
    PyObject *raw = SLOT(tensor, core.raw), *var;
    if (mode != TRACES) return raw != NULL && PyArray_CheckExact(raw) ? raw : NULL;
    var = raw == NULL || !is_traced(raw) ? NULL : SLOT(raw, traced_var);
    return var != NULL && Py_TYPE(var) == var_type && SLOT(var, var_array) != NULL && PyArray_CheckExact(SLOT(var, var_array)) ? SLOT(var, var_array) : NULL;
}

static PyObject *new_var(const Recording *r, PyObject *array) {
    PyObject *count = SLOT(r->recorder, slots.count), *number, *var;
    char kind = PyArray_DESCR((PyArrayObject *)array)->type;
    if (count == NULL || note_new_value(r->recorder, array) < 0) return NULL;
    number = PyNumber_Add(count, one);
    var = number == NULL ? NULL : var_type->tp_alloc(var_type, 0);
    if (var == NULL) {
        Py_XDECREF(number);
        return NULL;
    }
    Py_XSETREF(SLOT(r->recorder, slots.count), Py_NewRef(number));
    if (kind == 'e' || kind == 'f' || kind == 'F') Py_XSETREF(SLOT(r->recorder, slots.narrow), Py_NewRef(Py_True));
    SLOT(var, var_number) = number;
    SLOT(var, var_array) = Py_NewRef(array);
    SLOT(var, var_dtype) = Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)array));
    SLOT(var, var_shape) = PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)array), PyArray_DIMS((PyArrayObject *)array));
    if (SLOT(var, var_shape) == NULL) Py_CLEAR(var);
    return var;
}

static PyObject *new_traced(const Recording *r, PyObject *var, int plain, int scalar) {
    PyObject *traced = traced_type->tp_alloc(traced_type, 0);
    if (traced == NULL) return NULL;
    SLOT(traced, traced_var) = Py_NewRef(var);
    SLOT(traced, traced_level) = Py_NewRef(r->level);
    SLOT(traced, traced_plain) = Py_NewRef(plain ? Py_True : Py_False);
    SLOT(traced, traced_scalar) = Py_NewRef(scalar ? Py_True : Py_False);
    SLOT(traced, traced_shape) = Py_NewRef(SLOT(var, var_shape));
    SLOT(traced, traced_dtype) = Py_NewRef(SLOT(var, var_dtype));
    return traced;
}

/* Whether plain code would compute with plain arrays here, as Recorder.append_call checks: 1, 0, -1 error. */
int is_plain_call(const Recording *r, PyObject *const *operands, Py_ssize_t n) {
    PyObject *depth = SLOT(r->recorder, slots.depth), *state, *plain;
    Py_ssize_t i;
    int all = 1, any = 0, outermost = depth == NULL || !PyLong_Check(depth) || PyLong_AsLong(depth) == 0;
    if (SLOT(r->recorder, slots.with_arrays) == Py_True) return 0;
    for (i = 0; i < n; i++) {
        if (Py_TYPE(operands[i]) != traced_type) continue;
        all = all && SLOT(operands[i], traced_plain) == Py_True;
        any = 1;
    }
    if (!outermost && !(all && any)) return 0;
    state = thread_state();
    if (state == NULL || !PyDict_Check(state) || !is_absent(PyDict_GetItemWithError(state, attribute_names.sweep))) return PyErr_Occurred() ? -1 : 0;
    if (all && any) return 1;
    plain = PyObject_GetAttr(r->recorder, attribute_names.plain);
    i = plain == NULL ? -1 : PyObject_IsTrue(plain);
    Py_XDECREF(plain);
    return (int)i;
}

/* Return the operand as an argument of a TracedCall: a Var, or a number. */
static PyObject *argument(const Recording *r, PyObject *x) {
    if (Py_TYPE(x) == traced_type) return Py_NewRef(SLOT(x, traced_var));
    if (PyArray_CheckExact(x)) return PyObject_CallMethodOneArg(r->recorder, attribute_names.var_of_plain, x);
    return Py_NewRef(x);
}

PyObject *add_call(const Recording *r, PyObject *function, PyObject *method, PyObject *args, PyObject *kwargs, PyObject *op_name, PyObject *pure) {
    PyObject *calls = SLOT(r->recorder, recorder_calls), *call, *code, *kept = NULL;
    int done;
    if (args == NULL || kwargs == NULL || calls == NULL || count_calls_of(calls) < 0) {
        Py_XDECREF(args);
        Py_XDECREF(kwargs);
        return NULL;
    }
    Py_INCREF(calls);
    call = call_type->tp_alloc(call_type, 0);
    if (call == NULL) {
        Py_DECREF(args);
        Py_DECREF(kwargs);
        Py_DECREF(calls);
        return NULL;
    }
    SLOT(call, call_function) = Py_NewRef(function);
    SLOT(call, call_method) = Py_NewRef(method);
    SLOT(call, call_args) = args;
    SLOT(call, call_kwargs) = kwargs;
    SLOT(call, call_op_name) = Py_NewRef(op_name);
    SLOT(call, call_pure) = Py_NewRef(pure);
    SLOT(call, call_step) = Py_NewRef(Py_None);
    done = note_location(call, call_code, call_lasti, r->location);
    if (done == 0) {
        code = SLOT(call, call_code);
        if (code != NULL && PyCode_Check(code) && PyBytes_GET_SIZE(((PyCodeObject *)code)->co_exceptiontable) > 0) {
            kept = PyObject_CallFunctionObjArgs(is_in_try_block, code, SLOT(call, call_lasti), NULL);
        } else {
            kept = Py_NewRef(Py_False);
        }
        SLOT(call, call_kept) = kept;
        done = kept == NULL ? -1 : append_call(calls, call);
    }
    Py_DECREF(calls);
    if (done < 0) Py_CLEAR(call);
    return call;
}

PyObject *new_result(const Recording *r, PyObject *array, int plain, int scalar, int element) {
    PyObject *scalars = SLOT(r->recorder, slots.scalars), *var, *traced;
    if (scalars == NULL || !PySet_Check(scalars)) return NULL;
    Py_INCREF(scalars);
    var = new_var(r, array);
    traced = var == NULL ? NULL : new_traced(r, var, plain, scalar);
    if (traced != NULL && plain && (scalar || (element && PyArray_NDIM((PyArrayObject *)array) == 0)) && PySet_Add(scalars, SLOT(var, var_number)) < 0) Py_CLEAR(traced);
    Py_XDECREF(var);
    Py_DECREF(scalars);
    return traced;
}

PyObject *var_of_traced(PyObject *traced) { return SLOT(traced, traced_var); }

int is_scalar_traced(PyObject *traced) { return SLOT(traced, traced_scalar) == Py_True; }

void set_results(PyObject *call, PyObject *variables, PyObject *step) {
    Py_XSETREF(SLOT(call, call_results), variables);
    Py_XSETREF(SLOT(call, call_step), Py_NewRef(step));
}

/* Append a call as an object: -1 error */
static int add_ufunc_call(const Recording *r, PyObject *function, PyObject *const *args, Py_ssize_t n, PyObject *op_name, PyObject *var) {
    PyObject *tuple = PyTuple_New(n), *call, *results;
    Py_ssize_t i;
    if (tuple == NULL) return -1;
    for (i = 0; i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    results = PyTuple_Pack(1, var);
    call = results == NULL ? NULL : add_call(r, function, method_name, tuple, Py_NewRef(core.no_params), op_name, Py_True);
    if (call == NULL) {
        if (results == NULL) Py_DECREF(tuple);
        Py_XDECREF(results);
        return -1;
    }
    SLOT(call, call_results) = results;
    Py_DECREF(call);
    return 0;
}

PyObject *note_call(const Recording *r, PyObject *function, PyObject *const *operands, Py_ssize_t n, PyObject *op_name, PyObject *array, int scalar) {
    PyObject *args[MAX_CALL_ARGS], *traced = NULL, *calls = SLOT(r->recorder, recorder_calls);
    Py_ssize_t i, count;
    int plain, done = -1;
    if (n > MAX_CALL_ARGS || calls == NULL || count_calls_of(calls) < 0) return NULL;
    Py_INCREF(calls);
    for (count = 0; count < n; count++) {
        args[count] = argument(r, operands[count]);
        if (args[count] == NULL) break;
    }
    plain = count < n ? -1 : is_plain_call(r, operands, n);
    if (plain >= 0) traced = new_result(r, array, plain, scalar, 0);
    if (traced != NULL) done = append_row(calls, function, args, n, op_name, r->location, SLOT(traced, traced_var));
    if (done == 0) done = add_ufunc_call(r, function, args, n, op_name, SLOT(traced, traced_var));
    if (done < 0) Py_CLEAR(traced);
    for (i = 0; i < count; i++) Py_DECREF(args[i]);
    Py_DECREF(calls);
    return traced;
}

Py_ssize_t count_calls(const Recording *r) {
    PyObject *calls = SLOT(r->recorder, recorder_calls);
    return calls == NULL ? -1 : count_calls_of(calls);
}

void drop_calls(const Recording *r, Py_ssize_t begin) {
    PyObject *number = count_calls(r) > begin ? PyLong_FromSsize_t(begin) : NULL, *dropped = number == NULL ? NULL : PyObject_CallMethodOneArg(r->recorder, attribute_names.drop, number);
    Py_XDECREF(number);
    Py_XDECREF(dropped);
}

Py_ssize_t trace_length(void) {
    Recording r;
    Py_ssize_t n = -1;
    if (open_recording(&r) > 0) {
        n = count_calls(&r);
        close_recording(&r);
    }
    return n;
}

void truncate_trace(Py_ssize_t begin) {
    Recording r;
    if (open_recording(&r) > 0) {
        drop_calls(&r, begin);
        close_recording(&r);
    }
}

int note_holder(const Recording *r, PyObject *tensor) {
    PyObject *holders = SLOT(r->recorder, slots.holders), *ref = PyWeakref_NewRef(tensor, NULL);
    int done = ref == NULL || holders == NULL || !PyList_CheckExact(holders) ? -1 : PyList_Append(holders, ref);
    Py_XDECREF(ref);
    if (done < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the recorder's list of tensors was replaced");
    return done;
}

int drop_dead_references(PyObject *recorder) {
    PyObject *holders = SLOT(recorder, slots.holders);
    Py_ssize_t i, n = holders == NULL || !PyList_CheckExact(holders) ? 0 : PyList_GET_SIZE(holders), kept = 0;
    for (i = 0; i < n; i++) {
        PyObject *ref = PyList_GET_ITEM(holders, i);
        if (PyWeakref_CheckRef(ref) && referent(ref) == Py_None) continue;
        if (i != kept) {
            PyList_SET_ITEM(holders, i, PyList_GET_ITEM(holders, kept));
            PyList_SET_ITEM(holders, kept, ref);
        }
        kept++;
    }
    return n == kept ? 0 : PyList_SetSlice(holders, kept, n, NULL);
}

void clear_failed(const Recording *r) { Py_XSETREF(SLOT(r->recorder, slots.failed), Py_NewRef(Py_None)); }

/* ---- ufuncs */

enum { FUNCTIONS = 64 };
static Function functions[FUNCTIONS]; /* a hash table of ufuncs whose kernels were looked up */

/* Borrow the kernels of a ufunc; NULL if it has none, or with an error. */
static const Function *kernels_of(PyObject *ufunc, int nin) {
    Function *function = &functions[((size_t)ufunc >> 5) % FUNCTIONS], old = *function;
    if (function->value != ufunc) {
        read_function(function, ufunc, nin);
        clear_function(&old);
    }
    return function->ufunc == NULL || PyErr_Occurred() ? NULL : function;
}

/* Call the kernel of a ufunc on traced arrays of one dtype, float or double, and numbers, as eager code does. NULL without an error: call NumPy. */
static PyObject *run_kernel(const Recording *r, PyObject *ufunc, PyObject *const *operands, Py_ssize_t n) {
    PyObject *arrays[2];
    const Function *function;
    Py_ssize_t i;
    int kind = -1;
    if (n > 2) return NULL;
    for (i = 0; i < n; i++) {
        int own = -1;
        arrays[i] = is_number(operands[i]) ? operands[i] : any_array_of_traced(r, operands[i]);
        if (arrays[i] == NULL || (arrays[i] != operands[i] && ((own = kind_of(arrays[i])) < 0 || (kind >= 0 && kind != own)))) return NULL;
        if (own >= 0) kind = own;
    }
    if (kind < 0) return NULL;
    function = kernels_of(ufunc, (int)n);
    return function == NULL || function->kernels[kind].fn == NULL ? NULL : apply_function(function, (int)n, arrays, 0);
}

/* Call a ufunc and append the call. NULL without an error where Recorder.call must do it. */
PyObject *call_traced_ufunc(const Recording *r, PyObject *function, PyObject *const *operands, Py_ssize_t n, PyObject *op_name) {
    PyUFuncObject *ufunc = (PyUFuncObject *)function;
    PyObject *raw_operands[3], *out, *traced = NULL;
    Py_ssize_t i;
    int scalar;
    if (n < 1 || n > 3 || ufunc->nin != (int)n || ufunc->nout != 1) return NULL;
    clear_failed(r);
    out = run_kernel(r, function, operands, n);
    if (out != NULL) {
        traced = note_call(r, function, operands, n, op_name, out, PyArray_NDIM((PyArrayObject *)out) == 0); /* NumPy returns a scalar for 0-d operands */
        Py_DECREF(out);
        return traced;
    }
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear(); /* the call below raises it again */
    for (i = 0; i < n; i++) {
        PyObject *x = operands[i], *array;
        raw_operands[i] = NULL;
        if (Py_TYPE(x) == traced_type) {
            array = any_array_of_traced(r, x);
            if (array == NULL || PyArray_DESCR((PyArrayObject *)array)->kind == 'O') break;
            raw_operands[i] = SLOT(x, traced_scalar) == Py_True ? PyArray_Scalar(PyArray_DATA((PyArrayObject *)array), PyArray_DESCR((PyArrayObject *)array), array) : Py_NewRef(array);
        } else if (is_number(x) || PyComplex_CheckExact(x) || PyBool_Check(x) || (PyArray_CheckExact(x) && PyArray_DESCR((PyArrayObject *)x)->kind != 'O')) {
            raw_operands[i] = Py_NewRef(x);
        }
        if (raw_operands[i] == NULL) break;
    }
    if (i == n) {
        out = PyObject_Vectorcall(function, raw_operands, (size_t)n, NULL);
        if (out == NULL && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); /* Recorder.call calls it again, and handles the exception */
        if (out != NULL && (PyArray_CheckExact(out) || PyArray_CheckScalar(out))) {
            scalar = !PyArray_CheckExact(out);
            if (scalar) Py_SETREF(out, PyArray_FromScalar(out, NULL));
            if (out != NULL) traced = note_call(r, function, operands, n, op_name, out, scalar);
        }
        Py_XDECREF(out);
    }
    while (i-- > 0) Py_DECREF(raw_operands[i]);
    return traced;
}

PyObject *trace_program(const Recording *r, const Program *program, PyObject **values, PyObject *op_name) {
    PyObject *result = NULL;
    int k, done;
    for (k = 0; k < program->nsteps; k++) {
        if (program->steps[k].ufunc == NULL || program->steps[k].step_kind != ELEMENTS || program->steps[k].nin > 3) return NULL;
    }
    for (k = 0; k < program->nconstants; k++) values[INPUTS + k] = program->numbers[k];
    for (done = 0; done < program->nsteps; done++) {
        const Step *step = &program->steps[done];
        PyObject *operands[3];
        for (k = 0; k < step->nin; k++) operands[k] = values[step->operands[k]];
        values[INPUTS + CONSTANTS + done] = call_traced_ufunc(r, step->ufunc, operands, step->nin, op_name);
        if (values[INPUTS + CONSTANTS + done] == NULL) break;
    }
    if (done == program->nsteps && is_traced(values[program->result])) result = Py_NewRef(values[program->result]);
    while (done-- > 0) Py_DECREF(values[INPUTS + CONSTANTS + done]);
    return result;
}

PyObject *current_op_name(const Recording *r) { return Py_XNewRef(SLOT(r->recorder, slots.op_name)); }

PyObject *as_tensor_data(const Recording *r, PyObject *traced) {
    PyObject *array;
    if (SLOT(traced, traced_scalar) == Py_False) return traced;
    if (Py_REFCNT(traced) == 1) {
        Py_SETREF(SLOT(traced, traced_scalar), Py_NewRef(Py_False));
        return traced;
    }
    array = new_traced(r, SLOT(traced, traced_var), SLOT(traced, traced_plain) == Py_True, 0);
    Py_DECREF(traced);
    return array;
}

static int is_real(PyObject *x) {
    PyObject *dtype = Py_TYPE(x) == traced_type ? SLOT(x, traced_dtype) : NULL;
    return dtype != NULL && (dtype == (PyObject *)core.dtypes[0] || dtype == (PyObject *)core.dtypes[1]);
}

int locate(Recording *r, PyObject *pass) {
    r->location.code = PyObject_GetAttr(pass, attribute_names.code);
    r->location.lasti = r->location.code == NULL ? NULL : PyObject_GetAttr(pass, attribute_names.lasti);
    return r->location.lasti == NULL ? -1 : 1;
}

void take_location(Recording *r, PyObject *call) {
    if (SLOT(call, call_code) == NULL || SLOT(call, call_lasti) == NULL) return;
    r->location.code = Py_NewRef(SLOT(call, call_code));
    r->location.lasti = Py_NewRef(SLOT(call, call_lasti));
}

int keep_location(Recording *r, PyObject *code, long lasti) {
    PyObject *number = PyLong_FromLong(lasti);
    if (number == NULL) return -1;
    r->location.code = Py_NewRef(code);
    r->location.lasti = number;
    return 0;
}

void unlocate(Recording *r) {
    Py_CLEAR(r->location.code);
    Py_CLEAR(r->location.lasti);
}

PyObject *sum_traced(PyObject *x, PyObject *y, PyObject *pass) {
    PyObject *sum = NULL, *op_name;
    Recording r;
    if (!core.enabled || !is_real(x) || !is_real(y) || open_recording(&r) <= 0) return NULL;
    op_name = current_op_name(&r);
    if (op_name != NULL && locate(&r, pass) > 0) {
        PyObject *both[] = {x, y};
        sum = call_traced_ufunc(&r, add, both, 2, op_name);
    }
    Py_XDECREF(op_name);
    if (sum != NULL) sum = as_tensor_data(&r, sum);
    unlocate(&r);
    close_recording(&r);
    return sum;
}

int trace_rules(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject *pass, PyObject **grads) {
    PyObject *results = NULL, *overwritten;
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    Recording r;
    int done, traced;
    if (!core.enabled || !PyTuple_CheckExact(saved) || n > MAX_RULE_OPERANDS) return 0;
    done = open_recording(&r);
    if (done <= 0) return done;
    overwritten = SLOT(r.recorder, slots.overwritten);
    if (overwritten == NULL || !PyDict_CheckExact(overwritten) || (PyDict_GET_SIZE(overwritten) > 0 && PyTuple_GET_SIZE(saved) > 0)) { /* CapturedArrays.check_saved */
        close_recording(&r);
        return PyErr_Occurred() ? -1 : 0;
    }
    traced = is_traced(g);
    for (i = 0; i < PyTuple_GET_SIZE(saved) && !traced; i++) traced = is_traced(PyTuple_GET_ITEM(saved, i));
    if (!traced) { /* constants: the rules compute arrays, and append no calls */
        close_recording(&r);
        done = run_rule(node, g, saved, edges, grads);
        for (i = 0; i < n && done > 0; i++) {
            if (grads[i] != NULL && grads[i] != g && PyArray_NDIM((PyArrayObject *)grads[i]) == 0 && PyArray_BASE((PyArrayObject *)grads[i]) == NULL) grads[i] = PyArray_Return((PyArrayObject *)grads[i]); /* NumPy's scalar, as the rule returns it in Python */
        }
        return done;
    }
    done = locate(&r, pass);
    if (done > 0) done = trace_op_rules(&r, node, g, saved, edges, grads);
    if (done == 0 && !PyErr_Occurred()) {
        for (i = 0; i < n; i++) Py_CLEAR(grads[i]);
        results = template_of_rule(&r, node, g, saved, edges);
        done = PyErr_Occurred() ? -1 : results != NULL && PyTuple_CheckExact(results) && PyTuple_GET_SIZE(results) == n;
    }
    for (i = 0; i < n && results != NULL && done > 0; i++) {
        PyObject *grad = PyTuple_GET_ITEM(results, i);
        grads[i] = grad == Py_None ? NULL : Py_NewRef(grad);
    }
    Py_XDECREF(results);
    unlocate(&r);
    close_recording(&r);
    return done;
}

/* trace_sum(x, y, pass) -> the sum of two cotangents, or None where Python must compute it */
static PyObject *trace_sum(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *sum;
    (void)module;
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "trace_sum takes (x, y, pass)");
        return NULL;
    }
    sum = sum_traced(args[0], args[1], args[2]);
    return sum == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : sum;
}

/* trace_ufunc(recorder, ufunc, operands, op_name) -> Traced, or NotImplemented where Python must do it */
static PyObject *trace_ufunc(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Recording r;
    PyObject *traced = NULL;
    int found;
    (void)module;
    if (nargs != 4 || Py_TYPE(args[1]) != &PyUFunc_Type || !PyTuple_CheckExact(args[2]) || !PyUnicode_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "trace_ufunc takes (recorder, ufunc, operands, row)");
        return NULL;
    }
    found = open_recorder(&r, args[0]);
    if (found > 0 && (found = has_first_error_state(&r)) > 0) traced = call_traced_ufunc(&r, args[1], &PyTuple_GET_ITEM(args[2], 0), PyTuple_GET_SIZE(args[2]), args[3]);
    close_recording(&r);
    if (traced == NULL && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return traced;
}

/* (python, ufunc, reflected): an operator of Traced */
static PyObject *call_operator(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *ufunc = PyTuple_GET_ITEM(self, 1), *traced = NULL, *operands[2], *op_name;
    int reflected = PyTuple_GET_ITEM(self, 2) == Py_True;
    Recording r;
    if (nargs == ((PyUFuncObject *)ufunc)->nin && is_real(args[0]) && (nargs == 1 || is_real(args[1]) || is_number(args[1]))) {
        PyObject *state = thread_state();
        int found = state == NULL ? -1 : open_recorder_of(&r, state);
        operands[reflected] = args[0];
        if (nargs == 2) operands[!reflected] = args[1];
        if (found > 0) {
            int simple = r.level == SLOT(args[0], traced_level);
            op_name = current_op_name(&r);
            if (simple && op_name != NULL && has_first_error_state(&r) > 0) traced = call_traced_ufunc(&r, ufunc, operands, nargs, op_name);
            Py_XDECREF(op_name);
            close_recording(&r);
        }
    }
    if (traced != NULL || PyErr_Occurred()) return traced;
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 0), args, (size_t)nargs, NULL);
}

static PyMethodDef operator_method = {"traced_operator", (PyCFunction)(void (*)(void))call_operator, METH_FASTCALL, NULL};

/* traced_operator(python, ufunc, reflected) -> a method for Traced: call the ufunc in C where that is simple, else the Python function */
static PyObject *traced_operator(PyObject *module, PyObject *args) {
    PyObject *python, *ufunc, *self, *function, *method;
    int reflected;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!p", &python, &PyUFunc_Type, &ufunc, &reflected)) return NULL;
    self = PyTuple_Pack(3, python, ufunc, reflected ? Py_True : Py_False);
    function = self == NULL ? NULL : PyCFunction_New(&operator_method, self);
    method = function == NULL ? NULL : PyInstanceMethod_New(function);
    Py_XDECREF(self);
    Py_XDECREF(function);
    return method;
}

static int is_recorder(PyObject *x) {
    if (recorder_type != NULL && PyObject_TypeCheck(x, recorder_type)) return 1;
    PyErr_SetString(PyExc_TypeError, "expected a recorder");
    return 0;
}

/* pack_calls(recorder): see call_list.c */
static PyObject *pack_recorded_calls(PyObject *module, PyObject *recorder) {
    (void)module;
    return !is_recorder(recorder) || pack_calls(recorder) < 0 ? NULL : Py_NewRef(Py_None);
}

/* note_new_value(recorder, array): see call_list.c */
static PyObject *note_recorded_value(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2 || !PyArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "note_new_value takes (recorder, array)");
        return NULL;
    }
    return !is_recorder(args[0]) || note_new_value(args[0], args[1]) < 0 ? NULL : Py_NewRef(Py_None);
}

/* set_pack_sizes(calls, bytes) -> the sizes before. Pack calls each time after so many were appended, or so many bytes allocated. */
static PyObject *set_sizes_of_packs(PyObject *module, PyObject *args) {
    long long calls, bytes;
    PackSizes before;
    (void)module;
    if (!PyArg_ParseTuple(args, "LL", &calls, &bytes)) return NULL;
    before = set_pack_sizes((PackSizes){calls, bytes});
    return Py_BuildValue("LL", (long long)before.calls, (long long)before.bytes);
}

/* ---- connect */

static int intern_attribute_names(void) {
    static const struct {
        PyObject **name;
        const char *text;
    } all[] = {{&attribute_names.recorder, "recorder"}, {&attribute_names.plain, "plain"}, {&attribute_names.code, "code"}, {&attribute_names.lasti, "lasti"}, {&attribute_names.changed, "changed"}, {&attribute_names.var_of_plain, "var_of_plain"}, {&attribute_names.sweep, "sweep"}, {&attribute_names.drop, "drop"}, {&attribute_names.filters, "filters"}, {&attribute_names.shown, "_showwarnmsg_impl"}, {&method_name, "__call__"}};
    size_t i;
    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if ((*all[i].name = PyUnicode_InternFromString(all[i].text)) == NULL) return -1;
    }
    return 0;
}

/* connect_trace(Recorder, Traced, Var, TracedCall, ErrorState, vars(warnings), error_variable, is_in_try_block, np.add): set the classes and functions of a trace */
static PyObject *connect_trace(PyObject *module, PyObject *args) {
    static const SlotOffset of_traced[] = {{"var", &traced_var}, {"level", &traced_level}, {"plain", &traced_plain}, {"scalar", &traced_scalar}, {"shape", &traced_shape}, {"dtype", &traced_dtype}, {NULL, NULL}};
    static const SlotOffset of_var[] = {{"array", &var_array}, {"dtype", &var_dtype}, {"number", &var_number}, {"shape", &var_shape}, {NULL, NULL}};
    static const SlotOffset of_call[] = {{"function", &call_function}, {"method", &call_method}, {"args", &call_args}, {"kwargs", &call_kwargs}, {"results", &call_results}, {"op_name", &call_op_name}, {"code", &call_code}, {"lasti", &call_lasti}, {"pure", &call_pure}, {"kept", &call_kept}, {"step", &call_step}, {NULL, NULL}};
    static const SlotOffset of_state[] = {{"exceptions_handled", &state_exceptions_handled}, {"_filters", &state_filters}, {"_show_function", &state_show_function}, {"_unchanged_value", &state_unchanged_value}, {NULL, NULL}};
    static const SlotOffset of_recorder[] = {{"level", &slots.level}, {"calls", &recorder_calls}, {"_count", &slots.count}, {"narrow", &slots.narrow}, {"weak", &slots.weak}, {"boxed", &slots.boxed}, {"_error_state", &slots.error_state}, {"holders", &slots.holders}, {"depth", &slots.depth}, {"with_arrays", &slots.with_arrays}, {"_op_name", &slots.op_name}, {"scalars", &slots.scalars}, {"failed", &slots.failed}, {"_drawing", &slots.drawing}, {"overwritten", &slots.overwritten}, {NULL, NULL}};
    PyObject *recorder, *traced, *var, *call, *state, *names, *variable, *tried, *sum;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!OOO!", &PyType_Type, &recorder, &PyType_Type, &traced, &PyType_Type, &var, &PyType_Type, &call, &PyType_Type, &state, &PyDict_Type, &names, &variable, &tried, &PyUFunc_Type, &sum)) return NULL;
    if (traced_type != NULL || (variable != Py_None && !PyContextVar_CheckExact(variable))) {
        PyErr_SetString(PyExc_TypeError, "connect_trace takes classes, names, a context variable and a function, once");
        return NULL;
    }
    one = PyLong_FromLong(1);
    if (one == NULL || intern_attribute_names() < 0 || find_slots((PyTypeObject *)traced, of_traced) < 0 || find_slots((PyTypeObject *)var, of_var) < 0 || find_slots((PyTypeObject *)call, of_call) < 0 || find_slots((PyTypeObject *)state, of_state) < 0 || find_slots((PyTypeObject *)recorder, of_recorder) < 0) return NULL;
    warnings_names = Py_NewRef(names);
    error_variable = Py_NewRef(variable);
    is_in_try_block = Py_NewRef(tried);
    add = Py_NewRef(sum);
    var_type = (PyTypeObject *)Py_NewRef(var);
    call_type = (PyTypeObject *)Py_NewRef(call);
    state_type = (PyTypeObject *)Py_NewRef(state);
    recorder_type = (PyTypeObject *)Py_NewRef(recorder);
    traced_type = (PyTypeObject *)Py_NewRef(traced);
    Py_RETURN_NONE;
}

PyMethodDef trace_functions[] = {
    {"connect_trace", connect_trace, METH_VARARGS, "connect_trace(Recorder, Traced, Var, TracedCall, ErrorState, names, variable, is_in_try_block, add): set the classes and functions of a trace"},
    {"trace_ufunc", (PyCFunction)(void (*)(void))trace_ufunc, METH_FASTCALL, "trace_ufunc(recorder, ufunc, operands, op_name): call a ufunc on traced values and append the call"},
    {"pack_calls", pack_recorded_calls, METH_O, "pack_calls(recorder): pack the calls of a trace at its end, if it is long"},
    {"set_pack_sizes", set_sizes_of_packs, METH_VARARGS, "set_pack_sizes(calls, bytes) -> the sizes before: pack calls each time after so many were appended, or so many bytes allocated"},
    {"note_new_value", (PyCFunction)(void (*)(void))note_recorded_value, METH_FASTCALL, "note_new_value(recorder, array): count the memory of a new value, and pack calls after some megabytes or thousands of calls"},
    {"trace_sum", (PyCFunction)(void (*)(void))trace_sum, METH_FASTCALL, "trace_sum(x, y, pass): add two cotangents"},
    {"traced_operator", traced_operator, METH_VARARGS, "traced_operator(python, ufunc, reflected): a binary operator of Traced"},
    {NULL, NULL, 0, NULL},
};
