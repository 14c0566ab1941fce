/* What the parts of chainrule._src.native._loops share. */

#ifndef CHAINRULE_LOOPS_H
#define CHAINRULE_LOOPS_H

#include <Python.h>
#include <numpy/npy_common.h>

/* the signature of every inner loop: NumPy's, SciPy's, ours (kernels.c) */
typedef void (*InnerLoop)(char **args, const npy_intp *dims, const npy_intp *strides, void *data);

/* of the words and of what Python calls; native/code.py has the same number */
#define VERSION 11

#define MAX_ARGS 32
#define MAX_OUTER 64

/* kernels.c: a new dict, name -> address */
PyObject *kernel_addresses(void);

/* lu_cache.c */
PyObject *use_lapack(PyObject *self, PyObject *args);
void shared_solve(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_inv(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_slogdet(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_det(char **args, const npy_intp *dims, const npy_intp *strides, void *data);

/* guards.c */
PyObject *first_broken(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *class_version(PyObject *self, PyObject *cls);

/* frame_tracing.c */
PyObject *enable_untraced(PyObject *self, PyObject *begin);
PyObject *mark_untraced(PyObject *self, PyObject *code);
PyObject *trace_frames(PyObject *self, PyObject *begin);

/* interpreter.c */
typedef struct {
    double work;      /* about how many element operations the code does */
    npy_intp scratch; /* bytes that its groups want at bases[1] */
    npy_intp nbases;  /* how many bases there are, with those that move */
} CodeStats;

/* NULL if the words in [start, stop) are whole steps that use bases below nbases, else what is wrong with them */
const char *check_code(const npy_intp *code, npy_intp start, npy_intp stop, npy_intp nbases, CodeStats *survey);
#define FAILED 16
/* run the steps in [start, stop); returns floating-point exceptions as NumPy's bits (divide 1, over 2, under 4, invalid 8), and
   FAILED if a loop that may fail did.
   `bases` has room for as many as the survey says. */
int run_code(const npy_intp *code, npy_intp start, npy_intp stop, char **bases);
/* the same for whole steps, without looking at exceptions before and after */
int run_steps(const npy_intp *step, const npy_intp *end, char **bases);
const char *check_steps(const npy_intp *step, const npy_intp *end, npy_intp nbases, CodeStats *survey);

/* loop_executor.c */
#define LOOP_BODY_HEAD 5
int run_loop_body(const npy_intp *step, char **bases);
const char *check_loop_body(const npy_intp *step, npy_intp nbases, CodeStats *survey);

/* pool.c: call part(context, first, last, scratch) until [0, count) is done, in several threads if `work`, about how many
   element operations it is, pays for them. `scratch` is the calling thread's; others bring `scratch_bytes` of their own.
   Returns the exceptions that others met. */
typedef void (*RangeFunction)(const void *context, npy_intp first, npy_intp last, char *scratch);
int parallel_for(RangeFunction function, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch);
int get_threads(void);
void set_threads(int count);

/* floating-point exceptions of this thread since they were cleared, in NumPy's bits */
void clear_exceptions(void);
int read_exceptions(void);

#endif
