/* The extension module chainrule._src.native._loops: the types Runner, Operation and Op, and the functions that Python calls.

   A Runner runs a compiled program without Python: it checks the layouts of its arguments, allocates results and an arena, and calls
   the interpreter (interpreter.c). compiling/native_executor.py makes Runners. */

#include "trace.h"

#include <stddef.h>
#include <structmember.h> /* names of Python 3.11 */

#if defined(_MSC_VER)
#include <intrin.h>
#define SWAP_POINTER(address, value) _InterlockedExchangePointer((void *volatile *)(address), value)
static int set_if_null(void **address, void *value) { return _InterlockedCompareExchangePointer((void *volatile *)address, value, NULL) == NULL; }
#else
#define SWAP_POINTER(address, value) __atomic_exchange_n(address, value, __ATOMIC_ACQ_REL)
static int set_if_null(void **address, void *value) {
    void *expected = NULL;
    return __atomic_compare_exchange_n(address, &expected, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#endif

/* ---- layouts of arguments */

static void clear_layouts(Layout *layouts, Py_ssize_t count) {
    Py_ssize_t i;
    if (layouts == NULL) return;
    for (i = 0; i < count; i++) {
        Py_XDECREF(layouts[i].descr);
        PyMem_Free(layouts[i].shape);
    }
    PyMem_Free(layouts);
}

static int read_numbers(PyObject *tuple, npy_intp *numbers, int count) {
    int i;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_SetString(PyExc_TypeError, "shape and strides must be tuples of equal length");
        return -1;
    }
    for (i = 0; i < count; i++) {
        numbers[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (numbers[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* (shape, dtype, strides) */
static int read_layout(PyObject *item, Layout *layout) {
    PyObject *shape, *strides, *dtype;
    Py_ssize_t ndim;
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3 || !PyTuple_Check(PyTuple_GET_ITEM(item, 0))) {
        PyErr_SetString(PyExc_TypeError, "a layout is a tuple (shape, dtype, strides)");
        return -1;
    }
    shape = PyTuple_GET_ITEM(item, 0);
    dtype = PyTuple_GET_ITEM(item, 1);
    strides = PyTuple_GET_ITEM(item, 2);
    if (!PyArray_DescrCheck(dtype) || PyDataType_REFCHK((PyArray_Descr *)dtype)) {
        PyErr_SetString(PyExc_TypeError, "a layout needs a dtype without Python objects");
        return -1;
    }
    ndim = PyTuple_GET_SIZE(shape);
    if (ndim > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "a layout has too many dimensions");
        return -1;
    }
    layout->ndim = (int)ndim;
    layout->shape = PyMem_Malloc(sizeof(npy_intp) * (2 * (size_t)ndim + 1));
    if (layout->shape == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    layout->strides = layout->shape + ndim;
    layout->descr = (PyArray_Descr *)Py_NewRef(dtype);
    if (read_numbers(shape, layout->shape, layout->ndim) < 0) return -1;
    return read_numbers(strides, layout->strides, layout->ndim);
}

static Layout *read_layouts(PyObject *list, Py_ssize_t *count) {
    Py_ssize_t i, n;
    Layout *layouts;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "inputs and outputs are lists of layouts");
        return NULL;
    }
    n = PyList_GET_SIZE(list);
    layouts = PyMem_Calloc((size_t)n + 1, sizeof(Layout));
    if (layouts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (i = 0; i < n; i++) {
        if (read_layout(PyList_GET_ITEM(list, i), &layouts[i]) < 0) {
            clear_layouts(layouts, n);
            return NULL;
        }
    }
    *count = n;
    return layouts;
}

int has_layout(PyObject *object, const Layout *layout) {
    PyArrayObject *array = (PyArrayObject *)object;
    int i;
    if (!PyArray_CheckExact(object) || PyArray_NDIM(array) != layout->ndim || !PyArray_ISALIGNED(array)) return 0;
    if (PyArray_DESCR(array) != layout->descr && !PyArray_EquivTypes(PyArray_DESCR(array), layout->descr)) return 0;
    if (layout->written && !PyArray_ISWRITEABLE(array)) return 0;
    for (i = 0; i < layout->ndim; i++) {
        if (PyArray_DIM(array, i) != layout->shape[i]) return 0;
        if (PyArray_STRIDE(array, i) != layout->strides[i] && layout->shape[i] > 1) return 0;
    }
    return 1;
}

/* Whether the elements are dense in some order of the dimensions. NumPy then allocates as many bytes as the strides need. */
static int is_dense(const Layout *layout) {
    npy_intp expected = PyDataType_ELSIZE(layout->descr);
    int left = 0, i, exceptions;
    for (i = 0; i < layout->ndim; i++) {
        if (layout->shape[i] < 0) return 0;
        if (layout->shape[i] == 0) return 1;
        left += layout->shape[i] > 1;
    }
    while (left-- > 0) {
        for (i = 0, exceptions = -1; i < layout->ndim; i++) {
            if (layout->shape[i] > 1 && layout->strides[i] == expected) exceptions = i;
        }
        if (exceptions < 0 || expected > NPY_MAX_INTP / layout->shape[exceptions]) return 0;
        expected *= layout->shape[exceptions];
    }
    return 1;
}

/* ---- Runner */

char *take_arena(Runner *self) {
    int i;
    void *arena;
    for (i = 0; i < KEPT_ARENAS; i++) {
        arena = SWAP_POINTER(&self->arenas[i], NULL);
        if (arena != NULL) return arena;
    }
    return PyMem_RawMalloc((size_t)(self->arena_bytes + self->scratch_bytes) + 64);
}

void keep_arena(Runner *self, char *arena) {
    int i;
    for (i = 0; i < KEPT_ARENAS; i++) {
        if (set_if_null(&self->arenas[i], arena)) return;
    }
    PyMem_RawFree(arena);
}

char *aligned(char *address) { return (char *)(((npy_uintp)address + 63) & ~(npy_uintp)63); }

/* Run words [start, stop), and release the GIL if that takes long. */
static int run_words(const npy_intp *code, npy_intp start, npy_intp stop, char **bases, double work) {
    int exceptions;
    if (work < RELEASE_FROM) return run_code(code, start, stop, bases);
    Py_BEGIN_ALLOW_THREADS
    exceptions = run_code(code, start, stop, bases);
    Py_END_ALLOW_THREADS
    return exceptions;
}

/* Return 0, 1 if a check of a value failed, -1 if an error is set. */
static int run_and_report(Runner *self, char **bases, PyObject *report) {
    const npy_intp *code = PyArray_DATA((PyArrayObject *)self->code);
    int exceptions = run_words(code, 0, self->commit, bases, self->work);
    if (PyErr_Occurred()) return -1; /* a kernel raised */
    if ((exceptions & FAILED) && last_failed_check()->failed) return 1;
    if (exceptions && report != NULL) {
        PyObject *mask = PyLong_FromLong(exceptions), *answer;
        if (mask == NULL) return -1;
        answer = PyObject_CallOneArg(report, mask);
        Py_DECREF(mask);
        if (answer == NULL) return -1;
        Py_DECREF(answer);
    }
    if (self->commit < self->words) run_words(code, self->commit, self->words, bases, self->work);
    return PyErr_Occurred() ? -1 : 0;
}

/* Fill bases with the addresses of inputs or outputs. 1: done, 0: an array has another layout, -1: wrong number of arrays, an error is set */
static int read_arrays(PyObject *arrays, const Layout *layouts, Py_ssize_t count, char **bases) {
    Py_ssize_t i;
    if (PyTuple_GET_SIZE(arrays) != count) {
        PyErr_Format(PyExc_ValueError, "expected %zd arrays, but got %zd", count, PyTuple_GET_SIZE(arrays));
        return -1;
    }
    for (i = 0; i < count; i++) {
        PyObject *array = PyTuple_GET_ITEM(arrays, i);
        if (!has_layout(array, &layouts[i])) return 0;
        bases[i] = PyArray_BYTES((PyArrayObject *)array);
    }
    return 1;
}

/* Copy a list: a tuple keeps its arrays even if other threads or `report` change the list. */
static PyObject *as_tuple(PyObject *arrays) {
    if (PyTuple_CheckExact(arrays)) return Py_NewRef(arrays);
    if (PyList_CheckExact(arrays)) return PyList_AsTuple(arrays);
    PyErr_SetString(PyExc_TypeError, "arrays must be in a list or a tuple");
    return NULL;
}

static PyObject *new_outputs(Runner *self, char **bases) {
    Py_ssize_t i;
    PyObject *outputs = PyList_New(self->noutputs);
    if (outputs == NULL) return NULL;
    for (i = 0; i < self->noutputs; i++) {
        Layout *layout = &self->outputs[i];
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(layout->descr), layout->ndim, layout->shape, layout->strides, NULL, 0, NULL);
        if (array == NULL) {
            Py_DECREF(outputs);
            return PyErr_Occurred() ? NULL : PyErr_NoMemory(); /* NumPy may return NULL without an error */
        }
        bases[i] = PyArray_BYTES((PyArrayObject *)array);
        PyList_SET_ITEM(outputs, i, array);
    }
    return outputs;
}

#define BASES_ON_STACK 64

/* The failed check of this thread's last run: (ordinal, bytes of the value, or None for a long value). */
static PyObject *new_failed_check(void) {
    const FailedCheck *failed = last_failed_check();
    PyObject *value = Py_None;
    if (failed->nbytes > (npy_intp)sizeof(failed->value)) {
        Py_INCREF(value);
    } else {
        value = PyBytes_FromStringAndSize(failed->value, failed->nbytes);
    }
    return value == NULL ? NULL : Py_BuildValue("LN", (long long)failed->ordinal, value);
}

/* Run the program once. `into`: a tuple of arrays for the results, or NULL to return a list of new arrays. Return a tuple if a check of a
   value failed (new_failed_check). */
static PyObject *run_on(Runner *self, PyObject *arrays, PyObject *into, PyObject *report, char **bases) {
    char **constants = bases + 2 + self->ninputs, **outputs = constants + self->nconstants, *arena;
    PyObject *result;
    Py_ssize_t i;
    int outcome, fits = read_arrays(arrays, self->inputs, self->ninputs, bases + 2);
    if (fits == 1 && into != NULL) fits = read_arrays(into, self->outputs, self->noutputs, outputs);
    if (fits == -1) return NULL;
    if (fits == 0) Py_RETURN_NONE;
    for (i = 0; i < self->nconstants; i++) constants[i] = PyArray_BYTES((PyArrayObject *)PyTuple_GET_ITEM(self->constants, i));
    result = into == NULL ? new_outputs(self, outputs) : Py_NewRef(Py_True);
    if (result == NULL) return NULL;
    arena = take_arena(self);
    if (arena == NULL) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    self->runs++;
    bases[0] = aligned(arena);
    bases[1] = bases[0] + self->arena_bytes;
    outcome = run_and_report(self, bases, report);
    if (outcome != 0) Py_CLEAR(result);
    if (outcome == 1) result = new_failed_check();
    keep_arena(self, arena);
    return result;
}

static PyObject *call_runner(Runner *self, PyObject *arrays, PyObject *into, PyObject *report) {
    char *stack_bases[64], **bases = stack_bases;
    PyObject *result = NULL;
    size_t count = (size_t)self->nbases;
    arrays = as_tuple(arrays);
    if (arrays == NULL) return NULL;
    if (into != NULL) into = as_tuple(into);
    if (into != NULL || !PyErr_Occurred()) {
        if (count > sizeof(stack_bases) / sizeof(stack_bases[0])) bases = PyMem_Malloc(count * sizeof(char *));
        result = bases == NULL ? PyErr_NoMemory() : run_on(self, arrays, into, report == Py_None ? NULL : report, bases);
        if (bases != stack_bases) PyMem_Free(bases);
    }
    Py_XDECREF(into);
    Py_DECREF(arrays);
    return result;
}

static PyObject *runner_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs < 1 || nargs > 2 || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) != 0)) {
        PyErr_SetString(PyExc_TypeError, "a Runner takes (arrays, report=None), by position");
        return NULL;
    }
    return call_runner((Runner *)self, args[0], NULL, nargs == 2 ? args[1] : NULL);
}

