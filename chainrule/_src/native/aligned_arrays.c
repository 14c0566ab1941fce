/* Arrays whose data is aligned to cache lines. malloc() aligns to 16 bytes only. Vectors of 64 bytes then cross cache lines, and NumPy's inner
   loops for sums and products take twice the time.

   The arrays own their data. NumPy frees it by the functions below, which the array's memory handler names (NEP 49). */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, ALIGNED_FROM = 2048, HUGE_FROM = 1 << 22 }; /* bytes. NumPy caches the memory of arrays below ALIGNED_FROM */
enum { NUMPY_DOMAIN = 389047 };               /* NPY_TRACE_DOMAIN, in which NumPy reports its memory to tracemalloc */

/* Stored in front of the data. */
typedef struct {
    void *block;
    size_t size;
} Header;

static Header *header_of(void *data) { return (Header *)data - 1; }

/* Let the kernel use huge pages for large arrays, as NumPy's allocator does. */
static void use_huge_pages(char *data, size_t size) {
#if defined(MADV_HUGEPAGE)
    size_t skipped = -(uintptr_t)data % 4096;
    if (size >= HUGE_FROM) (void)madvise(data + skipped, size - skipped, MADV_HUGEPAGE);
#else
    (void)data;
    (void)size;
#endif
}

static void *allocate(void *context, size_t size) {
    char *block = size > SIZE_MAX - 2 * ALIGNMENT ? NULL : malloc(size + sizeof(Header) + ALIGNMENT), *data;
    (void)context;
    if (block == NULL) return NULL;
    data = (char *)(((uintptr_t)block + sizeof(Header) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    *header_of(data) = (Header){block, size};
    use_huge_pages(data, size);
    return data;
}

static void release(void *context, void *data, size_t size) {
    (void)context;
    (void)size;
    if (data != NULL) free(header_of(data)->block);
}

static void *allocate_zeros(void *context, size_t count, size_t size) {
    void *data = size != 0 && count > SIZE_MAX / size ? NULL : allocate(context, count * size);
    if (data != NULL) memset(data, 0, count * size);
    return data;
}

static void *reallocate(void *context, void *data, size_t size) {
    void *moved = allocate(context, size);
    if (moved == NULL || data == NULL) return moved;
    memcpy(moved, data, size < header_of(data)->size ? size : header_of(data)->size);
    release(context, data, 0);
    return moved;
}

static PyDataMem_Handler handler = {"chainrule_aligned", 1, {NULL, allocate, allocate_zeros, reallocate, release}};

/* Return a new array, or NULL without an error if NumPy must allocate it. Steals the dtype in the first case. */
static PyObject *new_aligned(PyArray_Descr *dtype, int ndim, const npy_intp *dims, size_t size) {
    static PyObject *capsule;
    PyArrayObject_fields *array;
    void *data;
    if (capsule == NULL && (capsule = PyCapsule_New(&handler, "mem_handler", NULL)) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    data = allocate(NULL, size);
    if (data == NULL) return NULL;
    array = (PyArrayObject_fields *)PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)dtype), ndim, dims, NULL, data, NPY_ARRAY_WRITEABLE, NULL);
    if (array == NULL) {
        PyErr_Clear(); /* NumPy's own allocation reports the error */
        release(NULL, data, size);
        return NULL;
    }
    Py_DECREF(dtype);
    array->mem_handler = Py_NewRef(capsule);
    array->flags |= NPY_ARRAY_OWNDATA;
    PyTraceMalloc_Track(NUMPY_DOMAIN, (uintptr_t)data, size);
    return (PyObject *)array;
}

PyObject *new_array(int kind, int ndim, const npy_intp *dims) {
    PyArray_Descr *dtype = core.dtypes[kind];
    PyObject *array = NULL;
    npy_intp count = PyArray_MultiplyList(dims, ndim);
    Py_INCREF(dtype);
    if (count >= ALIGNED_FROM / PyDataType_ELSIZE(dtype) && count < NPY_MAX_INTP / 16) array = new_aligned(dtype, ndim, dims, (size_t)count * (size_t)PyDataType_ELSIZE(dtype));
    if (array == NULL) array = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, NULL, NULL, 0, NULL);
    if (array == NULL && !PyErr_Occurred()) PyErr_NoMemory(); /* NumPy may return NULL without an error */
    return array;
}

PyObject *view_of_memory(PyObject *of, char *data, int ndim, const npy_intp *dims, const npy_intp *strides, int flags) {
    PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)of);
    PyObject *array;
    Py_INCREF(dtype);
    array = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, strides, data, flags, NULL);
    if (array == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    if (array != NULL && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(of)) < 0) Py_CLEAR(array);
    return array;
}
