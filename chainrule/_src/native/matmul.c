/* Stacks of matrix products with the bits of np.matmul.

   NumPy calls BLAS once for each pair of matrices of a stack. For matrices of at most 16 rows and columns such a call takes longer than the
   arithmetic. `matmul_f4` and `matmul_f8` are inner loops like NumPy's, which compute small products themselves: each element is a chain of
   fused multiply-adds in the order of the summed axis, as in the kernels of OpenBLAS. Other BLAS libraries, processors and sizes may round
   otherwise. The first product of each size and orientation is therefore compared with NumPy's loop on random matrices, bit by bit. If one
   bit differs, NumPy's loop computes all products of that size.

   NumPy's loop also repeats a call whose products raise an FP exception or contain a number that is not finite: BLAS may raise other
   exceptions then, because it computes with padding.

   `matmul` is np.matmul of two arrays. Large stacks are divided among threads. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>

/* NumPy's inner loop of a dtype: float, double */
static Loop numpy_loops[2];
static PyObject *numpy_matmul, *find_blas_threads;

/* The operands of one product (m,k) @ (k,n); strides in elements. */
typedef struct {
    npy_intp m, k, n;
    npy_intp x_row, x_column, y_row, y_column, out_row;
} Product;

/* The limits of products that are computed here: rows; columns and summed axis; multiplications. BLAS is faster from there on. */
enum { MAX_ROWS = 32, MAX_SIZE = 16, MAX_WORK = 1728 };

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define FUSED __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline, target("avx2,fma")))

