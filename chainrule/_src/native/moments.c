/* Values of reductions and scans that NumPy computes by several calls: variances, norms, log-sum-exp, cumulative sums and products. primitive.c
   calls statistic(). tape/eager.py selects the kind of an op.

   The arithmetic is that of table/statistics.py and table/reduction.py in the same order: sums are those of NumPy's loop, which adds pairwise. A
   result that is not finite, and each floating-point exception that NumPy may report, is left to Python. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <math.h>
#include <stdint.h>

enum { OVERFLOWS = 2, UNDERFLOWS = 4 };

/* x of shape (outer, n, inner), and a result of shape (outer, inner) */
typedef struct {
    const char *x;
    char *out;
    npy_intp outer, n, inner;
    int kind, exceptions; /* exceptions: floating-point exceptions so far */
    double correction;    /* variances: subtracted from n; norms: the order */
} Reduction;

/* ---- loops. The compiler does not contract products and sums (-std=c11), so each operation is rounded as in NumPy. */

#define LOOPS(NAME, TYPE)                                                                                          \
    static void subtract_##NAME(TYPE *to, const TYPE *x, const TYPE *y, npy_intp outer, npy_intp n, npy_intp inner) { \
        npy_intp o, i, k;                                                                                          \
        for (o = 0; o < outer; o++, y += inner) {                                                                  \
            for (i = 0; i < n; i++, x += inner, to += inner) {                                                     \
                for (k = 0; k < inner; k++) to[k] = x[k] - y[k];                                                   \
            }                                                                                                      \
        }                                                                                                          \
    }                                                                                                              \
    static void square_##NAME(TYPE *to, const TYPE *x, npy_intp n) {                                               \
        npy_intp i;                                                                                                \
        for (i = 0; i < n; i++) to[i] = x[i] * x[i];                                                               \
    }                                                                                                              \
    static void absolute_##NAME(TYPE *to, const TYPE *x, npy_intp n) {                                             \
        npy_intp i;                                                                                                \
        for (i = 0; i < n; i++) to[i] = x[i] < 0 ? -x[i] : x[i] + 0;                                               \
    }                                                                                                              \
    static void divide_##NAME(TYPE *x, double by, npy_intp n) {                                                    \
        TYPE divisor = (TYPE)by;                                                                                   \
        npy_intp i;                                                                                                \
        for (i = 0; i < n; i++) x[i] /= divisor;                                                                   \
    }                                                                                                              \
    static void root_##NAME(TYPE *x, npy_intp n) {                                                                 \
        npy_intp i;                                                                                                \
        for (i = 0; i < n; i++) x[i] = (TYPE)sqrt((double)x[i]); /* rounding twice gives the same root */          \
    }                                                                                                              \
    static void add_##NAME(TYPE *to, const TYPE *x, npy_intp n) {                                                  \
        npy_intp i;                                                                                                \
        for (i = 0; i < n; i++) to[i] += x[i];                                                                     \
    }                                                                                                              \
    static int maxima_##NAME(TYPE *to, const TYPE *x, npy_intp outer, npy_intp n, npy_intp inner) {                \
        npy_intp o, i, k;                                                                                          \
        for (o = 0; o < outer; o++, to += inner) {                                                                 \
            for (k = 0; k < inner; k++) to[k] = x[k];                                                              \
            for (i = 0; i < n; i++, x += inner) {                                                                  \
                for (k = 0; k < inner; k++) {                                                                      \
                    if (!isfinite(x[k])) return 0;                                                                 \
                    if (x[k] > to[k]) to[k] = x[k];                                                                \
                }                                                                                                  \
            }                                                                                                      \
        }                                                                                                          \
        return 1;                                                                                                  \
    }                                                                                                              \
    static int between_##NAME(const TYPE *x, npy_intp n, double low, double high) {                                \
        npy_intp i;                                                                                                \
        for (i = 0; i < n && x[i] > (TYPE)low && x[i] < (TYPE)high; i++) {}                                        \
        return i == n;                                                                                             \
    }                                                                                                              \
    static void scan_##NAME(TYPE *to, const TYPE *x, npy_intp outer, npy_intp n, npy_intp inner, int products) {   \
        npy_intp o, i, k;                                                                                          \
        for (o = 0; o < outer; o++, x += n * inner, to += n * inner) {                                             \
            for (k = 0; k < inner; k++) {                                                                          \
                double total = x[k];                                                                               \
                to[k] = x[k];                                                                                      \
                for (i = 1; i < n; i++) {                                                                          \
                    total = products ? total * (double)x[i * inner + k] : total + (double)x[i * inner + k];        \
                    to[i * inner + k] = (TYPE)total;                                                               \
                }                                                                                                  \
            }                                                                                                      \
        }                                                                                                          \
    }
