/* Inverses, solutions, determinants and Cholesky factors of matrices of at most 4 rows, with the bits of np.linalg.

   NumPy calls LAPACK for each matrix of a stack, and the call takes longer than the arithmetic. The loops here do the same arithmetic in the order of
   OpenBLAS's kernels, with fused multiply-adds. Other LAPACK libraries and processors may round differently. Before its first use for each function
   and size, a loop is therefore compared with NumPy's loop on random matrices, bit by bit. If one bit differs, NumPy's loop computes all matrices of
   that size.

   If a loop here raises an FP exception, finds a singular matrix, or has a result that is not finite, NumPy's loop repeats the call. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum { INVERSE, SOLUTION, DETERMINANT, LOG_DETERMINANT, FACTOR, FUNCTIONS };
enum { MOST = 4, MOST_SIDES = 8 };
enum { UNTRIED, SAME, DIFFERENT }; /* the result of the comparison with NumPy's loop */

static Loop numpy_loops[FUNCTIONS];
static unsigned char verdicts[FUNCTIONS][MOST + 1][MOST_SIDES + 1];

#if defined(__x86_64__) && defined(__GNUC__)
#define FUSED __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline, target("avx2,fma")))
static int has_fused_multiply_add(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#elif defined(__GNUC__) && defined(__FP_FAST_FMA)
#define FUSED
#define INLINE static inline __attribute__((always_inline))
static int has_fused_multiply_add(void) { return 1; }
#else
#define FUSED
#define INLINE static inline
static int has_fused_multiply_add(void) { return 0; }
#endif

#ifdef __GNUC__
#define MULTIPLY_ADD(x, y, z) __builtin_fma(x, y, z)
#else
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#endif

/* ---- one matrix, in columns */

/* As getf2: columns from left to right, each element by an inner product. Return whether no pivot is zero or subnormal. */
INLINE int factor(const int n, double *a, int *pivots) {
    int i, j, k;
    for (j = 0; j < n; j++) {
        double *column = a + j * n, pivot;
        int at = j;
        for (i = 0; i < j; i++) {
            double moved = column[i];
            column[i] = column[pivots[i]];
            column[pivots[i]] = moved;
        }
        for (i = 1; i < n; i++) {
            double sum = 0;
            for (k = 0; k < (i < j ? i : j); k++) sum = MULTIPLY_ADD(a[i + k * n], column[k], sum);
            if (j > 0) column[i] -= sum;
        }
        for (i = j + 1; i < n; i++) {
            if (fabs(column[i]) > fabs(column[at])) at = i;
        }
        pivots[j] = at;
        pivot = column[at];
        if (!(fabs(pivot) >= DBL_MIN)) return 0; /* LAPACK does not multiply by the inverse of a subnormal number */
        for (k = 0; k <= j && at != j; k++) {
            double moved = a[j + k * n];
            a[j + k * n] = a[at + k * n];
            a[at + k * n] = moved;
        }
        if (j + 1 < n) pivot = 1 / pivot;
        for (i = j + 1; i < n; i++) column[i] *= pivot;
    }
    return 1;
}

/* As getrs for one right-hand side. */
INLINE void solve_one(const int n, const double *a, const int *pivots, double *x) {
    int i, k;
    for (i = 0; i < n; i++) {
        double moved = x[i];
        x[i] = x[pivots[i]];
        x[pivots[i]] = moved;
    }
    for (k = 0; k < n; k++) {
        for (i = k + 1; i < n; i++) x[i] = MULTIPLY_ADD(-a[i + k * n], x[k], x[i]);
    }
    for (k = n - 1; k >= 0; k--) {
        x[k] /= a[k + k * n];
        for (i = 0; i < k; i++) x[i] = MULTIPLY_ADD(-a[i + k * n], x[k], x[i]);
    }
}

/* As getrs for several right-hand sides, the rows of x. OpenBLAS computes the last of three unknowns in a block of its own. */
INLINE void solve_many(const int n, const double *a, const int *pivots, double *x, npy_intp sides) {
    const int split = n == 3 ? 2 : n;
    double inverses[MOST];
    npy_intp s;
    int i, k;
    for (i = 0; i < n; i++) inverses[i] = 1 / a[i + i * n];
    for (s = 0; s < sides; s++, x += n) {
        for (i = 0; i < n; i++) {
            double moved = x[i];
            x[i] = x[pivots[i]];
            x[pivots[i]] = moved;
        }
        for (k = 0; k < split; k++) {
            for (i = k + 1; i < split; i++) x[i] = MULTIPLY_ADD(-a[i + k * n], x[k], x[i]);
        }
        if (split < n) {
            double sum = 0;
            for (k = 0; k < split; k++) sum = MULTIPLY_ADD(a[split + k * n], x[k], sum);
            x[split] = (x[split] - sum) * inverses[split];
            for (i = 0; i < split; i++) x[i] -= a[i + split * n] * x[split];
        }
        for (k = split - 1; k >= 0; k--) {
            x[k] *= inverses[k];
            for (i = 0; i < k; i++) x[i] = MULTIPLY_ADD(-a[i + k * n], x[k], x[i]);
        }
    }
}

/* As potf2. Return whether the matrix is positive definite. */
INLINE int factor_positive(const int n, double *a) {
    int i, j, k;
    for (j = 0; j < n; j++) {
        double sum = 0, inverse;
        for (k = 0; k < j; k++) sum = MULTIPLY_ADD(a[j + k * n], a[j + k * n], sum);
        if (j > 0) a[j + j * n] -= sum;
        if (!(a[j + j * n] > 0)) return 0;
        a[j + j * n] = sqrt(a[j + j * n]);
        if (j + 1 < n) inverse = 1 / a[j + j * n];
        for (i = j + 1; i < n; i++) {
            for (k = 0, sum = 0; k < j; k++) sum = MULTIPLY_ADD(a[i + k * n], a[j + k * n], sum);
            if (j > 0) a[i + j * n] -= sum;
            a[i + j * n] *= inverse;
            a[j + i * n] = 0;
        }
    }
    return 1;
}

static void log_determinant(const double *a, const int *pivots, int n, double *sign, double *logarithm) {
    int i;
    *sign = 1;
    *logarithm = 0;
    for (i = 0; i < n; i++) {
        double element = a[i + i * n];
        if (pivots[i] != i) *sign = -*sign;
        if (element < 0) {
            *sign = -*sign;
            element = -element;
        }
        *logarithm += log(element);
    }
}

/* ---- stacks */

typedef struct {
    const char *x, *y;                  /* the operands of the first matrix */
    char *out, *out2;
    npy_intp x_step, y_step, out_step, out2_step; /* strides in bytes from one matrix to the next */
    npy_intp x_row, x_column, y_row, y_column, out_row, out_column;
    npy_intp count, sides;
    int kind; /* 0 float, 1 double: the dtype of all arrays */
} Stack;

INLINE double read_number_at(const char *at, int kind) { return kind ? *(const double *)at : (double)*(const float *)at; }
INLINE void write_number_at(char *at, int kind, double value) {
    if (kind) *(double *)at = value;
    else *(float *)at = (float)value;
}

/* Return whether all results are finite, and no matrix is singular. */
INLINE int run_size(const int function, const int n, const Stack *s, const int kind) {
    double a[MOST * MOST], right[MOST * MOST_SIDES], zero = 0;
    int pivots[MOST];
    npy_intp o, i, k;
    for (o = 0; o < s->count; o++) {
        const char *x = s->x + o * s->x_step, *y = s->y + o * s->y_step;
        char *out = s->out + o * s->out_step;
        for (k = 0; k < n; k++) {
            for (i = 0; i < n; i++) a[i + k * n] = read_number_at(x + i * s->x_row + k * s->x_column, kind);
        }
        if (function == FACTOR) {
            if (!factor_positive(n, a)) return 0;
        } else if (!factor(n, a, pivots)) {
            return 0;
        }
        if (function == DETERMINANT || function == LOG_DETERMINANT) {
            double sign, logarithm;
            log_determinant(a, pivots, n, &sign, &logarithm);
            if (function == DETERMINANT) {
                sign *= exp(logarithm);
            } else {
                write_number_at(s->out2 + o * s->out2_step, kind, logarithm);
                zero += logarithm * 0;
            }
            write_number_at(out, kind, sign);
            zero += sign * 0;
            continue;
        }
        if (function == INVERSE || function == SOLUTION) {
            const npy_intp sides = function == INVERSE ? n : s->sides;
            for (k = 0; k < sides; k++) {
                for (i = 0; i < n; i++) right[i + k * n] = function == INVERSE ? i == k : read_number_at(y + i * s->y_row + k * s->y_column, kind);
            }
            if (sides == 1) solve_one(n, a, pivots, right);
            else solve_many(n, a, pivots, right, sides);
        }
        for (k = 0; k < (function == SOLUTION ? s->sides : n); k++) {
            for (i = 0; i < n; i++) {
                double value = function == FACTOR ? a[i + k * n] : right[i + k * n];
                zero += value * 0; /* nan, or an exception, for a number that is not finite */
                write_number_at(out + i * s->out_row + k * s->out_column, kind, value);
            }
        }
    }
    return zero == 0;
}

#define SIZES_OF(FUNCTION, KIND)                                         \
    switch (n) {                                                         \
    case 1: return run_size(FUNCTION, 1, s, KIND);                       \
    case 2: return run_size(FUNCTION, 2, s, KIND);                       \
    case 3: return run_size(FUNCTION, 3, s, KIND);                       \
    default: return run_size(FUNCTION, 4, s, KIND);                      \
    }
#define RUN(NAME, FUNCTION)                                              \
    FUSED static int run_##NAME(npy_intp n, const Stack *s) {            \
        if (s->kind) SIZES_OF(FUNCTION, 1)                               \
        else SIZES_OF(FUNCTION, 0)                                       \
    }
