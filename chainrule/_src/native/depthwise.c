/* Convolutions of single channels: the value, and the gradients of the input and of the weight, with the bits of table/depthwise.py.

   A tap is one element of the kernel. A plane is one channel of one example. Each plane is copied to a lattice, with zeros around it. The elements
   of the lattice whose positions have the same remainder by the stride form a contiguous block, a phase. In this layout each tap is a constant
   offset for all windows, so a result is a sum of shifted copies. The elements between the rows of a result belong to no window. They are computed
   and dropped.

   Products are rounded before they are added, as in NumPy. If a loop raises an FP exception, the function returns None, and Python computes the
   result: a dropped element may have raised the exception, and NumPy's warnings name the operation. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <math.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum { MAX_AXES = 4, SLACK = 32, AT_ONCE = 4 }; /* spatial axes; elements behind a block that may be read or written; taps that are summed together */

typedef struct {
    int kind, axes;                   /* kind: 0 float, 1 double; axes: number of spatial axes */
    npy_intp examples, channels, multiplier, taps, windows;
    npy_intp size[MAX_AXES], counts[MAX_AXES], kernel[MAX_AXES], stride[MAX_AXES], padding[MAX_AXES], dilation[MAX_AXES];
    npy_intp pitch[MAX_AXES], step[MAX_AXES]; /* along each axis: the distance of neighbours in a phase, and the distance of phases */
    npy_intp phases, block;           /* number of phases; number of elements of a phase, with SLACK */
    npy_intp flat;                    /* number of elements from the first to the last window of a result */
    npy_intp *offsets, *tap_phases;   /* of each tap */
    npy_intp *rows, *window_rows;     /* the offsets of the rows of the input, and of the result */
    npy_intp nrows, nwindow_rows;
    char *x, *weight, *g;             /* input or its gradient; weight or partial sums of its gradient; result or its cotangent */
} Convolution;

#if defined(__GNUC__)
#define VECTOR_TYPES(TYPE, NAME) typedef TYPE NAME __attribute__((vector_size(32), aligned(sizeof(TYPE)), may_alias));
#else
#define VECTOR_TYPES(TYPE, NAME) typedef TYPE NAME;
#endif
VECTOR_TYPES(float, FloatVector)
VECTOR_TYPES(double, DoubleVector)

typedef union {
    float f[AT_ONCE];
    double d[AT_ONCE];
} Sums;

#define COPIES(TYPE)                                                                                                \
    /* Copy an input to its lattice. */                                                                                    \
    static void spread_##TYPE(const Convolution *c, const TYPE *x, TYPE *lattice) {                                        \
        const int last = c->axes - 1;                                                                                      \
        const npy_intp n = c->size[last], s = c->stride[last], p = c->padding[last];                                       \
        npy_intp r, i, phase;                                                                                              \
        for (r = 0; r < c->nrows; r++, x += n) {                                                                           \
            if (s == 1) memcpy(lattice + c->rows[r] + p * c->pitch[last], x, (size_t)n * sizeof(TYPE));                    \
            for (phase = 0; s > 1 && phase < s; phase++) {                                                                 \
                npy_intp begin = ((phase - p) % s + s) % s;                                                                \
                TYPE *to = lattice + c->rows[r] + phase * c->step[last] + (begin + p) / s;                                 \
                for (i = begin; i < n; i += s) *to++ = x[i];                                                               \
            }                                                                                                              \
        }                                                                                                                  \
    }                                                                                                                      \
    /* Copy an input back from its lattice. */                                                                             \
    static void collect_##TYPE(const Convolution *c, TYPE *x, const TYPE *lattice) {                                       \
        const int last = c->axes - 1;                                                                                      \
        const npy_intp n = c->size[last], s = c->stride[last], p = c->padding[last];                                       \
        npy_intp r, i, phase;                                                                                              \
        for (r = 0; r < c->nrows; r++, x += n) {                                                                           \
            if (s == 1) memcpy(x, lattice + c->rows[r] + p * c->pitch[last], (size_t)n * sizeof(TYPE));                    \
            for (phase = 0; s > 1 && phase < s; phase++) {                                                                 \
                npy_intp begin = ((phase - p) % s + s) % s;                                                                \
                const TYPE *from = lattice + c->rows[r] + phase * c->step[last] + (begin + p) / s;                         \
                for (i = begin; i < n; i += s) x[i] = *from++;                                                             \
            }                                                                                                              \
        }                                                                                                                  \
    }

