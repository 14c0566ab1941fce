/* Runner: a program with its constants and the layouts of its arrays. module.c defines it, and lowlevel.c calls it from C. */

#ifndef CHAINRULE_RUNNER_H
#define CHAINRULE_RUNNER_H

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL chainrule_loops_array_api
#define PY_UFUNC_UNIQUE_SYMBOL chainrule_loops_ufunc_api

#include "loops.h"

#include <numpy/arrayobject.h>

/* number of element operations from which a call releases the GIL */
#define RELEASE_FROM 20000

/* number of arenas that a runner keeps for its next calls */
#define KEPT_ARENAS 4

typedef struct {
    PyArray_Descr *descr;
    int ndim, written;
    npy_intp *shape, *strides;
} Layout;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *code; /* a private array of npy_intp */
    PyObject *constants;
    Layout *inputs, *outputs;
    Py_ssize_t ninputs, nconstants, noutputs;
    npy_intp runs; /* number of calls with arrays of the right layouts */
    npy_intp words, commit, arena_bytes, scratch_bytes, nbases; /* nbases: including moving bases */
    double work;
    void *arenas[KEPT_ARENAS];
} Runner;

int has_layout(PyObject *object, const Layout *layout);
/* None of these functions needs the GIL. */
char *take_arena(Runner *self); /* NULL if there is no memory */
void keep_arena(Runner *self, char *arena);
char *aligned(char *address);

/* lowlevel.c: a method of Runner */
PyObject *runner_low_level(PyObject *self, PyObject *args);

#endif
