/* LU factors of stacks of matrices by the LAPACK of NumPy, whose addresses table/lapack.py passes, and solutions of small triangular systems with
   the bits of table/triangular.py. Operands may have any strides. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <fenv.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef void (*Getrf)(const void *m, const void *n, void *a, const void *lda, void *pivots, void *info);

enum { SINGLE, DOUBLE, SINGLE_COMPLEX, DOUBLE_COMPLEX };

static struct {
    Getrf getrf[4];
    int long_integers;
} lapack;

static const int SIZES[4] = {4, 8, 8, 16};

/* an integer argument of LAPACK, of 32 or 64 bits */
typedef union {
    npy_int64 as64;
    npy_int32 as32;
} Integer;

static Integer integer(npy_intp value) {
    Integer x = {0};
    if (lapack.long_integers) x.as64 = value;
    else x.as32 = (npy_int32)value;
    return x;
}

static npy_intp integer_at(const void *integers, npy_intp i) { return lapack.long_integers ? (npy_intp)((const npy_int64 *)integers)[i] : (npy_intp)((const npy_int32 *)integers)[i]; }

/* Return the kind (SINGLE ...) of a stack of matrices, -1 for other objects. */
static int matrix_kind(PyObject *x) {
    int type = PyArray_CheckExact(x) && PyArray_NDIM((PyArrayObject *)x) >= 2 && PyArray_ISBEHAVED_RO((PyArrayObject *)x) ? PyArray_TYPE((PyArrayObject *)x) : -1;
    return type == NPY_FLOAT ? SINGLE : type == NPY_DOUBLE ? DOUBLE : type == NPY_CFLOAT ? SINGLE_COMPLEX : type == NPY_CDOUBLE ? DOUBLE_COMPLEX : -1;
}

/* The address of a matrix of a stack. */
static char *matrix_at(PyArrayObject *x, npy_intp index) {
    char *at = PyArray_BYTES(x);
    int axis;
    for (axis = PyArray_NDIM(x) - 3; axis >= 0; axis--) {
        at += index % PyArray_DIM(x, axis) * PyArray_STRIDE(x, axis);
        index /= PyArray_DIM(x, axis);
    }
    return at;
}

typedef struct {
    npy_intp rows, columns, row, column; /* the shape; strides in bytes */
} Matrix;

static Matrix matrix_of(PyArrayObject *x) {
    int ndim = PyArray_NDIM(x);
    return (Matrix){PyArray_DIM(x, ndim - 2), PyArray_DIM(x, ndim - 1), PyArray_STRIDE(x, ndim - 2), PyArray_STRIDE(x, ndim - 1)};
}

/* Copy a matrix between two layouts. */
static void copy_matrix(const char *from, Matrix m, char *to, npy_intp to_row, npy_intp to_column, int size) {
    npy_intp i, j;
    for (j = 0; j < m.columns; j++) {
        const char *source = from + j * m.column;
        char *target = to + j * to_column;
        switch (size) {
        case 4:
            for (i = 0; i < m.rows; i++) memcpy(target + i * to_row, source + i * m.row, 4);
            break;
        case 8:
            for (i = 0; i < m.rows; i++) memcpy(target + i * to_row, source + i * m.row, 8);
            break;
        default:
            for (i = 0; i < m.rows; i++) memcpy(target + i * to_row, source + i * m.row, 16);
        }
    }
}

static npy_intp count_of(PyArrayObject *x) { return PyArray_MultiplyList(PyArray_DIMS(x), PyArray_NDIM(x) - 2); }

/* The row order after a sequence of exchanges of row k with row pivots[k], counted from 1. */
static void exchange(npy_int64 *order, npy_intp rows, const npy_int32 *pivots, npy_intp count) {
    npy_intp k;
    for (k = 0; k < rows; k++) order[k] = k;
    for (k = 0; k < count; k++) {
        npy_int64 row = order[k];
        order[k] = order[pivots[k] - 1];
        order[pivots[k] - 1] = row;
    }
}