RUN(inverse, INVERSE)
RUN(solution, SOLUTION)
RUN(determinant, DETERMINANT)
RUN(log_determinant, LOG_DETERMINANT)
RUN(factor, FACTOR)
static int (*const RUNS[FUNCTIONS])(npy_intp, const Stack *) = {run_inverse, run_solution, run_determinant, run_log_determinant, run_factor};

/* ---- the comparison with NumPy's loop */

enum { TRIALS = 96 };

/* Return a random number; if `few`, one of a few integers, so that candidates for a pivot are often equal. */
static double random_number(uint64_t *state, int few) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return few ? (double)(int64_t)(*state >> 61) - 3 : (double)(int64_t)(*state >> 11) / 9007199254740992.0 - 0.5;
}

static int has_numpy_bits(int function, npy_intp n, npy_intp sides) {
    double x[MOST * MOST], y[MOST * MOST_SIDES], found[MOST * MOST_SIDES + 1], expected[MOST * MOST_SIDES + 1];
    uint64_t state = 20;
    int trial, same = 0;
    npy_intp i, j, k, dims[3] = {1, n, sides}, columns = function == SOLUTION ? sides : n, step = (npy_intp)sizeof(double);
    npy_intp strides[9] = {0};
    for (trial = 0; trial < TRIALS; trial++) {
        char *args[3] = {(char *)x, (char *)y, (char *)expected};
        Stack s = {(char *)x, (char *)y, (char *)found, (char *)(found + 1), 0, 0, 0, 0, step * n, step, step * sides, step, step * columns, step, 1, sides, 1};
        npy_intp operands = function == SOLUTION || function == LOG_DETERMINANT ? 3 : 2, *core = strides + operands;
        int tried;
        for (i = 0; i < n * n; i++) x[i] = random_number(&state, trial % 2);
        for (i = 0; i < n * sides; i++) y[i] = random_number(&state, trial % 2);
        if (function == FACTOR) {
            double square[MOST * MOST];
            for (i = 0; i < n; i++) {
                for (j = 0; j < n; j++) {
                    for (k = 0, square[i * n + j] = i == j ? 0.25 : 0; k < n; k++) square[i * n + j] += x[i * n + k] * x[j * n + k];
                }
            }
            memcpy(x, square, sizeof(square));
        }
        memset(found, 0, sizeof(found));
        memset(expected, 0, sizeof(expected));
        core[0] = step * n;
        core[1] = step;
        if (function == SOLUTION) {
            core[2] = core[4] = step * sides;
            core[3] = core[5] = step;
        } else if (function == LOG_DETERMINANT) {
            args[1] = (char *)expected;
            args[2] = (char *)(expected + 1);
        } else {
            args[1] = (char *)expected;
            core[2] = step * n;
            core[3] = step;
        }
        tried = RUNS[function](n, &s);
        if (take_exceptions() || !tried) continue; /* singular */
        numpy_loops[function].fn(args, dims, strides, numpy_loops[function].data);
        take_exceptions();
        if (memcmp(found, expected, sizeof(found)) != 0) return 0;
        same++;
    }
    return same >= TRIALS / 4;
}