static int has_fused_multiply_add(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/* Compute ROWS rows of a product from VECTORS vectors of each row of y; `mask` selects the elements of the last vector. `not_finite` collects
   the elements whose exponent has all bits set. */
#define DEFINE_ROWS(TYPE, VECTOR, SUFFIX, INTEGER, LANES, EXPONENT, COMPARE)                                          \
    INLINE void rows_##SUFFIX(const int ROWS, const int VECTORS, const TYPE *x, npy_intp x_row, npy_intp x_column,       \
                              const TYPE *y, npy_intp y_row, TYPE *out, npy_intp out_row, npy_intp k, __m256i mask,      \
                              int dense, __m256i *not_finite) {                                                          \
        VECTOR sums[8];                                                                                                  \
        const __m256i exponent = EXPONENT;                                                                               \
        npy_intp i;                                                                                                      \
        int r, v;                                                                                                        \
        _Pragma("GCC unroll 8") for (r = 0; r < ROWS * VECTORS; r++) sums[r] = _mm256_setzero_##SUFFIX();                \
        for (i = 0; i < k; i++, x += x_column, y += y_row) {                                                             \
            _Pragma("GCC unroll 4") for (v = 0; v < VECTORS; v++) {                                                      \
                VECTOR part = dense || v + 1 < VECTORS ? _mm256_loadu_##SUFFIX(y + v * LANES) : _mm256_maskload_##SUFFIX(y + v * LANES, mask); \
                _Pragma("GCC unroll 4") for (r = 0; r < ROWS; r++)                                                       \
                    sums[r * VECTORS + v] = _mm256_fmadd_##SUFFIX(_mm256_set1_##SUFFIX(x[r * x_row]), part, sums[r * VECTORS + v]); \
            }                                                                                                            \
        }                                                                                                                \
        _Pragma("GCC unroll 4") for (r = 0; r < ROWS; r++) {                                                             \
            _Pragma("GCC unroll 4") for (v = 0; v < VECTORS; v++) {                                                      \
                VECTOR sum = sums[r * VECTORS + v];                                                                      \
                __m256i bits = _mm256_and_si256(_mm256_cast##SUFFIX##_si256(sum), exponent);                             \
                *not_finite = _mm256_or_si256(*not_finite, COMPARE(bits, exponent));                                     \
                if (dense || v + 1 < VECTORS) _mm256_storeu_##SUFFIX(out + r * out_row + v * LANES, sum);                \
                else _mm256_maskstore_##SUFFIX(out + r * out_row + v * LANES, mask, sum);                                \
            }                                                                                                            \
        }                                                                                                                \
    }                                                                                                                    \
    /* Compute a product whose rows are VECTORS vectors. Eight independent sums hide the latency of an addition. */      \
    INLINE void product_##SUFFIX(const int VECTORS, const int dense, const TYPE *x, const TYPE *y, npy_intp y_row, TYPE *out, \
                                 const Product *p, __m256i mask, __m256i *not_finite) {                                  \
        npy_intp m = p->m;                                                                                               \
        for (; VECTORS <= 2 && m >= 4; m -= 4, x += 4 * p->x_row, out += 4 * p->out_row)                                 \
            rows_##SUFFIX(4, VECTORS, x, p->x_row, p->x_column, y, y_row, out, p->out_row, p->k, mask, dense, not_finite); \
        for (; m >= 2; m -= 2, x += 2 * p->x_row, out += 2 * p->out_row)                                                 \
            rows_##SUFFIX(2, VECTORS, x, p->x_row, p->x_column, y, y_row, out, p->out_row, p->k, mask, dense, not_finite); \
        if (m > 0) rows_##SUFFIX(1, VECTORS, x, p->x_row, p->x_column, y, y_row, out, p->out_row, p->k, mask, dense, not_finite); \
    }                                                                                                                    \
    /* Compute `count` products. Return whether all elements are finite. */                                              \
    FUSED static int products_##SUFFIX(const Product *p, char *const *args, npy_intp count, const npy_intp *strides) {   \
        TYPE packed[MAX_SIZE * MAX_SIZE] = {0};                                                                          \
        INTEGER lanes[LANES];                                                                                            \
        const char *last = NULL;                                                                                         \
        __m256i not_finite = _mm256_setzero_si256(), mask;                                                               \
        npy_intp rest = p->n % LANES, width = (p->n + LANES - 1) / LANES * LANES, i, j, o;                               \
        int pack = p->y_column != 1, form = (int)(width / LANES) * 2 + (rest == 0);                                      \
        for (i = 0; i < LANES; i++) lanes[i] = rest == 0 || i < rest ? -1 : 0;                                           \
        mask = _mm256_loadu_si256((const __m256i *)lanes);                                                               \
        for (o = 0; o < count; o++) {                                                                                    \
            const TYPE *x = (const TYPE *)(args[0] + o * strides[0]), *y = (const TYPE *)(args[1] + o * strides[1]);     \
            TYPE *out = (TYPE *)(args[2] + o * strides[2]);                                                              \
            npy_intp y_row = p->y_row;                                                                                   \
            if (pack) {                                                                                                  \
                if ((const char *)y != last) {                                                                           \
                    last = (const char *)y;                                                                              \
                    for (j = 0; j < p->n; j++) {                                                                         \
                        for (i = 0; i < p->k; i++) packed[i * width + j] = y[i * p->y_row + j * p->y_column];            \
                    }                                                                                                    \
                }                                                                                                        \
                y = packed;                                                                                              \
                y_row = width;                                                                                           \
            }                                                                                                            \
            switch (form) {                                                                                              \
            case 2: product_##SUFFIX(1, 0, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 3: product_##SUFFIX(1, 1, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 4: product_##SUFFIX(2, 0, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 5: product_##SUFFIX(2, 1, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 6: product_##SUFFIX(3, 0, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 7: product_##SUFFIX(3, 1, x, y, y_row, out, p, mask, &not_finite); break;                               \
            case 8: product_##SUFFIX(4, 0, x, y, y_row, out, p, mask, &not_finite); break;                               \
            default: product_##SUFFIX(4, 1, x, y, y_row, out, p, mask, &not_finite);                                     \
            }                                                                                                            \
        }                                                                                                                \
        return _mm256_testz_si256(not_finite, not_finite);                                                               \
    }
