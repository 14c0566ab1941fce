/* Runner.low_level: programs as C functions that SciPy calls without Python.

   The result is a PyCapsule. Its name is the C signature, its pointer the function. Its context is a Target, which SciPy passes as
   `void *user_data`: the program, and the arrays that it reads besides its arguments. */

#define NO_IMPORT_ARRAY
#include "runner.h"

#include <math.h>
#include <string.h>

typedef struct {
    Runner *runner;
    PyObject *arrays; /* a tuple: for each input the index of an argument, or an array */
    Py_ssize_t narguments;
    npy_intp nin, nout;         /* lengths of the argument (-1: not read) and of the result, if they are arrays */
    Py_ssize_t *argument_index; /* for each input the index of an argument, or -1 */
} Target;

#define STACK_BASES 64
#define MAX_ARGUMENTS 16

/* ---- calls */

/* Return the data pointer. It is read in each call, because assigning to array.data (before NumPy 2.4) replaces the memory of an array. */
static char *bytes_of(PyObject *arrays, Py_ssize_t i) { return PyArray_BYTES((PyArrayObject *)PyTuple_GET_ITEM(arrays, i)); }

/* Run the program. 0 if there is no memory */
static int run_target(const Target *target, char *const *arguments, char *result) {
    Runner *runner = target->runner;
    char *stack_bases[STACK_BASES], **bases = runner->nbases > STACK_BASES ? PyMem_RawMalloc((size_t)runner->nbases * sizeof(char *)) : stack_bases, *arena;
    PyThreadState *state;
    Py_ssize_t i;
    if (bases == NULL) return 0;
    arena = take_arena(runner);
    if (arena != NULL) {
        char **constants = bases + 2 + runner->ninputs;
        bases[0] = aligned(arena);
        bases[1] = bases[0] + runner->arena_bytes;
        for (i = 0; i < runner->ninputs; i++) bases[2 + i] = target->argument_index[i] >= 0 ? arguments[target->argument_index[i]] : bytes_of(target->arrays, i);
        for (i = 0; i < runner->nconstants; i++) constants[i] = bytes_of(runner->constants, i);
        constants[runner->nconstants] = result;
        /* SciPy's ufunc loops take the GIL to warn, also in helper threads, which this thread waits for. */
        state = runner->work >= RELEASE_FROM && PyGILState_Check() ? PyEval_SaveThread() : NULL;
        run_code(PyArray_DATA((PyArrayObject *)runner->code), 0, runner->words, bases);
        if (state != NULL) PyEval_RestoreThread(state);
        keep_arena(runner, arena);
    }
    if (bases != stack_bases) PyMem_RawFree(bases);
    return arena != NULL;
}

/* Warn, and return nan, because scipy.integrate does not check for errors. */
static double wrong_count(Py_ssize_t expected, int got) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_WarnFormat(PyExc_RuntimeWarning, 2, "the compiled function takes %zd numbers, and is called with %d: "
                     "pass the numbers that are not integrated over as args=(...) to the integrator", expected, got);
    PyGILState_Release(state);
    return NAN;
}

/* scipy.integrate */
static const char INTEGRAND[] = "double (int, double *, void *)";

static double integrand(int n, double *x, void *user_data) {
    const Target *target = user_data;
    char *arguments[MAX_ARGUMENTS];
    double result;
    int i;
    if (n != target->narguments) return wrong_count(target->narguments, n);
    for (i = 0; i < n; i++) arguments[i] = (char *)&x[i];
    return run_target(target, arguments, (char *)&result) ? result : NAN;
}

/* Set an error. SciPy checks for one if a filter returns 0. */
static int wrong_length(npy_intp expected, npy_intp got) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(PyExc_ValueError, "the compiled function takes arrays of %zd elements, but got %zd", expected, got);
    PyGILState_Release(state);
    return 0;
}

/* scipy.ndimage.generic_filter */
static const char FILTER[] = "int (double *, intptr_t, double *, void *)";

static int filter(double *buffer, npy_intp size, double *result, void *user_data) {
    const Target *target = user_data;
    char *arguments[1] = {(char *)buffer};
    if (target->nin >= 0 && size != target->nin) return wrong_length(target->nin, size);
    return run_target(target, arguments, (char *)result);
}

/* scipy.ndimage.generic_filter1d */
static const char LINE_FILTER[] = "int (double *, intptr_t, double *, intptr_t, void *)";

static int line_filter(double *line, npy_intp length, double *result, npy_intp result_length, void *user_data) {
    const Target *target = user_data;
    char *arguments[1] = {(char *)line};
    if (target->nin >= 0 && length != target->nin) return wrong_length(target->nin, length);
    if (result_length != target->nout) return wrong_length(target->nout, result_length);
    return run_target(target, arguments, (char *)result);
}

/* ---- construction */

