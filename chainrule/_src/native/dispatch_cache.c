/* The dispatch cache: which ops a NumPy function applies to its arrays, with which parameters.

   The functions in this cache choose ops by shapes and static arguments alone. read_call_key() encodes a call as words: the function, the nested
   arguments, and for each array its shape, strides, dtype and whether it requires grad. At the second call with a key, api/dispatch_cache.py runs
   the Python function and lists the ops that it recorded: the cache entry. Later calls replay() the entry without Python. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>

enum { MAX_ENTRIES = 2048, MAX_VALUES = 64 };
/* tags: the type of the words that follow */
enum { TAG_NONE, TAG_ELLIPSIS, TAG_BOOL, TAG_INT, TAG_FLOAT, TAG_STR, TAG_SLICE, TAG_SEQUENCE, TAG_KEYWORD, TAG_TENSOR, TAG_REPEATED, TAG_ARRAY };

/* ---- reading a call */

static int add_word(CallKey *key, long long word) {
    if (key->n == MAX_KEY_WORDS) return 0;
    key->words[key->n++] = word;
    return 1;
}

static int add_words(CallKey *key, long long first, long long second) { return add_word(key, first) && add_word(key, second); }

static int add_text(CallKey *key, PyObject *text) {
    Py_ssize_t length, at;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (bytes == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (!add_words(key, TAG_STR, length)) return 0;
    for (at = 0; at < length; at += 8) {
        long long word = 0;
        memcpy(&word, bytes + at, (size_t)(length - at < 8 ? length - at : 8));
        if (!add_word(key, word)) return 0;
    }
    return 1;
}

/* Return the type number of a builtin dtype, -1 for any other dtype. The address of a dtype is no key: another dtype may reuse it. */
static int dtype_number(PyArray_Descr *dtype) {
    PyArray_Descr *slot = PyArray_DescrFromType(dtype->type_num);
    int number = slot == dtype ? dtype->type_num : -1;
    Py_XDECREF(slot);
    return number;
}

/* Encode dtype, flags, shape and strides. */
static int add_layout(CallKey *key, PyArrayObject *x) {
    int i, ndim = PyArray_NDIM(x), dtype = dtype_number(PyArray_DESCR(x));
    if (dtype < 0 || !add_words(key, dtype, PyArray_FLAGS(x) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE)) || !add_words(key, ndim, PyArray_BASE(x) != NULL)) return 0;
    for (i = 0; i < ndim; i++) {
        if (!add_words(key, PyArray_DIM(x, i), PyArray_STRIDE(x, i))) return 0;
    }
    return 1;
}

/* Encode a tensor or plain array, and append it to the operands of the key. */
static int add_operand(CallKey *key, PyObject *x) {
    PyObject *raw = x;
    int i, tensor = Py_TYPE(x) == core.tensor;
    if (tensor) {
        PyObject *edge = SLOT(x, core.edge), *view = SLOT(x, core.tensor_view);
        raw = array_of_tensor(x, key->mode);
        if (raw == NULL || edge == NULL || (kind_of(raw) < 0 && (edge != Py_None || !is_constant(raw)))) return 0;
        if (view != NULL && view != Py_None) { /* views of 0-d arrays differ: see api.array.as_arrays */
            PyObject *base = SLOT(view, core.view_base), *base_array = base == NULL || Py_TYPE(base) != core.tensor ? NULL : array_of_tensor(base, key->mode);
            if (base_array == NULL || PyArray_NDIM((PyArrayObject *)base_array) == 0) return 0;
        }
        key->recorded |= edge != Py_None;
        tensor = 1 + (edge != Py_None) + 2 * (view != NULL && view != Py_None);
    } else if (!is_constant(x)) {
        return 0;
    }
    for (i = 0; i < key->noperands; i++) {
        PyObject *other = key->operands[i];
        if (other == x) return add_words(key, TAG_REPEATED, i);
        if (raw == (Py_TYPE(other) == core.tensor ? array_of_tensor(other, key->mode) : other)) return 0;
    }
    if (key->noperands == MAX_CALL_OPERANDS) return 0;
    key->operands[key->noperands++] = Py_NewRef(x);
    return add_words(key, tensor ? TAG_TENSOR : TAG_ARRAY, tensor) && add_layout(key, (PyArrayObject *)raw);
}