DEFINE_ROWS(float, __m256, ps, int32_t, 8, _mm256_set1_epi32(0x7f800000), _mm256_cmpeq_epi32)
DEFINE_ROWS(double, __m256d, pd, int64_t, 4, _mm256_set1_epi64x(0x7ff0000000000000), _mm256_cmpeq_epi64)

typedef unsigned Flags;
static Flags take_flags(void) {
    Flags flags = _mm_getcsr();
    _mm_setcsr(flags & ~0x3fu);
    return flags;
}
static int raised(void) { return (_mm_getcsr() & (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW)) != 0; }
static void restore_flags(Flags flags) { _mm_setcsr(flags); }

#else

static int has_fused_multiply_add(void) { return 0; }
static int products_ps(const Product *p, char *const *args, npy_intp count, const npy_intp *strides) { (void)p; (void)args; (void)count; (void)strides; return 0; }
static int products_pd(const Product *p, char *const *args, npy_intp count, const npy_intp *strides) { (void)p; (void)args; (void)count; (void)strides; return 0; }
typedef int Flags;
static Flags take_flags(void) { return 0; }
static int raised(void) { return 0; }
static void restore_flags(Flags flags) { (void)flags; }

#endif

static int products(int kind, const Product *p, char *const *args, npy_intp count, const npy_intp *strides) {
    return kind ? products_pd(p, args, count, strides) : products_ps(p, args, count, strides);
}

/* ---- the comparison with NumPy's loop */

enum { UNTRIED, SAME, DIFFERENT };
/* by dtype, whether x and y are transposed, and size: whether the bits are NumPy's */
static unsigned char verdicts[2][2][2][MAX_ROWS + 1][MAX_SIZE + 1][MAX_SIZE + 1];

enum { TRIALS = 32, GAP = 3 };

/* A random number whose products round; one of eight is a zero of either sign. */
static double random_number(uint64_t *state) {
    double value;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    value = (double)(int64_t)(*state >> 11) / 9007199254740992.0 - 0.5;
    if ((*state >> 33) % 8 == 0) return (*state >> 40) % 2 ? 0.0 : -0.0;
    return value * (double)(1 << (*state >> 50) % 12);
}

static void fill(int kind, char *x, npy_intp count, uint64_t *state) {
    npy_intp i;
    for (i = 0; i < count; i++) {
        if (kind) ((double *)x)[i] = random_number(state);
        else ((float *)x)[i] = (float)random_number(state);
    }
}

/* Compare products of random matrices with NumPy's, in orders and distances of rows that NumPy passes to BLAS. */
static int has_numpy_bits(int kind, const Product *given, int x_transposed, int y_transposed) {
    enum { BYTES = (MAX_ROWS + GAP) * (MAX_SIZE + GAP) * 8 + 64 };
    char *memory = PyMem_RawMalloc(4 * BYTES);
    uint64_t state = 20;
    npy_intp size = kind ? 8 : 4;
    int trial, same = memory != NULL;
    for (trial = 0; trial < TRIALS && same; trial++) {
        npy_intp gap = trial % 2 * GAP, shift = trial / 2 % 8 * size;
        npy_intp x_distance = (x_transposed ? given->m : given->k) + gap, y_distance = (y_transposed ? given->k : given->n) + gap;
        Product p = {given->m, given->k, given->n, x_transposed ? 1 : x_distance, x_transposed ? x_distance : 1, y_transposed ? 1 : y_distance, y_transposed ? y_distance : 1, given->n + gap};
        npy_intp dims[4] = {1, p.m, p.k, p.n}, outer[3] = {0, 0, 0};
        npy_intp strides[9] = {0, 0, 0, p.x_row * size, p.x_column * size, p.y_row * size, p.y_column * size, p.out_row * size, size};
        char *x = memory + shift, *y = memory + BYTES + shift, *expected = memory + 2 * BYTES, *found = memory + 3 * BYTES;
        char *numpy_args[3] = {x, y, expected}, *args[3] = {x, y, found};
        fill(kind, x, (p.m + GAP) * (p.k + GAP), &state);
        fill(kind, y, (p.k + GAP) * (p.n + GAP), &state);
        memset(expected, 0, 2 * BYTES);
        numpy_loops[kind].fn(numpy_args, dims, strides, numpy_loops[kind].data);
        products(kind, &p, args, 1, outer);
        same = memcmp(expected, found, BYTES) == 0;
    }
    PyMem_RawFree(memory);
    return same;
}