/* lu(x): the factors in one matrix, the pivots counted from 1, and the row order; None if Python must compute them */
static PyObject *lu(PyObject *module, PyObject *object) {
    PyArrayObject *x = (PyArrayObject *)object, *out, *pivots, *order;
    npy_intp dims[NPY_MAXDIMS], count, k, i, size;
    int kind = matrix_kind(object), ndim;
    Matrix m;
    char *memory;
    (void)module;
    if (kind < 0 || lapack.getrf[kind] == NULL || PyArray_SIZE(x) == 0 || PyArray_SIZE(x) > NPY_MAX_INT32) Py_RETURN_NONE;
    ndim = PyArray_NDIM(x);
    m = matrix_of(x);
    count = count_of(x);
    size = SIZES[kind];
    k = m.rows < m.columns ? m.rows : m.columns;
    memcpy(dims, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)ndim);
    out = (PyArrayObject *)PyArray_SimpleNew(ndim, dims, PyArray_TYPE(x));
    dims[ndim - 2] = k;
    pivots = (PyArrayObject *)PyArray_SimpleNew(ndim - 1, dims, NPY_INT32);
    dims[ndim - 2] = m.rows;
    order = (PyArrayObject *)PyArray_SimpleNew(ndim - 1, dims, NPY_INT64);
    memory = PyMem_RawMalloc((size_t)(8 * k + m.rows * m.columns * size));
    if (out == NULL || pivots == NULL || order == NULL || memory == NULL) {
        PyMem_RawFree(memory);
        Py_XDECREF(out);
        Py_XDECREF(pivots);
        Py_XDECREF(order);
        return PyErr_NoMemory();
    }
    NPY_BEGIN_THREADS_DEF;
    if ((double)count * (double)m.rows * (double)m.columns * (double)k > RELEASE_FROM) NPY_BEGIN_THREADS;
    for (i = 0; i < count; i++) {
        Integer rows = integer(m.rows), columns = integer(m.columns), info = integer(0);
        char *matrix = memory + 8 * k, *to = PyArray_BYTES(out) + i * m.rows * m.columns * size;
        npy_int32 *pivot = (npy_int32 *)PyArray_DATA(pivots) + i * k;
        npy_intp at;
        copy_matrix(matrix_at(x, i), m, matrix, size, m.rows * size, (int)size);
        lapack.getrf[kind](&rows, &columns, matrix, &rows, memory, &info); /* `info` is not read: the caller checks the diagonal for zeros */
        copy_matrix(matrix, (Matrix){m.rows, m.columns, size, m.rows * size}, to, m.columns * size, size, (int)size);
        for (at = 0; at < k; at++) {
            npy_intp row = integer_at(memory, at);
            pivot[at] = (npy_int32)(row <= at || row > m.rows ? at + 1 : row); /* LAPACK may return any pivot for a column of NaNs */
        }
        exchange((npy_int64 *)PyArray_DATA(order) + i * m.rows, m.rows, pivot, k);
    }
    clear_exceptions();
    NPY_END_THREADS;
    PyMem_RawFree(memory);
    return Py_BuildValue("(NNN)", out, pivots, order);
}

/* row_order(pivots, rows): the row order after exchanges, which are int32 and counted from 1; None if Python must compute it */
static PyObject *row_order(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *pivots, *out;
    npy_intp dims[NPY_MAXDIMS], rows, count, k, i;
    int ndim;
    (void)module;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "row_order takes two arguments");
        return NULL;
    }
    pivots = (PyArrayObject *)args[0];
    if (!PyArray_CheckExact(args[0]) || PyArray_TYPE(pivots) != NPY_INT32 || !PyArray_ISCARRAY_RO(pivots) || PyArray_NDIM(pivots) < 1) Py_RETURN_NONE;
    rows = PyLong_AsSsize_t(args[1]);
    if (rows == -1 && PyErr_Occurred()) return NULL;
    ndim = PyArray_NDIM(pivots);
    k = PyArray_DIM(pivots, ndim - 1);
    count = PyArray_MultiplyList(PyArray_DIMS(pivots), ndim - 1);
    for (i = 0; i < count * k; i++) {
        npy_int32 pivot = ((npy_int32 *)PyArray_DATA(pivots))[i];
        if (k > rows || pivot < 1 || pivot > rows) Py_RETURN_NONE;
    }
    memcpy(dims, PyArray_DIMS(pivots), sizeof(npy_intp) * (size_t)ndim);
    dims[ndim - 1] = rows;
    out = (PyArrayObject *)PyArray_SimpleNew(ndim, dims, NPY_INT64);
    for (i = 0; out != NULL && i < count; i++) exchange((npy_int64 *)PyArray_DATA(out) + i * rows, rows, (npy_int32 *)PyArray_DATA(pivots) + i * k, k);
    return (PyObject *)out;
}

