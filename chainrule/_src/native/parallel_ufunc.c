/* ParallelUfunc(ufunc): a callable like the ufunc, with large calls split among threads.

   If the operands are large contiguous arrays of equal shape and dtype, float or double, each thread calls the ufunc's inner loop on some
   of the elements. All other calls go to the ufunc. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "runner.h"

#include <numpy/ufuncobject.h>
#include <math.h>
#include <stddef.h>
#include <structmember.h> /* names of Python 3.11 */

/* Number of elements from which threads share a call. Waking a thread may take 20 microseconds, and a shorter loop gains nothing. */
#define PARALLEL_FROM 500000
/* Elements of a chunk: a multiple of all vector lengths, so that each element has the bits of a single loop over all of them */
#define CHUNK 4096

typedef struct {
    InnerLoop fn;
    void *data;
} Loop;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyUFuncObject *ufunc;
    Loop of_float, of_double;
} ParallelUfunc;

typedef struct {
    Loop loop;
    int nargs;
    npy_intp n;
    char *args[3];
    npy_intp strides[3];
    union {
        float narrow;
        double wide;
    } number; /* the second operand if it is a number */
} ParallelCall;

static void run_range(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const ParallelCall *call = context;
    npy_intp start = first * CHUNK, n = last * CHUNK < call->n ? (last - first) * CHUNK : call->n - start;
    char *args[3];
    int k;
    (void)scratch;
    for (k = 0; k < call->nargs; k++) args[k] = call->args[k] + start * call->strides[k];
    call->loop.fn(args, &n, call->strides, call->loop.data);
}

/* Convert a number to the dtype of the array; 0 if only NumPy can convert it. */
static int read_number(PyObject *object, int type, ParallelCall *call) {
    double value;
    if (!PyFloat_CheckExact(object)) return 0;
    value = PyFloat_AS_DOUBLE(object);
    if (type == NPY_DOUBLE) {
        call->number.wide = value;
    } else {
        call->number.narrow = (float)value;
        if (isfinite(value) && !isfinite(call->number.narrow)) return 0; /* overflow: NumPy warns */
    }
    call->args[1] = (char *)&call->number;
    call->strides[1] = 0;
    return 1;
}

/* Fill `call` if threads can share the call, else return 0. */
static int read_call_key(ParallelUfunc *self, PyObject *const *args, ParallelCall *call) {
    PyArrayObject *first = (PyArrayObject *)args[0], *second;
    int type;
    if (!PyArray_CheckExact(args[0]) || PyArray_SIZE(first) < PARALLEL_FROM || !PyArray_ISCARRAY_RO(first)) return 0;
    type = PyArray_TYPE(first);
    if (type != NPY_FLOAT && type != NPY_DOUBLE) return 0;
    call->loop = type == NPY_FLOAT ? self->of_float : self->of_double;
    if (call->loop.fn == NULL || get_threads() < 2) return 0;
    call->nargs = self->ufunc->nargs;
    call->n = PyArray_SIZE(first);
    call->args[0] = PyArray_BYTES(first);
    call->strides[0] = call->strides[1] = call->strides[2] = PyArray_ITEMSIZE(first);
    if (self->ufunc->nin == 1 || args[1] == args[0]) {
        call->args[1] = call->args[0];
        return 1;
    }
    if (!PyArray_CheckExact(args[1])) return read_number(args[1], type, call);
    second = (PyArrayObject *)args[1];
    call->args[1] = PyArray_BYTES(second);
    return PyArray_TYPE(second) == type && PyArray_ISCARRAY_RO(second) && PyArray_SAMESHAPE(first, second);
}

static PyObject *call_in_parallel(ParallelUfunc *self, PyArrayObject *shape_of, ParallelCall *call) {
    PyObject *out = PyArray_SimpleNew(PyArray_NDIM(shape_of), PyArray_DIMS(shape_of), PyArray_TYPE(shape_of));
    int exceptions;
    if (out == NULL) return NULL;
    call->args[call->nargs - 1] = PyArray_BYTES((PyArrayObject *)out);
    Py_BEGIN_ALLOW_THREADS
    clear_exceptions();
    exceptions = parallel_for(run_range, call, (call->n + CHUNK - 1) / CHUNK, (double)call->n, 0, NULL) | read_exceptions();
    Py_END_ALLOW_THREADS
    if (exceptions && PyUFunc_GiveFloatingpointErrors(self->ufunc->name, exceptions) < 0) Py_CLEAR(out);
    return out;
}

static PyObject *parallel_ufunc_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    ParallelUfunc *self = (ParallelUfunc *)object;
    ParallelCall call;
    if (kwnames == NULL && PyVectorcall_NARGS(nargsf) == self->ufunc->nin && read_call_key(self, args, &call)) {
        return call_in_parallel(self, (PyArrayObject *)args[0], &call);
    }
    return PyObject_Vectorcall((PyObject *)self->ufunc, args, nargsf, kwnames);
}

/* Return the loop for operands and results of one type; fn is NULL if the ufunc has none. */
static Loop loop_of(const PyUFuncObject *ufunc, int type) {
    Loop loop = {NULL, NULL};
    int i, k;
    for (i = 0; i < ufunc->ntypes && loop.fn == NULL; i++) {
        for (k = 0; k < ufunc->nargs && ufunc->types[i * ufunc->nargs + k] == type; k++) {}
        if (k < ufunc->nargs) continue;
        loop.fn = (InnerLoop)ufunc->functions[i];
        loop.data = ufunc->data == NULL ? NULL : (void *)ufunc->data[i];
    }
    return loop;
}

static PyObject *parallel_ufunc_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"ufunc", NULL};
    PyUFuncObject *ufunc;
    ParallelUfunc *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:ParallelUfunc", names, &PyUFunc_Type, &ufunc)) return NULL;
    if (ufunc->nin < 1 || ufunc->nin > 2 || ufunc->nout != 1 || ufunc->core_enabled || ufunc->functions == NULL) {
        PyErr_SetString(PyExc_ValueError, "a ParallelUfunc needs an elementwise ufunc of one or two operands, with one result");
        return NULL;
    }
    self = (ParallelUfunc *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = parallel_ufunc_call;
    self->ufunc = (PyUFuncObject *)Py_NewRef((PyObject *)ufunc);
    self->of_float = loop_of(ufunc, NPY_FLOAT);
    self->of_double = loop_of(ufunc, NPY_DOUBLE);
    return (PyObject *)self;
}

static void parallel_ufunc_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_DECREF(((ParallelUfunc *)object)->ufunc);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ParallelUfunc, vectorcall), READONLY, NULL},
    {"ufunc", T_OBJECT, offsetof(ParallelUfunc, ufunc), READONLY, "the ufunc that is called"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "ParallelUfunc(ufunc): call a ufunc; threads share large calls"},
    {Py_tp_new, parallel_ufunc_new},
    {Py_tp_dealloc, parallel_ufunc_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec parallel_ufunc_spec = {"chainrule._src.native._loops.ParallelUfunc", sizeof(ParallelUfunc), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, slots};