/* Compute a stack; return 0 if NumPy must compute it. FP exception flags that were set before stay set. */
static int run_stack(int function, npy_intp n, const Stack *s) {
    unsigned char *verdict;
    npy_intp sides = function == SOLUTION ? s->sides : 1;
    int before, done;
    if (n < 1 || n > MOST || sides < 1 || sides > MOST_SIDES || numpy_loops[function].fn == NULL) return 0;
    before = take_exceptions();
    verdict = &verdicts[function][n][sides];
    if (*verdict == UNTRIED) *verdict = has_fused_multiply_add() && has_numpy_bits(function, n, sides) ? SAME : DIFFERENT;
    done = *verdict == SAME && RUNS[function](n, s);
    if (take_exceptions()) done = 0;
    if (before) feraiseexcept((before & 1 ? FE_DIVBYZERO : 0) | (before & 2 ? FE_OVERFLOW : 0) | (before & 4 ? FE_UNDERFLOW : 0) | (before & 8 ? FE_INVALID : 0));
    return done;
}

/* ---- inner loops like those of the gufuncs in np.linalg */

static void run_loop_of(int function, char **args, const npy_intp *dims, const npy_intp *strides) {
    Stack s = {args[0], args[1], args[function == SOLUTION ? 2 : 1], NULL, strides[0], strides[1], strides[function == SOLUTION ? 2 : 1], 0, 0, 0, 0, 0, 0, 0, dims[0], 0, 1};
    const npy_intp *core = strides + (function == SOLUTION || function == LOG_DETERMINANT ? 3 : 2);
    s.x_row = core[0];
    s.x_column = core[1];
    if (function == SOLUTION) {
        s.sides = dims[2];
        s.y_row = core[2];
        s.y_column = core[3];
        core += 2;
    } else if (function == LOG_DETERMINANT) {
        s.out2 = args[2];
        s.out2_step = strides[2];
    }
    if (function != DETERMINANT && function != LOG_DETERMINANT) {
        s.out_row = core[2];
        s.out_column = core[3];
    }
    if (!run_stack(function, dims[1], &s)) numpy_loops[function].fn(args, (npy_intp *)dims, (npy_intp *)strides, numpy_loops[function].data);
}

