/* Kernels for solve, inv, slogdet and det that share the LU factors of a matrix. compiling/factors.py uses them.

   NumPy's gufuncs factor the matrix in each call. These kernels have one more argument, a cache of recent factors: a matrix with the same bits
   has the same factors. The factors come from NumPy's own LAPACK. Its `gesv` is `getrf` and `getrs`, except if threads share the work;
   each of the three functions has its own size threshold for that. Where threads may share the work, `gesv` is called.

   The cache: number of used entries, index of the next entry; then the entries. Each entry has the `info` and the exceptions of `getrf`, the
   matrix in Fortran order, its factors, and the pivots. The first word is 0 at the beginning of a call of the plan. */

#include "loops.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

typedef void (*Getrf)(const void *m, const void *n, double *a, const void *lda, void *pivots, void *info);
typedef void (*Getrs)(const char *trans, const void *n, const void *nrhs, const double *a, const void *lda, const void *pivots, double *b, const void *ldb, void *info, size_t);

typedef void (*Gesv)(const void *n, const void *nrhs, double *a, const void *lda, void *pivots, double *b, const void *ldb, void *info);
typedef int (*Threads)(void);

static struct {
    Getrf getrf;
    Getrs getrs;
    Gesv gesv;
    Threads threads;
    int long_integers;
} LAPACK;

/* Number of rows from which OpenBLAS may use threads. With several right-hand sides, it always may. */
#define THREADED_FROM 64

PyObject *use_lapack(PyObject *self, PyObject *args) {
    Py_ssize_t getrf, getrs, gesv, threads;
    int bits;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnni:use_lapack", &getrf, &getrs, &gesv, &threads, &bits)) return NULL;
    LAPACK.getrf = (Getrf)getrf;
    LAPACK.getrs = (Getrs)getrs;
    LAPACK.gesv = (Gesv)gesv;
    LAPACK.threads = (Threads)threads;
    LAPACK.long_integers = bits == 64;
    Py_RETURN_NONE;
}

/* an integer argument of LAPACK, on little-endian machines */
typedef union {
    npy_int64 as64;
    npy_int32 as32;
} Integer;

static Integer integer(npy_intp value) {
    Integer x;
    x.as64 = 0;
    if (LAPACK.long_integers) x.as64 = value;
    else x.as32 = (npy_int32)value;
    return x;
}

static npy_intp op_value(const Integer *x) { return LAPACK.long_integers ? (npy_intp)x->as64 : (npy_intp)x->as32; }

enum { USED, NEXT, HEADER }; /* indices of words */
enum { ENTRY_INFO, ENTRY_EXCEPTIONS, ENTRY_HEADER };
#define EXCEPTIONS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

static npy_int64 *entry_at(npy_int64 *cache, npy_intp n, npy_intp k) { return cache + HEADER + k * (ENTRY_HEADER + 2 * n * n + n); }

static int is_same_matrix(const char *x, npy_intp row, npy_intp column, npy_intp n, const double *matrix) {
    npy_intp i, k;
    for (k = 0; k < n; k++) {
        const char *at = x + k * column;
        for (i = 0; i < n; i++, at += row, matrix++) {
            if (memcmp(at, matrix, sizeof(double)) != 0) return 0;
        }
    }
    return 1;
}

/* Return the cache entry with the factors of a matrix, factoring it if there is none. `entries` is the capacity of the cache. */
static npy_int64 *factor_entry(const char *x, npy_intp row, npy_intp column, npy_intp n, npy_int64 *cache, npy_intp entries) {
    npy_int64 *entry;
    double *matrix, *factors;
    Integer size = integer(n), info = integer(0);
    int before;
    npy_intp i, k;
    for (k = 0; k < cache[USED]; k++) {
        entry = entry_at(cache, n, k);
        if (is_same_matrix(x, row, column, n, (double *)(entry + ENTRY_HEADER))) return entry;
    }
    k = cache[USED] < entries ? cache[USED] : cache[NEXT] % entries;
    entry = entry_at(cache, n, k);
    cache[NEXT] = k + 1;
    matrix = (double *)(entry + ENTRY_HEADER);
    factors = matrix + n * n;
    for (k = 0; k < n; k++) {
        for (i = 0; i < n; i++) memcpy(matrix + k * n + i, x + i * row + k * column, sizeof(double));
    }
    memcpy(factors, matrix, (size_t)(n * n) * sizeof(double));
    before = fetestexcept(EXCEPTIONS);
    feclearexcept(EXCEPTIONS);
    LAPACK.getrf(&size, &size, factors, &size, factors + n * n, &info);
    entry[ENTRY_INFO] = op_value(&info);
    entry[ENTRY_EXCEPTIONS] = fetestexcept(EXCEPTIONS);
    feraiseexcept(before);
    if (cache[USED] < entries) cache[USED]++;
    return entry;
}