static int add_argument(CallKey *key, PyObject *x, int depth) {
    Py_ssize_t i;
    if (PyLong_CheckExact(x)) {
        int over;
        long long value = PyLong_AsLongLongAndOverflow(x, &over);
        return !over && add_words(key, TAG_INT, value);
    }
    if (x == Py_None) return add_word(key, TAG_NONE);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        if (depth == 0 || !add_words(key, TAG_SEQUENCE, 2 * n + PyList_CheckExact(x))) return 0;
        for (i = 0; i < n; i++) {
            if (!add_argument(key, PySequence_Fast_GET_ITEM(x, i), depth - 1)) return 0;
        }
        return 1;
    }
    if (PyFloat_CheckExact(x)) {
        double value = PyFloat_AS_DOUBLE(x);
        long long word;
        memcpy(&word, &value, sizeof(word));
        return add_words(key, TAG_FLOAT, word);
    }
    if (PyBool_Check(x)) return add_words(key, TAG_BOOL, x == Py_True);
    if (PyUnicode_CheckExact(x)) return add_text(key, x);
    if (x == Py_Ellipsis) return add_word(key, TAG_ELLIPSIS);
    if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        return depth > 0 && add_word(key, TAG_SLICE) && add_argument(key, slice->start, 0) && add_argument(key, slice->stop, 0) && add_argument(key, slice->step, 0);
    }
    return Py_TYPE(x) != core.tensor && add_operand(key, unwrap_array(x)); /* a Tensor among Arrays changes the type of the result */
}

int read_call_key(CallKey *key, PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords, int mode) {
    Py_ssize_t i, at = 0, count = keywords != NULL && PyTuple_Check(keywords) ? PyTuple_GET_SIZE(keywords) : 0;
    PyObject *name, *value;
    key->function = function;
    key->mode = mode;
    key->n = key->noperands = key->recorded = 0;
    if (!add_words(key, (long long)(intptr_t)function, nargs)) return 0;
    for (i = 0; i < nargs; i++) {
        if (!add_argument(key, args[i], 3)) return 0;
    }
    for (i = 0; i < count; i++) {
        if (!add_word(key, TAG_KEYWORD) || !add_text(key, PyTuple_GET_ITEM(keywords, i)) || !add_argument(key, args[nargs + i], 3)) return 0;
    }
    if (keywords != NULL && PyDict_CheckExact(keywords)) {
        while (PyDict_Next(keywords, &at, &name, &value)) {
            if (!PyUnicode_CheckExact(name) || !add_word(key, TAG_KEYWORD) || !add_text(key, name) || !add_argument(key, value, 3)) return 0;
        }
    }
    return key->recorded;
}

void drop_call_key(CallKey *key) {
    while (key->noperands > 0) Py_DECREF(key->operands[--key->noperands]);
}

int is_same_key(const CallKey *x, const CallKey *y) { return x->n == y->n && memcmp(x->words, y->words, sizeof(long long) * (size_t)x->n) == 0; }

/* ---- the hash table */

typedef struct {
    uint64_t hash;
    int n;
    long long *words;
    PyObject *function, *entry; /* entry: NULL if such a call was seen once; None if Python must handle it */
} CacheSlot;

struct DispatchCache {
    CacheSlot *table; /* open addressing, at most half full; NULL while the cache is empty */
    int count, size;
};

static uint64_t hash_of(const CallKey *key) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    int i;
    for (i = 0; i < key->n; i++) {
        hash ^= (uint64_t)key->words[i];
        hash *= 0x9FB21C651E98DF25u;
        hash ^= hash >> 32;
    }
    return hash;
}