/* Whether BLAS reads a matrix whose elements are `size` bytes: NumPy's is_blasable2d. */
static int is_blas_matrix(npy_intp row, npy_intp column, npy_intp columns, npy_intp size) { return column == size && row % size == 0 && row / size >= columns; }

/* Whether the two operands of some product are at the same address. */
static int meet(char *const *args, npy_intp count, const npy_intp *strides) {
    npy_intp distance = args[1] - args[0], step = strides[0] - strides[1];
    if (step == 0) return distance == 0;
    return distance % step == 0 && distance / step >= 0 && distance / step < count;
}

/* Fill `p`, and whether x and y are transposed. 0 if NumPy does not call gemm for all products. dims: (count, m, k, n); the six strides of the core
   axes follow those of the operands. */
static int is_gemm(int kind, char *const *args, const npy_intp *dims, const npy_intp *strides, Product *p, int *transposed) {
    npy_intp size = kind ? 8 : 4;
    const npy_intp *core = strides + 3;
    *p = (Product){dims[1], dims[2], dims[3], core[0] / size, core[1] / size, core[2] / size, core[3] / size, core[4] / size};
    if (p->m < 2 || p->k < 2 || p->n < 2) return 0;
    transposed[0] = !is_blas_matrix(core[0], core[1], p->k, size);
    transposed[1] = !is_blas_matrix(core[2], core[3], p->n, size);
    if (transposed[0] && !is_blas_matrix(core[1], core[0], p->m, size)) return 0;
    if (transposed[1] && !is_blas_matrix(core[3], core[2], p->k, size)) return 0;
    if (!is_blas_matrix(core[4], core[5], p->n, size)) return 0;
    return p->m != p->n || core[0] != core[3] || core[1] != core[2] || !meet(args, dims[0], strides); /* NumPy calls syrk for x @ x.T */
}

static int is_small_product(int kind, char *const *args, const npy_intp *dims, const npy_intp *strides, Product *p) {
    unsigned char *verdict;
    int transposed[2];
    if (dims[1] > MAX_ROWS || dims[2] > MAX_SIZE || dims[3] > MAX_SIZE || dims[1] * dims[2] * dims[3] > MAX_WORK) return 0;
    if (!is_gemm(kind, args, dims, strides, p, transposed)) return 0;
    verdict = &verdicts[kind][transposed[0]][transposed[1]][p->m][p->k][p->n];
    if (*verdict == UNTRIED) {
        Flags flags = take_flags();
        *verdict = has_fused_multiply_add() && has_numpy_bits(kind, p, transposed[0], transposed[1]) ? SAME : DIFFERENT;
        restore_flags(flags);
    }
    return *verdict == SAME;
}

/* Compute products without NumPy's loop. 0 if it must compute them, because its bits or exceptions may be others. */
static int small_products(int kind, char *const *args, const npy_intp *dims, const npy_intp *strides) {
    Product p;
    Flags flags;
    int accepted;
    if (!is_small_product(kind, args, dims, strides, &p)) return 0;
    flags = take_flags();
    accepted = products(kind, &p, args, dims[0], strides) && !raised();
    restore_flags(flags);
    return accepted;
}

static void matmul_f4(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    (void)data;
    if (!small_products(0, args, dims, strides)) numpy_loops[0].fn(args, dims, strides, numpy_loops[0].data);
}

