/* Arrays that grow, and sets of rows of integers. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "rows.h"

int append_bytes(Buffer *buffer, const void *item, size_t size) {
    if (buffer->length + size > buffer->capacity) {
        size_t capacity = buffer->capacity + buffer->capacity / 2 + 64 * size;
        char *bytes = PyMem_Realloc(buffer->bytes, capacity);
        if (bytes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    }
    memcpy(buffer->bytes + buffer->length, item, size);
    buffer->length += size;
    return 0;
}

static void free_bytes(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, NULL)); }

PyObject *to_numpy(Buffer *buffer, int type, size_t itemsize) {
    npy_intp n = (npy_intp)(buffer->length / itemsize);
    PyObject *array, *capsule;
    char *bytes;
    if (n == 0) return PyArray_SimpleNew(1, &n, type);
    bytes = PyMem_Realloc(buffer->bytes, buffer->length);
    if (bytes == NULL) return PyErr_NoMemory();
    buffer->bytes = bytes;
    buffer->capacity = buffer->length;
    capsule = PyCapsule_New(bytes, NULL, free_bytes);
    if (capsule == NULL) return NULL;
    memset(buffer, 0, sizeof *buffer);
    array = PyArray_SimpleNewFromData(1, &n, type, bytes);
    if (array == NULL) Py_DECREF(capsule);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) < 0) Py_CLEAR(array);
    return array;
}

PyObject *int_array(Buffer *buffer) { return to_numpy(buffer, NPY_INT32, sizeof(npy_int32)); }

void free_rows(Rows *rows) {
    PyMem_Free(rows->words.bytes);
    PyMem_Free(rows->ends.bytes);
    PyMem_Free(rows->hashes.bytes);
    PyMem_Free(rows->table);
}

unsigned long long mixed(unsigned long long hash, unsigned long long part) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ull; /* as in splitmix64 */
    return hash ^ hash >> 29;
}

static unsigned long long hash_of_row(const Rows *rows, npy_int32 i) { return ((unsigned long long *)rows->hashes.bytes)[i]; }

static int grow_table(Rows *rows) {
    size_t size = rows->size ? 2 * rows->size : 256, at;
    npy_int32 i, *table = PyMem_Malloc(size * sizeof *table);
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(table, 0xFF, size * sizeof *table);
    for (i = 0; i < rows->count; i++) {
        for (at = (size_t)hash_of_row(rows, i) & (size - 1); table[at] >= 0; at = (at + 1) & (size - 1)) {}
        table[at] = i;
    }
    PyMem_Free(rows->table);
    rows->table = table;
    rows->size = size;
    return 0;
}

const npy_int64 *row_at(const Rows *rows, npy_int32 number, size_t *length) {
    const size_t *ends = (const size_t *)rows->ends.bytes;
    size_t begin = number == 0 ? 0 : ends[number - 1];
    *length = ends[number] - begin;
    return (const npy_int64 *)rows->words.bytes + begin;
}

static unsigned long long hash_row(const npy_int64 *row, size_t n) {
    unsigned long long hash = mixed(1, n);
    size_t k;
    for (k = 0; k < n; k++) hash = mixed(hash, (unsigned long long)row[k]);
    return hash;
}

/* The index among `table` of a row, or where it is to be added */
static size_t position(const Rows *rows, const npy_int64 *row, size_t n, unsigned long long hash) {
    size_t at, length;
    npy_int32 i;
    for (at = (size_t)hash & (rows->size - 1); (i = rows->table[at]) >= 0; at = (at + 1) & (rows->size - 1)) {
        const npy_int64 *other;
        if (hash_of_row(rows, i) != hash) continue;
        other = row_at(rows, i, &length);
        if (length == n && memcmp(other, row, n * sizeof *row) == 0) break;
    }
    return at;
}

npy_int32 find_row(const Rows *rows, const npy_int64 *row, size_t n) { return rows->count == 0 ? -1 : rows->table[position(rows, row, n, hash_row(row, n))]; }

npy_int32 row_number(Rows *rows, const npy_int64 *row, size_t n) {
    unsigned long long hash = hash_row(row, n);
    size_t at, k;
    if (2 * (size_t)rows->count >= rows->size && grow_table(rows) < 0) return -1;
    at = position(rows, row, n, hash);
    if (rows->table[at] >= 0) return rows->table[at];
    k = rows->words.length / sizeof *row + n;
    if (append_bytes(&rows->words, row, n * sizeof *row) < 0 || append_bytes(&rows->ends, &k, sizeof k) < 0 || append_bytes(&rows->hashes, &hash, sizeof hash) < 0) return -1;
    return rows->table[at] = rows->count++;
}