static PyObject *runner_run_into(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs < 2 || nargs > 3) {
        PyErr_SetString(PyExc_TypeError, "run_into takes (arrays, outputs, report=None), by position");
        return NULL;
    }
    return call_runner((Runner *)self, args[0], args[1], nargs == 3 ? args[2] : NULL);
}

static PyObject *runner_memory_use(PyObject *object, PyObject *unused) {
    Runner *self = (Runner *)object;
    npy_intp bytes = self->words * (npy_intp)sizeof(npy_intp) + (self->ninputs + self->noutputs + 2) * (npy_intp)sizeof(Layout);
    int i;
    (void)unused;
    for (i = 0; i < KEPT_ARENAS; i++) {
        if (self->arenas[i] != NULL) bytes += self->arena_bytes + self->scratch_bytes + 64;
    }
    return Py_BuildValue("nO", (Py_ssize_t)bytes, self->constants);
}

static void runner_dealloc(PyObject *object) {
    Runner *self = (Runner *)object;
    PyTypeObject *type = Py_TYPE(object);
    int i;
    for (i = 0; i < KEPT_ARENAS; i++) PyMem_RawFree(self->arenas[i]);
    clear_layouts(self->inputs, self->ninputs);
    clear_layouts(self->outputs, self->noutputs);
    Py_XDECREF(self->code);
    Py_XDECREF(self->constants);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Mark the inputs that the code writes to. */
static int mark_written(Runner *self, PyObject *writes) {
    Py_ssize_t i, k;
    if (!PyList_Check(writes)) {
        PyErr_SetString(PyExc_TypeError, "writes must be a list of input indices");
        return -1;
    }
    for (i = 0; i < PyList_GET_SIZE(writes); i++) {
        k = PyLong_AsSsize_t(PyList_GET_ITEM(writes, i));
        if (k == -1 && PyErr_Occurred()) return -1;
        if (k < 0 || k >= self->ninputs) {
            PyErr_SetString(PyExc_ValueError, "writes names an input that does not exist");
            return -1;
        }
        self->inputs[k].written = 1;
    }
    return 0;
}

static int check_constants(PyObject *constants) {
    Py_ssize_t i;
    for (i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *item = PyTuple_GET_ITEM(constants, i);
        if (!PyArray_Check(item) || PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)item))) {
            PyErr_SetString(PyExc_TypeError, "constants must be arrays without Python objects");
            return -1;
        }
    }
    return 0;
}