static void matmul_f8(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    (void)data;
    if (!small_products(1, args, dims, strides)) numpy_loops[1].fn(args, dims, strides, numpy_loops[1].data);
}

static const InnerLoop own_loops[2] = {matmul_f4, matmul_f8};

/* ---- np.matmul */

typedef struct {
    int kind, ndim;                                      /* kind: 0 float, 1 double; ndim: number of axes of the stack */
    npy_intp dims[4], strides[9];                        /* of one product: (1, m, k, n); of the operands, then of the core axes */
    npy_intp shape[NPY_MAXDIMS], outer[NPY_MAXDIMS][3]; /* lengths of the axes of the stack; strides of the operands and the result */
    npy_intp count;                                      /* number of products */
    char *args[3];
} Stack;

/* Compute the products [first, last) of a stack. */
static void run_stack(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Stack *stack = context;
    npy_intp inner = stack->ndim ? stack->shape[stack->ndim - 1] : 1, dims[4];
    int axis, k;
    (void)scratch;
    memcpy(dims, stack->dims, sizeof(dims));
    for (; first < last; first += dims[0]) {
        npy_intp index = first;
        char *args[3] = {stack->args[0], stack->args[1], stack->args[2]};
        dims[0] = inner - first % inner < last - first ? inner - first % inner : last - first;
        for (axis = stack->ndim - 1; axis >= 0; axis--) {
            for (k = 0; k < 3; k++) args[k] += index % stack->shape[axis] * stack->outer[axis][k];
            index /= stack->shape[axis];
        }
        own_loops[stack->kind](args, dims, stack->strides, NULL);
    }
}

/* The dtype of an aligned array in native byte order: 0 float, 1 double, -1 any other. */
static int dtype_of(PyObject *x) {
    int type = PyArray_CheckExact(x) && PyArray_ISBEHAVED_RO((PyArrayObject *)x) ? PyArray_TYPE((PyArrayObject *)x) : -1;
    return type == NPY_FLOAT ? 0 : type == NPY_DOUBLE ? 1 : -1;
}

/* Fill the axes of the stack. 0 if the shapes do not fit, or if NumPy's result may not be in C order, as that of operands in another order. */
static int read_stack(PyArrayObject *const *operands, Stack *stack) {
    int i, k;
    stack->count = 1;
    for (i = 0; i < stack->ndim; i++) stack->shape[i] = 1;
    for (k = 0; k < 2; k++) {
        int missing = stack->ndim + 2 - PyArray_NDIM(operands[k]);
        npy_intp before = NPY_MAX_INTP;
        for (i = 0; i < stack->ndim; i++) {
            npy_intp length = i < missing ? 1 : PyArray_DIM(operands[k], i - missing);
            npy_intp stride = length == 1 ? 0 : PyArray_STRIDE(operands[k], i - missing);
            if (length == 0 || stride < 0 || (length > 1 && stack->shape[i] > 1 && length != stack->shape[i])) return 0;
            if (stride > before) return 0;
            if (stride > 0) before = stride;
            if (length > 1) stack->shape[i] = length;
            stack->outer[i][k] = stride;
        }
    }
    for (i = 0; i < stack->ndim; i++) stack->count *= stack->shape[i];
    return 1;
}

