/* Kernels with the signature of ufunc inner loops, for NumPy functions that are not ufuncs: copies, np.stack, np.take, np.add.reduceat, np.where,
   astype, np.tril, powers of NumPy scalars, products with an array of one number (np.dot), sorting and np.searchsorted.

   Programs (interpreter.c) call them by address. Casts with a result that C does not define (a float outside of the range of the
   integers) are left out. */

#include "loops.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#define SIGNATURE(name) static void name(char **args, const npy_intp *dims, const npy_intp *strides, void *data)

/* ---- copy: in -> out */

typedef struct { npy_uint64 words[2]; } npy_pair;

#define COPY(BYTES, TYPE)                                                              \
    SIGNATURE(copy_##BYTES) {                                                          \
        npy_intp n = dims[0], from = strides[0], to = strides[1], i;                   \
        char *in = args[0], *out = args[1];                                            \
        (void)data;                                                                    \
        if (from == BYTES && to == BYTES) {                                            \
            memmove(out, in, (size_t)n * BYTES);                                       \
        } else {                                                                       \
            for (i = 0; i < n; i++, in += from, out += to) {                           \
                TYPE value;                                                            \
                memcpy(&value, in, BYTES);                                             \
                memcpy(out, &value, BYTES);                                            \
            }                                                                          \
        }                                                                              \
    }

/* ---- interleave: `data` arrays -> out, whose elements are runs of one element of each array. Blocks of rows stay in cache. */

enum { INTERLEAVED_ROWS = 64 };

#define INTERLEAVE(BYTES, TYPE)                                                        \
    SIGNATURE(interleave_##BYTES) {                                                    \
        npy_intp n = dims[0], count = (npy_intp)data, to = strides[count], first, i, k; \
        for (first = 0; first < n; first += INTERLEAVED_ROWS) {                        \
            npy_intp rows = n - first < INTERLEAVED_ROWS ? n - first : INTERLEAVED_ROWS; \
            for (k = 0; k < count; k++) {                                              \
                const char *in = args[k] + first * strides[k];                         \
                char *out = args[count] + first * to + k * BYTES;                      \
                for (i = 0; i < rows; i++, in += strides[k], out += to) memcpy(out, in, BYTES); \
            }                                                                          \
        }                                                                              \
    }

/* ---- gather: x, positions -> out. data is the stride of x along the indexed axis. The positions are not checked. */

#define GATHER(BYTES, TYPE)                                                            \
    SIGNATURE(gather_##BYTES) {                                                        \
        npy_intp n = dims[0], sx = strides[0], sp = strides[1], so = strides[2], step = (npy_intp)data, i; \
        char *x = args[0], *positions = args[1], *out = args[2];                       \
        TYPE value;                                                                    \
        if (sx == 0 && sp == (npy_intp)sizeof(npy_intp) && so == BYTES && step == BYTES) { \
            for (i = 0; i < n; i++) {                                                  \
                memcpy(&value, x + ((npy_intp *)positions)[i] * BYTES, BYTES);         \
                memcpy(out + i * BYTES, &value, BYTES);                                \
            }                                                                          \
        } else {                                                                       \
            for (i = 0; i < n; i++, x += sx, positions += sp, out += so) {             \
                memcpy(&value, x + *(npy_intp *)positions * step, BYTES);              \
                memcpy(out, &value, BYTES);                                            \
            }                                                                          \
        }                                                                              \
    }

/* ---- indexing along several axes. elements: x, positions of each axis -> out; put: values, positions -> out, which overwrites elements
   of out; add: the same, but adds to them. data is the number of axes. dims[1 ...] are the lengths of the axes, and their strides follow
   those of the arguments. Negative positions count from the end; a position out of range raises an "invalid" exception. */

#define MAX_INDEXED (MAX_ARGS - 2)