#define INNER_LOOP(NAME, FUNCTION) \
    static void NAME(char **args, const npy_intp *dims, const npy_intp *strides, void *data) { (void)data; run_loop_of(FUNCTION, args, dims, strides); }
INNER_LOOP(inverse_loop, INVERSE)
INNER_LOOP(solution_loop, SOLUTION)
INNER_LOOP(determinant_loop, DETERMINANT)
INNER_LOOP(log_determinant_loop, LOG_DETERMINANT)
INNER_LOOP(factor_loop, FACTOR)
static const InnerLoop LOOPS[FUNCTIONS] = {inverse_loop, solution_loop, determinant_loop, log_determinant_loop, factor_loop};
static const char *const NAMES[FUNCTIONS] = {"inv", "solve", "det", "slogdet", "cholesky_lo"};

/* ---- arrays */

/* Whether the matrices of an array follow one another, and NumPy's result is in C order. */
static int is_dense_stack(PyArrayObject *x) { return PyArray_NDIM(x) == 2 || PyArray_ISCARRAY_RO(x); }

/* small_matrices(function, x, y=None): the result, two results for slogdet; None if NumPy must compute it. function: index in NAMES */
static PyObject *small_matrices(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *x, *y, *out, *second = NULL;
    long function;
    int kind, ndim, done;
    npy_intp n, dims[NPY_MAXDIMS], size;
    Stack s = {NULL};
    (void)module;
    if (nargs < 2 || nargs > 3) {
        PyErr_SetString(PyExc_TypeError, "small_matrices takes two or three arguments");
        return NULL;
    }
    function = PyLong_AsLong(args[0]);
    if (function == -1 && PyErr_Occurred()) return NULL;
    if (function < 0 || function >= FUNCTIONS || (function == SOLUTION) != (nargs == 3)) {
        PyErr_SetString(PyExc_ValueError, "small_matrices: unknown function");
        return NULL;
    }
    kind = kind_of(args[1]);
    x = (PyArrayObject *)args[1];
    if (kind < 0 || PyArray_NDIM(x) < 2 || PyArray_SIZE(x) == 0 || !PyArray_ISALIGNED(x) || !is_dense_stack(x)) Py_RETURN_NONE;
    ndim = PyArray_NDIM(x);
    n = PyArray_DIM(x, ndim - 1);
    if (n > MOST || n != PyArray_DIM(x, ndim - 2)) Py_RETURN_NONE;
    size = kind ? 8 : 4;
    memcpy(dims, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)ndim);
    s.kind = kind;
    s.count = PyArray_MultiplyList(dims, ndim - 2);
    s.x = PyArray_BYTES(x);
    s.x_step = n * n * size;
    s.x_row = PyArray_STRIDE(x, ndim - 2);
    s.x_column = PyArray_STRIDE(x, ndim - 1);
    if (function == SOLUTION) {
        y = (PyArrayObject *)args[2];
        if (kind_of(args[2]) != kind || PyArray_NDIM(y) != ndim || PyArray_SIZE(y) == 0 || !PyArray_ISALIGNED(y) || !is_dense_stack(y)) Py_RETURN_NONE;
        if (memcmp(PyArray_DIMS(y), dims, sizeof(npy_intp) * (size_t)(ndim - 1)) != 0) Py_RETURN_NONE;
        s.sides = dims[ndim - 1] = PyArray_DIM(y, ndim - 1);
        s.y = PyArray_BYTES(y);
        s.y_step = n * s.sides * size;
        s.y_row = PyArray_STRIDE(y, ndim - 2);
        s.y_column = PyArray_STRIDE(y, ndim - 1);
    }
    if (function == DETERMINANT || function == LOG_DETERMINANT) {
        out = (PyArrayObject *)new_array(kind, ndim - 2, dims);
        if (function == LOG_DETERMINANT && out != NULL && (second = (PyArrayObject *)new_array(kind, ndim - 2, dims)) == NULL) Py_CLEAR(out);
        s.out_step = s.out2_step = size;
        if (second != NULL) s.out2 = PyArray_BYTES(second);
    } else {
        out = (PyArrayObject *)new_array(kind, ndim, dims);
        s.out_step = n * dims[ndim - 1] * size;
        s.out_row = dims[ndim - 1] * size;
        s.out_column = size;
    }
    if (out == NULL) return NULL;
    s.out = PyArray_BYTES(out);
    NPY_BEGIN_THREADS_DEF;
    if ((double)s.count * (double)(n * n) > RELEASE_FROM) NPY_BEGIN_THREADS;
    done = run_stack((int)function, n, &s);
    NPY_END_THREADS;
    if (done) return second == NULL ? (PyObject *)out : Py_BuildValue("(NN)", out, second);
    Py_DECREF(out);
    Py_XDECREF(second);
    Py_RETURN_NONE;
}