/* Return a new array for the result, and fill the description of the call; NULL if only NumPy can compute it. */
static PyArrayObject *prepare(PyObject *x_object, PyObject *y_object, Stack *stack) {
    PyArrayObject *x = (PyArrayObject *)x_object, *y = (PyArrayObject *)y_object, *operands[2] = {x, y}, *out;
    npy_intp shape[NPY_MAXDIMS], size;
    int axis, k, ndim;
    stack->kind = dtype_of(x_object);
    if (stack->kind < 0 || dtype_of(y_object) != stack->kind || PyArray_NDIM(x) < 2 || PyArray_NDIM(y) < 2) return NULL;
    ndim = PyArray_NDIM(x) > PyArray_NDIM(y) ? PyArray_NDIM(x) : PyArray_NDIM(y);
    stack->ndim = ndim - 2;
    stack->dims[0] = 1;
    stack->dims[1] = PyArray_DIM(x, PyArray_NDIM(x) - 2);
    stack->dims[2] = PyArray_DIM(x, PyArray_NDIM(x) - 1);
    stack->dims[3] = PyArray_DIM(y, PyArray_NDIM(y) - 1);
    if (stack->dims[2] != PyArray_DIM(y, PyArray_NDIM(y) - 2) || stack->dims[1] == 0 || stack->dims[2] == 0 || stack->dims[3] == 0) return NULL;
    if (!read_stack(operands, stack)) return NULL;
    memcpy(shape, stack->shape, sizeof(npy_intp) * (size_t)stack->ndim);
    shape[ndim - 2] = stack->dims[1];
    shape[ndim - 1] = stack->dims[3];
    out = (PyArrayObject *)PyArray_SimpleNew(ndim, shape, stack->kind ? NPY_DOUBLE : NPY_FLOAT);
    if (out == NULL) {
        PyErr_Clear(); /* NumPy will raise the error */
        return NULL;
    }
    for (k = 0; k < 2; k++) {
        for (axis = 0; axis < 2; axis++) {
            npy_intp at = PyArray_NDIM(operands[k]) - 2 + axis;
            stack->strides[3 + 2 * k + axis] = PyArray_DIM(operands[k], at) == 1 ? 0 : PyArray_STRIDE(operands[k], at);
        }
    }
    size = PyArray_ITEMSIZE(out);
    stack->strides[7] = stack->dims[1] == 1 ? 0 : size * stack->dims[3];
    stack->strides[8] = stack->dims[3] == 1 ? 0 : size;
    for (axis = 0; axis < stack->ndim; axis++) stack->outer[axis][2] = PyArray_STRIDE(out, axis);
    for (k = 0; k < 3; k++) stack->strides[k] = stack->ndim ? stack->outer[stack->ndim - 1][k] : 0;
    stack->args[0] = PyArray_BYTES(x);
    stack->args[1] = PyArray_BYTES(y);
    stack->args[2] = PyArray_BYTES(out);
    return out;
}

PyObject *product_without_blas(PyObject *x, PyObject *y) {
    PyArrayObject *out;
    Stack stack;
    if (PyArray_NDIM((PyArrayObject *)x) != 2 || PyArray_NDIM((PyArrayObject *)y) != 2 || PyArray_SIZE((PyArrayObject *)x) > MAX_ROWS * MAX_SIZE || PyArray_SIZE((PyArrayObject *)y) > MAX_SIZE * MAX_SIZE) return NULL;
    out = prepare(x, y, &stack);
    if (out != NULL && !small_products(stack.kind, stack.args, stack.dims, stack.strides)) Py_CLEAR(out);
    return (PyObject *)out;
}

/* ---- threads

   A BLAS with threads uses them in each product of a stack, even if a product is too short to gain from them. Such a stack is divided among the
   threads of pool.c, and BLAS uses one thread meanwhile. The setting of OpenBLAS holds for all threads of the process. It is therefore changed only
   while this thread has the GIL. */

static struct {
    int (*get)(void);
    void (*set)(int);
} blas_threads;

/* Multiplications of one product up to which threads of BLAS do not share it; multiplications of a stack that threads share. */
#define MAX_DIVIDED 2200000.0
#define MIN_STACK 500000.0
#define MAX_STACK 100000000.0

/* The sizes that were compared: whether products on one thread have the bits of those on several. A new size replaces an old one. */
enum { COMPARED = 64 };
static struct {
    npy_intp key[7]; /* dtype, x and y transposed, m, k, n, number of threads */
    int same;
} compared[COMPARED];