/* Return the words of a program as a new array: from a list of ints, which NumPy converts ten times slower, or from an array. */
static PyObject *copy_words(PyObject *code) {
    npy_intp count, i;
    PyObject *words;
    if (!PyList_CheckExact(code)) return PyArray_FromAny(code, PyArray_DescrFromType(NPY_INTP), 1, 1, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSURECOPY, NULL);
    count = PyList_GET_SIZE(code);
    words = PyArray_SimpleNew(1, &count, NPY_INTP);
    for (i = 0; words != NULL && i < count; i++) {
        npy_intp word = i < PyList_GET_SIZE(code) ? PyNumber_AsSsize_t(PyList_GET_ITEM(code, i), PyExc_OverflowError) : 0; /* __index__ might shorten the list */
        if (word == -1 && PyErr_Occurred()) Py_CLEAR(words);
        else ((npy_intp *)PyArray_DATA((PyArrayObject *)words))[i] = word;
    }
    return words;
}

static int fill_runner(Runner *self, PyObject *code, PyObject *inputs, PyObject *constants, PyObject *outputs, PyObject *writes) {
    CodeStats before, after;
    const npy_intp *words;
    const char *problem;
    npy_intp nbases;
    Py_ssize_t i;
    self->inputs = read_layouts(inputs, &self->ninputs);
    if (self->inputs == NULL) return -1;
    self->outputs = read_layouts(outputs, &self->noutputs);
    if (self->outputs == NULL) return -1;
    for (i = 0; i < self->noutputs; i++) {
        self->outputs[i].written = 1;
        if (!is_dense(&self->outputs[i])) {
            PyErr_SetString(PyExc_ValueError, "the strides of an output must be dense, and its size in range");
            return -1;
        }
    }
    if (writes != NULL && mark_written(self, writes) < 0) return -1;
    self->constants = PySequence_Tuple(constants);
    if (self->constants == NULL || check_constants(self->constants) < 0) return -1;
    self->nconstants = PyTuple_GET_SIZE(self->constants);
    self->code = copy_words(code);
    if (self->code == NULL) return -1;
    words = PyArray_DATA((PyArrayObject *)self->code);
    self->words = PyArray_SIZE((PyArrayObject *)self->code);
    if (self->commit < 0) self->commit = self->words;
    if (self->commit > self->words) self->commit = self->words;
    nbases = 2 + self->ninputs + self->nconstants + self->noutputs;
    problem = check_code(words, 0, self->commit, nbases, &before);
    if (problem == NULL) problem = check_code(words, self->commit, self->words, nbases, &after);
    if (problem != NULL) {
        PyErr_SetString(PyExc_ValueError, problem);
        return -1;
    }
    self->work = before.work + after.work;
    self->scratch_bytes = before.scratch > after.scratch ? before.scratch : after.scratch;
    self->nbases = before.nbases > after.nbases ? before.nbases : after.nbases;
    return 0;
}

