/* The list of calls of a recorder: see call_list.c. */

#ifndef CHAINRULE_CALL_LIST_H
#define CHAINRULE_CALL_LIST_H

#include "encoding.h"

/* A Var that something refers to. first, last: the calls that compute it (-1: none) and last read it */
typedef struct {
    PyObject *var; /* owned */
    npy_int32 slot, first, last;
    unsigned char is_kept;  /* its value is needed: an argument or result of a call with side effects, or it crosses a boundary of the trace */
    unsigned char is_empty; /* its value was released before: its array has no memory */
    unsigned char is_released;  /* set by release_unused: the Var may be dropped */
    npy_int64 address;      /* set by release_unused: the address of its data from now on */
} LiveVar;

PyObject *array_of_var(PyObject *var); /* borrowed: the array of a Var, or NULL */

/* released_values.c: set `is_released` and `address` of Vars that nothing else refers to. outside: a set of the addresses of arrays from outside that own memory. regions:
   a list of reserved memory, which may get longer. boundaries: sorted numbers of calls. Return the bytes of the values that are not released; -1 error */
npy_int64 release_unused(LiveVar *live, Py_ssize_t count, PyObject *outside, PyObject *regions, const npy_int64 *boundaries, npy_intp n);
PyObject *owner_of(PyObject *array); /* borrowed: the last base of an array that is an array */
typedef struct {
    PyObject *region; /* borrowed; NULL if there is none */
    npy_int64 begin;
    npy_intp nbytes;
} ReservedPiece; /* the address space that stands for the memory of one released array and its views */
ReservedPiece find_piece(PyObject *regions, npy_int64 address);
int add_reserved_memory(PyObject *module);
void trim_memory(void); /* return free memory to the system */

#endif
