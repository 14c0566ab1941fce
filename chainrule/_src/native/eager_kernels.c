/* Values of eager operations on small arrays. Calls NumPy's inner loops directly, with the bits, shapes and warnings of the ufunc, and runs
   programs: traced rules and values as lists of kernel calls. primitive.c, operation.c and sweep.c call these functions. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <xmmintrin.h> /* about ten times faster than fenv.h */
#define EXCEPTIONS (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW)
/* The flags of the x87 unit, which the C library sets on overflow and underflow. They have the same bits. */
static inline unsigned x87_exceptions(void) {
    unsigned short word;
    __asm__ volatile("fnstsw %0" : "=a"(word));
    return word & (1 | 4 | 8 | 16);
}
static inline int any_exception(void) { return (_mm_getcsr() & EXCEPTIONS) != 0 || x87_exceptions() != 0; }
#define CLEAR_EXCEPTIONS() (any_exception() ? clear_exceptions() : (void)0)
#define ANY_EXCEPTION() any_exception()
#else
#define CLEAR_EXCEPTIONS() clear_exceptions()
#define ANY_EXCEPTION() (read_exceptions() != 0)
#endif

#define SIZE(kind) ((kind) ? 8 : 4)

static Function add;

int take_exceptions(void) {
    int exceptions;
    if (!ANY_EXCEPTION()) return 0;
    exceptions = read_exceptions();
    clear_exceptions();
    return exceptions;
}

int run_loop(Loop loop, char **args, npy_intp n, const npy_intp *strides) {
    CLEAR_EXCEPTIONS();
    loop.fn(args, &n, strides, loop.data);
    return ANY_EXCEPTION() ? read_exceptions() : 0;
}

/* ---- functions */

static Loop loop_at(const PyUFuncObject *ufunc, int index) {
    return (Loop){(InnerLoop)ufunc->functions[index], ufunc->data == NULL ? NULL : (void *)ufunc->data[index]};
}

/* Return the loop for operands of one type, with a result of that type or bool; fn is NULL if the ufunc has none. */
static Loop loop_of(const PyUFuncObject *ufunc, int type, int *gives_mask) {
    int i, k, result;
    for (i = 0; i < ufunc->ntypes; i++) {
        for (k = 0; k < ufunc->nin && ufunc->types[i * ufunc->nargs + k] == type; k++) {}
        result = ufunc->types[i * ufunc->nargs + ufunc->nin];
        *gives_mask = result == NPY_BOOL;
        if (k == ufunc->nin && (result == type || result == NPY_BOOL)) return loop_at(ufunc, i);
    }
    return (Loop){NULL, NULL};
}

/* Whether the results of a ufunc are correctly rounded, so that the bits do not depend on how elements are grouped into calls. */
static int is_exact(const char *name) {
    static const char *const exact[] = {"add", "subtract", "multiply", "divide", "negative", "positive", "square", "sqrt", "absolute", "reciprocal",
        "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_not", "logical_and", "logical_or", "isnan", "isfinite",
        "bitwise_and", "bitwise_or", "invert", "sign", NULL};
    int i;
    for (i = 0; exact[i] != NULL; i++) {
        if (strcmp(exact[i], name) == 0) return 1;
    }
    return 0;
}

static int is_elementwise(PyObject *value, int nin) {
    PyUFuncObject *ufunc = (PyUFuncObject *)value;
    return Py_TYPE(value) == &PyUFunc_Type && ufunc->nin == nin && ufunc->nout == 1 && !ufunc->core_enabled && ufunc->functions != NULL;
}

/* Whether a ufunc is one of NumPy's, whose inner loops run without the GIL and in any thread. Those of SciPy may raise Python errors. */
static int is_of_numpy(PyObject *ufunc) {
    static PyObject *numpy;
    PyObject *found;
    if (numpy == NULL && (numpy = PyImport_ImportModule("numpy")) == NULL) {
        PyErr_Clear();
        return 0;
    }
    found = PyObject_GetAttrString(numpy, ((PyUFuncObject *)ufunc)->name);
    if (found == NULL) PyErr_Clear();
    Py_XDECREF(found);
    return found == ufunc;
}

int read_function(Function *function, PyObject *value, int nin) {
    memset(function, 0, sizeof(Function));
    function->value = Py_NewRef(value);
    if (nin < 1 || nin > 2 || !is_elementwise(value, nin)) return 0;
    function->ufunc = Py_NewRef(value);
    function->threads = is_of_numpy(value);
    function->kernels[0] = loop_of((PyUFuncObject *)value, NPY_FLOAT, &function->gives_mask);
    function->kernels[1] = loop_of((PyUFuncObject *)value, NPY_DOUBLE, &function->gives_mask);
    function->exact = is_exact(((PyUFuncObject *)value)->name);
    return 1;
}

int read_numpy_function(Function *function, const char *name, int nin) {
    PyObject *numpy = PyImport_ImportModule("numpy"), *ufunc = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, name);
    int done = ufunc != NULL && read_function(function, ufunc, nin);
    Py_XDECREF(numpy);
    Py_XDECREF(ufunc);
    PyErr_Clear();
    return done ? 0 : -1;
}

void clear_function(Function *function) {
    Py_CLEAR(function->value);
    Py_CLEAR(function->ufunc);
}

int visit_function(const Function *function, visitproc visit, void *arg) {
    Py_VISIT(function->value);
    Py_VISIT(function->ufunc);
    return 0;
}

/* ---- arrays and numbers */

typedef union {
    float narrow;
    double wide;
} Number;

int read_number(PyObject *object, int kind, void *target) {
    Number *number = target;
    double value = PyFloat_CheckExact(object) ? PyFloat_AS_DOUBLE(object) : PyLong_AsDouble(object);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (kind) {
        number->wide = value;
        return 1;
    }
    number->narrow = (float)value;
    return !isfinite(value) || isfinite(number->narrow);
}