#define FOR_EACH_ELEMENT(ARRAY, OTHER, DO)                                                  \
    npy_intp axes = (npy_intp)data, n = dims[0], i, k;                                 \
    const npy_intp *steps = strides + axes + 2;                                        \
    char *base = args[ARRAY], *other = args[OTHER], *positions[MAX_INDEXED];           \
    for (k = 0; k < axes; k++) positions[k] = args[1 + k];                             \
    for (i = 0; i < n; i++, base += strides[ARRAY], other += strides[OTHER]) {         \
        npy_intp at = 0;                                                               \
        for (k = 0; k < axes; k++) {                                                   \
            npy_intp position = *(const npy_intp *)positions[k], length = dims[1 + k]; \
            if (position < 0) position += length;                                      \
            if (position < 0 || position >= length) {                                  \
                feraiseexcept(FE_INVALID);                                             \
                return;                                                                \
            }                                                                          \
            at += position * steps[k];                                                 \
            positions[k] += strides[1 + k];                                            \
        }                                                                              \
        DO                                                                             \
    }

#define ELEMENTS(BYTES, TYPE)                                                          \
    SIGNATURE(elements_##BYTES) {                                                      \
        FOR_EACH_ELEMENT(0, (npy_intp)data + 1, { TYPE value; memcpy(&value, base + at, BYTES); memcpy(other, &value, BYTES); }) \
    }                                                                                  \
    SIGNATURE(put_##BYTES) {                                                           \
        FOR_EACH_ELEMENT((npy_intp)data + 1, 0, { TYPE value; memcpy(&value, other, BYTES); memcpy(base + at, &value, BYTES); }) \
    }

#define ADD_ELEMENTS(NAME, TYPE, PARTS)                                                \
    SIGNATURE(add_##NAME) {                                                            \
        FOR_EACH_ELEMENT((npy_intp)data + 1, 0, { int p; for (p = 0; p < PARTS; p++) ((TYPE *)(base + at))[p] += ((TYPE *)other)[p]; }) \
    }
ADD_ELEMENTS(f4, float, 1)
ADD_ELEMENTS(f8, double, 1)
ADD_ELEMENTS(c8, float, 2)
ADD_ELEMENTS(c16, double, 2)
ADD_ELEMENTS(i8, npy_int64, 1)

/* ---- sums of segments: x, begin of each segment -> out. A segment ends where the next one begins, or at `data` if that is not 0.
   NumPy adds the pairwise sum of the other elements (DOUBLE_pairwise_sum) to the first element. */

#define SEGMENTS(NAME, TYPE)                                                           \
    static TYPE sum_##NAME(const TYPE *x, npy_intp n) {                                \
        npy_intp i, k, half;                                                           \
        TYPE r[8], total;                                                              \
        if (n < 8) {                                                                   \
            total = x[0];                                                              \
            for (i = 1; i < n; i++) total += x[i];                                     \
            return total;                                                              \
        }                                                                              \
        if (n > 128) {                                                                 \
            half = n / 2;                                                              \
            half -= half % 8;                                                          \
            return sum_##NAME(x, half) + sum_##NAME(x + half, n - half);               \
        }                                                                              \
        for (k = 0; k < 8; k++) r[k] = x[k];                                           \
        for (i = 8; i < n - n % 8; i += 8) {                                           \
            for (k = 0; k < 8; k++) r[k] += x[i + k];                                  \
        }                                                                              \
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));     \
        for (; i < n; i++) total += x[i];                                              \
        return total;                                                                  \
    }                                                                                  \
    SIGNATURE(segments_##NAME) {                                                       \
        npy_intp n = dims[0], last = (npy_intp)data, i;                                \
        const TYPE *x = (const TYPE *)args[0];                                         \
        const npy_intp *begin = (const npy_intp *)args[1];                             \
        char *out = args[2];                                                           \
        for (i = 0; i < n; i++, out += strides[2]) {                                   \
            npy_intp from = begin[i], count = (last ? last : begin[i + 1]) - from;     \
            TYPE total = x[from];                                                      \
            if (count > 1) total += sum_##NAME(x + from + 1, count - 1);               \
            *(TYPE *)out = total;                                                      \
        }                                                                              \
    }
SEGMENTS(f4, float)
SEGMENTS(f8, double)

/* ---- select: condition, x, y -> out */

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* branch-free selection for dense elements; SX and SY are the strides of x and y, 0 for a single number */
#define SELECT_DENSE(BYTES, TYPE, SX, SY)                                                      \
    if (sx == (SX) && sy == (SY)) {                                                    \
        INDEPENDENT                                                                    \
        for (i = 0; i < n; i++) {                                                      \
            TYPE a, b, chosen = (TYPE)(0 - (TYPE)(c[i] != 0));                         \
            memcpy(&a, x + i * (SX), BYTES);                                           \
            memcpy(&b, y + i * (SY), BYTES);                                           \
            a = (TYPE)((a & chosen) | (b & (TYPE)~chosen));                            \
            memcpy(out + i * BYTES, &a, BYTES);                                        \
        }                                                                              \
        return;                                                                        \
    }