static int have_equal_stacks(PyArrayObject *x, PyArrayObject *y) { return PyArray_NDIM(x) == PyArray_NDIM(y) && memcmp(PyArray_DIMS(x), PyArray_DIMS(y), sizeof(npy_intp) * (size_t)(PyArray_NDIM(x) - 2)) == 0; }

/* The solution of a triangular system in double precision, in place of the right-hand sides. 0 if a number on the diagonal is zero. */
static int substitute(const double *x, double *y, npy_intp n, npy_intp sides, int upper, int unit) {
    npy_intp step, i, j;
    for (step = 0; step < n; step++) {
        npy_intp k = upper ? n - 1 - step : step, first = upper ? 0 : k + 1, last = upper ? k : n;
        double *solved = y + k * sides, pivot = x[k * n + k];
        if (!unit) {
            if (pivot == 0) return 0;
            for (j = 0; j < sides; j++) solved[j] /= pivot;
        }
        for (i = first; i < last; i++) {
            double factor = x[i * n + k], *row = y + i * sides;
            for (j = 0; j < sides; j++) row[j] -= factor * solved[j];
        }
    }
    return 1;
}

/* Read a matrix in double precision, as rows. */
static void read_matrix(const char *from, Matrix m, int kind, double *to) {
    npy_intp i, j;
    for (i = 0; i < m.rows; i++) {
        const char *at = from + i * m.row;
        for (j = 0; j < m.columns; j++, at += m.column) *to++ = kind == DOUBLE ? *(const double *)at : (double)*(const float *)at;
    }
}

/* The kernel of compiled functions: (m,m),(m,n)->(m,n) in double precision. `data`: 2 for ones on the diagonal, plus 1 for the upper triangle. A
   singular matrix raises the exception "invalid", as in NumPy's solve. */
void triangular(char **args, const npy_intp *dims, const npy_intp *strides, void *data) {
    npy_intp n = dims[1], sides = dims[2], flags = (npy_intp)data, o, i, j;
    const npy_intp *core = strides + 3;
    double small[256], *memory = n * (n + sides) <= 256 ? small : PyMem_RawMalloc((size_t)(n * (n + sides)) * sizeof(double)), *right = memory + n * n;
    int before = fetestexcept(FE_ALL_EXCEPT), done = memory != NULL;
    for (o = 0; o < dims[0] && done; o++) {
        read_matrix(args[0] + o * strides[0], (Matrix){n, n, core[0], core[1]}, DOUBLE, memory);
        read_matrix(args[1] + o * strides[1], (Matrix){n, sides, core[2], core[3]}, DOUBLE, right);
        done = substitute(memory, right, n, sides, flags & 1, flags & 2);
        for (i = 0; i < n && done; i++) {
            for (j = 0; j < sides; j++) *(double *)(args[2] + o * strides[2] + i * core[4] + j * core[5]) = right[i * sides + j];
        }
    }
    if (memory != small) PyMem_RawFree(memory);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(before);
    if (!done) feraiseexcept(FE_INVALID);
}

enum { MOST_ROWS = 32 }; /* SMALL of table/triangular.py */

/* triangular_solution(x, y, upper, unit): the solution of T @ X = y, where T is a triangle of x; False if a number on the diagonal is zero; None if
   Python must compute it */
