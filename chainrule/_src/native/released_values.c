/* Find the recorded values that the traced program no longer uses.

   The passes of the compiler read the layout and the address of each array of a trace. They read the values of inputs, constants and outputs,
   and of arrays that are computed before a boundary of the trace (`CapturedArrays.boundaries`) and read after it. Any other value is released
   once nothing refers to its Var but packed calls (call_list.c), and nothing to its memory but arrays of such Vars. It gets an address in
   reserved address space that no other array of the trace has, and so do its views, so addresses still tell which arrays share memory. A
   first call of a loop therefore needs little more memory than eager code. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "call_list.h"

#if !defined(_WIN32)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

enum { REGION_BYTES = 64 << 20, RESERVED_ALIGNMENT = 64 };

/* ---- reserved address space: reads give zeros */

typedef struct {
    PyObject_HEAD
    char *begin;
    size_t size, used;
    Buffer begins; /* where each piece begins, in units of RESERVED_ALIGNMENT */
} ReservedMemory;

static void free_reserved(PyObject *self) {
#if !defined(_WIN32)
    ReservedMemory *memory = (ReservedMemory *)self;
    munmap(memory->begin, memory->size);
    PyMem_Free(memory->begins.bytes);
#endif
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject reserved_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "chainrule._src.native._loops.ReservedMemory",
    .tp_doc = "Address space of arrays whose values were released.",
    .tp_basicsize = sizeof(ReservedMemory),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = free_reserved,
};

int add_reserved_memory(PyObject *module) { return PyType_Ready(&reserved_type) < 0 ? -1 : PyModule_AddObjectRef(module, "ReservedMemory", (PyObject *)&reserved_type); }

/* Reserve address space. NULL without an error if that is not possible: on Windows, or if the process may not have so much. */
static ReservedMemory *reserve(size_t size) {
#if defined(_WIN32)
    (void)size;
    return NULL;
#else
    ReservedMemory *memory;
    char *begin = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return NULL;
    memory = PyObject_New(ReservedMemory, &reserved_type);
    if (memory == NULL) {
        PyErr_Clear();
        munmap(begin, size);
        return NULL;
    }
    memory->begin = begin;
    memory->size = size;
    memory->used = 0;
    memset(&memory->begins, 0, sizeof memory->begins);
    return memory;
#endif
}

/* Return the piece of a region that has an offset. */
static ReservedPiece piece_at(ReservedMemory *memory, size_t offset) {
    const npy_int32 *begins = ints(&memory->begins);
    npy_intp low = 0, high = count_ints(&memory->begins);
    size_t begin, end;
    while (high - low > 1) {
        npy_intp middle = (low + high) / 2;
        if ((size_t)begins[middle] * RESERVED_ALIGNMENT <= offset) low = middle;
        else high = middle;
    }
    begin = (size_t)begins[low] * RESERVED_ALIGNMENT;
    end = high < count_ints(&memory->begins) ? (size_t)begins[high] * RESERVED_ALIGNMENT : memory->used;
    return (ReservedPiece){(PyObject *)memory, (npy_int64)(size_t)(memory->begin + begin), (npy_intp)(end - begin)};
}

ReservedPiece find_piece(PyObject *regions, npy_int64 address) {
    Py_ssize_t i;
    for (i = PyList_GET_SIZE(regions) - 1; i >= 0; i--) {
        ReservedMemory *memory = (ReservedMemory *)PyList_GET_ITEM(regions, i);
        npy_int64 begin = (npy_int64)(size_t)memory->begin;
        if (begin <= address && address < begin + (npy_int64)memory->used) return piece_at(memory, (size_t)(address - begin));
    }
    return (ReservedPiece){NULL, 0, 0};
}