/* Compare a product of random matrices on one thread of BLAS with the same on `threads` threads. The caller has the GIL. */
static int compare_threads(int kind, const Product *given, const int *transposed, int threads) {
    npy_intp m = given->m, k = given->k, n = given->n, size = kind ? 8 : 4, dims[4] = {1, m, k, n};
    npy_intp strides[9] = {0, 0, 0, (transposed[0] ? 1 : k) * size, (transposed[0] ? m : 1) * size, (transposed[1] ? 1 : n) * size, (transposed[1] ? k : 1) * size, n * size, size};
    char *memory = PyMem_RawMalloc((size_t)((m * k + k * n + 2 * m * n) * size)), *x = memory, *y = x + m * k * size, *on_one = y + k * n * size, *on_several = on_one + m * n * size;
    uint64_t state = 20;
    int same;
    if (memory == NULL) return 0;
    fill(kind, x, m * k + k * n, &state);
    for (same = 0; same < 2; same++) {
        char *args[3] = {x, y, same ? on_one : on_several};
        if (same) blas_threads.set(1);
        numpy_loops[kind].fn(args, dims, strides, numpy_loops[kind].data);
        if (same) blas_threads.set(threads);
    }
    same = memcmp(on_one, on_several, (size_t)(m * n * size)) == 0;
    PyMem_RawFree(memory);
    return same;
}

/* Whether the operands may share memory. A product x @ x.T is not compared: NumPy calls syrk for it. */
static int may_overlap(const Stack *stack) {
    const char *end[2];
    int axis, k;
    for (k = 0; k < 2; k++) {
        end[k] = stack->args[k] + (stack->dims[1 + k] - 1) * stack->strides[3 + 2 * k] + stack->dims[2 + k] * stack->strides[4 + 2 * k];
        for (axis = 0; axis < stack->ndim; axis++) end[k] += (stack->shape[axis] - 1) * stack->outer[axis][k];
    }
    return stack->args[0] < end[1] && stack->args[1] < end[0];
}

static int has_bits_of_one_thread(const Stack *stack, int threads) {
    Product p;
    int transposed[2];
    if (may_overlap(stack) || !is_gemm(stack->kind, stack->args, stack->dims, stack->strides, &p, transposed)) return 0;
    npy_intp key[7] = {stack->kind, transposed[0], transposed[1], p.m, p.k, p.n, threads};
    size_t hash = 0, i;
    for (i = 0; i < 7; i++) hash = hash * 31 + (size_t)key[i];
    if (memcmp(compared[hash % COMPARED].key, key, sizeof(key)) != 0) {
        Flags flags = take_flags();
        memcpy(compared[hash % COMPARED].key, key, sizeof(key));
        compared[hash % COMPARED].same = compare_threads(stack->kind, &p, transposed, threads);
        restore_flags(flags);
    }
    return compared[hash % COMPARED].same;
}

/* The number of threads of BLAS during a divided stack: 1, 0 if BLAS is not called, -1 if the stack is not divided. */
static int blas_threads_before(const Stack *stack, double product, double work) {
    static int connected;
    int threads;
    if (stack->count < 2 || get_threads() < 2 || work < MIN_STACK) return -1;
    if (product <= MAX_WORK) return 0; /* BLAS does not use threads */
    if (product > MAX_DIVIDED || work > MAX_STACK) return -1;
    if (!connected) {
        PyObject *addresses = PyObject_CallNoArgs(find_blas_threads);
        Py_ssize_t get, set;
        connected = 1;
        if (addresses == NULL || !PyArg_ParseTuple(addresses, "nn", &get, &set)) {
            PyErr_Clear(); /* NumPy's matmul needs no threads */
        } else {
            blas_threads.get = (int (*)(void))get;
            blas_threads.set = (void (*)(int))set;
        }
        Py_XDECREF(addresses);
    }
    if (blas_threads.get == NULL || blas_threads.set == NULL) return -1;
    threads = blas_threads.get();
#ifdef Py_GIL_DISABLED
    if (threads > 1) return -1; /* another thread may call BLAS meanwhile */
#endif
    return threads < 1 || (threads > 1 && !has_bits_of_one_thread(stack, threads)) ? -1 : threads;
}

