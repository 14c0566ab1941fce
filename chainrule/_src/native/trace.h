/* Append calls to a trace: see trace.c. */

#ifndef CHAINRULE_TRACE_H
#define CHAINRULE_TRACE_H

#include "eager.h"

/* the recorder of this thread and its level; owned until close_recording(). location: the source location of its calls */
typedef struct {
    PyObject *recorder, *level;
    SourceLocation location;
} Recording;

/* 1 if this thread traces and calls may be appended here, 0 if Python must do it, -1 error */
int open_recording(Recording *recording);
void close_recording(Recording *recording);
PyObject *array_of_traced(const Recording *recording, PyObject *x);
/* Append a call of a function with this result. Return the Traced of the result. Operands: Traced values, plain arrays and numbers. */
PyObject *note_call(const Recording *recording, PyObject *function, PyObject *const *operands, Py_ssize_t n, PyObject *op_name, PyObject *array, int scalar);
/* Run a program on traced values, each step as a call of its ufunc. `values` has the inputs. NULL without an error where Python must do it. */
PyObject *trace_program(const Recording *recording, const Program *program, PyObject **values, PyObject *op_name);
/* Call a ufunc on traced values, and append the call. NULL without an error where Recorder.call must do it. */
PyObject *call_traced_ufunc(const Recording *recording, PyObject *ufunc, PyObject *const *operands, Py_ssize_t n, PyObject *op_name);
Py_ssize_t count_calls(const Recording *recording);               /* the number of calls in the trace; -1 error */
void drop_calls(const Recording *recording, Py_ssize_t begin);    /* remove the calls from an index on: Recorder.drop */
void clear_failed(const Recording *recording);                    /* before a call of a function: no exception yet */
/* Append a call without results; steals args and kwargs, which may be NULL with an error. */
PyObject *add_call(const Recording *recording, PyObject *function, PyObject *method, PyObject *args, PyObject *kwargs, PyObject *op_name, PyObject *pure);
/* A new Traced of a call's result. element: a 0-d array is a NumPy scalar in eager code */
PyObject *new_result(const Recording *recording, PyObject *array, int plain, int scalar, int element);
/* templates.c: the value of a primitive, by its template; NULL without an error where there is none */
PyObject *template_of_value(Recording *recording, PyObject *prim, PyObject *operands, PyObject *params);
/* templates.c: the gradients of a node's operands, by the template of its rule; NULL without an error where there is none */
PyObject *template_of_rule(Recording *recording, PyObject *node, PyObject *g, PyObject *saved, PyObject *edges);
int is_plain_call(const Recording *recording, PyObject *const *operands, Py_ssize_t n);
PyObject *var_of_traced(PyObject *traced); /* borrowed */
int is_scalar_traced(PyObject *traced);
void set_results(PyObject *call, PyObject *variables, PyObject *step); /* steals `variables` */
/* Have calls note the source location of a backward pass, or of a call; unlocate() ends it. */
int locate(Recording *recording, PyObject *pass);
void take_location(Recording *recording, PyObject *call);
int keep_location(Recording *recording, PyObject *code, long lasti); /* the same for a location: -1 error */
void unlocate(Recording *recording);
PyObject *current_op_name(const Recording *recording);                  /* a new reference: the operation that a rule is called for, or "" */
PyObject *as_tensor_data(const Recording *recording, PyObject *traced); /* steals `traced`; converts a NumPy scalar to a 0-d array */
PyObject *any_array_of_traced(const Recording *recording, PyObject *x); /* borrowed: as array_of_traced, also of NumPy's scalars */
/* primitive.c: the value of an op that is not a ufunc (one_step: only if it is one correctly rounded ufunc), and the gradients of a node's
   operands (1 done, 0 Python must do it, -1 error) */
PyObject *trace_op_value(const Recording *recording, Op *op, PyObject *const *arrays, PyObject *const *operands, int n, int one_step);
int trace_op_rules(const Recording *recording, PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads);
/* call_list.c: the list `recorder.calls` */
enum { MAX_CALL_ARGS = 8 };
/* Append a call: 1 if `calls` is another object than a CallList, -1 error. */
int append_call(PyObject *calls, PyObject *call);
/* Append a pure call of a ufunc on Vars and numbers as integers: 1; 0 if it must be appended as an object, because it may be the first of its kind; -1 error. */
int append_row(PyObject *calls, PyObject *function, PyObject *const *args, Py_ssize_t n, PyObject *op_name, SourceLocation location, PyObject *result);
/* The same for a call of the step of a template. vars: its operands, then its results */
int append_step(Recording *recording, PyObject *step, PyObject *const *vars, Py_ssize_t operands, Py_ssize_t results);
/* Return the number of calls; -1 for another object than a CallList. */
Py_ssize_t count_calls_of(PyObject *calls);
/* Count the memory of a new value, and pack calls if there are many new ones or much memory was allocated: -1 error. */
int note_new_value(PyObject *recorder, PyObject *array);
/* Pack the rest of the calls of a long trace, at its end: -1 error. */
int pack_calls(PyObject *recorder);
typedef struct {
    npy_int64 calls, bytes; /* pack calls each time after so many were appended, or so many bytes allocated */
} PackSizes;
/* Return the sizes before. */
PackSizes set_pack_sizes(PackSizes sizes);
int add_call_list(PyObject *module);
int note_holder(const Recording *recording, PyObject *tensor); /* CapturedArrays.note_holder */
int drop_dead_references(PyObject *recorder);                  /* remove references to tensors that no longer exist from the list `holders` of a recorder: -1 error */

/* the classes of a trace, and the offsets of their slots */
extern PyTypeObject *var_type, *call_type;
extern Py_ssize_t var_array, var_dtype, var_number, var_shape;
extern Py_ssize_t call_function, call_method, call_args, call_kwargs, call_results, call_op_name, call_code, call_lasti, call_pure, call_kept, call_step;
extern Py_ssize_t recorder_calls;
extern PyObject *method_name; /* "__call__" */
extern PyTypeObject *step_type; /* interpreters/templates.py: TemplateStep */

/* encoding.c: call a function for each Var in nested containers, in the order of operand_vars() in compiling/encoding.py: -1 error */
typedef int (*VarCallback)(PyObject *var, void *context);
int visit_vars(PyObject *x, VarCallback visit, void *context);

extern PyMethodDef trace_functions[], template_functions[], pass_functions[], encoding_functions[];

#endif