static void free_target(Target *target) {
    Py_XDECREF(target->runner);
    Py_XDECREF(target->arrays);
    PyMem_Free(target->argument_index);
    PyMem_Free(target);
}

static void free_capsule(PyObject *capsule) {
    Target *target = PyCapsule_GetContext(capsule);
    if (target != NULL) free_target(target);
}

/* Whether an array has `ndim` (0 or 1) dimensions of contiguous native doubles. */
static int is_doubles(const Layout *layout, int ndim) {
    if (layout->descr->type_num != NPY_DOUBLE || !PyArray_ISNBO(layout->descr->byteorder) || layout->ndim != ndim) return 0;
    return ndim == 0 || layout->shape[0] < 2 || layout->strides[0] == sizeof(double);
}

/* Check the items of `target->arrays`, argument indices or arrays of the input's layout, and fill `argument_index`. */
static int bind_inputs(Target *target, int ndim) {
    Runner *runner = target->runner;
    Py_ssize_t i, argument;
    if (PyTuple_GET_SIZE(target->arrays) != runner->ninputs) {
        PyErr_SetString(PyExc_ValueError, "low_level takes one number or array for each input");
        return -1;
    }
    for (i = 0; i < runner->ninputs; i++) {
        PyObject *item = PyTuple_GET_ITEM(target->arrays, i);
        const Layout *layout = &runner->inputs[i];
        target->argument_index[i] = -1;
        if (PyLong_Check(item)) {
            argument = PyLong_AsSsize_t(item);
            if (argument < 0 || argument >= target->narguments || !is_doubles(layout, ndim) || layout->written) {
                PyErr_SetString(PyExc_ValueError, "low_level: an argument does not exist, is written to, or is not an array of doubles");
                return -1;
            }
            target->argument_index[i] = argument;
            if (ndim == 1) target->nin = layout->shape[0];
        } else if (!has_layout(item, layout)) {
            PyErr_SetString(PyExc_ValueError, "low_level: an array does not have the layout of its input");
            return -1;
        }
    }
    return 0;
}

static Target *new_target(Runner *runner, Py_ssize_t narguments, PyObject *arrays, int ndim_in, int ndim_out) {
    Target *target = PyMem_Calloc(1, sizeof(Target));
    if (target == NULL) return (Target *)PyErr_NoMemory();
    target->runner = (Runner *)Py_NewRef(runner);
    target->arrays = PySequence_Tuple(arrays);
    target->narguments = narguments;
    target->nin = -1;
    target->argument_index = PyMem_Calloc((size_t)runner->ninputs + 1, sizeof(Py_ssize_t));
    if (target->argument_index == NULL) {
        PyErr_NoMemory();
    } else if (runner->noutputs != 1 || !is_doubles(&runner->outputs[0], ndim_out)) {
        PyErr_SetString(PyExc_ValueError, "low_level: the result is not an array of doubles");
    } else if (target->arrays != NULL && bind_inputs(target, ndim_in) == 0) {
        target->nout = ndim_out ? runner->outputs[0].shape[0] : 1;
        return target;
    }
    free_target(target);
    return NULL;
}

/* low_level(kind, narguments, arrays): return a capsule. Kinds: "integrand", "filter", "line_filter" */
PyObject *runner_low_level(PyObject *self, PyObject *args) {
    const char *kind, *name;
    void *function;
    PyObject *arrays, *capsule;
    Py_ssize_t narguments;
    int ndim_in = 1, ndim_out = 0;
    Target *target;
    if (!PyArg_ParseTuple(args, "snO:low_level", &kind, &narguments, &arrays)) return NULL;
    if (strcmp(kind, "integrand") == 0) {
        name = INTEGRAND, function = (void *)integrand, ndim_in = 0;
    } else if (strcmp(kind, "filter") == 0) {
        name = FILTER, function = (void *)filter;
    } else if (strcmp(kind, "line_filter") == 0) {
        name = LINE_FILTER, function = (void *)line_filter, ndim_out = 1;
    } else {
        PyErr_SetString(PyExc_ValueError, "low_level: the kind must be integrand, filter or line_filter");
        return NULL;
    }
    if (narguments < 1 || narguments > (ndim_in == 0 ? MAX_ARGUMENTS : 1)) {
        PyErr_Format(PyExc_ValueError, "low_level: this kind of function cannot have %zd arguments", narguments);
        return NULL;
    }
    target = new_target((Runner *)self, narguments, arrays, ndim_in, ndim_out);
    if (target == NULL) return NULL;
    capsule = PyCapsule_New(function, name, free_capsule);
    if (capsule == NULL || PyCapsule_SetContext(capsule, target) < 0) {
        Py_XDECREF(capsule); /* the context is not set, so free_capsule frees nothing */
        free_target(target);
        return NULL;
    }
    return capsule;
}
