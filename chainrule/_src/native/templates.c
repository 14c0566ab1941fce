/* Append the NumPy calls of a primitive's value or VJP rule to a trace, from a template.

   interpreters/templates.py makes a template from the calls that Recorder appended when it ran the value or the rule on traced values. Later
   calls with the same key compute and append the same NumPy calls here. The calls depend only on the key of a template:
   the primitive, its parameters, and the shape, strides and dtype of each traced operand. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

enum { MAX_KEY = 2048, MAX_ITEMS = 128, MAX_DEPTH = 8 };
enum { VARS, ARRAYS, ARRAYS_ONLY }; /* fill(): Vars; arrays and NumPy scalars; arrays also for scalars */
enum { STEP_CALL, STEP_PARAMS, STEP_FUNCTION, STEP_METHOD, STEP_ARGS, STEP_KWARGS, STEP_OP_NAME, STEP_PURE, STEP_RESULTS, STEP_ELEMENTS, STEP_ARRAYS_ONLY, STEP_USED, STEP_LAYOUTS, STEP_MEMORY };

static PyTypeObject *item_type; /* a reference to an input or to a result of an earlier step */
PyTypeObject *step_type;
static Py_ssize_t item_index, step_fields;
static PyObject *templates, *without_overlap, *str_drop, *str_plain_var, *str_module;

/* ---- keys */

typedef struct {
    unsigned char bytes[MAX_KEY];
    Py_ssize_t length;
    PyObject *items[MAX_ITEMS]; /* borrowed: the traced values, in order */
    int nitems;
    const Recording *recording;
} Key;

static int add_bytes(Key *key, const void *bytes, size_t n) {
    if (key->length + (Py_ssize_t)n > MAX_KEY) return 0;
    if (n > 0) memcpy(key->bytes + key->length, bytes, n); /* a 0-d array may have no dimensions to copy */
    key->length += (Py_ssize_t)n;
    return 1;
}

static int add_pointer(Key *key, const void *pointer) { return add_bytes(key, &pointer, sizeof pointer); }

static int add_dtype(Key *key, PyArray_Descr *dtype) {
    PyArray_Descr *singleton = dtype->type_num < NPY_OBJECT ? PyArray_DescrFromType(dtype->type_num) : NULL;
    int same = singleton == dtype;
    Py_XDECREF(singleton);
    return same && add_pointer(key, dtype);
}

/* An array: its index among the items if it occurred before, else its memory layout. */
static int add_traced(Key *key, PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)any_array_of_traced(key->recording, x);
    int i, ndim, writeable, scalar = is_scalar_traced(x);
    if (array == NULL || key->nitems == MAX_ITEMS) return 0;
    for (i = 0; i < key->nitems && var_of_traced(key->items[i]) != var_of_traced(x); i++) continue;
    ndim = PyArray_NDIM(array);
    writeable = PyArray_ISWRITEABLE(array) != 0;
    key->items[key->nitems++] = x;
    if (!add_bytes(key, &i, sizeof i) || !add_bytes(key, &scalar, sizeof scalar)) return 0;
    if (i < key->nitems - 1) return 1;
    return add_bytes(key, &ndim, sizeof ndim) && add_bytes(key, PyArray_DIMS(array), sizeof(npy_intp) * (size_t)ndim) && add_bytes(key, PyArray_STRIDES(array), sizeof(npy_intp) * (size_t)ndim) && PyArray_ISALIGNED(array) && add_bytes(key, &writeable, sizeof writeable) && add_dtype(key, PyArray_DESCR(array));
}