#define SELECT(BYTES, TYPE, DENSE)                                                     \
    SIGNATURE(select_##BYTES) {                                                        \
        npy_intp n = dims[0], sc = strides[0], sx = strides[1], sy = strides[2], so = strides[3], i; \
        char *c = args[0], *x = args[1], *y = args[2], *out = args[3];                 \
        (void)data;                                                                    \
        if (sc == 1 && so == BYTES) {                                                  \
            DENSE                                                                      \
        }                                                                              \
        for (i = 0; i < n; i++, c += sc, x += sx, y += sy, out += so) {                \
            TYPE value;                                                                \
            memcpy(&value, *c ? x : y, BYTES);                                         \
            memcpy(out, &value, BYTES);                                                \
        }                                                                              \
    }
#define SELECT_NUMBER(BYTES, TYPE)                                                     \
    SELECT(BYTES, TYPE, SELECT_DENSE(BYTES, TYPE, BYTES, BYTES) SELECT_DENSE(BYTES, TYPE, BYTES, 0) SELECT_DENSE(BYTES, TYPE, 0, BYTES))

#define SIZES(DO) DO(1, npy_uint8) DO(2, npy_uint16) DO(4, npy_uint32) DO(8, npy_uint64) DO(16, npy_pair)
SIZES(COPY)
SIZES(INTERLEAVE)
SIZES(GATHER)
SIZES(ELEMENTS)
SELECT_NUMBER(1, npy_uint8)
SELECT_NUMBER(2, npy_uint16)
SELECT_NUMBER(4, npy_uint32)
SELECT_NUMBER(8, npy_uint64)
SELECT(16, npy_pair, )

/* ---- checks of values that Python reads: value, expected value, ordinal -> whether they are equal. data is the number of bytes.
   A difference raises the "invalid" floating-point exception, so the step is CHECKED, and the run ends. */

static THREAD_LOCAL FailedCheck failed_check;

SIGNATURE(check_value) {
    npy_intp nbytes = (npy_intp)data, kept = nbytes < (npy_intp)sizeof(failed_check.value) ? nbytes : (npy_intp)sizeof(failed_check.value);
    *(npy_bool *)args[3] = memcmp(args[0], args[1], (size_t)nbytes) == 0;
    if (*(npy_bool *)args[3]) return;
    failed_check.failed = 1;
    memcpy(&failed_check.ordinal, args[2], sizeof(npy_int64));
    failed_check.nbytes = nbytes;
    memcpy(failed_check.value, args[0], (size_t)kept);
    feraiseexcept(FE_INVALID);
}

void clear_failed_check(void) { failed_check.failed = 0; }

const FailedCheck *last_failed_check(void) { return &failed_check; }

/* ---- triangles: (m,n)->(m,n). data is 2 * k for np.tril, 2 * k + 1 for np.triu */

static npy_intp clamp(npy_intp at, npy_intp n) { return at < 0 ? 0 : at > n ? n : at; }