/* The hot loops, compiled for any processor and for AVX2. GCC splits vectors according to the target of the function. */
#define KERNELS(TYPE, VECTOR, NAME, ATTRIBUTE)                                                                             \
    /* Sum shifted copies times weights. Up to SLACK elements more than `n` are written. */                                \
    ATTRIBUTE static void add_shifted_##NAME##_##TYPE(const TYPE *x, const npy_intp *offsets, const TYPE *weights, npy_intp taps, TYPE *out, npy_intp n) { \
        enum { LANES = sizeof(VECTOR) / sizeof(TYPE) };                                                                    \
        npy_intp i = 0, t;                                                                                                 \
        for (; i + 3 * LANES < n; i += 4 * LANES) {                                                                        \
            VECTOR a = {0}, b = {0}, c = {0}, d = {0};                                                                     \
            for (t = 0; t < taps; t++) {                                                                                   \
                const TYPE *from = x + offsets[t] + i, w = weights[t];                                                     \
                a = a + *(const VECTOR *)from * w;                                                                         \
                b = b + *(const VECTOR *)(from + LANES) * w;                                                               \
                c = c + *(const VECTOR *)(from + 2 * LANES) * w;                                                           \
                d = d + *(const VECTOR *)(from + 3 * LANES) * w;                                                           \
            }                                                                                                              \
            *(VECTOR *)(out + i) = a;                                                                                      \
            *(VECTOR *)(out + i + LANES) = b;                                                                              \
            *(VECTOR *)(out + i + 2 * LANES) = c;                                                                          \
            *(VECTOR *)(out + i + 3 * LANES) = d;                                                                          \
        }                                                                                                                  \
        for (; i < n; i += LANES) {                                                                                        \
            VECTOR a = {0};                                                                                                \
            for (t = 0; t < taps; t++) a = a + *(const VECTOR *)(x + offsets[t] + i) * weights[t];                         \
            *(VECTOR *)(out + i) = a;                                                                                      \
        }                                                                                                                  \
    }                                                                                                                      \
    /* Add up `n` elements of AT_ONCE rows in the order of NumPy's pairwise sum. */                                        \
    ATTRIBUTE static void add_block_##NAME##_##TYPE(const TYPE *x, npy_intp distance, npy_intp n, TYPE *sums) {                               \
        enum { LANES = sizeof(VECTOR) / sizeof(TYPE), PARTS = 8 / LANES };                                                 \
        npy_intp i, k, j;                                                                                                  \
        if (n < 8) {                                                                                                       \
            for (k = 0; k < AT_ONCE; k++) {                                                                                \
                sums[k] = 0;                                                                                               \
                for (i = 0; i < n; i++) sums[k] += x[k * distance + i];                                                    \
            }                                                                                                              \
            return;                                                                                                        \
        }                                                                                                                  \
        VECTOR parts[AT_ONCE][PARTS];                                                                                      \
        for (k = 0; k < AT_ONCE; k++) {                                                                                    \
            for (j = 0; j < PARTS; j++) parts[k][j] = *(const VECTOR *)(x + k * distance + j * LANES);                     \
        }                                                                                                                  \
        for (i = 8; i < n - n % 8; i += 8) {                                                                               \
            for (k = 0; k < AT_ONCE; k++) {                                                                                \
                for (j = 0; j < PARTS; j++) parts[k][j] = parts[k][j] + *(const VECTOR *)(x + k * distance + i + j * LANES); \
            }                                                                                                              \
        }                                                                                                                  \
        for (k = 0; k < AT_ONCE; k++) {                                                                                    \
            TYPE r[8];                                                                                                     \
            memcpy(r, parts[k], sizeof(r));                                                                                \
            sums[k] = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));                                   \
            for (j = i; j < n; j++) sums[k] += x[k * distance + j];                                                        \
        }                                                                                                                  \
    }                                                                                                                      \
    /* Multiply the elements that up to AT_ONCE taps read with the cotangent of each window. */                             \
    ATTRIBUTE static void multiply_##NAME##_##TYPE(const Convolution *c, const TYPE *lattice, const npy_intp *offsets, npy_intp taps, const TYPE *g, TYPE *products) { \
        enum { LANES = sizeof(VECTOR) / sizeof(TYPE) };                                                                    \
        const npy_intp n = c->counts[c->axes - 1], distance = c->windows + SLACK;                                          \
        npy_intp r, i, k;                                                                                                  \
        for (k = 0; k < taps; k++) {                                                                                       \
            TYPE *to = products + k * distance;                                                                            \
            for (r = 0; r < c->nwindow_rows; r++, to += n) {                                                               \
                const TYPE *x = lattice + offsets[k] + c->window_rows[r], *y = g + r * n;                                  \
                for (i = 0; i + LANES <= n; i += LANES) *(VECTOR *)(to + i) = *(const VECTOR *)(y + i) * *(const VECTOR *)(x + i); \
                for (; i < n; i++) to[i] = y[i] * x[i];                                                                    \
            }                                                                                                              \
        }                                                                                                                  \
    }