/* Add an operand or a parameter. 0 where calls may depend on more than its key. */
static int add_to_key(Key *key, PyObject *x, int depth) {
    PyTypeObject *type = Py_TYPE(x);
    Py_ssize_t i, n;
    if (depth == MAX_DEPTH || !add_pointer(key, type)) return 0;
    if (is_traced(x)) return add_traced(key, x);
    if (x == Py_None || x == Py_Ellipsis || PyBool_Check(x)) return add_pointer(key, x);
    if (PyLong_CheckExact(x)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(x, &overflow);
        return !overflow && add_bytes(key, &number, sizeof number);
    }
    if (PyFloat_CheckExact(x)) {
        double number = PyFloat_AS_DOUBLE(x);
        return add_bytes(key, &number, sizeof number);
    }
    if (PyUnicode_CheckExact(x)) {
        const char *text = PyUnicode_AsUTF8AndSize(x, &n);
        if (text == NULL) PyErr_Clear();
        return text != NULL && add_bytes(key, &n, sizeof n) && add_bytes(key, text, (size_t)n);
    }
    if (PyArray_DescrCheck(x)) return add_dtype(key, (PyArray_Descr *)x);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        n = PySequence_Fast_GET_SIZE(x);
        if (!add_bytes(key, &n, sizeof n)) return 0;
        for (i = 0; i < n; i++) {
            if (!add_to_key(key, PySequence_Fast_GET_ITEM(x, i), depth + 1)) return 0;
        }
        return 1;
    }
    if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        return add_to_key(key, slice->start, depth + 1) && add_to_key(key, slice->stop, depth + 1) && add_to_key(key, slice->step, depth + 1);
    }
    if (PyDict_CheckExact(x)) {
        PyObject *name, *value;
        n = PyDict_GET_SIZE(x);
        if (!add_bytes(key, &n, sizeof n)) return 0;
        for (i = 0; PyDict_Next(x, &i, &name, &value);) {
            if (!add_to_key(key, name, depth + 1) || !add_to_key(key, value, depth + 1)) return 0;
        }
        return 1;
    }
    return 0;
}

/* ---- steps */

/* Return a new object like `spec` with each TemplateItem replaced. */
static PyObject *fill(const Recording *r, PyObject *spec, PyObject *const *items, int as) {
    Py_ssize_t i, n;
    if (Py_TYPE(spec) == item_type) {
        PyObject *x = items[PyLong_AsSsize_t(SLOT(spec, item_index))], *array;
        if (as == VARS) return Py_NewRef(var_of_traced(x));
        array = any_array_of_traced(r, x);
        if (array == NULL) return NULL;
        return as == ARRAYS && is_scalar_traced(x) ? PyArray_Scalar(PyArray_DATA((PyArrayObject *)array), PyArray_DESCR((PyArrayObject *)array), array) : Py_NewRef(array);
    }
    if (PyArray_CheckExact(spec)) return as == VARS ? PyObject_CallMethodOneArg(r->recorder, str_plain_var, spec) : Py_NewRef(spec);
    if (PyTuple_CheckExact(spec) || PyList_CheckExact(spec)) {
        int is_tuple = PyTuple_CheckExact(spec);
        PyObject *filled;
        n = PySequence_Fast_GET_SIZE(spec);
        filled = is_tuple ? PyTuple_New(n) : PyList_New(n);
        for (i = 0; i < n && filled != NULL; i++) {
            PyObject *part = fill(r, PySequence_Fast_GET_ITEM(spec, i), items, as);
            if (part == NULL) Py_CLEAR(filled);
            else if (is_tuple) PyTuple_SET_ITEM(filled, i, part);
            else PyList_SET_ITEM(filled, i, part);
        }
        return filled;
    }
    if (PyDict_CheckExact(spec)) {
        PyObject *name, *value, *part, *filled = PyDict_GET_SIZE(spec) == 0 ? Py_NewRef(core.no_params) : PyDict_New(); /* calls without keyword arguments share a dict */
        for (i = 0; filled != NULL && PyDict_Next(spec, &i, &name, &value);) {
            part = fill(r, value, items, as);
            if (part == NULL || PyDict_SetItem(filled, name, part) < 0) Py_CLEAR(filled);
            Py_XDECREF(part);
        }
        return filled;
    }
    return Py_NewRef(spec);
}

static PyObject *field(PyObject *step, int i) { return PyTuple_GET_ITEM(SLOT(step, step_fields), i); }