static PyObject *runner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"code", "arena_bytes", "inputs", "constants", "outputs", "writes", "commit", NULL};
    PyObject *code, *inputs, *constants, *outputs, *writes = NULL;
    Py_ssize_t arena_bytes, commit = -1;
    Runner *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnOOO|On:Runner", names, &code, &arena_bytes, &inputs, &constants, &outputs, &writes, &commit)) return NULL;
    if (arena_bytes < 0 || arena_bytes > PY_SSIZE_T_MAX / 4) {
        PyErr_SetString(PyExc_ValueError, "arena_bytes is negative or too large");
        return NULL;
    }
    self = (Runner *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = runner_vectorcall;
    self->arena_bytes = (arena_bytes + 63) / 64 * 64;
    self->commit = commit;
    if (fill_runner(self, code, inputs, constants, outputs, writes) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMemberDef runner_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, vectorcall), READONLY, NULL},
    {"runs", T_PYSSIZET, offsetof(Runner, runs), READONLY, "number of calls with arrays of the right layouts"},
    {"scratch_bytes", T_PYSSIZET, offsetof(Runner, scratch_bytes), READONLY, "scratch bytes that the groups need for each thread"},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef runner_methods[] = {
    {"run_into", (PyCFunction)(void (*)(void))runner_run_into, METH_FASTCALL, "run_into(arrays, outputs, report=None): run the program and write the results into `outputs`"},
    {"memory_use", runner_memory_use, METH_NOARGS, "memory_use(): return (bytes of the code and of cached arenas, constants)"},
    {"low_level", runner_low_level, METH_VARARGS, "low_level(kind, narguments, arrays): a capsule with a C function that SciPy calls"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot runner_slots[] = {
    {Py_tp_doc, "Runner(code, arena_bytes, inputs, constants, outputs, writes=[], commit=-1): a compiled program"},
    {Py_tp_new, runner_new},
    {Py_tp_dealloc, runner_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, runner_members},
    {Py_tp_methods, runner_methods},
    {0, NULL},
};

static PyType_Spec runner_spec = {"chainrule._src.native._loops.Runner", sizeof(Runner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, runner_slots};

/* ---- functions */

static int is_number_loop(const PyUFuncObject *ufunc, Py_ssize_t index) {
    const char *types = ufunc->types + index * ufunc->nargs;
    int i;
    for (i = 0; i < ufunc->nargs; i++) {
        if (!PyTypeNum_ISNUMBER(types[i]) && !PyTypeNum_ISBOOL(types[i])) return 0;
    }
    return 1;
}

static PyObject *address_of_loop(PyObject *module, PyObject *args) {
    PyUFuncObject *ufunc;
    Py_ssize_t index;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!n:loop", &PyUFunc_Type, &ufunc, &index)) return NULL;
    if (index < 0 || index >= ufunc->ntypes || ufunc->nargs > MAX_ARGS || ufunc->functions == NULL) Py_RETURN_NONE;
    if (!is_number_loop(ufunc, index) || ufunc->functions[index] == NULL) Py_RETURN_NONE;
    return Py_BuildValue("NN", PyLong_FromVoidPtr((void *)ufunc->functions[index]), PyLong_FromVoidPtr(ufunc->data == NULL ? NULL : (void *)ufunc->data[index]));
}

/* Return the addresses of NumPy's sort, argsort, argmax and argmin functions of a dtype; 0 for a missing function. */
static PyObject *orders_of(PyObject *module, PyObject *dtype) {
    PyArray_ArrFuncs *functions;
    (void)module;
    if (!PyArray_DescrCheck(dtype) || !PyTypeNum_ISNUMBER(((PyArray_Descr *)dtype)->type_num)) Py_RETURN_NONE;
    functions = PyDataType_GetArrFuncs((PyArray_Descr *)dtype);
    return Py_BuildValue("[NNN][NNN]NN",
        PyLong_FromVoidPtr((void *)functions->sort[0]), PyLong_FromVoidPtr((void *)functions->sort[1]), PyLong_FromVoidPtr((void *)functions->sort[2]),
        PyLong_FromVoidPtr((void *)functions->argsort[0]), PyLong_FromVoidPtr((void *)functions->argsort[1]), PyLong_FromVoidPtr((void *)functions->argsort[2]),
        PyLong_FromVoidPtr((void *)functions->argmax), PyLong_FromVoidPtr((void *)functions->argmin));
}

/* Return the object if it is a contiguous 1-d array of intp, else NULL with an error. */
static PyArrayObject *intp_array(PyObject *object) {
    if (!PyArray_CheckExact(object) || PyArray_TYPE((PyArrayObject *)object) != NPY_INTP || PyArray_NDIM((PyArrayObject *)object) != 1 || !PyArray_ISCARRAY_RO((PyArrayObject *)object)) {
        PyErr_SetString(PyExc_TypeError, "expected a contiguous array of intp");
        return NULL;
    }
    return (PyArrayObject *)object;
}

static PyObject *execute(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *code, *bases;
    Py_ssize_t start, stop;
    const char *problem;
    CodeStats survey;
    char **base_pointers;
    int exceptions;
    (void)module;
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "execute takes (code, start, stop, bases), by position");
        return NULL;
    }
    code = intp_array(args[0]);
    bases = intp_array(args[3]);
    if (code == NULL || bases == NULL) return NULL;
    start = PyLong_AsSsize_t(args[1]);
    if (start == -1 && PyErr_Occurred()) return NULL;
    stop = PyLong_AsSsize_t(args[2]);
    if (stop == -1 && PyErr_Occurred()) return NULL;
    if (start < 0 || stop < start || stop > PyArray_SIZE(code)) {
        PyErr_SetString(PyExc_ValueError, "start and stop are outside of the code");
        return NULL;
    }
    problem = check_code(PyArray_DATA(code), start, stop, PyArray_SIZE(bases), &survey);
    if (problem != NULL) {
        PyErr_SetString(PyExc_ValueError, problem);
        return NULL;
    }
    base_pointers = PyMem_Malloc(sizeof(char *) * (size_t)(survey.nbases + 1));
    if (base_pointers == NULL) return PyErr_NoMemory();
    memcpy(base_pointers, PyArray_DATA(bases), sizeof(char *) * (size_t)PyArray_SIZE(bases));
    Py_INCREF(code);
    exceptions = run_words(PyArray_DATA(code), start, stop, base_pointers, survey.work);
    Py_DECREF(code);
    PyMem_Free(base_pointers);
    return PyLong_FromLong(exceptions);
}

static PyObject *threads_used(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(get_threads());
}

static PyObject *choose_threads(PyObject *module, PyObject *count) {
    long number = PyLong_AsLong(count);
    (void)module;
    if (number == -1 && PyErr_Occurred()) return NULL;
    if (number < 1) {
        PyErr_SetString(PyExc_ValueError, "the number of threads must be at least 1");
        return NULL;
    }
    set_threads(number < 1024 ? (int)number : 1024);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"loop", address_of_loop, METH_VARARGS, "loop(ufunc, index): addresses of an inner loop and its data, or None"},
    {"use_lapack", use_lapack, METH_VARARGS, "use_lapack(getrf, getrs, gesv, threads, bits): set the addresses of the LAPACK functions"},
    {"orders", orders_of, METH_O, "orders(dtype): addresses of (sorts, argsorts, argmax, argmin), or None"},
    {"execute", (PyCFunction)(void (*)(void))execute, METH_FASTCALL, "execute(code, start, stop, bases): run a range of a program; return the floating-point exceptions"},
    {"first_broken", (PyCFunction)(void (*)(void))first_broken, METH_FASTCALL, "first_broken(guards, begin, missing): return the index of the first guard that fails, or -1"},
    {"class_version", class_version, METH_O, "class_version(cls): (number, __name__, __qualname__) of a class defined in Python"},
    {"class_attribute", (PyCFunction)(void (*)(void))class_attribute, METH_FASTCALL, "class_attribute(cls, name, missing): return an attribute of a class or its bases, unbound"},
    {"enable_untraced", enable_untraced, METH_O, "enable_untraced(enable): have marked code of this thread run without the trace function, or no longer; return whether that is possible"},
    {"trace_frames", trace_frames, METH_VARARGS, "trace_frames(callback, open_frame, watch, plain_types, python_floats, receivers, written, own_methods, known_code): call a function with each frame of this thread that begins; return whether that is possible"},
    {"drop_trace_references", drop_trace_references, METH_NOARGS, "drop_trace_references(): drop the references of trace_frames"},
    {"mark_untraced", mark_untraced, METH_O, "mark_untraced(code): exclude frames of this code from tracing"},
    {"get_threads", threads_used, METH_NOARGS, "get_threads(): return the number of threads that share large steps"},
    {"set_threads", choose_threads, METH_O, "set_threads(count): set the number of threads that share large steps"},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, const char *name) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int done = type == NULL ? -1 : PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return done;
}