COPIES(float)
COPIES(double)

#define VARIANT(NAME, ATTRIBUTE)                                                                                           \
    KERNELS(float, FloatVector, NAME, ATTRIBUTE)                                                                           \
    KERNELS(double, DoubleVector, NAME, ATTRIBUTE)                                                                         \
    ATTRIBUTE static void add_shifted_##NAME(int kind, const void *x, const npy_intp *offsets, const void *weights, npy_intp taps, void *out, npy_intp n) { \
        if (kind) add_shifted_##NAME##_double(x, offsets, weights, taps, out, n);                                                   \
        else add_shifted_##NAME##_float(x, offsets, weights, taps, out, n);                                                         \
    }                                                                                                                      \
    ATTRIBUTE static void multiply_##NAME(const Convolution *c, const void *lattice, const npy_intp *offsets, npy_intp taps, const void *g, void *products) { \
        if (c->kind) multiply_##NAME##_double(c, lattice, offsets, taps, g, products);                                              \
        else multiply_##NAME##_float(c, lattice, offsets, taps, g, products);                                                       \
    }                                                                                                                      \
    ATTRIBUTE static void add_block_##NAME(int kind, const void *x, npy_intp distance, npy_intp n, Sums *sums) {           \
        if (kind) add_block_##NAME##_double(x, distance, n, sums->d);                                                               \
        else add_block_##NAME##_float(x, distance, n, sums->f);                                                                     \
    }
VARIANT(plain, )
#if defined(__x86_64__) && defined(__GNUC__)
VARIANT(avx2, __attribute__((target("avx2"))))
static int has_avx2(void) { return __builtin_cpu_supports("avx2"); }
#else
#define add_shifted_avx2 add_shifted_plain
#define multiply_avx2 multiply_plain
#define add_block_avx2 add_block_plain
static int has_avx2(void) { return 0; }
#endif
#define CALL(name, ...) (has_avx2() ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))

static npy_intp bytes_of(const Convolution *c, npy_intp elements) { return elements * (c->kind ? 8 : 4); }