#define TRIANGLE(BYTES, TYPE)                                                          \
    SIGNATURE(triangle_##BYTES) {                                                      \
        npy_intp m = dims[1], n = dims[2], upper = (npy_intp)data & 1, k = ((npy_intp)data - upper) / 2, o, i, j; \
        for (o = 0; o < dims[0]; o++) {                                                \
            for (i = 0; i < m; i++) {                                                  \
                char *in = args[0] + o * strides[0] + i * strides[2], *out = args[1] + o * strides[1] + i * strides[4]; \
                npy_intp first = upper ? clamp(i + k, n) : 0, last = upper ? n : clamp(i + k + 1, n); \
                for (j = 0; j < n; j++, in += strides[3], out += strides[5]) {         \
                    if (j >= first && j < last) {                                      \
                        TYPE value;                                                    \
                        memcpy(&value, in, BYTES);                                     \
                        memcpy(out, &value, BYTES);                                    \
                    } else {                                                           \
                        memset(out, 0, BYTES);                                         \
                    }                                                                  \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }
SIZES(TRIANGLE)

/* ---- numbers. power: x ** y as NumPy's scalars compute it; multiple: BLAS axpy onto zeros, data is the address of axpy */

#define MULTIPLE(INT, TYPE)                                                            \
    void (*axpy)(INT, TYPE, const void *, INT, void *, INT) = (void (*)(INT, TYPE, const void *, INT, void *, INT))data; \
    memset(args[2], 0, (size_t)dims[0] * sizeof(TYPE));                                \
    axpy((INT)dims[0], *(TYPE *)args[1], args[0], (INT)(strides[0] / (npy_intp)sizeof(TYPE)), args[2], 1);

#define NUMBERS(NAME, TYPE, POW)                                                       \
    SIGNATURE(power_##NAME) {                                                          \
        npy_intp i;                                                                    \
        (void)data;                                                                    \
        for (i = 0; i < dims[0]; i++) {                                                \
            TYPE x = *(TYPE *)(args[0] + i * strides[0]), y = *(TYPE *)(args[1] + i * strides[1]); \
            *(TYPE *)(args[2] + i * strides[2]) = POW(x, y);                           \
        }                                                                              \
    }                                                                                  \
    SIGNATURE(multiple64_##NAME) { MULTIPLE(npy_int64, TYPE) }                         \
    SIGNATURE(multiple32_##NAME) { MULTIPLE(npy_int32, TYPE) }
NUMBERS(f4, float, powf)
NUMBERS(f8, double, pow)

/* ---- sorting: (n)->(n) and (n)->(), contiguous elements. data is the address of NumPy's function. An "invalid" exception means that the
   function reported an error; exceptions of comparisons with nan are cleared. */

static void report_failure(int failed) {
    feclearexcept(FE_INVALID);
    if (failed) feraiseexcept(FE_INVALID);
}

#define SORT(BYTES, TYPE)                                                              \
    SIGNATURE(sort_##BYTES) {                                                          \
        int (*sort)(void *, npy_intp, void *) = (int (*)(void *, npy_intp, void *))data; \
        npy_intp n = dims[1], i;                                                       \
        int failed = 0;                                                                \
        for (i = 0; i < dims[0]; i++) {                                                \
            char *out = args[1] + i * strides[1];                                      \
            memcpy(out, args[0] + i * strides[0], (size_t)n * BYTES);                  \
            failed |= sort(out, n, NULL) < 0;                                          \
        }                                                                              \
        report_failure(failed);                                                           \
    }
SORT(1, npy_uint8) SORT(2, npy_uint16) SORT(4, npy_uint32) SORT(8, npy_uint64)

SIGNATURE(argsort) {
    int (*sort)(void *, npy_intp *, npy_intp, void *) = (int (*)(void *, npy_intp *, npy_intp, void *))data;
    npy_intp n = dims[1], i, k;
    int failed = 0;
    for (i = 0; i < dims[0]; i++) {
        npy_intp *out = (npy_intp *)(args[1] + i * strides[1]);
        for (k = 0; k < n; k++) out[k] = k;
        failed |= sort(args[0] + i * strides[0], out, n, NULL) < 0;
    }
    report_failure(failed);
}

SIGNATURE(argbest) {
    int (*best)(void *, npy_intp, npy_intp *, void *) = (int (*)(void *, npy_intp, npy_intp *, void *))data;
    npy_intp i;
    int failed = 0;
    for (i = 0; i < dims[0]; i++) failed |= best(args[0] + i * strides[0], dims[1], (npy_intp *)(args[1] + i * strides[1]), NULL) < 0;
    report_failure(failed);
}

/* ---- positions of keys in a sorted array: (n),(m)->(m), contiguous elements. data is 1 for side="right". As in NumPy, each search starts
   from the result of the previous one, and nan is the largest number. */

#define SEARCH(NAME, TYPE)                                                             \
    SIGNATURE(search_##NAME) {                                                         \
        npy_intp right = (npy_intp)data, n = dims[1], m = dims[2], o, k;               \
        for (o = 0; o < dims[0]; o++) {                                                \
            const TYPE *x = (const TYPE *)(args[0] + o * strides[0]), *keys = (const TYPE *)(args[1] + o * strides[1]); \
            npy_intp *out = (npy_intp *)(args[2] + o * strides[2]), low = 0, high = n; \
            TYPE last = m > 0 ? keys[0] : 0;                                           \
            for (k = 0; k < m; k++) {                                                  \
                TYPE key = keys[k];                                                    \
                if (right ? !LESS(key, last) : LESS(last, key)) {                      \
                    high = n;                                                          \
                } else {                                                               \
                    low = 0;                                                           \
                    high = high < n ? high + 1 : n;                                    \
                }                                                                      \
                last = key;                                                            \
                while (low < high) {                                                   \
                    npy_intp middle = low + ((high - low) >> 1);                       \
                    if (right ? !LESS(key, x[middle]) : LESS(x[middle], key)) low = middle + 1; \
                    else high = middle;                                                \
                }                                                                      \
                out[k] = low;                                                          \
            }                                                                          \
        }                                                                              \
        report_failure(0);                                                                \
    }
#define LESS(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
SEARCH(f4, float)
SEARCH(f8, double)
SEARCH(i8, npy_int64)

/* ---- casts: VALUE converts an element x */

typedef struct { float re, im; } c8;
typedef struct { double re, im; } c16;

#define CAST(FROM, SOURCE, TO, TARGET, VALUE)                                          \
    SIGNATURE(cast_##FROM##_##TO) {                                                    \
        npy_intp n = dims[0], from = strides[0], to = strides[1], i;                   \
        char *in = args[0], *out = args[1];                                            \
        (void)data;                                                                    \
        if (from == (npy_intp)sizeof(SOURCE) && to == (npy_intp)sizeof(TARGET)) {      \
            for (i = 0; i < n; i++) {                                                  \
                SOURCE x = ((SOURCE *)in)[i];                                          \
                TARGET y = VALUE(x);                                                   \
                ((TARGET *)out)[i] = y;                                                \
            }                                                                          \
        } else {                                                                       \
            for (i = 0; i < n; i++, in += from, out += to) {                           \
                SOURCE x = *(SOURCE *)in;                                              \
                TARGET y = VALUE(x);                                                   \
                *(TARGET *)out = y;                                                    \
            }                                                                          \
        }                                                                              \
    }

#define AS_BOOL(x) ((npy_bool)((x) != 0))
#define AS_I1(x) ((npy_int8)(x))
#define AS_I2(x) ((npy_int16)(x))
#define AS_I4(x) ((npy_int32)(x))
#define AS_I8(x) ((npy_int64)(x))
#define AS_U1(x) ((npy_uint8)(x))
#define AS_U2(x) ((npy_uint16)(x))
#define AS_U4(x) ((npy_uint32)(x))
#define AS_U8(x) ((npy_uint64)(x))
#define AS_F4(x) ((float)(x))
#define AS_F8(x) ((double)(x))
#define AS_C8(x) {(float)(x), 0}
#define AS_C16(x) {(double)(x), 0}
#define COMPLEX_AS_BOOL(x) ((npy_bool)((x).re != 0 || (x).im != 0))
#define COMPLEX_AS_F4(x) ((float)(x).re)
#define COMPLEX_AS_F8(x) ((double)(x).re)
#define COMPLEX_AS_C8(x) {(float)(x).re, (float)(x).im}
#define COMPLEX_AS_C16(x) {(double)(x).re, (double)(x).im}

#define TO_INEXACT(DO, FROM, SOURCE)                                                   \
    DO(FROM, SOURCE, b1, npy_bool, AS_BOOL) DO(FROM, SOURCE, f4, float, AS_F4) DO(FROM, SOURCE, f8, double, AS_F8) \
    DO(FROM, SOURCE, c8, c8, AS_C8) DO(FROM, SOURCE, c16, c16, AS_C16)
#define TO_ALL(DO, FROM, SOURCE)                                                       \
    TO_INEXACT(DO, FROM, SOURCE)                                                       \
    DO(FROM, SOURCE, i1, npy_int8, AS_I1) DO(FROM, SOURCE, i2, npy_int16, AS_I2) DO(FROM, SOURCE, i4, npy_int32, AS_I4) \
    DO(FROM, SOURCE, i8, npy_int64, AS_I8) DO(FROM, SOURCE, u1, npy_uint8, AS_U1) DO(FROM, SOURCE, u2, npy_uint16, AS_U2) \
    DO(FROM, SOURCE, u4, npy_uint32, AS_U4) DO(FROM, SOURCE, u8, npy_uint64, AS_U8)
#define FROM_COMPLEX(DO, FROM, SOURCE)                                                 \
    DO(FROM, SOURCE, b1, npy_bool, COMPLEX_AS_BOOL) DO(FROM, SOURCE, f4, float, COMPLEX_AS_F4) \
    DO(FROM, SOURCE, f8, double, COMPLEX_AS_F8) DO(FROM, SOURCE, c8, c8, COMPLEX_AS_C8)      \
    DO(FROM, SOURCE, c16, c16, COMPLEX_AS_C16)
#define CASTS(DO)                                                                      \
    TO_ALL(DO, b1, npy_bool) TO_ALL(DO, i1, npy_int8) TO_ALL(DO, i2, npy_int16) TO_ALL(DO, i4, npy_int32) \
    TO_ALL(DO, i8, npy_int64) TO_ALL(DO, u1, npy_uint8) TO_ALL(DO, u2, npy_uint16) TO_ALL(DO, u4, npy_uint32) \
    TO_ALL(DO, u8, npy_uint64) TO_INEXACT(DO, f4, float) TO_INEXACT(DO, f8, double)    \
    FROM_COMPLEX(DO, c8, c8) FROM_COMPLEX(DO, c16, c16)
CASTS(CAST)

/* ---- the table of kernels */

#define COPY_ENTRY(BYTES, TYPE) {"copy" #BYTES, copy_##BYTES},
#define INTERLEAVE_ENTRY(BYTES, TYPE) {"interleave" #BYTES, interleave_##BYTES},
#define GATHER_ENTRY(BYTES, TYPE) {"gather" #BYTES, gather_##BYTES},
#define TRIANGLE_ENTRY(BYTES, TYPE) {"triangle" #BYTES, triangle_##BYTES},
#define ELEMENTS_ENTRY(BYTES, TYPE) {"elements" #BYTES, elements_##BYTES}, {"put" #BYTES, put_##BYTES},
#define SELECT_ENTRY(BYTES, TYPE) {"select" #BYTES, select_##BYTES},
#define CAST_ENTRY(FROM, SOURCE, TO, TARGET, VALUE) {"cast_" #FROM "_" #TO, cast_##FROM##_##TO},

static const struct {
    const char *name;
    InnerLoop loop;
} KERNELS[] = {{"segments_f4", segments_f4}, {"segments_f8", segments_f8}, {"sort1", sort_1}, {"sort2", sort_2}, {"sort4", sort_4}, {"sort8", sort_8}, {"argsort", argsort}, {"argbest", argbest}, {"search_f4", search_f4}, {"search_f8", search_f8}, {"search_i8", search_i8}, {"check_value", check_value}, {"shared_solve", shared_solve}, {"shared_inv", shared_inv}, {"shared_slogdet", shared_slogdet}, {"shared_det", shared_det}, {"triangular", triangular}, {"power_f4", power_f4}, {"power_f8", power_f8}, {"multiple32_f4", multiple32_f4}, {"multiple32_f8", multiple32_f8}, {"multiple64_f4", multiple64_f4}, {"multiple64_f8", multiple64_f8}, SIZES(TRIANGLE_ENTRY) SIZES(ELEMENTS_ENTRY) {"add_f4", add_f4}, {"add_f8", add_f8}, {"add_c8", add_c8}, {"add_c16", add_c16}, {"add_i8", add_i8}, SIZES(COPY_ENTRY) SIZES(INTERLEAVE_ENTRY) SIZES(GATHER_ENTRY) SIZES(SELECT_ENTRY) CASTS(CAST_ENTRY)};

PyObject *kernel_addresses(void) {
    PyObject *loops = PyDict_New();
    size_t i;
    if (loops == NULL) return NULL;
    for (i = 0; i < sizeof(KERNELS) / sizeof(KERNELS[0]); i++) {
        PyObject *address = PyLong_FromVoidPtr((void *)KERNELS[i].loop);
        if (address == NULL || PyDict_SetItemString(loops, KERNELS[i].name, address) < 0) {
            Py_XDECREF(address);
            Py_DECREF(loops);
            return NULL;
        }
        Py_DECREF(address);
    }
    return loops;
}