LOOPS(float, float)
LOOPS(double, double)

#define CALL(kind, name, to, ...) ((kind) ? name##_double((double *)(to), __VA_ARGS__) : name##_float((float *)(to), __VA_ARGS__))
#define CALL2(kind, name, to, x, ...) ((kind) ? name##_double((double *)(to), (const double *)(x), __VA_ARGS__) : name##_float((float *)(to), (const float *)(x), __VA_ARGS__))

static void subtract(const Reduction *r, char *to, const char *y) {
    if (r->kind) subtract_double((double *)to, (const double *)r->x, (const double *)y, r->outer, r->n, r->inner);
    else subtract_float((float *)to, (const float *)r->x, (const float *)y, r->outer, r->n, r->inner);
}

static void add_up(Reduction *r, const char *x, char *to) {
    r->exceptions |= take_exceptions(); /* NumPy's loop starts without exceptions */
    r->exceptions |= sum_middle_axis(r->kind, x, to, r->outer, r->n, r->inner, r->kind ? 8 : 4);
}

static int are_finite(int kind, const char *x, npy_intp n) { return kind ? between_double((const double *)x, n, -HUGE_VAL, HUGE_VAL) : between_float((const float *)x, n, -HUGE_VAL, HUGE_VAL); }

/* ---- reductions: 1 done, 0 slow path. `scratch` has the size of x and the result together. */

static int variance(Reduction *r, char *scratch, int root) {
    npy_intp count = r->outer * r->inner, size = count * r->n;
    char *means = scratch + size * (r->kind ? 8 : 4);
    if ((double)r->n - r->correction <= 0) return 0;
    add_up(r, r->x, means);
    CALL(r->kind, divide, means, (double)r->n, count);
    subtract(r, scratch, means);
    CALL2(r->kind, square, scratch, scratch, size);
    add_up(r, scratch, r->out);
    if ((r->exceptions | take_exceptions()) & ~(OVERFLOWS | UNDERFLOWS)) return 0;
    r->exceptions = 0;
    if (!r->kind && !between_float((const float *)r->out, count, 1e-28, HUGE_VAL)) return 0; /* computed in double precision */
    CALL(r->kind, divide, r->out, (double)r->n - r->correction, count);
    if (root) CALL(r->kind, root, r->out, count);
    return 1;
}

static int norm(Reduction *r, char *scratch, int squares) {
    if (r->n == 1) return 0;
    if (squares) CALL2(r->kind, square, scratch, r->x, r->outer * r->n * r->inner);
    else CALL2(r->kind, absolute, scratch, r->x, r->outer * r->n * r->inner);
    add_up(r, scratch, r->out);
    if (squares) CALL(r->kind, root, r->out, r->outer * r->inner);
    return 1;
}

static int log_sum_exp(Reduction *r, char *scratch) {
    static Function exponential, logarithm;
    npy_intp count = r->outer * r->inner, size = count * r->n, step = r->kind ? 8 : 4, strides[2] = {step, step};
    char *maxima = scratch + size * step, *args[2] = {scratch, scratch};
    if (logarithm.value == NULL && (read_numpy_function(&exponential, "exp", 1) < 0 || read_numpy_function(&logarithm, "log", 1) < 0)) return 0;
    if (exponential.kernels[r->kind].fn == NULL || logarithm.kernels[r->kind].fn == NULL || !CALL2(r->kind, maxima, maxima, r->x, r->outer, r->n, r->inner)) return 0;
    subtract(r, scratch, maxima);
    exponential.kernels[r->kind].fn(args, &size, strides, exponential.kernels[r->kind].data);
    if (take_exceptions()) return 0; /* now, because later loops clear earlier exceptions */
    add_up(r, scratch, r->out);
    args[0] = args[1] = r->out;
    logarithm.kernels[r->kind].fn(args, &count, strides, logarithm.kernels[r->kind].data);
    CALL2(r->kind, add, r->out, maxima, count);
    return 1;
}