/* NumPy's pairwise sum of AT_ONCE rows. */
static void add_pairwise(const Convolution *c, const char *x, npy_intp distance, npy_intp n, Sums *sums) {
    npy_intp half = n / 2 - n / 2 % 8;
    Sums rest;
    int k;
    if (n <= 128) {
        CALL(add_block, c->kind, x, distance, n, sums);
        return;
    }
    add_pairwise(c, x, distance, half, sums);
    add_pairwise(c, x + bytes_of(c, half), distance, n - half, &rest);
    for (k = 0; k < AT_ONCE; k++) {
        if (c->kind) sums->d[k] += rest.d[k];
        else sums->f[k] += rest.f[k];
    }
}

/* ---- ranges of planes */

static void spread(const Convolution *c, const char *x, char *lattice) {
    if (c->kind) spread_double(c, (const double *)x, (double *)lattice);
    else spread_float(c, (const float *)x, (float *)lattice);
}

/* The numbers of elements of a plane of the input, and of a lattice. */
static npy_intp plane_size(const Convolution *c) { return c->nrows * c->size[c->axes - 1]; }
static npy_intp lattice_size(const Convolution *c) { return c->phases * c->block + SLACK; }

/* Copy rows between a contiguous array and rows at offsets. */
static void copy_rows(const Convolution *c, char *dense, char *apart, int into_apart) {
    npy_intp row = bytes_of(c, c->counts[c->axes - 1]), r;
    for (r = 0; r < c->nwindow_rows; r++) {
        char *other = apart + bytes_of(c, c->window_rows[r]);
        if (into_apart) memcpy(other, dense + r * row, (size_t)row);
        else memcpy(dense + r * row, other, (size_t)row);
    }
}

/* The value. */
static void convolve(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Convolution *c = context;
    char *out = scratch + bytes_of(c, lattice_size(c));
    npy_intp plane, j;
    memset(scratch, 0, (size_t)bytes_of(c, lattice_size(c)));
    for (plane = first; plane < last; plane++) {
        spread(c, c->x + bytes_of(c, plane * plane_size(c)), scratch);
        for (j = 0; j < c->multiplier; j++) {
            const char *weight = c->weight + bytes_of(c, (plane % c->channels * c->multiplier + j) * c->taps);
            CALL(add_shifted, c->kind, scratch, c->offsets, weight, c->taps, out, c->flat);
            copy_rows(c, c->g + bytes_of(c, (plane * c->multiplier + j) * c->windows), out, 0);
        }
    }
}

/* The gradient of the input: each phase sums shifted copies of the cotangent. */
static void transpose(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Convolution *c = context;
    npy_intp taps = c->taps * c->multiplier, sources = c->multiplier * c->block, plane, j, t, phase, count;
    npy_intp *offsets = (npy_intp *)scratch;
    char *weights = scratch + 8 * taps, *source = weights + 8 * taps, *lattice = source + bytes_of(c, sources + SLACK);
    memset(source, 0, (size_t)bytes_of(c, sources + SLACK));
    for (plane = first; plane < last; plane++) {
        for (j = 0; j < c->multiplier; j++) copy_rows(c, c->g + bytes_of(c, (plane * c->multiplier + j) * c->windows), source + bytes_of(c, j * c->block), 1);
        for (phase = 0; phase < c->phases; phase++) {
            for (t = 0, count = 0; t < c->taps; t++) {
                for (j = 0; j < c->multiplier && c->tap_phases[t] == phase; j++, count++) {
                    npy_intp at = (plane % c->channels * c->multiplier + j) * c->taps + t;
                    offsets[count] = j * c->block + c->offsets[t];
                    memcpy(weights + bytes_of(c, count), c->weight + bytes_of(c, at), (size_t)bytes_of(c, 1));
                }
            }
            CALL(add_shifted, c->kind, source, offsets, weights, count, lattice + bytes_of(c, phase * c->block), c->flat);
        }
        if (c->kind) collect_double(c, (double *)c->x + plane * plane_size(c), (double *)lattice);
        else collect_float(c, (float *)c->x + plane * plane_size(c), (float *)lattice);
    }
}