static PyObject *matmul(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *out;
    Stack stack;
    double product, work;
    int exceptions = 0, threads;
    (void)module;
    if (nargs != 2 || numpy_matmul == NULL) {
        PyErr_SetString(PyExc_TypeError, "matmul takes two operands, after use_matmul");
        return NULL;
    }
    out = prepare(args[0], args[1], &stack);
    if (out == NULL) return PyObject_Vectorcall(numpy_matmul, args, 2, NULL);
    product = (double)stack.dims[1] * (double)stack.dims[2] * (double)stack.dims[3];
    work = product * (double)stack.count;
    threads = blas_threads_before(&stack, product, work);
    clear_exceptions();
    if (threads > 1) {
        blas_threads.set(1);
        exceptions = parallel_for(run_stack, &stack, stack.count, work / 8, 0, NULL) | read_exceptions();
        blas_threads.set(threads);
    } else if (work < RELEASE_FROM) {
        run_stack(&stack, 0, stack.count, NULL);
        exceptions = read_exceptions();
    } else {
        Py_BEGIN_ALLOW_THREADS
        if (threads < 0) run_stack(&stack, 0, stack.count, NULL);
        else exceptions = parallel_for(run_stack, &stack, stack.count, work / 8, 0, NULL);
        exceptions |= read_exceptions();
        Py_END_ALLOW_THREADS
    }
    if (exceptions && PyUFunc_GiveFloatingpointErrors("matmul", exceptions) < 0) Py_CLEAR(out);
    return (PyObject *)out;
}

static PyObject *use_matmul(PyObject *module, PyObject *args) {
    PyObject *object, *find;
    PyUFuncObject *ufunc;
    int kind, i;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:use_matmul", &object, &find)) return NULL;
    ufunc = (PyUFuncObject *)object;
    if (Py_TYPE(object) != &PyUFunc_Type || ufunc->nin != 2 || ufunc->nout != 1 || ufunc->functions == NULL) {
        PyErr_SetString(PyExc_TypeError, "use_matmul needs the ufunc np.matmul");
        return NULL;
    }
    for (kind = 0; kind < 2; kind++) {
        char type = kind ? NPY_DOUBLE : NPY_FLOAT;
        for (i = 0; i < ufunc->ntypes && (ufunc->types[3 * i] != type || ufunc->types[3 * i + 1] != type || ufunc->types[3 * i + 2] != type); i++) {}
        if (i == ufunc->ntypes || ufunc->functions[i] == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "np.matmul has no loop for float32 or float64");
            return NULL;
        }
        numpy_loops[kind] = (Loop){(InnerLoop)ufunc->functions[i], ufunc->data == NULL ? NULL : (void *)ufunc->data[i]};
    }
    Py_XSETREF(numpy_matmul, Py_NewRef(object));
    Py_XSETREF(find_blas_threads, Py_NewRef(find));
    return Py_BuildValue("{sNsN}", "f", PyLong_FromVoidPtr((void *)matmul_f4), "d", PyLong_FromVoidPtr((void *)matmul_f8));
}

PyMethodDef matmul_functions[] = {
    {"matmul", (PyCFunction)(void (*)(void))matmul, METH_FASTCALL, "matmul(x, y): np.matmul(x, y); small products of arrays are computed without BLAS"},
    {"use_matmul", use_matmul, METH_VARARGS, "use_matmul(ufunc, find_blas_threads): set np.matmul, and the function that returns the addresses of the functions that get and set the number of BLAS threads; return the addresses of loops with the same results, by the characters of their dtypes"},
    {NULL, NULL, 0, NULL},
};
