/* Calls as integers: see encoding.c. */

#ifndef CHAINRULE_ENCODING_H
#define CHAINRULE_ENCODING_H

#include "rows.h"
#include "trace.h"

enum { MAX_UFUNC_ARGS = 3 };
enum { PURE = 1, KEPT = 2 }; /* flags of a call, as in compiling/encoding.py */

typedef struct {
    PyObject *variables, *others;   /* a list of Vars; {Var: its index in the list} for Vars that `by_number` lacks */
    Buffer number, layout, address; /* for each Var */
    npy_int32 *by_number;           /* the index of a Var with each number below `numbers`; -1 if there is none */
    npy_int64 numbers;
    PyObject *layout_indices; /* EncodedCalls.layouts: {(shape, strides, dtype): index} */
    PyObject *dtypes;         /* a list of the dtypes of all rows of `layouts`, or NULL if arrays keep them alive */
    Rows layouts;             /* dtype, number of axes, shape and strides */
    Buffer layout_numbers;    /* for each of these rows the index of the layout */
    Buffer layout_rows;       /* for each index the first of these rows */
} Variables;

/* The arrays of EncodedCalls while they grow. Forms of ufunc calls are numbered from 0, and others from -1 downwards, until all calls are encoded. */
typedef struct {
    Variables variables;
    Buffer starts, operands, result_starts, results, forms, signatures, flags;
    Buffer first, ufunc_forms, other_forms; /* the first call of each signature, and of each form */
    Buffer step_forms;                      /* for each row of `steps` its form */
    Buffer row;
    Rows ufunc_calls, steps, distinct;
} Encoder;

void free_encoder(Encoder *e);
/* Return the index of the layout of an array; -2 error. */
npy_int32 layout_number(Variables *v, PyObject *array);
/* Borrow the step of a template that a call was appended from; NULL if there is none. */
PyObject *step_of(PyObject *call);
/* Set `row` for a call of an elementwise ufunc on Vars, floats and ints: the function, and kind and value of each argument. Return its length, or 0 for other arguments. */
size_t ufunc_row(PyObject *function, PyObject *const *args, Py_ssize_t n, npy_int64 *row);
/* Find the form of a call, which may be the first one of this form. forms: the function for calls that are not of elementwise ufuncs. -1 error */
int find_form(Encoder *e, npy_int32 call_index, PyObject *call, PyObject *forms, npy_int32 *form);
/* Give the forms of ufunc calls, numbered from 0, the numbers after those of other calls, numbered from -1 downwards. */
void number_ufunc_forms_last(Buffer *forms, npy_int32 others);

#endif