/* The gradient of the weight, one sum per plane: weight[channel, multiplier, tap, example]. */
static void correlate(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Convolution *c = context;
    char *products = scratch + bytes_of(c, lattice_size(c));
    npy_intp distance = c->windows + SLACK, plane, j, t, k;
    memset(scratch, 0, (size_t)(bytes_of(c, lattice_size(c) + AT_ONCE * distance)));
    for (plane = first; plane < last; plane++) {
        npy_intp example = plane / c->channels, channel = plane % c->channels;
        spread(c, c->x + bytes_of(c, plane * plane_size(c)), scratch);
        for (j = 0; j < c->multiplier; j++) {
            const char *g = c->g + bytes_of(c, (plane * c->multiplier + j) * c->windows);
            for (t = 0; t < c->taps; t += AT_ONCE) {
                npy_intp taps = c->taps - t < AT_ONCE ? c->taps - t : AT_ONCE;
                Sums sums;
                CALL(multiply, c, scratch, c->offsets + t, taps, g, products);
                add_pairwise(c, products, distance, c->windows, &sums);
                for (k = 0; k < taps; k++) {
                    npy_intp at = ((channel * c->multiplier + j) * c->taps + t + k) * c->examples + example;
                    if (c->kind) ((double *)c->weight)[at] = 0 + sums.d[k];
                    else ((float *)c->weight)[at] = 0 + sums.f[k];
                }
            }
        }
    }
}

/* ---- the description of a call */

static int read_lengths(PyObject *tuple, int axes, npy_intp least, npy_intp *to) {
    int a;
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != axes) return 0;
    for (a = 0; a < axes; a++) {
        to[a] = PyLong_CheckExact(PyTuple_GET_ITEM(tuple, a)) ? PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, a)) : -1;
        if (to[a] < least) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* An array in C order with the dtype of the call; NULL without an error for any other object. Returns a new reference. */
static PyArrayObject *dense(PyObject *x, int ndim) {
    if (kind_of(x) < 0 || PyArray_NDIM((PyArrayObject *)x) != ndim || PyArray_SIZE((PyArrayObject *)x) == 0) return NULL;
    return (PyArrayObject *)PyArray_FROM_OF(x, NPY_ARRAY_CARRAY_RO);
}