static int reduce(int statistic_kind, Reduction *r) {
    npy_intp bytes = (r->outer * r->n * r->inner + r->outer * r->inner) * (r->kind ? 8 : 4);
    double small[256];
    char *scratch = bytes > (npy_intp)sizeof(small) ? PyMem_Malloc((size_t)bytes) : (char *)small;
    int done = 0;
    if (scratch == NULL) return 0;
    take_exceptions();
    if (statistic_kind == VARIANCE || statistic_kind == DEVIATION) done = variance(r, scratch, statistic_kind == DEVIATION);
    else if (statistic_kind == LOG_SUM_EXP) done = log_sum_exp(r, scratch);
    else if (statistic_kind == NORM && (r->correction == 2 || r->correction == 1)) done = norm(r, scratch, r->correction == 2);
    if (r->exceptions | take_exceptions()) done = 0;
    if (scratch != (char *)small) PyMem_Free(scratch);
    return done && are_finite(r->kind, r->out, r->outer * r->inner);
}

/* ---- calls */

/* Read the number that is the only parameter besides `known` other ones. */
static int read_parameter(PyObject *params, const char *name, Py_ssize_t known, double *number) {
    PyObject *value = PyDict_GetItemString(params, name);
    return PyDict_GET_SIZE(params) == known + 1 && value != NULL && is_number(value) && read_number(value, 1, number);
}

PyObject *statistic(int statistic_kind, PyObject *x, PyObject *params) {
    PyArrayObject *array = (PyArrayObject *)x;
    npy_intp dims[NPY_MAXDIMS], size;
    int kind = kind_of(x), ndim = PyArray_NDIM(array), axis, done;
    Reduction r = {PyArray_BYTES(array), NULL, 0, 0, 0, kind, 0, 0};
    PyObject *out;
    Axes axes;
    if (kind < 0 || !PyArray_ISCARRAY_RO(array) || PyArray_SIZE(array) == 0 || PyArray_SIZE(array) > DIRECT_MOST) return NULL;
    if (statistic_kind == SCAN_SUM || statistic_kind == SCAN_PRODUCT) {
        if (!read_axis(params, &axis) || (axis += ndim) < 0) return NULL;
        axes = (Axes){axis, axis + 1, 1};
        memcpy(dims, PyArray_DIMS(array), sizeof(npy_intp) * (size_t)ndim);
    } else {
        if (statistic_kind == LOG_SUM_EXP ? PyDict_GET_SIZE(params) != 2 : !read_parameter(params, statistic_kind == NORM ? "ord" : "correction", 2, &r.correction)) return NULL;
        if (read_axes(params, ndim, &axes) != 1) return NULL;
        ndim = reduced_shape(array, axes, dims);
    }
    r.outer = PyArray_MultiplyList(PyArray_DIMS(array), axes.first);
    r.n = PyArray_MultiplyList(PyArray_DIMS(array) + axes.first, axes.end - axes.first);
    r.inner = PyArray_MultiplyList(PyArray_DIMS(array) + axes.end, PyArray_NDIM(array) - axes.end);
    if (r.n >= 2048 && (r.inner > 1 || axes.end - axes.first > 1)) return NULL; /* NumPy adds in another order: rules/sums.py */
    out = new_array(kind, ndim, dims);
    if (out == NULL) return NULL;
    r.out = PyArray_BYTES((PyArrayObject *)out);
    size = PyArray_SIZE((PyArrayObject *)out);
    if (statistic_kind == SCAN_SUM || statistic_kind == SCAN_PRODUCT) {
        take_exceptions();
        CALL2(kind, scan, r.out, r.x, r.outer, r.n, r.inner, statistic_kind == SCAN_PRODUCT);
        done = !take_exceptions() && are_finite(kind, r.out, size);
    } else {
        done = reduce(statistic_kind, &r);
    }
    if (!done) Py_CLEAR(out);
    return out;
}