/* Whether an array has the layout that the result of this step had when the template was made. Later steps may depend on it. */
static int is_as_recorded(PyArrayObject *x, PyObject *layout) {
    size_t n = sizeof(npy_intp) * (size_t)PyArray_NDIM(x);
    const char *expected = PyBytes_AS_STRING(PyTuple_GET_ITEM(layout, 1));
    return PyTuple_GET_ITEM(layout, 0) == (PyObject *)PyArray_DESCR(x) && PyBytes_GET_SIZE(PyTuple_GET_ITEM(layout, 1)) == (Py_ssize_t)(2 * n) && (n == 0 || (memcmp(expected, PyArray_DIMS(x), n) == 0 && memcmp(expected + n, PyArray_STRIDES(x), n) == 0));
}

/* Return the result of a step that is a view of its operand, or a copy of one element, without calling its function. NULL with an error */
static PyObject *part_of_operand(const Recording *r, PyObject *step, PyObject *const *items) {
    PyObject *memory = field(step, STEP_MEMORY), *layout = PyTuple_GET_ITEM(field(step, STEP_LAYOUTS), 0), *sizes = PyTuple_GET_ITEM(layout, 1);
    PyObject *x = any_array_of_traced(r, items[PyLong_AsSsize_t(PyTuple_GET_ITEM(field(step, STEP_USED), 0))]), *part;
    int copies = PyTuple_GET_ITEM(memory, 1) == Py_True, ndim = (int)(PyBytes_GET_SIZE(sizes) / (Py_ssize_t)(2 * sizeof(npy_intp)));
    npy_intp dims[2 * NPY_MAXDIMS];
    if (x == NULL) return NULL;
    memcpy(dims, PyBytes_AS_STRING(sizes), (size_t)PyBytes_GET_SIZE(sizes));
    part = view_of_memory(x, PyArray_BYTES((PyArrayObject *)x) + PyLong_AsSsize_t(PyTuple_GET_ITEM(memory, 0)), ndim, dims, dims + ndim, PyTuple_GET_ITEM(memory, 2) == Py_True ? NPY_ARRAY_WRITEABLE : 0);
    if (part != NULL && copies) Py_SETREF(part, PyArray_NewCopy((PyArrayObject *)part, NPY_CORDER));
    return part;
}

/* Call the function of a step. Return a tuple of its results; NULL where Python must decide. */
static PyObject *compute_step(const Recording *r, PyObject *step, PyObject *const *items) {
    int as = field(step, STEP_ARRAYS_ONLY) == Py_True ? ARRAYS_ONLY : ARRAYS;
    PyObject *args = fill(r, field(step, STEP_ARGS), items, as), *kwargs = NULL, *out = NULL, *parts = NULL;
    Py_ssize_t i, n = PyLong_AsSsize_t(field(step, STEP_RESULTS));
    int is_ufunc = Py_TYPE(field(step, STEP_FUNCTION)) == &PyUFunc_Type;
    if (args != NULL && PyDict_GET_SIZE(field(step, STEP_KWARGS)) > 0 && (kwargs = fill(r, field(step, STEP_KWARGS), items, ARRAYS)) == NULL) Py_CLEAR(args);
    else if (args != NULL && PyDict_GET_SIZE(field(step, STEP_PARAMS)) > 0) kwargs = Py_NewRef(field(step, STEP_PARAMS)); /* of a primitive's value function */
    clear_failed(r);
    if (args != NULL) out = PyObject_Call(field(step, STEP_CALL), args, kwargs);
    if (out != NULL && (PyTuple_Check(out) || PyList_Check(out))) parts = PySequence_Tuple(out);
    else if (out != NULL) parts = PyTuple_Pack(1, out);
    if (parts != NULL && PyTuple_GET_SIZE(parts) != n) Py_CLEAR(parts);
    for (i = 0; parts != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(parts, i), *copy;
        int k;
        if (PyArray_CheckScalar(part)) continue;
        if (!PyArray_CheckExact(part)) {
            Py_CLEAR(parts);
            break;
        }
        if (n == 1) { /* a result that is an operand itself is not a new value */
            Py_ssize_t at;
            for (at = 0; at < PyTuple_GET_SIZE(args) && PyTuple_GET_ITEM(args, at) != part; at++) continue;
            if (at < PyTuple_GET_SIZE(args)) {
                Py_CLEAR(parts);
                break;
            }
        }
        for (k = 0; k < PyArray_NDIM((PyArrayObject *)part) && (PyArray_STRIDES((PyArrayObject *)part)[k] != 0 || PyArray_DIMS((PyArrayObject *)part)[k] == 1); k++) continue;
        if (is_ufunc || k == PyArray_NDIM((PyArrayObject *)part)) continue;
        copy = PyObject_CallFunctionObjArgs(without_overlap, part, args, NULL);
        if (copy == NULL) Py_CLEAR(parts);
        else {
            PyTuple_SET_ITEM(parts, i, copy);
            Py_DECREF(part);
        }
    }
    Py_XDECREF(out);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return parts;
}