/* Fill the layout of the lattice. `transposed`: for the gradient of the input. 1 done, 0 if the sizes do not fit, -1 error */
static int prepare(Convolution *c, int transposed) {
    npy_intp extents[MAX_AXES], margins[MAX_AXES], index[MAX_AXES] = {0}, i, *memory;
    int a;
    c->taps = c->windows = c->nrows = c->nwindow_rows = c->phases = c->block = 1;
    for (a = 0; a < c->axes; a++) {
        npy_intp padded = c->size[a] + 2 * c->padding[a], reach = (c->kernel[a] - 1) * c->dilation[a];
        if ((c->counts[a] - 1) * c->stride[a] + reach + 1 > padded) return 0;
        margins[a] = transposed ? reach / c->stride[a] : 0;
        extents[a] = (padded + c->stride[a] - 1) / c->stride[a];
        if (transposed) extents[a] = margins[a] + (extents[a] > c->counts[a] ? extents[a] : c->counts[a]);
        c->taps *= c->kernel[a];
        c->windows *= c->counts[a];
        c->phases *= c->stride[a];
        c->block *= extents[a];
        if (c->taps > 1 << 20 || c->phases > 1 << 20 || c->block > 1 << 28 || c->phases * c->block > 1 << 28) return 0;
        if (a < c->axes - 1) {
            c->nrows *= c->size[a];
            c->nwindow_rows *= c->counts[a];
        }
    }
    c->block += SLACK;
    c->flat = 1;
    for (a = c->axes - 1, i = c->block; a >= 0; a--) {
        npy_intp covered = transposed ? (c->size[a] + 2 * c->padding[a] + c->stride[a] - 1) / c->stride[a] : c->counts[a];
        c->pitch[a] = a == c->axes - 1 ? 1 : c->pitch[a + 1] * extents[a + 1];
        c->step[a] = i;
        i *= c->stride[a];
        c->flat += (covered - 1) * c->pitch[a];
    }
    memory = PyMem_Malloc(sizeof(npy_intp) * (size_t)(2 * c->taps + c->nrows + c->nwindow_rows));
    if (memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    c->offsets = memory;
    c->tap_phases = memory + c->taps;
    c->rows = memory + 2 * c->taps;
    c->window_rows = c->rows + c->nrows;
    for (i = 0; i < c->taps; i++) {
        npy_intp rest = i;
        c->offsets[i] = c->tap_phases[i] = 0;
        for (a = c->axes - 1; a >= 0; a--) {
            npy_intp position = rest % c->kernel[a] * c->dilation[a], phase = position % c->stride[a] * c->step[a], low = position / c->stride[a];
            rest /= c->kernel[a];
            c->offsets[i] += transposed ? (margins[a] - low) * c->pitch[a] : phase + low * c->pitch[a];
            c->tap_phases[i] += phase / c->block;
        }
    }
    for (i = 0; i < c->nrows; i++) {
        c->rows[i] = 0;
        for (a = 0; a < c->axes - 1; a++) c->rows[i] += (index[a] + c->padding[a]) % c->stride[a] * c->step[a] + (index[a] + c->padding[a]) / c->stride[a] * c->pitch[a];
        for (a = c->axes - 2; a >= 0 && ++index[a] == c->size[a]; a--) index[a] = 0;
    }
    memset(index, 0, sizeof(index));
    for (i = 0; i < c->nwindow_rows; i++) {
        c->window_rows[i] = transposed ? margins[c->axes - 1] : 0;
        for (a = 0; a < c->axes - 1; a++) c->window_rows[i] += (index[a] + margins[a]) * c->pitch[a];
        for (a = c->axes - 2; a >= 0 && ++index[a] == c->counts[a]; a--) index[a] = 0;
    }
    return 1;
}

/* Run a function for all planes. Return the FP exceptions, or -1 with an error. */
static int run_planes(const Convolution *c, RangeFunction function, npy_intp scratch_bytes) {
    npy_intp planes = c->examples * c->channels;
    double work = (double)planes * (double)c->windows * (double)c->taps * (double)c->multiplier / 4;
    char *scratch = PyMem_RawMalloc((size_t)scratch_bytes);
    int exceptions;
    if (scratch == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (work < RELEASE_FROM) {
        clear_exceptions();
        function(c, 0, planes, scratch);
        exceptions = read_exceptions();
    } else {
        Py_BEGIN_ALLOW_THREADS
        clear_exceptions();
        exceptions = parallel_for(function, c, planes, work, scratch_bytes, scratch);
        exceptions |= read_exceptions();
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(scratch);
    return exceptions;
}

/* Return the result, or None if Python must compute it. Steals `out`. */
static PyObject *finish(Convolution *c, PyArrayObject *out, int exceptions) {
    PyMem_Free(c->offsets);
    if (exceptions == 0) return (PyObject *)out;
    Py_XDECREF(out);
    if (exceptions < 0) return NULL;
    Py_RETURN_NONE;
}

static int are_finite(int kind, const char *x, npy_intp n) {
    npy_intp i;
    for (i = 0; i < n && isfinite(kind ? ((const double *)x)[i] : (double)((const float *)x)[i]); i++) {}
    return i == n;
}

/* Return a new array of shape (examples, channels, *lengths). */
static PyArrayObject *new_planes(const Convolution *c, npy_intp channels, const npy_intp *lengths) {
    npy_intp dims[2 + MAX_AXES] = {c->examples, channels};
    memcpy(dims + 2, lengths, sizeof(npy_intp) * (size_t)c->axes);
    return (PyArrayObject *)new_array(c->kind, 2 + c->axes, dims);
}

/* Read (x, y) of equal dtype and number of axes, and stride, padding and dilation. 1 done, 0 for other operands, -1 error */
static int read_call(Convolution *c, PyObject *const *args, PyArrayObject **x, PyArrayObject **y) {
    int ndim = PyArray_CheckExact(args[0]) ? PyArray_NDIM((PyArrayObject *)args[0]) : 0;
    *x = *y = NULL;
    c->kind = kind_of(args[0]);
    c->axes = ndim - 2;
    if (c->kind < 0 || c->axes < 1 || c->axes > MAX_AXES || kind_of(args[1]) != c->kind) return 0;
    if (!read_lengths(args[2], c->axes, 1, c->stride) || !read_lengths(args[3], c->axes, 0, c->padding) || !read_lengths(args[4], c->axes, 1, c->dilation)) return 0;
    *x = dense(args[0], ndim);
    *y = *x == NULL ? NULL : dense(args[1], ndim);
    if (*y == NULL) Py_CLEAR(*x);
    return *x != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

static int takes(Py_ssize_t nargs, Py_ssize_t count, const char *name) {
    if (nargs != count) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments", name, count);
    return nargs == count;
}

/* depthwise(x, weight, stride, padding, dilation) */
static PyObject *depthwise(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Convolution c = {0};
    PyArrayObject *x, *weight, *out;
    PyObject *result = NULL;
    int done, a;
    (void)module;
    if (!takes(nargs, 5, "depthwise") || (done = read_call(&c, args, &x, &weight)) < 0) return NULL;
    if (!done) Py_RETURN_NONE;
    c.examples = PyArray_DIM(x, 0);
    c.channels = PyArray_DIM(x, 1);
    c.multiplier = PyArray_DIM(weight, 0) / c.channels;
    for (a = 0; a < c.axes; a++) {
        c.size[a] = PyArray_DIM(x, a + 2);
        c.kernel[a] = PyArray_DIM(weight, a + 2);
        c.counts[a] = (c.size[a] + 2 * c.padding[a] - c.dilation[a] * (c.kernel[a] - 1) - 1) / c.stride[a] + 1;
        done = done && c.counts[a] > 0;
    }
    if (PyArray_DIM(weight, 1) != 1 || c.multiplier * c.channels != PyArray_DIM(weight, 0)) done = 0;
    if (done) done = prepare(&c, 0);
    if (done == 0) result = Py_NewRef(Py_None);
    if (done == 1) {
        out = new_planes(&c, c.channels * c.multiplier, c.counts);
        c.x = PyArray_BYTES(x);
        c.weight = PyArray_BYTES(weight);
        c.g = out == NULL ? NULL : PyArray_BYTES(out);
        result = finish(&c, out, out == NULL ? -1 : run_planes(&c, convolve, bytes_of(&c, lattice_size(&c) + c.flat + SLACK)));
    }
    Py_DECREF(x);
    Py_DECREF(weight);
    return result;
}

/* depthwise_input(g, weight, stride, padding, dilation, size, channels) */
static PyObject *depthwise_input(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Convolution c = {0};
    PyArrayObject *g, *weight, *out;
    PyObject *result = NULL;
    int done, a;
    (void)module;
    if (!takes(nargs, 7, "depthwise_input") || (done = read_call(&c, args, &g, &weight)) < 0) return NULL;
    if (!done) Py_RETURN_NONE;
    if (!read_lengths(args[5], c.axes, 1, c.size)) done = 0;
    c.examples = PyArray_DIM(g, 0);
    c.channels = PyLong_AsSsize_t(args[6]);
    if (c.channels < 1) done = 0;
    for (a = 0; a < c.axes; a++) {
        c.kernel[a] = PyArray_DIM(weight, a + 2);
        c.counts[a] = PyArray_DIM(g, a + 2);
    }
    c.multiplier = done ? PyArray_DIM(g, 1) / c.channels : 1;
    if (PyArray_DIM(weight, 1) != 1 || PyArray_DIM(g, 1) != PyArray_DIM(weight, 0) || PyArray_DIM(g, 1) != c.channels * c.multiplier || !are_finite(c.kind, PyArray_BYTES(weight), PyArray_SIZE(weight))) done = 0;
    if (done) done = prepare(&c, 1);
    if (done == 0 && !PyErr_Occurred()) result = Py_NewRef(Py_None);
    if (done == 1) {
        out = new_planes(&c, c.channels, c.size);
        c.g = PyArray_BYTES(g);
        c.weight = PyArray_BYTES(weight);
        c.x = out == NULL ? NULL : PyArray_BYTES(out);
        result = finish(&c, out, out == NULL ? -1 : run_planes(&c, transpose, bytes_of(&c, c.multiplier * c.block + SLACK + lattice_size(&c)) + 16 * c.taps * c.multiplier));
    }
    Py_DECREF(g);
    Py_DECREF(weight);
    return result;
}

/* depthwise_weight(g, x, stride, padding, dilation, kernel): a sum per example: (out, 1, *kernel, examples) */
static PyObject *depthwise_weight(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    Convolution c = {0};
    PyArrayObject *g, *x, *out;
    PyObject *result = NULL;
    int done, a;
    (void)module;
    if (!takes(nargs, 6, "depthwise_weight") || (done = read_call(&c, args, &g, &x)) < 0) return NULL;
    if (!done) Py_RETURN_NONE;
    if (!read_lengths(args[5], c.axes, 1, c.kernel)) done = 0;
    c.examples = PyArray_DIM(x, 0);
    c.channels = PyArray_DIM(x, 1);
    c.multiplier = PyArray_DIM(g, 1) / c.channels;
    for (a = 0; a < c.axes; a++) {
        c.size[a] = PyArray_DIM(x, a + 2);
        c.counts[a] = PyArray_DIM(g, a + 2);
    }
    if (PyArray_DIM(g, 0) != c.examples || c.multiplier * c.channels != PyArray_DIM(g, 1)) done = 0;
    if (done) done = prepare(&c, 0);
    if (done == 0) result = Py_NewRef(Py_None);
    if (done == 1) {
        npy_intp dims[3 + MAX_AXES] = {c.channels * c.multiplier, 1};
        memcpy(dims + 2, c.kernel, sizeof(npy_intp) * (size_t)c.axes);
        dims[2 + c.axes] = c.examples;
        out = (PyArrayObject *)new_array(c.kind, 3 + c.axes, dims);
        c.x = PyArray_BYTES(x);
        c.g = PyArray_BYTES(g);
        c.weight = out == NULL ? NULL : PyArray_BYTES(out);
        result = finish(&c, out, out == NULL ? -1 : run_planes(&c, correlate, bytes_of(&c, lattice_size(&c) + AT_ONCE * (c.windows + SLACK))));
    }
    Py_DECREF(g);
    Py_DECREF(x);
    return result;
}

PyMethodDef depthwise_functions[] = {
    {"depthwise", (PyCFunction)(void (*)(void))depthwise, METH_FASTCALL, "depthwise(x, weight, stride, padding, dilation): the convolution of each channel with its own weights, or None if Python must compute it"},
    {"depthwise_input", (PyCFunction)(void (*)(void))depthwise_input, METH_FASTCALL, "depthwise_input(g, weight, stride, padding, dilation, size, channels): the gradient of the input, or None if Python must compute it"},
    {"depthwise_weight", (PyCFunction)(void (*)(void))depthwise_weight, METH_FASTCALL, "depthwise_weight(g, x, stride, padding, dilation, kernel): the gradient of the weight with one more axis, the examples, or None if Python must compute it"},
    {NULL, NULL, 0, NULL},
};