DispatchCache *new_cache(void) {
    DispatchCache *cache = PyMem_Calloc(1, sizeof(DispatchCache));
    if (cache == NULL) PyErr_NoMemory();
    return cache;
}

static void free_table(CacheSlot *table, int size) {
    int i;
    for (i = 0; i < size; i++) {
        PyMem_Free(table[i].words);
        Py_XDECREF(table[i].function);
        Py_XDECREF(table[i].entry);
    }
    PyMem_Free(table);
}

static void empty_cache(DispatchCache *cache) {
    CacheSlot *table = cache->table;
    int size = cache->size;
    *cache = (DispatchCache){NULL, 0, 0}; /* before releasing the entries, which may run other code */
    free_table(table, size);
}

void free_cache(DispatchCache *cache) {
    if (cache == NULL) return;
    empty_cache(cache);
    PyMem_Free(cache);
}

int visit_cache(const DispatchCache *cache, visitproc visit, void *arg) {
    int i;
    for (i = 0; cache != NULL && i < cache->size; i++) {
        Py_VISIT(cache->table[i].function);
        Py_VISIT(cache->table[i].entry);
    }
    return 0;
}

/* Return the slot of a key, used or free; NULL if the table is empty. */
static CacheSlot *slot_of(const DispatchCache *cache, const CallKey *key, uint64_t hash) {
    size_t last = (size_t)cache->size - 1, at = (size_t)hash & last;
    for (; cache->size > 0; at = (at + 1) & last) {
        CacheSlot *slot = &cache->table[at];
        if (slot->words == NULL) return slot;
        if (slot->hash == hash && slot->n == key->n && memcmp(slot->words, key->words, sizeof(long long) * (size_t)key->n) == 0) return slot;
    }
    return NULL;
}

/* Double the table. */
static int grow(DispatchCache *cache) {
    int size = cache->size > 0 ? 2 * cache->size : 16, i;
    CacheSlot *table = PyMem_Calloc((size_t)size, sizeof(CacheSlot));
    if (table == NULL) return 0;
    for (i = 0; i < cache->size; i++) {
        size_t at = (size_t)cache->table[i].hash & ((size_t)size - 1);
        if (cache->table[i].words == NULL) continue;
        while (table[at].words != NULL) at = (at + 1) & ((size_t)size - 1);
        table[at] = cache->table[i];
    }
    PyMem_Free(cache->table);
    cache->table = table;
    cache->size = size;
    return 1;
}

int find_entry(DispatchCache *cache, const CallKey *key, PyObject **entry) {
    uint64_t hash = hash_of(key);
    CacheSlot *slot = slot_of(cache, key, hash);
    long long *words;
    if (slot != NULL && slot->words != NULL) {
        *entry = Py_XNewRef(slot->entry);
        return slot->entry == NULL;
    }
    *entry = NULL;
    if (cache->count == MAX_ENTRIES) empty_cache(cache);
    if (2 * cache->count >= cache->size && !grow(cache)) return 0;
    slot = slot_of(cache, key, hash);
    if (slot->words != NULL) return 0; /* a destructor of a released entry made the same call */
    words = PyMem_Malloc(sizeof(long long) * (size_t)key->n);
    if (words == NULL) return 0;
    memcpy(words, key->words, sizeof(long long) * (size_t)key->n);
    *slot = (CacheSlot){hash, key->n, words, Py_NewRef(key->function), NULL};
    cache->count++;
    return 0;
}

void store_entry(DispatchCache *cache, const CallKey *key, PyObject *entry) {
    CacheSlot *slot = slot_of(cache, key, hash_of(key));
    if (slot != NULL && slot->words != NULL && slot->entry == NULL) slot->entry = Py_NewRef(entry);
}

/* ---- replaying an entry */