/* Append the call of a step as an object: 1, 0 with an error. */
static int add_step_call(Recording *r, PyObject *step, PyObject *const *items, PyObject *const *results, Py_ssize_t n) {
    PyObject *variables = PyTuple_New(n), *call;
    Py_ssize_t i;
    if (variables == NULL) return 0;
    for (i = 0; i < n; i++) PyTuple_SET_ITEM(variables, i, Py_NewRef(results[i]));
    call = add_call(r, field(step, STEP_FUNCTION), field(step, STEP_METHOD), fill(r, field(step, STEP_ARGS), items, VARS), fill(r, field(step, STEP_KWARGS), items, VARS), field(step, STEP_OP_NAME), field(step, STEP_PURE));
    if (call == NULL) {
        Py_DECREF(variables);
        return 0;
    }
    set_results(call, variables, step);
    if (r->location.code == NULL) take_location(r, call);
    Py_DECREF(call);
    return 1;
}

/* Run a step and append its call. Store its results in `results`. 1 done, 0 Python must decide */
static int run_step(Recording *r, PyObject *step, PyObject *const *items, PyObject **results) {
    PyObject *part = field(step, STEP_MEMORY) == Py_None ? NULL : part_of_operand(r, step, items), *parts = part != NULL ? PyTuple_Pack(1, part) : PyErr_Occurred() ? NULL : compute_step(r, step, items);
    PyObject *used = field(step, STEP_USED), *operands[MAX_ITEMS], *vars[2 * MAX_ITEMS];
    Py_ssize_t i, n = PyLong_AsSsize_t(field(step, STEP_RESULTS)), nused = PyTuple_GET_SIZE(used), made = 0;
    int plain = -1, done = 0, copies = part != NULL && PyTuple_GET_ITEM(field(step, STEP_MEMORY), 1) == Py_True;
    Py_XDECREF(part);
    if (parts == NULL) return 0;
    for (i = 0; i < nused; i++) {
        operands[i] = items[PyLong_AsSsize_t(PyTuple_GET_ITEM(used, i))];
        vars[i] = var_of_traced(operands[i]);
    }
    plain = is_plain_call(r, operands, nused);
    for (made = 0; plain >= 0 && made < n; made++) {
        PyObject *part = PyTuple_GET_ITEM(parts, made), *array;
        int scalar = copies || !PyArray_CheckExact(part);
        array = scalar && !copies ? PyArray_FromScalar(part, NULL) : Py_NewRef(part);
        results[made] = array == NULL || !is_as_recorded((PyArrayObject *)array, PyTuple_GET_ITEM(field(step, STEP_LAYOUTS), made)) ? NULL : new_result(r, array, plain, scalar, field(step, STEP_ELEMENTS) == Py_True);
        Py_XDECREF(array);
        if (results[made] == NULL) break;
        vars[nused + made] = var_of_traced(results[made]);
    }
    if (plain >= 0 && made == n) {
        done = append_step(r, step, vars, nused, n);
        if (done == 0) done = add_step_call(r, step, items, vars + nused, n);
    }
    while (done <= 0 && made-- > 0) Py_CLEAR(results[made]);
    Py_DECREF(parts);
    return done > 0;
}