PyObject *array_of(PyObject *number, int kind) {
    Number value;
    PyObject *array = read_number(number, kind, &value) ? new_array(kind, 0, NULL) : NULL;
    if (array != NULL) memcpy(PyArray_DATA((PyArrayObject *)array), &value, SIZE(kind));
    return array;
}

PyObject *as_array(PyObject *result) {
    PyObject *array;
    if (result == NULL || PyArray_CheckExact(result)) return result;
    if (!PyArray_CheckScalar(result) && !PyArray_Check(result) && !PyFloat_Check(result) && !PyLong_Check(result) && !PyComplex_Check(result)) return result; /* an array of another library */
    array = PyArray_FROM_O(result);
    Py_DECREF(result);
    if (array == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    return array;
}

/* A cache of (shape, dtype) pairs, and of 1-tuples of them. Nodes share them, which saves memory and work of the garbage collector. */
enum { AVAL_CACHE_SIZE = 256, MAX_CACHED_NDIM = 4 };
typedef struct {
    PyObject *aval, *aval_tuple;
    int ndim;
    npy_intp dims[MAX_CACHED_NDIM];
} CachedAval;
static CachedAval aval_cache[AVAL_CACHE_SIZE];

static CachedAval new_aval(PyArrayObject *array) {
    CachedAval entry = {NULL, NULL, PyArray_NDIM(array), {0}};
    PyObject *dtype = Py_NewRef((PyObject *)PyArray_DESCR(array)), *dims;
    int i;
    for (i = 0; i < entry.ndim && i < MAX_CACHED_NDIM; i++) entry.dims[i] = PyArray_DIM(array, i);
    dims = PyArray_IntTupleFromIntp(entry.ndim, PyArray_DIMS(array));
    if (dims != NULL) entry.aval = PyTuple_Pack(2, dims, dtype);
    if (entry.aval != NULL) entry.aval_tuple = PyTuple_Pack(1, entry.aval);
    if (entry.aval_tuple == NULL) Py_CLEAR(entry.aval);
    Py_XDECREF(dims);
    Py_DECREF(dtype);
    return entry;
}

static void drop_aval(CachedAval shape) {
    Py_XDECREF(shape.aval);
    Py_XDECREF(shape.aval_tuple);
}

/* Return the (shape, dtype) of an array, or a 1-tuple of it. */
static PyObject *cached_aval(PyArrayObject *array, int as_tuple) {
    int i, ndim = PyArray_NDIM(array);
    size_t hash = (size_t)PyArray_DESCR(array) >> 4;
    PyObject *result;
    CachedAval *slot = NULL, entry;
    if (ndim <= MAX_CACHED_NDIM) {
        for (i = 0; i < ndim; i++) hash = hash * 31 + (size_t)PyArray_DIM(array, i);
        slot = &aval_cache[(hash * 31 + (size_t)ndim) % AVAL_CACHE_SIZE];
        if (slot->aval != NULL && slot->ndim == ndim && PyTuple_GET_ITEM(slot->aval, 1) == (PyObject *)PyArray_DESCR(array)) {
            for (i = 0; i < ndim && slot->dims[i] == PyArray_DIM(array, i); i++) {}
            if (i == ndim) return Py_NewRef(as_tuple ? slot->aval_tuple : slot->aval);
        }
    }
    entry = new_aval(array);
    result = Py_XNewRef(as_tuple ? entry.aval_tuple : entry.aval);
    if (result != NULL && slot != NULL) {
        CachedAval old = *slot;
        *slot = entry;
        entry = old;
    }
    drop_aval(entry);
    return result;
}

PyObject *aval_of(PyObject *array) { return cached_aval((PyArrayObject *)array, 0); }
PyObject *aval_tuple_of(PyObject *array) { return cached_aval((PyArrayObject *)array, 1); }

/* The stride that NumPy passes to inner loops for arrays that need no iterator. */
static npy_intp stride_of(PyArrayObject *x) { return PyArray_NDIM(x) == 1 ? PyArray_STRIDE(x, 0) : PyArray_NDIM(x) == 0 ? 0 : PyArray_ITEMSIZE(x); }

int is_single_element(PyArrayObject *x) {
    int i;
    for (i = 0; i < PyArray_NDIM(x); i++) {
        if (PyArray_STRIDE(x, i) != 0) return 0;
    }
    return 1;
}

/* Whether the shape of y is a suffix of the shape of x. */
static int is_trailing_shape(PyArrayObject *y, PyArrayObject *x) {
    int leading = PyArray_NDIM(x) - PyArray_NDIM(y);
    return leading > 0 && PyArray_SIZE(y) > 0 && PyArray_CompareLists(PyArray_DIMS(x) + leading, PyArray_DIMS(y), PyArray_NDIM(y));
}

static PyObject *call_value(const Function *function, int nin, PyObject *const *raw) {
    return as_array(call_in_error_state(function->value, raw, (size_t)nin, NULL));
}

/* Call NumPy and write the result into the first operand. */
static PyObject *call_into(const Function *function, int nin, PyObject *const *raw) {
    PyObject *args[] = {raw[0], nin == 2 ? raw[1] : raw[0], raw[0]};
    return call_in_error_state(function->value, args, (size_t)nin + 1, NULL);
}

static PyObject *call_in_python(const Function *function, int nin, PyObject *const *raw, int into) { return into ? call_into(function, nin, raw) : call_value(function, nin, raw); }

/* Compute the address range of the elements of a nonempty array. */
static void byte_range(PyArrayObject *x, const char **low, const char **high) {
    int i;
    *low = PyArray_BYTES(x);
    *high = *low + PyArray_ITEMSIZE(x);
    for (i = 0; i < PyArray_NDIM(x); i++) {
        npy_intp span = (PyArray_DIM(x, i) - 1) * PyArray_STRIDE(x, i);
        if (span < 0) *low += span;
        else *high += span;
    }
}

/* Whether two arrays have the same elements at the same addresses, in the same order. */
static int is_same_view(PyArrayObject *x, PyArrayObject *y) {
    int i;
    if (PyArray_BYTES(x) != PyArray_BYTES(y) || !PyArray_SAMESHAPE(x, y)) return 0;
    for (i = 0; i < PyArray_NDIM(x); i++) {
        if (PyArray_DIM(x, i) > 1 && PyArray_STRIDE(x, i) != PyArray_STRIDE(y, i)) return 0;
    }
    return 1;
}

/* Whether writing x while reading y may overwrite elements of y before they are read. */
static int clobbers(PyArrayObject *x, PyArrayObject *y) {
    const char *x_low, *x_high, *y_low, *y_high;
    byte_range(x, &x_low, &x_high);
    byte_range(y, &y_low, &y_high);
    return x_low < y_high && y_low < x_high && !is_same_view(x, y);
}

/* A large call of an inner loop. Threads share its rows, or chunks of its single row. */
typedef struct {
    Loop loop;
    int nargs;
    npy_intp n, rows;
    char *const *args;
    const npy_intp *strides, *row_strides;
} LargeCall;

/* Elements of a chunk: a multiple of all vector lengths, so that each element has the bits of a single call */
enum { CHUNK = 4096 };

static void run_large_range(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const LargeCall *call = context;
    char *args[3];
    npy_intp i, n = call->n;
    int k;
    (void)scratch;
    if (call->rows > 1) {
        for (i = first; i < last; i++) {
            for (k = 0; k < call->nargs; k++) args[k] = call->args[k] + i * call->row_strides[k];
            call->loop.fn(args, &n, call->strides, call->loop.data);
        }
        return;
    }
    n = last * CHUNK < call->n ? (last - first) * CHUNK : call->n - first * CHUNK;
    for (k = 0; k < call->nargs; k++) args[k] = call->args[k] + first * CHUNK * call->strides[k];
    call->loop.fn(args, &n, call->strides, call->loop.data);
}

/* Run a large call without the GIL, and return the floating-point exceptions. `cost`: work of an element, such that threads share a sum from
   524,288 elements: to wake a thread takes twenty microseconds */
static int run_large(const LargeCall *call, double cost) {
    npy_intp count = call->rows > 1 ? call->rows : (call->n + CHUNK - 1) / CHUNK;
    int exceptions;
    Py_BEGIN_ALLOW_THREADS
    clear_exceptions();
    exceptions = parallel_for(run_large_range, call, count, cost * (double)call->n * (double)call->rows, 0, NULL) | read_exceptions();
    Py_END_ALLOW_THREADS
    return exceptions;
}

/* Apply a function whose bits do not depend on the layout to two C-contiguous arrays that broadcast: one call of the kernel for each row.
   NULL without an error: slow path. */
static PyObject *apply_by_rows(const Function *function, Loop loop, int kind, PyArrayObject *const *arrays) {
    npy_intp dims[NPY_MAXDIMS], index[NPY_MAXDIMS] = {0}, steps[2][NPY_MAXDIMS], strides[3], n = 1, row, count;
    int ndim = PyArray_NDIM(arrays[0]) > PyArray_NDIM(arrays[1]) ? PyArray_NDIM(arrays[0]) : PyArray_NDIM(arrays[1]), k, i, inner = 0, exceptions;
    char *args[3];
    PyObject *out;
    PyThreadState *released;
    for (i = 0; i < ndim; i++) dims[i] = 1;
    for (k = 0; k < 2; k++) {
        for (i = 0; i < ndim; i++) {
            int own = i - (ndim - PyArray_NDIM(arrays[k]));
            npy_intp dim = own < 0 ? 1 : PyArray_DIM(arrays[k], own);
            steps[k][i] = dim == 1 ? 0 : PyArray_STRIDE(arrays[k], own);
            if (dim == 1) continue;
            if (dims[i] != 1 && dims[i] != dim) return NULL;
            dims[i] = dim;
        }
        args[k] = PyArray_BYTES(arrays[k]);
    }
    for (i = 0; i < ndim; i++) {
        if (dims[i] > 1) inner = i; /* the last axis that is not of length 1 */
        n *= dims[i];
    }
    row = dims[inner];
    if (n == 0 || row < 4) return NULL;
    out = new_array(function->gives_mask ? 2 : kind, ndim, dims);
    if (out == NULL) return NULL;
    args[2] = PyArray_BYTES((PyArrayObject *)out);
    strides[0] = steps[0][inner];
    strides[1] = steps[1][inner];
    strides[2] = PyArray_ITEMSIZE((PyArrayObject *)out);
    released = n > DIRECT_MOST ? PyEval_SaveThread() : NULL;
    CLEAR_EXCEPTIONS();
    for (count = n / row; count > 0; count--) {
        char *pointers[3] = {args[0], args[1], args[2]};
        npy_intp length = row;
        loop.fn(pointers, &length, strides, loop.data);
        args[2] += row * strides[2];
        for (i = inner - 1; i >= 0; i--) { /* the next index */
            args[0] += steps[0][i];
            args[1] += steps[1][i];
            if (++index[i] < dims[i]) break;
            index[i] = 0;
            args[0] -= steps[0][i] * dims[i];
            args[1] -= steps[1][i] * dims[i];
        }
    }
    exceptions = ANY_EXCEPTION() ? read_exceptions() : 0;
    if (released != NULL) PyEval_RestoreThread(released);
    if (PyErr_Occurred() || (exceptions && report_exceptions(((PyUFuncObject *)function->ufunc)->name, exceptions) < 0)) Py_CLEAR(out);
    return out;
}

PyObject *apply_function(const Function *function, int nin, PyObject *const *raw, int into) {
    PyArrayObject *arrays[2] = {NULL, NULL}, *like = NULL, *out;
    Number number;
    Loop loop;
    npy_intp strides[3], n, rows = 1, row[3] = {0, 0, 0}, i;
    char *args[3], *pointers[3];
    int k, exceptions = 0, kind, large;
    for (k = 0; k < nin; k++) {
        arrays[k] = PyArray_CheckExact(raw[k]) ? (PyArrayObject *)raw[k] : NULL;
        if (arrays[k] != NULL && (like == NULL || PyArray_NDIM(arrays[k]) > PyArray_NDIM(like))) like = arrays[k];
    }
    kind = kind_of((PyObject *)like);
    if (kind < 0 || (loop = function->kernels[kind]).fn == NULL) return call_in_python(function, nin, raw, into);
    n = PyArray_SIZE(like);
    large = n > DIRECT_MOST;
    if ((large && !function->threads) || n == 0) return call_in_python(function, nin, raw, into);
    for (k = 0; k < nin; k++) {
        if (arrays[k] == NULL) {
            if (!read_number(raw[k], kind, &number)) return call_in_python(function, nin, raw, into);
            pointers[k] = (char *)&number;
            strides[k] = 0;
            continue;
        }
        if (kind_of(raw[k]) != kind) return call_in_python(function, nin, raw, into);
        pointers[k] = PyArray_BYTES(arrays[k]);
        strides[k] = stride_of(arrays[k]);
        if (PyArray_ISCARRAY_RO(arrays[k])) continue;
        if (!function->exact || nin == 1 || !PyArray_ISBEHAVED_RO(arrays[k]) || !is_single_element(arrays[k])) return call_in_python(function, nin, raw, into);
        strides[k] = 0;
    }
    if (arrays[0] != NULL && arrays[1] != NULL && !PyArray_SAMESHAPE(arrays[0], arrays[1])) {
        PyArrayObject *smaller = arrays[like == arrays[0]];
        if (PyArray_NDIM(smaller) > 0) {
            if (!into && function->exact && PyArray_ISCARRAY_RO(arrays[0]) && PyArray_ISCARRAY_RO(arrays[1]) && !is_trailing_shape(smaller, like)) {
                PyObject *rowwise = apply_by_rows(function, loop, kind, arrays);
                if (rowwise != NULL || PyErr_Occurred()) return rowwise;
            }
            if (!function->exact || !is_trailing_shape(smaller, like) || strides[0] == 0 || strides[1] == 0) return call_in_python(function, nin, raw, into);
            rows = n / PyArray_SIZE(smaller);
            n = PyArray_SIZE(smaller);
            strides[0] = strides[1] = PyArray_ITEMSIZE(like);
            for (k = 0; k < 2; k++) row[k] = arrays[k] == like ? n * PyArray_ITEMSIZE(like) : 0;
        }
    }
    if (into && (like != arrays[0] || !PyArray_ISCARRAY(like) || (arrays[1] != NULL && clobbers(arrays[0], arrays[1])))) return call_into(function, nin, raw);
    out = (PyArrayObject *)(into ? Py_NewRef(raw[0]) : new_array(function->gives_mask ? 2 : kind, PyArray_NDIM(like), PyArray_DIMS(like)));
    if (out == NULL) return NULL;
    pointers[nin] = PyArray_BYTES(out);
    strides[nin] = PyArray_ITEMSIZE(out);
    row[nin] = n * PyArray_ITEMSIZE(out);
    for (i = 0; i < rows && !large; i++) {
        for (k = 0; k <= nin; k++) args[k] = pointers[k] + i * row[k];
        exceptions |= run_loop(loop, args, n, strides);
    }
    if (large) {
        LargeCall call = {loop, nin + 1, n, rows, pointers, strides, row};
        exceptions = run_large(&call, function->exact ? 0.25 : 0.5);
    }
    if (PyErr_Occurred() || (exceptions && report_exceptions(((PyUFuncObject *)function->ufunc)->name, exceptions) < 0)) Py_CLEAR(out); /* SciPy's loops may raise */
    return (PyObject *)out;
}

/* ---- sums */

Loop addition(int kind) { return add.kernels[kind]; }

PyObject *add_arrays(PyObject *x, PyObject *y) {
    PyObject *both[] = {x, y};
    return apply_function(&add, 2, both, 0);
}

PyObject *add_into(PyObject *x, PyObject *y) {
    PyObject *args[] = {x, y, x};
    return call_in_error_state(add.value, args, 3, NULL);
}

int add_in_place(PyObject *x, PyObject *y) {
    PyArrayObject *into = (PyArrayObject *)x;
    char *args[] = {PyArray_BYTES(into), PyArray_BYTES((PyArrayObject *)y), PyArray_BYTES(into)};
    npy_intp step = PyArray_ITEMSIZE(into), strides[] = {step, step, step};
    return run_loop(add.kernels[kind_of(x)], args, PyArray_SIZE(into), strides);
}

/* Initial zeros of a sum. NumPy's sums start from 0 as well, so a sum of -0. is 0. */
static PyObject *new_zeros(int kind, int ndim, const npy_intp *dims) {
    PyObject *zeros = new_array(kind, ndim, dims);
    if (zeros != NULL) memset(PyArray_DATA((PyArrayObject *)zeros), 0, (size_t)PyArray_NBYTES((PyArrayObject *)zeros));
    return zeros;
}

PyObject *sum_all(PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    int kind = kind_of(x), exceptions;
    npy_intp n = PyArray_SIZE(array), strides[3] = {0, PyArray_ITEMSIZE(array), 0};
    PyObject *out;
    char *args[3];
    if (kind < 0 || n == 0 || n > DIRECT_MOST || !PyArray_ISCARRAY_RO(array) || add.kernels[kind].fn == NULL) return NULL;
    out = new_zeros(kind, 0, NULL);
    if (out == NULL) return NULL;
    args[0] = args[2] = PyArray_BYTES((PyArrayObject *)out);
    args[1] = PyArray_BYTES(array);
    exceptions = run_loop(add.kernels[kind], args, n, strides);
    if (exceptions && report_exceptions("reduce", exceptions) < 0) Py_CLEAR(out);
    return out;
}

int sum_middle_axis(int kind, const char *from, char *to, npy_intp outer, npy_intp n, npy_intp inner, npy_intp size) {
    npy_intp strides[3] = {inner == 1 ? 0 : size, size, inner == 1 ? 0 : size}, o, i;
    int exceptions = 0;
    memset(to, 0, (size_t)(outer * inner * size));
    for (o = 0; o < outer; o++) {
        for (i = 0; i < (inner == 1 ? 1 : n); i++) { /* a contiguous sum is one call, which adds pairwise */
            char *args[3] = {to + o * inner * size, (char *)from + (o * n + i) * inner * size, to + o * inner * size};
            exceptions |= run_loop(add.kernels[kind], args, inner == 1 ? n : inner, strides);
        }
    }
    return exceptions;
}

PyObject *sum_rows(PyObject *g, PyObject *aval) {
    PyArrayObject *array = (PyArrayObject *)g;
    PyObject *shape = PyTuple_GET_ITEM(aval, 0), *out;
    npy_intp dims[NPY_MAXDIMS], n, rows, i, strides[3];
    int kind = kind_of(g), ndim = (int)PyTuple_GET_SIZE(shape), exceptions = 0;
    char *args[3];
    if (kind < 0 || (PyObject *)core.dtypes[kind] != PyTuple_GET_ITEM(aval, 1) || PyArray_NDIM(array) != ndim + 1 || !PyArray_ISCARRAY_RO(array)) return NULL;
    for (i = 0; i < ndim; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (dims[i] != PyArray_DIM(array, (int)i + 1)) return NULL;
    }
    n = PyArray_MultiplyList(dims, ndim);
    rows = PyArray_DIM(array, 0);
    if (n == 0 || rows == 0 || rows >= 2048 || PyArray_SIZE(array) > DIRECT_MOST || add.kernels[kind].fn == NULL) return NULL; /* NumPy adds in another order: rules/sums.py */
    out = new_zeros(kind, ndim, dims);
    if (out == NULL) return NULL;
    strides[0] = strides[2] = n == 1 ? 0 : SIZE(kind);
    strides[1] = SIZE(kind);
    for (i = 0; i < rows; i += n == 1 ? rows : 1) { /* a single column is one call, which adds pairwise */
        args[0] = args[2] = PyArray_BYTES((PyArrayObject *)out);
        args[1] = PyArray_BYTES(array) + i * n * SIZE(kind);
        exceptions |= run_loop(add.kernels[kind], args, n == 1 ? rows : n, strides);
    }
    if (exceptions && report_exceptions("reduce", exceptions) < 0) Py_CLEAR(out);
    return out;
}

/* ---- kernels that are not ufunc loops */

#define WHERE(name, type)                                                                                     \
    static void name(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {                 \
        npy_intp i;                                                                                            \
        (void)data;                                                                                            \
        for (i = 0; i < dims[0]; i++) {                                                                        \
            const char *from = *(args[0] + i * strides[0]) ? args[1] + i * strides[1] : args[2] + i * strides[2]; \
            memcpy(args[3] + i * strides[3], from, sizeof(type));                                              \
        }                                                                                                      \
    }
WHERE(where_float, float)
WHERE(where_double, double)

#define CAST(name, from, to)                                                                   \
    static void name(char **args, const npy_intp *dims, const npy_intp *strides, void *data) { \
        npy_intp i;                                                                            \
        (void)data;                                                                            \
        for (i = 0; i < dims[0]; i++) *(to *)(args[1] + i * strides[1]) = (to)(*(from *)(args[0] + i * strides[0])); \
    }
CAST(widen, float, double)
CAST(narrow, double, float)
CAST(bool_to_float, npy_bool, float)
CAST(bool_to_double, npy_bool, double)

static const struct {
    const char *name;
    InnerLoop fn;
} extra_kernels[] = {{"where f", where_float}, {"where d", where_double}, {"cast fd", widen}, {"cast df", narrow}, {"cast ?f", bool_to_float}, {"cast ?d", bool_to_double}};

/* ---- programs */

static int is_value(const Program *program, int number, int before) {
    if (number < INPUTS) return number >= 0;
    if (number < INPUTS + CONSTANTS) return number < INPUTS + program->nconstants;
    return number < INPUTS + CONSTANTS + before;
}

static int find_operation(PyObject *ufunc, PyObject *number_first, PyObject *operations, PyObject **operation) {
    PyObject *key = PyTuple_Pack(2, ufunc, number_first);
    if (key == NULL) return -1;
    *operation = Py_XNewRef(PyDict_GetItemWithError(operations, key));
    Py_DECREF(key);
    return PyErr_Occurred() ? -1 : 0;
}

static int step_kind_of(const char *name) { return strcmp(name, "add") == 0 ? SUMS : strcmp(name, "maximum") == 0 ? MAXIMA : strcmp(name, "rows") == 0 ? CORES : ELEMENTS; }

/* Fill a step from (ufunc or name in `extra_kernels`, index of the ufunc's loop, operands, itemsize of the result, step kind). */
static int fill_step(Program *program, PyObject *traced, PyObject *operations) {
    Step *step = &program->steps[program->nsteps];
    PyObject *function, *from;
    const char *form;
    int index, k;
    size_t i;
    if (!PyArg_ParseTuple(traced, "OiO!is", &function, &index, &PyTuple_Type, &from, &step->size, &form)) return -1;
    step->step_kind = step_kind_of(form);
    program->along_last_axis |= step->step_kind != ELEMENTS;
    step->nin = (int)PyTuple_GET_SIZE(from);
    for (k = 0; k < step->nin && k < 3; k++) {
        step->operands[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(from, k));
        if (!is_value(program, step->operands[k], program->nsteps)) goto invalid;
        if (step->operands[k] < INPUTS) program->reads |= 1 << step->operands[k];
    }
    if (PyUnicode_Check(function)) {
        for (i = 0; i < sizeof(extra_kernels) / sizeof(extra_kernels[0]); i++) {
            if (PyUnicode_CompareWithASCIIString(function, extra_kernels[i].name) == 0) step->loop.fn = extra_kernels[i].fn;
        }
        step->exact = step->threads = 1;
        if (step->loop.fn == NULL || step->nin != (PyUnicode_READ_CHAR(function, 0) == 'w' ? 3 : 1)) goto invalid;
    } else {
        PyUFuncObject *ufunc = (PyUFuncObject *)function;
        if (step->step_kind == CORES ? Py_TYPE(function) != &PyUFunc_Type || ufunc->nin != 2 || ufunc->nout != 1 || ufunc->functions == NULL : !is_elementwise(function, step->step_kind == ELEMENTS ? step->nin : 2)) goto invalid;
        if (step->nin > 2 || index < 0 || index >= ufunc->ntypes || (step->step_kind == CORES && step->nin != 2) || ((step->step_kind == SUMS || step->step_kind == MAXIMA) && step->nin != 1)) goto invalid;
        step->ufunc = Py_NewRef(function);
        step->threads = is_of_numpy(function);
        step->loop = loop_at(ufunc, index);
        step->exact = is_exact(ufunc->name);
        if (find_operation(function, Py_False, operations, &step->operation) < 0 || find_operation(function, Py_True, operations, &step->reflected) < 0) return -1;
    }
    for (k = 0; k < step->nin; k++) {
        if (step->operands[k] < INPUTS && (!step->exact || step->step_kind != ELEMENTS)) program->inexact |= 1 << step->operands[k];
    }
    program->nsteps++;
    return 0;
invalid:
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "not a valid step of a program");
    return -1;
}

/* Assign buffers to the results of steps. A buffer is free again after the last step that reads it. */
static void assign_slots(Program *program) {
    int last[VALUES], i, k, taken[MAX_STEPS];
    for (i = 0; i < VALUES; i++) last[i] = -1;
    for (i = 0; i < program->nsteps; i++) {
        for (k = 0; k < program->steps[i].nin; k++) last[program->steps[i].operands[k]] = i;
    }
    last[program->result] = VALUES;
    for (i = 0; i < MAX_STEPS; i++) taken[i] = -1; /* the last step that reads the buffer */
    for (i = 0; i < program->nsteps; i++) {
        for (k = 0; taken[k] >= i; k++) {}
        program->steps[i].slot = k;
        taken[k] = last[INPUTS + CONSTANTS + i];
        if (k >= program->nslots) program->nslots = k + 1;
    }
}

int fill_program(Program *program, PyObject *traced, int kind, int masks, PyObject *operations) {
    PyObject *steps, *constants;
    Py_ssize_t i;
    memset(program, 0, sizeof(Program));
    if (!PyArg_ParseTuple(traced, "O!O!in", &PyTuple_Type, &steps, &PyTuple_Type, &constants, &program->result, &program->max_size)) return -1;
    program->kind = kind;
    program->masks = masks;
    if (PyTuple_GET_SIZE(steps) > MAX_STEPS || PyTuple_GET_SIZE(constants) > CONSTANTS) {
        PyErr_SetString(PyExc_ValueError, "the program is too long");
        return -1;
    }
    for (i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *number = PyTuple_GET_ITEM(constants, i);
        if (!is_number(number) || !read_number(number, kind, &program->constants[i])) {
            PyErr_SetString(PyExc_ValueError, "not a valid constant of a program");
            return -1;
        }
        program->numbers[program->nconstants++] = Py_NewRef(number);
    }
    program->steps = PyMem_Calloc((size_t)PyTuple_GET_SIZE(steps) + 1, sizeof(Step));
    if (program->steps == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        if (fill_step(program, PyTuple_GET_ITEM(steps, i), operations) < 0) return -1;
    }
    if (program->result != 0 && (program->result < INPUTS + CONSTANTS || !is_value(program, program->result, program->nsteps) || program->steps[program->result - INPUTS - CONSTANTS].size != SIZE(kind))) {
        PyErr_SetString(PyExc_ValueError, "not a valid result of a program");
        return -1;
    }
    assign_slots(program);
    return 1;
}

void clear_program(Program *program) {
    int i;
    for (i = 0; program->steps != NULL && i <= program->nsteps; i++) { /* the last step may be filled in part */
        Py_CLEAR(program->steps[i].ufunc);
        Py_CLEAR(program->steps[i].operation);
        Py_CLEAR(program->steps[i].reflected);
    }
    PyMem_Free(program->steps);
    for (i = 0; i < program->nconstants; i++) Py_CLEAR(program->numbers[i]);
    memset(program, 0, sizeof(Program));
}

/* Memory for intermediate results. A running program takes it out of the cache: a loop of SciPy may warn, and the warning handler may run
   another program. */
typedef struct {
    char *block;
    size_t size;
} Scratch;
static Scratch free_scratch;

static Scratch take_scratch(size_t size) {
    Scratch taken = free_scratch;
    free_scratch = (Scratch){NULL, 0};
    size += 64;
    if (taken.block == NULL || size > taken.size) {
        PyMem_Free(taken.block);
        taken = (Scratch){PyMem_Malloc(size), size};
    }
    return taken;
}

static void keep_scratch(Scratch taken) {
    Scratch other = free_scratch;
    free_scratch = taken;
    PyMem_Free(other.block);
}

/* Size of a buffer in bytes, with a gap at the end: some loops take adjacent arrays for overlapping ones, and use another algorithm. */
static size_t slot_bytes(npy_intp n) { return ((size_t)n * 8 + 191) & ~(size_t)63; }

typedef struct {
    char *data;
    npy_intp count; /* number of elements: 1, those of a suffix of the shape, or all */
    npy_intp stride;
    int row; /* one number for each row */
} Value;

/* Read an input whose shape is that of `like`, a suffix of it, or (). 0 if it has another shape, dtype or layout. */
static int read_input(PyObject *x, PyArrayObject *like, int kind, int mask, Number *number, Value *value) {
    PyArrayObject *array = (PyArrayObject *)x;
    npy_intp n = PyArray_SIZE(like);
    if (is_number(x)) {
        *value = (Value){(char *)number, 1, 0, 0};
        return read_number(x, kind, number);
    }
    if (mask ? !is_mask(x) : kind_of(x) != kind) return 0;
    *value = (Value){PyArray_BYTES(array), n, PyArray_NDIM(like) == 0 ? 0 : PyArray_ITEMSIZE(array), 0};
    if (PyArray_SAMESHAPE(array, like)) {
        if (PyArray_ISCARRAY_RO(array)) return 1;
        value->count = 1;
        value->stride = 0;
        return PyArray_ISBEHAVED_RO(array) && is_single_element(array);
    }
    if (!PyArray_ISCARRAY_RO(array)) return 0;
    value->count = PyArray_SIZE(array);
    if (PyArray_NDIM(array) == 0) value->stride = 0;
    return PyArray_NDIM(array) == 0 || is_trailing_shape(array, like);
}

/* Run a step on values; 0: slow path. */
static int run_step(const Step *step, const Value *values, npy_intp n, int zero_dims, Value *out) {
    npy_intp count = 1, inner, rows, strides[4], row[3] = {0, 0, 0}, i;
    char *args[4];
    int k, mixed = 0;
    for (k = 0; k < step->nin; k++) {
        if (values[step->operands[k]].count > count) count = values[step->operands[k]].count;
    }
    inner = count;
    for (k = 0; k < step->nin; k++) {
        const Value *value = &values[step->operands[k]];
        if (value->count != count && value->count != 1) {
            mixed = 1;
            inner = value->count;
        }
    }
    if (!step->exact && (mixed || (count == 1 && n > 1))) return 0;
    for (k = 0; k < step->nin; k++) {
        const Value *value = &values[step->operands[k]];
        strides[k] = value->count == 1 && count > 1 ? 0 : value->stride;
        if (mixed && value->count == count) row[k] = inner * value->stride;
        if (mixed && value->count != count && value->count != 1 && value->count != inner) return 0;
    }
    strides[step->nin] = step->size;
    rows = count / inner;
    for (i = 0; i < rows; i++) {
        npy_intp length = inner;
        for (k = 0; k < step->nin; k++) args[k] = values[step->operands[k]].data + i * row[k];
        args[step->nin] = out->data + i * inner * step->size;
        step->loop.fn(args, &length, strides, step->loop.data);
    }
    out->count = count;
    out->stride = zero_dims || (count == 1 && n > 1) ? 0 : step->size; /* stride 0 repeats a single number */
    out->row = 0;
    return 1;
}

/* Compute the sum or maximum of each row. NumPy's sum starts from 0, its maximum from the first element. */
static void reduce_rows(const Step *step, const char *from, char *to, npy_intp rows, npy_intp length) {
    npy_intp strides[3] = {0, step->size, 0}, i, leading = step->step_kind == SUMS ? length : length - 1;
    for (i = 0; i < rows; i++) {
        const char *row = from + i * length * step->size;
        char *args[3] = {to + i * step->size, (char *)row, to + i * step->size};
        if (step->step_kind == SUMS) memset(args[0], 0, (size_t)step->size);
        else memcpy(args[0], row, (size_t)step->size);
        if (step->step_kind == MAXIMA) args[1] += step->size;
        if (leading > 0) step->loop.fn(args, &leading, strides, step->loop.data);
    }
}

/* Run an elementwise step on whole arrays and arrays with one number for each row. */
static void broadcast_rows(const Step *step, const Value *values, char *to, npy_intp rows, npy_intp length) {
    npy_intp strides[4], i;
    char *args[4];
    int k;
    for (k = 0; k < step->nin; k++) strides[k] = values[step->operands[k]].row ? 0 : values[step->operands[k]].stride;
    strides[step->nin] = step->size;
    for (i = 0; i < rows; i++) {
        npy_intp n = length;
        for (k = 0; k < step->nin; k++) {
            const Value *value = &values[step->operands[k]];
            args[k] = value->data + i * value->stride * (value->row ? 1 : length);
        }
        args[step->nin] = to + i * length * step->size;
        step->loop.fn(args, &n, strides, step->loop.data);
    }
}

/* Run a step of a program with steps along the last axis; 0: slow path. */
static int run_step_along_last_axis(const Step *step, const Value *values, npy_intp n, npy_intp length, Value *out) {
    npy_intp rows = n / length, dims[2] = {rows, length}, steps[5] = {length * step->size, length * step->size, step->size, step->size, step->size};
    int k, whole = 0, row = 0;
    for (k = 0; k < step->nin; k++) {
        row |= values[step->operands[k]].row;
        whole |= values[step->operands[k]].count == n && !values[step->operands[k]].row;
    }
    *out = (Value){out->data, step->step_kind == ELEMENTS ? n : rows, step->size, step->step_kind != ELEMENTS};
    if (step->step_kind == SUMS || step->step_kind == MAXIMA) {
        if (!whole) return 0;
        reduce_rows(step, values[step->operands[0]].data, out->data, rows, length);
    } else if (step->step_kind == CORES) {
        char *args[3] = {values[step->operands[0]].data, values[step->operands[1]].data, out->data};
        if (row || values[step->operands[0]].count != n || values[step->operands[1]].count != n) return 0;
        step->loop.fn(args, dims, steps, step->loop.data);
    } else if (row && whole) {
        if (!step->exact) return 0;
        broadcast_rows(step, values, out->data, rows, length);
    } else if (row) { /* all operands have one number for each row */
        npy_intp strides[4];
        char *args[4];
        for (k = 0; k < step->nin; k++) {
            args[k] = values[step->operands[k]].data;
            strides[k] = values[step->operands[k]].stride;
        }
        args[step->nin] = out->data;
        strides[step->nin] = step->size;
        *out = (Value){out->data, rows, step->size, 1};
        step->loop.fn(args, &rows, strides, step->loop.data);
    } else {
        return run_step(step, values, n, 0, out);
    }
    return 1;
}

static PyObject *run_steps_on(const Program *program, PyObject *shape, PyObject *const *inputs, int ninputs);

/* Whether an input is a broadcast array, such as the cotangent of a sum, and is read only by steps whose results do not depend on the memory
   layout. */
static int is_broadcast(const Program *program, PyObject *const *inputs, int i) {
    PyArrayObject *x = (PyArrayObject *)inputs[i];
    npy_intp before = NPY_MAX_INTP;
    int k, zero = 0;
    if (!(program->reads >> i & 1) || program->inexact >> i & 1 || program->along_last_axis || kind_of(inputs[i]) < 0 || PyArray_ISCARRAY_RO(x) || !PyArray_ISBEHAVED_RO(x) || is_single_element(x)) return 0;
    for (k = 0; k < PyArray_NDIM(x); k++) { /* other axes must be in C order, like NumPy's results */
        if (PyArray_DIM(x, k) == 1) continue;
        zero |= PyArray_STRIDE(x, k) == 0;
        if (PyArray_STRIDE(x, k) > before || PyArray_STRIDE(x, k) < 0) return 0;
        if (PyArray_STRIDE(x, k) > 0) before = PyArray_STRIDE(x, k);
    }
    return zero;
}

PyObject *run_program(const Program *program, PyObject *shape, PyObject *const *inputs, int ninputs) {
    PyObject *dense[INPUTS] = {NULL}, *result;
    int i, broadcast_inputs = 0;
    if (PyArray_SIZE((PyArrayObject *)shape) > DIRECT_MOST) return NULL;
    for (i = 0; i < ninputs; i++) broadcast_inputs |= is_broadcast(program, inputs, i) << i;
    if (!broadcast_inputs) return run_steps_on(program, shape, inputs, ninputs);
    for (i = 0; i < ninputs; i++) {
        dense[i] = broadcast_inputs >> i & 1 ? PyArray_NewCopy((PyArrayObject *)inputs[i], NPY_CORDER) : Py_NewRef(inputs[i]);
        if (dense[i] == NULL) broadcast_inputs = -1;
    }
    result = broadcast_inputs < 0 ? NULL : run_steps_on(program, shape == inputs[0] ? dense[0] : shape, dense, ninputs);
    if (broadcast_inputs < 0) PyErr_Clear(); /* Python will run out of memory as well */
    for (i = 0; i < ninputs; i++) Py_XDECREF(dense[i]);
    return result;
}

static PyObject *run_steps_on(const Program *program, PyObject *shape, PyObject *const *inputs, int ninputs) {
    PyArrayObject *like = (PyArrayObject *)shape;
    npy_intp n, length;
    Number numbers[INPUTS];
    Value values[VALUES];
    PyObject *result;
    Scratch scratch;
    char *buffers;
    int i, done = 0, last = program->result - INPUTS - CONSTANTS;
    if (program->result == 0) return Py_NewRef(inputs[0]);
    n = PyArray_SIZE(like);
    if (n == 0 || n > DIRECT_MOST || n > program->max_size || program->reads >> ninputs) return NULL;
    if (program->along_last_axis && PyArray_NDIM(like) == 0) return NULL;
    length = program->along_last_axis ? PyArray_DIM(like, PyArray_NDIM(like) - 1) : 0;
    for (i = 0; i < ninputs; i++) {
        if (program->reads & 1 << i && program->along_last_axis && !is_number(inputs[i]) && (!PyArray_CheckExact(inputs[i]) || !PyArray_SAMESHAPE((PyArrayObject *)inputs[i], like) || !PyArray_ISCARRAY_RO((PyArrayObject *)inputs[i]))) return NULL;
        if (program->reads & 1 << i && !read_input(inputs[i], like, program->kind, program->masks >> i & 1, &numbers[i], &values[i])) return NULL;
    }
    for (i = 0; i < program->nconstants; i++) values[INPUTS + i] = (Value){(char *)&program->constants[i], 1, 0, 0};
    result = new_array(program->kind, PyArray_NDIM(like), PyArray_DIMS(like));
    if (result == NULL) {
        PyErr_Clear(); /* Python will run out of memory as well */
        return NULL;
    }
    scratch = take_scratch((size_t)program->nslots * slot_bytes(n));
    if (scratch.block == NULL) goto end;
    buffers = (char *)(((uintptr_t)scratch.block + 63) & ~(uintptr_t)63);
    CLEAR_EXCEPTIONS();
    for (i = 0; i < program->nsteps; i++) {
        Value *out = &values[INPUTS + CONSTANTS + i];
        out->data = i == last ? PyArray_BYTES((PyArrayObject *)result) : buffers + (size_t)program->steps[i].slot * slot_bytes(n);
        if (!(program->along_last_axis ? run_step_along_last_axis(&program->steps[i], values, n, length, out) : run_step(&program->steps[i], values, n, PyArray_NDIM(like) == 0, out))) goto end;
        if (ANY_EXCEPTION()) goto end; /* Python repeats the computation and warns. Checked after each step, because some loops clear earlier exceptions. */
    }
    if (values[program->result].count != n) {
        char *data = PyArray_BYTES((PyArrayObject *)result);
        npy_intp j;
        if (values[program->result].count != 1) goto end;
        for (j = 1; j < n; j++) memcpy(data + j * SIZE(program->kind), data, (size_t)SIZE(program->kind));
    }
    done = !PyErr_Occurred(); /* SciPy's loops may raise */
end:
    keep_scratch(scratch);
    if (!done) Py_CLEAR(result);
    return result;
}

int connect_values(PyObject *plus) {
    clear_function(&add);
    if (read_function(&add, plus, 2)) return 0;
    PyErr_SetString(PyExc_TypeError, "connect needs the ufunc np.add");
    return -1;
}