static npy_int64 *pivots_of(npy_int64 *entry, npy_intp n) { return entry + ENTRY_HEADER + 2 * n * n; }

static npy_intp pivot(const npy_int64 *entry, npy_intp n, npy_intp i) {
    const npy_int64 *pivots = entry + ENTRY_HEADER + 2 * n * n;
    return LAPACK.long_integers ? (npy_intp)pivots[i] : (npy_intp)((const npy_int32 *)pivots)[i];
}

static int threads_may_share(npy_intp n, npy_intp count) {
    return (n >= THREADED_FROM || count > 1) && (LAPACK.threads == NULL || LAPACK.threads() != 1);
}

/* Solve for `count` right-hand sides, the columns of `b`. Return whether there are solutions. */
static int solve(const char *x, const npy_intp *core, npy_intp n, npy_int64 *cache, npy_intp entries, double *b, npy_intp count) {
    Integer size = integer(n), sides = integer(count), info = integer(0);
    npy_int64 *entry = entry_at(cache, n, entries - 1);
    double *factors;
    npy_intp i, k;
    if (threads_may_share(n, count)) {
        factors = (double *)(entry + ENTRY_HEADER) + n * n;
        if (cache[USED] == entries) cache[USED]--;
        for (k = 0; k < n; k++) {
            for (i = 0; i < n; i++) memcpy(factors + k * n + i, x + i * core[0] + k * core[1], sizeof(double));
        }
        LAPACK.gesv(&size, &sides, factors, &size, pivots_of(entry, n), b, &size, &info);
    } else {
        entry = factor_entry(x, core[0], core[1], n, cache, entries);
        factors = (double *)(entry + ENTRY_HEADER) + n * n;
        info = integer((npy_intp)entry[ENTRY_INFO]);
        if (op_value(&info) == 0) LAPACK.getrs("N", &size, &sides, factors, &size, pivots_of(entry, n), b, &size, &info, 1);
    }
    if (op_value(&info) == 0) return 1;
    feraiseexcept(FE_INVALID);
    return 0;
}

/* matrix (m,m), right-hand sides (m,n) -> solutions (m,n), scratch memory, cache; `data` is the capacity of the cache */
void shared_solve(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    npy_intp n = dims[1], count = dims[2], i, k;
    const npy_intp *core = strides + 5;
    double *b = (double *)args[3];
    for (k = 0; k < count; k++) {
        for (i = 0; i < n; i++) memcpy(b + k * n + i, args[1] + i * core[2] + k * core[3], sizeof(double));
    }
    if (!solve(args[0], core, n, (npy_int64 *)args[4], (npy_intp)data, b, count)) return;
    for (k = 0; k < count; k++) {
        for (i = 0; i < n; i++) memcpy(args[2] + i * core[4] + k * core[5], b + k * n + i, sizeof(double));
    }
}

/* matrix -> inverse, scratch memory, cache */
void shared_inv(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    npy_intp n = dims[1], i, k;
    const npy_intp *core = strides + 4;
    double *b = (double *)args[2];
    memset(b, 0, (size_t)(n * n) * sizeof(double));
    for (i = 0; i < n; i++) b[i * n + i] = 1;
    if (!solve(args[0], core, n, (npy_int64 *)args[3], (npy_intp)data, b, n)) return;
    for (k = 0; k < n; k++) {
        for (i = 0; i < n; i++) memcpy(args[1] + i * core[2] + k * core[3], b + k * n + i, sizeof(double));
    }
}

static void sign_and_log(npy_int64 *entry, npy_intp n, double *sign, double *logarithm) {
    const double *factors = (double *)(entry + ENTRY_HEADER) + n * n;
    npy_intp i, swaps = 0;
    feraiseexcept((int)entry[ENTRY_EXCEPTIONS]);
    if (entry[ENTRY_INFO] != 0) {
        *sign = 0;
        *logarithm = -HUGE_VAL;
        return;
    }
    for (i = 0; i < n; i++) swaps += pivot(entry, n, i) != i + 1;
    *sign = swaps % 2 ? -1 : 1;
    *logarithm = 0;
    for (i = 0; i < n; i++) {
        double element = factors[i * (n + 1)];
        if (element < 0) {
            *sign = -*sign;
            element = -element;
        }
        *logarithm += log(element);
    }
}

/* matrix -> sign, logarithm, cache */
void shared_slogdet(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    const npy_intp *core = strides + 4;
    sign_and_log(factor_entry(args[0], core[0], core[1], dims[1], (npy_int64 *)args[3], (npy_intp)data), dims[1], (double *)args[1], (double *)args[2]);
}

/* matrix -> determinant, cache */
void shared_det(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    const npy_intp *core = strides + 3;
    double sign, logarithm;
    sign_and_log(factor_entry(args[0], core[0], core[1], dims[1], (npy_int64 *)args[2], (npy_intp)data), dims[1], &sign, &logarithm);
    *(double *)args[1] = sign * exp(logarithm);
}