static PyObject *outputs_of(PyObject *spec, PyObject *const *items) {
    Py_ssize_t i;
    PyObject *outputs;
    if (Py_TYPE(spec) == item_type) return Py_NewRef(items[PyLong_AsSsize_t(SLOT(spec, item_index))]);
    if (!PyTuple_CheckExact(spec)) return Py_NewRef(spec);
    outputs = PyTuple_New(PyTuple_GET_SIZE(spec));
    for (i = 0; outputs != NULL && i < PyTuple_GET_SIZE(spec); i++) {
        PyObject *part = outputs_of(PyTuple_GET_ITEM(spec, i), items);
        if (part == NULL) Py_CLEAR(outputs);
        else PyTuple_SET_ITEM(outputs, i, part);
    }
    return outputs;
}

/* Run the steps of a template. NULL without an error where Python must do it: then no calls have been appended. */
static PyObject *run_template(Recording *r, PyObject *template, Key *key) {
    PyObject *steps = PyTuple_GET_ITEM(template, 0), *items[MAX_ITEMS], *outputs = NULL;
    Py_ssize_t i, begin, n = PyTuple_GET_SIZE(steps);
    int nitems = key->nitems, done = 1;
    begin = count_calls(r);
    if (begin < 0) return NULL;
    memcpy(items, key->items, sizeof(PyObject *) * (size_t)nitems);
    for (i = 0; i < nitems; i++) Py_INCREF(items[i]);
    for (i = 0; i < n && done; i++) {
        Py_ssize_t nresults = PyLong_AsSsize_t(field(PyTuple_GET_ITEM(steps, i), STEP_RESULTS));
        done = nitems + nresults <= MAX_ITEMS && run_step(r, PyTuple_GET_ITEM(steps, i), items, items + nitems);
        if (done) nitems += (int)nresults;
    }
    if (done) outputs = outputs_of(PyTuple_GET_ITEM(template, 1), items);
    while (nitems-- > 0) Py_DECREF(items[nitems]);
    if (outputs == NULL) { /* Python runs it again, and raises its error again */
        PyObject *number, *dropped;
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        number = PyLong_FromSsize_t(begin);
        dropped = number == NULL ? NULL : PyObject_CallMethodOneArg(r->recorder, str_drop, number);
        Py_XDECREF(number);
        Py_XDECREF(dropped);
    }
    return outputs;
}

/* Run the template of a primitive and its operands. Else NULL without an error; `missing` gets the key if there is no template yet: the table has True after the
   first call. */
static PyObject *find_and_run(Recording *r, PyObject *prim, PyObject *operands, PyObject *params, PyObject *more, PyObject **missing) {
    PyObject *bytes = NULL, *template, *result = NULL;
    Key key;
    key.length = 0;
    key.nitems = 0;
    key.recording = r;
    if (add_pointer(&key, prim) && add_to_key(&key, operands, 0) && key.nitems > 0 && add_to_key(&key, params, 0) && add_to_key(&key, more, 0)) bytes = PyBytes_FromStringAndSize((char *)key.bytes, key.length);
    template = bytes == NULL ? NULL : PyDict_GetItemWithError(templates, bytes);
    if (template != NULL && PyTuple_CheckExact(template)) {
        Py_INCREF(template);
        result = run_template(r, template, &key);
        Py_DECREF(template);
    } else if ((template == NULL || template == Py_True) && missing != NULL) {
        *missing = Py_XNewRef(bytes);
    }
    Py_XDECREF(bytes);
    return result;
}

PyObject *template_of_value(Recording *r, PyObject *prim, PyObject *operands, PyObject *params) { return templates == NULL ? NULL : find_and_run(r, prim, operands, params, core.empty_tuple, NULL); }

/* As recorder._is_derived: whether a pullback is that of its primitive, which may be compiled since the node was made. */
static int is_derived(PyObject *prim, PyObject *pullback) {
    PyObject *module;
    int derived;
    if (pullback == SLOT(prim, core.prim_pullback)) return 1;
    module = PyObject_GetAttr(pullback, str_module);
    if (module == NULL) PyErr_Clear();
    derived = module != NULL && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "chainrule._src.rules.kinds") == 0;
    Py_XDECREF(module);
    return derived;
}