/* use_small_matrices(inv, solve, det, slogdet, cholesky_lo): for each gufunc the addresses of its loop for float64 and of the data; return the
   addresses of loops with the same results, by the names of the gufuncs */
static PyObject *use_small_matrices(PyObject *module, PyObject *args) {
    Py_ssize_t addresses[FUNCTIONS][2];
    PyObject *loops;
    int i;
    (void)module;
    if (!PyArg_ParseTuple(args, "(nn)(nn)(nn)(nn)(nn):use_small_matrices", &addresses[0][0], &addresses[0][1], &addresses[1][0], &addresses[1][1], &addresses[2][0], &addresses[2][1], &addresses[3][0], &addresses[3][1], &addresses[4][0], &addresses[4][1])) return NULL;
    loops = PyDict_New();
    for (i = 0; i < FUNCTIONS && loops != NULL; i++) {
        PyObject *address = PyLong_FromVoidPtr((void *)LOOPS[i]);
        if (address == NULL || PyDict_SetItemString(loops, NAMES[i], address) < 0) Py_CLEAR(loops);
        Py_XDECREF(address);
    }
    for (i = 0; i < FUNCTIONS && loops != NULL; i++) numpy_loops[i] = (Loop){(InnerLoop)addresses[i][0], (void *)addresses[i][1]};
    return loops;
}

PyMethodDef small_matrix_functions[] = {
    {"small_matrices", (PyCFunction)(void (*)(void))small_matrices, METH_FASTCALL, "small_matrices(function, x, y=None): np.linalg's inv, solve, det, slogdet or cholesky (function 0 to 4), or None if NumPy must compute it"},
    {"use_small_matrices", use_small_matrices, METH_VARARGS, "use_small_matrices(inv, solve, det, slogdet, cholesky_lo): set the addresses (loop, data) of the gufuncs' loops for float64; return those of loops with the same results, by name"},
    {NULL, NULL, 0, NULL},
};