/* Whether an object is a valid entry for n operands. */
int is_entry(PyObject *entry, Py_ssize_t n) {
    PyObject *steps;
    Py_ssize_t i, k;
    if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 3 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(entry, 2)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(entry, 0))) return 0;
    steps = PyTuple_GET_ITEM(entry, 0);
    for (i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i), *step_operands;
        if (!PyTuple_CheckExact(step) || PyTuple_GET_SIZE(step) != 3 || !PyObject_TypeCheck(PyTuple_GET_ITEM(step, 0), core.primitive) || !PyDict_CheckExact(PyTuple_GET_ITEM(step, 1)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(step, 2))) return 0;
        step_operands = PyTuple_GET_ITEM(step, 2);
        for (k = 0; k < PyTuple_GET_SIZE(step_operands); k++) {
            PyObject *ref = PyTuple_GET_ITEM(step_operands, k);
            if (PyLong_CheckExact(ref) ? PyLong_AsLong(ref) < 0 || PyLong_AsLong(ref) >= n + i : !PyTuple_CheckExact(ref) || PyTuple_GET_SIZE(ref) != 1) return 0;
        }
    }
    return 1;
}

/* entry: (((prim, parameters, operands), ...), whether the result is a NumPy scalar (a copy, not a view), the origin of its view or "").
   An operand is the index of a value (the operands of the call, then the result of each step), or a 1-tuple of a number or array. */
PyObject *replay(PyObject *entry, PyObject *const *operands, int n, int mode) {
    PyObject *steps = PyTuple_GET_ITEM(entry, 0), *values[MAX_VALUES], *args[MAX_CALL_OPERANDS], *output = NULL;
    Py_ssize_t i, k, count = PyTuple_GET_SIZE(steps), begin = mode == TRACES ? trace_length() : 0;
    int nvalues = n;
    if (n + count > MAX_VALUES || count == 0 || begin < 0) return NULL;
    Py_INCREF(entry);
    for (i = 0; i < n; i++) values[i] = Py_NewRef(operands[i]);
    for (i = 0; i < count; i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i), *step_operands = PyTuple_GET_ITEM(step, 2);
        Py_ssize_t nargs = PyTuple_GET_SIZE(step_operands);
        output = NULL;
        for (k = 0; k < nargs && k < MAX_CALL_OPERANDS; k++) {
            PyObject *ref = PyTuple_GET_ITEM(step_operands, k);
            args[k] = PyLong_CheckExact(ref) ? values[PyLong_AsLong(ref)] : PyTuple_GET_ITEM(ref, 0);
        }
        if (nargs <= MAX_CALL_OPERANDS) output = record(PyTuple_GET_ITEM(step, 0), args, nargs, PyTuple_GET_ITEM(step, 1), NULL, mode, current_frame);
        if (output == NULL) break;
        values[nvalues++] = output;
    }
    if (output != NULL && PyTuple_GET_ITEM(entry, 1) == Py_True) {
        PyObject *raw = Py_NewRef(SLOT(output, core.raw)), *number = mode == TRACES ? Py_NewRef(raw) : PyArray_NewCopy((PyArrayObject *)raw, NPY_CORDER); /* traced values have no memory to share */
        Py_DECREF(raw);
        if (number == NULL) {
            if (!PyErr_Occurred()) PyErr_NoMemory();
            output = NULL;
        } else {
            Py_SETREF(SLOT(output, core.raw), number);
            if (SLOT(output, core.tensor_view) != NULL) Py_SETREF(SLOT(output, core.tensor_view), Py_NewRef(Py_None));
        }
    }
    if (output != NULL && PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(entry, 2)) > 0) {
        PyObject *view = SLOT(output, core.tensor_view);
        if (view != NULL && view != Py_None) Py_XSETREF(SLOT(view, core.view_origin), Py_NewRef(PyTuple_GET_ITEM(entry, 2)));
    }
    if (output == NULL && mode == TRACES && !PyErr_Occurred()) truncate_trace(begin); /* Python appends the calls again */
    Py_XINCREF(output);
    while (nvalues > 0) Py_DECREF(values[--nvalues]);
    Py_DECREF(entry);
    if (output == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear(); /* Python raises it with its own message */
    return output;
}
