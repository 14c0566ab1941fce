/* An allocator that places a protected page after each block, for arrays and raw Python memory (arenas of plans).

   NumPy's loops are not compiled with a sanitizer; the protected page detects plans that let them exceed a buffer. */

#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION

#include <Python.h>
#include <numpy/arrayobject.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
#define BUCKETS 4096
#define MOST_BLOCKS 12000 /* the kernel's limit of mappings is near 65,000 */
#define SMALLEST 32

typedef struct Fenced {
    struct Fenced *next;
    void *block, *map;
    size_t size, mapped;
} Fenced;

static Fenced *buckets[BUCKETS];
static int blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PyMemAllocatorEx before;

/* Return the location of the pointer to a block's record, or where it would be inserted. Requires the lock. */
static Fenced **place_of(const void *block) {
    Fenced **place = &buckets[((size_t)block >> 12) % BUCKETS];
    while (*place != NULL && (*place)->block != block) place = &(*place)->next;
    return place;
}

static void *fenced(size_t size) {
    size_t room = (size + 15) / 16 * 16, mapped = (room + PAGE - 1) / PAGE * PAGE + PAGE;
    Fenced *record, **place;
    char *map;
    void *block = NULL;
    if (size < SMALLEST) return NULL;
    pthread_mutex_lock(&lock);
    map = blocks < MOST_BLOCKS ? mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    record = map == MAP_FAILED ? NULL : malloc(sizeof(Fenced));
    if (record != NULL) {
        mprotect(map + mapped - PAGE, PAGE, PROT_NONE);
        block = map + mapped - PAGE - room;
        place = place_of(block);
        *record = (Fenced){NULL, block, map, size, mapped};
        *place = record;
        blocks++;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

/* Free a block; return false if it was not allocated here. */
static int release(const void *block) {
    Fenced **place, *record;
    pthread_mutex_lock(&lock);
    place = place_of(block);
    record = *place;
    if (record != NULL) {
        *place = record->next;
        munmap(record->map, record->mapped);
        free(record);
        blocks--;
    }
    pthread_mutex_unlock(&lock);
    return record != NULL;
}

/* Return the size of a block, or -1 if it was not allocated here. */
static Py_ssize_t size_of(const void *block) {
    Fenced *record;
    pthread_mutex_lock(&lock);
    record = *place_of(block);
    pthread_mutex_unlock(&lock);
    return record == NULL ? -1 : (Py_ssize_t)record->size;
}

static void *raw_malloc(void *context, size_t size) {
    void *block = fenced(size);
    (void)context;
    return block != NULL ? block : before.malloc(before.ctx, size);
}

static void *raw_calloc(void *context, size_t count, size_t size) {
    void *block = fenced(count * size);
    (void)context;
    return block != NULL ? block : before.calloc(before.ctx, count, size);
}

static void raw_free(void *context, void *block) {
    (void)context;
    if (!release(block)) before.free(before.ctx, block);
}

static void *raw_realloc(void *context, void *block, size_t size) {
    Py_ssize_t old = size_of(block);
    void *more;
    if (old < 0) return before.realloc(before.ctx, block, size);
    more = raw_malloc(context, size);
    if (more != NULL) {
        memcpy(more, block, (size_t)old < size ? (size_t)old : size);
        release(block);
    }
    return more;
}

static void array_free(void *context, void *block, size_t size) {
    (void)size;
    raw_free(context, block);
}

static PyDataMem_Handler handler = {"fence", 1, {NULL, raw_malloc, raw_calloc, raw_realloc, array_free}};

static PyObject *install(PyObject *module, PyObject *unused) {
    PyMemAllocatorEx ours = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
    PyObject *capsule = PyCapsule_New(&handler, "mem_handler", NULL), *old;
    (void)module;
    (void)unused;
    if (capsule == NULL) return NULL;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &before);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &ours);
    old = PyDataMem_SetHandler(capsule);
    Py_DECREF(capsule);
    Py_XDECREF(old);
    return PyLong_FromLong(0);
}

static PyObject *count(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(blocks);
}

static PyMethodDef functions[] = {
    {"install", install, METH_NOARGS, "Fence in what is allocated from now on, in this thread's arrays."},
    {"count", count, METH_NOARGS, "How many blocks are fenced in now."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fence", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_fence(void) {
    import_array();
    return PyModule_Create(&definition);
}
