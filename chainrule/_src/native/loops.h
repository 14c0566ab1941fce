/* Declarations shared by the C files of chainrule._src.native._loops. */

#ifndef CHAINRULE_LOOPS_H
#define CHAINRULE_LOOPS_H

#include <Python.h>
#include <numpy/npy_common.h>

/* the signature of all kernels: ufunc inner loops of NumPy and SciPy, and those of kernels.c */
typedef void (*InnerLoop)(char **args, const npy_intp *dims, const npy_intp *strides, void *data);

/* The version of the code format and of the functions that Python calls. native/code.py has the same number. */
#define VERSION 19

#define MAX_ARGS 32
#define MAX_OUTER 64

/* kernels.c: return a new dict, name -> address */
PyObject *kernel_addresses(void);

/* lu_cache.c */
PyObject *use_lapack(PyObject *self, PyObject *args);
void shared_solve(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_inv(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_slogdet(char **args, const npy_intp *dims, const npy_intp *strides, void *data);
void shared_det(char **args, const npy_intp *dims, const npy_intp *strides, void *data);

/* matmul.c */
extern PyMethodDef matmul_functions[];
PyObject *product_without_blas(PyObject *x, PyObject *y); /* the product of two small matrices; NULL without an error if BLAS must compute it */

/* depthwise.c */
extern PyMethodDef depthwise_functions[];

/* linear_algebra.c */
extern PyMethodDef linear_algebra_functions[];
void triangular(char **args, const npy_intp *dims, const npy_intp *strides, void *data);

/* small_matrices.c */
extern PyMethodDef small_matrix_functions[];

/* guards.c */
PyObject *first_broken(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *class_version(PyObject *self, PyObject *cls);
PyObject *class_attribute(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* frame_tracing.c */
PyObject *enable_untraced(PyObject *self, PyObject *begin);
PyObject *mark_untraced(PyObject *self, PyObject *code);
PyObject *trace_frames(PyObject *self, PyObject *args);
PyObject *drop_trace_references(PyObject *self, PyObject *arg);

#ifdef _MSC_VER
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL _Thread_local
#endif

/* kernels.c: the last check of a value that failed in a run of this thread. Only the first bytes of a long value are kept. */
typedef struct {
    int failed;
    npy_int64 ordinal;
    npy_intp nbytes;
    char value[16];
} FailedCheck;
void clear_failed_check(void);
const FailedCheck *last_failed_check(void);

/* interpreter.c */
typedef struct {
    double work;      /* estimated number of element operations */
    npy_intp scratch; /* scratch bytes that the groups need at bases[1] */
    npy_intp nbases;  /* number of base pointers, including moving bases */
} CodeStats;

/* Check that the words in [start, stop) are whole steps that use bases below nbases, and fill `stats`. Return NULL, or an error message. */
const char *check_code(const npy_intp *code, npy_intp start, npy_intp stop, npy_intp nbases, CodeStats *survey);
#define FAILED 16
/* Run the steps in [start, stop). Return the floating-point exceptions as NumPy's bits (divide 1, over 2, under 4, invalid 8),
   plus FAILED if a kernel that may fail did. `bases` must have CodeStats.nbases elements. */
int run_code(const npy_intp *code, npy_intp start, npy_intp stop, char **bases);
/* The same for a range of whole steps, without clearing exceptions before and reading them after the last step. */
int run_steps(const npy_intp *step, const npy_intp *end, char **bases);
const char *check_steps(const npy_intp *step, const npy_intp *end, npy_intp nbases, CodeStats *survey);

/* loop_executor.c */
#define LOOP_BODY_HEAD 5
int run_loop_body(const npy_intp *step, char **bases);
const char *check_loop_body(const npy_intp *step, npy_intp nbases, CodeStats *survey);

/* pool.c: call function(context, first, last, scratch) for ranges that cover [0, count). Use several threads if `work`, the estimated
   number of element operations, is large enough. `scratch` belongs to the calling thread; helpers allocate `scratch_bytes` each.
   Return the floating-point exceptions of the helpers. */
typedef void (*RangeFunction)(const void *context, npy_intp first, npy_intp last, char *scratch);
int parallel_for(RangeFunction function, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch);
int get_threads(void);
void set_threads(int count);

/* clear and read the floating-point exceptions of this thread, in NumPy's bits */
void clear_exceptions(void);
int read_exceptions(void);

#endif