PyObject *template_of_rule(Recording *r, PyObject *node, PyObject *g, PyObject *saved, PyObject *edges) {
    PyObject *prim = SLOT(node, core.prim), *pullback = SLOT(node, core.pullback), *operands, *mask, *more, *result = NULL;
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    if (templates == NULL || SLOT(prim, core.prim_listed) != Py_True || !is_derived(prim, pullback)) return NULL;
    operands = PyTuple_Pack(2, g, saved);
    mask = PyList_New(n);
    for (i = 0; mask != NULL && i < n; i++) PyList_SET_ITEM(mask, i, Py_NewRef(PyTuple_GET_ITEM(edges, i) == Py_None ? Py_True : Py_False));
    more = mask == NULL ? NULL : PyTuple_Pack(2, SLOT(node, core.in_avals), mask);
    if (operands != NULL && more != NULL) {
        Py_INCREF(prim);
        result = find_and_run(r, prim, operands, SLOT(node, core.params), more, NULL);
        Py_DECREF(prim);
    }
    Py_XDECREF(operands);
    Py_XDECREF(mask);
    Py_XDECREF(more);
    return result;
}

/* trace_template(prim, operands, params, more, pass) -> the results; the key if there is no template yet; None where Python must record.
   more: other objects that the calls depend on. pass: the backward pass whose source location the calls get, or None. */
static PyObject *trace_template(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyObject *result = NULL, *missing = NULL;
    Recording r;
    int done;
    (void)module;
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "trace_template takes (prim, operands, params, more, pass)");
        return NULL;
    }
    if (!core.enabled || templates == NULL) Py_RETURN_NONE;
    done = open_recording(&r);
    if (done <= 0) return done < 0 ? NULL : Py_NewRef(Py_None);
    if (args[4] == Py_None || locate(&r, args[4]) > 0) result = find_and_run(&r, args[0], args[1], args[2], args[3], &missing);
    unlocate(&r);
    close_recording(&r);
    if (result == NULL && !PyErr_Occurred()) return missing == NULL ? Py_NewRef(Py_None) : missing;
    Py_XDECREF(missing);
    return result;
}

/* connect_templates(TemplateItem, TemplateStep, templates, without_overlap) */
static PyObject *connect_templates(PyObject *module, PyObject *args) {
    static const SlotOffset of_item[] = {{"index", &item_index}, {NULL, NULL}};
    static const SlotOffset of_step[] = {{"fields", &step_fields}, {NULL, NULL}};
    PyObject *item, *step, *table, *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyType_Type, &item, &PyType_Type, &step, &PyDict_Type, &table, &function)) return NULL;
    if (templates != NULL) {
        PyErr_SetString(PyExc_TypeError, "connect_templates is called once");
        return NULL;
    }
    str_drop = PyUnicode_InternFromString("drop");
    str_plain_var = PyUnicode_InternFromString("var_of_plain");
    str_module = PyUnicode_InternFromString("__module__");
    if (str_module == NULL || str_drop == NULL || str_plain_var == NULL || find_slots((PyTypeObject *)item, of_item) < 0 || find_slots((PyTypeObject *)step, of_step) < 0) return NULL;
    step_type = (PyTypeObject *)Py_NewRef(step);
    item_type = (PyTypeObject *)Py_NewRef(item);
    without_overlap = Py_NewRef(function);
    templates = Py_NewRef(table);
    Py_RETURN_NONE;
}

PyMethodDef template_functions[] = {
    {"connect_templates", connect_templates, METH_VARARGS, "connect_templates(TemplateItem, TemplateStep, templates, without_overlap): set the classes of references and steps, the table of templates and a function"},
    {"trace_template", (PyCFunction)(void (*)(void))trace_template, METH_FASTCALL, "trace_template(prim, operands, params, more, pass): append the calls of a primitive or VJP rule from its template"},
    {NULL, NULL, 0, NULL},
};