/* Take an address for some bytes: 1, 0 if there is no address space, -1 error. */
static int take_address(PyObject *regions, size_t nbytes, npy_int64 *address) {
    Py_ssize_t count = PyList_GET_SIZE(regions);
    ReservedMemory *memory = count == 0 ? NULL : (ReservedMemory *)PyList_GET_ITEM(regions, count - 1);
    size_t begin = memory == NULL ? 0 : (memory->used + RESERVED_ALIGNMENT - 1) & ~(size_t)(RESERVED_ALIGNMENT - 1);
    if (memory == NULL || begin + nbytes + 1 > memory->size) { /* one more byte: empty arrays have addresses in it, too */
        int failed;
        memory = reserve(nbytes + 1 > REGION_BYTES ? nbytes + 1 : REGION_BYTES);
        if (memory == NULL) return 0;
        failed = PyList_Append(regions, (PyObject *)memory);
        Py_DECREF(memory);
        if (failed < 0) return -1;
        begin = 0;
    }
    if (append_int(&memory->begins, (npy_int32)(begin / RESERVED_ALIGNMENT)) < 0) return -1;
    memory->used = begin + nbytes + 1;
    *address = (npy_int64)(size_t)(memory->begin + begin);
    return 1;
}

void trim_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

/* ---- unused values */

PyObject *owner_of(PyObject *array) {
    while (PyArray_BASE((PyArrayObject *)array) != NULL && PyArray_Check(PyArray_BASE((PyArrayObject *)array))) array = PyArray_BASE((PyArrayObject *)array);
    return array;
}

/* The memory of an array that owns it, and the unused Vars with arrays in it */
typedef struct {
    PyObject *owner;
    npy_int64 address;      /* the new one */
    Py_ssize_t references;  /* from these arrays and Vars */
    npy_int32 first, last;  /* the first call that computes, and the last one that reads, one of them */
    signed char is_outside; /* whether it is in use outside of the trace: its views keep their addresses; -1: not known yet */
    unsigned char is_unused, is_kept;
} Memory;

typedef struct {
    Memory *table;
    size_t size;
} Memories;

static Memory *memory_of(const Memories *memories, PyObject *owner) {
    size_t at;
    for (at = ((size_t)owner >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (memories->size - 1); memories->table[at].owner != NULL && memories->table[at].owner != owner; at = (at + 1) & (memories->size - 1)) {}
    return memories->table + at;
}

static int is_unused_var(const LiveVar *entry) { return !entry->is_kept && Py_REFCNT(entry->var) == 1 && (entry->first >= 0 || entry->is_empty); }

/* Whether nothing else refers to an array of an unused Var, and to its bases up to the owner of the memory */
static int is_unused_array(PyObject *array, const PyObject *owner) {
    for (; array != owner; array = PyArray_BASE((PyArrayObject *)array)) {
        if (Py_REFCNT(array) != 1 || ((PyArrayObject_fields *)array)->weakreflist != NULL) return 0;
    }
    return 1;
}

static int has_own_memory(PyArrayObject *x) { return PyArray_BASE(x) == NULL && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA) && !PyDataType_REFCHK(PyArray_DESCR(x)) && ((PyArrayObject_fields *)x)->weakreflist == NULL; }

static void note_unused(const Memories *memories, const LiveVar *entry, PyObject *array) {
    PyObject *owner = owner_of(array);
    Memory *memory = memory_of(memories, owner);
    if (memory->owner == NULL) *memory = (Memory){owner, 0, 0, entry->first, entry->last, -1, 1, 0};
    memory->references++;
    if (entry->first < memory->first) memory->first = entry->first;
    if (entry->last > memory->last) memory->last = entry->last;
    memory->is_unused = memory->is_unused && is_unused_array(array, owner);
}

/* Whether a boundary is after the call `first` and not after the call `last`. */
static int crosses(const npy_int64 *boundaries, npy_intp n, npy_int32 first, npy_int32 last) {
    npy_intp low = 0, high = n;
    while (low < high) {
        npy_intp middle = (low + high) / 2;
        if (boundaries[middle] <= first) low = middle + 1;
        else high = middle;
    }
    return low < n && boundaries[low] <= last;
}