static int fill_module(PyObject *module) {
    PyObject *kernels;
    import_array1(-1);
    import_umath1(-1);
    if (add_type(module, &runner_spec, "Runner") < 0) return -1;
    if (add_type(module, &operation_spec, "Operation") < 0 || add_type(module, &op_spec, "Op") < 0) return -1;
    if (add_call_list(module) < 0 || PyModule_AddFunctions(module, encoding_functions) < 0 || PyModule_AddFunctions(module, tape_functions) < 0 || PyModule_AddFunctions(module, op_functions) < 0 || PyModule_AddFunctions(module, level_functions) < 0 || PyModule_AddFunctions(module, operation_functions) < 0 || PyModule_AddFunctions(module, sweep_functions) < 0 || PyModule_AddFunctions(module, trace_functions) < 0 || PyModule_AddFunctions(module, template_functions) < 0 || PyModule_AddFunctions(module, pass_functions) < 0 || PyModule_AddFunctions(module, matmul_functions) < 0 || PyModule_AddFunctions(module, depthwise_functions) < 0 || PyModule_AddFunctions(module, linear_algebra_functions) < 0 || PyModule_AddFunctions(module, small_matrix_functions) < 0) return -1;
    if (PyModule_AddIntConstant(module, "VERSION", VERSION) < 0 || add_operation_constants(module) < 0) return -1;
    kernels = kernel_addresses();
    if (kernels == NULL || PyModule_AddObjectRef(module, "KERNELS", kernels) < 0) {
        Py_XDECREF(kernels);
        return -1;
    }
    Py_DECREF(kernels);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)fill_module},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "chainrule._src.native._loops", NULL, 0, functions, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__loops(void) { return PyModuleDef_Init(&module); }