static PyObject *triangular_solution(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *x, *y, *out;
    npy_intp count, i, k, n, sides;
    int kind, upper, unit, singular = 0, exceptions = 0;
    Matrix mx, my;
    double small[128], *memory, *right;
    (void)module;
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "triangular_solution takes four arguments");
        return NULL;
    }
    x = (PyArrayObject *)args[0];
    y = (PyArrayObject *)args[1];
    upper = PyObject_IsTrue(args[2]);
    unit = PyObject_IsTrue(args[3]);
    if (upper < 0 || unit < 0) return NULL;
    kind = matrix_kind(args[0]);
    if (kind < 0 || kind > DOUBLE || matrix_kind(args[1]) != kind || !have_equal_stacks(x, y) || PyArray_SIZE(x) == 0 || PyArray_SIZE(y) == 0) Py_RETURN_NONE;
    mx = matrix_of(x);
    my = matrix_of(y);
    if (mx.rows != mx.columns || mx.rows != my.rows || mx.rows > MOST_ROWS) Py_RETURN_NONE;
    n = mx.rows;
    sides = my.columns;
    count = count_of(x);
    out = (PyArrayObject *)new_array(kind, PyArray_NDIM(y), PyArray_DIMS(y));
    if (out == NULL) return NULL;
    memory = n * (n + sides) <= 128 ? small : PyMem_RawMalloc((size_t)(n * (n + sides)) * sizeof(double));
    if (memory == NULL) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    right = memory + n * n;
    NPY_BEGIN_THREADS_DEF;
    if ((double)count * (double)n * (double)n * (double)sides > RELEASE_FROM) NPY_BEGIN_THREADS;
    for (i = 0; i < count && !singular && !exceptions; i++) {
        read_matrix(matrix_at(x, i), mx, kind, memory);
        if (kind == DOUBLE) right = (double *)PyArray_DATA(out) + i * n * sides;
        read_matrix(matrix_at(y, i), my, kind, right);
        singular = !substitute(memory, right, n, sides, upper, unit);
        if (kind == DOUBLE) continue;
        clear_exceptions();
        for (k = 0; k < n * sides; k++) ((float *)PyArray_DATA(out))[i * n * sides + k] = (float)right[k];
        exceptions = read_exceptions() & ~4; /* 4: underflow */
    }
    clear_exceptions();
    NPY_END_THREADS;
    if (memory != small) PyMem_RawFree(memory);
    if (!singular && !exceptions) return (PyObject *)out;
    Py_DECREF(out);
    if (singular) Py_RETURN_FALSE;
    Py_RETURN_NONE; /* NumPy warns of an overflow in a cast */
}

/* use_lapack_functions(getrf, bits): the addresses for the four dtypes, 0 if there is none */
static PyObject *use_lapack_functions(PyObject *module, PyObject *args) {
    Py_ssize_t getrf[4];
    int bits, k;
    (void)module;
    if (!PyArg_ParseTuple(args, "(nnnn)i:use_lapack_functions", &getrf[0], &getrf[1], &getrf[2], &getrf[3], &bits)) return NULL;
    for (k = 0; k < 4; k++) lapack.getrf[k] = (Getrf)getrf[k];
    lapack.long_integers = bits == 64;
    Py_RETURN_NONE;
}

PyMethodDef linear_algebra_functions[] = {
    {"lu", lu, METH_O, "lu(x): the LU factors in one matrix, the pivots counted from 1, and the row order; None if Python must compute them"},
    {"row_order", (PyCFunction)(void (*)(void))row_order, METH_FASTCALL, "row_order(pivots, rows): the row order after exchanges counted from 1, or None if Python must compute it"},
    {"triangular_solution", (PyCFunction)(void (*)(void))triangular_solution, METH_FASTCALL, "triangular_solution(x, y, upper, unit): the solution, False if the triangle is singular, or None if Python must compute it"},
    {"use_lapack_functions", use_lapack_functions, METH_VARARGS, "use_lapack_functions(getrf, bits): set the addresses of getrf for float32, float64, complex64 and complex128"},
    {NULL, NULL, 0, NULL},
};
