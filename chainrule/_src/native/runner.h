/* A program with its constants and the layouts of its arrays: what module.c makes, and lowlevel.c calls. */

#ifndef CHAINRULE_RUNNER_H
#define CHAINRULE_RUNNER_H

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL chainrule_loops_array_api
#define PY_UFUNC_UNIQUE_SYMBOL chainrule_loops_ufunc_api

#include "loops.h"

#include <numpy/arrayobject.h>

/* element operations from which other Python threads may run meanwhile */
#define RELEASE_FROM 20000

/* arenas that a runner keeps for its next calls */
#define KEPT_ARENAS 4

typedef struct {
    PyArray_Descr *descr;
    int ndim, written;
    npy_intp *shape, *strides;
} Layout;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *code; /* an array of npy_intp of our own */
    PyObject *constants;
    Layout *inputs, *outputs;
    Py_ssize_t ninputs, nconstants, noutputs;
    npy_intp runs; /* how often it was called with arrays that fit */
    npy_intp words, commit, arena_bytes, scratch_bytes, nbases; /* nbases: with those that move */
    double work;
    void *arenas[KEPT_ARENAS];
} Runner;

int has_layout(PyObject *object, const Layout *layout);
/* none of these needs the GIL */
char *take_arena(Runner *self); /* NULL where there is no memory */
void keep_arena(Runner *self, char *arena);
char *aligned(char *address);

/* parallel_ufunc.c: the type SharedUfunc */
extern PyType_Spec parallel_ufunc_spec;

/* lowlevel.c: a method of Runner */
PyObject *runner_low_level(PyObject *self, PyObject *args);

#endif