/* Decide whether memory is unused, and take a new address for it: -1 error. */
static int decide(Memory *memory, PyObject *outside, PyObject *regions, const npy_int64 *boundaries, npy_intp n) {
    PyArrayObject *owner = (PyArrayObject *)memory->owner;
    PyObject *address = PyLong_FromVoidPtr(owner);
    int found = address == NULL ? -1 : PySet_Contains(outside, address);
    Py_XDECREF(address);
    if (found < 0) return -1;
    memory->is_outside = (signed char)found;
    if (found) return 0;
    memory->is_unused = memory->is_unused && Py_REFCNT(owner) == memory->references && has_own_memory(owner);
    memory->is_kept = memory->is_unused && crosses(boundaries, n, memory->first, memory->last);
    if (!memory->is_unused || memory->is_kept) return 0;
    found = take_address(regions, (size_t)PyArray_NBYTES(owner), &memory->address);
    memory->is_unused = found > 0;
    return found < 0 ? -1 : 0;
}

/* Set the fields of an unused Var. */
static void release_var(LiveVar *entry, PyObject *array, const Memory *memory, const npy_int64 *boundaries, npy_intp n) {
    PyArrayObject *x = (PyArrayObject *)array;
    entry->address = (npy_int64)(size_t)PyArray_DATA(x);
    if (memory->is_outside) {
        entry->is_kept = (unsigned char)crosses(boundaries, n, entry->first, entry->last);
        entry->is_released = array != memory->owner && PyArray_NBYTES(x) > 0 && is_unused_array(array, memory->owner) && !entry->is_kept;
    } else if (memory->is_unused) {
        entry->is_kept = memory->is_kept;
        entry->is_released = !memory->is_kept;
        entry->address = memory->address + (PyArray_BYTES(x) - PyArray_BYTES((PyArrayObject *)memory->owner));
    }
}

/* Release an unused Var if nothing but it refers to its array, and the array has no views: 1 done, 0 otherwise, -1 error. */
static int release_single(LiveVar *entry, PyObject *array, PyObject *regions, const npy_int64 *boundaries, npy_intp n) {
    int found;
    if (Py_REFCNT(array) != 1 || !has_own_memory((PyArrayObject *)array)) return 0;
    entry->is_kept = (unsigned char)crosses(boundaries, n, entry->first, entry->last);
    if (entry->is_kept) return 1;
    found = take_address(regions, (size_t)PyArray_NBYTES((PyArrayObject *)array), &entry->address);
    entry->is_released = found > 0;
    return found < 0 ? -1 : 1;
}

npy_int64 release_unused(LiveVar *live, Py_ssize_t count, PyObject *outside, PyObject *regions, const npy_int64 *boundaries, npy_intp n) {
    Memories memories = {NULL, 64};
    Py_ssize_t i;
    npy_int64 bytes = 0;
    size_t at;
    int failed = 0;
    while (memories.size < 2 * (size_t)count) memories.size *= 2;
    memories.table = PyMem_Calloc(memories.size, sizeof *memories.table);
    if (memories.table == NULL) return PyErr_NoMemory(), -1;
    for (i = 0; i < count; i++) {
        PyObject *array = array_of_var(live[i].var);
        live[i].is_released = 0;
        if (!is_unused_var(live + i) || array == NULL) continue;
        live[i].address = (npy_int64)(size_t)PyArray_DATA((PyArrayObject *)array);
        live[i].is_released = live[i].is_empty;
        if (live[i].is_empty) continue;
        failed = release_single(live + i, array, regions, boundaries, n);
        if (failed < 0) break;
        if (failed == 0) note_unused(&memories, live + i, array);
    }
    failed = failed < 0;
    for (at = 0; at < memories.size && !failed; at++) failed = memories.table[at].owner != NULL && decide(memories.table + at, outside, regions, boundaries, n) < 0;
    for (i = 0; i < count && !failed; i++) {
        PyObject *array = array_of_var(live[i].var);
        if (array != NULL && !live[i].is_empty && !live[i].is_released && is_unused_var(live + i)) release_var(live + i, array, memory_of(&memories, owner_of(array)), boundaries, n);
        if (array != NULL && !live[i].is_released && live[i].first >= 0 && PyArray_BASE((PyArrayObject *)array) == NULL) bytes += PyArray_NBYTES((PyArrayObject *)array);
    }
    PyMem_Free(memories.table);
    return failed ? -1 : bytes;
}
